// RUN: weft-opt %s --split-input-file -p te-split-reductions | filecheck %s

// A computation that is one reduction stays.
// CHECK-LABEL: func.func @plain
// CHECK:         te.compute "y" (%[[I:\w+]]) : tensor<4xf32> {
// CHECK-NEXT:      %[[S:\w+]] = te.reduce sum
// CHECK-NOT:     te.compute
func.func @plain(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = te.compute "y" (%i) : tensor<4xf32> {
    %s = te.reduce sum (%k in 8) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      te.yield %a : f32
    }
    te.yield %s : f32
  }
  func.return %y : tensor<4xf32>
}

// -----

// The temporary has the indices that the reduction depends on, here %i and not %j.
// CHECK-LABEL: func.func @centred
// CHECK:         %[[Y_MAX:\w+]] = te.compute "y_max" (%[[I:\w+]]) : tensor<4xf32> {
// CHECK-NEXT:      %[[S:\w+]] = te.reduce max (%[[K:\w+]] in 8) : f32 {
// CHECK-NEXT:        %[[A:\w+]] = tensor.extract %A[%[[I]], %[[K]]] : tensor<4x8xf32>
// CHECK-NEXT:        te.yield %[[A]] : f32
// CHECK-NEXT:      }
// CHECK-NEXT:      te.yield %[[S]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[Y:\w+]] = te.compute "y" ({{%i(_1)?}}, %[[J:\w+]]) : tensor<4x8xf32> {
// CHECK-NEXT:      %[[X:\w+]] = tensor.extract %A[{{%i(_1)?}}, %[[J]]] : tensor<4x8xf32>
// CHECK-NEXT:      {{%s(_1)?}} = tensor.extract %[[Y_MAX]][{{%i(_1)?}}] : tensor<4xf32>
// CHECK-NEXT:      %[[D:\w+]] = arith.subf %[[X]], {{%s(_1)?}} : f32
func.func @centred(%A: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = te.compute "y" (%i, %j) : tensor<4x8xf32> {
    %x = tensor.extract %A[%i, %j] : tensor<4x8xf32>
    %s = te.reduce max (%k in 8) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      te.yield %a : f32
    }
    %d = arith.subf %x, %s : f32
    te.yield %d : f32
  }
  func.return %y : tensor<4x8xf32>
}

// -----

// Under a condition: the temporary reads under it, and has the identity elsewhere.
// CHECK-LABEL: func.func @guarded
// CHECK:         %[[Y_PROD:\w+]] = te.compute "y_prod" (%[[I:\w+]]) : tensor<9xi32> {
// CHECK-NEXT:      %[[IN:\w+]] = arith.cmpi slt, %[[I]], %[[C4:\w+]] : index
// CHECK-NEXT:      %[[S:\w+]] = te.reduce prod (%[[K:\w+]] in 8) : i32 {
// CHECK-NEXT:        %[[V:.*]] = scf.if %[[IN]] -> (i32) {
// CHECK-NEXT:          %[[A:\w+]] = tensor.extract %A[%[[I]], %[[K]]] : tensor<4x8xi32>
// CHECK-NEXT:          scf.yield %[[A]] : i32
// CHECK-NEXT:        } else {
// CHECK-NEXT:          scf.yield %{{.*}} : i32
// CHECK-NEXT:        }
// CHECK-NEXT:        te.yield %[[V]] : i32
// CHECK:         te.compute "y" ({{%i(_1)?}})
// CHECK:           scf.if
// CHECK-NEXT:        {{%s(_1)?}} = tensor.extract %[[Y_PROD]][{{%i(_1)?}}] : tensor<9xi32>
func.func @guarded(%A: tensor<4x8xi32>) -> tensor<9xi32> {
  %c4 = arith.constant 4 : index
  %none = arith.constant -1 : i32
  %y = te.compute "y" (%i) : tensor<9xi32> {
    %in = arith.cmpi slt, %i, %c4 : index
    %r = scf.if %in -> (i32) {
      %s = te.reduce prod (%k in 8) : i32 {
        %a = tensor.extract %A[%i, %k] : tensor<4x8xi32>
        te.yield %a : i32
      }
      scf.yield %s : i32
    } else {
      scf.yield %none : i32
    }
    te.yield %r : i32
  }
  func.return %y : tensor<9xi32>
}

// -----

// A reduction within another: the outer axis that it depends on becomes an index of the temporary.
// CHECK-LABEL: func.func @nested
// CHECK:         te.compute "y_max" (%[[I:\w+]], %[[J:\w+]]) : tensor<3x4xf32> {
// CHECK-NEXT:      %[[M:\w+]] = te.reduce max (%[[K:\w+]] in 5)
// CHECK:         te.compute "y" ({{%i(_1)?}}) : tensor<3xf32> {
// CHECK-NEXT:      %[[S:\w+]] = te.reduce sum ({{%j(_1)?}} in 4) : f32 {
// CHECK-NEXT:        {{%m(_1)?}} = tensor.extract %[[Y_MAX:\w+]][{{%i(_1)?, %j(_1)?}}] : tensor<3x4xf32>
// CHECK-NOT:     te.compute
func.func @nested(%A: tensor<3x4x5xf32>) -> tensor<3xf32> {
  %y = te.compute "y" (%i) : tensor<3xf32> {
    %s = te.reduce sum (%j in 4) : f32 {
      %m = te.reduce max (%k in 5) : f32 {
        %a = tensor.extract %A[%i, %j, %k] : tensor<3x4x5xf32>
        te.yield %a : f32
      }
      te.yield %m : f32
    }
    te.yield %s : f32
  }
  func.return %y : tensor<3xf32>
}

// -----

// Functions without tensor expressions stay as they are, of several blocks too.
// CHECK-LABEL: func.func @other
// CHECK-NEXT:    cf.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT:  ^bb1:
// CHECK-NEXT:    %[[ONE:\w+]] = arith.constant 1 : i32
func.func @other(%c: i1) -> i32 {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %one = arith.constant 1 : i32
  func.return %one : i32
^bb2:
  %uno = arith.constant 1 : i32
  func.return %uno : i32
}
