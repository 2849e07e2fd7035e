// RUN: weft-opt %s -p graph-infer-types,legalize-graph-to-te,lower-te-to-tir,lower-graph-to-tir --validate --split-input-file | filecheck %s
// RUN: weft-opt %s -p graph-infer-types,legalize-graph-to-te,lower-te-to-tir,'lower-graph-to-tir{views=false}' --split-input-file | filecheck %s --check-prefix=APART
// RUN: weft-opt %s -p graph-infer-types,legalize-graph-to-te,lower-te-to-tir,'lower-graph-to-tir{parts=false}' --split-input-file | filecheck %s --check-prefix=WHOLE

// Reshapes of a temporary are the temporary. Kernels that nothing calls go.
// CHECK-LABEL: func.func @reshapes
// CHECK:         %a = memref.alloc(%n) : memref<?x4x6xf32>
// CHECK-NEXT:    %b = memref.reinterpret_cast %a to offset: [0], sizes: [%n, 24], strides: [24, 1] : memref<?x4x6xf32> to memref<?x24xf32>
// CHECK-NEXT:    %c = memref.reinterpret_cast %a to offset: [0], sizes: [%n, 3, 1, 8], strides: [24, 8, 8, 1] : memref<?x4x6xf32> to memref<?x3x1x8xf32>
// CHECK-NEXT:    func.call @relu(%x, %a)
// CHECK-NEXT:    func.call @exp(%b, %e)
// CHECK-NEXT:    func.call @exp_1(%c, %f)
// CHECK-NOT:   @reshape
// APART-LABEL: func.func @reshapes
// APART:         func.call @reshape
//
// Without parts, views start where buffers do.
// WHOLE-LABEL: func.func @reshapes
// WHOLE-NOT:     call @reshape
func.func @reshapes(%x: tensor<?x4x6xf32, #graph.dims<n>>) -> (tensor<?x24xf32, #graph.dims<n>>, tensor<?x3x1x8xf32, #graph.dims<n>>) {
  %a = graph.relu %x : tensor<?x4x6xf32, #graph.dims<n>> -> tensor<?x4x6xf32, #graph.dims<n>>
  %b = graph.reshape %a {newshape = [-1 : i64, 24 : i64]} : tensor<?x4x6xf32, #graph.dims<n>> -> tensor<?x24xf32, #graph.dims<n>>
  %c = graph.reshape %b {newshape = [-1 : i64, 3 : i64, 1 : i64, 8 : i64]} : tensor<?x24xf32, #graph.dims<n>> -> tensor<?x3x1x8xf32, #graph.dims<n>>
  %e = graph.exp %b : tensor<?x24xf32, #graph.dims<n>> -> tensor<?x24xf32, #graph.dims<n>>
  %f = graph.exp %c : tensor<?x3x1x8xf32, #graph.dims<n>> -> tensor<?x3x1x8xf32, #graph.dims<n>>
  func.return %e, %f : tensor<?x24xf32, #graph.dims<n>>, tensor<?x3x1x8xf32, #graph.dims<n>>
}

// -----

// Parts along the first axis lie in the memory of the whole.
// CHECK-LABEL: func.func @slices
// CHECK:         %a = memref.alloc() : memref<384xi8>
// CHECK:         %a_1 = memref.view %a[%{{.*}}][] : memref<384xi8> to memref<6x16xf32>
// CHECK-NEXT:    %c = memref.alloc() : memref<6x8xf32>
// CHECK-NEXT:    %[[C128:.*]] = arith.constant 128 : index
// CHECK-NEXT:    %b = memref.view %a[%[[C128]]][] : memref<384xi8> to memref<2x16xf32>
// CHECK-NEXT:    func.call @relu(%x, %a_1)
// CHECK-NEXT:    func.call @strided_slice_1(%a_1, %c)
// CHECK-NEXT:    func.call @exp(%b, %e)
// CHECK-NEXT:    func.call @exp_1(%c, %f)
// CHECK-NOT:     @strided_slice(
// WHOLE-LABEL: func.func @slices
// WHOLE-NOT:     memref.view
// WHOLE:         func.call @strided_slice(
func.func @slices(%x: tensor<6x16xf32>) -> (tensor<2x16xf32>, tensor<6x8xf32>) {
  %a = graph.relu %x : tensor<6x16xf32> -> tensor<6x16xf32>
  %b = graph.strided_slice %a {begin = [2 : i64], end = [4 : i64]} : tensor<6x16xf32> -> tensor<2x16xf32>
  %c = graph.strided_slice %a {begin = [0 : i64, 8 : i64], end = [6 : i64, 16 : i64]} : tensor<6x16xf32> -> tensor<6x8xf32>
  %e = graph.exp %b : tensor<2x16xf32> -> tensor<2x16xf32>
  %f = graph.exp %c : tensor<6x8xf32> -> tensor<6x8xf32>
  func.return %e, %f : tensor<2x16xf32>, tensor<6x8xf32>
}

