// RUN: weft-opt %s -p tir-flatten --split-input-file --verify-diagnostics

func.func @inside(%x: memref<8xf32>) attributes {tir.function} {
  // expected-error@below {{memref.reinterpret_cast is of a dense buffer, from its first element on}}
  %v = memref.reinterpret_cast %x to offset: [2], sizes: [4], strides: [1] : memref<8xf32> to memref<4xf32>
  func.return
}

// -----

func.func @strided(%x: memref<2x4xf32, strided<[8, 1]>>) attributes {tir.function} {
  // expected-error@below {{memref.reinterpret_cast is of a dense buffer, from its first element on}}
  %v = memref.reinterpret_cast %x to offset: [0], sizes: [4], strides: [1] : memref<2x4xf32, strided<[8, 1]>> to memref<4xf32>
  func.return
}
