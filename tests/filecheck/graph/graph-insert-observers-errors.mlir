// RUN: not weft-opt %s -p 'graph-insert-observers{skip=secnd}' 2>&1 | filecheck %s
// RUN: weft-opt %s -p 'graph-insert-observers{skip=second}' | filecheck %s --check-prefix=SKIP

// CHECK: there is no layer or activation 'secnd' to skip, did you mean 'second'?
// SKIP-NOT: graph.observe
// SKIP:     graph.matmul %x, %second {kept_float = "skipped by name"}
func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %second = graph.constant dense<0.5> : tensor<2x2xf32>
  %y = graph.matmul %x, %second : tensor<2x2xf32>, tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
