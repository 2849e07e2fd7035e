// RUN: weft-opt --split-input-file --verify-diagnostics %s

func.func @f(%a: memref<4xi32>) {
  // expected-error@+1 {{linalg.exp: exp is defined on floats, not on i32}}
  linalg.exp ins(%a : memref<4xi32>) outs(%a : memref<4xi32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<4xf64>) {
  // expected-error@+1 {{linalg.add: add takes values of one type, got f32, f64}}
  linalg.add ins(%a, %b : memref<4xf32>, memref<4xf64>) outs(%b : memref<4xf64>)
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<4xf64>) {
  // expected-error@+1 {{linalg.square: square of f32 gives f32, and the output holds f64}}
  linalg.square ins(%a : memref<4xf32>) outs(%b : memref<4xf64>)
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{linalg.div_unsigned: div_unsigned is not defined on f32}}
  linalg.div_unsigned ins(%a, %a : memref<4xf32>, memref<4xf32>) outs(%a : memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error@+1 {{linalg.select: select takes an i1 and two values of one type, got f32, f32 and f32}}
  linalg.select ins(%a, %a, %b : memref<4xf32>, memref<4xf32>, memref<4xf32>) outs(%a : memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error@+1 {{linalg.add: add takes 2 operands, got 1}}
  linalg.add ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf16>, %b: memref<4xbf16>) {
  // expected-error@+1 {{linalg.copy: a value of type f16 has no conversion to bf16}}
  linalg.copy ins(%a : memref<4xf16>) outs(%b : memref<4xbf16>)
  return
}

// -----

func.func @f(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{linalg.exp gives a result for each output that is a tensor, of its type}}
  %0 = linalg.exp ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%a: memref<4x8xf32>, %b: memref<8x4xf32>, %c: memref<4x5xf32>) {
  // expected-error@+1 {{inferred input/output operand #2 has shape's dimension #1 to be 4, but found 5}}
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x4xf32>) outs(%c : memref<4x5xf32>)
  return
}

// -----

func.func @f(%a: memref<9xf32>, %k: memref<3xf32>, %c: memref<9xf32>) {
  // expected-error@+1 {{inferred input/output operand #0 has shape's dimension #0 to be greater than or equal to 11, but found 9}}
  linalg.conv_1d ins(%a, %k : memref<9xf32>, memref<3xf32>) outs(%c : memref<9xf32>)
  return
}

// -----

func.func @f(%a: memref<1x9x2xf32>, %k: memref<3xf32>, %c: memref<1x7x2xf32>) {
  // expected-error@+1 {{has 1 window dimensions, and strides [1, 1]; they are positive}}
  linalg.pooling_nwc_max {strides = dense<1> : tensor<2xi64>} ins(%a, %k : memref<1x9x2xf32>, memref<3xf32>) outs(%c : memref<1x7x2xf32>)
  return
}

// -----

func.func @f(%a: memref<4x8xf32>, %b: memref<8x4xf32>) {
  // expected-error@+1 {{has dimensions [0, 0] of a rank of 2}}
  linalg.transpose ins(%a : memref<4x8xf32>) outs(%b : memref<8x4xf32>) permutation = [0, 0]
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<8xf32>) {
  // expected-error@+1 {{linalg.map: operands have one shape, got memref<4xf32> and memref<8xf32>}}
  linalg.map { math.exp } ins(%a : memref<4xf32>) outs(%b : memref<8xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>, %b: memref<4xf32>) {
  // expected-error@+1 {{unknown operation 'math.noexp'}}
  linalg.map { math.noexp } ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4x4xf32>) {
  // expected-error@+1 {{'linalg.matmul': has 3 operands and 1 indexing maps}}
  linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>] ins(%a, %a : memref<4x4xf32>, memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  return
}

// -----

func.func @f(%a: memref<4x4xf32>) {
  // expected-error@+1 {{linalg.mmt4d: takes 2 inputs, got 1}}
  linalg.mmt4d ins(%a : memref<4x4xf32>) outs(%a : memref<4x4xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{linalg.generic needs indexing_maps and iterator_types, which are lists}}
  linalg.generic {iterator_types = ["parallel"]} ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{unknown iterator type "windowed"}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["windowed"]} ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{linalg.map has one output}}
  linalg.map { math.exp } ins(%a : memref<4xf32>) outs(%a, %a : memref<4xf32>, memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4xf32>) {
  // expected-error@+1 {{linalg.map: the region takes an element of each operand, f32, f32, got f64, f32}}
  linalg.map ins(%a : memref<4xf32>) outs(%a : memref<4xf32>) (%x: f64, %y: f32) {
    linalg.yield %y : f32
  }
  return
}
