// RUN: weft-opt %s -p 'verify-level{level=tir}' | filecheck %s
// RUN: not weft-opt %s -p lower-tir-to-low 2>&1 | filecheck %s --check-prefix=LOW

// CHECK: tir.intrinsic "T.call_packed('f', T.tvm_tuple(_1, 8), _0, -1)"(%n, %[[P:\w+]]) : (index, !ptr_xdsl.ptr) -> ()
// CHECK: %[[X:\w+]] = tir.intrinsic "T.call_intrin('float32', 'f')"() : () -> f32
// LOW: intrinsic.mlir:[[# @LINE + 4]]:3: error: `T.call_packed('f', T.tvm_tuple(_1, 8), _0, -1)` calls a function that weft does not know: a pass before tir-flatten replaces it
func.func @kept(%A: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %p = low.access_ptr %A[%c0] readwrite : memref<8xf32>
  tir.intrinsic "T.call_packed('f', T.tvm_tuple(_1, 8), _0, -1)"(%n, %p) : (index, !ptr_xdsl.ptr) -> ()
  %x = tir.intrinsic "T.call_intrin('float32', 'f')"() : () -> f32
  memref.store %x, %A[%c0] : memref<8xf32>
  func.return
}
