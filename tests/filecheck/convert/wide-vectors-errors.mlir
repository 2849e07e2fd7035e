// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @f(%v: vector<2x4xf32>) {
  // expected-error@+1 {{vector.transpose: [0, 0] is no permutation of the dimensions of vector<2x4xf32>}}
  %t = vector.transpose %v, [0, 0] : vector<2x4xf32> to vector<4x2xf32>
  return
}

// -----

func.func @f(%v: vector<2x4xf32>) {
  // expected-error@+1 {{vector.transpose by [1, 0] of vector<2x4xf32> cannot be vector<2x4xf32>}}
  %t = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<2x4xf32>
  return
}

// -----

func.func @f(%v: vector<2x4xf32>, %a: f32) {
  // expected-error@+1 {{vector.multi_reduction: [2] are no dimensions of vector<2x4xf32>}}
  %s = vector.multi_reduction <add>, %v, %a [2] : vector<2x4xf32> to f32
  return
}

// -----

func.func @f(%v: vector<2x4xf32>, %a: f32) {
  // expected-error@+1 {{vector.multi_reduction along [1] of vector<2x4xf32> gives [2], not f32}}
  %s = vector.multi_reduction <add>, %v, %a [1] : vector<2x4xf32> to f32
  return
}

// -----

func.func @f(%v: vector<2x4xf32>, %u: vector<3xf32>, %c: vector<2xf32>) {
  // expected-error@+1 {{vector.contract: dimension 1 has 4 and 3 elements}}
  %r = vector.contract {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %v, %u, %c : vector<2x4xf32>, vector<3xf32> into vector<2xf32>
  return
}

// -----

func.func @f(%v: vector<2x4xf32>, %u: vector<4xf32>, %c: vector<2xf32>) {
  // expected-error@+1 {{is no map of the dimensions of vector<2x4xf32>}}
  %r = vector.contract {indexing_maps = [affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %v, %u, %c : vector<2x4xf32>, vector<4xf32> into vector<2xf32>
  return
}

// -----

// Buffers in tiles: both are tensors or both are buffers.
func.func @f(%a: memref<16xf32>, %o: tensor<2x8xf32>) {
  // expected-error@+1 {{linalg.pack is of two tensors or two buffers, not of memref<16xf32> and tensor<2x8xf32>}}
  %r = linalg.pack %a inner_dims_pos = [0] inner_tiles = [8] into %o : memref<16xf32> -> tensor<2x8xf32>
  return
}
