// RUN: weft-opt %s -p 'lower-graph{fuse=false}' --validate --split-input-file --verify-diagnostics | filecheck %s
// RUN: weft-opt %s -p graph-infer-types,legalize-graph-to-te,lower-te-to-tir,lower-graph-to-tir,'lower-tir-to-low{target=llvm}' --validate --split-input-file --verify-diagnostics

// The composite leaves functions over buffers only.
// CHECK-LABEL: func.func @main(%x: memref<?x4xf32>, %w: memref<4x3xf32>, %r: memref<?x3xf32>)
// CHECK:         func.call @matmul(%x, %w, %r)
// CHECK-NEXT:    func.call @relu_in_place(%r)
// CHECK:       func.func private @matmul(%tensor_a: memref<?x4xf32>, %tensor_b: memref<4x3xf32>, %matmul: memref<?x3xf32>)
// CHECK:         tir.block "matmul" iters(%[[VI:\w+]]: spatial<%{{.*}}>, %[[VJ:\w+]]: spatial<3>, %[[VK:\w+]]: reduce<4>)
// CHECK:       func.func private @relu_in_place
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
// CHECK:         func.call @double(%x, %z)
// CHECK:         func.call @relu_in_place(%z)
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

// -----

// Graphs know unsigned integers; functions state them of parameters, and constants have their bits.
// CHECK:       sym_name = "main_c", type = memref<2xi8>, initial_value = dense<[-56, 7]> : tensor<2xi8>
// CHECK-LABEL: func.func @main(%x: memref<2xi8> {tir.element = ui8}, %y: memref<2xi32> {tir.element = ui32})
// CHECK:         %[[H:\w+]] = {{.*}} : memref<{{.*}}> to memref<2xi8>
// CHECK:         func.call @floor_divide(%x, %c, %[[H]])
// CHECK:         func.call @cast(%[[H]], %y)
// CHECK-LABEL: func.func private @floor_divide(%lhs: memref<2xi8> {tir.element = ui8}
// CHECK:         arith.divui
// CHECK-LABEL: func.func private @cast(
// CHECK:         arith.extui
func.func @main(%x: tensor<2xui8>) -> tensor<2xui32> {
  %c = graph.constant dense<[200, 7]> : tensor<2xui8>
  %h = graph.floor_divide %x, %c : tensor<2xui8>, tensor<2xui8>
  %y = graph.cast %h {dtype = "uint32"} : tensor<2xui8>
  func.return %y : tensor<2xui32>
}