// -----

// All parts of a split are, or none.
// CHECK-LABEL: func.func @parts
// CHECK:         %b = memref.view %a[
// CHECK:         %c = memref.view %a[
// CHECK:         func.call @relu(%x, %a_1)
// CHECK-NEXT:    func.call @exp(%b, %e)
// CHECK-NEXT:    func.call @exp(%c, %f)
// CHECK-NEXT:    func.call @split_1(%f, %g, %h)
// CHECK-NEXT:    func.call @exp_1(%g, %i)
func.func @parts(%x: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>) {
  %a = graph.relu %x : tensor<8x16xf32> -> tensor<8x16xf32>
  %b, %c = graph.split %a {indices_or_sections = 2 : i64} : tensor<8x16xf32> -> tensor<4x16xf32>, tensor<4x16xf32>
  %e = graph.exp %b : tensor<4x16xf32> -> tensor<4x16xf32>
  %f = graph.exp %c : tensor<4x16xf32> -> tensor<4x16xf32>
  %g, %h = graph.split %f {indices_or_sections = 2 : i64} : tensor<4x16xf32> -> tensor<2x16xf32>, tensor<2x16xf32>
  %i = graph.exp %g : tensor<2x16xf32> -> tensor<2x16xf32>
  func.return %e, %h, %i : tensor<4x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>
}

// -----

// Tensors that are joined are computed into their places, reshaped ones too. Not those of callers, nor one twice.
// CHECK-LABEL: func.func @joined
// CHECK:         %c = memref.alloc(%{{.*}}) : memref<?xi8>
// CHECK:         %a = memref.view %c[%{{.*}}][%n] : memref<?xi8> to memref<?x2x8xf32>
// CHECK:         %b = memref.view %c[%{{.*}}][%n] : memref<?xi8> to memref<?x16xf32>
// CHECK:         %c_1 = memref.view %c[%{{.*}}][%{{.*}}] : memref<?xi8> to memref<?x16xf32>
// CHECK:         func.call @relu(%x, %a)
// CHECK-NEXT:    func.call @exp(%y, %b)
// CHECK-NEXT:    func.call @tanh(%c_1, %d)
// CHECK-NEXT:    func.call @concatenate_1(%y, %c_1, %e)
// CHECK-NEXT:    func.call @tanh{{.*}}(%e, %f)
// CHECK-NEXT:    func.call @stack(%f, %f, %g)
// CHECK-NEXT:    func.call @tanh{{.*}}(%g, %h)
// WHOLE-LABEL: func.func @joined
// WHOLE-NOT:     memref.view
// WHOLE:         func.call @concatenate(
func.func @joined(%x: tensor<?x2x8xf32, #graph.dims<n>>, %y: tensor<?x16xf32, #graph.dims<n>>) -> (tensor<?x16xf32, #graph.dims<2 * n>>, tensor<2x?x16xf32, #graph.dims<3 * n>>) {
  %a = graph.relu %x : tensor<?x2x8xf32, #graph.dims<n>> -> tensor<?x2x8xf32, #graph.dims<n>>
  %a2 = graph.reshape %a {newshape = [-1 : i64, 16 : i64]} : tensor<?x2x8xf32, #graph.dims<n>> -> tensor<?x16xf32, #graph.dims<n>>
  %b = graph.exp %y : tensor<?x16xf32, #graph.dims<n>> -> tensor<?x16xf32, #graph.dims<n>>
  %c = graph.concatenate %a2, %b {axis = 0 : i64} : tensor<?x16xf32, #graph.dims<n>>, tensor<?x16xf32, #graph.dims<n>> -> tensor<?x16xf32, #graph.dims<2 * n>>
  %d = graph.tanh %c : tensor<?x16xf32, #graph.dims<2 * n>> -> tensor<?x16xf32, #graph.dims<2 * n>>
  %e = graph.concatenate %y, %c {axis = 0 : i64} : tensor<?x16xf32, #graph.dims<n>>, tensor<?x16xf32, #graph.dims<2 * n>> -> tensor<?x16xf32, #graph.dims<3 * n>>
  %f = graph.tanh %e : tensor<?x16xf32, #graph.dims<3 * n>> -> tensor<?x16xf32, #graph.dims<3 * n>>
  %g = graph.stack %f, %f {axis = 0 : i64} : tensor<?x16xf32, #graph.dims<3 * n>>, tensor<?x16xf32, #graph.dims<3 * n>> -> tensor<2x?x16xf32, #graph.dims<3 * n>>
  %h = graph.tanh %g : tensor<2x?x16xf32, #graph.dims<3 * n>> -> tensor<2x?x16xf32, #graph.dims<3 * n>>
  func.return %d, %h : tensor<?x16xf32, #graph.dims<2 * n>>, tensor<2x?x16xf32, #graph.dims<3 * n>>
}

