// RUN: weft-opt %s --split-input-file --verify-diagnostics -p "convert-stablehlo-to-te{strict=true}"

func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.while: there is no tensor expression for it}}
  %0 = stablehlo.while(%v = %x) : tensor<4xf32>
  cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    stablehlo.return %v : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @narrow(%x: tensor<4xf32>) -> tensor<4xi8> {
  // expected-error@+1 {{reinterpret takes numbers of one width, got float32}}
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// -----

// expected-error@+1 {{@main: elements of type i128 are not supported}}
func.func @main(%x: tensor<4xi128>) -> tensor<4xi128> {
  %0 = stablehlo.add %x, %x : tensor<4xi128>
  return %0 : tensor<4xi128>
}

// -----

func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@+1 {{stablehlo.convert: elements of type i17 are not supported}}
  %0 = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi17>
  %1 = stablehlo.convert %0 : (tensor<4xi17>) -> tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@+1 {{stablehlo.exponential: elements of type int32 are not supported}}
  %0 = stablehlo.exponential %x : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @main(%x: tensor<4xi1>) -> tensor<4xi1> {
  // expected-error@+1 {{stablehlo.remainder: elements of type bool are not supported}}
  %0 = stablehlo.remainder %x, %x : tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

func.func @main(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{stablehlo.convolution: convolutions over 0 spatial dimensions are not supported, over 1 to 3 are}}
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f]x[o, i]->[b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<1x4x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x2xf32> {
  // expected-error@+1 {{stablehlo.convolution: conv1d: x of shape (1, 4, 4) has 4 channels, but w of shape (3, 2, 3) takes 2 in each of 1 groups}}
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4xf32>, tensor<3x2x3xf32>) -> tensor<1x3x2xf32>
  return %0 : tensor<1x3x2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) -> tensor<2x5xf32> {
  // expected-error@+1 {{stablehlo.dot_general: einsum}}
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %y: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{stablehlo.reduce: the region uses a value from outside that is not constant}}
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>)  {
    %1 = stablehlo.multiply %b, %y : tensor<f32>
    %2 = stablehlo.add %a, %1 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{stablehlo.reduce: stablehlo.iota in the region is not supported}}
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>)  {
    %1 = stablehlo.iota dim = 0 : tensor<1xf32>
    stablehlo.return %a : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.custom_call: @my_kernel is not known}}
  %0 = stablehlo.custom_call @my_kernel(%x) {api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %p = stablehlo.compare EQ, %n, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  // expected-error@+1 {{stablehlo.custom_call: the shapes do not fit this assertion}}
  stablehlo.custom_call @shape_assertion(%p, %n) {api_version = 2 : i32} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{stablehlo.tanh: result 0 is declared tensor<5xf32>, but the operands give (4,) of float32}}
  %0 = stablehlo.tanh %x : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @main(%x: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{stablehlo.broadcast_in_dim: extent 3 does not broadcast to 4}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @main(%x: tensor<3xf32>, %y: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{stablehlo.add: operands of shapes (3,) and (4,)}}
  %0 = stablehlo.add %x, %y : (tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<f32>, %s: tensor<1xi32>) -> tensor<?xf32> {
  // expected-error@+1 {{stablehlo.dynamic_broadcast_in_dim: the shape is computed from data, not from extents}}
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<?xf32>, %v: tensor<f32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %l = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  // expected-error@+1 {{stablehlo.dynamic_pad: interior_padding is not constant}}
  %0 = stablehlo.dynamic_pad %x, %v, %l, %l, %l : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{stablehlo.add: operands of shapes (4,) and (5,)}}
  %0 = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  // expected-error@+1 {{func.call: @main calls itself}}
  %1 = func.call @main(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func private @outside(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  // expected-error@+1 {{func.call: there is no function @outside with a body}}
  %1 = func.call @outside(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{arith.addf: only ops of stablehlo and chlo are converted}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  %1 = stablehlo.tanh %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{@main: parameters are tensors, got f32}}
func.func @main(%x: tensor<4xf32>, %y: f32) -> tensor<4xf32> {
  %1 = stablehlo.tanh %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error@+1 {{@main returns nothing}}
func.func @main(%x: tensor<4xf32>) {
  %1 = stablehlo.tanh %x : tensor<4xf32>
  return
}

// -----

// expected-error@+1 {{convert-stablehlo-to-te: no function holds ops of stablehlo}}
builtin.module {
  func.func @main(%x: f32) -> f32 {
    return %x : f32
  }
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.reverse has no keyword 'axes' (known: dims)}}
  %0 = stablehlo.reverse %x, axes = [0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.add takes 2 operands, got 1}}
  %0 = stablehlo.add %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x2xf32>, %i: tensor<i32>) -> tensor<2x2xf32> {
  // expected-error@+1 {{stablehlo.dynamic_slice: operands and attributes do not fit each other}}
  %0 = stablehlo.dynamic_slice %x, %i, sizes = [2, 2] : (tensor<4x2xf32>, tensor<i32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @main(%x: tensor<4x2xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error@+1 {{stablehlo.reduce: operands and attributes do not fit each other}}
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @gathered(%x: tensor<4x3xf32>, %i: tensor<2xi32>) -> tensor<2x3xf32> {
  // expected-error@+1 {{'stablehlo.gather': offset_dims are different dimensions of tensor<2x3xf32>, got [4294967296]}}
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [4294967296], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @scattered(%x: tensor<4xf32>, %i: tensor<2xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'stablehlo.scatter': index_vector_dim is 0 to 1, got 2}}
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// A symbol table that lacks its region.
func.func @table() {
  // expected-error@+1 {{Expected 1 region}}
  "gpu.module"() <{sym_name = "kernels"}> : () -> ()
  return
}

// -----

func.func @main(%x: tensor<4x5x4xf32>, %w: tensor<2x1x4xf32>) -> tensor<2x4x4xf32> {
  // expected-error@+1 {{stablehlo.convolution: feature_group_count = 2 and batch_group_count = 2 are not supported}}
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 2 : i64} : (tensor<4x5x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{stablehlo.all_reduce: ops of several devices and of hosts are not supported: weft compiles for one device}}
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %z = stablehlo.complex %x, %y : tensor<4xcomplex<f32>>
  // expected-error@+1 {{stablehlo.compare: complex numbers have no order, got LT}}
  %0 = stablehlo.compare LT, %z, %z : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// -----

func.func @main(%x: tensor<3xui64>) -> tensor<4xi32> {
  // expected-error@+1 {{stablehlo.rng_bit_generator: the state of THREE_FRY has 2 elements, got 3}}
  %s, %0 = stablehlo.rng_bit_generator %x, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xi32>)
  return %0 : tensor<4xi32>
}

// -----

func.func @main(%x: tensor<3x3x3xf32>, %y: tensor<3xf32>) -> tensor<3x3xf32> {
  // expected-error@+1 {{stablehlo.dot: operands have 1 or 2 dimensions, got 3 and 1}}
  %0 = stablehlo.dot %x, %y : (tensor<3x3x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

!a = tensor<4x!quant.uniform<i8:f32, 0.1:-3>>
!b = tensor<4x!quant.uniform<i8:f32, 0.2>>
func.func @main(%x: !a) -> !b {
  // expected-error@+1 {{stablehlo.reverse: it moves elements, whose types are !quant.uniform<i8:f32, 0.1:-3> and !quant.uniform<i8:f32, 0.2>}}
  %0 = "stablehlo.reverse"(%x) <{dimensions = array<i64: 0>}> : (!a) -> !b
  return %0 : !b
}
