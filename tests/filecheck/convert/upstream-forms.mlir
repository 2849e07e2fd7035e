// RUN: weft-opt %s | filecheck %s --check-prefix=ROUND
// RUN: weft-opt %s -p bufferize-tensors --validate | filecheck %s --check-prefix=BUFFER
// RUN: weft-opt %s -p convert-from-upstream --validate | filecheck %s --check-prefix=TIR

// ROUND-LABEL: func.func @softmax
// ROUND:         linalg.softmax dimension(1) ins(%a : tensor<4x?xf32>) outs(%o : tensor<4x?xf32>) -> tensor<4x?xf32>
// BUFFER-LABEL: func.func @softmax
// BUFFER:        %[[MAX:.*]] = memref.alloc() : memref<4xf32>
// BUFFER:        linalg.fill
// BUFFER:        linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
// BUFFER:        arith.maxnumf
// BUFFER:        math.exp
// BUFFER:        arith.addf
// BUFFER:        arith.divf
// TIR-LABEL: func.func @softmax
// TIR-COUNT-4:   tir.block "generic
func.func @softmax(%a: tensor<4x?xf32>, %o: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %r = linalg.softmax dimension(1) ins(%a : tensor<4x?xf32>) outs(%o : tensor<4x?xf32>) -> tensor<4x?xf32>
  return %r : tensor<4x?xf32>
}

// ROUND-LABEL: func.func @pack
// ROUND:         linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x15xf32> -> tensor<2x10x8xf32>
// BUFFER-LABEL: func.func @pack
// BUFFER:        memref.subview %{{.*}}[0, 0] [10, 15] [1, 1]
// BUFFER:        linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, ((d0 * 8) + d2))>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>]
// TIR-LABEL: func.func @pack
// TIR:           tir.block "generic
func.func @pack(%a: tensor<10x15xf32>, %o: tensor<2x10x8xf32>) -> tensor<2x10x8xf32> {
  %z = arith.constant 0.0 : f32
  %r = linalg.pack %a padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [8] into %o
    : tensor<10x15xf32> -> tensor<2x10x8xf32>
  return %r : tensor<2x10x8xf32>
}

// ROUND-LABEL: func.func @unpack
// ROUND:         linalg.unpack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x2x8xf32> -> tensor<10x15xf32>
// BUFFER-LABEL: func.func @unpack
// BUFFER:        linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, (d1 floordiv 8), (d1 mod 8))>
// TIR-LABEL: func.func @unpack
// TIR:           memref.load %a[%vd0, %{{.*}}, %{{.*}}]
func.func @unpack(%a: tensor<10x2x8xf32>, %o: tensor<10x15xf32>) -> tensor<10x15xf32> {
  %r = linalg.unpack %a inner_dims_pos = [1] inner_tiles = [8] into %o : tensor<10x2x8xf32> -> tensor<10x15xf32>
  return %r : tensor<10x15xf32>
}

// ROUND-LABEL: func.func @scatter
// ROUND:         tensor.scatter %s into %a[%i] scatter_dims([0]) unique : (tensor<1x5xf32>, tensor<1x5xf32>, tensor<1x1xindex>) -> tensor<1x5xf32>
// BUFFER-LABEL: func.func @scatter
// BUFFER:        scf.for
// BUFFER:          scf.for
// BUFFER:            memref.store
// TIR-LABEL: func.func @scatter
// TIR:           tir.block
func.func @scatter(%s: tensor<1x5xf32>, %a: tensor<1x5xf32>, %i: tensor<1x1xindex>) -> tensor<1x5xf32> {
  %r = tensor.scatter %s into %a[%i] scatter_dims([0]) unique
    : (tensor<1x5xf32>, tensor<1x5xf32>, tensor<1x1xindex>) -> tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}

// A switch is a chain of conditions; the operations of a region are statements.
// TIR-LABEL: func.func @branches
// TIR:           arith.cmpi eq
// TIR:           scf.if
// TIR:           } else {
// TIR:             scf.if
// TIR-NOT:       scf.index_switch
// TIR-NOT:       scf.execute_region
func.func @branches(%a: memref<4xf32>, %k: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %y = scf.index_switch %k -> f32
  case 2 {
    %z = arith.addf %x, %x : f32
    scf.yield %z : f32
  }
  case 5 {
    %z = scf.execute_region -> f32 {
      %w = arith.mulf %x, %x : f32
      scf.yield %w : f32
    }
    scf.yield %z : f32
  }
  default {
    scf.yield %x : f32
  }
  memref.store %y, %a[%c0] : memref<4xf32>
  return
}

// Vectors and affine loops in one function: the low level.
// TIR-LABEL: func.func @lanes
// TIR-SAME:    low.params
// TIR:         low.parallel_for
// TIR:           scf.for
// TIR:             vector.load
// TIR:             vector.store
func.func @lanes(%a: memref<8x16xf32>, %b: memref<8x16xf32>) {
  affine.parallel (%i) = (0) to (8) {
    affine.for %j = 0 to 4 {
      %v = affine.vector_load %a[%i, %j * 4] : memref<8x16xf32>, vector<4xf32>
      affine.vector_store %v, %b[%i, %j * 4] : memref<8x16xf32>, vector<4xf32>
    }
  }
  return
}
