// RUN: weft-opt %s | filecheck %s
// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s | xdsl-opt | filecheck %s

func.func @both(%A: memref<?xf32>, %i: index, %p: f64, %n: f64) {
  low.prefetch %A[%i] {lanes = 16 : i64} : memref<?xf32>
  low.prefetch %A[%i] {lanes = 1 : i64, for_write} : memref<?xf32>
  %y = low.ldexp %p, %n : f64
  func.return
}
// CHECK-LABEL: @both
// CHECK-NEXT:    low.prefetch %A[%i] {lanes = 16 : i64} : memref<?xf32>
// CHECK-NEXT:    low.prefetch %A[%i] {lanes = 1 : i64, for_write} : memref<?xf32>
// CHECK-NEXT:    %[[Y:\w+]] = low.ldexp %p, %n : f64
