// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=cascadelake}' | filecheck %s
// RUN: not weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' 2>&1 | filecheck %s --check-prefix=ERROR

func.func @dots(%A: memref<64xi8>, %H: memref<64xi16>, %C: memref<16xi32>) {
  %c0 = arith.constant 0 : index
  %group = vector.load %A[%c0] : memref<64xi8>, vector<4xi8>
  %b = vector.load %A[%c0] : memref<64xi8>, vector<64xi8>
  %h = vector.load %H[%c0] : memref<64xi16>, vector<32xi16>
  %c = vector.load %C[%c0] : memref<16xi32>, vector<16xi32>
  %r = low.dot %c, %group as si8, %b as ui8 : vector<16xi32>, vector<4xi8>, vector<64xi8>
  %s = low.dot %r, %h as si16, %h as si16 : vector<16xi32>, vector<32xi16>, vector<32xi16>
  vector.store %s, %C[%c0] : memref<16xi32>, vector<16xi32>
  func.return
}
// The unsigned operand comes first, whichever it is.
// CHECK:      %[[GROUPS:.*]] = shufflevector <4 x i8> %group, <4 x i8> poison, <64 x i32> <i32 0, i32 1, i32 2, i32 3, i32 0
// CHECK-NEXT: %r = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %c, <64 x i8> %b, <64 x i8> %[[GROUPS]])
// CHECK-NEXT: %[[P:.*]] = call <16 x i32> @llvm.x86.avx512.pmaddw.d.512(<32 x i16> %h, <32 x i16> %h)
// CHECK-NEXT: %s = add <16 x i32> %r, %[[P]]
// ERROR: low.dot: haswell has no instruction for 16 x 4 of si8 and ui8; run low-lower-dots for it
