// RUN: not weft-opt %s -p convert-low-to-upstream --split-input-file 2>&1 | filecheck %s
// RUN: not weft-opt %s -t upstream --split-input-file 2>&1 | filecheck %s --check-prefix=TARGET

// CHECK: convert-low-to-upstream: the module has no low function (lower-tir-to-low makes them)
func.func @other() {
  func.return
}

// -----

// CHECK: convert-low-to-upstream: low.access_ptr has no upstream form
// TARGET: low.access_ptr is not upstream's (convert-low-to-upstream)
func.func private @kernel(!ptr_xdsl.ptr)
func.func @pointers(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<4xf32>, readwrite, []>],
    low.symbols = []} {
  %c0 = arith.constant 0 : index
  %p = low.access_ptr %A[%c0] readwrite : memref<4xf32>
  func.call @kernel(%p) : (!ptr_xdsl.ptr) -> ()
  func.return
}

// -----

// CHECK: convert-low-to-upstream: code in the module (low.import_c) has no upstream form
builtin.module attributes {low.import_c = ["int f(void) { return 1; }"]} {
  func.func @f(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<4xf32>, readwrite, []>],
      low.symbols = []} {
    func.return
  }
}
