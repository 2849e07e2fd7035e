// RUN: weft-opt %s -p 'low-lower-intrinsics{target=cuda}' | filecheck %s

// Without registered intrinsics and rules nothing changes (tests/numeric/backends/test_intrinsics.py registers some).
// CHECK: func.func private @mylog(f32) -> f32
// CHECK: math.exp
// CHECK: func.call @mylog
func.func private @mylog(f32) -> f32
func.func @f(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<4xf32>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xf32>
  %e = math.exp %a : f32
  %b = func.call @mylog(%e) : (f32) -> f32
  memref.store %b, %A[%c0] : memref<4xf32>
  func.return
}
