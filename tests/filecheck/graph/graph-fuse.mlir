// RUN: weft-opt %s -p graph-infer-types,graph-fuse --validate --split-input-file --verify-diagnostics | filecheck %s

// A product with bias, activation and residual. A constant of one number moves in, others are operands.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %w = graph.constant
// CHECK-NEXT:    %y = graph.call_tir @fused_matmul_add_relu_multiply_add(%x, %w, %b, %r) : (tensor<?x4xf32, #graph.dims<n>>,
// CHECK-NEXT:    func.return %y
// CHECK:       func.func private @fused_matmul_add_relu_multiply_add(%x: tensor<?x4xf32, #graph.dims<s0>>, %w: tensor<4x2xf32>,
// CHECK-SAME:    %b: tensor<2xf32>, %r: tensor<?x2xf32, #graph.dims<s0>>) -> tensor<?x2xf32, #graph.dims<s0>> attributes {graph.fused} {
// CHECK-NEXT:    %two = graph.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT:    %h = graph.matmul %x, %w
// CHECK-NEXT:    %s = graph.add %h, %b
// CHECK-NEXT:    %a = graph.relu %s
// CHECK-NEXT:    %m = graph.multiply %a, %two
// CHECK-NEXT:    %y = graph.add %m, %r
// CHECK-NEXT:    func.return %y
func.func @main(%x: tensor<?x4xf32, #graph.dims<n>>, %b: tensor<2xf32>, %r: tensor<?x2xf32, #graph.dims<n>>) -> tensor<?x?xf32> {
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %two = graph.constant dense<2.0> : tensor<f32>
  %h = graph.matmul %x, %w : tensor<?x4xf32, #graph.dims<n>>, tensor<4x2xf32>
  %s = graph.add %h, %b : tensor<?x2xf32, #graph.dims<n>>, tensor<2xf32>
  %a = graph.relu %s : tensor<?x2xf32, #graph.dims<n>>
  %m = graph.multiply %a, %two : tensor<?x2xf32, #graph.dims<n>>, tensor<f32>
  %y = graph.add %m, %r : tensor<?x2xf32, #graph.dims<n>>, tensor<?x2xf32, #graph.dims<n>> -> tensor<?x?xf32>
  func.return %y : tensor<?x?xf32>
}

// -----

