func.func @f(%A: memref<64xf32>, %x: f32) {
  tir.for %i in 64 attributes {pragma_import_c = "int one(void) { return 1; }"} {
    tir.block "A" iters(%vi: spatial<64>) = [%i] {
      memref.store %x, %A[%vi] : memref<64xf32>
    }
  }
  func.return
}
