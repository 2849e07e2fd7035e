// RUN: weft-opt %s --split-input-file -p "convert-stablehlo-to-te{strict=true}" | filecheck %s

// A callee becomes part of its caller; splats are numbers of the expressions.
// CHECK-LABEL: func.func public @main(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>)
// CHECK-NEXT:    %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %dot_general = te.compute "dot_general" (%i, %j) : tensor<2x8xf32> {
// CHECK-NEXT:      %0 = te.reduce sum (%b in 4) : f32 {
// CHECK:         %out = te.compute "maximum" (%i0, %i1) : tensor<2x8xf32> {
// CHECK-NEXT:      %dot_general_1 = tensor.extract %dot_general[%i0, %i1] : tensor<2x8xf32>
// CHECK-NEXT:      %0 = arith.maximumf %dot_general_1, %zero : f32
// CHECK-NEXT:      te.yield %0 : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %out : tensor<2x8xf32>
// CHECK-NOT:   @relu
module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> (tensor<2x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = call @relu(%0) : (tensor<2x8xf32>) -> tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
  func.func private @relu(%arg0: tensor<2x8xf32>) -> tensor<2x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x8xf32>
    return %1 : tensor<2x8xf32>
  }
}

// -----

// Shifts by as many bits as there are, or more, give zero.
// CHECK-LABEL: @integers
// CHECK:         %{{.*}} = te.compute "shift_left"
// CHECK:           [[FITS:%.*]] = arith.andi
// CHECK:           [[BY:%.*]] = arith.select [[FITS]], %n_1, %zero : i32
// CHECK-NEXT:      [[MOVED:%.*]] = arith.shli %i_1, [[BY]] : i32
// CHECK-NEXT:      arith.select [[FITS]], [[MOVED]], %zero : i32
// CHECK:         te.compute "divide"
// CHECK:           arith.divsi
// CHECK:         te.compute "remainder"
// CHECK:           arith.remsi
// CHECK:         te.compute "and"
// CHECK:           arith.andi {{.*}} : i1
func.func @integers(%i: tensor<4xi32>, %n: tensor<4xi32>, %p: tensor<4xi1>) -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>) {
  %0 = stablehlo.shift_left %i, %n : tensor<4xi32>
  %1 = stablehlo.divide %i, %n : tensor<4xi32>
  %2 = stablehlo.remainder %i, %n : tensor<4xi32>
  %3 = stablehlo.and %p, %p : tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi1>
}

// -----

// Floats beyond the integers saturate.
// CHECK-LABEL: @convert
// CHECK:         arith.cmpf ole, %x_1, %{{.*}} : f32
// CHECK:         arith.cmpf oge, %x_1, %{{.*}} : f32
// CHECK:         arith.fptosi
// CHECK-NEXT:    arith.select
// CHECK-NEXT:    arith.select
func.func @convert(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// A convolution with elements inserted into its input, and another layout of its result.
// CHECK-LABEL: @convolution
// CHECK:         te.compute "convolution_pad" {{.*}} : tensor<1x2x9x9xf32>
// CHECK:         te.compute "convolution" {{.*}} : tensor<1x3x7x7xf32>
// CHECK-NEXT:      te.reduce sum (%rc in 2, %rh in 3, %rw in 3) : f32
// CHECK:         te.compute "convolution_layout" {{.*}} : tensor<1x7x7x3xf32>
func.func @convolution(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>) -> tensor<1x7x7x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x7x7x3xf32>
  return %0 : tensor<1x7x7x3xf32>
}

// -----

// A neutral initial value is none; another one is combined with the result. A region becomes a combiner.
// CHECK-LABEL: @reductions
// CHECK:         te.compute "reduce"
// CHECK:           %0 = te.reduce sum (%k1 in 6) : f32 {
// CHECK:           te.yield %0 : f32
// CHECK:         te.compute "reduce"
// CHECK:           %0 = te.reduce max (%k0 in 2) : f32 {
// CHECK:           arith.maximumf %cst{{.*}}, %0
// CHECK:         te.compute "reduce"
// CHECK:           te.reduce custom (%k1 in 6) : f32, i32 {
// CHECK:           } combine (%left, %left_1, %right, %right_1) {
// CHECK-NEXT:        arith.cmpf ogt, %left, %right : f32
func.func @reductions(%x: tensor<2x6xf32>, %i: tensor<2x6xi32>) -> (tensor<2xf32>, tensor<6xf32>, tensor<2xi32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x6xf32>, tensor<f32>) -> tensor<2xf32>
  %1 = stablehlo.reduce(%x init: %two) applies stablehlo.maximum across dimensions = [0] : (tensor<2x6xf32>, tensor<f32>) -> tensor<6xf32>
  %2:2 = stablehlo.reduce(%x init: %low), (%i init: %c) across dimensions = [1] : (tensor<2x6xf32>, tensor<2x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%j: tensor<i32>, %k: tensor<i32>)  {
    %3 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<f32>
    %5 = stablehlo.select %3, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %4, %5 : tensor<f32>, tensor<i32>
  }
  return %0, %1, %2#1 : tensor<2xf32>, tensor<6xf32>, tensor<2xi32>
}

