// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=sapphirerapids" everywhere=true}' --split-input-file | filecheck %s --check-prefixes=CHECK,TILES
// RUN: weft-opt %s -p 'graph-block-layouts{target="llvm -mcpu=znver4" everywhere=true}' --split-input-file | filecheck %s --check-prefixes=CHECK,VECTORS

// A row of a tile has 64 bytes of channels.
// CHECK-LABEL: func.func @bytes
// TILES:         graph.conv2d {{.*}} : tensor<1x1x8x8x64xui8>, tensor<2x1x3x3x16x32x4xi8>
// VECTORS:       graph.conv2d {{.*}} : tensor<1x2x8x8x32xui8>, tensor<2x2x3x3x8x32x4xi8>
func.func @bytes(%x: tensor<1x64x8x8xui8>) -> tensor<1x64x8x8xi32> {
  %w = graph.constant dense<1> : tensor<64x64x3x3xi8>
  %c = graph.conv2d %x, %w {padding = 1, out_dtype = "int32"} : tensor<1x64x8x8xui8>, tensor<64x64x3x3xi8> -> tensor<1x64x8x8xi32>
  func.return %c : tensor<1x64x8x8xi32>
}

// -----

// The channels of several pixels are contiguous, so that a tile multiplies a row of a window.
// CHECK-LABEL: func.func @few_channels
// TILES:         graph.conv2d {{.*}} : tensor<1x1x32x32x4xbf16>, tensor<1x1x5x5x2x32x2xbf16>
// VECTORS:       graph.conv2d {{.*}} : tensor<1x2x32x32x2xbf16>, tensor<1x2x5x5x1x32x2xbf16>
func.func @few_channels(%x: tensor<1x4x32x32xbf16>) -> tensor<1x32x28x28xf32> {
  %w = graph.constant dense<1.0> : tensor<32x4x5x5xbf16>
  %c = graph.conv2d %x, %w {out_dtype = "float32"} : tensor<1x4x32x32xbf16>, tensor<32x4x5x5xbf16> -> tensor<1x32x28x28xf32>
  func.return %c : tensor<1x32x28x28xf32>
}
