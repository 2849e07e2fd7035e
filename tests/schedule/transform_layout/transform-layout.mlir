// RUN: weft-opt %s --split-input-file -p 'tir-transform-layout{block=B buffer=B index_map="lambda i, j: (j // 16, i, j % 16)"}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'tir-transform-layout{block=B buffer=B index_map="lambda i, j: (i, j // 5, j % 5)" pad_value=2.5}' | filecheck %s --check-prefix=PAD

// Packed: the consumer's tiles read rows of the packed buffer.
func.func @packed(%A: memref<6x32xf32>, %C: memref<6x32xf32>) {
  %B = memref.alloc() : memref<6x32xf32>
  tir.for %i in 6 { tir.for %j in 32 {
    tir.block "B" iters(%vi: spatial<6>, %vj: spatial<32>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<6x32xf32>
      memref.store %a, %B[%vi, %vj] : memref<6x32xf32>
    } } }
  tir.for %jo in 2 { tir.for %i in 6 { tir.for %ji in 16 {
    tir.block "C" iters(%vo: spatial<2>, %vi: spatial<6>, %vj: spatial<16>) = [%jo, %i, %ji] {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 16 + d1)>(%vo, %vj)
      %b = memref.load %B[%vi, %x] : memref<6x32xf32>
      memref.store %b, %C[%vi, %x] : memref<6x32xf32>
    } } } }
  func.return
}
// CHECK-LABEL: @packed
// CHECK:         %B = memref.alloc() : memref<2x6x16xf32>
// CHECK:         tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ:\w+]]: spatial<32>) = [%[[I:\w+]], %[[J:\w+]]] {
// CHECK-NEXT:      memref.load %A[%[[VI]], %[[VJ]]]
// CHECK-NEXT:      %[[O:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 16))> (%[[VJ]])
// CHECK-NEXT:      %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 mod 16))> (%[[VJ]])
// CHECK-NEXT:      memref.store {{.*}}, %B[%[[O]], %[[VI]], %[[I]]] : memref<2x6x16xf32>
// CHECK:         tir.block "C"
// CHECK:           memref.load %B[%[[VO:\w+]], %[[VI]], %[[VJ]]] : memref<2x6x16xf32>

// Its producer runs over the new buffer, and fills the rest.
// PAD-LABEL: @packed
// PAD:         %B = memref.alloc() : memref<6x7x5xf32>
// PAD-NEXT:    tir.for %[[AX0:\w+]] in 6 {
// PAD-NEXT:      tir.for %[[AX1:\w+]] in 7 {
// PAD-NEXT:        tir.for %[[AX2:\w+]] in 5 {
// PAD-NEXT:          tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ_O:\w+]]: spatial<7>, %[[VJ_I:\w+]]: spatial<5>) = [%[[AX0]], %[[AX1]], %[[AX2]]] {
// PAD-NEXT:            %[[VJ:\w+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 5) + d1))> (%[[VJ_O]], %[[VJ_I]])
// PAD-NEXT:            %[[LAST:.*]] = arith.constant 31 : index
// PAD-NEXT:            %[[IN:.*]] = arith.cmpi sle, %[[VJ]], %[[LAST]] : index
// PAD-NEXT:            %[[V:.*]] = scf.if %[[IN]] -> (f32) {
// PAD-NEXT:              %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<6x32xf32>
// PAD-NEXT:              scf.yield %[[A]] : f32
// PAD-NEXT:            } else {
// PAD-NEXT:              %[[P:.*]] = arith.constant 2.500000e+00 : f32
// PAD-NEXT:              scf.yield %[[P]] : f32
// PAD-NEXT:            }
// PAD-NEXT:            memref.store %[[V]], %B[%[[VI]], %[[VJ_O]], %[[VJ_I]]] : memref<6x7x5xf32>

// -----

