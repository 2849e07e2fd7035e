// RUN: weft-opt %s --split-input-file -p 'tir-rolling-buffer{block=B index=0}' | filecheck %s

func.func @rows(%A: memref<12x9xf32>, %C: memref<10x9xf32>) {
  %one = arith.constant 1.0 : f32
  %B = memref.alloc() : memref<12x9xf32>
  tir.for %i in 10 {
    tir.for %ax0 in 3 { tir.for %ax1 in 9 {
      tir.block "B" iters(%vi: spatial<12>, %vj: spatial<9>) = [%i + %ax0, %ax1] {
        %a = memref.load %A[%vi, %vj] : memref<12x9xf32>
        %b = arith.addf %a, %one : f32
        memref.store %b, %B[%vi, %vj] : memref<12x9xf32>
      } } }
    tir.for %j in 9 {
      tir.block "C" iters(%vi: spatial<10>, %vj: spatial<9>) = [%i, %j] {
        %i2 = affine.apply affine_map<(d0) -> (d0 + 2)>(%vi)
        %x = memref.load %B[%vi, %vj] : memref<12x9xf32>
        %y = memref.load %B[%i2, %vj] : memref<12x9xf32>
        %c = arith.addf %x, %y : f32
        memref.store %c, %C[%vi, %vj] : memref<10x9xf32>
      } }
  }
  func.return
}
// CHECK-LABEL: func.func @rows
// CHECK:       %B = memref.alloc() : memref<3x9xf32>
// CHECK-NEXT:  tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT:    tir.for %[[AX0:\w+]] in 2 {
// CHECK-NEXT:      tir.for %[[AX1:\w+]] in 9 {
// CHECK-NEXT:        tir.block "B_first" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<9>) = [%[[I]] + %[[AX0]], %[[AX1]]] where [%[[I]]] < [1] {
// CHECK:               [[ROW:%.*]] = affine.apply affine_map<(d0) -> ((d0 mod 3))> (%[[VI]])
// CHECK-NEXT:          memref.store %[[B:\w+]], %B{{\[}}[[ROW]], %[[VJ]]] : memref<3x9xf32>
// CHECK:         tir.for [[ROWS:%.*]] in 1 {
// CHECK-NEXT:      tir.for [[COLUMNS:%.*]] in 9 {
// CHECK-NEXT:        tir.block "B" iters({{.*}}) = [%[[I]] + 2, [[COLUMNS]]] {
// CHECK:         tir.block "C"
// CHECK:           memref.load %B{{.*}} : memref<3x9xf32>
// CHECK:           affine.apply affine_map<(d0) -> (((d0 + 2) mod 3))>

// -----

// Tiles that overlap in both dimensions: four parts, the rows are circular.
func.func @tiles(%A: memref<10x10xf32>, %C: memref<8x8xf32>) {
  %B = memref.alloc() : memref<10x10xf32>
  tir.for %i in 2 { tir.for %j in 2 {
    tir.for %ax0 in 6 { tir.for %ax1 in 6 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<10>) = [%i * 4 + %ax0, %j * 4 + %ax1] {
        %a = memref.load %A[%vi, %vj] : memref<10x10xf32>
        memref.store %a, %B[%vi, %vj] : memref<10x10xf32>
      } } }
    tir.for %i1 in 4 { tir.for %j1 in 4 {
      tir.block "C" iters(%vi: spatial<8>, %vj: spatial<8>) = [%i * 4 + %i1, %j * 4 + %j1] {
        %i2 = affine.apply affine_map<(d0) -> (d0 + 2)>(%vi)
        %j2 = affine.apply affine_map<(d0) -> (d0 + 2)>(%vj)
        %x = memref.load %B[%i2, %j2] : memref<10x10xf32>
        memref.store %x, %C[%vi, %vj] : memref<8x8xf32>
      } } }
  } }
  func.return
}
// CHECK-LABEL: func.func @tiles
// CHECK:       memref.alloc() : memref<6x10xf32>
// CHECK:       tir.block "B_first{{.*}}" {{.*}} where [%[[I:\w+]], %[[J:\w+]]] < [1, 1] {
// CHECK:       tir.block "B_first{{.*}}" {{.*}} where [%[[I]]] < [1] {
// CHECK:       tir.block "B_first{{.*}}" {{.*}} where [%[[J]]] < [1] {
// CHECK:       tir.block "B" iters({{.*}}) = [%[[I]] * 4 + {{.*}} + 2, %[[J]] * 4 + {{.*}} + 2] {

// -----

// A window that moves every second iteration: the new row is computed where the iteration before has not.
func.func @repeated(%A: memref<9xf32>, %C: memref<16x2xf32>) {
  %B = memref.alloc() : memref<9xf32>
  tir.for %i in 16 {
    tir.for %ax0 in 2 {
      tir.block "B" iters(%v: spatial<9>) = [%i floordiv 2 + %ax0] {
        %a = memref.load %A[%v] : memref<9xf32>
        memref.store %a, %B[%v] : memref<9xf32>
      } }
    tir.for %j in 2 {
      tir.block "C" iters(%vi: spatial<16>, %vj: spatial<2>) = [%i, %j] {
        %r = affine.apply affine_map<(d0, d1) -> (d0 floordiv 2 + d1)>(%vi, %vj)
        %x = memref.load %B[%r] : memref<9xf32>
        memref.store %x, %C[%vi, %vj] : memref<16x2xf32>
      } }
  }
  func.return
}
// CHECK-LABEL: func.func @repeated
// CHECK:       memref.alloc() : memref<2xf32>
// CHECK:       tir.block "B_first" iters({{.*}}) = [%[[I:\w+]] floordiv 2 + {{.*}}] where [%[[I]]] < [1] {
// CHECK:       tir.block "B" iters({{.*}}) = [%[[I]] floordiv 2 + 1] where [(%[[I]] + 1) floordiv 2] < [%[[I]] floordiv 2 + 1] {
