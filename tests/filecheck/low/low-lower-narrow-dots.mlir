// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=haswell"}' | filecheck %s --check-prefixes=CHECK,AVX2
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=cascadelake"}' | filecheck %s --check-prefixes=CHECK,VNNI
// RUN: weft-opt %s -p 'low-lower-dots{target="llvm -mcpu=neoverse-n1"}' | filecheck %s --check-prefixes=CHECK,NEON
// RUN: weft-opt %s -p 'low-lower-dots{target=c}' | filecheck %s --check-prefixes=CHECK,PLAIN

// Low bits of bytes: an instruction with fewer exact products suffices, or one that reads them as signed bytes.
func.func @low_bits(%c: vector<16xi32>, %a: vector<4xi8>, %b: vector<64xi8>) {
  %r = low.dot %c, %a as si8, %b as ui4 : vector<16xi32>, vector<4xi8>, vector<64xi8>
  func.return
}
// CHECK-LABEL:  @low_bits
// AVX2-COUNT-2: low.dot {{.*}}, %a as si8, {{.*}} as ui4 : vector<8xi32>, vector<4xi8>, vector<32xi8>
// VNNI-NEXT:    low.dot %c, %a as si8, %b as ui4 : vector<16xi32>, vector<4xi8>, vector<64xi8>
// NEON-COUNT-4: low.dot {{.*}}, %a as si8, {{.*}} as ui4 : vector<4xi32>, vector<4xi8>, vector<16xi8>
// PLAIN-NEXT:   %[[MASK:.*]] = arith.constant dense<15> : vector<64xi8>
// PLAIN-NEXT:   %[[LOW:.*]] = arith.andi %b, %[[MASK]] : vector<64xi8>
// PLAIN:        vector.shuffle %[[LOW]], %[[LOW]] [0, 4, 8
// PLAIN-NEXT:   low.extui
// CHECK-NOT:    low.dot
// CHECK:        func.return

// Seven bits are read as signed bytes by `vpdpbusd`; without it, they are masked for products and sums.
func.func @both_unsigned(%c: vector<8xi32>, %a: vector<4xi8>, %b: vector<32xi8>) {
  %r = low.dot %c, %a as ui7, %b as ui8 : vector<8xi32>, vector<4xi8>, vector<32xi8>
  func.return
}
// CHECK-LABEL:  @both_unsigned
// AVX2-NEXT:    arith.constant dense<127> : vector<4xi8>
// AVX2-NEXT:    arith.andi %a
// AVX2-NOT:     low.dot
// VNNI-NEXT:    low.dot %c, %a as ui7, %b as ui8 : vector<8xi32>, vector<4xi8>, vector<32xi8>
// CHECK:        func.return