// -----

// A reshaped result is computed into the result; what is a part of a buffer of the caller is copied to a result.
// CHECK-LABEL: func.func @results(%x: memref<4x6xf32>, %b: memref<24xf32>, %c: memref<2x6xf32>, %d: memref<24xf32>, %e: memref<24xf32>)
// CHECK:         %a = memref.reinterpret_cast %b to offset: [0], sizes: [4, 6], strides: [6, 1] : memref<24xf32> to memref<4x6xf32>
// CHECK-NEXT:    %e0 = memref.reinterpret_cast %e to offset: [0], sizes: [2, 12], strides: [12, 1] : memref<24xf32> to memref<2x12xf32>
// CHECK-NEXT:    %x2 = memref.reinterpret_cast %x to offset: [0], sizes: [2, 12], strides: [12, 1] : memref<4x6xf32> to memref<2x12xf32>
// CHECK:         func.call @relu(%x, %a)
// CHECK-NEXT:    func.call @strided_slice(%a, %c)
// CHECK-NEXT:    func.call @reshape(%x, %d)
// CHECK-NEXT:    func.call @exp(%x2, %e0)
func.func @results(%x: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<2x6xf32>, tensor<24xf32>, tensor<24xf32>) {
  %a = graph.relu %x : tensor<4x6xf32> -> tensor<4x6xf32>
  %b = graph.reshape %a {newshape = [24 : i64]} : tensor<4x6xf32> -> tensor<24xf32>
  %c = graph.strided_slice %a {begin = [2 : i64], end = [4 : i64]} : tensor<4x6xf32> -> tensor<2x6xf32>
  %d = graph.reshape %x {newshape = [24 : i64]} : tensor<4x6xf32> -> tensor<24xf32>
  %x2 = graph.reshape %x {newshape = [2 : i64, 12 : i64]} : tensor<4x6xf32> -> tensor<2x12xf32>
  %e0 = graph.exp %x2 : tensor<2x12xf32> -> tensor<2x12xf32>
  %e = graph.reshape %e0 {newshape = [24 : i64]} : tensor<2x12xf32> -> tensor<24xf32>
  func.return %b, %c, %d, %e : tensor<24xf32>, tensor<2x6xf32>, tensor<24xf32>, tensor<24xf32>
}

// -----

// A dimension of 3 * n elements is split: the kernel would take `n`, which the shape of its operand does not give.
// CHECK-LABEL: func.func @factors
// CHECK:         %a = memref.alloc(%{{.*}}) : memref<?x8xf32>
// CHECK:         %b = memref.reinterpret_cast %a to offset: [0], sizes: [%{{.*}}, 3, 8], strides: [24, 8, 1] : memref<?x8xf32> to memref<?x3x8xf32>
// CHECK:         func.call @relu(%x, %a)
// CHECK-NOT:     @reshape
// APART-LABEL: func.func @factors
// APART:         func.call @reshape(%a, %{{.*}}, %b) : (memref<?x8xf32>, index, memref<?x3x8xf32>)
func.func @factors(%x: tensor<?x8xf32, #graph.dims<3 * n>>) -> tensor<?x3x8xf32, #graph.dims<n>> {
  %a = graph.relu %x : tensor<?x8xf32, #graph.dims<3 * n>> -> tensor<?x8xf32, #graph.dims<3 * n>>
  %b = graph.reshape %a {newshape = [-1 : i64, 3 : i64, 8 : i64]} : tensor<?x8xf32, #graph.dims<3 * n>> -> tensor<?x3x8xf32, #graph.dims<n>>
  %c = graph.tanh %b : tensor<?x3x8xf32, #graph.dims<n>> -> tensor<?x3x8xf32, #graph.dims<n>>
  func.return %c : tensor<?x3x8xf32, #graph.dims<n>>
}
