// RUN: weft-opt %s -p tir-collect-imports | filecheck %s

// Each text once, after what the module has; loops and blocks keep their other notes.
// CHECK: builtin.module attributes {low.import_c = ["int first(void);", "int second(void);"], low.import_llvm = ["declare i32 @third()"]} {
// CHECK: tir.for %[[I:\w+]] in 8 attributes {note = 1 : i64} {
// CHECK-NEXT: tir.block "A" iters(%[[VI:\w+]]: spatial<8>) = [%[[I]]] {
// CHECK: tir.for %[[J:\w+]] in 8 {
// CHECK-NEXT: tir.block "B" iters(%[[VI]]: spatial<8>) = [%[[J]]] {
builtin.module attributes {low.import_c = ["int first(void);"]} {
  func.func @f(%A: memref<8xf32>, %B: memref<8xf32>) {
    %one = arith.constant 1.0 : f32
    tir.for %i in 8 attributes {pragma_import_c = "int second(void);", note = 1 : i64} {
      tir.block "A" iters(%vi: spatial<8>) = [%i] attributes {pragma_import_llvm = "declare i32 @third()"} {
        memref.store %one, %A[%vi] : memref<8xf32>
      }
    }
    tir.for %j in 8 attributes {pragma_import_c = "int second(void);"} {
      tir.block "B" iters(%vi: spatial<8>) = [%j] attributes {pragma_import_c = "int first(void);"} {
        memref.store %one, %B[%vi] : memref<8xf32>
      }
    }
    func.return
  }
}
