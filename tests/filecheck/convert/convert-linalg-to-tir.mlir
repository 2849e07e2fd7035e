// RUN: weft-opt --split-input-file %s -p 'convert-linalg-to-tir{promises=noalias}' | filecheck %s

// A fill becomes the init of the product; casts; subscripts of transposed operands.

// CHECK-LABEL: func.func @product
// CHECK-SAME:  attributes {tir.promises = ["noalias"]}
// CHECK-NEXT:    %zero = arith.constant
// CHECK-NEXT:    tir.for %m in 8 {
// CHECK-NEXT:      tir.for %n in 6 {
// CHECK-NEXT:        tir.for %k in 4 {
// CHECK-NEXT:          tir.block "matmul" iters(%vm: spatial<8>, %vn: spatial<6>, %vk: reduce<4>) = [%m, %n, %k] {
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              memref.store %zero, %C[%vm, %vn] : memref<8x6xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %[[A:.*]] = memref.load %A[%vk, %vm] : memref<4x8xf16, strided<[?, 1], offset: ?>>
// CHECK-NEXT:            %[[B:.*]] = memref.load %B[%vk, %vn] : memref<4x6xf16>
// CHECK-NEXT:            %[[C:.*]] = memref.load %C[%vm, %vn] : memref<8x6xf32>
// CHECK-NEXT:            %[[X:.*]] = arith.extf %[[A]] : f16 to f32
// CHECK-NEXT:            %[[Y:.*]] = arith.extf %[[B]] : f16 to f32
// CHECK-NEXT:            %[[P:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT:            %[[S:.*]] = arith.addf %[[C]], %[[P]] : f32
// CHECK-NEXT:            memref.store %[[S]], %C[%vm, %vn] : memref<8x6xf32>
// CHECK-NOT:     linalg
func.func @product(%A: memref<4x8xf16, strided<[?, 1], offset: ?>>, %B: memref<4x6xf16>, %C: memref<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<8x6xf32>)
  linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%A, %B : memref<4x8xf16, strided<[?, 1], offset: ?>>, memref<4x6xf16>) outs(%C : memref<8x6xf32>)
  return
}

// -----

// What is read in between keeps the fill where it is.

// CHECK-LABEL: func.func @read_between
// CHECK:         tir.block "fill"
// CHECK:         memref.load %C[%{{.*}}, %{{.*}}]
// CHECK:         tir.block "matmul"
// CHECK-NOT:       tir.init
func.func @read_between(%A: memref<8x8xf32>, %C: memref<8x8xf32>, %s: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  linalg.fill ins(%zero : f32) outs(%C : memref<8x8xf32>)
  %x = memref.load %C[%c0, %c0] : memref<8x8xf32>
  memref.store %x, %s[] : memref<f32>
  linalg.matmul ins(%A, %A : memref<8x8xf32>, memref<8x8xf32>) outs(%C : memref<8x8xf32>)
  return
}

// -----

// So does an input that is the output.

// CHECK-LABEL: func.func @reads_itself
// CHECK:         tir.block "fill"
// CHECK:         tir.block "matmul"
// CHECK-NOT:       tir.init
func.func @reads_itself(%A: memref<8x8xf32>, %C: memref<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<8x8xf32>)
  linalg.matmul ins(%A, %C : memref<8x8xf32>, memref<8x8xf32>) outs(%C : memref<8x8xf32>)
  return
}

// -----

// A reduction under a condition, which the fill is not under.

// CHECK-LABEL: func.func @condition
// CHECK:         tir.init
// CHECK-NEXT:      memref.store %zero, %C
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.if %b {
// CHECK:           memref.store %{{.*}}, %C
func.func @condition(%A: memref<8x8xf32>, %C: memref<8xf32>, %b: i1) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%C : memref<8xf32>)
  scf.if %b {
    linalg.reduce { arith.addf } ins(%A : memref<8x8xf32>) outs(%C : memref<8xf32>) dimensions = [0]
  }
  return
}

// -----

// Several outputs with a start value each, one of them converted; an output that is the place of another.

// CHECK-LABEL: func.func @two_outputs
// CHECK:         tir.block "generic" iters(%vd0: spatial<4>, %vd1: reduce<8>)
// CHECK-NEXT:      tir.init {
// CHECK-NEXT:        memref.store %zero, %S[%vd0] : memref<4xf32>
// CHECK:             memref.store %{{.*}}, %M[%vd0] : memref<4xf32>
// CHECK-NEXT:      }
func.func @two_outputs(%A: memref<4x8xf32>, %S: memref<4xf32>, %M: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFFF0000000000000 : f64
  linalg.fill ins(%zero : f32) outs(%S : memref<4xf32>)
  linalg.fill ins(%least : f64) outs(%M : memref<4xf32>)
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%A : memref<4x8xf32>) outs(%S, %M : memref<4xf32>, memref<4xf32>) {
  ^bb0(%a: f32, %s: f32, %m: f32):
    %sum = arith.addf %s, %a : f32
    %max = arith.maximumf %m, %a : f32
    linalg.yield %sum, %max : f32, f32
  }
  return
}

// -----

// Extents of parameters that agree are one value, which calls check; static where one is.

// CHECK-LABEL: func.func @dynamic
// CHECK:         tir.assume_shape %B[%c16, %[[M:.*]]] : memref<?x?xf32>
// CHECK:         %[[N:.*]] = memref.dim %A, %{{.*}} : memref<?x16xf32>
// CHECK:         tir.assume_shape %C[%[[N]], %[[M]]] : memref<?x?xf32>
// CHECK:         tir.for %m in %[[N]] {
// CHECK:             tir.for %k in 16 {
func.func @dynamic(%A: memref<?x16xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>) {
  linalg.matmul ins(%A, %B : memref<?x16xf32>, memref<?x?xf32>) outs(%C : memref<?x?xf32>)
  return
}

