// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'low-legalize{target=c}' | filecheck %s

// 16-bit floats are computed as f32, constants are widened at once, and every operation rounds.
// CHECK-LABEL: @small
// CHECK:         %[[A:.*]] = memref.load %A
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-NEXT:    %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT:    %[[P:.*]] = arith.mulf %[[WIDE]], %[[TWO]] : f32
// CHECK-NEXT:    %[[P16:.*]] = arith.truncf %[[P]] : f32 to f16
// CHECK-NEXT:    %[[AGAIN:.*]] = arith.extf %[[P16]] : f16 to f32
// CHECK-NEXT:    %[[E:.*]] = math.exp %[[AGAIN]] : f32
// CHECK-NEXT:    %[[E16:.*]] = arith.truncf %[[E]] : f32 to f16
// CHECK-NEXT:    memref.store %[[E16]]
func.func @small(%A: memref<4xf16>) attributes {
    low.params = [#low.param<"A", memref<4xf16>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f16
  %a = memref.load %A[%c0] : memref<4xf16>
  %p = arith.mulf %a, %two : f16
  %e = math.exp %p : f16
  memref.store %e, %A[%c0] : memref<4xf16>
  func.return
}

// -----

// Integers become bf16 through f64, which is rounded once; lanes keep their number.
// CHECK-LABEL: @integers
// CHECK:         low.sitofp %{{.*}} : vector<4xi32> to vector<4xf64>
// CHECK-NEXT:    arith.truncf %{{.*}} : vector<4xf64> to vector<4xbf16>
func.func @integers(%A: memref<4xi32>, %B: memref<4xbf16>) attributes {
    low.params = [#low.param<"A", memref<4xi32>, read, []>, #low.param<"B", memref<4xbf16>, write, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = vector.load %A[%c0] : memref<4xi32>, vector<4xi32>
  %b = low.sitofp %a : vector<4xi32> to vector<4xbf16>
  vector.store %b, %B[%c0] : memref<4xbf16>, vector<4xbf16>
  func.return
}

// -----

// A fused multiply-add is rounded once: the sum is rounded to odd in a format that holds the product.
// CHECK-LABEL: @multiply_add
// CHECK:         %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} {low.ordered} : f64
// CHECK-NEXT:    %[[S:.*]] = arith.addf %[[P]], %{{.*}} {low.ordered} : f64
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[S]] : f64 to i64
// CHECK-NEXT:    %[[ODD:.*]] = arith.ori %[[BITS]], %{{.*}} : i64
// CHECK:         arith.truncf %{{.*}} : f64 to bf16
func.func @multiply_add(%A: memref<4xbf16>) attributes {
    low.params = [#low.param<"A", memref<4xbf16>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xbf16>
  %r = math.fma %a, %a, %a : bf16
  memref.store %r, %A[%c0] : memref<4xbf16>
  func.return
}

// -----

// The lanes of a warp exchange values of 32 bits.
// CHECK-LABEL: @exchange
// CHECK:         %[[H:.*]] = arith.extf %h : f16 to f32
// CHECK-NEXT:    %[[M:.*]] = low.shuffle down %[[H]], %c16 width 32 : f32
// CHECK-NEXT:    arith.truncf %[[M]] : f32 to f16
// CHECK:         %[[I:.*]] = arith.extsi %i : i8 to i32
// CHECK-NEXT:    %[[N:.*]] = low.shuffle xor %[[I]], %c16 width 32 : i32
// CHECK-NEXT:    arith.trunci %[[N]] : i32 to i8
func.func @exchange(%H: memref<32xf16>, %I: memref<32xi8>) attributes {
    low.kernel = #low.kernel<[32, 1, 1], source = "exchange">,
    low.arg_access = [#low<access readwrite>, #low<access readwrite>]} {
  %c16 = arith.constant 16 : index
  %t = low.thread_id "threadIdx.x" extent 32 : index
  %h = memref.load %H[%t] : memref<32xf16>
  %g = low.shuffle down %h, %c16 width 32 : f16
  memref.store %g, %H[%t] : memref<32xf16>
  %i = memref.load %I[%t] : memref<32xi8>
  %j = low.shuffle xor %i, %c16 width 32 : i8
  memref.store %j, %I[%t] : memref<32xi8>
  func.return
}

// -----

// Sums that wrap around are compared with an operand; halves of products are computed in twice the bits.
// CHECK-LABEL: @extended
// CHECK:         %[[SUM:.*]] = arith.addi %[[A:.*]], %[[A]] : i32
// CHECK-NEXT:    arith.cmpi ult, %[[SUM]], %[[A]] : i32
// CHECK:         arith.extui %[[A]] : i32 to i64
// CHECK:         %[[P:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK-NEXT:    arith.trunci %[[P]] : i64 to i32
// CHECK-NEXT:    %[[H:.*]] = arith.shrui %[[P]], %{{.*}} : i64
// CHECK-NEXT:    arith.trunci %[[H]] : i64 to i32
func.func @extended(%A: memref<4xi32>) attributes {
    low.params = [#low.param<"A", memref<4xi32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xi32>
  %s, %o = arith.addui_extended %a, %a : i32, i1
  %l, %h = arith.mului_extended %s, %a : i32
  memref.store %h, %A[%c0] : memref<4xi32>
  func.return
}

// -----

// An integer power is a loop over the bits of the power; one of floats is that of f64; 1 / sqrt(x) are two operations of
// f64.
// CHECK-LABEL: @powers
// CHECK:         %[[N:.*]] = math.ctlz
// CHECK:         scf.for
// CHECK:           arith.shrui
// CHECK-NEXT:      scf.yield
// CHECK:         arith.sitofp %{{.*}} : i32 to f64
// CHECK-NEXT:    math.powf %{{.*}}, %{{.*}} : f64
// CHECK-NEXT:    %[[P:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extf %[[P]] : f32 to f64
// CHECK-NEXT:    %[[ROOT:.*]] = math.sqrt %[[WIDE]] : f64
// CHECK-NEXT:    %[[QUOTIENT:.*]] = arith.divf %{{.*}}, %[[ROOT]] : f64
// CHECK-NEXT:    arith.truncf %[[QUOTIENT]] : f64 to f32
func.func @powers(%A: memref<4xf32>, %B: memref<4xi32>) attributes {
    low.params = [#low.param<"A", memref<4xf32>, readwrite, []>, #low.param<"B", memref<4xi32>, read, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf32>
  %b = memref.load %B[%c0] : memref<4xi32>
  %k = math.ipowi %b, %b : i32
  %p = math.fpowi %a, %k : f32, i32
  %r = math.rsqrt %p : f32
  memref.store %r, %A[%c0] : memref<4xf32>
  func.return
}

// -----

// Small floats are bytes, whose conversions are arithmetic on integers and one product or sum of f32.
// CHECK-LABEL: @bytes
// CHECK:         %[[BYTE:.*]] = vector.load %A
// CHECK-NEXT:    %[[BITS:.*]] = low.extui %[[BYTE]] : vector<4xi8> to vector<4xi32>
// CHECK-NOT:     f8
// CHECK:         arith.mulf %{{.*}} {low.ordered} : vector<4xf32>
// CHECK:         arith.addf %{{.*}} {low.ordered} : vector<4xf32>
// CHECK-NOT:     f4
// CHECK:         %[[CODE:.*]] = low.trunci %{{.*}} : vector<4xi32> to vector<4xi8>
// CHECK-NEXT:    vector.store %[[CODE]], %B
func.func @bytes(%A: memref<4xi8>, %B: memref<4xi8>) attributes {
    low.params = [#low.param<"A", memref<4xf8E4M3FN>, read, []>, #low.param<"B", memref<4xf4E2M1FN>, write, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %byte = vector.load %A[%c0] : memref<4xi8>, vector<4xi8>
  %small = arith.bitcast %byte : vector<4xi8> to vector<4xf8E4M3FN>
  %x = arith.extf %small : vector<4xf8E4M3FN> to vector<4xf32>
  %y = arith.truncf %x : vector<4xf32> to vector<4xf4E2M1FN>
  %code = arith.bitcast %y : vector<4xf4E2M1FN> to vector<4xi4>
  %out = low.extui %code : vector<4xi4> to vector<4xi8>
  vector.store %out, %B[%c0] : memref<4xi8>, vector<4xi8>
  func.return
}

// -----

// A conversion to an integer is defined for every number: what is out of range, and NaN, becomes the least integer of
// 32 bits (or of 64, for u32), whose low bits are the result.
// CHECK-LABEL: @to_integer
// CHECK:         %[[X:.*]] = memref.load %A
// CHECK-NEXT:    %[[GE:.*]] = arith.cmpf oge, %[[X]], %[[LEAST:.*]] : f32
// CHECK-NEXT:    %[[ABOVE:.*]] = arith.select %[[GE]], %[[X]], %[[LEAST]] : f32
// CHECK-NEXT:    %[[LT:.*]] = arith.cmpf olt, %[[ABOVE]], %{{.*}} : f32
// CHECK-NEXT:    %[[IN:.*]] = arith.select %[[LT]], %[[ABOVE]], %[[LEAST]] : f32
// CHECK-NEXT:    %[[N:.*]] = arith.fptosi %[[IN]] {low.defined} : f32 to i32
// CHECK-NEXT:    arith.trunci %[[N]] : i32 to i8
// CHECK:         arith.fptosi %{{.*}} {low.defined} : f32 to i64
// CHECK-NEXT:    arith.trunci %{{.*}} : i64 to i32
func.func @to_integer(%A: memref<4xf32>, %B: memref<4xi8>, %C: memref<4xi32>) attributes {
    low.params = [#low.param<"A", memref<4xf32>, read, []>, #low.param<"B", memref<4xi8>, write, []>,
                  #low.param<"C", memref<4xi32>, write, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %x = memref.load %A[%c0] : memref<4xf32>
  %b = arith.fptosi %x : f32 to i8
  memref.store %b, %B[%c0] : memref<4xi8>
  %c = arith.fptoui %x : f32 to i32
  memref.store %c, %C[%c0] : memref<4xi32>
  func.return
}

// -----

// A number in range is converted as it is; of a number that is clamped from above, NaN alone is left.
// CHECK-LABEL: @in_range
// CHECK:         %[[F:.*]] = arith.sitofp %{{.*}} : i16 to f32
// CHECK:         %[[CLAMPED:.*]] = arith.maximumf
// CHECK-NEXT:    arith.fptosi %[[CLAMPED]] {low.defined} : f32 to i8
// CHECK:         %[[MAYBE:.*]] = arith.minimumf
// CHECK-NEXT:    arith.cmpf oge, %[[MAYBE]]
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.select
// CHECK-NEXT:    arith.fptosi %[[NUMBER]] {low.defined} : f32 to i32
func.func @in_range(%A: memref<4xi16>, %B: memref<4xi8>, %X: memref<4xf32>) attributes {
    low.params = [#low.param<"A", memref<4xi16>, read, []>, #low.param<"B", memref<4xi8>, readwrite, []>,
                  #low.param<"X", memref<4xf32>, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %high = arith.constant 127.0 : f32
  %low = arith.constant -128.0 : f32
  %a = memref.load %A[%c0] : memref<4xi16>
  %f = arith.sitofp %a : i16 to f32
  %m = arith.minimumf %f, %high : f32
  %n = arith.maximumf %m, %low : f32
  %b = arith.fptosi %n : f32 to i8
  memref.store %b, %B[%c0] : memref<4xi8>
  %x = memref.load %X[%c0] : memref<4xf32>
  %y = arith.maximumf %x, %low : f32
  %z = arith.minimumf %y, %high : f32
  %c = arith.fptosi %z : f32 to i8
  memref.store %c, %B[%c1] : memref<4xi8>
  func.return
}
