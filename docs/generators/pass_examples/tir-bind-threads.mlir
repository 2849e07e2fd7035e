func.func @f(%A: memref<512xf32>, %B: memref<512xf32>) {
  %T = memref.alloc() : memref<512xf32>
  tir.for %b in 8 thread_binding<"blockIdx.x"> {
    tir.for %s in 64 thread_binding<"threadIdx.x"> {
      tir.block "T" iters(%v: spatial<512>) = [%b * 64 + %s] {
        %a = memref.load %A[%v] : memref<512xf32>
        memref.store %a, %T[%v] : memref<512xf32>
      }
    }
    tir.for %t in 64 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%v: spatial<512>) = [%b * 64 + %t] {
        %x = memref.load %T[%v] : memref<512xf32>
        memref.store %x, %B[%v] : memref<512xf32>
      }
    }
  }
  func.return
}
