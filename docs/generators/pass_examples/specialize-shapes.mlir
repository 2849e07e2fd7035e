// options: shapes="x=b:1..8 x 128"
func.func @f(%x: tensor<?x?xf32, #graph.dims<n, m>>) -> tensor<?x?xf32, #graph.dims<n, m>> {
  %y = graph.relu %x : tensor<?x?xf32, #graph.dims<n, m>> -> tensor<?x?xf32, #graph.dims<n, m>>
  func.return %y : tensor<?x?xf32, #graph.dims<n, m>>
}
