// RUN: weft-opt %s -p bufferize-tensors --split-input-file | filecheck %s

// The operations of a chain write into the buffer of the result; its contents before are not read.
// CHECK-LABEL: func.func @matmul(%A: memref<4x8xf32>, %B: memref<8x4xf32>, %C: memref<4x4xf32>) attributes {tir.promises = ["noalias"]}
// CHECK-NEXT:    %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    linalg.fill ins(%zero : f32) outs(%C : memref<4x4xf32>)
// CHECK-NEXT:    linalg.matmul ins(%A, %B : memref<4x8xf32>, memref<8x4xf32>) outs(%C : memref<4x4xf32>)
// CHECK-NEXT:    func.return
func.func @matmul(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %C = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %C : tensor<4x4xf32>
}

// -----

// Arguments are not written, constants are neither: what is written is a copy. A pointwise operation reads the element
// that it writes, so the second addition is in place.
// CHECK:       "memref.global"() <{sym_name = "__constant_4xf32"
// CHECK-LABEL: func.func @accumulate(%A: memref<4x4xf32>, %B: memref<4x4xf32>, %y: memref<4x4xf32>)
// CHECK-NEXT:    %k = memref.get_global @__constant_4xf32 : memref<4xf32>
// CHECK-NEXT:    linalg.copy ins(%B : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
// CHECK-NEXT:    linalg.matmul ins(%A, %A : memref<4x4xf32>, memref<4x4xf32>) outs(%y : memref<4x4xf32>)
// CHECK-NEXT:    linalg.generic {{.*}} ins(%y, %k : memref<4x4xf32>, memref<4xf32>) outs(%y : memref<4x4xf32>)
func.func @accumulate(%A: tensor<4x4xf32>, %B: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %k = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %x = linalg.matmul ins(%A, %A : tensor<4x4xf32>, tensor<4x4xf32>) outs(%B : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x, %k : tensor<4x4xf32>, tensor<4xf32>) outs(%x : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A value that is read later is not overwritten; a transposed read of the destination needs other memory.
// CHECK-LABEL: func.func @shared(%A: memref<4x4xf32>, %x: memref<4x4xf32>, %z: memref<4x4xf32>)
// CHECK:         linalg.add ins(%A, %A : memref<4x4xf32>, memref<4x4xf32>) outs(%x : memref<4x4xf32>)
// CHECK-NEXT:    %y = memref.alloc() : memref<4x4xf32>
// CHECK-NEXT:    linalg.exp ins(%x : memref<4x4xf32>) outs(%y : memref<4x4xf32>)
// CHECK-NEXT:    linalg.transpose ins(%y : memref<4x4xf32>) outs(%z : memref<4x4xf32>) permutation = [1, 0]
func.func @shared(%A: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %x = linalg.add ins(%A, %A : tensor<4x4xf32>, tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.exp ins(%x : tensor<4x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = linalg.transpose ins(%y : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) permutation = [1, 0]
  return %x, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A loop carries a tensor in one buffer; a slice that is put back where it was taken is computed there.
// CHECK-LABEL: func.func @rows(%A: memref<?x8xf32>, %n: index, %r: memref<?x8xf32>)
// CHECK:         linalg.copy ins(%A : memref<?x8xf32>) outs(%r : memref<?x8xf32>)
// CHECK-NEXT:    scf.for %i = %c0 to %n step %c1 {
// CHECK-NEXT:      %[[S:.*]] = memref.subview %r[%i, 0] [1, 8] [1, 1] : memref<?x8xf32> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT:      linalg.exp ins(%[[S]] : memref<8xf32, strided<[1], offset: ?>>) outs(%[[S]] : memref<8xf32, strided<[1], offset: ?>>)
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @rows(%A: tensor<?x8xf32>, %n: index) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %A) -> (tensor<?x8xf32>) {
    %s = tensor.extract_slice %t[%i, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<8xf32>
    %y = linalg.exp ins(%s : tensor<8xf32>) outs(%s : tensor<8xf32>) -> tensor<8xf32>
    %u = tensor.insert_slice %y into %t[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<?x8xf32>
    scf.yield %u : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}
