// RUN: weft-opt %s -p bufferize-tensors --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'bufferize-tensors{deallocation=true promises=contract,reassoc}' --split-input-file | filecheck %s --check-prefix=FREE

// CHECK-LABEL: func.func @create(%n: index, %x: f32, %s: memref<?x2xf32>, %f: memref<2xf32>, %g: memref<?x4xf32>)
// CHECK-NEXT:    linalg.fill ins(%x : f32) outs(%s : memref<?x2xf32>)
// CHECK:         memref.store %x, %f[%{{.*}}] : memref<2xf32>
// CHECK-NEXT:    memref.store %x, %f[%{{.*}}] : memref<2xf32>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%g : memref<?x4xf32>) {
// CHECK-NEXT:    ^bb0(%{{.*}}: f32):
// CHECK-NEXT:      %i = linalg.index 0 : index
// CHECK-NEXT:      %j = linalg.index 1 : index
// CHECK-NEXT:      %e = memref.load %s[%i, %i] : memref<?x2xf32>
// CHECK-NEXT:      linalg.yield %e : f32
func.func @create(%n: index, %x: f32) -> (tensor<?x2xf32>, tensor<2xf32>, tensor<?x4xf32>) {
  %s = tensor.splat %x[%n] : tensor<?x2xf32>
  %f = tensor.from_elements %x, %x : tensor<2xf32>
  %g = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %e = tensor.extract %s[%i, %i] : tensor<?x2xf32>
    tensor.yield %e : f32
  } : tensor<?x4xf32>
  return %s, %f, %g : tensor<?x2xf32>, tensor<2xf32>, tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @pad_concat(
// CHECK:         linalg.fill ins(%x : f32) outs(%p : memref<?x6xf32>)
// CHECK-NEXT:    %[[INNER:.*]] = memref.subview %p[%n, 1] [%{{.*}}, 4] [1, 1] : memref<?x6xf32> to memref<?x4xf32, strided<[6, 1], offset: ?>>
// CHECK-NEXT:    linalg.copy ins(%A : memref<?x4xf32>) outs(%[[INNER]] : memref<?x4xf32, strided<[6, 1], offset: ?>>)
// CHECK:         %[[FIRST:.*]] = memref.subview %c[0, 0] [%[[ROWS:.*]], 4] [1, 1] : memref<?x4xf32> to memref<?x4xf32, strided<[4, 1]>>
// CHECK-NEXT:    linalg.copy ins(%A : memref<?x4xf32>) outs(%[[FIRST]] : memref<?x4xf32, strided<[4, 1]>>)
// CHECK:         %[[SECOND:.*]] = memref.subview %c[%[[ROWS]], 0]
func.func @pad_concat(%A: tensor<?x4xf32>, %n: index, %x: f32) -> (tensor<?x6xf32>, tensor<?x4xf32>) {
  %p = tensor.pad %A low[%n, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %x : f32
  } : tensor<?x4xf32> to tensor<?x6xf32>
  %c = tensor.concat dim(0) %A, %A : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %p, %c : tensor<?x6xf32>, tensor<?x4xf32>
}

// -----

// An argument that may be written; a reshape of a slice copies, into the result.
// CHECK-LABEL: func.func @views(%A: memref<4x8xf32>, %d: memref<32xf32>, %f: memref<8xf32>)
// CHECK-NEXT:    %[[C:.*]] = memref.collapse_shape %A {{.*}} : memref<4x8xf32> into memref<32xf32>
// CHECK-NEXT:    linalg.exp ins(%[[C]] : memref<32xf32>) outs(%[[C]] : memref<32xf32>)
// CHECK-NEXT:    %[[X:.*]] = memref.expand_shape %[[C]] {{.*}} output_shape [2, 4, 4] : memref<32xf32> into memref<2x4x4xf32>
// CHECK-NEXT:    %[[S:.*]] = memref.subview %[[X]][0, 0, 1] [2, 4, 1] [1, 1, 1] : memref<2x4x4xf32> to memref<2x4xf32, strided<[16, 4], offset: 1>>
// CHECK-NEXT:    %[[F:.*]] = memref.expand_shape %f {{.*}} output_shape [2, 4] : memref<8xf32> into memref<2x4xf32>
// CHECK-NEXT:    linalg.copy ins(%[[S]] : memref<2x4xf32, strided<[16, 4], offset: 1>>) outs(%[[F]] : memref<2x4xf32>)
// CHECK-NEXT:    linalg.copy ins(%[[C]] : memref<32xf32>) outs(%d : memref<32xf32>)
func.func @views(%A: tensor<4x8xf32> {bufferization.writable = true}) -> (tensor<32xf32>, tensor<8xf32>) {
  %c = tensor.collapse_shape %A [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %d = linalg.exp ins(%c : tensor<32xf32>) outs(%c : tensor<32xf32>) -> tensor<32xf32>
  %x = tensor.expand_shape %d [[0, 1, 2]] output_shape [2, 4, 4] : tensor<32xf32> into tensor<2x4x4xf32>
  %s = tensor.extract_slice %x[0, 0, 1] [2, 4, 1] [1, 1, 1] : tensor<2x4x4xf32> to tensor<2x4xf32>
  %f = tensor.collapse_shape %s [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %d, %f : tensor<32xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @branches(%A: memref<8xf32>, %c: i1, %r: memref<8xf32>)
// CHECK:         scf.if %c {
// CHECK-NEXT:      linalg.fill ins(%x : f32) outs(%r : memref<8xf32>)
// CHECK-NEXT:    } else {
// CHECK-NEXT:      linalg.copy ins(%A : memref<8xf32>) outs(%r : memref<8xf32>)
func.func @branches(%A: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %x = arith.constant 1.0 : f32
  %r = scf.if %c -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %f = linalg.fill ins(%x : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %f : tensor<8xf32>
  } else {
    scf.yield %A : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @tiles(%A: memref<8x8xf32>, %r: memref<8x8xf32>)
// CHECK-NEXT:    linalg.copy ins(%A : memref<8x8xf32>) outs(%r : memref<8x8xf32>)
// CHECK-NEXT:    scf.forall (%i) in (8) {
// CHECK-NEXT:      %[[S:.*]] = memref.subview %r[%i, 0] [1, 8] [1, 1]
// CHECK-NEXT:      linalg.exp ins(%[[S]] : {{.*}}) outs(%[[S]] : memref<8xf32, strided<[1], offset: ?>>)
// CHECK-NEXT:    }
func.func @tiles(%A: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = scf.forall (%i) in (8) shared_outs(%o = %A) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %o[%i, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<8xf32>
    %y = linalg.exp ins(%s : tensor<8xf32>) outs(%s : tensor<8xf32>) -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %y into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<8x8xf32>
    }
  }
  return %r : tensor<8x8xf32>
}

// -----

// CHECK-LABEL: func.func private @update(%A: memref<8xf32>, %B: memref<8xf32>, %r: memref<8xf32>)
// CHECK-NEXT:    linalg.add ins(%A, %B : memref<8xf32>, memref<8xf32>) outs(%A : memref<8xf32>)
// CHECK-NEXT:    linalg.copy ins(%A : memref<8xf32>) outs(%r : memref<8xf32>)
// CHECK-LABEL: func.func @calls(%A: memref<8xf32>, %r: memref<8xf32>)
// CHECK-NEXT:    %[[A:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    linalg.copy ins(%A : memref<8xf32>) outs(%[[A]] : memref<8xf32>)
// CHECK-NEXT:    func.call @update(%[[A]], %A, %r) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
func.func private @update(%A: tensor<8xf32> {bufferization.writable = true}, %B: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.add ins(%A, %B : tensor<8xf32>, tensor<8xf32>) outs(%A : tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
func.func @calls(%A: tensor<8xf32>) -> tensor<8xf32> {
  %r = func.call @update(%A, %A) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// -----

// Tensors of buffers and buffers of tensors. The sum is computed in its destination, the product in the result.
// CHECK-LABEL: func.func @borders(%m: memref<8xf32>, %out: memref<8xf32>, %n: memref<8xf32, strided<[2]>>) -> memref<8xf32> attributes {tir.promises = []}
// CHECK-NEXT:    %u = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    linalg.copy ins(%n : memref<8xf32, strided<[2]>>) outs(%u : memref<8xf32>)
// CHECK-NEXT:    linalg.generic {{.*}} ins(%m, %u : memref<8xf32>, memref<8xf32>) outs(%out : memref<8xf32>)
// CHECK:         %p = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ins(%m, %u : memref<8xf32>, memref<8xf32>) outs(%p : memref<8xf32>)
// CHECK:         func.return %p : memref<8xf32>
func.func @borders(%m: memref<8xf32>, %out: memref<8xf32>, %n: memref<8xf32, strided<[2]>>) -> memref<8xf32> {
  %t = bufferization.to_tensor %m restrict : memref<8xf32> to tensor<8xf32>
  %u = bufferization.to_tensor %n : memref<8xf32, strided<[2]>> to tensor<8xf32>
  %s = arith.addf %t, %u : tensor<8xf32>
  bufferization.materialize_in_destination %s in restrict writable %out : (tensor<8xf32>, memref<8xf32>) -> ()
  %p = arith.mulf %t, %u : tensor<8xf32>
  %b = bufferization.to_buffer %p : tensor<8xf32> to memref<8xf32>
  return %b : memref<8xf32>
}

// -----

// Buffers that the function allocates are freed on request; that of a result is the caller's.
// FREE-LABEL:  func.func @temporaries({{.*}}) -> memref<4xf32> attributes {tir.promises = ["contract", "noalias", "reassoc"]}
// FREE:          %a = memref.alloc() : memref<4xf32>
// FREE:          %b = memref.alloc() : memref<4xf32>
// FREE:          memref.dealloc %a : memref<4xf32>
// FREE-NOT:      memref.dealloc
// FREE:          func.return %b
func.func @temporaries(%A: tensor<4xf32>) -> memref<4xf32> {
  %a = arith.addf %A, %A : tensor<4xf32>
  %b = arith.addf %a, %A : tensor<4xf32>
  %m = bufferization.to_buffer %b : tensor<4xf32> to memref<4xf32>
  return %m : memref<4xf32>
}

// -----

// What was computed in a buffer of the program is not overwritten.
// CHECK-LABEL: func.func @materialized(%A: memref<4xf32>, %out: memref<4xf32>, %z: memref<4xf32>)
// CHECK-NEXT:    linalg.exp ins(%A : memref<4xf32>) outs(%out : memref<4xf32>)
// CHECK-NEXT:    linalg.exp ins(%out : memref<4xf32>) outs(%z : memref<4xf32>)
func.func @materialized(%A: tensor<4xf32>, %out: memref<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %s = linalg.exp ins(%A : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  bufferization.materialize_in_destination %s in restrict writable %out : (tensor<4xf32>, memref<4xf32>) -> ()
  %z = linalg.exp ins(%s : tensor<4xf32>) outs(%s : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
