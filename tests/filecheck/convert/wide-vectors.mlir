// RUN: weft-opt %s | filecheck %s --check-prefix=SYNTAX
// RUN: weft-opt %s --print-op-generic | weft-opt | filecheck %s --check-prefix=SYNTAX
// RUN: weft-opt %s -p convert-upstream-to-low | filecheck %s --check-prefix=LOW

// Vectors of several dimensions, in MLIR's syntax, and as rows.

func.func @f(%a: memref<2x4xf32>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.load %a[%c0, %c0] : memref<2x4xf32>, vector<2x4xf32>
  %u = vector.load %b[%c0] : memref<4xf32>, vector<4xf32>
  %t = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
  %w = vector.shape_cast %t : vector<4x2xf32> to vector<2x4xf32>
  %s = vector.multi_reduction <add>, %w, %u [0] : vector<2x4xf32> to vector<4xf32>
  %k = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
  %o = vector.outerproduct %k, %s, %v {kind = #vector.kind<maximumf>} : vector<2xf32>, vector<4xf32>
  %x = vector.outerproduct %s, %z : vector<4xf32>, f32
  %r = vector.contract {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>} %o, %x, %k : vector<2x4xf32>, vector<4xf32> into vector<2xf32>
  vector.store %r, %b[%c0] : memref<4xf32>, vector<2xf32>
  return
}
// SYNTAX:      %t = vector.transpose %v, [1, 0] : vector<2x4xf32> to vector<4x2xf32>
// SYNTAX-NEXT: %w = vector.shape_cast %t : vector<4x2xf32> to vector<2x4xf32>
// SYNTAX-NEXT: %s = vector.multi_reduction <add>, %w, %u [0] : vector<2x4xf32> to vector<4xf32>
// SYNTAX:      %o = vector.outerproduct %k, %s, %v {kind = #vector.kind<maximumf>} : vector<2xf32>, vector<4xf32>
// SYNTAX-NEXT: %x = vector.outerproduct %s, %z {{.*}}: vector<4xf32>, f32
// SYNTAX-NEXT: %r = vector.contract {{.*}}kind = #vector.kind<add>} %o, %x, %k : vector<2x4xf32>, vector<4xf32> into vector<2xf32>

// LOW:      func.func @f(%a: memref<8xf32>, %b: memref<4xf32>)
// LOW:        vector.load %a[{{%[0-9a-z]+}}] : memref<8xf32>, vector<4xf32>
// LOW:        vector.load %a[{{%[0-9a-z]+}}] : memref<8xf32>, vector<4xf32>
// LOW-NOT:    vector<2x4xf32>
// LOW:        arith.maximumf {{.*}} : vector<4xf32>
// LOW-NOT:    vector.contract
// LOW:        vector.store {{%[0-9a-z]+}}, %b[{{%[0-9a-z]+}}] : memref<4xf32>, vector<2xf32>
