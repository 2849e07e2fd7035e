// RUN: weft-opt %s --split-input-file -p low-expand-math | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'low-expand-math{target="llvm -mcpu=haswell"}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'low-expand-math{target="llvm -mcpu=cascadelake"}' | filecheck %s --check-prefix=AVX512
// RUN: weft-opt %s --split-input-file -p 'low-expand-math{target=metal}' | filecheck %s --check-prefix=METAL
// RUN: weft-opt %s --split-input-file -p 'low-expand-math{target=cuda}' | filecheck %s --check-prefix=CUDA

// Clamp, n + rounder and n, r in two steps, the polynomial, two factors 2^(n/2). Constants stand at the start.
// CHECK-LABEL: @exp
// CHECK-DAG:     %[[LOW:.*]] = arith.constant dense<-1.050000e+02> : vector<8xf32>
// CHECK-DAG:     %[[HIGH:.*]] = arith.constant dense<8.900000e+01> : vector<8xf32>
// CHECK:         %[[A:.*]] = vector.load
// CHECK-NEXT:    %[[BELOW:.*]] = low.cmpf ogt, %[[LOW]], %[[A]] : vector<8xf32>
// CHECK-NEXT:    %[[ATLEAST:.*]] = low.select %[[BELOW]], %[[LOW]], %[[A]] : vector<8xf32>
// CHECK-NEXT:    %[[ABOVE:.*]] = low.cmpf olt, %[[HIGH]], %[[ATLEAST]] : vector<8xf32>
// CHECK-NEXT:    %[[X:.*]] = low.select %[[ABOVE]], %[[HIGH]], %[[ATLEAST]] : vector<8xf32>
// CHECK-NEXT:    %[[LOG2:.*]] = arith.mulf %[[X]], %{{.*}} {low.ordered} : vector<8xf32>
// CHECK-NEXT:    %[[SHIFTED:.*]] = arith.addf %[[LOG2]], %[[ROUNDER:.*]] {low.ordered} : vector<8xf32>
// CHECK-NEXT:    %[[N:.*]] = arith.subf %[[SHIFTED]], %[[ROUNDER]] {low.ordered} : vector<8xf32>
// CHECK:         %[[BITS:.*]] = vector.bitcast %[[SHIFTED]] : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    %[[HALF:.*]] = arith.shrui %[[BITS]]
// CHECK:         %[[OTHER:.*]] = arith.subi %[[BITS]], %[[HALF]]
// CHECK:         %e = arith.mulf %{{.*}}, %{{.*}} {low.ordered} : vector<8xf32>
// CHECK-NEXT:    vector.store %e
func.func @exp(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
  %e = math.exp %a : vector<8xf32>
  vector.store %e, %A[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}

// -----

// 16-bit floats are computed in f32, and rounded once at the end.
// CHECK-LABEL: @small
// CHECK:         %[[A:.*]] = vector.load
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[A]] : vector<4xf16> to vector<4xf32>
// CHECK:         %e = arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
func.func @small(%A: memref<8xf16>) attributes {
    low.params = [#low.param<"A", memref<8xf16>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<8xf16>, vector<4xf16>
  %e = math.tanh %a : vector<4xf16>
  vector.store %e, %A[%c0] : memref<8xf16>, vector<4xf16>
  func.return
}

// -----

// A logistic function whose uses round to 16 bits is one quotient of a scale.
// CHECK-LABEL: @narrowed
// CHECK:         %[[S:.*]] = arith.constant 2.32830644e-10 : f32
// CHECK:         %q = arith.divf %[[S]], %{{.*}} : f32
// CHECK-NEXT:    arith.truncf %q : f32 to bf16
func.func @narrowed(%A: memref<8xf32>, %B: memref<8xbf16>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, read, []>, #low.param<"B", memref<8xbf16>, write, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %a = memref.load %A[%c0] : memref<8xf32>
  %t = math.exp %a : f32
  %d = arith.addf %one, %t : f32
  %q = arith.divf %t, %d : f32
  %n = arith.truncf %q : f32 to bf16
  memref.store %n, %B[%c0] : memref<8xbf16>
  func.return
}

// -----

// One that is used in f32, too, has all its digits: the quotient is corrected.
// CHECK-LABEL: @narrowed_and_wide
// CHECK:         arith.divf
// CHECK:         arith.subf
// CHECK:         %q = arith.mulf %{{.*}}, %{{.*}} {low.ordered} : f32
// CHECK-NEXT:    arith.truncf %q : f32 to bf16
func.func @narrowed_and_wide(%A: memref<8xf32>, %B: memref<8xbf16>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>, #low.param<"B", memref<8xbf16>, write, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %a = memref.load %A[%c0] : memref<8xf32>
  %t = math.exp %a : f32
  %d = arith.addf %one, %t : f32
  %q = arith.divf %t, %d : f32
  %n = arith.truncf %q : f32 to bf16
  memref.store %n, %B[%c0] : memref<8xbf16>
  memref.store %q, %A[%c0] : memref<8xf32>
  func.return
}

// -----

// The bits of a number are as wide as it is.
// CHECK-LABEL: @double
// CHECK:         vector.bitcast %{{.*}} : vector<2xf64> to vector<2xi64>
// CHECK-NOT:     math.log
func.func @double(%A: memref<8xf64>) attributes {
    low.params = [#low.param<"A", memref<8xf64>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<8xf64>, vector<2xf64>
  %e = math.log %a : vector<2xf64>
  vector.store %e, %A[%c0] : memref<8xf64>, vector<2xf64>
  func.return
}

// -----

// Scalars have the formulas of vectors.
// CHECK-LABEL: @scalar
// CHECK:         arith.bitcast %{{.*}} : f32 to i32
// CHECK:         %e = arith.mulf %{{.*}}, %{{.*}} {low.ordered} : f32
func.func @scalar(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<8xf32>
  %e = math.exp %a : f32
  memref.store %e, %A[%c0] : memref<8xf32>
  func.return
}

// -----

// pow of f32 is computed in f64. Powers that LLVM has shorter forms for are left to it, and so is pow of f64.
// CHECK-LABEL: @power
// CHECK:         arith.extf %{{.*}} : vector<4xf32> to vector<4xf64>
// CHECK:         %p = arith.truncf %{{.*}} : vector<4xf64> to vector<4xf32>
// CHECK-NEXT:    %square = math.powf %p, %{{.*}} : vector<4xf32>
// CHECK:         math.powf %{{.*}} : f64
func.func @power(%A: memref<8xf32>, %x: f64) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>, #low.param<"x", f64, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %two = arith.constant dense<2.0> : vector<4xf32>
  %a = vector.load %A[%c0] : memref<8xf32>, vector<4xf32>
  %b = vector.load %A[%c4] : memref<8xf32>, vector<4xf32>
  %p = math.powf %a, %b : vector<4xf32>
  %square = math.powf %p, %two : vector<4xf32>
  vector.store %square, %A[%c0] : memref<8xf32>, vector<4xf32>
  %d = math.powf %x, %x : f64
  %s = arith.truncf %d : f64 to f32
  memref.store %s, %A[%c0] : memref<8xf32>
  func.return
}

// -----

// Other types, functions without a formula, and functions that are not at low level stay.
// CHECK-LABEL: @others
// CHECK:         math.exp %{{.*}} : f80
// CHECK:         math.exp %{{.*}} : vector<2x2xf32>
// CHECK:         math.atan %{{.*}} : vector<2xf32>
// CHECK-LABEL: @tensors
// CHECK:         math.exp %{{.*}} : f32
func.func @others(%a: f80, %b: vector<2x2xf32>, %c: vector<2xf32>) attributes {low.params = [#low.param<"a", f80, read, []>, #low.param<"b", vector<2x2xf32>, read, []>, #low.param<"c", vector<2xf32>, read, []>], low.symbols = []} {
  %d = math.exp %a : f80
  %e = math.exp %b : vector<2x2xf32>
  %f = math.atan %c : vector<2xf32>
  func.return
}
func.func @tensors(%a: f32) {
  %e = math.exp %a : f32
  func.return
}

// -----

// Whole registers of AVX-512 have an instruction for 2^n.
// CHECK-LABEL:  @registers
// CHECK-NOT:      low.ldexp
// AVX512-LABEL: @exp
// AVX512-NOT:     low.ldexp
// AVX512-LABEL: @registers
// AVX512:         %[[SHIFTED:.*]] = arith.addf {{.*}} : vector<16xf32>
// AVX512-NEXT:    %[[N:.*]] = arith.subf %[[SHIFTED]], {{.*}} : vector<16xf32>
// AVX512-NOT:     arith.shrui
// AVX512:         %e = low.ldexp {{.*}}, %[[N]] : vector<16xf32>
func.func @registers(%A: memref<16xf32>) attributes {
    low.params = [#low.param<"A", memref<16xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<16xf32>, vector<16xf32>
  %e = math.exp %a : vector<16xf32>
  vector.store %e, %A[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}

// -----

// In kernels just what the language lacks becomes code; functions of the host have no formulas for the device.
// METAL-LABEL: @exp
// METAL:         math.exp
// METAL-LABEL: @kernel
// METAL-NOT:     math.erf
// METAL:         %e = math.copysign
// METAL-NEXT:    %t = math.exp %e
// CUDA-LABEL:  @kernel
// CUDA:          %e = math.erf
func.func @kernel(%A: memref<4xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf32>
  %e = math.erf %a : f32
  %t = math.exp %e : f32
  memref.store %t, %A[%c0] : memref<4xf32>
  func.return
}

// -----

// Products of f16 are exact in f32; what the hardware fuses stays.
// CHECK-LABEL: @multiply_add
// CHECK:         %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} {low.ordered} : vector<8xf32>
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[P]], %{{.*}} {low.ordered} : vector<8xf32>
// CHECK:         vector.bitcast %[[S]] : vector<8xf32> to vector<8xi32>
// CHECK:         %r = arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
// CHECK:         math.fma %{{.*}} : f32
func.func @multiply_add(%A: memref<8xf16>, %B: memref<1xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf16>, readwrite, []>, #low.param<"B", memref<1xf32>, readwrite, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<8xf16>, vector<8xf16>
  %r = vector.fma %a, %a, %a : vector<8xf16>
  vector.store %r, %A[%c0] : memref<8xf16>, vector<8xf16>
  %b = memref.load %B[%c0] : memref<1xf32>
  %s = math.fma %b, %b, %b : f32
  memref.store %s, %B[%c0] : memref<1xf32>
  func.return
}

// -----

// Quarters of a turn, both polynomials, of which the parity chooses one. Finite numbers beyond the reduction are called
// for, where a lane has one.
// CHECK-LABEL: @sine
// CHECK:         %[[SIZE:.*]] = math.absf %[[X:\w+]] : vector<8xf32>
// CHECK:         %[[SHIFTED:.*]] = arith.addf %{{.*}}, %[[ROUNDER:.*]] {low.ordered} : vector<8xf32>
// CHECK-NEXT:    %[[Q:.*]] = arith.subf %[[SHIFTED]], %[[ROUNDER]] {low.ordered} : vector<8xf32>
// CHECK:         %[[ODD:.*]] = low.cmpi ne, %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK-NEXT:    low.select %[[ODD]], %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK:         %[[BEYOND:.*]] = low.cmpf ogt, %[[SIZE]], %{{.*}} : vector<8xf32>
// CHECK-NEXT:    %[[FINITE:.*]] = low.cmpf olt, %[[SIZE]], %{{.*}} : vector<8xf32>
// CHECK-NEXT:    %[[LARGE:.*]] = arith.andi %[[BEYOND]], %[[FINITE]] : vector<8xi1>
// CHECK:         %[[ANY:.*]] = vector.reduction <or>, %[[LARGE]] : vector<8xi1> into i1
// CHECK-NEXT:    scf.if %[[ANY]] -> (vector<8xf32>) {
// CHECK-NEXT:      %[[CALLED:.*]] = math.sin %[[X]] : vector<8xf32>
// CHECK-NEXT:      %[[CHOSEN:.*]] = low.select %[[LARGE]], %[[CALLED]], %[[NEAR:.*]] : vector<8xf32>
// CHECK-NEXT:      scf.yield %[[CHOSEN]] : vector<8xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[NEAR]] : vector<8xf32>
// CUDA-LABEL:  @sine
// CUDA:          math.sin
func.func @sine(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
  %e = math.sin %a : vector<8xf32>
  vector.store %e, %A[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}

// -----

// 1 + erf(x), in either order, is a quotient of polynomials; an erf with another use has its own formula.
// CHECK-LABEL: @one_plus
// CHECK:         %[[ABOVE:.*]] = arith.mulf
// CHECK:         %[[QUOTIENT:.*]] = arith.divf
// CHECK-NEXT:    low.cmpf ogt, %{{.*}}, %[[QUOTIENT]] : vector<8xf32>
// CHECK-NEXT:    low.select
// CHECK-NEXT:    low.cmpf olt
// CHECK-NEXT:    %[[ERF:.*]] = low.select
// CHECK-NEXT:    arith.addf %[[ERF]], %{{.*}} : vector<8xf32>
// CHECK-NEXT:    vector.store
// CHECK-NOT:     arith.divf
// CHECK:         low.select
// CHECK-NOT:     arith.divf
// METAL-LABEL: @one_plus
func.func @one_plus(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : vector<8xf32>
  %a = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
  %e = math.erf %a : vector<8xf32>
  %s = arith.addf %one, %e : vector<8xf32>
  vector.store %s, %A[%c0] : memref<8xf32>, vector<8xf32>
  %f = math.erf %s : vector<8xf32>
  %t = arith.addf %f, %one : vector<8xf32>
  %u = arith.mulf %f, %t : vector<8xf32>
  vector.store %u, %A[%c0] : memref<8xf32>, vector<8xf32>
  func.return
}
