// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=haswell"}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-block-layouts{target=c}' --split-input-file | filecheck %s --check-prefix=OTHERS
// RUN: weft-opt %s -p 'lower-graph{target="llvm -mcpu=haswell" layouts=false}' --split-input-file | filecheck %s --check-prefix=OTHERS
// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=znver4"}' --split-input-file | filecheck %s --check-prefix=VNNI
// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=haswell" winograd=false}' --split-input-file | filecheck %s --check-prefix=DIRECT
// OTHERS-NOT: x3x3x1x16xf32

// Data of few channels are read as they are, means of images need no conversion: nothing is converted.
// CHECK-LABEL: func.func @net
// CHECK-NEXT:    %[[X:\w+]] = graph.pack %x {inner_dims_pos = [1 : i64], inner_tiles = [1 : i64]}
// CHECK-NEXT:    %w0 = graph.constant {{.*}} : tensor<1x3x3x3x1x16xf32>
// CHECK-NEXT:    %c = graph.conv2d %[[X]], %w0 {data_layout = "NCHWc", kernel_layout = "OIHWio", padding = 1 : i64}
// CHECK-NEXT:    %[[B:\w+]] = graph.constant {{.*}} : tensor<1x1x1x16xf32>
// CHECK-NEXT:    %s = graph.add %c, %[[B]]
// CHECK-NEXT:    %w1 = graph.constant {{.*}} : tensor<1x1x3x3x16xf32>
// CHECK-NEXT:    %d = graph.depthwise_conv2d %s, %w1 {data_layout = "NCHWc", strides = 2 : i64}
// CHECK-NEXT:    %p = graph.max_pool2d %d {kernel = 2 : i64, strides = 1 : i64, layout = "NCHWc"}
// CHECK-NEXT:    %m = graph.mean %p {axis = [2 : i64, 3 : i64], keepdims = true}
// CHECK-NEXT:    %[[M:\w+]] = graph.unpack %m {inner_dims_pos = [1 : i64], inner_tiles = [16 : i64]}
// CHECK-NEXT:    func.return %[[M]]
func.func @net(%x: tensor<?x3x8x8xf32, #graph.dims<n>>) -> tensor<?x16x1x1xf32, #graph.dims<n>> {
  %w0 = graph.constant dense<0.5> : tensor<16x3x3x3xf32>
  %bias = graph.constant dense<2.0> : tensor<16x1x1xf32>
  %w1 = graph.constant dense<0.25> : tensor<16x1x3x3xf32>
  %c = graph.conv2d %x, %w0 {padding = 1 : i64} : tensor<?x3x8x8xf32, #graph.dims<n>>, tensor<16x3x3x3xf32>
  %s = graph.add %c, %bias : tensor<?x16x8x8xf32, #graph.dims<n>>, tensor<16x1x1xf32>
  %d = graph.conv2d %s, %w1 {strides = 2 : i64, groups = 16 : i64} : tensor<?x16x8x8xf32, #graph.dims<n>>, tensor<16x1x3x3xf32>
  %p = graph.max_pool2d %d {kernel = 2 : i64, strides = 1 : i64} : tensor<?x16x3x3xf32, #graph.dims<n>>
  %m = graph.mean %p {axis = [2 : i64, 3 : i64], keepdims = true} : tensor<?x16x2x2xf32, #graph.dims<n>>
  func.return %m : tensor<?x16x1x1xf32, #graph.dims<n>>
}

// -----

// The result is converted, and the data, once for both convolutions that read them.
// CHECK-LABEL: func.func @borders
// CHECK:         %[[X:\w+]] = graph.pack %x {inner_dims_pos = [1 : i64], inner_tiles = [16 : i64]}
// CHECK-NOT:     graph.pack
// CHECK:         %a = graph.conv2d %[[X]], {{.*}} tensor<1x4x3x3x16xf32>
// CHECK:         %b = graph.conv2d %[[X]]
// CHECK:         %y = graph.add %a, %b
// CHECK-NEXT:    %[[Y:\w+]] = graph.unpack %y {inner_dims_pos = [1 : i64], inner_tiles = [16 : i64]}
// CHECK-NEXT:    func.return %[[Y]]
func.func @borders(%x: tensor<1x64x3x3xf32>) -> tensor<1x128x3x3xf32> {
  %w0 = graph.constant dense<0.5> : tensor<128x64x3x3xf32>
  %w1 = graph.constant dense<0.25> : tensor<128x64x3x3xf32>
  %a = graph.conv2d %x, %w0 {padding = 1 : i64} : tensor<1x64x3x3xf32>, tensor<128x64x3x3xf32>
  %b = graph.conv2d %x, %w1 {padding = 1 : i64} : tensor<1x64x3x3xf32>, tensor<128x64x3x3xf32>
  %y = graph.add %a, %b : tensor<1x128x3x3xf32>, tensor<1x128x3x3xf32>
  func.return %y : tensor<1x128x3x3xf32>
}

// -----

