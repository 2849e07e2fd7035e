// RUN: weft-opt %s -p graph-rewrite --split-input-file --validate | filecheck %s

// gelu in its spellings: constants in any order, quotients, the cube as a power or as a product.
// CHECK-LABEL: func.func @gelu
// CHECK-NEXT:    %[[A:\w+]] = graph.gelu %x {approximate = "none"}
// CHECK-NEXT:    %[[B:\w+]] = graph.gelu %x {approximate = "none"}
// CHECK-NEXT:    %[[C:\w+]] = graph.gelu %x {approximate = "tanh"}
// CHECK-NEXT:    %[[D:\w+]] = graph.gelu %x {approximate = "tanh"}
// CHECK-NEXT:    func.return %[[A]], %[[B]], %[[C]], %[[D]]
!t = tensor<?x4xf32, #graph.dims<n>>
func.func @gelu(%x: !t) -> (!t, !t, !t, !t) {
  %half = graph.constant dense<0.5> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<1xf32>
  %three = graph.constant dense<3.0> : tensor<f32>
  %root2 = graph.constant dense<1.41421356> : tensor<f32>
  %root_half = graph.constant dense<0.70710678> : tensor<f32>
  %cubic = graph.constant dense<0.044715> : tensor<f32>
  %root = graph.constant dense<0.7978845608> : tensor<f32>
  %a0 = graph.divide %x, %root2 : !t, tensor<f32>
  %a1 = graph.erf %a0 : !t
  %a2 = graph.add %a1, %one : !t, tensor<1xf32>
  %a3 = graph.multiply %x, %a2 : !t, !t
  %a = graph.multiply %half, %a3 : tensor<f32>, !t
  %b0 = graph.multiply %root_half, %x : tensor<f32>, !t
  %b1 = graph.erf %b0 : !t
  %b2 = graph.multiply %b1, %half : !t, tensor<f32>
  %b3 = graph.add %b2, %half : !t, tensor<f32>
  %b = graph.multiply %b3, %x : !t, !t
  %c0 = graph.power %x, %three : !t, tensor<f32>
  %c1 = graph.multiply %c0, %cubic : !t, tensor<f32>
  %c2 = graph.add %x, %c1 : !t, !t
  %c3 = graph.multiply %c2, %root : !t, tensor<f32>
  %c4 = graph.tanh %c3 : !t
  %c5 = graph.add %c4, %one : !t, tensor<1xf32>
  %c6 = graph.multiply %x, %half : !t, tensor<f32>
  %c = graph.multiply %c6, %c5 : !t, !t
  %d0 = graph.multiply %x, %cubic : !t, tensor<f32>
  %d1 = graph.multiply %d0, %x : !t, !t
  %d2 = graph.add %d1, %one : !t, tensor<1xf32>
  %d3 = graph.multiply %x, %root : !t, tensor<f32>
  %d4 = graph.multiply %d3, %d2 : !t, !t
  %d5 = graph.tanh %d4 : !t
  %d6 = graph.add %d5, %one : !t, tensor<1xf32>
  %d7 = graph.multiply %d6, %x : !t, !t
  %d = graph.multiply %d7, %half : !t, tensor<f32>
  func.return %a, %b, %c, %d : !t, !t, !t, !t
}

// -----

