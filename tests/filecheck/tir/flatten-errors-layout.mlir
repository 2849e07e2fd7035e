// RUN: not weft-opt %s -p tir-flatten 2>&1 | filecheck %s

// CHECK: error: parameter A: buffers are row-major or strided, got the layout of memref<4xf32, affine_map<(d0) -> ((d0 * 2))>>

func.func @strided(%A: memref<4xf32, affine_map<(d0) -> (d0 * 2)>>) attributes {tir.function} {
  func.return
}
