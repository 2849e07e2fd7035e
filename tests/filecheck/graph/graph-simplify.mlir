// RUN: weft-opt %s -p graph-simplify --split-input-file --validate | filecheck %s

// Transposes and reshapes join or cancel.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %[[R:\w+]] = graph.reshape %x {newshape = #graph.dims<4, 6>}
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %x {axes = [2 : i64, 0 : i64, 1 : i64]}
// CHECK-NEXT:    func.return %x, %[[R]], %[[T]], %x
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>) {
  %a = graph.transpose %x {axes = array<i64: 1, 0, 2>} : tensor<2x3x4xf32>
  %b = graph.transpose %a {axes = array<i64: 1, 0, 2>} : tensor<3x2x4xf32>
  %c = graph.flatten %x : tensor<2x3x4xf32>
  %d = graph.reshape %c {newshape = #graph.dims<4, 6>} : tensor<24xf32>
  %e = graph.transpose %a {axes = array<i64: 2, 1, 0>} : tensor<3x2x4xf32>
  %f = graph.expand_dims %x {axis = 0} : tensor<2x3x4xf32>
  %g = graph.squeeze %f {axis = 0} : tensor<1x2x3x4xf32>
  func.return %b, %d, %e, %g : tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>
}

// -----

// Symbolic extents stay what they are.
// CHECK-LABEL: func.func @symbolic
// CHECK-NEXT:    %[[R:\w+]] = graph.reshape %x {newshape = #graph.dims<8 * n, 1>}
// CHECK-NEXT:    func.return %[[R]]
func.func @symbolic(%x: tensor<?x8xf32, #graph.dims<n>>) -> tensor<?x1xf32, #graph.dims<8 * n>> {
  %a = graph.flatten %x : tensor<?x8xf32, #graph.dims<n>>
  %b = graph.expand_dims %a {axis = 1} : tensor<?xf32, #graph.dims<8 * n>>
  func.return %b : tensor<?x1xf32, #graph.dims<8 * n>>
}

// -----

// Neutral elements go where that is exact: x + 0.0 is 0.0 for -0.0, and x - -0.0 too.
// CHECK-LABEL: func.func @neutral
// CHECK:         %[[A:\w+]] = graph.add %x, %
// CHECK-NEXT:    %[[S:\w+]] = graph.subtract %x, %
// CHECK-NEXT:    func.return %x, %[[A]], %[[S]], %x, %i
func.func @neutral(%x: tensor<3xf32>, %i: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi32>) {
  %one = graph.constant dense<1.0> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<3xf32>
  %minus = graph.constant dense<-0.0> : tensor<f32>
  %none = graph.constant dense<0> : tensor<i32>
  %a = graph.multiply %one, %x : tensor<f32>, tensor<3xf32>
  %b = graph.add %x, %zero : tensor<3xf32>, tensor<3xf32>
  %c = graph.subtract %x, %minus : tensor<3xf32>, tensor<f32>
  %d = graph.subtract %x, %zero : tensor<3xf32>, tensor<3xf32>
  %e = graph.divide %d, %one : tensor<3xf32>, tensor<f32>
  %f = graph.add %i, %none : tensor<3xi32>, tensor<i32>
  func.return %a, %b, %c, %e, %f : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi32>
}

// -----

// Casts there and back go where the first lost nothing. A constant that broadcasts is needed.
// CHECK-LABEL: func.func @casts
// CHECK:         graph.cast %y {dtype = "float16"}
// CHECK-NEXT:    graph.cast
// CHECK:         %[[W:\w+]] = graph.multiply
// CHECK-NEXT:    func.return %x, %{{.*}}, %[[W]]
func.func @casts(%x: tensor<3xf16>, %y: tensor<3xf32>) -> (tensor<3xf16>, tensor<3xf32>, tensor<2x3xf32>) {
  %a = graph.cast %x {dtype = "float32"} : tensor<3xf16>
  %b = graph.cast %a {dtype = "float16"} : tensor<3xf32>
  %c = graph.cast %y {dtype = "float16"} : tensor<3xf32>
  %d = graph.cast %c {dtype = "float32"} : tensor<3xf16>
  %one = graph.constant dense<1.0> : tensor<2x1xf32>
  %e = graph.multiply %y, %one : tensor<3xf32>, tensor<2x1xf32>
  func.return %b, %d, %e : tensor<3xf16>, tensor<3xf32>, tensor<2x3xf32>
}

// -----

// Equal ops are computed once, across the border of a region too; what nothing uses goes.
// CHECK-LABEL: func.func @equal
// CHECK-NEXT:    %[[A:\w+]] = graph.exp %x
// CHECK-NEXT:    %[[Y:\w+]] = graph.dataflow
// CHECK-NEXT:      %[[S:\w+]] = graph.add %[[A]], %[[A]]
// CHECK-NEXT:      graph.output %[[S]]
func.func @equal(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %a = graph.exp %x : tensor<3xf32>
  %y = graph.dataflow -> tensor<3xf32> {
    %b = graph.exp %x : tensor<3xf32>
    %c = graph.add %a, %b : tensor<3xf32>, tensor<3xf32>
    %unused = graph.log %b : tensor<3xf32>
    graph.output %c : tensor<3xf32>
  }
  %r = graph.relu %y : tensor<3xf32>
  %s = graph.relu %r : tensor<3xf32>
  %m = graph.negative %s : tensor<3xf32>
  %n = graph.negative %m : tensor<3xf32>
  func.return %y, %n : tensor<3xf32>, tensor<3xf32>
}

// -----

// Rounding to tenths, and to integers after that, are two operators; either one is idempotent.
// CHECK-LABEL: func.func @rounded
// CHECK-NEXT:    %[[A:\w+]] = graph.round %x {decimals = 1 : i64}
// CHECK-NEXT:    %[[B:\w+]] = graph.round %[[A]] : tensor<3xf32>
// CHECK-NEXT:    func.return %[[B]]
func.func @rounded(%x: tensor<3xf32>) -> tensor<3xf32> {
  %a = graph.round %x {decimals = 1 : i64} : tensor<3xf32>
  %b = graph.round %a {decimals = 1 : i64} : tensor<3xf32>
  %c = graph.round %b : tensor<3xf32>
  %d = graph.round %c : tensor<3xf32>
  func.return %d : tensor<3xf32>
}
