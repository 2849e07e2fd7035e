// RUN: weft-opt %s -p lower-graph-to-tir --split-input-file | filecheck %s

// Calls check what a graph function states of its extents. One of several comparisons is true if the least of their
// differences is negative.
func.func @stated(%x: tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>>
    attributes {graph.preconditions = ["n % 8 == 0 # rows are in groups", "n <= 16 or 32 <= n"]} {
  %y = graph.call_tir @copy(%x) : (tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>>
  func.return %y : tensor<?x4xf32, #graph.dims<n>>
}
func.func private @copy(%a: memref<?x4xf32>, %b: memref<?x4xf32>)
// CHECK-LABEL: func.func @stated
// CHECK:         tir.assume [%n mod 8] == [0] because "rows are in groups"
// CHECK:         %[[least:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    tir.assume [%[[least]]] < [0]

// -----

// An extent determines the one name in it that no other extent has alone; calls check that it divides.
func.func @solved(%x: tensor<?x?xf32, #graph.dims<8 * n, n + k>>) -> tensor<?x?xf32, #graph.dims<8 * n, n + k>> {
  %y = graph.call_tir @copy(%x)
    : (tensor<?x?xf32, #graph.dims<8 * n, n + k>>) -> tensor<?x?xf32, #graph.dims<8 * n, n + k>>
  func.return %y : tensor<?x?xf32, #graph.dims<8 * n, n + k>>
}
func.func private @copy(%a: memref<?x?xf32>, %b: memref<?x?xf32>)
// CHECK-LABEL: func.func @solved
// CHECK:         %[[rows:.*]] = memref.dim %x, %c0 : memref<?x?xf32>
// CHECK-NEXT:    %n = affine.apply affine_map<(d0) -> ((d0 floordiv 8))> (%[[rows]])
// CHECK:         %[[all:.*]] = memref.dim %x, %c1 : memref<?x?xf32>
// CHECK:         tir.assume [0] <= [%[[all]] - %[[rows]] floordiv 8]
// CHECK-NEXT:    %[[even:.*]] = affine.apply affine_map<(d0) -> (((d0 floordiv 8) * 8))> (%[[rows]])
// CHECK-NEXT:    tir.assume_shape %x[%[[even]], %[[all]]] : memref<?x?xf32>