// A reduction: a block of its own writes the rest. What is stated about regions follows.
func.func @reduction(%A: memref<6x32x8xf32>, %C: memref<6x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<6x32xf32>
  tir.for %i in 6 { tir.for %j in 32 { tir.for %k in 8 {
    tir.block "B" iters(%vi: spatial<6>, %vj: spatial<32>, %vk: reduce<8>) = [%i, %j, %k] {
      tir.writes %B[%vi, %vj] : memref<6x32xf32>
      tir.init { memref.store %zero, %B[%vi, %vj] : memref<6x32xf32> }
      %a = memref.load %A[%vi, %vj, %vk] : memref<6x32x8xf32>
      %b = memref.load %B[%vi, %vj] : memref<6x32xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %B[%vi, %vj] : memref<6x32xf32>
    } } } }
  tir.for %i in 6 { tir.for %j in 32 {
    tir.block "C" iters(%vi: spatial<6>, %vj: spatial<32>) = [%i, %j] {
      %b = memref.load %B[%vi, %vj] : memref<6x32xf32>
      memref.store %b, %C[%vi, %vj] : memref<6x32xf32>
    } } }
  func.return
}
// CHECK-LABEL: @reduction
// CHECK:         %B = memref.alloc() : memref<2x6x16xf32>
// CHECK-NOT:     "B_pad"
// CHECK:         tir.writes %B[%[[VJ:\w+]] floordiv 16, %[[VI:\w+]], %[[VJ]] mod 16] : memref<2x6x16xf32>

// PAD-LABEL: @reduction
// PAD:         tir.for %[[AX0:\w+]] in 6 {
// PAD-NEXT:      tir.for %[[AX1:\w+]] in 1 {
// PAD-NEXT:        tir.for %[[AX2:\w+]] in 3 {
// PAD-NEXT:          tir.block "B_pad" iters(%[[V0:\w+]]: spatial<6>, %[[V1:\w+]]: spatial<1>, %[[V2:\w+]]: spatial<3>) = [%[[AX0]], %[[AX1]], %[[AX2]]] {
// PAD-NEXT:            %[[O:.*]] = affine.apply affine_map<(d0) -> ((d0 + 6))> (%[[V1]])
// PAD-NEXT:            %[[I:.*]] = affine.apply affine_map<(d0) -> ((d0 + 2))> (%[[V2]])
// PAD-NEXT:            %[[P:.*]] = arith.constant 2.500000e+00 : f32
// PAD-NEXT:            memref.store %[[P]], %B[%[[V0]], %[[O]], %[[I]]] : memref<6x7x5xf32>
// PAD:         tir.for %[[I:\w+]] in 6 {
// PAD:           memref.store %[[ZERO:\w+]], %B[%[[VI:\w+]], %{{.*}}, %{{.*}}] : memref<6x7x5xf32>

// -----

// A parameter: the signature changes. Extents at run time that stay whole move along.
func.func @parameter(%B: memref<?x15xf32>, %C: memref<?x15xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %B, %c0 : memref<?x15xf32>
  tir.assume_shape %C[%n] : memref<?x15xf32>
  tir.for %i in %n { tir.for %j in 15 {
    tir.block "B" iters(%vi: spatial<%n>, %vj: spatial<15>) = [%i, %j] {
      %a = memref.load %B[%vi, %vj] : memref<?x15xf32>
      memref.store %a, %C[%vi, %vj] : memref<?x15xf32>
    } } }
  func.return
}
// CHECK-LABEL: @parameter(%B: memref<1x?x15xf32>, %C: memref<?x15xf32>)
// CHECK:         %[[D:.*]] = arith.constant 1 : index
// CHECK-NEXT:    %[[N:\w+]] = memref.dim %B, %[[D]] : memref<1x?x15xf32>
// CHECK:         memref.load %B[%{{.*}}, %[[VI:\w+]], %[[VJ:\w+]]] : memref<1x?x15xf32>

// PAD-LABEL: @parameter(%B: memref<?x3x5xf32>, %C: memref<?x15xf32>)
