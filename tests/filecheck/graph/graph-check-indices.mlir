// RUN: weft-opt %s -p graph-check-indices | filecheck %s

// CHECK-LABEL: @pick
// CHECK:         graph.bound_indices %i {{{.*}}checked = true{{.*}}}
// CHECK-NEXT:    graph.take %x, %{{.*}} {{{.*}}mode = "fast"{{.*}}}
func.func @pick(%x: tensor<16xf32>, %i: tensor<4xi32>) -> tensor<4xf32> {
  %p = graph.bound_indices %i {shape = #graph.dims<16>} : tensor<4xi32> -> tensor<4xi64>
  %y = graph.take %x, %p {axis = 0, mode = "fast"} : tensor<16xf32>, tensor<4xi64> -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
