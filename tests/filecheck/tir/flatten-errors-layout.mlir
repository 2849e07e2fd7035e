// RUN: not weft-opt %s -p tir-flatten 2>&1 | filecheck %s

// CHECK: error: buffers are row-major, got the layout of memref<4xf32, strided<[2]>>

func.func @strided(%A: memref<4xf32, strided<[2]>>) {
  func.return
}
