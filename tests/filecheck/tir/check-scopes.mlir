// RUN: not weft-opt %s -p 'tir-check-scopes{target=npu}' 2>&1 | filecheck %s
// RUN: weft-opt %s -p 'tir-flatten{keep="global.scratch"}' | filecheck %s --check-prefix=KEEP

// Kinds of target with scopes are registered in Python: see tests/numeric/backends/test_accelerator.py.
// CHECK: error: tir-check-scopes: no target kind 'npu' is registered

// Memory of a scope that the target has keeps its name, others become a thread's own.
// KEEP: %S = memref.alloca() {alignment = 16 : i64} : memref<64xf32, "global.scratch">
// KEEP-NEXT: %T = memref.alloca() {alignment = 64 : i64} : memref<64xf32, "local">
// KEEP: memref.store %{{.*}}, %S[%{{.*}}] : memref<64xf32, "global.scratch">
func.func @f(%A: memref<8x8xf32>) {
  %S = memref.alloc() : memref<8x8xf32, "global.scratch">
  %T = memref.alloc() : memref<8x8xf32, "global.other">
  tir.for %i in 8 { tir.for %j in 8 {
    %a = memref.load %A[%i, %j] : memref<8x8xf32>
    memref.store %a, %S[%i, %j] : memref<8x8xf32, "global.scratch">
    memref.store %a, %T[%i, %j] : memref<8x8xf32, "global.other">
  } }
  func.return
}
