func.func @f(%A: memref<64xf32>, %C: memref<1xf32>) {
  tir.for %z in 4 thread_binding<"blockIdx.x"> {
    tir.for %k in 16 {
      tir.block "C" iters(%vc: spatial<1>, %vk: reduce<64>) = [0, %z * 16 + %k] {
        %c = memref.load %C[%vc] : memref<1xf32>
        %a = memref.load %A[%vk] : memref<64xf32>
        %s = arith.addf %c, %a : f32
        memref.store %s, %C[%vc] : memref<1xf32>
      }
    }
  }
  func.return
}
