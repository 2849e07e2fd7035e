func.func @f(%A: memref<8xf32>, %B: memref<2xf32>) attributes {tir.threads_in_step} {
  tir.for %t in 1 thread_binding<"threadIdx.x"> {
    tir.for %v in 2 unrolled attributes {tir.virtual_threads} {
      %c0 = arith.constant 0 : index
      %L = memref.alloc() : memref<1xf32, "local">
      %zero = arith.constant 0.0 : f32
      memref.store %zero, %L[%c0] : memref<1xf32, "local">
      tir.for %k in 8 {
        %S = memref.alloc() : memref<1xf32, "shared">
        %a = memref.load %A[%k] : memref<8xf32>
        memref.store %a, %S[%c0] : memref<1xf32, "shared">
        %l = memref.load %L[%c0] : memref<1xf32, "local">
        %s = memref.load %S[%c0] : memref<1xf32, "shared">
        %sum = arith.addf %l, %s : f32
        memref.store %sum, %L[%c0] : memref<1xf32, "local">
      }
      %r = memref.load %L[%c0] : memref<1xf32, "local">
      memref.store %r, %B[%v] : memref<2xf32>
    }
  }
  func.return
}
