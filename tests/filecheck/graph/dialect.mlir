// RUN: weft-opt %s | filecheck %s
// RUN: weft-opt %s | weft-opt | filecheck %s
// RUN: weft-opt %s | xdsl-opt | filecheck %s
// The custom forms round-trip, here and through stock xDSL; result types that are left out are inferred.

// CHECK-LABEL: func.func @operators(%x: tensor<?x4xf32, #graph.dims<n>>, %b: tensor<4xf32>)
func.func @operators(%x: tensor<?x4xf32, #graph.dims<n>>, %b: tensor<4xf32>) -> tensor<4x?xf32, #graph.dims<n>> {
  // CHECK-NEXT: %[[W:\w+]] = graph.constant dense<[[1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  // CHECK-NEXT: %[[H:\w+]] = graph.constant dense<[1.000000e+00, -2.000000e+00]> : tensor<2xf32>
  %h = graph.constant dense<"0x0000803F000000C0"> : tensor<2xf32>
  // CHECK-NEXT: %[[S:\w+]] = graph.add %x, %b : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32> -> tensor<?x4xf32, #graph.dims<n>>
  %s = graph.add %x, %b : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>
  // CHECK-NEXT: %[[D:\w+]] = graph.subtract %[[S]], %x : {{.*}} -> tensor<?x4xf32, #graph.dims<n>>
  %d = graph.subtract %s, %x : tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[M:\w+]] = graph.multiply %[[D]], %x {note = "kept"} :
  %m = graph.multiply %d, %x {note = "kept"} : tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[Q:\w+]] = graph.divide %[[M]], %b : {{.*}} -> tensor<?x4xf32>
  %q = graph.divide %m, %b : tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK-NEXT: %[[T:\w+]] = graph.transpose %[[M]] : tensor<?x4xf32, #graph.dims<n>> -> tensor<4x?xf32, #graph.dims<n>>
  %t = graph.transpose %m : tensor<?x4xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[P:\w+]] = graph.transpose %[[M]] {axes = array<i64: -1, 0>} : {{.*}} -> tensor<4x?xf32, #graph.dims<n>>
  %p = graph.transpose %m {axes = array<i64: -1, 0>} : tensor<?x4xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[MX:\w+]] = graph.maximum %[[T]], %[[P]] : {{.*}} -> tensor<4x?xf32, #graph.dims<n>>
  %mx = graph.maximum %t, %p : tensor<4x?xf32, #graph.dims<n>>, tensor<4x?xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[MN:\w+]] = graph.minimum %[[MX]], %[[P]] : {{.*}} -> tensor<4x?xf32, #graph.dims<n>>
  %mn = graph.minimum %mx, %p : tensor<4x?xf32, #graph.dims<n>>, tensor<4x?xf32, #graph.dims<n>>
  // CHECK-NEXT: %[[R:\w+]] = graph.relu %[[MN]] : tensor<4x?xf32, #graph.dims<n>> -> tensor<4x?xf32, #graph.dims<n>>
  %r = graph.relu %mn : tensor<4x?xf32, #graph.dims<n>>
  func.return %r : tensor<4x?xf32, #graph.dims<n>>
}

// Matrix products: batches broadcast, rank 1 is a row or a column.
// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<5x1x2x3xf32>, %b: tensor<?x3x4xf32, #graph.dims<b>>, %v: tensor<3xf32>) {
  // CHECK: graph.matmul %a, %b : {{.*}} -> tensor<5x?x2x4xf32, #graph.dims<b>>
  %ab = graph.matmul %a, %b : tensor<5x1x2x3xf32>, tensor<?x3x4xf32, #graph.dims<b>>
  // CHECK: graph.matmul %a, %v : {{.*}} -> tensor<5x1x2xf32>
  %av = graph.matmul %a, %v : tensor<5x1x2x3xf32>, tensor<3xf32>
  // CHECK: graph.matmul %v, %b : {{.*}} -> tensor<?x4xf32, #graph.dims<b>>
  %vb = graph.matmul %v, %b : tensor<3xf32>, tensor<?x3x4xf32, #graph.dims<b>>
  // CHECK: graph.matmul %v, %v : {{.*}} -> tensor<f32>
  %vv = graph.matmul %v, %v : tensor<3xf32>, tensor<3xf32>
  func.return
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-NEXT: %[[Y:\w+]], %[[Z:\w+]] = graph.dataflow -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %y, %z = graph.dataflow -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    // CHECK-NEXT: %[[C:\w+]] = graph.call_tir @copy(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %c = graph.call_tir @copy(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    // CHECK-NEXT: graph.call_tir @iota() extents <n, 2 * n> : () -> tensor<?xf32, #graph.dims<n>>
    %iota = graph.call_tir @iota() extents <n, 2 * n> : () -> tensor<?xf32, #graph.dims<n>>
    // CHECK-NEXT: %a, %b = graph.call_dps "env.split"(%[[C]]) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %a, %b = graph.call_dps "env.split"(%c) : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    // CHECK-NEXT: %[[T:\w+]] = graph.make_tuple %a, %b : tuple<tensor<2x4xf32>, tensor<2x4xf32>>
    %t = graph.make_tuple %a, %b : tuple<tensor<2x4xf32>, tensor<2x4xf32>>
    // CHECK-NEXT: %[[G:\w+]] = graph.tuple_get %[[T]][1] : tuple<tensor<2x4xf32>, tensor<2x4xf32>>
    %g = graph.tuple_get %t[1] : tuple<tensor<2x4xf32>, tensor<2x4xf32>>
    // CHECK-NEXT: graph.output %a, %[[G]] : tensor<2x4xf32>, tensor<2x4xf32>
    graph.output %a, %g : tensor<2x4xf32>, tensor<2x4xf32>
  }
  // CHECK: graph.dataflow -> tensor<2x4xf32> attributes {note = 1 : i64} {
  %w = graph.dataflow -> tensor<2x4xf32> attributes {note = 1} {
    graph.output %y : tensor<2x4xf32>
  }
  func.return %w, %z : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func private @copy(%A: memref<?x4xf32>, %B: memref<?x4xf32>)

// Extents are expressions in a normal form: equal ones print alike.
// CHECK-LABEL: func.func @extents
func.func @extents(
    // CHECK-SAME: tensor<?x?xf32, #graph.dims<n, 2 * n + 1>>
    %a: tensor<?x?xf32, #graph.dims<n, 1 + n * 2>>,
    // CHECK-SAME: tensor<?x8x?xf32, #graph.dims<m * n - m, ?>>
    %b: tensor<?x8x?xf32, #graph.dims<m * (n - 1), ?>>,
    // CHECK-SAME: tensor<?x?xf32, #graph.dims<((n + 1) floordiv 2) + m, m mod 4>>
    %c: tensor<?x?xf32, #graph.dims<(2 * m + n + 1) floordiv 2, (4 * n + m) mod 4>>,
    // CHECK-SAME: tensor<?xf32>)
    %d: tensor<?xf32>) {
  func.return
}
func.func private @iota(index, index) -> tensor<?xf32>
