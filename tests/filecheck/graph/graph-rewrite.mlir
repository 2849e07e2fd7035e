// RUN: weft-opt %s -p graph-rewrite --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-rewrite{rules=products,constants}' --split-input-file | filecheck %s --check-prefix=MERGED

// Scales and batch norms behind a product become part of its weights, what is added becomes one term.
// CHECK-LABEL: func.func @convolution
// CHECK-NEXT:    %w = graph.constant dense<{{\[\[\[\[}}2.{{0*(e\+00)?}}]], {{\[\[}}4.{{0*(e\+00)?}}]]], {{\[\[\[}}6.{{0*(e\+00)?}}]], {{\[\[}}8.{{0*(e\+00)?}}]]]]>
// CHECK-NEXT:    %c = graph.conv2d %x, %w
// CHECK-NEXT:    %[[B:\w+]] = graph.constant dense<{{\[\[\[}}3.{{.*}}]], {{\[\[}}-7.{{.*}}]]]> : tensor<2x1x1xf32>
// CHECK-NEXT:    %y = graph.add %c, %[[B]]
// CHECK-NEXT:    func.return %y
!t = tensor<?x2x5x5xf32, #graph.dims<n>>
func.func @convolution(%x: !t) -> !t {
  %w = graph.constant dense<[[[[1.0]],[[2.0]]],[[[3.0]],[[4.0]]]]> : tensor<2x2x1x1xf32>
  %bias = graph.constant dense<[[[0.5]], [[-1.0]]]> : tensor<2x1x1xf32>
  %gamma = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %beta = graph.constant dense<[2.0, -5.0]> : tensor<2xf32>
  %mean = graph.constant dense<[0.0, 0.0]> : tensor<2xf32>
  %variance = graph.constant dense<[0.0, 0.75]> : tensor<2xf32>
  %c = graph.conv2d %x, %w : !t, tensor<2x2x1x1xf32>
  %d = graph.add %bias, %c : tensor<2x1x1xf32>, !t
  %y = graph.batch_norm %d, %gamma, %beta, %mean, %variance {epsilon = 0.25} : !t, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  func.return %y : !t
}

// -----

// The spelled form, channels last; a matrix that is given transposed; the bias of a dense layer.
// CHECK-LABEL: func.func @spelled
// CHECK:         %[[C:\w+]] = graph.depthwise_conv2d
// CHECK-NEXT:    graph.constant
// CHECK-NEXT:    %[[A:\w+]] = graph.add %[[C]]
// CHECK-NEXT:    %w1 = graph.constant dense<{{\[\[}}-2.0{{.*}}, -8.0{{.*}}]]>
// CHECK-NEXT:    %[[P:\w+]] = graph.matmul %y, %w1 {transpose_b = true}
// CHECK:         graph.constant dense<[4.0{{.*}}, 6.0
// CHECK-NEXT:    %[[B:\w+]] = graph.dense
// CHECK-NEXT:    func.return %[[A]], %[[P]], %[[B]]
!t = tensor<1x5x5x2xf32>
!u = tensor<?x2xf32, #graph.dims<n>>
func.func @spelled(%x: !t, %y: !u) -> (!t, !u, !u) {
  %w0 = graph.constant dense<[[[[1.0], [2.0]]]]> : tensor<1x1x2x1xf32>
  %mean = graph.constant dense<[0.5, -1.0]> : tensor<2xf32>
  %deviation = graph.constant dense<[[2.0, 4.0]]> : tensor<1x2xf32>
  %gamma = graph.constant dense<[3.0, -1.0]> : tensor<2xf32>
  %beta = graph.constant dense<0.25> : tensor<f32>
  %c = graph.depthwise_conv2d %x, %w0 {data_layout = "NHWC"} : !t, tensor<1x1x2x1xf32>
  %d = graph.subtract %c, %mean : !t, tensor<2xf32>
  %e = graph.divide %d, %deviation : !t, tensor<1x2xf32>
  %f = graph.multiply %gamma, %e : tensor<2xf32>, !t
  %g = graph.add %f, %beta : !t, tensor<f32>
  %w1 = graph.constant dense<[[1.0, 4.0], [3.0, 6.0]]> : tensor<2x2xf32>
  %minus_two = graph.constant dense<-2.0> : tensor<f32>
  %p = graph.matmul %y, %w1 {transpose_b = true} : !u, tensor<2x2xf32>
  %q = graph.multiply %p, %minus_two : !u, tensor<f32>
  %w2 = graph.constant dense<[[1.0, 2.0], [3.0, 5.0]]> : tensor<2x2xf32>
  %bias = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %two = graph.constant dense<[[2.0, 3.0]]> : tensor<1x2xf32>
  %more = graph.constant dense<[[2.0, 0.0]]> : tensor<1x2xf32>
  %r = graph.dense %y, %w2, %bias : !u, tensor<2x2xf32>, tensor<2xf32>
  %s = graph.multiply %r, %two : !u, tensor<1x2xf32>
  %t = graph.add %s, %more : !u, tensor<1x2xf32>
  func.return %g, %q, %t : !t, !u, !u
}

