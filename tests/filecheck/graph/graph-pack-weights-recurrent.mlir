// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=haswell -num-threads=1"}' --split-input-file --validate | filecheck %s
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=znver4 -num-threads=2"}' --split-input-file --validate | filecheck %s --check-prefix=WIDE
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=x86-64 -num-threads=4"}' --split-input-file | filecheck %s --check-prefix=SHORT
// RUN: weft-opt %s -p 'graph-pack-weights{target="llvm -mcpu=apple-m1 -num-threads=3"}' --split-input-file | filecheck %s --check-prefix=ARM

// Sums of 4 sequences fill half of the registers; each thread has a block of sequences.
// CHECK-LABEL: func.func @forward
// CHECK:         graph.lstm %x, none, %r {tile = [8 : i64, 16 : i64]}
// WIDE-LABEL:  func.func @forward
// WIDE:          tile = [4 : i64, 32 : i64]
// SHORT-LABEL: func.func @forward
// SHORT:         tile = [2 : i64, 8 : i64]
// ARM-LABEL:   func.func @forward
// ARM:           tile = [3 : i64, 16 : i64]
func.func @forward(%x: tensor<3x8x8xf32>, %r: tensor<1x8x2xf32>) -> tensor<3x1x8x2xf32> {
  %y, %h, %c = graph.lstm %x, none, %r : tensor<3x8x8xf32>, tensor<1x8x2xf32>
  func.return %y : tensor<3x1x8x2xf32>
}

// -----

// Both directions are parallel. Blocks of a symbolic number of sequences are whole groups of 4.
// CHECK-LABEL: func.func @bidirectional
// CHECK:         tile = [8 : i64, 16 : i64]
// WIDE-LABEL:  func.func @bidirectional
// WIDE:          tile = [8 : i64, 32 : i64]
// SHORT-LABEL: func.func @bidirectional
// SHORT:         tile = [4 : i64, 8 : i64]
// ARM-LABEL:   func.func @bidirectional
// ARM:           tile = [4 : i64, 16 : i64]
func.func @bidirectional(%x: tensor<?x?x12xf32, #graph.dims<n, m>>, %r: tensor<2x6x2xf32>) -> tensor<?x2x?x2xf32, #graph.dims<n, m>> {
  %y, %h = graph.gru %x, none, %r {direction = "bidirectional"} : tensor<?x?x12xf32, #graph.dims<n, m>>, tensor<2x6x2xf32>
  func.return %y : tensor<?x2x?x2xf32, #graph.dims<n, m>>
}

// -----

// Sums of float64 are twice as long as those of bf16, which are float32.
// CHECK-LABEL: func.func @types
// CHECK:         graph.rnn %x, none, %r {tile = [3 : i64, 8 : i64]}
// CHECK:         graph.rnn %z, none, %s {tile = [3 : i64, 16 : i64]}
// WIDE-LABEL:  func.func @types
// SHORT-LABEL: func.func @types
// ARM-LABEL:   func.func @types
func.func @types(%x: tensor<2x3x2xf64>, %r: tensor<1x2x2xf64>, %z: tensor<2x3x2xbf16>, %s: tensor<1x2x2xbf16>) -> (tensor<2x1x3x2xf64>, tensor<2x1x3x2xbf16>) {
  %a, %b = graph.rnn %x, none, %r : tensor<2x3x2xf64>, tensor<1x2x2xf64>
  %c, %d = graph.rnn %z, none, %s : tensor<2x3x2xbf16>, tensor<1x2x2xbf16>
  func.return %a, %c : tensor<2x1x3x2xf64>, tensor<2x1x3x2xbf16>
}

// -----

// A given tile is kept.
// CHECK-LABEL: func.func @given
// CHECK:         tile = [1 : i64, 4 : i64]
// WIDE-LABEL:  func.func @given
// WIDE:          tile = [1 : i64, 4 : i64]
// SHORT-LABEL: func.func @given
// ARM-LABEL:   func.func @given
func.func @given(%x: tensor<2x3x2xf32>, %r: tensor<1x2x2xf32>) -> tensor<2x1x3x2xf32> {
  %a, %b = graph.rnn %x, none, %r {tile = [1, 4]} : tensor<2x3x2xf32>, tensor<1x2x2xf32>
  func.return %a : tensor<2x1x3x2xf32>
}
