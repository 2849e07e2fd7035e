// RUN: weft-opt %s --split-input-file --verify-diagnostics -p te-split-reductions

// Requirement: the extent of a reduce axis is the same for all elements.
func.func @ragged(%A: tensor<4x8xf32>, %lengths: tensor<4xi64>) -> tensor<4xf32> {
  %y = te.compute "y" (%i) : tensor<4xf32> {
    %l = tensor.extract %lengths[%i] : tensor<4xi64>
    %n = arith.index_cast %l : i64 to index
    // expected-error@+1 {{te.compute "y": the extent of reduce axis %k depends on the element: it must be the same for all elements, defined outside te.compute}}
    %s = te.reduce sum (%k in %n) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      te.yield %a : f32
    }
    te.yield %s : f32
  }
  func.return %y : tensor<4xf32>
}

// -----

// Requirement: what is stored is an element type.
func.func @index(%A: tensor<4xi64>) -> tensor<i64> {
  %y = te.compute "y" () : tensor<i64> {
    // expected-error@+1 {{te.compute "y": the result of a reduction within a larger expression is stored, which index cannot be: cast it within the reduction}}
    %s = te.reduce sum (%k in 4) : index {
      te.yield %k : index
    }
    %v = arith.index_cast %s : index to i64
    te.yield %v : i64
  }
  func.return %y : tensor<i64>
}

// -----

// Requirement: the combiner of a reduction that leaves a branch uses nothing that the branch computes.
func.func @combiner(%A: tensor<4xi64>) -> tensor<9xi64> {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : i64
  %y = te.compute "y" (%i) : tensor<9xi64> {
    %in = arith.cmpi slt, %i, %c4 : index
    %r = scf.if %in -> (i64) {
      %scale = tensor.extract %A[%i] : tensor<4xi64>
      %s = te.reduce custom (%k in 4) : i64 {
        %a = tensor.extract %A[%k] : tensor<4xi64>
        te.yield %a : i64
      } combine (%x, %z) {
        // expected-error@+1 {{te.compute "y": the combiner of a reduction under a condition uses a value that is computed under that condition}}
        %m = arith.muli %x, %scale : i64
        te.yield %m : i64
      } identity {
        te.yield %c0 : i64
      }
      scf.yield %s : i64
    } else {
      scf.yield %c0 : i64
    }
    te.yield %r : i64
  }
  func.return %y : tensor<9xi64>
}
