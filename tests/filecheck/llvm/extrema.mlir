// RUN: weft-opt %s -p 'low-legalize{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell"}' -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s
// RUN: weft-opt %s -p 'low-legalize{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell"}' -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=haswell}' | filecheck %s --check-prefix=ASM
// RUN: weft-opt %s -p 'low-legalize{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylake-avx512"}' -t 'llvm-ir{triple="x86_64-unknown-linux-gnu" cpu=skylake-avx512}' | filecheck %s --check-prefix=RANGE
// RUN: weft-opt %s -p 'low-legalize{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4"}' -t 'asm{triple="x86_64-unknown-linux-gnu" cpu=znver4}' | filecheck %s --check-prefix=ZEN
// RUN: weft-opt %s -p 'low-legalize{target="llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v1"}' -t 'llvm-ir{triple="aarch64-unknown-linux-gnu" cpu=neoverse-v1}' | filecheck %s --check-prefix=ARM

// On x86, vectors take both orders of maxps; against 0 one and an addition. Constants with a form of their own and
// scalars are LLVM's, and so is all of it where the CPU has the instruction. AVX-512DQ has it for maxima of numbers.
// CHECK:      %[[FIRST:.*]] = fcmp ogt <8 x float> %a, %b
// CHECK-NEXT: select <8 x i1> %[[FIRST]], <8 x float> %a, <8 x float> %b
// CHECK:      and <8 x i32>
// CHECK:      %[[UNORDERED:.*]] = fcmp uno <8 x float> %a, %b
// CHECK-NEXT: select <8 x i1> %[[UNORDERED]], <8 x float> splat (float 0x7FF8000000000000), <8 x float>
// CHECK:      or <8 x i32>
// CHECK:      fadd contract <8 x float> %{{.*}}, splat (float 0.0)
// CHECK:      call <8 x float> @llvm.maximum.v8f32(<8 x float> %a, <8 x float> splat (float {{.*}}))
// CHECK:      call float @llvm.maximum.f32(float %s, float %s)

// ASM:        vmaxps %ymm
// ASM-NEXT:   vmaxps %ymm
// ASM:        vandps
// ASM:        vminps
// ASM-NEXT:   vminps
// ASM-NEXT:   vorps

// RANGE:      %[[BOTH:.*]] = call <8 x float> @llvm.x86.avx512.mask.range.ps.256(<8 x float> %a, <8 x float> %b, i32 5,
// RANGE-NEXT: %[[UNORDERED:.*]] = fcmp uno <8 x float> %a, %b
// RANGE-NEXT: select <8 x i1> %[[UNORDERED]], <8 x float> splat (float 0x7FF8000000000000), <8 x float> %[[BOTH]]
// RANGE-NOT:  mask.range
// RANGE:      or <8 x i32>
// RANGE:      fadd contract <8 x float> %{{.*}}, splat (float 0.0)
// RANGE:      call <8 x float> @llvm.maximum.v8f32(<8 x float> %a, <8 x float> splat (float {{.*}}))

// ZEN:        vrangeps $5, %ymm
// ZEN-NOT:    vandps
// ZEN:        vminps %ymm
// ZEN-NEXT:   vminps %ymm
// ZEN:        vorps

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

// The extremum of all lanes: of integers in the order of the numbers, of which a NaN is the first.
// CHECK-LABEL: define {{.*}}@lanes
// CHECK:         %[[NAN:.*]] = fcmp uno <8 x float> %a, %a
// CHECK:         %[[BITS:.*]] = select <8 x i1> %[[NAN]], <8 x i32> splat (i32 -1), <8 x i32>
// CHECK:         %[[SIGNS:.*]] = ashr <8 x i32> %[[BITS]], splat (i32 31)
// CHECK:         %[[REST:.*]] = and <8 x i32> %[[SIGNS]], splat (i32 2147483647)
// CHECK:         %[[KEYS:.*]] = xor <8 x i32> %[[BITS]], %[[REST]]
// CHECK:         %[[KEY:.*]] = call i32 @llvm.vector.reduce.smin.v8i32(<8 x i32> %[[KEYS]])
// CHECK:         ashr i32 %[[KEY]], 31
// CHECK:         bitcast i32 %{{.*}} to float
// CHECK:         select <3 x i1> %{{.*}}, <3 x i32> splat (i32 2147483647), <3 x i32>
// CHECK:         call i32 @llvm.vector.reduce.smax.v3i32
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
  %of_three = vector.reduction <maximumf>, %b : vector<3xf32> into f32
  memref.store %of_three, %A[%c8] : memref<64xf32>
  func.return
}

// Vectors of several registers take the instruction for each; those that fill none keep the form of any x86.
// RANGE-LABEL: define {{.*}}@lengths
// RANGE:         @llvm.x86.avx512.mask.range.ps.128(<4 x float> %{{.*}}, i32 5, <4 x float> zeroinitializer, i8 -1)
// RANGE:         @llvm.vector.extract.v8f64.v16f64(<16 x double> %{{.*}}, i64 0)
// RANGE:         @llvm.x86.avx512.mask.range.pd.512(<8 x double> %{{.*}}, i32 5, <8 x double> zeroinitializer, i8 -1, i32 4)
// RANGE:         @llvm.vector.extract.v8f64.v16f64(<16 x double> %{{.*}}, i64 8)
// RANGE:         @llvm.x86.avx512.mask.range.pd.512(
// RANGE:         @llvm.vector.insert.v16f64.v8f64(
// RANGE-NOT:     mask.range
// RANGE:         and <3 x i32>
// ZEN-LABEL:   lengths:
// ZEN-COUNT-2:   vrangepd $5, %zmm
func.func @lengths(%A: memref<64xf32>, %B: memref<64xf64>) attributes {low.params = [
    #low.param<"A", memref<64xf32>, readwrite, []>, #low.param<"B", memref<64xf64>, readwrite, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %a = vector.load %A[%c0] : memref<64xf32>, vector<4xf32>
  %b = vector.load %A[%c8] : memref<64xf32>, vector<4xf32>
  %narrow = arith.maximumf %a, %b : vector<4xf32>
  vector.store %narrow, %A[%c0] : memref<64xf32>, vector<4xf32>
  %c = vector.load %B[%c0] : memref<64xf64>, vector<16xf64>
  %d = vector.load %B[%c16] : memref<64xf64>, vector<16xf64>
  %wide = arith.maximumf %c, %d : vector<16xf64>
  vector.store %wide, %B[%c0] : memref<64xf64>, vector<16xf64>
  %e = vector.load %A[%c16] : memref<64xf32>, vector<3xf32>
  %f = vector.load %A[%c8] : memref<64xf32>, vector<3xf32>
  %odd = arith.maximumf %e, %f : vector<3xf32>
  vector.store %odd, %A[%c16] : memref<64xf32>, vector<3xf32>
  func.return
}