// No gelu: another constant, another value in a place, a step that has another user, a constant that broadcasts.
// CHECK-LABEL: func.func @no_gelu
// CHECK-NOT:     graph.gelu
!t = tensor<1x4xf32>
func.func @no_gelu(%x: !t, %z: !t) -> (!t, !t, !t, !t, tensor<2x4xf32>) {
  %half = graph.constant dense<0.5> : tensor<f32>
  %halves = graph.constant dense<0.5> : tensor<2x1xf32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %other = graph.constant dense<0.7071> : tensor<f32>
  %root_half = graph.constant dense<0.70710678> : tensor<f32>
  %a0 = graph.multiply %x, %other : !t, tensor<f32>
  %a1 = graph.erf %a0 : !t
  %a2 = graph.add %a1, %one : !t, tensor<f32>
  %a3 = graph.multiply %x, %a2 : !t, !t
  %a = graph.multiply %a3, %half : !t, tensor<f32>
  %b0 = graph.multiply %x, %root_half : !t, tensor<f32>
  %b1 = graph.erf %b0 : !t
  %b2 = graph.add %b1, %one : !t, tensor<f32>
  %b3 = graph.multiply %z, %b2 : !t, !t
  %b = graph.multiply %b3, %half : !t, tensor<f32>
  %c3 = graph.multiply %x, %b2 : !t, !t
  %c = graph.multiply %c3, %half : !t, tensor<f32>
  %e = graph.multiply %c3, %halves : !t, tensor<2x1xf32>
  func.return %a, %b, %c, %b1, %e : !t, !t, !t, !t, tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @activations
// CHECK-NEXT:    %[[A:\w+]] = graph.silu %x
// CHECK-NEXT:    %[[B:\w+]] = graph.silu %x
// CHECK-NEXT:    %[[C:\w+]] = graph.softplus %x
// CHECK-NEXT:    %[[D:\w+]] = graph.mish %x
// CHECK-NEXT:    %[[E:\w+]] = graph.hardswish %x
// CHECK-NEXT:    %[[F:\w+]] = graph.hardswish %x
// CHECK-NEXT:    %[[G:\w+]] = graph.relu %x
// CHECK-NEXT:    %[[H:\w+]] = graph.hardsigmoid %x
// CHECK-NEXT:    func.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]], %[[G]], %[[H]]
!t = tensor<?x4xf32, #graph.dims<n>>
func.func @activations(%x: !t) -> (!t, !t, !t, !t, !t, !t, !t, !t) {
  %zero = graph.constant dense<0.0> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %three = graph.constant dense<3.0> : tensor<f32>
  %six = graph.constant dense<6.0> : tensor<f32>
  %sixth = graph.constant dense<0.16666667> : tensor<f32>
  %half = graph.constant dense<0.5> : tensor<f32>
  %minus = graph.negative %x : !t
  %power = graph.exp %minus : !t
  %below = graph.add %one, %power : tensor<f32>, !t
  %sigmoid = graph.divide %one, %below : tensor<f32>, !t
  %a = graph.multiply %x, %sigmoid : !t, !t
  %m = graph.negative %x : !t
  %p = graph.exp %m : !t
  %q = graph.add %p, %one : !t, tensor<f32>
  %b = graph.divide %x, %q : !t, !t
  %c0 = graph.exp %x : !t
  %c1 = graph.add %c0, %one : !t, tensor<f32>
  %c = graph.log %c1 : !t
  %d0 = graph.exp %x : !t
  %d1 = graph.log1p %d0 : !t
  %d2 = graph.tanh %d1 : !t
  %d = graph.multiply %d2, %x : !t, !t
  %e0 = graph.add %x, %three : !t, tensor<f32>
  %e1 = graph.clip %e0 {a_min = 0.0, a_max = 6.0} : !t
  %e2 = graph.divide %e1, %six : !t, tensor<f32>
  %e = graph.multiply %x, %e2 : !t, !t
  %f0 = graph.add %x, %three : !t, tensor<f32>
  %f1 = graph.maximum %zero, %f0 : tensor<f32>, !t
  %f2 = graph.minimum %f1, %six : !t, tensor<f32>
  %f3 = graph.multiply %f2, %x : !t, !t
  %f = graph.multiply %f3, %sixth : !t, tensor<f32>
  %g = graph.maximum %x, %zero : !t, tensor<f32>
  %h0 = graph.multiply %x, %sixth : !t, tensor<f32>
  %h1 = graph.add %h0, %half : !t, tensor<f32>
  %h = graph.clip %h1 {a_min = 0.0, a_max = 1.0} : !t
  func.return %a, %b, %c, %d, %e, %f, %g, %h : !t, !t, !t, !t, !t, !t, !t, !t
}

// -----

// A norm takes the scale and the shift behind it; the mean may be a sum and a quotient, the variance an operator.
// CHECK-LABEL: func.func @layer_norm
// CHECK-NEXT:    %[[B:\w+]] = graph.reshape %b {newshape = #graph.dims<4>}
// CHECK-NEXT:    %[[N:\w+]] = graph.layer_norm %x, %g, %[[B]] {axis = 1 : i64, epsilon = 1.0{{[0-9e.+-]*}} : f64}
// CHECK-NEXT:    %[[M:\w+]] = graph.layer_norm %x {axis = 1 : i64, epsilon = 0.000000e+00 : f64}
// CHECK-NEXT:    func.return %[[N]], %[[M]]
!t = tensor<?x4xf32, #graph.dims<n>>
!s = tensor<?x1xf32, #graph.dims<n>>
func.func @layer_norm(%x: !t, %g: tensor<4xf32>, %b: tensor<1x4xf32>) -> (!t, !t) {
  %two = graph.constant dense<2.0> : tensor<f32>
  %four = graph.constant dense<4.0> : tensor<f32>
  %epsilon = graph.constant dense<1.0> : tensor<f32>
  %m0 = graph.sum %x {axis = -1, keepdims = true} : !t
  %m = graph.divide %m0, %four : !s, tensor<f32>
  %d = graph.subtract %x, %m : !t, !s
  %q = graph.power %d, %two : !t, tensor<f32>
  %v = graph.mean %q {axis = [1], keepdims = true} : !t
  %w = graph.add %epsilon, %v : tensor<f32>, !s
  %r = graph.rsqrt %w : !s
  %n = graph.multiply %r, %d : !s, !t
  %o = graph.multiply %g, %n : tensor<4xf32>, !t
  %p = graph.add %o, %b : !t, tensor<1x4xf32>
  %m1 = graph.mean %x {axis = -1, keepdims = true} : !t
  %d1 = graph.subtract %x, %m1 : !t, !s
  %v1 = graph.var %x {axis = -1, keepdims = true} : !t
  %s1 = graph.sqrt %v1 : !s
  %n1 = graph.divide %d1, %s1 : !t, !s
  func.return %p, %n1 : !t, !t
}

// -----

// No layer norm: another axis, another count, a deviation that has another user, a scale along another axis.
// CHECK-LABEL: func.func @no_layer_norm
// CHECK-NOT:     graph.layer_norm %x {
// CHECK:         graph.layer_norm %x :
// CHECK-NEXT:    graph.multiply
!t = tensor<4x4xf32>
!s = tensor<4x1xf32>
func.func @no_layer_norm(%x: !t, %g: tensor<4x1xf32>) -> (!t, !t, !t, !t) {
  %epsilon = graph.constant dense<1.0> : tensor<f32>
  %five = graph.constant dense<5.0> : tensor<f32>
  %m = graph.mean %x {axis = -1, keepdims = true} : !t
  %d = graph.subtract %x, %m : !t, !s
  %q = graph.square %d : !t
  %v = graph.mean %q {axis = 0, keepdims = true} : !t
  %r = graph.rsqrt %v : tensor<1x4xf32>
  %a = graph.multiply %d, %r : !t, tensor<1x4xf32>
  %t = graph.sum %q {axis = 1, keepdims = true} : !t
  %v1 = graph.divide %t, %five : !s, tensor<f32>
  %r1 = graph.rsqrt %v1 : !s
  %b = graph.multiply %d, %r1 : !t, !s
  %n = graph.layer_norm %x : !t
  %c = graph.multiply %n, %g : !t, tensor<4x1xf32>
  func.return %a, %b, %c, %d : !t, !t, !t, !t
}

// -----

// CHECK-LABEL: func.func @rms_norm
// CHECK-NEXT:    %[[N:\w+]] = graph.rms_norm %x, %w {axis = [1 : i64, 2 : i64], epsilon = 5.000000e-01 : f64}
// CHECK-NEXT:    func.return %[[N]]
func.func @rms_norm(%x: tensor<?x3x4xf32, #graph.dims<n>>, %w: tensor<3x4xf32>) -> tensor<?x3x4xf32, #graph.dims<n>> {
  %epsilon = graph.constant dense<0.5> : tensor<f32>
  %q = graph.multiply %x, %x : tensor<?x3x4xf32, #graph.dims<n>>, tensor<?x3x4xf32, #graph.dims<n>>
  %v = graph.mean %q {axis = [-1, -2], keepdims = true} : tensor<?x3x4xf32, #graph.dims<n>>
  %e = graph.add %v, %epsilon : tensor<?x1x1xf32, #graph.dims<n>>, tensor<f32>
  %s = graph.sqrt %e : tensor<?x1x1xf32, #graph.dims<n>>
  %n = graph.divide %x, %s : tensor<?x3x4xf32, #graph.dims<n>>, tensor<?x1x1xf32, #graph.dims<n>>
  %y = graph.multiply %w, %n : tensor<3x4xf32>, tensor<?x3x4xf32, #graph.dims<n>>
  func.return %y : tensor<?x3x4xf32, #graph.dims<n>>
}

// -----

// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    %[[A:\w+]] = graph.softmax %x {axis = 0 : i64}
// CHECK-NEXT:    %[[B:\w+]] = graph.log_softmax %x {axis = 1 : i64}
// CHECK-NEXT:    func.return %[[A]], %[[B]]
!t = tensor<3x?xf32, #graph.dims<n>>
func.func @softmax(%x: !t) -> (!t, !t) {
  %m = graph.max %x {axis = 0, keepdims = true} : !t
  %d = graph.subtract %x, %m : !t, tensor<1x?xf32, #graph.dims<n>>
  %e = graph.exp %d : !t
  %s = graph.sum %e {axis = 0, keepdims = true} : !t
  %a = graph.divide %e, %s : !t, tensor<1x?xf32, #graph.dims<n>>
  %f = graph.exp %x : !t
  %t = graph.sum %f {axis = 1, keepdims = true} : !t
  %g = graph.divide %f, %t : !t, tensor<3x1xf32>
  %b = graph.log %g : !t
  func.return %a, %b : !t, !t
}

// -----

// No softmax: the maximum along another axis, several axes, a power that has another user.
// CHECK-LABEL: func.func @no_softmax
// CHECK-NOT:     graph.softmax
!t = tensor<3x4xf32>
func.func @no_softmax(%x: !t) -> (!t, !t, !t, !t) {
  %m = graph.max %x {axis = 1, keepdims = true} : !t
  %d = graph.subtract %x, %m : !t, tensor<3x1xf32>
  %e = graph.exp %d : !t
  %s = graph.sum %e {axis = 0, keepdims = true} : !t
  %a = graph.divide %e, %s : !t, tensor<1x4xf32>
  %f = graph.exp %x : !t
  %t = graph.sum %f {keepdims = true} : !t
  %b = graph.divide %f, %t : !t, tensor<1x1xf32>
  %g = graph.exp %b : !t
  %u = graph.sum %g {axis = 1, keepdims = true} : !t
  %c = graph.divide %g, %u : !t, tensor<3x1xf32>
  func.return %a, %b, %c, %g : !t, !t, !t, !t
}

// -----

// Attention: a scale before or after the product, keys that are transposed, masks that are added or choose.
// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %[[A:\w+]] = graph.attention %q, %k, %v, %m {is_causal = false, scale = 5.000000e-01 : f64}
// CHECK-NEXT:    %[[B:\w+]] = graph.attention %q, %k, %v {is_causal = true, scale = 6.000000e+00 : f64}
// CHECK-NEXT:    %[[C:\w+]] = graph.attention %q, %k, %v, %c {is_causal = false, scale = 1.000000e+00 : f64}
// CHECK-NEXT:    func.return %[[A]], %[[B]], %[[C]]
!q = tensor<?x3x4xf32, #graph.dims<n>>
!k = tensor<?x4x3xf32, #graph.dims<n>>
!s = tensor<?x3x3xf32, #graph.dims<n>>
func.func @attention(%q: !q, %k: !q, %v: !q, %m: tensor<3x3xf32>, %c: tensor<3x3xi1>) -> (!q, !q, !q) {
  %two = graph.constant dense<2.0> : tensor<f32>
  %three = graph.constant dense<3.0> : tensor<f32>
  %low = graph.constant dense<0xFF800000> : tensor<f32>
  %causal = graph.constant dense<[[0.0, -1.0e9, -1.0e9], [0.0, 0.0, -1.0e9], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>
  %kt = graph.transpose %k {axes = [0, 2, 1]} : !q
  %a0 = graph.matmul %q, %kt : !q, !k
  %a1 = graph.divide %a0, %two : !s, tensor<f32>
  %a2 = graph.add %m, %a1 : tensor<3x3xf32>, !s
  %a3 = graph.softmax %a2 : !s
  %a = graph.matmul %a3, %v : !s, !q
  %b0 = graph.multiply %q, %two : !q, tensor<f32>
  %b1 = graph.multiply %k, %three : !q, tensor<f32>
  %b2 = graph.batch_matmul %b0, %b1 : !q, !q
  %b3 = graph.add %b2, %causal : !s, tensor<3x3xf32>
  %b4 = graph.softmax %b3 : !s
  %b = graph.batch_matmul %b4, %v {transpose_b = false} : !s, !q
  %c0 = graph.matmul %q, %k {transpose_b = true} : !q, !q
  %c1 = graph.where %c, %c0, %low : tensor<3x3xi1>, !s, tensor<f32>
  %c2 = graph.softmax %c1 {axis = 2} : !s
  %c3 = graph.matmul %c2, %v : !s, !q
  func.return %a, %b, %c3 : !q, !q, !q
}

// -----

// No attention: softmax along the queries, weights that are a result too, a product that is not of transposed keys.
// CHECK-LABEL: func.func @no_attention
// CHECK-NOT:     graph.attention
!q = tensor<2x3x3xf32>
func.func @no_attention(%q: !q, %k: !q, %v: !q) -> (!q, !q, !q, !q) {
  %a0 = graph.matmul %q, %k {transpose_b = true} : !q, !q
  %a1 = graph.softmax %a0 {axis = 1} : !q
  %a = graph.matmul %a1, %v : !q, !q
  %b0 = graph.matmul %k, %q {transpose_b = true} : !q, !q
  %b1 = graph.softmax %b0 : !q
  %b = graph.matmul %b1, %v : !q, !q
  %c0 = graph.matmul %v, %k : !q, !q
  %c1 = graph.softmax %c0 : !q
  %c = graph.matmul %c1, %v : !q, !q
  func.return %a, %b, %b1, %c : !q, !q, !q, !q
}

// -----

// No hardswish and no mish: the factor has another slope, the logarithm another base.
// CHECK-LABEL: func.func @other_parameters
// CHECK-NOT:     graph.hardswish
// CHECK-NOT:     graph.mish
func.func @other_parameters(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.hardsigmoid %x {alpha = 0.25} : tensor<4xf32>
  %a = graph.multiply %x, %0 : tensor<4xf32>, tensor<4xf32>
  %1 = graph.softplus %x {beta = 2.0} : tensor<4xf32>
  %2 = graph.tanh %1 : tensor<4xf32>
  %b = graph.multiply %x, %2 : tensor<4xf32>, tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
