func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %h = graph.call_tir @double(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %y = graph.call_tir @double(%h) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @double(memref<4xf32>, memref<4xf32>)
