// RUN: not weft-opt %s -p 'graph-precision{precision=f16 target="llvm -mcpu=x86-64"}' 2>&1 | filecheck %s --check-prefix=F16C
// RUN: not weft-opt %s -p 'graph-precision{precision=bf61}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// F16C:    precision f16: the CPU x86-64 has no instructions that convert float16 (F16C); available are f32 and bf16 (in memory; products in float32)
// UNKNOWN: graph-precision: there is no precision 'bf61', did you mean 'bf16'
func.func @product(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %h = graph.matmul %x, %w : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  func.return %h : tensor<8x2xf32>
}
