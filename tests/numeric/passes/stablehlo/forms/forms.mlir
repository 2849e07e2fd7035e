// Forms of ops that the programs which JAX printed do not have. Written from the specification.

func.func @special_floats(%x: tensor<8xf32>, %y: tensor<8xf32>, %low: tensor<f32>, %high: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) {
  %0 = stablehlo.sign %x : tensor<8xf32>
  %1 = stablehlo.clamp %low, %x, %high : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.maximum %x, %y : tensor<8xf32>
  %3 = stablehlo.round_nearest_afz %x : tensor<8xf32>
  %4 = stablehlo.compare NE, %x, %y, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %5 = stablehlo.compare GE, %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %6 = chlo.is_inf %x : tensor<8xf32> -> tensor<8xi1>
  %7 = chlo.is_neg_inf %x : tensor<8xf32> -> tensor<8xi1>
  %8 = chlo.is_pos_inf %x : tensor<8xf32> -> tensor<8xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>, tensor<8xi1>
}

func.func @special_integers(%i: tensor<8xi32>, %n: tensor<8xi32>, %b: tensor<8xi8>, %l: tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi8>, tensor<8xi8>, tensor<8xi64>, tensor<8xi32>, tensor<8xi64>, tensor<8xi8>) {
  %0 = stablehlo.shift_left %i, %n : tensor<8xi32>
  %1 = stablehlo.shift_right_arithmetic %i, %n : tensor<8xi32>
  %2 = stablehlo.shift_right_logical %i, %n : tensor<8xi32>
  %3 = stablehlo.power %i, %n : tensor<8xi32>
  %4 = stablehlo.count_leading_zeros %b : tensor<8xi8>
  %5 = stablehlo.popcnt %b : tensor<8xi8>
  %6 = stablehlo.convert %i : (tensor<8xi32>) -> tensor<8xi64>
  %7 = stablehlo.convert %l : (tensor<8xi64>) -> tensor<8xi32>
  %8 = stablehlo.abs %l : tensor<8xi64>
  %9 = stablehlo.not %b : tensor<8xi8>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi8>, tensor<8xi8>, tensor<8xi64>, tensor<8xi32>, tensor<8xi64>, tensor<8xi8>
}

func.func @truth(%p: tensor<4xi1>, %q: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<i1>) {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %0 = stablehlo.compare LT, %p, %q, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %1 = stablehlo.add %p, %q : tensor<4xi1>
  %2 = stablehlo.multiply %p, %q : tensor<4xi1>
  %3 = stablehlo.maximum %p, %q : tensor<4xi1>
  %4 = stablehlo.minimum %p, %q : tensor<4xi1>
  %5 = stablehlo.reduce(%p init: %true) applies stablehlo.minimum across dimensions = [0] : (tensor<4xi1>, tensor<i1>) -> tensor<i1>
  return %0, %1, %2, %3, %4, %5 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<i1>
}

func.func @converts(%d: tensor<8xf64>, %h: tensor<8xf16>) -> (tensor<8xi32>, tensor<8xi64>, tensor<8xi8>, tensor<8xi32>, tensor<8xf32>, tensor<8xi16>) {
  %0 = stablehlo.convert %d : (tensor<8xf64>) -> tensor<8xi32>
  %1 = stablehlo.convert %d : (tensor<8xf64>) -> tensor<8xi64>
  %2 = stablehlo.convert %d : (tensor<8xf64>) -> tensor<8xi8>
  %3 = stablehlo.convert %h : (tensor<8xf16>) -> tensor<8xi32>
  %4 = stablehlo.convert %d : (tensor<8xf64>) -> tensor<8xf32>
  %5 = stablehlo.convert %h : (tensor<8xf16>) -> tensor<8xi16>
  return %0, %1, %2, %3, %4, %5 : tensor<8xi32>, tensor<8xi64>, tensor<8xi8>, tensor<8xi32>, tensor<8xf32>, tensor<8xi16>
}

