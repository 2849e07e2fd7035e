// RUN: weft-opt %s --split-input-file -p 'low-legalize{target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell"}' | filecheck %s

// A division is defined for all operands; of constant divisors, only those of a processor's rounding stay.
// CHECK-LABEL: @divisions
// CHECK:         %[[ZERO:.*]] = arith.cmpi eq, %k, %{{.*}} : i32
// CHECK:         %[[BAD:.*]] = arith.ori %[[ZERO]], %{{.*}} : i1
// CHECK-NEXT:    %[[SAFE:.*]] = arith.select %[[BAD]], %{{.*}}, %k : i32
// CHECK-NEXT:    %[[Q:.*]] = arith.divsi %[[A:.*]], %[[SAFE]] {low.defined} : i32
// CHECK-NEXT:    arith.select %[[ZERO]], %{{.*}}, %[[Q]] : i32
// CHECK-NEXT:    arith.divsi %[[A]], %c7 : i32
// CHECK-NEXT:    arith.shrsi %[[A]], %{{.*}} : i32
func.func @divisions(%A: memref<4xi32>, %k: i32) attributes {
    low.params = [#low.param<"A", memref<4xi32>, readwrite, []>, #low.param<"k", i32, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %a = memref.load %A[%c0] : memref<4xi32>
  %q = arith.divsi %a, %k : i32
  %d = arith.divsi %a, %c7 : i32
  %f = arith.floordivsi %a, %c8 : i32
  func.return
}

// -----

// bf16 is computed in f32, and converted in integers; f16 is LLVM's but for functions.
// CHECK-LABEL: @small
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[A:.*]] : bf16 to i16
// CHECK-NEXT:    %[[WIDE:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK-NEXT:    arith.shli %[[WIDE]], %{{.*}} : i32
// CHECK:         arith.addf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.cmpf uno
// CHECK:         arith.trunci %{{.*}} : i32 to i16
// CHECK:         arith.addf %{{.*}}, %{{.*}} : f16
// CHECK-NEXT:    arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT:    math.exp %{{.*}} : f32
func.func @small(%A: memref<4xbf16>, %B: memref<4xf16>) attributes {
    low.params = [#low.param<"A", memref<4xbf16>, readwrite, []>, #low.param<"B", memref<4xf16>, readwrite, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xbf16>
  %s = arith.addf %a, %a : bf16
  memref.store %s, %A[%c0] : memref<4xbf16>
  %b = memref.load %B[%c0] : memref<4xf16>
  %t = arith.addf %b, %b : f16
  %e = math.exp %t : f16
  memref.store %e, %B[%c0] : memref<4xf16>
  func.return
}

// -----

// The functions of the C library take scalars.
// CHECK-LABEL: @library
// CHECK:         %[[X:.*]] = vector.extract %v[0]
// CHECK-NEXT:    %[[Y:.*]] = math.erf %[[X]] : f32
// CHECK-NEXT:    vector.broadcast %[[Y]]
// CHECK:         math.erf
// CHECK-NEXT:    vector.insert
func.func @library(%A: memref<4xf32>) attributes {
    low.params = [#low.param<"A", memref<4xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %v = vector.load %A[%c0] : memref<4xf32>, vector<2xf32>
  %e = math.erf %v : vector<2xf32>
  vector.store %e, %A[%c0] : memref<4xf32>, vector<2xf32>
  func.return
}

// -----

// x86 has an instruction for vectors that is defined for all floats; one for scalars would keep LLVM from vectorizing.
// CHECK-LABEL: @to_integer
// CHECK:         %[[V:.*]] = vector.load
// CHECK-NEXT:    %[[N:.*]] = low.fptosi %[[V]] : vector<8xf32> to vector<8xi32>
// CHECK-NEXT:    low.trunci %[[N]] : vector<8xi32> to vector<8xi8>
// CHECK:         low.fptosi %{{.*}} {low.defined} : vector<8xf32> to vector<8xi64>
func.func @to_integer(%A: memref<8xf32>, %B: memref<8xi8>, %C: memref<8xi64>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, read, []>, #low.param<"B", memref<8xi8>, write, []>,
                  #low.param<"C", memref<8xi64>, write, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %v = vector.load %A[%c0] : memref<8xf32>, vector<8xf32>
  %b = low.fptoui %v : vector<8xf32> to vector<8xi8>
  vector.store %b, %B[%c0] : memref<8xi8>, vector<8xi8>
  %c = low.fptosi %v : vector<8xf32> to vector<8xi64>
  vector.store %c, %C[%c0] : memref<8xi64>, vector<8xi64>
  func.return
}

// -----

// A loaded index that is wrapped to the extent of an axis is compared before it is divided: -k < i < k has the
// remainder i. Loop indices and divisors that vary are divided at once.
// CHECK-LABEL: @wrapped_index
// CHECK:         %[[I:.*]] = memref.load %A
// CHECK:         %[[SOME:.*]] = arith.cmpi sgt, %k, %{{.*}} : i64
// CHECK:         %[[UP:.*]] = arith.addi %[[I]], %{{.*}} : i64
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[UP]], %{{.*}} : i64
// CHECK-NEXT:    %[[BOTH:.*]] = arith.andi %[[SOME]], %[[IN]] : i1
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[BOTH]] -> (i64) {
// CHECK-NEXT:      scf.yield %[[I]] : i64
// CHECK-NEXT:    } else {
// CHECK:           %[[D:.*]] = arith.remsi %[[I]], %{{.*}} {low.defined} : i64
// CHECK-NEXT:      scf.yield %[[D]] : i64
// CHECK-NEXT:    }
// CHECK-NEXT:    memref.store %[[R]], %A
// CHECK-NOT:     scf.if
func.func @wrapped_index(%A: memref<4xi64>, %k: i64) attributes {
    low.params = [#low.param<"A", memref<4xi64>, readwrite, []>, #low.param<"k", i64, read, []>], low.symbols = []
} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %j = %c0 to %c4 step %c1 {
    %i = memref.load %A[%j] : memref<4xi64>
    %r = arith.remsi %i, %k : i64
    memref.store %r, %A[%j] : memref<4xi64>
    %wide = arith.index_cast %j : index to i64
    %s = arith.remsi %wide, %k : i64
    memref.store %s, %A[%j] : memref<4xi64>
    %t = arith.remsi %k, %i : i64
    memref.store %t, %A[%j] : memref<4xi64>
  }
  func.return
}
