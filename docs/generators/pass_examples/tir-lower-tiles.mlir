func.func @f(%C: memref<16x8xf32>) attributes {tir.threads_in_step} {
  tir.for %t in 32 thread_binding<"threadIdx.x"> {
    %c0 = arith.constant 0 : index
    %F = memref.alloc() : memref<16x8xf32, "mma.accumulator">
    %f = low.access_ptr %F[%c0, %c0] sizes [16, 8] readwrite : memref<16x8xf32, "mma.accumulator">
    %f_rows = low.stride %F {dimension = 0} : memref<16x8xf32, "mma.accumulator">
    low.tile_fill <mma, c, row, [16, 8, 16], f32> %f, %f_rows with 0.0 : f32
    %c = low.access_ptr %C[%c0, %c0] sizes [16, 8] write : memref<16x8xf32>
    %c_rows = low.stride %C {dimension = 0} : memref<16x8xf32>
    low.tile_store <mma, c, row, [16, 8, 16], f32> %f, %f_rows to %c, %c_rows
  }
  func.return
}