// -----

// Scalars, indices of loops, a subscript that adds loops; nothing is done for an empty buffer.

// CHECK-LABEL: func.func @indices
// CHECK-NEXT:    tir.for %d0 in 4 {
// CHECK-NEXT:      tir.for %d1 in 3 {
// CHECK-NEXT:        tir.block "generic" iters(%vd0: spatial<4>, %vd1: spatial<3>) = [%d0, %d1] {
// CHECK-NEXT:          %[[P:.*]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%vd0, %vd1)
// CHECK-NEXT:          %[[I:.*]] = arith.index_cast %vd1 : index to i32
// CHECK-NEXT:          %[[S:.*]] = arith.addi %[[I]], %s : i32
// CHECK-NEXT:          memref.store %[[S]], %A[%[[P]]] : memref<6xi32>
// CHECK-NOT:     tir.for
func.func @indices(%A: memref<6xi32>, %B: memref<4x3xf32>, %E: memref<0xf32>, %s: i32) {
  linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i + j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%B, %s : memref<4x3xf32>, i32) outs(%A : memref<6xi32>) {
  ^bb0(%b: f32, %t: i32, %a: i32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %l = arith.addi %k, %t : i32
    linalg.yield %l : i32
  }
  linalg.exp ins(%E : memref<0xf32>) outs(%E : memref<0xf32>)
  return
}

// -----

// Tensors: bufferized first; the product has a buffer of its own, though upstream's rules put it into that of the result.

// CHECK-LABEL: func.func @tensors(%x: memref<8x16xf32>, %w: memref<16x4xf32>, %b: memref<4xf32>, %r: memref<8x4xf32>)
// CHECK-SAME:    tir.promises = ["noalias"]
// CHECK:         %matmul = memref.alloc() : memref<8x4xf32>
// CHECK:         tir.block "matmul"
// CHECK-NEXT:      tir.init {
// CHECK-NEXT:        memref.store %zero, %matmul[%vm, %vn]
// CHECK:         tir.block "generic"
// CHECK-NEXT:      memref.load %matmul[%vd0, %vd1]
// CHECK-NEXT:      memref.load %b[%vd1]
// CHECK:           memref.store %{{.*}}, %r[%vd0, %vd1]
func.func @tensors(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>, %b: tensor<4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %m = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x4xf32>) outs(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%m, %b : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// The first contents of a parameter are read in place, what is written later is not.

// CHECK-LABEL: func.func @in_place
// CHECK-NOT:     memref.alloc
// CHECK:         tir.block "exp"
// CHECK:           memref.load %A
// CHECK:           memref.store %{{.*}}, %A
// CHECK:         tir.block "abs"
// CHECK:           memref.load %A
// CHECK:           memref.store %{{.*}}, %A
func.func @in_place(%A: memref<8xf32>) {
  linalg.exp ins(%A : memref<8xf32>) outs(%A : memref<8xf32>)
  linalg.abs ins(%A : memref<8xf32>) outs(%A : memref<8xf32>)
  return
}

// -----

// CHECK-LABEL: func.func @lives
// CHECK-DAG:     %[[N:.*]] = memref.dim %A,
// CHECK:         %exp = memref.alloc(%[[N]]) : memref<?xf32>
// CHECK:         tir.block "exp"
// CHECK:           memref.load %A
// CHECK:           memref.store %{{.*}}, %exp
// CHECK:         %abs = memref.alloc(%[[N]]) : memref<?xf32>
// CHECK:         tir.block "abs"
// CHECK:           memref.load %exp
// CHECK:           memref.store %{{.*}}, %abs
// CHECK:         tir.block "add"
// CHECK:           memref.load %abs
// CHECK:           memref.load %abs
// CHECK:           memref.store %{{.*}}, %B
func.func @lives(%A: memref<?xf32>, %B: memref<?xf32>) {
  linalg.exp ins(%A : memref<?xf32>) outs(%B : memref<?xf32>)
  linalg.abs ins(%B : memref<?xf32>) outs(%B : memref<?xf32>)
  linalg.add ins(%B, %B : memref<?xf32>, memref<?xf32>) outs(%B : memref<?xf32>)
  return
}

// -----

// Ops in loops become blocks over these loops too; views are subscripts.

// CHECK-LABEL: func.func @tiles
// CHECK:         tir.block "C" iters(%vt: reduce<4>, %vm: spatial<8>, %vn: spatial<8>, %vk: reduce<4>)
// CHECK:           %[[K:.*]] = affine.apply affine_map<(d0, d1) -> (((d0 * 4) + d1))> (%vt, %vk)
// CHECK-NEXT:      memref.load %A[%vm, %[[K]]]
func.func @tiles(%A: memref<8x16xf32>, %B: memref<4x8xf32>, %C: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  scf.for %t = %c0 to %c16 step %c4 {
    %a = memref.subview %A[0, %t] [8, 4] [1, 1] : memref<8x16xf32> to memref<8x4xf32, strided<[16, 1], offset: ?>>
    linalg.matmul ins(%a, %B : memref<8x4xf32, strided<[16, 1], offset: ?>>, memref<4x8xf32>) outs(%C : memref<8x8xf32>)
  }
  return
}

// -----

// Whoever is called might look at a parameter.

// CHECK-LABEL: func.func @call_between
// CHECK-NOT:     memref.alloc
func.func private @look()
func.func @call_between(%A: memref<8xf32>, %B: memref<8xf32>) {
  linalg.exp ins(%A : memref<8xf32>) outs(%B : memref<8xf32>)
  func.call @look() : () -> ()
  linalg.abs ins(%B : memref<8xf32>) outs(%B : memref<8xf32>)
  return
}
