// RUN: weft-opt %s -p 'specialize-shapes{shapes="ids=b:1..8 x 128"}' | filecheck %s
// RUN: weft-opt %s -p 'specialize-shapes{shapes="ids=nxn"}' | filecheck %s --check-prefix=EQUAL
// RUN: not weft-opt %s -p 'specialize-shapes{shapes="ids=1x128","mask=1x64"}' 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: weft-opt %s -p 'specialize-shapes{shapes="ids=b:1..8 x s"},lower-graph' | filecheck %s --check-prefix=BOUND

func.func private @step(%t: tensor<i64>, %h: tensor<?xf32, #graph.dims<k>>, %x: tensor<?xf32, #graph.dims<k>>) -> tensor<?xf32, #graph.dims<k>> {
  %y = graph.add %h, %x : tensor<?xf32, #graph.dims<k>>, tensor<?xf32, #graph.dims<k>> -> tensor<?xf32, #graph.dims<k>>
  func.return %y : tensor<?xf32, #graph.dims<k>>
}
func.func @f(%ids: tensor<?x?xf32, #graph.dims<batch, seq>>, %mask: tensor<?x?xf32, #graph.dims<batch, seq>>, %h: tensor<?xf32, #graph.dims<seq>>) -> (tensor<?xf32, #graph.dims<batch * seq>>, tensor<?xf32, #graph.dims<seq>>) {
  %y = graph.multiply %ids, %mask : tensor<?x?xf32, #graph.dims<batch, seq>>, tensor<?x?xf32, #graph.dims<batch, seq>> -> tensor<?x?xf32, #graph.dims<batch, seq>>
  %z = graph.reshape %y {newshape = #graph.dims<batch * seq>} : tensor<?x?xf32, #graph.dims<batch, seq>> -> tensor<?xf32, #graph.dims<batch * seq>>
  %last = graph.loop @step for batch carried(%h) scanned(%ids) : (tensor<?xf32, #graph.dims<seq>>, tensor<?x?xf32, #graph.dims<batch, seq>>) -> tensor<?xf32, #graph.dims<seq>>
  func.return %z, %last : tensor<?xf32, #graph.dims<batch * seq>>, tensor<?xf32, #graph.dims<seq>>
}

// The body of the loop is specialised as well.
// CHECK: func.func private @step_1(%t: tensor<i64>, %h: tensor<128xf32>, %x: tensor<128xf32>) -> tensor<128xf32>
// CHECK: func.func @f(%ids: tensor<?x128xf32, #graph.dims<b>>, %mask: tensor<?x128xf32, #graph.dims<b>>, %h: tensor<128xf32>)
// CHECK-SAME: attributes {graph.preconditions = ["1 <= b # its stated range is 1..8", "b <= 8 # its stated range is 1..8"]}
// CHECK: graph.reshape %y {newshape = #graph.dims<128 * b>}
// CHECK: graph.loop @step_1 for b

// EQUAL: func.func @f(%ids: tensor<?x?xf32, #graph.dims<n, n>>, %mask: tensor<?x?xf32, #graph.dims<n, n>>, %h: tensor<?xf32, #graph.dims<n>>)

// TWICE: shapes: 'seq' is 128 by axis 1 of 'ids', but 64 by axis 1 of 'mask'

// BOUND: tir.assume [1] <= [%b] because "its stated range is 1..8"
// BOUND: tir.assume [%b] <= [8] because "its stated range is 1..8"
