// RUN: weft-opt %s -p lower-graph --validate --split-input-file --verify-diagnostics | filecheck %s
// RUN: weft-opt %s -p graph-infer-types,legalize-graph-to-te,lower-te-to-tir,lower-graph-to-tir,'lower-tir-to-low{target=llvm}' --validate --split-input-file --verify-diagnostics

// The composite leaves functions over buffers only.
// CHECK-LABEL: func.func @main(%x: memref<?x4xf32>, %w: memref<4x3xf32>, %r: memref<?x3xf32>)
// CHECK:         %h = memref.alloc(%[[D0:\w+]]) : memref<?x3xf32>
// CHECK:         func.call @matmul(%x, %w, %h)
// CHECK-NEXT:    func.call @relu(%h, %r)
// CHECK:       func.func private @matmul(%tensor_a: memref<?x4xf32>, %tensor_b: memref<4x3xf32>, %matmul: memref<?x3xf32>)
// CHECK:         tir.block "matmul" iters(%[[VI:\w+]]: spatial<%{{.*}}>, %[[VJ:\w+]]: spatial<3>, %[[VK:\w+]]: reduce<4>)
// CHECK:       func.func private @relu
// CHECK-NOT:   tensor
func.func @main(%x: tensor<?x4xf32>, %w: tensor<4x3xf32>) -> tensor<?x?xf32> {
  %y = graph.dataflow -> tensor<?x?xf32> {
    %h = graph.matmul %x, %w : tensor<?x4xf32>, tensor<4x3xf32> -> tensor<?x?xf32>
    %r = graph.relu %h : tensor<?x?xf32> -> tensor<?x?xf32>
    graph.output %r : tensor<?x?xf32>
  }
  func.return %y : tensor<?x?xf32>
}

// -----

// A function that was written as loops is called as it is.
// CHECK-LABEL: func.func @main(%x: memref<2xf32>, %z: memref<2xf32>)
// CHECK:         %y = memref.alloc() : memref<2xf32>
// CHECK:         func.call @double(%x, %y)
// CHECK:         func.call @relu(%y, %z)
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = graph.call_tir @double(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %z = graph.relu %y : tensor<2xf32>
  func.return %z : tensor<2xf32>
}
func.func @double(%A: memref<2xf32>, %B: memref<2xf32>) {
  tir.for %i in 2 {
    tir.block "B" iters(%v: spatial<2>) = [%i] {
      %a = memref.load %A[%v] : memref<2xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<2xf32>
    }
  }
  func.return
}
