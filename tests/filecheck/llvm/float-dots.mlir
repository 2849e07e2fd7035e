// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=znver4}' | filecheck %s
// RUN: not weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=cascadelake}' 2>&1 | filecheck %s --check-prefix=ERROR

func.func @dots(%A: memref<64xbf16>, %C: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %group = vector.load %A[%c0] : memref<64xbf16>, vector<2xbf16>
  %b = vector.load %A[%c0] : memref<64xbf16>, vector<32xbf16>
  %c = vector.load %C[%c0] : memref<16xf32>, vector<16xf32>
  %r = low.dot %c, %group as bf16, %b as bf16 : vector<16xf32>, vector<2xbf16>, vector<32xbf16>
  vector.store %r, %C[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}
// CHECK:      %[[GROUPS:.*]] = shufflevector <2 x i16> %group, <2 x i16> poison, <32 x i32> <i32 0, i32 1, i32 0, i32 1
// CHECK-NEXT: %[[X:.*]] = bitcast <32 x i16> %[[GROUPS]] to <32 x bfloat>
// CHECK-NEXT: %[[Y:.*]] = bitcast <32 x i16> %b to <32 x bfloat>
// CHECK-NEXT: %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %c, <32 x bfloat> %[[X]], <32 x bfloat> %[[Y]])
// ERROR: low.dot: cascadelake has no instruction for 16 x 2 of bf16 and bf16; run low-lower-dots for it
