// RUN: weft-opt %s --split-input-file -p tir-state-preconditions --verify-diagnostics

// Refuted for all sizes of 1 and more.

func.func @past(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  tir.for %i in %n {
    %next = affine.apply affine_map<(d0) -> (d0 + 1)> (%i)
    // expected-error@+1 {{writes A out of bounds: in iteration (i=0) index 0 is 1, the buffer is memref<?xf32>}}
    memref.store %zero, %A[%next] : memref<?xf32>
  }
  func.return
}

// -----

// A call that never meets what its callee assumes.

func.func private @first(%A: memref<?xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 {
    memref.store %zero, %A[%i] : memref<?xf32>
  }
  func.return
}
func.func @main(%X: memref<?xf32>, %Y: memref<3xf32>) attributes {tir.function} {
  %y = memref.cast %Y : memref<3xf32> to memref<?xf32>
  // expected-error@+1 {{call of @first, which assumes that 8 <= A_d0 holds: it never does}}
  func.call @first(%y) : (memref<?xf32>) -> ()
  func.return
}

// -----

// Sizes decide, but no condition is found: products with two loop variables.

func.func @products(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  tir.for %i in %n {
    tir.for %j in %n {
      %at = arith.muli %i, %j : index
      // expected-remark@+1 {{index 0 of A depends on sizes in a way that calls do not check}}
      memref.store %zero, %A[%at] : memref<?xf32>
    }
  }
  func.return
}
