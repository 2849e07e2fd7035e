"memref.global"() <{sym_name = "w", type = memref<4xf32>, initial_value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>, sym_visibility = "private", constant}> : () -> ()
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) attributes {tir.function} {
  %w = memref.get_global @w : memref<4xf32>
  func.call @f(%x, %w, %y) : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
func.func private @f(%x: memref<4xf32>, %w: memref<4xf32> {tir.constant}, %y: memref<4xf32>) {
  %p = memref.alloc() : memref<4xf32>
  tir.for %i in 4 {
    tir.block "pack" iters(%v: spatial<4>) = [%i] {
      %at = affine.apply affine_map<(d0) -> (3 - d0)>(%v)
      %e = memref.load %w[%v] : memref<4xf32>
      memref.store %e, %p[%at] : memref<4xf32>
    }
  }
  tir.for %i in 4 {
    tir.block "y" iters(%v: spatial<4>) = [%i] {
      %e = memref.load %x[%v] : memref<4xf32>
      %d = memref.load %p[%v] : memref<4xf32>
      %s = arith.mulf %e, %d : f32
      memref.store %s, %y[%v] : memref<4xf32>
    }
  }
  func.return
}