// Converting the result takes more than the convolution gains; weights are a parameter.
// CHECK-LABEL: func.func @stay
// CHECK-NOT:     graph.pack
// CHECK:         func.return
func.func @stay(%x: tensor<1x16x8x8xf32>, %w1: tensor<64x16x3x3xf32>) -> tensor<1x64x6x6xf32> {
  %w0 = graph.constant dense<0.5> : tensor<16x16x1x1xf32>
  %a = graph.conv2d %x, %w0 : tensor<1x16x8x8xf32>, tensor<16x16x1x1xf32>
  %y = graph.conv2d %a, %w1 : tensor<1x16x8x8xf32>, tensor<64x16x3x3xf32>
  func.return %y : tensor<1x64x6x6xf32>
}

// -----

// Kernels of int16 have pairs of channels side by side where data are in blocks; a mean of integers is a sum.
// CHECK-LABEL: func.func @integers
// CHECK:         graph.conv2d {{.*}} {data_layout = "NCHWc", kernel_layout = "OIHWio", padding = 1 : i64, out_dtype = "int32"} {{.*}} tensor<1x3x3x3x1x16xi16>
// CHECK:         graph.conv2d {{.*}} {data_layout = "NCHWc", kernel_layout = "OIHWioi", out_dtype = "int32"} : tensor<1x1x8x8x16xi16>, tensor<1x1x1x1x8x16x2xi16>
// CHECK:         graph.sum {{.*}} {axis = [2 : i64, 3 : i64], keepdims = true, dtype = "int32"}
func.func @integers(%x: tensor<1x3x8x8xi16>) -> tensor<1x16x1x1xi32> {
  %w0 = graph.constant dense<5> : tensor<16x3x3x3xi16>
  %w1 = graph.constant dense<-3> : tensor<16x16x1x1xi16>
  %a = graph.conv2d %x, %w0 {padding = 1 : i64, out_dtype = "int32"} : tensor<1x3x8x8xi16>, tensor<16x3x3x3xi16>
  %b = graph.cast %a {dtype = "int16"} : tensor<1x16x8x8xi32>
  %c = graph.conv2d %b, %w1 {out_dtype = "int32"} : tensor<1x16x8x8xi16>, tensor<16x16x1x1xi16>
  %y = graph.sum %c {axis = [2 : i64, 3 : i64], keepdims = true, dtype = "int32"} : tensor<1x16x8x8xi32>
  func.return %y : tensor<1x16x1x1xi32>
}

// -----

// Kernels of bytes have groups of four, on CPUs that have dot products of them.
// CHECK-LABEL: func.func @bytes
// CHECK:         graph.conv2d {{.*}} {data_layout = "NCHWc", kernel_layout = "OIHWio", out_dtype = "int32"} : tensor<1x1x8x8x16xui8>, tensor<1x1x1x1x16x16xi8>
// VNNI-LABEL:  func.func @bytes
// VNNI:          graph.conv2d {{.*}} {data_layout = "NCHWc", kernel_layout = "OIHWioi", out_dtype = "int32"} : tensor<1x1x8x8x16xui8>, tensor<1x1x1x1x4x16x4xi8>
func.func @bytes(%x: tensor<1x3x8x8xi16>) -> tensor<1x16x1x1xi32> {
  %w0 = graph.constant dense<5> : tensor<16x3x3x3xi16>
  %w1 = graph.constant dense<-3> : tensor<16x16x1x1xi8>
  %a = graph.conv2d %x, %w0 {padding = 1 : i64, out_dtype = "int32"} : tensor<1x3x8x8xi16>, tensor<16x3x3x3xi16>
  %b = graph.cast %a {dtype = "uint8"} : tensor<1x16x8x8xi32>
  %c = graph.conv2d %b, %w1 {out_dtype = "int32"} : tensor<1x16x8x8xui8>, tensor<16x16x1x1xi8>
  %y = graph.sum %c {axis = [2 : i64, 3 : i64], keepdims = true, dtype = "int32"} : tensor<1x16x8x8xi32>
  func.return %y : tensor<1x16x1x1xi32>
}

// -----

// Minimal filtering makes one convolution worth converting data and result: kernels are transformed, tiles of 4 x 4.
// CHECK-LABEL: func.func @filtered
// CHECK:         %[[X:\w+]] = graph.pack %x {inner_dims_pos = [1 : i64], inner_tiles = [16 : i64]}
// CHECK-NEXT:    %w = graph.constant {{.*}} : tensor<4x6x6x4x16x16xf32>
// CHECK-NEXT:    %a = graph.conv2d_winograd %[[X]], %w {padding = 1 : i64}
// DIRECT-LABEL: func.func @filtered
// DIRECT:         graph.conv2d %x, %w
func.func @filtered(%x: tensor<1x64x14x14xf32>) -> tensor<1x64x14x14xf32> {
  %w = graph.constant dense<0.5> : tensor<64x64x3x3xf32>
  %a = graph.conv2d %x, %w {padding = 1 : i64} : tensor<1x64x14x14xf32>, tensor<64x64x3x3xf32>
  func.return %a : tensor<1x64x14x14xf32>
}

// -----