// -----

// Nothing is folded: a product or weights with another user, a scale along rows, one that overflows, a parameter that is
// no constant, a quotient of a constant.
// CHECK-LABEL: func.func @not_folded
// CHECK:         graph.matmul %x, %a
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.matmul %x, %b
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.matmul %x, %b
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.matmul %x, %d
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.matmul %x, %e
// CHECK-NEXT:    graph.multiply
// CHECK-NEXT:    graph.matmul %x, %f
// CHECK-NEXT:    graph.divide
!t = tensor<2x2xf32>
func.func @not_folded(%x: !t, %g: tensor<2xf32>) -> (!t, !t, !t, !t, !t, !t, !t) {
  %a = graph.constant dense<[[1.0, 4.0], [3.0, 6.0]]> : !t
  %b = graph.constant dense<[[1.0, 4.0], [3.0, 7.0]]> : !t
  %d = graph.constant dense<[[1.0, 4.0], [3.0, 1.0e30]]> : !t
  %e = graph.constant dense<[[1.0, 4.0], [3.0, 8.0]]> : !t
  %f = graph.constant dense<[[1.0, 4.0], [3.0, 9.0]]> : !t
  %scale = graph.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %rows = graph.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %large = graph.constant dense<1.0e20> : tensor<f32>
  %p0 = graph.matmul %x, %a : !t, !t
  %r0 = graph.multiply %p0, %scale : !t, tensor<2xf32>
  %p1 = graph.matmul %x, %b : !t, !t
  %r1 = graph.multiply %p1, %scale : !t, tensor<2xf32>
  %p2 = graph.matmul %x, %b {transpose_b = true} : !t, !t
  %r2 = graph.multiply %p2, %rows : !t, tensor<2x1xf32>
  %p3 = graph.matmul %x, %d : !t, !t
  %r3 = graph.multiply %p3, %large : !t, tensor<f32>
  %p4 = graph.matmul %x, %e : !t, !t
  %r4 = graph.multiply %p4, %g : !t, tensor<2xf32>
  %p5 = graph.matmul %x, %f : !t, !t
  %r5 = graph.divide %scale, %p5 : tensor<2xf32>, !t
  func.return %p0, %r0, %r1, %r2, %r3, %r4, %r5 : !t, !t, !t, !t, !t, !t, !t
}

// -----

