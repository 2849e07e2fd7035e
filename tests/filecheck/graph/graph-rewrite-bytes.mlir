// RUN: weft-opt %s -p 'graph-rewrite{rules=bytes}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-rewrite' --split-input-file | filecheck %s --check-prefix=OFF

// Numbers of one byte each, less a zero point of 3: windows of one element take the bytes, and the bias takes their
// zero points. Others read them as int16.
// CHECK-LABEL: func.func @points
// CHECK:         %[[I:\w+]] = graph.clip %x {a_min = -3 : i64, a_max = 252 : i64}
// CHECK:         %[[Z:\w+]] = graph.constant dense<3> : tensor<i32>
// CHECK-NEXT:    %[[S:\w+]] = graph.add %[[I]], %[[Z]]
// CHECK-NEXT:    %[[U:\w+]] = graph.cast %[[S]] {dtype = "uint8"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xui8>
// CHECK-NEXT:    %[[H:\w+]] = graph.cast %[[U]] {dtype = "int16"}
// CHECK-NEXT:    %[[P:\w+]] = graph.constant dense<3> : tensor<i16>
// CHECK-NEXT:    %[[R:\w+]] = graph.subtract %[[H]], %[[P]]
// CHECK-NEXT:    %[[W:\w+]] = graph.constant dense<{{.*}}> : tensor<2x4x1x1xi8>
// CHECK-NEXT:    %[[C:\w+]] = graph.conv2d %[[U]], %[[W]] {out_dtype = "int32"}
// CHECK-NEXT:    %[[T:\w+]] = graph.constant dense<{{\[\[\[}}-23]], {{\[\[}}32]]]> : tensor<2x1x1xi32>
// CHECK-NEXT:    %[[A:\w+]] = graph.add %[[C]], %[[T]]
// CHECK-NEXT:    func.return %[[A]], %[[R]]
// OFF-LABEL:   func.func @points
// OFF:           graph.conv2d {{.*}} : tensor<1x4x2x2xi16>, tensor<2x4x1x1xi16>
func.func @points(%x: tensor<1x4x2x2xi32>) -> (tensor<1x2x2x2xi32>, tensor<1x4x2x2xi16>) {
  %w = graph.constant dense<[[[[1]], [[2]], [[3]], [[4]]], [[[-1]], [[-2]], [[-3]], [[-4]]]]> : tensor<2x4x1x1xi16>
  %b = graph.constant dense<[[[7]], [[2]]]> : tensor<2x1x1xi32>
  %i = graph.clip %x {a_min = -3, a_max = 252} : tensor<1x4x2x2xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xi16>
  %c = graph.conv2d %h, %w {out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<2x4x1x1xi16> -> tensor<1x2x2x2xi32>
  %y = graph.add %c, %b : tensor<1x2x2x2xi32>, tensor<2x1x1xi32> -> tensor<1x2x2x2xi32>
  func.return %y, %h : tensor<1x2x2x2xi32>, tensor<1x4x2x2xi16>
}

// -----

// Without a zero point there is no term, and borders are zeros.
// CHECK-LABEL: func.func @windows
// CHECK:         %[[I:\w+]] = graph.clip %x {a_min = 0 : i64, a_max = 255 : i64}
// CHECK-NEXT:    %[[U:\w+]] = graph.cast %[[I]] {dtype = "uint8"}
// CHECK:         %[[C:\w+]] = graph.conv2d %[[U]], %{{.*}} {padding = 1 : i64, out_dtype = "int32"} : tensor<1x4x2x2xui8>, tensor<1x4x1x1xi8>
// CHECK-NEXT:    func.return %[[C]]
// OFF-LABEL:   func.func @windows
func.func @windows(%x: tensor<1x4x2x2xi32>) -> tensor<1x1x4x4xi32> {
  %w = graph.constant dense<[[[[1]], [[2]], [[3]], [[4]]]]> : tensor<1x4x1x1xi16>
  %i = graph.clip %x {a_min = 0, a_max = 255} : tensor<1x4x2x2xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xi16>
  %c = graph.conv2d %h, %w {padding = 1, out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x1x1xi16> -> tensor<1x1x4x4xi32>
  func.return %c : tensor<1x1x4x4xi32>
}

// -----

// A convolution that nothing reads.
// CHECK-LABEL: func.func @unread
// CHECK:         graph.conv2d {{.*}} : tensor<1x4x2x2xui8>, tensor<1x4x1x1xi8>
// OFF-LABEL:   func.func @unread
func.func @unread(%x: tensor<1x4x2x2xi32>) -> tensor<1x4x2x2xi16> {
  %w = graph.constant dense<[[[[1]], [[2]], [[3]], [[4]]]]> : tensor<1x4x1x1xi16>
  %i = graph.clip %x {a_min = -3, a_max = 252} : tensor<1x4x2x2xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xi16>
  %c = graph.conv2d %h, %w {out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x1x1xi16> -> tensor<1x1x2x2xi32>
  func.return %h : tensor<1x4x2x2xi16>
}

// -----

// These stay: weights, and numbers, that are no bytes; two channels, to which two would be added; groups.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     ui8
// OFF-LABEL:   func.func @others
func.func @others(%x: tensor<1x4x2x2xi32>, %y: tensor<1x2x2x2xi32>) -> (tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>, tensor<1x2x2x2xi32>) {
  %w = graph.constant dense<[[[[1]], [[2]], [[3]], [[4]]]]> : tensor<1x4x1x1xi16>
  %large = graph.constant dense<[[[[1]], [[2]], [[3]], [[128]]]]> : tensor<1x4x1x1xi16>
  %pair = graph.constant dense<[[[[1]], [[2]]]]> : tensor<1x2x1x1xi16>
  %two = graph.constant dense<[[[[1]], [[2]]], [[[3]], [[4]]]]> : tensor<2x2x1x1xi16>
  %i = graph.clip %x {a_min = -3, a_max = 252} : tensor<1x4x2x2xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xi16>
  %weights = graph.conv2d %h, %large {out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x1x1xi16> -> tensor<1x1x2x2xi32>
  %j = graph.clip %x {a_min = -3, a_max = 253} : tensor<1x4x2x2xi32>
  %k = graph.cast %j {dtype = "int16"} : tensor<1x4x2x2xi32> -> tensor<1x4x2x2xi16>
  %numbers = graph.conv2d %k, %w {out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x1x1xi16> -> tensor<1x1x2x2xi32>
  %l = graph.clip %y {a_min = 0, a_max = 255} : tensor<1x2x2x2xi32>
  %m = graph.cast %l {dtype = "int16"} : tensor<1x2x2x2xi32> -> tensor<1x2x2x2xi16>
  %channels = graph.conv2d %m, %pair {out_dtype = "int32"} : tensor<1x2x2x2xi16>, tensor<1x2x1x1xi16> -> tensor<1x1x2x2xi32>
  %groups = graph.conv2d %h, %two {groups = 2, out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<2x2x1x1xi16> -> tensor<1x2x2x2xi32>
  func.return %weights, %numbers, %channels, %groups : tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>, tensor<1x2x2x2xi32>
}

// -----

// A border of the zero point, and a fourth channel, of weights that are 0.
// CHECK-LABEL: func.func @border
// CHECK:         %[[U:\w+]] = graph.cast %{{.*}} {dtype = "uint8"}
// CHECK-NEXT:    %[[D:\w+]] = graph.pad %[[U]] {pad_width = {{\[\[}}0 : i64, 0 : i64], [0 : i64, 1 : i64], [1 : i64, 1 : i64], [1 : i64, 1 : i64]], constant_values = 3 : i64}
// CHECK-NEXT:    %[[W:\w+]] = graph.constant dense<{{.*}}> : tensor<1x4x3x3xi8>
// CHECK-NEXT:    graph.conv2d %[[D]], %[[W]] {out_dtype = "int32"} : tensor<1x4x4x4xui8>, tensor<1x4x3x3xi8>
// CHECK:         graph.constant dense<-162> : tensor<1x1x1xi32>
// OFF-LABEL:   func.func @border
func.func @border(%x: tensor<1x3x2x2xi32>) -> tensor<1x1x2x2xi32> {
  %w = graph.constant dense<2> : tensor<1x3x3x3xi16>
  %i = graph.clip %x {a_min = -3, a_max = 252} : tensor<1x3x2x2xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<1x3x2x2xi32> -> tensor<1x3x2x2xi16>
  %c = graph.conv2d %h, %w {padding = 1, out_dtype = "int32"} : tensor<1x3x2x2xi16>, tensor<1x3x3x3xi16> -> tensor<1x1x2x2xi32>
  func.return %c : tensor<1x1x2x2xi32>
}

// -----

// Bytes in memory, less a zero point or not.
// CHECK-LABEL: func.func @stored
// CHECK:         graph.conv2d %x, %{{.*}} {padding = 1 : i64, out_dtype = "int32"} : tensor<1x4x2x2xui8>, tensor<1x4x3x3xi8>
// CHECK:         %[[D:\w+]] = graph.pad %x
// CHECK:         graph.conv2d %[[D]], %{{.*}} {out_dtype = "int32"} : tensor<1x4x4x4xui8>, tensor<1x4x3x3xi8>
// CHECK-NOT:     xi16
// OFF-LABEL:   func.func @stored
func.func @stored(%x: tensor<1x4x2x2xui8>) -> (tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>) {
  %w = graph.constant dense<2> : tensor<1x4x3x3xi16>
  %z = graph.constant dense<5> : tensor<i16>
  %h = graph.cast %x {dtype = "int16"} : tensor<1x4x2x2xui8> -> tensor<1x4x2x2xi16>
  %c = graph.conv2d %h, %w {padding = 1, out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x3x3xi16> -> tensor<1x1x2x2xi32>
  %s = graph.subtract %h, %z : tensor<1x4x2x2xi16>, tensor<i16> -> tensor<1x4x2x2xi16>
  %d = graph.conv2d %s, %w {padding = 1, out_dtype = "int32"} : tensor<1x4x2x2xi16>, tensor<1x4x3x3xi16> -> tensor<1x1x2x2xi32>
  func.return %c, %d : tensor<1x1x2x2xi32>, tensor<1x1x2x2xi32>
}

// -----

// Products of matrices take bytes less a computed zero point; sums of the columns take it off. A column of weights
// beyond signed bytes is moved by one number, and sums of the rows take that off.
// CHECK-LABEL: func.func @matrices
// CHECK:         %[[D:\w+]] = graph.subtract
// CHECK:         %[[W:\w+]] = graph.constant dense<{{\[\[}}1, 127], [2, -128], [3, 0], [-4, 1]]> : tensor<4x2xi8>
// CHECK-NEXT:    %[[P:\w+]] = graph.matmul %x, %[[W]] {out_dtype = "int32"} : tensor<3x4xui8>, tensor<4x2xi8>
// CHECK-NEXT:    %[[Z:\w+]] = graph.cast %{{.*}} {dtype = "int32"}
// CHECK-NEXT:    %[[C:\w+]] = graph.constant dense<[2, 0]> : tensor<2xi32>
// CHECK-NEXT:    %[[T:\w+]] = graph.multiply %[[Z]], %[[C]]
// CHECK-NEXT:    %[[S:\w+]] = graph.subtract %[[P]], %[[T]]
// CHECK-NEXT:    %[[E:\w+]] = graph.cast %[[D]] {dtype = "int32"}
// CHECK-NEXT:    %[[R:\w+]] = graph.sum %[[E]] {axis = [-1 : i64], keepdims = true}
// CHECK-NEXT:    %[[M:\w+]] = graph.constant dense<[0, -28]> : tensor<2xi32>
// CHECK-NEXT:    %[[U:\w+]] = graph.multiply %[[R]], %[[M]]
// CHECK-NEXT:    graph.subtract %[[S]], %[[U]]
// OFF-LABEL:   func.func @matrices
// OFF:           graph.matmul {{.*}} : tensor<3x4xi16>, tensor<4x2xi16>
func.func @matrices(%x: tensor<3x4xui8>, %z: tensor<ui8>) -> tensor<3x2xi32> {
  %w = graph.constant dense<[[1, 155], [2, -100], [3, 28], [-4, 29]]> : tensor<4x2xi16>
  %h = graph.cast %x {dtype = "int16"} : tensor<3x4xui8> -> tensor<3x4xi16>
  %y = graph.cast %z {dtype = "int16"} : tensor<ui8> -> tensor<i16>
  %d = graph.subtract %h, %y : tensor<3x4xi16>, tensor<i16> -> tensor<3x4xi16>
  %p = graph.matmul %d, %w {out_dtype = "int32"} : tensor<3x4xi16>, tensor<4x2xi16> -> tensor<3x2xi32>
  func.return %p : tensor<3x2xi32>
}

// -----

// The bytes of a clip, and a zero point for each column of the data, which no sum of columns takes off.
// CHECK-LABEL: func.func @clipped
// CHECK:         %[[U:\w+]] = graph.cast %{{.*}} {dtype = "uint8"}
// CHECK:         %[[P:\w+]] = graph.matmul %[[U]], %{{.*}} {out_dtype = "int32"} : tensor<3x4xui8>, tensor<4x2xi8>
// CHECK:         %[[T:\w+]] = graph.constant dense<[-6, -9]> : tensor<2xi32>
// CHECK-NEXT:    graph.add %[[P]], %[[T]]
// CHECK:         graph.matmul {{.*}} : tensor<3x4xi16>, tensor<4x2xi16>
// OFF-LABEL:   func.func @clipped
func.func @clipped(%x: tensor<3x4xi32>, %v: tensor<3x4xui8>, %z: tensor<4xi16>) -> (tensor<3x2xi32>, tensor<3x2xi32>) {
  %w = graph.constant dense<[[1, 1], [2, 1], [3, 0], [-4, 1]]> : tensor<4x2xi16>
  %i = graph.clip %x {a_min = -3, a_max = 252} : tensor<3x4xi32>
  %h = graph.cast %i {dtype = "int16"} : tensor<3x4xi32> -> tensor<3x4xi16>
  %p = graph.matmul %h, %w {out_dtype = "int32"} : tensor<3x4xi16>, tensor<4x2xi16> -> tensor<3x2xi32>
  %k = graph.cast %v {dtype = "int16"} : tensor<3x4xui8> -> tensor<3x4xi16>
  %d = graph.subtract %k, %z : tensor<3x4xi16>, tensor<4xi16> -> tensor<3x4xi16>
  %q = graph.matmul %d, %w {out_dtype = "int32"} : tensor<3x4xi16>, tensor<4x2xi16> -> tensor<3x2xi32>
  func.return %p, %q : tensor<3x2xi32>, tensor<3x2xi32>
}
