// RUN: weft-opt %s -p 'convert-tir-to-affine{strict=true}' --split-input-file --verify-diagnostics -o /dev/null

func.func @data(%A: memref<8xf32>, %P: memref<8xindex>) {
  tir.for %i in 8 {
    tir.block "A" iters(%vi: spatial<8>) = [%i] {
      %k = memref.load %P[%vi] : memref<8xindex>
      %a = memref.load %A[%vi] : memref<8xf32>
      // expected-error@+1 {{convert-tir-to-affine: index 0 is not affine: it stays memref.store}}
      memref.store %a, %A[%k] : memref<8xf32>
    }
  }
  func.return
}

// -----

// expected-error@+1 {{convert-tir-to-affine: the module has no function of block loops}}
builtin.module {
  func.func @other(%A: memref<8xf32>) {
    func.return
  }
}