// -----

// A window over a border of the initial value; a sum over all that stands before is cumulative.
// CHECK-LABEL: @windows
// CHECK:         te.compute "reduce_window_pad" {{.*}} : tensor<4x7xf32>
// CHECK:         te.compute "reduce_window" {{.*}} : tensor<4x3xf32>
// CHECK:           te.reduce max (%k1 in 3) : f32
// CHECK:           affine_map<(d0, d1) -> (((d0 * 2) + d1))>
// CHECK:         te.compute "reduce_window_by1"
// CHECK:         te.compute "reduce_window" {{.*}} : tensor<4x6xf32>
func.func @windows(%x: tensor<4x6xf32>) -> (tensor<4x3xf32>, tensor<4x6xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %low) <{padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x3xf32>
  %1 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 4, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4x6xf32>
}

// -----

// Indices from data are moved inside, those of constants are so already.
// CHECK-LABEL: @places
// CHECK:         te.compute "gather" (%i0, %i1) : tensor<3x4xf32> {
// CHECK:           arith.minsi %{{.*}}, %c7 : index
// CHECK-NEXT:      [[ROW:%.*]] = arith.maxsi %{{.*}}, %c0 : index
// CHECK-NEXT:      tensor.extract %x[[[ROW]], %i1] : tensor<8x4xf32>
// CHECK:         te.compute "dynamic_slice" (%i0, %i1) : tensor<2x3xf32> {
// CHECK:           arith.minsi %{{.*}}, %c6 : index
// CHECK:         te.compute "dynamic_update_slice" (%i0, %i1) : tensor<8x4xf32> {
// CHECK:           affine.apply affine_map<(d0) -> ((d0 + -6))> (%i0)
// CHECK:         te.compute "scatter_last"
// CHECK:           te.reduce max
// CHECK:         te.compute "scatter"
func.func @places(%x: tensor<8x4xf32>, %i: tensor<3x1xi32>, %s: tensor<i32>, %u: tensor<2x4xf32>, %v: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<2x3xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %far = stablehlo.constant dense<100> : tensor<i32>
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = stablehlo.dynamic_slice %x, %s, %c, sizes = [2, 3] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %2 = stablehlo.dynamic_update_slice %x, %u, %far, %c : (tensor<8x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  %3 = "stablehlo.scatter"(%x, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<3x4xf32>, tensor<2x3xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Moves: borders that cut off, and elements in between.
// CHECK-LABEL: @moves
// CHECK:         te.compute "pad" (%i0) : tensor<6xf32>
// CHECK:         te.compute "slice" (%i0) : tensor<2xf32>
// CHECK-NEXT:      affine.apply affine_map<(d0) -> (((d0 * 2) + 1))> (%i0)
// CHECK:         te.compute "reverse"
// CHECK:         te.compute "concatenate" {{.*}} : tensor<8xf32>
func.func @moves(%x: tensor<4xf32>) -> (tensor<6xf32>, tensor<2xf32>, tensor<4xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [-1], high = [0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  %1 = stablehlo.slice %x [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>
  %2 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  %3 = stablehlo.concatenate %x, %2, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<6xf32>, tensor<2xf32>, tensor<4xf32>, tensor<8xf32>
}

// -----

// Dense constants stay constants; a value that is returned twice, and a parameter, are copied.
// CHECK-LABEL: @results
// CHECK:         %weights = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK:         %out0 = te.compute "add"
// CHECK:         %out1 = te.compute "copy"
// CHECK:         %out2 = te.compute "copy"
// CHECK:         %out3 = te.compute "out" () : tensor<f32>
func.func @results(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) {
  %weights = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %0 = stablehlo.add %x, %weights : tensor<2xf32>
  return %0, %0, %x, %half : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>
}

// -----

// Extents that an assertion says are equal are one symbol; other assertions are checked by calls.
// CHECK-LABEL: @symbolic
// CHECK-SAME:    (%x: tensor<?x4xf32>, %y: tensor<?x4xf32>)
// CHECK:         %n0 = tensor.dim %x, %c0
// CHECK:         te.assume_shape %y[%n0] : tensor<?x4xf32>
// CHECK:         tir.assume [1] <= [%n0]
// CHECK:         te.compute "add" (%i0 in %n0, %i1) : tensor<?x4xf32>
// CHECK:         [[ALL:%.*]] = affine.apply affine_map<(d0) -> ((d0 * 4))> (%n0)
// CHECK:         te.compute "dynamic_reshape" (%i0 in [[ALL]]) : tensor<?xf32>
func.func public @symbolic(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %2 = stablehlo.compare EQ, %1, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%2, %1, %0) {api_version = 2 : i32, error_message = "sizes differ", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  %3 = stablehlo.compare GE, %0, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%3, %0) {api_version = 2 : i32, error_message = "none", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  %4 = stablehlo.add %x, %y : tensor<?x4xf32>
  %5 = stablehlo.multiply %0, %four : tensor<i32>
  %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
  %7 = stablehlo.dynamic_reshape %4, %6 : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %7 : tensor<?xf32>
}

// -----

// An element takes the branch that is chosen.
// CHECK-LABEL: @branches
// CHECK:         te.compute "case"
// CHECK:           scf.if
func.func @branches(%x: tensor<4xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Functions of other levels stay as they are.
// CHECK-LABEL: func.func @scalar
// CHECK-NEXT:    arith.addf
// CHECK-LABEL: func.func @tensors
// CHECK:         te.compute "tanh"
func.func @scalar(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
func.func @tensors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Dimension numbers as lists, and lists that end in a comma. Operands of dynamic shapes agree.
// CHECK-LABEL: func.func public @lists(
// CHECK:         te.compute "convolution" {{.*}} : tensor<1x2x2x1xf32>
// CHECK-LABEL: func.func public @commas(
// CHECK:         te.compute "dot_general" {{.*}} : tensor<2x2xf32>
// CHECK-LABEL: func.func public @agree(
// CHECK:         te.assume_shape %b[%{{.*}}] : tensor<?xf32>
// CHECK:         te.compute "add"
func.func public @lists(%a: tensor<1x4x4x2xf32>, %k: tensor<3x3x2x1xf32>) -> tensor<1x2x2x1xf32> {
  %0 = "stablehlo.convolution"(%a, %k) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw
      input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],
      output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>,
      feature_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x2x1xf32>) -> tensor<1x2x2x1xf32>
  return %0 : tensor<1x2x2x1xf32>
}
func.func public @commas(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%a, %b) {dot_dimension_numbers = #stablehlo.dot<
      lhs_contracting_dimensions = [1],
      rhs_contracting_dimensions = [0],
    >} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
func.func public @agree(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %a, %b : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// Elements are compared by the region; the bits of floats are integers in the order TOTALORDER.
// CHECK-LABEL: func.func @sorted
// CHECK:         te.extern
// CHECK:           arith.bitcast {{.*}} : f32 to i32
func.func @sorted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A composite that is an operator, and one that its function defines.
// CHECK-LABEL: func.func @composites
// CHECK:         math.erf
// CHECK:         arith.addf
// CHECK-NOT:     @twice
func.func @composites(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @twice} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "mine.twice" %0 {decomposition = @twice} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Complex numbers are pairs of numbers; a parameter of complex elements has its parts along a last dimension.
// CHECK-LABEL: func.func @complex(%z: tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK:         %multiply_real = te.compute "multiply_real" (%i0) : tensor<4xf32> {
// CHECK:         %multiply_imaginary = te.compute "multiply_imaginary" (%i0) : tensor<4xf32> {
// CHECK:         %out = te.compute "out" (%i0, %i1) : tensor<4x2xf32> {
func.func @complex(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.multiply %z, %z : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// Updates that a region of several ops combines are statements.
// CHECK-LABEL: func.func @scattered
// CHECK:         te.extern "scatter"
// CHECK:           tir.for %u0 in 4
func.func @scattered(%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>) -> tensor<5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.subtract %b, %a : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<5xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// Ops on whole tensors are operators of te.ops.
// CHECK-LABEL: func.func @library
// CHECK:         te.compute "einsum"
// CHECK:         te.extern "cholesky"
func.func @library(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = stablehlo.einsum %x, %x, config = "ij,kj->ik" : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = stablehlo.cholesky %0, lower = true : tensor<3x3xf32>
  return %1 : tensor<3x3xf32>
}

// -----

// Quantised tensors are those of their integers; computing ops convert them to numbers and back.
// CHECK-LABEL: func.func @quantised(%x: tensor<4xi8>) -> tensor<4xi8>
// CHECK:         te.compute "broadcast_subtract"
// CHECK:         te.compute "broadcast_multiply"
// CHECK:         math.tanh
// CHECK:         te.compute "broadcast_divide"
// CHECK:         te.compute "round_nearest_even"
func.func @quantised(%x: tensor<4x!quant.uniform<i8:f32, 0.1:-3>>) -> tensor<4x!quant.uniform<i8<-127:127>:f32, 0.01>> {
  %0 = "stablehlo.tanh"(%x) : (tensor<4x!quant.uniform<i8:f32, 0.1:-3>>) -> tensor<4x!quant.uniform<i8<-127:127>:f32, 0.01>>
  return %0 : tensor<4x!quant.uniform<i8<-127:127>:f32, 0.01>>
}

// -----

// LAPACK calls of JAX are the same operators.
// CHECK-LABEL: func.func @lapack
// CHECK:         te.extern "householder_factors"
// CHECK:         te.extern "householder_product"
func.func @lapack(%x: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %0:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%x) {mhlo.backend_config = {}} : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>)
  %1 = stablehlo.custom_call @lapack_sorgqr_ffi(%0#0, %0#1) {mhlo.backend_config = {}} : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
  return %1 : tensor<5x3xf32>
}
