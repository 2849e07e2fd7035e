// Nested pipelines, dumps of the IR, statistics, a reproducer.
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(cse,tir-split{block=B loop=0 factors=0,4}))' --print-ir-after-all --pass-statistics 2>&1 | filecheck %s
// RUN: not weft-opt %s -p 'func.func(lower-tir-to-low)' 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not weft-opt %s -p cse -p 'tir-split{block=C loop=0 factors=0,4}' --mlir-print-ir-after-failure --crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=FAILURE
// RUN: filecheck %s --check-prefix=REPRODUCER --input-file %t.mlir
// RUN: not weft-opt --run-reproducer %t.mlir 2>&1 | filecheck %s --check-prefix=FAILURE-AGAIN
// RUN: weft-opt %s -p lower-tir-to-low{bounds=true} --pass-statistics 2>&1 >%t.low | filecheck %s --check-prefix=STATISTICS

// CHECK: // -----// IR Dump After cse ('func.func' operation: @f) //----- //
// CHECK-NEXT: func.func @f
// CHECK: // -----// IR Dump After tir-split ('func.func' operation: @f) //----- //
// CHECK: tir.for %[[I:\w+]] in 16 {
// CHECK-NEXT: tir.for %[[J:\w+]] in 4 {
// CHECK: builtin.module {
// CHECK-NEXT: func.func @f

// NESTED: driver.mlir:[[# @LINE + 20]]:1: error: pass 'lower-tir-to-low' changes the name or type of 'func.func' @f: it needs the whole module, outside of func.func(...)

// FAILURE: // -----// IR Dump After tir-split Failed //----- //
// FAILURE: func.func @f
// FAILURE: error: unknown block 'C'{{.*}} (pass 'tir-split')
// FAILURE: note: '{{.*}}' reproduces this: weft-opt {{.*}} --run-reproducer
// FAILURE-AGAIN: error: unknown block 'C'{{.*}} (pass 'tir-split')

// REPRODUCER: tir.for
// REPRODUCER: {-#
// REPRODUCER: external_resources: {
// REPRODUCER: mlir_reproducer: {
// REPRODUCER: pipeline: "builtin.module(cse,tir-split{block=\22C\22 loop=0 factors=0,4})",
// REPRODUCER: verify_each: true
// REPRODUCER: #-}

// STATISTICS: Pass statistics report
// STATISTICS: 'tir-check-bounds'
// STATISTICS-NEXT: (S) 1 accesses-guarded - loads and stores that are not proved in bounds

func.func @f(%A: memref<64x2xf32>, %I: memref<64xi32>) {
  %z = arith.constant 0.0 : f32
  tir.for %i in 64 {
    tir.block "B" iters(%v: spatial<64>) = [%i] {
      %j = memref.load %I[%v] : memref<64xi32>
      %k = arith.index_cast %j : i32 to index
      memref.store %z, %A[%v, %k] : memref<64x2xf32>
    }
  }
  func.return
}
