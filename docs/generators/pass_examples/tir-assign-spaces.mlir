func.func @f(%A: memref<512xf32>, %B: memref<512xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 8 thread_binding<"blockIdx.x"> attributes {tir.source = "T, B"} {
    tir.for %s in 64 thread_binding<"threadIdx.x"> {
      %T = memref.alloc() : memref<512xf32>
      tir.block "T" iters(%v: spatial<512>) = [%b * 64 + %s] {
        %a = memref.load %A[%v] : memref<512xf32>
        memref.store %a, %T[%v] : memref<512xf32>
      }
      tir.block "B" iters(%v_1: spatial<512>) = [%b * 64 + %s] {
        %x = memref.load %T[%v_1] : memref<512xf32>
        memref.store %x, %B[%v_1] : memref<512xf32>
      }
    }
  }
  func.return
}
