// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @rank(%A: memref<4x4xf32>, %i: index) {
  // expected-error@+1 {{low.prefetch takes an index a dimension, got 1 for rank 2}}
  low.prefetch %A[%i] {lanes = 1 : i64} : memref<4x4xf32>
  func.return
}

// -----

func.func @none(%A: memref<4xf32>, %i: index) {
  // expected-error@+1 {{low.prefetch names 1 to 65536 elements, got 0}}
  low.prefetch %A[%i] {lanes = 0 : i64} : memref<4xf32>
  func.return
}

// -----

func.func @halves(%p: vector<4xf16>, %n: vector<4xf16>) {
  // expected-error@+1 {{low.ldexp works on f32 and f64, got vector<4xf16>}}
  %y = low.ldexp %p, %n : vector<4xf16>
  func.return
}

// -----

func.func @many(%A: memref<?xf32>, %i: index) {
  // expected-error@+1 {{low.prefetch names 1 to 65536 elements, got 1000000}}
  low.prefetch %A[%i] {lanes = 1000000 : i64} : memref<?xf32>
  func.return
}
