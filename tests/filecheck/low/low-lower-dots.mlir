// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=cascadelake"}' | filecheck %s --check-prefixes=CHECK,VNNI
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=neoverse-v1"}' | filecheck %s --check-prefixes=CHECK,NEON
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=haswell"}' | filecheck %s --check-prefixes=CHECK,AVX2
// RUN: weft-opt %s -p 'low-lower-dots{target=c}' | filecheck %s --check-prefixes=CHECK,PLAIN

// An unsigned group and signed lanes: an instruction, several, or products and sums.
func.func @tile(%A: memref<?xi8>, %B: memref<?xi8>, %C: memref<?xi32>, %i: index, %j: index, %k: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %b = low.access_ptr %B[%j] read : memref<?xi8>
  %c = low.access_ptr %C[%k] readwrite : memref<?xi32>
  low.tile_dot %a as ui8, %b as si8 onto %c {lanes = 16 : i64, steps = 4 : i64}
  func.return
}
// CHECK-LABEL: @tile
// CHECK-NEXT:    %[[A:.*]] = vector.load %A[%i] : memref<?xi8>, vector<4xi8>
// CHECK-NEXT:    %[[B:.*]] = vector.load %B[%j] : memref<?xi8>, vector<64xi8>
// CHECK-NEXT:    %[[C:.*]] = vector.load %C[%k] : memref<?xi32>, vector<16xi32>
// VNNI-NEXT:     %[[R:.*]] = low.dot %[[C]], %[[A]] as ui8, %[[B]] as si8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
// NEON-NEXT:     %[[C0:.*]] = vector.shuffle %[[C]], %[[C]] [0, 1, 2, 3]
// NEON-NEXT:     %[[B0:.*]] = vector.shuffle %[[B]], %[[B]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
// NEON-NEXT:     low.dot %[[C0]], %[[A]] as ui8, %[[B0]] as si8 : vector<4xi32>, vector<4xi8>, vector<16xi8>
// NEON-COUNT-3:  low.dot
// NEON-NOT:      low.dot
// AVX2:          vector.extract %[[A]][0]
// AVX2-NEXT:     arith.extui
// AVX2-NEXT:     vector.broadcast {{.*}} : i32 to vector<16xi32>
// AVX2-NEXT:     vector.shuffle %[[B]], %[[B]] [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60]
// AVX2-NEXT:     low.extsi
// AVX2-NEXT:     arith.muli
// AVX2-NEXT:     arith.addi %[[C]]
// AVX2-NOT:      low.dot
// PLAIN-NOT:         low.dot
// CHECK:         vector.store %{{.*}}, %C[%k] : memref<?xi32>, vector<16xi32>
// CHECK-NEXT:    func.return

// Both signed: half of the range is added to the one, and 128 times the other taken off.
func.func @signed(%c: vector<16xi32>, %a: vector<4xi8>, %b: vector<64xi8>) {
  %r = low.dot %c, %a as si8, %b as si8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
  func.return
}
// CHECK-LABEL: @signed
// VNNI-NEXT:     %[[HALF:.*]] = arith.constant dense<-128> : vector<4xi8>
// VNNI-NEXT:     %[[FLIPPED:.*]] = arith.xori %a, %[[HALF]] : vector<4xi8>
// VNNI-NEXT:     %[[SUM:.*]] = low.dot %c, %[[FLIPPED]] as ui8, %b as si8
// VNNI-NEXT:     %[[ZERO:.*]] = arith.constant dense<0> : vector<16xi32>
// VNNI-NEXT:     %[[HALVES:.*]] = arith.constant dense<-128> : vector<4xi8>
// VNNI-NEXT:     %[[MOVED:.*]] = low.dot %[[ZERO]], %[[HALVES]] as ui8, %b as si8
// VNNI-NEXT:     arith.subi %[[SUM]], %[[MOVED]] : vector<16xi32>
// NEON-COUNT-4:  low.dot {{.*}} as si8, {{.*}} as si8 : vector<4xi32>, vector<4xi8>, vector<16xi8>
// AVX2-NOT:      low.dot
// CHECK:         func.return

// Halves: x86 has them from the start, but for no unsigned ones.
func.func @halves(%c: vector<8xi32>, %a: vector<16xi16>, %b: vector<16xi16>) {
  %r = low.dot %c, %a as si16, %b as si16 : vector<8xi32>, vector<16xi16>, vector<16xi16>
  %s = low.dot %r, %a as ui16, %b as si16 : vector<8xi32>, vector<16xi16>, vector<16xi16>
  func.return
}
// CHECK-LABEL: @halves
// VNNI-NEXT:     low.dot %c, %a as si16, %b as si16 : vector<8xi32>, vector<16xi16>, vector<16xi16>
// AVX2-NEXT:     low.dot %c, %a as si16, %b as si16 : vector<8xi32>, vector<16xi16>, vector<16xi16>
// CHECK-NOT:     low.dot
// CHECK:         func.return

// Rows by turns, in one shuffle.
func.func @interleave(%X: memref<?xi8>, %Y: memref<?xi8>, %i: index, %n: index, %j: index) {
  %x = low.access_ptr %X[%i] read : memref<?xi8>
  %y = low.access_ptr %Y[%j] write : memref<?xi8>
  low.tile_interleave %x, %n to %y {lanes = 4 : i64, rows = 4 : i64}
  func.return
}
// CHECK-LABEL: @interleave
// CHECK-COUNT-4: vector.load %X[{{.*}}] : memref<?xi8>, vector<4xi8>
// CHECK-NEXT:    %[[TOP:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT:    %[[END:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-NEXT:    %[[ALL:.*]] = vector.shuffle %[[TOP]], %[[END]] [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]
// CHECK-NEXT:    vector.store %[[ALL]], %Y[%j] : memref<?xi8>, vector<16xi8>

// One pointer as both operands goes once.
func.func @square(%A: memref<?xi8>, %C: memref<?xi32>, %i: index) {
  %a = low.access_ptr %A[%i] read : memref<?xi8>
  %c = low.access_ptr %C[%i] readwrite : memref<?xi32>
  low.tile_dot %a as si8, %a as si8 onto %c {lanes = 1 : i64, steps = 4 : i64}
  func.return
}
// CHECK-LABEL: @square
// CHECK-NOT:     low.access_ptr
// CHECK:         func.return
