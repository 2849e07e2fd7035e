// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @f(%n: index) {
  // expected-error@+1 {{te.extern "R" gives 1 extents for 0 dynamic dimensions of its results}}
  %R = te.extern "R" () into (%r : tensor<3xf32>[%n]) {
  }
  func.return
}

// -----

func.func @f(%m: memref<3xf32>, %i: index, %x: f32) {
  // expected-error@+1 {{te.extern "R": 'memref.store' accesses a buffer that belongs to none of its results}}
  %R = te.extern "R" () into (%r : tensor<3xf32>) {
    memref.store %x, %m[%i] : memref<3xf32>
  }
  func.return
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1 {{te.extern "R" holds statements, got 'te.compute'}}
  %R = te.extern "R" () into (%r : tensor<3xf32>) {
    %C = te.compute "C" (%i) : tensor<3xf32> {
      te.yield %x : f32
    }
  }
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{te.extern "R" makes tensors, got memref<3xf32>}}
  %R = te.extern "R" () into (%r : memref<3xf32>) {
  }
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{te.extern "R" takes arguments of types index, memref<3xf32>, got index}}
  %R = "te.extern"() <{extern_name = "R", static_extents = array<i64: 2>, operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: index):
  }) : () -> tensor<3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{te.extern "R": dynamic extents of indices and their operands differ in number}}
  %R = "te.extern"() <{extern_name = "R", static_extents = array<i64: -9223372036854775808>, operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: index, %r: memref<3xf32>):
  }) : () -> tensor<3xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{te.extern "R" has no result}}
  "te.extern"() <{extern_name = "R", static_extents = array<i64>, operandSegmentSizes = array<i32: 0, 0>}> ({
  }) : () -> ()
  func.return
}
