// RUN: weft-opt %s -p 'low-lower-dots{target=llvm}' --verify-diagnostics

// Dots of values in memory before tir-flatten.
func.func @memory(%A: memref<4xi8>, %B: memref<16x4xi8>, %C: memref<16xi32>, %i: index) {
  %a = low.access_ptr %A[%i] sizes [4] read : memref<4xi8>
  // expected-error@+1 {{dot products of values in memory take pointers into flat buffers, low.access_ptr of one index}}
  %b = low.access_ptr %B[%i, %i] sizes [16, 4] read : memref<16x4xi8>
  %c = low.access_ptr %C[%i] sizes [16] readwrite : memref<16xi32>
  low.tile_dot %a as ui8, %b as si8 onto %c {lanes = 16 : i64, steps = 4 : i64}
  func.return
}
