// RUN: python -c 'import numpy, sys; numpy.savez(sys.argv[1], w=numpy.arange(6, dtype="f4").reshape(2, 3))' %t.npz
// RUN: weft-opt %s -p 'graph-bind-params{func=main params="%t.npz"}' | filecheck %s
// RUN: not weft-opt %s -p 'graph-bind-params{func=mian params="%t.npz"}' 2>&1 | filecheck %s --check-prefix=FUNC
// RUN: not weft-opt %s -p 'graph-bind-params{func=main params="no.npz"}' 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not weft-opt %s -p 'graph-bind-params{func=other params="%t.npz"}' 2>&1 | filecheck %s --check-prefix=NAME

// FUNC: error: the module has no function @mian, did you mean 'main'?
// FILE: error: cannot read arrays from 'no.npz'
// NAME: graph-bind-params.mlir:[[# @LINE + 10]]:1: error: @other has no parameter 'w'

// CHECK-LABEL: func.func @main(%x: tensor<1x3xf32>) -> tensor<1x2xf32> {
// CHECK-NEXT:    %w = graph.constant dense<{{\[\[}}0.000000e+00, 1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00, 5.000000e+00]]> : tensor<2x3xf32>
// CHECK-NEXT:    graph.transpose %w : tensor<2x3xf32> -> tensor<3x2xf32>
func.func @main(%x: tensor<1x?xf32, #graph.dims<m>>, %w: tensor<?x?xf32, #graph.dims<n, m>>) -> tensor<1x?xf32, #graph.dims<n>> {
  %t = graph.transpose %w : tensor<?x?xf32, #graph.dims<n, m>>
  %y = graph.matmul %x, %t : tensor<1x?xf32, #graph.dims<m>>, tensor<?x?xf32, #graph.dims<m, n>>
  func.return %y : tensor<1x?xf32, #graph.dims<n>>
}
func.func @other(%x: tensor<1xf32>) -> tensor<1xf32> {
  func.return %x : tensor<1xf32>
}
