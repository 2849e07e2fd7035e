// RUN: weft-opt %s | filecheck %s
// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s | xdsl-opt | filecheck %s

func.func @values(%c: vector<16xi32>, %group: vector<4xi8>, %a: vector<64xi8>, %b: vector<64xi8>, %h: vector<32xi16>) {
  %r = low.dot %c, %group as ui8, %b as si8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
  %s = low.dot %r, %a as si8, %b as si8 : vector<16xi32>, vector<64xi8>, vector<64xi8>
  %t = low.dot %s, %h as si16, %h as ui16 : vector<16xi32>, vector<32xi16>, vector<32xi16>
  func.return
}
// CHECK-LABEL: @values
// CHECK-NEXT:    %[[R:\w+]] = low.dot %c, %group as ui8, %b as si8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
// CHECK-NEXT:    %[[S:\w+]] = low.dot %[[R]], %a as si8, %b as si8 : vector<16xi32>, vector<64xi8>, vector<64xi8>
// CHECK-NEXT:    %[[T:\w+]] = low.dot %[[S]], %h as si16, %h as ui16 : vector<16xi32>, vector<32xi16>, vector<32xi16>

func.func @memory(%A: memref<4xi8>, %B: memref<16x4xi8>, %C: memref<16xi32>, %i: index) {
  %a = low.access_ptr %A[%i] sizes [4] read : memref<4xi8>
  %b = low.access_ptr %B[%i, %i] sizes [16, 4] read : memref<16x4xi8>
  %c = low.access_ptr %C[%i] sizes [16] readwrite : memref<16xi32>
  low.tile_dot %a as ui8, %b as si8 onto %c {lanes = 16 : i64, steps = 4 : i64}
  %y = low.access_ptr %B[%i, %i] sizes [4, 1] write : memref<16x4xi8>
  low.tile_interleave %a, %i to %y {lanes = 1 : i64, rows = 4 : i64}
  func.return
}
// CHECK-LABEL: @memory
// CHECK:         low.tile_dot %a as ui8, %b as si8 onto %c {lanes = 16 : i64, steps = 4 : i64}
// CHECK:         low.tile_interleave %a, %i to %[[Y:\w+]] {lanes = 1 : i64, rows = 4 : i64}
