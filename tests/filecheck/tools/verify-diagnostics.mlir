// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'tir-split{block=B loop=7 factors=0,4}'
// RUN: not weft-opt %s --split-input-file --verify-diagnostics -p 'tir-split{block=B loop=8 factors=0,4}' 2>&1 | filecheck %s

func.func @f(%A: memref<4xf32>) {
  tir.for %i in 4 {
    // expected-error-re@+1 {{block "{{[A-Z]}}" has {{[0-9]+}} loops, 0..0; there is no loop 7}}
    tir.block "B" iters(%v: spatial<4>) = [%i] {
      %a = memref.load %A[%v] : memref<4xf32>
      memref.store %a, %A[%v] : memref<4xf32>
    }
  }
  func.return
}
// CHECK: verify-diagnostics.mlir:[[# @LINE - 7]]:5: error: unexpected error: block "B" has 1 loops, 0..0; there is no loop 8
// CHECK: verify-diagnostics.mlir:[[# @LINE - 9]]:8: error: expected error {{.*}} was not produced

// -----

func.func @g(%A: memref<4xf32>) { // expected-note {{it is defined here}}
  // expected-error@below 1 {{value %A is already defined, at line 19}}
  %A = arith.constant 0 : index
  func.return
}

// -----

// expected-error@unknown {{unknown block 'B'}}
func.func @h() {
  func.return
}
