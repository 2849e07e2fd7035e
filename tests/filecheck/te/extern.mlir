// RUN: weft-opt %s --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file -p lower-te-to-tir | filecheck %s --check-prefix=TIR

// CHECK:       %[[S:\w+]], %[[T:\w+]] = te.extern "sums" (%[[I:\w+]] in 4) into (%[[SB:\w+]] : tensor<4x?xf32>[%n], %[[TB:\w+]] : tensor<4xf32>) {
// CHECK-NEXT:    memref.store %{{\w+}}, %[[TB]][%[[I]]] : memref<4xf32>
// CHECK-NEXT:    tir.for %[[K:\w+]] in %n {
// CHECK-NEXT:      %[[OLD:\w+]] = memref.load %[[TB]][%[[I]]] : memref<4xf32>
// CHECK-NEXT:      %{{\w+}} = tensor.extract %A[%[[I]], %[[K]]] : tensor<4x?xf32>
// CHECK:         func.return %[[S]] : tensor<4x?xf32>

// TIR:       func.func @f(%A: memref<4x?xf32>, %S: memref<4x?xf32>) attributes {tir.parameter_access = [#low<access read>, #low<access write>]} {
// TIR:         tir.assume_shape %S[%n] : memref<4x?xf32>
// TIR:         %[[T:\w+]] = memref.alloc() : memref<4xf32>
// TIR:         tir.for %[[I:\w+]] in 4 {
// TIR-NEXT:      tir.block "sums" iters(%[[V:\w+]]: spatial<4>) = [%[[I]]] {
// TIR-NEXT:        memref.store %{{\w+}}, %[[T]][%[[V]]] : memref<4xf32>
// TIR-NEXT:        tir.for %[[K:\w+]] in %n {
// TIR-NEXT:          %{{\w+}} = memref.load %[[T]][%[[V]]] : memref<4xf32>
// TIR-NEXT:          %{{\w+}} = memref.load %A[%[[V]], %[[K]]] : memref<4x?xf32>
// TIR-NEXT:          arith.addf
// TIR-NEXT:          memref.store %{{\w+}}, %[[T]][%[[V]]] : memref<4xf32>
// TIR-NEXT:          memref.store %{{\w+}}, %S[%[[V]], %[[K]]] : memref<4x?xf32>
// TIR:         func.return
func.func @f(%A: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %zero = arith.constant 0.000000e+00 : f32
  %one = arith.constant 1 : index
  %n = tensor.dim %A, %one : tensor<4x?xf32>
  %S, %T = te.extern "sums" (%i in 4) into (%s : tensor<4x?xf32>[%n], %t : tensor<4xf32>) {
    memref.store %zero, %t[%i] : memref<4xf32>
    tir.for %k in %n {
      %old = memref.load %t[%i] : memref<4xf32>
      %a = tensor.extract %A[%i, %k] : tensor<4x?xf32>
      %new = arith.addf %old, %a : f32
      memref.store %new, %t[%i] : memref<4xf32>
      memref.store %new, %s[%i, %k] : memref<4x?xf32>
    }
  }
  func.return %S : tensor<4x?xf32>
}

// -----

// Without indices the block stands alone; the extent of a result is known.

// CHECK-LABEL: func.func @one
// CHECK:         te.extern "one" () into (%{{\w+}} : tensor<3xi1>) attributes {note = 1 : i64} {

// TIR-LABEL: func.func @one(%R: memref<3xi1>) attributes {tir.parameter_access = [#low<access write>]} {
// TIR:         tir.block "one" iters() = [] {
// TIR-NEXT:      tir.for
func.func @one() -> tensor<3xi1> {
  %true = arith.constant true
  %R = te.extern "one" () into (%r : tensor<3xi1>) attributes {note = 1} {
    tir.for %i in 3 {
      memref.store %true, %r[%i] : memref<3xi1>
    }
  }
  func.return %R : tensor<3xi1>
}
