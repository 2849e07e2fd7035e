// RUN: weft-opt --split-input-file --verify-diagnostics -p 'convert-linalg-to-tir{strict=true}' %s

// expected-error@below {{convert-linalg-to-tir: the module has no linalg that it takes}}
builtin.module {
  func.func @f() {
    return
  }
}

// -----

func.func @f(%a: memref<4xf32, affine_map<(d0) -> (d0 * 2)>>, %b: memref<4xf32>) {
  // expected-error@+1 {{linalg.exp stays as it is: buffers of tir are row-major or strided, not memref<4xf32, affine_map<(d0) -> ((d0 * 2))>>}}
  linalg.exp ins(%a : memref<4xf32, affine_map<(d0) -> (d0 * 2)>>) outs(%b : memref<4xf32>)
  return
}

// -----

func.func @f(%a: memref<4x?xf32>, %b: memref<5x?xf32>, %c: memref<4x?xf32>) {
  // expected-error@+1 {{linalg.add: loop d0 has extents 4 and 5 by its operands}}
  linalg.add ins(%a, %b : memref<4x?xf32>, memref<5x?xf32>) outs(%c : memref<4x?xf32>)
  return
}
