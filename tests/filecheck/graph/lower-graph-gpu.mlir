// RUN: weft-opt %s -p 'lower-graph{target=opencl},default-schedule{target=opencl},lower-tir-to-low{target=opencl}' --validate --split-input-file | filecheck %s

// Host code of a model: extents, constants, slots for temporaries, and kernels in order. A reshape is a view.
// CHECK:       "memref.global"() <{sym_name = "[[W:\w+]]"
// CHECK:       func.func @main(%x: memref<?xf32>, %c: memref<?xf32>, %n: index) attributes {
// CHECK-SAME:    tir.arena_bytes = ["32 * n", "32 * n"]
// CHECK-DAG:     %slot = memref.alloc(%[[B:\w+]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK-DAG:     %slot_1 = memref.alloc(%[[B]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK-DAG:     %a = memref.view %slot[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xf32>
// CHECK-DAG:     %s = memref.view %slot_1[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?xf32>
// CHECK-DAG:     %r = memref.reinterpret_cast %s
// CHECK:         func.call @matmul(%x, %{{.*}}, %a, %n)
// CHECK-NEXT:    func.call @softmax(%a, %s, %n)
// CHECK-NEXT:    func.call @sum(%r, %c, %n)
// CHECK-NEXT:    memref.dealloc %slot
// CHECK-NEXT:    memref.dealloc %slot_1
// CHECK-NEXT:    func.return
// CHECK:       func.func private @matmul(%tensor_a: memref<?xf32>, %tensor_b: memref<64xf32> {tir.constant}, %matmul: memref<?xf32>, %s0: index)
// CHECK:         low.launch @matmul_kernel
// CHECK:       func.func @matmul_kernel(
func.func @main(%x: tensor<?x8xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>> {
  %w = graph.constant dense<0.5> : tensor<8x8xf32>
  %a = graph.matmul %x, %w : tensor<?x8xf32, #graph.dims<n>>, tensor<8x8xf32> -> tensor<?x8xf32, #graph.dims<n>>
  %s = graph.softmax %a : tensor<?x8xf32, #graph.dims<n>> -> tensor<?x8xf32, #graph.dims<n>>
  %r = graph.reshape %s {newshape = [-1 : i64, 2 : i64, 4 : i64]} : tensor<?x8xf32, #graph.dims<n>> -> tensor<?x2x4xf32, #graph.dims<n>>
  %c = graph.sum %r {axis = [1 : i64, 2 : i64]} : tensor<?x2x4xf32, #graph.dims<n>> -> tensor<?xf32, #graph.dims<n>>
  func.return %c : tensor<?xf32, #graph.dims<n>>
}

// -----

// A condition is all that host code reads.
// CHECK-LABEL: func.func @choose(
// CHECK:         %[[C:.*]] = memref.load %c[%{{.*}}] : memref<1xi1>
// CHECK-NEXT:    scf.if %[[C]] {
// CHECK:           func.call @exp{{.*}}(%x, %y)
// CHECK:         } else {
// CHECK:           func.call @relu{{.*}}(%x, %y)
// CHECK:         }
func.func private @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.exp %x : tensor<4xf32> -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @relu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32> -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @choose(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c then @exp else @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