func.func @convolutions(%x: tensor<2x5x6x4xf32>, %w: tensor<3x2x4x2xf32>, %v: tensor<1x2x4x3x3x2xf32>, %u: tensor<3x2x2x2x2xf32>, %g: tensor<3x3x1x8xf32>) -> (tensor<2x2x5x7xf32>, tensor<2x3x3x2xf32>, tensor<1x3x4x2x3xf32>, tensor<2x3x2x8xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x6x4xf32>, tensor<3x2x4x2xf32>) -> tensor<2x2x5x7xf32>
  %1 = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 1>, padding = dense<[[0, -1], [2, 0]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 3>, window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 2>}> : (tensor<2x5x6x4xf32>, tensor<3x2x4x2xf32>) -> tensor<2x3x3x2xf32>
  %2 = stablehlo.reshape %v : (tensor<1x2x4x3x3x2xf32>) -> tensor<1x2x4x3x6xf32>
  %3 = stablehlo.slice %2 [0:1, 0:2, 0:4, 0:3, 0:6:2] : (tensor<1x2x4x3x6xf32>) -> tensor<1x2x4x3x3xf32>
  %4 = stablehlo.convolution(%3, %u) dim_numbers = [b, f, 0, 1, 2]x[o, i, 0, 1, 2]->[b, f, 0, 1, 2], window = {pad = [[0, 1], [0, 0], [1, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x3x3xf32>, tensor<3x2x2x2x2xf32>) -> tensor<1x3x4x2x3xf32>
  %5 = stablehlo.convolution(%x, %g) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 3], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x5x6x4xf32>, tensor<3x3x1x8xf32>) -> tensor<2x3x2x8xf32>
  return %0, %1, %4, %5 : tensor<2x2x5x7xf32>, tensor<2x3x3x2xf32>, tensor<1x3x4x2x3xf32>, tensor<2x3x2x8xf32>
}

func.func @windows(%x: tensor<5x6xf32>, %start: tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xi32>, tensor<5x2xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %i = stablehlo.iota dim = 1 : tensor<5x6xi32>
  %0:2 = "stablehlo.reduce_window"(%x, %i, %low, %c) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %j: tensor<i32>, %b: tensor<f32>, %k: tensor<i32>):
    %2 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
    %4 = stablehlo.select %2, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %3, %4 : tensor<f32>, tensor<i32>
  }) : (tensor<5x6xf32>, tensor<5x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  %1 = "stablehlo.reduce_window"(%x, %start) <{base_dilations = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 4>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<f32>) -> tensor<5x2xf32>
  return %0#0, %0#1, %1 : tensor<4x3xf32>, tensor<4x3xi32>, tensor<5x2xf32>
}

func.func @reductions(%x: tensor<3x4xf32>, %i: tensor<3x4xi32>, %start: tensor<f32>) -> (tensor<f32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<3xi32>) {
  %c = stablehlo.constant dense<-1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%x init: %start) applies stablehlo.multiply across dimensions = [] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %2 = "stablehlo.reduce"(%x, %none) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.abs %b : tensor<f32>
    %6 = stablehlo.maximum %a, %5 : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.reduce(%i init: %c) applies stablehlo.and across dimensions = [0] : (tensor<3x4xi32>, tensor<i32>) -> tensor<4xi32>
  %4 = stablehlo.reduce(%i init: %zero) applies stablehlo.xor across dimensions = [1] : (tensor<3x4xi32>, tensor<i32>) -> tensor<3xi32>
  return %0, %1, %2, %3, %4 : tensor<f32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<3xi32>
}

func.func @places(%x: tensor<6x5xf32>, %i: tensor<3x2xi64>, %j: tensor<2x3xi32>, %u: tensor<3x2x2xf32>) -> (tensor<2x3x2xf32>, tensor<3x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<2x5xf32>) {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 2>}> : (tensor<6x5xf32>, tensor<3x2xi64>) -> tensor<2x3x2xf32>
  %1 = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0, 1]>, slice_sizes = array<i64: 1, 5>}> : (tensor<6x5xf32>, tensor<2x3xi32>) -> tensor<3x5xf32>
  %2 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<3x2xi64>, tensor<3x2x2xf32>) -> tensor<6x5xf32>
  %3 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<6x5xf32>, tensor<3x2xi64>, tensor<3x2x2xf32>) -> tensor<6x5xf32>
  %4 = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %5 = "stablehlo.gather"(%x, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}> : (tensor<6x5xf32>, tensor<2xi32>) -> tensor<2x5xf32>
  return %0, %1, %2, %3, %5 : tensor<2x3x2xf32>, tensor<3x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>, tensor<2x5xf32>
}