// Transposes and reshapes move behind elementwise operators, where they cancel or become part of a product.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %[[A:\w+]] = graph.add %x, %b
// CHECK-NEXT:    %[[W:\w+]] = graph.constant dense<[1.0{{.*}}, 2.0{{.*}}, 3.0{{.*}}, 4.0{{.*}}]> : tensor<4xf32>
// CHECK-NEXT:    %[[M:\w+]] = graph.multiply %[[A]], %[[W]]
// CHECK-NEXT:    %[[R:\w+]] = graph.relu %[[M]]
// CHECK-NEXT:    %[[Y:\w+]] = graph.matmul %[[R]], %w {transpose_a = false, transpose_b = true}
// CHECK-NEXT:    %[[S:\w+]] = graph.multiply %p, %q
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %[[S]]
// CHECK-NEXT:    %[[U:\w+]] = graph.matmul %p, %w
// CHECK-NEXT:    func.return %[[Y]], %[[T]], %[[U]]
func.func @views(%x: tensor<2x6x4xf32>, %b: tensor<4xf32>, %w: tensor<3x4xf32>, %p: tensor<?x3xf32, #graph.dims<n>>, %q: tensor<?x3xf32, #graph.dims<n>>) -> (tensor<2x6x3xf32>, tensor<3x?xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>) {
  %c = graph.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %a = graph.reshape %x {newshape = #graph.dims<12, 4>} : tensor<2x6x4xf32>
  %d = graph.add %a, %b : tensor<12x4xf32>, tensor<4xf32>
  %t = graph.transpose %d : tensor<12x4xf32>
  %m = graph.multiply %t, %c : tensor<4x12xf32>, tensor<4x1xf32>
  %r = graph.relu %m : tensor<4x12xf32>
  %u = graph.transpose %r : tensor<4x12xf32>
  %z = graph.reshape %u {newshape = #graph.dims<2, 6, 4>} : tensor<12x4xf32>
  %wt = graph.transpose %w : tensor<3x4xf32>
  %y = graph.matmul %z, %wt : tensor<2x6x4xf32>, tensor<4x3xf32>
  %pt = graph.transpose %p : tensor<?x3xf32, #graph.dims<n>>
  %qt = graph.transpose %q : tensor<?x3xf32, #graph.dims<n>>
  %s = graph.multiply %pt, %qt : tensor<3x?xf32, #graph.dims<n>>, tensor<3x?xf32, #graph.dims<n>>
  %v = graph.dense %p, %wt : tensor<?x3xf32, #graph.dims<n>>, tensor<4x3xf32>
  func.return %y, %s, %v : tensor<2x6x3xf32>, tensor<3x?xf32, #graph.dims<n>>, tensor<?x4xf32, #graph.dims<n>>
}

// -----

// They stay where they have other users, where extents are unknown, where an operand has the axes that they change, before a cast that widens, and
// where the orders of two transposes differ. A transpose of an axis of one element is a reshape.
// CHECK-LABEL: func.func @views_that_stay
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %x
// CHECK-NEXT:    %[[A:\w+]] = graph.relu %[[T]]
// CHECK-NEXT:    %[[U:\w+]] = graph.transpose %x
// CHECK-NEXT:    %[[B:\w+]] = graph.add %[[U]], %y
// CHECK-NEXT:    %[[H:\w+]] = graph.transpose %h
// CHECK-NEXT:    %[[C:\w+]] = graph.cast %[[H]]
// CHECK-NEXT:    %[[P:\w+]] = graph.transpose %x {axes = [2 : i64, 0 : i64, 1 : i64]}
// CHECK-NEXT:    %[[Q:\w+]] = graph.transpose %x {axes = [1 : i64, 2 : i64, 0 : i64]}
// CHECK-NEXT:    %[[D:\w+]] = graph.add %[[P]], %[[Q]]
// CHECK-NEXT:    %[[E:\w+]] = graph.reshape %z {newshape = #graph.dims<1, 3>}
// CHECK-NEXT:    %[[F:\w+]] = graph.transpose %u
// CHECK-NEXT:    graph.relu %[[F]]
!t = tensor<3x3x3xf32>
func.func @views_that_stay(%x: !t, %y: tensor<3xf32>, %h: tensor<2x4xf16>, %z: tensor<3x1xf32>, %u: tensor<?x?xf32>) -> (!t, !t, !t, tensor<4x2xf32>, !t, tensor<1x3xf32>, tensor<?x?xf32>) {
  %t = graph.transpose %x {axes = [1, 0, 2]} : !t
  %a = graph.relu %t : !t
  %b0 = graph.transpose %x {axes = [0, 2, 1]} : !t
  %b = graph.add %b0, %y : !t, tensor<3xf32>
  %ht = graph.transpose %h : tensor<2x4xf16>
  %c = graph.cast %ht {dtype = "float32"} : tensor<4x2xf16>
  %p = graph.transpose %x {axes = [2, 0, 1]} : !t
  %q = graph.transpose %x {axes = [1, 2, 0]} : !t
  %d = graph.add %p, %q : !t, !t
  %zt = graph.transpose %z : tensor<3x1xf32>
  %ut = graph.transpose %u : tensor<?x?xf32>
  %e = graph.relu %ut : tensor<?x?xf32>
  func.return %t, %a, %b, %c, %d, %zt, %e : !t, !t, !t, tensor<4x2xf32>, !t, tensor<1x3xf32>, tensor<?x?xf32>
}

// -----

// An operator that computes in float32 needs no casts around it.
// CHECK-LABEL: func.func @casts
// CHECK-NEXT:    %[[W:\w+]] = graph.cast %x
// CHECK-NEXT:    %[[S:\w+]] = graph.softmax %x {axis = -1 : i64}
// CHECK-NEXT:    graph.exp %[[W]]
func.func @casts(%x: tensor<3x4xf16>) -> (tensor<3x4xf16>, tensor<3x4xf16>) {
  %a = graph.cast %x {dtype = "float32"} : tensor<3x4xf16>
  %b = graph.softmax %a {axis = -1} : tensor<3x4xf32>
  %c = graph.cast %b {dtype = "float16"} : tensor<3x4xf32>
  %d = graph.exp %a : tensor<3x4xf32>
  %e = graph.cast %d {dtype = "float16"} : tensor<3x4xf32>
  func.return %c, %e : tensor<3x4xf16>, tensor<3x4xf16>
}

// -----

// Products of one operand with constant matrices become one; those of other shapes and settings do not.
// CHECK-LABEL: func.func @merged
// CHECK-COUNT-5: graph.matmul
// MERGED-LABEL: func.func @merged
// MERGED:         %[[P:\w+]] = graph.matmul %x, %{{\w+}} : tensor<?x2xf32, #graph.dims<n>>, tensor<2x6xf32>
// MERGED-NEXT:    %{{.*}}, %{{.*}}, %{{.*}} = graph.split %[[P]] {indices_or_sections = [1 : i64, 3 : i64], axis = 1 : i64}
// MERGED-NEXT:    graph.matmul %x, %w3 {transpose_b = true}
// MERGED-NEXT:    graph.matmul %x, %w4
// MERGED:         %[[S:\w+]] = graph.constant dense<1.200000e+01>
// MERGED-NEXT:    graph.multiply %x, %[[S]]
// MERGED-NEXT:    graph.constant dense<4.200000e+01>
// MERGED-NEXT:    graph.add
!t = tensor<?x2xf32, #graph.dims<n>>
func.func @merged(%x: !t, %w4: tensor<2x1xf32>) -> (tensor<?x1xf32, #graph.dims<n>>, !t, tensor<?x3xf32, #graph.dims<n>>, !t, tensor<?x1xf32, #graph.dims<n>>, !t) {
  %w0 = graph.constant dense<[[1.0], [4.0]]> : tensor<2x1xf32>
  %w1 = graph.constant dense<[[1.0, 4.0], [3.0, 5.0]]> : tensor<2x2xf32>
  %w2 = graph.constant dense<[[1.0, 4.0, 5.0], [3.0, 6.0, 7.0]]> : tensor<2x3xf32>
  %w3 = graph.constant dense<[[1.0, 4.0], [3.0, 6.0]]> : tensor<2x2xf32>
  %two = graph.constant dense<2.0> : tensor<f32>
  %three = graph.constant dense<3.0> : tensor<1x1xf32>
  %a = graph.matmul %x, %w0 : !t, tensor<2x1xf32>
  %b = graph.matmul %x, %w1 : !t, tensor<2x2xf32>
  %c = graph.matmul %x, %w2 : !t, tensor<2x3xf32>
  %d = graph.matmul %x, %w3 {transpose_b = true} : !t, tensor<2x2xf32>
  %e = graph.matmul %x, %w4 : !t, tensor<2x1xf32>
  %f = graph.multiply %x, %two : !t, tensor<f32>
  %g = graph.multiply %three, %f : tensor<1x1xf32>, !t
  %fifteen = graph.constant dense<15.0> : tensor<f32>
  %six = graph.constant dense<6.0> : tensor<f32>
  %h = graph.add %g, %fifteen : !t, tensor<f32>
  %i = graph.add %six, %h : tensor<f32>, !t
  %j = graph.multiply %i, %two : !t, tensor<f32>
  func.return %a, %b, %c, %d, %e, %j : tensor<?x1xf32, #graph.dims<n>>, !t, tensor<?x3xf32, #graph.dims<n>>, !t, tensor<?x1xf32, #graph.dims<n>>, !t
}

// -----

// Regions: what a match needs may stand before the region; what leaves a region is no part of a match behind it.
// CHECK-LABEL: func.func @regions
// CHECK-NEXT:    %[[R:\w+]], %[[S:\w+]] = graph.dataflow
// CHECK-NEXT:      %[[A:\w+]] = graph.silu %x
// CHECK-NEXT:      %[[B:\w+]] = graph.sigmoid %y
// CHECK-NEXT:      graph.output %[[A]], %[[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[M:\w+]] = graph.multiply %y, %[[S]]
// CHECK-NEXT:    func.return %[[R]], %[[M]]
func.func @regions(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = graph.sigmoid %x : tensor<4xf32>
  %a, %b = graph.dataflow -> (tensor<4xf32>, tensor<4xf32>) {
    %m = graph.multiply %s, %x : tensor<4xf32>, tensor<4xf32>
    %t = graph.sigmoid %y : tensor<4xf32>
    graph.output %m, %t : tensor<4xf32>, tensor<4xf32>
  }
  %n = graph.multiply %y, %b : tensor<4xf32>, tensor<4xf32>
  func.return %a, %n : tensor<4xf32>, tensor<4xf32>
}

// -----

// A transposed convolution with a stride is a convolution with the channels of both phases, which are interleaved.
// CHECK-LABEL: func.func @transposed
// CHECK-NEXT:    %[[W:\w+]] = graph.constant dense<{{\[\[\[}}3.0{{.*}}, 1.0{{.*}}]], {{\[\[}}0.0{{.*}}, 2.0{{.*}}]]]> : tensor<2x1x2xf32>
// CHECK-NEXT:    %[[C:\w+]] = graph.conv1d %x, %[[W]] {padding = {{\[\[}}1 : i64, 1 : i64]], groups = 1 : i64}
// CHECK-NEXT:    %[[B:\w+]] = graph.constant dense<5.0{{.*}}> : tensor<2x1xf32>
// CHECK-NEXT:    %[[A:\w+]] = graph.add %[[C]], %[[B]]
// CHECK-NEXT:    %[[R:\w+]] = graph.reshape %[[A]] {newshape = #graph.dims<n, 1, 2, 5>}
// CHECK-NEXT:    %[[T:\w+]] = graph.transpose %[[R]] {axes = [0 : i64, 1 : i64, 3 : i64, 2 : i64]}
// CHECK-NEXT:    %[[V:\w+]] = graph.reshape %[[T]] {newshape = #graph.dims<n, 1, 10>}
// CHECK-NEXT:    %[[S:\w+]] = graph.strided_slice %[[V]] {begin = [0 : i64], end = [9 : i64], axes = [2 : i64]}
// CHECK-NEXT:    func.return %[[S]]
func.func @transposed(%x: tensor<?x1x4xf32, #graph.dims<n>>) -> tensor<?x1x9xf32, #graph.dims<n>> {
  %w = graph.constant dense<[[[1.0, 2.0, 3.0]]]> : tensor<1x1x3xf32>
  %bias = graph.constant dense<[[5.0]]> : tensor<1x1xf32>
  %c = graph.conv1d_transpose %x, %w {strides = 2} : tensor<?x1x4xf32, #graph.dims<n>>, tensor<1x1x3xf32>
  %y = graph.add %c, %bias : tensor<?x1x9xf32, #graph.dims<n>>, tensor<1x1xf32>
  func.return %y : tensor<?x1x9xf32, #graph.dims<n>>
}

// -----

// The data of a recurrent network are multiplied by all weights at once.
// CHECK-LABEL: func.func @recurrent
// CHECK:         %[[W:\w+]] = graph.constant dense<5.0{{.*}}> : tensor<8x4xf32>
// CHECK-NEXT:    %[[D:\w+]] = graph.dense %x, %[[W]] : tensor<3x2x4xf32>, tensor<8x4xf32> -> tensor<3x2x8xf32>
// CHECK-NEXT:    graph.lstm %[[D]], none, %r :
func.func @recurrent(%x: tensor<3x2x4xf32>) -> tensor<3x1x2x2xf32> {
  %w = graph.constant dense<0.5> : tensor<1x8x4xf32>
  %r = graph.constant dense<0.25> : tensor<1x8x2xf32>
  %a, %h, %c = graph.lstm %x, %w, %r : tensor<3x2x4xf32>, tensor<1x8x4xf32>, tensor<1x8x2xf32>
  func.return %a : tensor<3x1x2x2xf32>
}

// -----

// Maxima over height and width, then over depth; the reshapes are views.
// CHECK-LABEL: func.func @boxes
// CHECK-NEXT:    %[[A:\w+]] = graph.reshape %x {newshape = #graph.dims<1, 12, 6, 8>}
// CHECK-NEXT:    %[[B:\w+]] = graph.max_pool2d %[[A]] {kernel = [3 : i64, 2 : i64], strides = [1 : i64, 2 : i64]
// CHECK-NEXT:    %[[C:\w+]] = graph.reshape %[[B]] {newshape = #graph.dims<1, 3, 4, 16>}
// CHECK-NEXT:    %[[D:\w+]] = graph.max_pool2d %[[C]] {kernel = [2 : i64, 1 : i64], strides = [2 : i64, 1 : i64]
// CHECK-NEXT:    graph.reshape %[[D]] {newshape = #graph.dims<1, 3, 2, 4, 4>}
func.func @boxes(%x: tensor<1x3x4x6x8xf32>) -> tensor<1x3x2x4x4xf32> {
  %y = graph.max_pool3d %x {kernel = [2, 3, 2], strides = [2, 1, 2]} : tensor<1x3x4x6x8xf32> -> tensor<1x3x2x4x4xf32>
  func.return %y : tensor<1x3x2x4x4xf32>
}

// -----

// A maximum of large or dense windows is one of columns, then of rows; the others read fewer elements at once.
// CHECK-LABEL: func.func @rectangles
// CHECK-NEXT:    %[[A:\w+]] = graph.max_pool2d %x {kernel = [5 : i64, 1 : i64], strides = [1 : i64, 1 : i64], padding = {{\[\[}}2 : i64, 2 : i64], [0 : i64, 0 : i64]]
// CHECK-NEXT:    %[[B:\w+]] = graph.max_pool2d %[[A]] {kernel = [1 : i64, 5 : i64], strides = [1 : i64, 1 : i64], padding = {{\[\[}}0 : i64, 0 : i64], [2 : i64, 2 : i64]]
// CHECK-NEXT:    graph.max_pool2d %[[B]] {kernel = [3 : i64, 3 : i64], strides = [2 : i64, 2 : i64]}
func.func @rectangles(%x: tensor<1x?x9x9xf32, #graph.dims<c>>) -> tensor<1x?x4x4xf32, #graph.dims<c>> {
  %y = graph.max_pool2d %x {kernel = [5, 5], strides = [1, 1], padding = [2, 2]} : tensor<1x?x9x9xf32, #graph.dims<c>> -> tensor<1x?x9x9xf32, #graph.dims<c>>
  %z = graph.max_pool2d %y {kernel = [3, 3], strides = [2, 2]} : tensor<1x?x9x9xf32, #graph.dims<c>> -> tensor<1x?x4x4xf32, #graph.dims<c>>
  func.return %z : tensor<1x?x4x4xf32, #graph.dims<c>>
}

// -----

// A convolution with a window of one element is a product if the smaller of its data and its result has the channels last.
// CHECK-LABEL: func.func @few_filters
// CHECK-NEXT:    %[[W:\w+]] = graph.reshape %w {newshape = #graph.dims<2, 4>}
// CHECK-NEXT:    %[[P:\w+]] = graph.matmul %x, %[[W]] {transpose_b = true}
// CHECK-NEXT:    graph.transpose %[[P]] {axes = [0 : i64, 3 : i64, 1 : i64, 2 : i64]}
func.func @few_filters(%x: tensor<?x?x9x4xf32, #graph.dims<n, h>>, %w: tensor<2x4x1x1xf32>) -> tensor<?x2x?x9xf32, #graph.dims<n, h>> {
  %t = graph.transpose %x {axes = [0, 3, 1, 2]} : tensor<?x?x9x4xf32, #graph.dims<n, h>>
  %c = graph.conv2d %t, %w : tensor<?x4x?x9xf32, #graph.dims<n, h>>, tensor<2x4x1x1xf32>
  func.return %c : tensor<?x2x?x9xf32, #graph.dims<n, h>>
}

// CHECK-LABEL: func.func @few_channels
// CHECK-NEXT:    %[[W:\w+]] = graph.constant dense<2.{{.*}}> : tensor<4x2xf32>
// CHECK-NEXT:    %[[P:\w+]] = graph.matmul %x, %[[W]] {transpose_a = true, transpose_b = true}
// CHECK-NEXT:    %[[B:\w+]] = graph.constant
// CHECK-NEXT:    %[[S:\w+]] = graph.add %[[P]], %[[B]]
// CHECK-NEXT:    graph.relu %[[S]]
func.func @few_channels(%x: tensor<?x2x?xf32, #graph.dims<n, h>>) -> tensor<?x?x4xf32, #graph.dims<n, h>> {
  %w = graph.constant dense<2.0> : tensor<4x2x1xf32>
  %b = graph.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %c = graph.conv1d %x, %w : tensor<?x2x?xf32, #graph.dims<n, h>>, tensor<4x2x1xf32>
  %a = graph.add %c, %b : tensor<?x4x?xf32, #graph.dims<n, h>>, tensor<4x1xf32>
  %r = graph.relu %a : tensor<?x4x?xf32, #graph.dims<n, h>>
  %t = graph.transpose %r {axes = [0, 2, 1]} : tensor<?x4x?xf32, #graph.dims<n, h>>
  func.return %t : tensor<?x?x4xf32, #graph.dims<n, h>>
}

// Not if the larger of them were transposed, nor with a stride, padding, a longer window, groups or integers.
// CHECK-LABEL: func.func @convolutions_that_stay
// CHECK-NOT:     graph.matmul
// CHECK-COUNT-7: graph.conv2d
!l = tensor<1x5x5x4xf32>
!d = tensor<1x4x5x5xf32>
func.func @convolutions_that_stay(%x: !l, %y: !d, %i: tensor<1x5x5x4xi32>, %w2: tensor<2x4x1x1xf32>, %w8: tensor<8x4x1x1xf32>, %w: tensor<4x4x1x1xf32>, %p: tensor<4x4x1x2xf32>, %g: tensor<4x2x1x1xf32>, %iw: tensor<4x4x1x1xi32>) -> (tensor<1x8x5x5xf32>, tensor<1x5x5x2xf32>, tensor<1x4x3x3xf32>, tensor<1x4x7x7xf32>, tensor<1x4x5x4xf32>, !d, tensor<1x4x5x5xi32>) {
  %t = graph.transpose %x {axes = [0, 3, 1, 2]} : !l
  %it = graph.transpose %i {axes = [0, 3, 1, 2]} : tensor<1x5x5x4xi32>
  %c0 = graph.conv2d %t, %w8 : !d, tensor<8x4x1x1xf32>
  %c1 = graph.conv2d %y, %w2 : !d, tensor<2x4x1x1xf32>
  %c1t = graph.transpose %c1 {axes = [0, 2, 3, 1]} : tensor<1x2x5x5xf32>
  %c2 = graph.conv2d %t, %w {strides = 2} : !d, tensor<4x4x1x1xf32>
  %c3 = graph.conv2d %t, %w {padding = 1} : !d, tensor<4x4x1x1xf32>
  %c4 = graph.conv2d %t, %p : !d, tensor<4x4x1x2xf32>
  %c5 = graph.conv2d %t, %g {groups = 2} : !d, tensor<4x2x1x1xf32>
  %c6 = graph.conv2d %it, %iw : tensor<1x4x5x5xi32>, tensor<4x4x1x1xi32>
  func.return %c0, %c1t, %c2, %c3, %c4, %c5, %c6 : tensor<1x8x5x5xf32>, tensor<1x5x5x2xf32>, tensor<1x4x3x3xf32>, tensor<1x4x7x7xf32>, tensor<1x4x5x4xf32>, !d, tensor<1x4x5x5xi32>
}