// Strided and dilated ones are direct, and those of small images, whose transformed kernels take longer to load.
// CHECK-LABEL: func.func @direct
// CHECK-NOT:     graph.conv2d_winograd
// CHECK:         func.return
func.func @direct(%x: tensor<1x64x14x14xf32>) -> tensor<1x64x1x1xf32> {
  %w0 = graph.constant dense<0.5> : tensor<64x64x3x3xf32>
  %w1 = graph.constant dense<0.25> : tensor<64x64x3x3xf32>
  %a = graph.conv2d %x, %w0 {strides = 2 : i64, padding = 1 : i64} : tensor<1x64x14x14xf32>, tensor<64x64x3x3xf32>
  %b = graph.conv2d %a, %w1 {dilation = 2 : i64} : tensor<1x64x7x7xf32>, tensor<64x64x3x3xf32>
  %c = graph.conv2d %b, %w1 : tensor<1x64x3x3xf32>, tensor<64x64x3x3xf32>
  func.return %c : tensor<1x64x1x1xf32>
}

// -----

// Groups of two vectors of channels are blocks. A stride makes a single convolution worth the conversions.
// CHECK-LABEL: func.func @groups
// CHECK:         graph.pack %x {inner_dims_pos = [1 : i64], inner_tiles = [16 : i64]}
// CHECK:         graph.conv2d {{.*}} {groups = 2 : i64, data_layout = "NCHWc", kernel_layout = "OIHWio", strides = 2 : i64}
// CHECK-SAME:    tensor<1x2x27x27x16xf32>, tensor<2x1x3x3x16x16xf32>
func.func @groups(%x: tensor<1x32x27x27xf32>) -> tensor<1x32x13x13xf32> {
  %w = graph.constant dense<0.5> : tensor<32x16x3x3xf32>
  %y = graph.conv2d %x, %w {strides = 2 : i64, groups = 2 : i64} : tensor<1x32x27x27xf32>, tensor<32x16x3x3xf32>
  func.return %y : tensor<1x32x13x13xf32>
}

// -----

// Blocks of two groups would multiply by twice as many weights, half of them 0.
// CHECK-LABEL: func.func @small_groups
// CHECK-NOT:     graph.pack
// CHECK:         func.return
func.func @small_groups(%x: tensor<1x32x27x27xf32>) -> tensor<1x32x25x25xf32> {
  %w = graph.constant dense<0.5> : tensor<32x4x3x3xf32>
  %y = graph.conv2d %x, %w {groups = 8 : i64} : tensor<1x32x27x27xf32>, tensor<32x4x3x3xf32>
  func.return %y : tensor<1x32x25x25xf32>
}

// -----

// A convolution of volumes is one of planes, whose channels are those of the planes in a window of depth.
// CHECK-LABEL: func.func @volumes
// CHECK:         graph.transpose %x {axes = [0 : i64, 2 : i64, 1 : i64, 3 : i64, 4 : i64]}
// CHECK:         graph.pad {{.*}} -> tensor<1x7x16x14x14xf32>
// CHECK-COUNT-3: graph.strided_slice {{.*}} -> tensor<1x5x16x14x14xf32>
// CHECK:         graph.concatenate {{.*}} -> tensor<5x48x14x14xf32>
// CHECK:         graph.conv2d_winograd {{.*}} {padding =
// CHECK:         graph.transpose {{.*}} -> tensor<1x16x5x14x14xf32>
// DIRECT-LABEL: func.func @volumes
// DIRECT:         graph.conv3d %x, %w
func.func @volumes(%x: tensor<1x16x5x14x14xf32>) -> tensor<1x16x5x14x14xf32> {
  %w = graph.constant dense<0.5> : tensor<16x16x3x3x3xf32>
  %y = graph.conv3d %x, %w {padding = 1 : i64} : tensor<1x16x5x14x14xf32>, tensor<16x16x3x3x3xf32>
  func.return %y : tensor<1x16x5x14x14xf32>
}

// -----

// The depth of a result is a symbol: slices end with the volume, and have at least as many planes.
// CHECK-LABEL: func.func @symbolic_volumes
// CHECK:         graph.pad {{.*}} -> tensor<?x?x16x?x?xf32, #graph.dims<n, d + 2, h, w>>
// CHECK:         graph.strided_slice {{.*}} {begin = [0 : i64], end = [unit], {{.*}}}
// CHECK:         graph.prefix {{.*}} -> tensor<?x?x16x?x?xf32, #graph.dims<n, d, h, w>>
// CHECK:         graph.concatenate {{.*}} -> tensor<?x48x?x?xf32, #graph.dims<d * n, h, w>>
// CHECK:         graph.conv2d_winograd
// CHECK:         graph.transpose {{.*}} -> tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>>
func.func @symbolic_volumes(%x: tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>>) -> tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>> {
  %w = graph.constant dense<0.5> : tensor<16x16x3x3x3xf32>
  %y = graph.conv3d %x, %w {padding = 1 : i64}
       : tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>>, tensor<16x16x3x3x3xf32> -> tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>>
  func.return %y : tensor<?x16x?x?x?xf32, #graph.dims<n, d, h, w>>
}
