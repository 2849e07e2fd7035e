// RUN: weft-opt %s -p lower-graph | filecheck %s
// RUN: weft-opt %s --validate -p lower-graph,lower-tir-to-low | filecheck %s --check-prefix=LOW
// RUN: weft-opt %s -p 'lower-graph,lower-tir-to-low{bounds=true}' | filecheck %s --check-prefix=CHECKED

// The function is cut after the count: the name is bound in bounds, and what follows is in an arena of its own.
func.func @rows(%x: tensor<?x4xf32, #graph.dims<n>>, %mask: tensor<?xi1, #graph.dims<n>>, %w: tensor<4x3xf32>)
    -> (tensor<?x3xf32, #graph.dims<k>>, tensor<i64>) {
  %all, %count = graph.compress %mask, %x {axis = 0 : i64}
    : tensor<?xi1, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>> -> tensor<?x4xf32, #graph.dims<n>>, tensor<i64>
  graph.match_shape %count as <k> at_most <n> : tensor<i64>
  %some = graph.prefix %all {shape = #graph.dims<k, 4>}
    : tensor<?x4xf32, #graph.dims<n>> -> tensor<?x4xf32, #graph.dims<k>>
  %y = graph.matmul %some, %w : tensor<?x4xf32, #graph.dims<k>>, tensor<4x3xf32> -> tensor<?x3xf32, #graph.dims<k>>
  func.return %y, %count : tensor<?x3xf32, #graph.dims<k>>, tensor<i64>
}
// CHECK:      func.func @rows(%x: memref<?x4xf32>, %mask: memref<?xi1>, %w: memref<4x3xf32>, %y: memref<3xi64> {tir.result = tensor<?x3xf32, #graph.dims<k>>}, %count: memref<i64>)
// CHECK-SAME:   tir.arena_bytes = ["64 * ((16 * n + 63) floordiv 64)", "64 * ((12 * k + 63) floordiv 64) + 64 * ((16 * k + 63) floordiv 64)"]
// CHECK:        %arena = memref.alloc({{.*}}) {alignment = 64 : i64} : memref<?xi8>
// CHECK:        func.call @compress(%mask, %x, %all, %count)
// CHECK-NEXT:   %[[VALUE:.*]] = memref.load %count[] : memref<i64>
// CHECK-NEXT:   %[[SIZE:.*]] = arith.index_cast %[[VALUE]] : i64 to index
// CHECK-NEXT:   tir.check_size "k" %[[SIZE]] at_most %n
// CHECK:        %k = arith.maxsi %[[SIZE]], %{{.*}} : index
// CHECK-NEXT:   %k_1 = arith.minsi %k, %n : index
// CHECK:        memref.alloc({{.*}}) {alignment = 64 : i64} : memref<?xi8>
// CHECK:        func.call @prefix(%all, %k_1, %some)
// CHECK-NEXT:   func.call @matmul(%some, %w, %[[Y:.*]]) :
// CHECK-NEXT:   low.return_result %[[Y]] extents(%k_1) memref<?x3xf32> in %y : memref<?x3xf32>, memref<3xi64>

// LOW:      func.func @rows(
// LOW-SAME:   #low.param<"y", memref<3xi64>, write, []>
// LOW-NOT:    tir.check_size
// LOW:        low.return_result %{{.*}} extents(%{{.*}}) memref<?x3xf32> in %y : memref<?xf32>, memref<3xi64>

// CHECKED:      func.func @rows(%bounds_log: memref<{{.*}}xi64>
// CHECKED:        %[[OUTSIDE:.*]] = arith.cmpi ugt, %[[SIZE:.*]], %n : index
// CHECKED-NEXT:   scf.if %[[OUTSIDE]] {
// CHECKED:          memref.store
