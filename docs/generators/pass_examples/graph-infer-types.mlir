func.func @main(%x: tensor<?x4xf32, #graph.dims<n>>, %w: tensor<4x8xf32>) -> tensor<?x?xf32> {
  %y = graph.matmul %x, %w : tensor<?x4xf32, #graph.dims<n>>, tensor<4x8xf32> -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}