// Equal groups share a function, whatever their extents are called. A value with users in two groups stands alone, and
// an operand that is used twice is passed once.
// CHECK-LABEL: func.func @share
// CHECK-NEXT:    %h = graph.exp %x
// CHECK-NEXT:    %a = graph.call_tir @fused_matmul_relu(%h, %w)
// CHECK-NEXT:    %b = graph.call_tir @fused_matmul_relu(%y, %w)
// CHECK-NEXT:    %c = graph.matmul %h, %w
// CHECK-NEXT:    %f = graph.call_tir @fused_multiply_abs(%x) :
// CHECK-NEXT:    func.return
// CHECK:       func.func private @fused_matmul_relu
// CHECK:       func.func private @fused_multiply_abs
// CHECK-NOT:   func.func
func.func @share(%x: tensor<?x4xf32, #graph.dims<n>>, %y: tensor<?x4xf32, #graph.dims<m>>, %w: tensor<4x2xf32>)
    -> (tensor<?x2xf32, #graph.dims<n>>, tensor<?x2xf32, #graph.dims<m>>, tensor<?x2xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>) {
  %h = graph.exp %x : tensor<?x4xf32, #graph.dims<n>>
  %p = graph.matmul %h, %w : tensor<?x4xf32, #graph.dims<n>>, tensor<4x2xf32>
  %a = graph.relu %p : tensor<?x2xf32, #graph.dims<n>>
  %q = graph.matmul %y, %w : tensor<?x4xf32, #graph.dims<m>>, tensor<4x2xf32>
  %b = graph.relu %q : tensor<?x2xf32, #graph.dims<m>>
  %c = graph.matmul %h, %w : tensor<?x4xf32, #graph.dims<n>>, tensor<4x2xf32>
  %e = graph.multiply %x, %x : tensor<?x4xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
  %f = graph.abs %e : tensor<?x4xf32, #graph.dims<n>>
  func.return %a, %b, %c, %f : tensor<?x2xf32, #graph.dims<n>>, tensor<?x2xf32, #graph.dims<m>>, tensor<?x2xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
}

// -----

// A diamond is one group; a value that is returned as well is computed by its own.
// CHECK-LABEL: func.func @diamond
// CHECK-NEXT:    %p = graph.call_tir @fused_matmul_sigmoid_multiply(%x, %w)
// CHECK-NEXT:    %q = graph.call_tir @fused_tanh_add(%p, %x)
// CHECK-NEXT:    func.return %p, %q
func.func @diamond(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %h = graph.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32>
  %s = graph.sigmoid %h : tensor<4x4xf32>
  %p = graph.multiply %h, %s : tensor<4x4xf32>, tensor<4x4xf32>
  %t = graph.tanh %p : tensor<4x4xf32>
  %q = graph.add %t, %x : tensor<4x4xf32>, tensor<4x4xf32>
  func.return %p, %q : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// One contraction a group: the sum belongs to the last one. What reads at other places is no epilogue, but the producer
// of an operand, which the product lays out anyway.
// CHECK-LABEL: func.func @contractions
// CHECK-NEXT:    %p = graph.matmul %x, %w
// CHECK-NEXT:    %s = graph.call_tir @fused_matmul_add(%x, %v, %p)
// CHECK-NEXT:    %m = graph.call_tir @fused_transpose_matmul(%s, %w)
// CHECK-NEXT:    func.return %m
func.func @contractions(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %p = graph.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32>
  %q = graph.matmul %x, %v : tensor<4x4xf32>, tensor<4x4xf32>
  %s = graph.add %p, %q : tensor<4x4xf32>, tensor<4x4xf32>
  %t = graph.transpose %s : tensor<4x4xf32>
  %m = graph.matmul %t, %w : tensor<4x4xf32>, tensor<4x4xf32>
  func.return %m : tensor<4x4xf32>
}

// -----

// The result of a product of vectors is repeated in the sum: no epilogue either.
// CHECK-LABEL: func.func @repeated
// CHECK-NEXT:    %p = graph.matmul %w, %v
// CHECK-NEXT:    %s = graph.call_tir @fused_add_relu(%x, %p)
func.func @repeated(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<4x4xf32> {
  %p = graph.matmul %w, %v : tensor<4x4xf32>, tensor<4xf32>
  %a = graph.add %x, %p : tensor<4x4xf32>, tensor<4xf32>
  %s = graph.relu %a : tensor<4x4xf32>
  func.return %s : tensor<4x4xf32>
}

// -----

// A convolution with scale, shift, residual and activation.
// CHECK-LABEL: func.func @convolution
// CHECK-NEXT:    graph.call_tir @fused_conv2d_multiply_add_add_relu(%x, %w, %scale, %shift)
// CHECK-NEXT:    func.return
func.func @convolution(%x: tensor<1x8x6x6xf32>, %w: tensor<8x8x3x3xf32>, %scale: tensor<8x1x1xf32>, %shift: tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32> {
  %c = graph.conv2d %x, %w {padding = 1} : tensor<1x8x6x6xf32>, tensor<8x8x3x3xf32>
  %m = graph.multiply %c, %scale : tensor<1x8x6x6xf32>, tensor<8x1x1xf32>
  %a = graph.add %m, %shift : tensor<1x8x6x6xf32>, tensor<8x1x1xf32>
  %r = graph.add %a, %x : tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>
  %y = graph.relu %r : tensor<1x8x6x6xf32>
  func.return %y : tensor<1x8x6x6xf32>
}

// -----

// Reductions over rows take what stands before and behind them, and other reductions of the same rows: a norm of its
// parts is one group with the softmax before it.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    graph.call_tir @fused_add_softmax_multiply_mean_subtract_and_5_more(%x, %mask)
// CHECK-NEXT:    func.return
func.func @rows(%x: tensor<4x8xf32>, %mask: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = graph.add %x, %mask : tensor<4x8xf32>, tensor<4x8xf32>
  %b = graph.softmax %a : tensor<4x8xf32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %s = graph.multiply %b, %half : tensor<4x8xf32>, tensor<f32>
  %mean = graph.mean %s {axis = -1, keepdims = true} : tensor<4x8xf32>
  %d = graph.subtract %s, %mean : tensor<4x8xf32>, tensor<4x1xf32>
  %q = graph.square %d : tensor<4x8xf32>
  %v = graph.mean %q {axis = -1, keepdims = true} : tensor<4x8xf32>
  %e = graph.add %v, %half : tensor<4x1xf32>, tensor<f32>
  %r = graph.rsqrt %e : tensor<4x1xf32>
  %y = graph.multiply %d, %r : tensor<4x8xf32>, tensor<4x1xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// Transposes and slices join their readers. Reshapes do so between others only: at the ends they are views.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %a = graph.reshape %x
// CHECK-NEXT:    %d = graph.call_tir @fused_exp_reshape_transpose_add(%a, %y)
// CHECK-NEXT:    %e = graph.reshape %d
// CHECK-NEXT:    func.return %e
func.func @views(%x: tensor<24xf32>, %y: tensor<6x4xf32>) -> tensor<2x12xf32> {
  %a = graph.reshape %x {newshape = #graph.dims<2, 12>} : tensor<24xf32>
  %b = graph.exp %a : tensor<2x12xf32>
  %c = graph.reshape %b {newshape = #graph.dims<4, 6>} : tensor<2x12xf32>
  %t = graph.transpose %c : tensor<4x6xf32>
  %d = graph.add %t, %y : tensor<6x4xf32>, tensor<6x4xf32>
  %e = graph.reshape %d {newshape = #graph.dims<2, 12>} : tensor<6x4xf32>
  func.return %e : tensor<2x12xf32>
}

// -----

// An operator of several results joins where one group uses all of them, and is the root where several do.
// CHECK-LABEL: func.func @several
// CHECK-NEXT:    %g = graph.call_tir @fused_split_sigmoid_multiply(%x)
// CHECK-NEXT:    %p, %q = graph.call_tir @fused_abs_split(%g) : (tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>)
// CHECK-NEXT:    %m = graph.matmul %p, %p
// CHECK-NEXT:    %n = graph.matmul %m, %q
// CHECK-NEXT:    func.return
func.func @several(%x: tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
  %a, %b = graph.split %x {indices_or_sections = 2, axis = 1} : tensor<4x8xf32>
  %s = graph.sigmoid %b : tensor<4x4xf32>
  %g = graph.multiply %a, %s : tensor<4x4xf32>, tensor<4x4xf32>
  %h = graph.abs %g : tensor<4x4xf32>
  %p, %q = graph.split %h {indices_or_sections = 2, axis = 1} : tensor<4x4xf32>
  %m = graph.matmul %p, %p {transpose_b = true} : tensor<4x2xf32>, tensor<4x2xf32>
  %n = graph.matmul %m, %q : tensor<4x4xf32>, tensor<4x2xf32>
  func.return %g, %p, %n : tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>
}

// -----

// Values that leave a dataflow region are used outside of its groups, and calls are no members.
// CHECK-LABEL: func.func @dataflow
// CHECK:         %h = graph.call_tir @fused_exp_abs(%x)
// CHECK-NEXT:    %c = graph.call_dps "env.f"(%h)
// CHECK-NEXT:    %n = graph.call_tir @fused_negative_exp(%c)
// CHECK-NEXT:    graph.output %n
// CHECK:         graph.call_tir @fused_add_abs
func.func @dataflow(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.dataflow -> tensor<4xf32> {
    %e = graph.exp %x : tensor<4xf32>
    %h = graph.abs %e : tensor<4xf32>
    %c = graph.call_dps "env.f"(%h) : (tensor<4xf32>) -> tensor<4xf32>
    %m = graph.negative %c : tensor<4xf32>
    %n = graph.exp %m : tensor<4xf32>
    graph.output %n : tensor<4xf32>
  }
  %a = graph.add %y, %y : tensor<4xf32>, tensor<4xf32>
  %b = graph.abs %a : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

// A call of a tensor expression is a member like an operator, where the shapes that it assumes are those of the call.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    %b = graph.call_tir @fused_exp_sum_abs(%x, %y)
// CHECK-NEXT:    %c = graph.call_tir @sum(%x, %z)
// CHECK-NEXT:    %d = graph.negative %c
// CHECK-NEXT:    %e = graph.call_tir @loops(%d)
// CHECK-NEXT:    %f = graph.abs %e
func.func @calls(%x: tensor<?xf32, #graph.dims<n>>, %y: tensor<?xf32, #graph.dims<n>>, %z: tensor<?xf32, #graph.dims<m>>)
    -> (tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>) {
  %h = graph.exp %x : tensor<?xf32, #graph.dims<n>>
  %a = graph.call_tir @sum(%h, %y) : (tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>>
  %b = graph.abs %a : tensor<?xf32, #graph.dims<n>>
  %c = graph.call_tir @sum(%x, %z) : (tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<m>>) -> tensor<?xf32, #graph.dims<n>>
  %d = graph.negative %c : tensor<?xf32, #graph.dims<n>>
  %e = graph.call_tir @loops(%d) : (tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<n>>
  %f = graph.abs %e : tensor<?xf32, #graph.dims<n>>
  func.return %b, %f : tensor<?xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<n>>
}
func.func private @sum(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  te.assume_shape %b[%n] : tensor<?xf32>
  %s = te.compute "s" (%i in %n) : tensor<?xf32> {
    %u = tensor.extract %a[%i] : tensor<?xf32>
    %v = tensor.extract %b[%i] : tensor<?xf32>
    %w = arith.addf %u, %v : f32
    te.yield %w : f32
  }
  func.return %s : tensor<?xf32>
}
func.func private @loops(%a: memref<?xf32>, %b: memref<?xf32>)

// -----

// Rows of two symbolic axes are copied in the order of the product, whose rows are then those of one matrix. A squeeze
// is a view of its own.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT:    %t = graph.transpose %x
// CHECK-NEXT:    %p = graph.dense %t, %w
// CHECK-NEXT:    %s = graph.squeeze %y
// CHECK-NEXT:    %q = graph.dense %s, %w
func.func @rows(%x: tensor<?x?x4xf32, #graph.dims<b, t>>, %y: tensor<?x1x?x4xf32, #graph.dims<b, t>>, %w: tensor<8x4xf32>) -> (tensor<?x?x8xf32, #graph.dims<t, b>>, tensor<?x?x8xf32, #graph.dims<b, t>>) {
  %t = graph.transpose %x {axes = [1, 0, 2]} : tensor<?x?x4xf32, #graph.dims<b, t>>
  %p = graph.dense %t, %w : tensor<?x?x4xf32, #graph.dims<t, b>>, tensor<8x4xf32>
  %s = graph.squeeze %y {axis = [1]} : tensor<?x1x?x4xf32, #graph.dims<b, t>>
  %q = graph.dense %s, %w : tensor<?x?x4xf32, #graph.dims<b, t>>, tensor<8x4xf32>
  func.return %p, %q : tensor<?x?x8xf32, #graph.dims<t, b>>, tensor<?x?x8xf32, #graph.dims<b, t>>
}
