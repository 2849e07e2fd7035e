// RUN: weft-opt %s -p graph-fold-constants --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-fold-constants{limit=1000000}' --split-input-file | filecheck %s --check-prefix=ALL

// Operators of constants are evaluated, one after the other, and calls of tensor functions; constants without users go.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %d = graph.constant dense<[7.000000e+00, 1.000000e+01]> : tensor<2xf32>
// CHECK-NEXT:    %e = graph.add %x, %d
func.func @chain(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %three = graph.constant dense<3.0> : tensor<f32>
  %b = graph.multiply %a, %three : tensor<2xf32>, tensor<f32>
  %c = graph.add %b, %three : tensor<2xf32>, tensor<f32>
  %d = graph.call_tir @next(%c) : (tensor<2xf32>) -> tensor<2xf32>
  %e = graph.add %x, %d : tensor<2xf32>, tensor<2xf32>
  func.return %e : tensor<2xf32>
}
func.func private @next(%A: memref<2xf32>, %B: memref<2xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 2 {
    tir.block "B" iters(%v: spatial<2>) = [%i] {
      %a = memref.load %A[%v] : memref<2xf32>
      %s = arith.addf %a, %one : f32
      memref.store %s, %B[%v] : memref<2xf32>
    }
  }
  func.return
}

// -----

// A weight is transposed once; a broadcast that would need memory stays, unless the limit allows it.
// CHECK-LABEL: func.func @sizes
// CHECK:         graph.broadcast_to
// CHECK-NOT:     graph.transpose
// ALL-LABEL:   func.func @sizes
// ALL-NOT:       graph.broadcast_to
func.func @sizes(%x: tensor<1x2xf32>) -> (tensor<1x3xf32>, tensor<200x200xf32>, tensor<3xi1>) {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %t = graph.transpose %w : tensor<3x2xf32>
  %y = graph.matmul %x, %t : tensor<1x2xf32>, tensor<2x3xf32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %ones = graph.broadcast_to %one {shape = #graph.dims<200, 200>} : tensor<f32>
  %h = graph.constant dense<[1.0, 2.0, 4.0]> : tensor<3xbf16>
  %i = graph.multiply %h, %h : tensor<3xbf16>, tensor<3xbf16>
  %j = graph.greater %i, %h : tensor<3xbf16>, tensor<3xbf16>
  func.return %y, %ones, %j : tensor<1x3xf32>, tensor<200x200xf32>, tensor<3xi1>
}