func.func @dynamic(%x: tensor<?x4xf32>, %v: tensor<f32>) -> (tensor<?x4xf32>, tensor<?xf32>, tensor<?x7xf32>, tensor<?x2xf32>, tensor<i32>) {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %none = stablehlo.constant dense<[0, 0]> : tensor<2xi32>
  %steps = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %high = stablehlo.constant dense<[0, -1]> : tensor<2xi32>
  %inner = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
  %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %end = stablehlo.concatenate %m, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.real_dynamic_slice %x, %low, %end, %steps : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  %1 = stablehlo.dynamic_iota %m, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %2 = stablehlo.dynamic_pad %x, %v, %low, %none, %inner : (tensor<?x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x7xf32>
  %sizes = stablehlo.concatenate %m, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %3 = "stablehlo.dynamic_gather"(%x, %none, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>}> : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x2xf32>
  %4 = stablehlo.subtract %n, %n : tensor<i32>
  return %0, %1, %2, %3, %4 : tensor<?x4xf32>, tensor<?xf32>, tensor<?x7xf32>, tensor<?x2xf32>, tensor<i32>
}

func.func @control(%x: tensor<3xf32>, %i: tensor<i32>, %p: tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>, tensor<f32>) {
  %two = stablehlo.constant dense<2.0> : tensor<3xf32>
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<3xf32>
  }, {
    %2 = stablehlo.multiply %x, %two : tensor<3xf32>
    stablehlo.return %2 : tensor<3xf32>
  }, {
    stablehlo.return %two : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  %1:2 = "stablehlo.if"(%p) ({
    %2 = stablehlo.constant dense<1.0> : tensor<f32>
    stablehlo.return %x, %2 : tensor<3xf32>, tensor<f32>
  }, {
    %2 = stablehlo.constant dense<3.0> : tensor<f32>
    %3:2 = stablehlo.optimization_barrier %two, %2 : tensor<3xf32>, tensor<f32>
    stablehlo.return %3#0, %3#1 : tensor<3xf32>, tensor<f32>
  }) : (tensor<i1>) -> (tensor<3xf32>, tensor<f32>)
  return %0, %1#0, %1#1 : tensor<3xf32>, tensor<3xf32>, tensor<f32>
}

func.func @pooled(%x: tensor<5x6xf32>, %y: tensor<3x3xf32>, %z: tensor<f32>) -> (tensor<5x6xf32>, tensor<5x6xf32>) {
  %0 = "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 2>, padding = dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<5x6xf32>
  %1 = "stablehlo.select_and_scatter"(%x, %y, %z) <{window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 2>, padding = dense<[[0, 1], [1, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<5x6xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<5x6xf32>
  return %0, %1 : tensor<5x6xf32>, tensor<5x6xf32>
}

func.func @order(%x: tensor<8xf32>, %y: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xf32>, tensor<8xi1>) {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  %1 = stablehlo.bitcast_convert %x : (tensor<8xf32>) -> tensor<8xi32>
  %2 = stablehlo.bitcast_convert %y : (tensor<8xi32>) -> tensor<8xf32>
  %3 = stablehlo.compare LE, %x, %2, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  return %0#0, %0#1, %1, %2, %3 : tensor<8xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xf32>, tensor<8xi1>
}

func.func @grouped(%x: tensor<4x5x3xf32>, %w: tensor<2x3x6xf32>, %t: tensor<2x4x3xf32>, %i: tensor<2x2xi32>, %u: tensor<2x2x3xf32>) -> (tensor<2x4x6xf32>, tensor<2x4x3xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x5x3xf32>, tensor<2x3x6xf32>) -> tensor<2x4x6xf32>
  %1 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x4x3xf32>, tensor<2x2xi32>, tensor<2x2x3xf32>) -> tensor<2x4x3xf32>
  return %0, %1 : tensor<2x4x6xf32>, tensor<2x4x3xf32>
}
