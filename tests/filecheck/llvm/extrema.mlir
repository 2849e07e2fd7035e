// RUN: weft-opt %s -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s
// RUN: weft-opt %s -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefix=ASM
// RUN: weft-opt %s -t 'llvm-ir{triple="aarch64-unknown-linux-gnu" cpu=neoverse-v1}' | filecheck %s --check-prefix=ARM

// On x86, vectors take both orders of maxps; against 0 one and an addition. Constants with a form of their own and
// scalars are LLVM's, and so is all of it where the CPU has the instruction.
// CHECK:      %first = fcmp ogt <8 x float> %a, %b
// CHECK-NEXT: %chosen = select <8 x i1> %first, <8 x float> %a, <8 x float> %b
// CHECK:      %both = and <8 x i32>
// CHECK:      %unordered = fcmp uno <8 x float> %a, %b
// CHECK:      or <8 x i32>
// CHECK:      fadd <8 x float> %{{.*}}, splat (float 0.0)
// CHECK:      call <8 x float> @llvm.maximum.v8f32(<8 x float> %a, <8 x float> splat (float {{.*}}))
// CHECK:      call float @llvm.maximum.f32(float %s, float %s)

// ASM:        vmaxps %ymm
// ASM-NEXT:   vmaxps %ymm
// ASM:        vandps
// ASM:        vminps
// ASM-NEXT:   vminps
// ASM-NEXT:   vorps

// ARM:        call <8 x float> @llvm.maximum.v8f32(<8 x float> %a, <8 x float> %b)
// ARM:        call <8 x float> @llvm.minimum.v8f32(<8 x float> %a, <8 x float> %b)
func.func @extrema(%A: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c24 = arith.constant 24 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %six = arith.constant dense<6.0> : vector<8xf32>
  %a = vector.load %A[%c0] : memref<64xf32>, vector<8xf32>
  %b = vector.load %A[%c8] : memref<64xf32>, vector<8xf32>
  %s = memref.load %A[%c24] : memref<64xf32>
  %max = arith.maximumf %a, %b : vector<8xf32>
  vector.store %max, %A[%c0] : memref<64xf32>, vector<8xf32>
  %min = arith.minimumf %a, %b : vector<8xf32>
  vector.store %min, %A[%c8] : memref<64xf32>, vector<8xf32>
  %relu = arith.maximumf %a, %zero : vector<8xf32>
  vector.store %relu, %A[%c16] : memref<64xf32>, vector<8xf32>
  %most = arith.maximumf %a, %six : vector<8xf32>
  vector.store %most, %A[%c24] : memref<64xf32>, vector<8xf32>
  %scalar = arith.maximumf %s, %s : f32
  memref.store %scalar, %A[%c24] : memref<64xf32>
  func.return
}

// The extremum of all lanes: of the halves of the vector, until one lane is left.
// CHECK-LABEL: define {{.*}}@lanes
// CHECK:         shufflevector <8 x float> %a, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
// CHECK:         fcmp olt <4 x float>
// CHECK:         fcmp olt <2 x float>
// CHECK:         %swapped = shufflevector <2 x float>
// CHECK:         extractelement <2 x float> %{{.*}}, i64 0
// CHECK:         call float @llvm.vector.reduce.fminimum.v3f32
// ARM-LABEL:   define {{.*}}@lanes
// ARM:           call float @llvm.vector.reduce.fminimum.v8f32
func.func @lanes(%A: memref<64xf32>) attributes {
    low.params = [#low.param<"A", memref<64xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = vector.load %A[%c0] : memref<64xf32>, vector<8xf32>
  %b = vector.load %A[%c8] : memref<64xf32>, vector<3xf32>
  %least = vector.reduction <minimumf>, %a : vector<8xf32> into f32
  memref.store %least, %A[%c0] : memref<64xf32>
  %of_three = vector.reduction <minimumf>, %b : vector<3xf32> into f32
  memref.store %of_three, %A[%c8] : memref<64xf32>
  func.return
}
