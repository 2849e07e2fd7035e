// RUN: weft-opt %s -p convert-tir-to-affine --split-input-file --verify-diagnostics -o /dev/null
// RUN: weft-opt %s -p convert-tir-to-scf --split-input-file --verify-diagnostics -o /dev/null

func.func @pointer(%A: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      // expected-error@+1 {{low.access_ptr has no upstream form}}
      %p = low.access_ptr %A[%vi] read : memref<8xf32>
    }
  }
  func.return
}

// -----

func.func @power(%A: memref<8xi1>) {
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      %a = memref.load %A[%vi] : memref<8xi1>
      // expected-error@+1 {{math.ipowi of i1 has no form in any target}}
      %p = math.ipowi %a, %a : i1
      memref.store %p, %A[%vi] : memref<8xi1>
    }
  }
  func.return
}
