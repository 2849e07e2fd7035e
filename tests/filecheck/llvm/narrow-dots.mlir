// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s
// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=alderlake}' | filecheck %s --check-prefix=VNNI

func.func @dots(%A: memref<64xi8>, %C: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  %group = vector.load %A[%c0] : memref<64xi8>, vector<4xi8>
  %b = vector.load %A[%c0] : memref<64xi8>, vector<32xi8>
  %c = vector.load %C[%c0] : memref<8xi32>, vector<8xi32>
  %r = low.dot %c, %group as si8, %b as ui4 : vector<8xi32>, vector<4xi8>, vector<32xi8>
  vector.store %r, %C[%c0] : memref<8xi32>, vector<8xi32>
  func.return
}
// Pairs of products are exact in 16 bits: 2 * 15 * 128 < 2 ** 15. The second instruction adds them.
// CHECK:      %[[LOW:.*]] = and <32 x i8> %b, splat (i8 15)
// CHECK-NEXT: %[[GROUPS:.*]] = shufflevector <4 x i8> %group, <4 x i8> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 0
// CHECK-NEXT: %[[PAIRS:.*]] = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> %[[LOW]], <32 x i8> %[[GROUPS]])
// CHECK-NEXT: %[[SUMS:.*]] = call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %[[PAIRS]], <16 x i16> splat (i16 1))
// CHECK-NEXT: %r = add <8 x i32> %c, %[[SUMS]]
// VNNI:       %[[LOW:.*]] = and <32 x i8> %b, splat (i8 15)
// VNNI:       %r = call <8 x i32> @llvm.x86.avx512.vpdpbusd.256(<8 x i32> %c, <32 x i8> %[[LOW]],
