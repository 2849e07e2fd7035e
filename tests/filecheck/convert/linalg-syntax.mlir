// RUN: weft-opt --split-input-file %s | filecheck %s
// RUN: weft-opt --split-input-file --print-op-generic %s | weft-opt --split-input-file | filecheck %s

// CHECK-LABEL: @products
func.func @products(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%{{.*}}, %{{.*}} : tensor<4x8xf16>, tensor<8x4xf16>) outs(%{{.*}} : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.matmul ins(
  %1 = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.matmul indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>] ins(
  %2 = linalg.matmul indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%b, %b : tensor<8x4xf16>, tensor<8x4xf16>) outs(%1 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.contract indexing_maps = [
  %3 = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
    ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%2 : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: @elements
func.func @elements(%a: tensor<4x4xf32>, %v: tensor<4xf32>, %h: tensor<4x4xf16>, %s: f64) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(
  %0 = linalg.elementwise kind=#linalg.elementwise_kind<exp> ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.elementwise kind=#linalg.elementwise_kind<add> indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>] ins(
  %1 = linalg.elementwise kind=#linalg.elementwise_kind<add>
    indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>]
    ins(%0, %v : tensor<4x4xf32>, tensor<4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.transpose ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x4xf32>) permutation = [1, 0]
  %2 = linalg.transpose ins(%1 : tensor<4x4xf32>) outs(%0 : tensor<4x4xf32>) permutation = [1, 0]
  // CHECK: linalg.broadcast ins(%{{.*}} : tensor<4xf32>) outs(%{{.*}} : tensor<4x4xf32>) dimensions = [1]
  %3 = linalg.broadcast ins(%v : tensor<4xf32>) outs(%0 : tensor<4x4xf32>) dimensions = [1]
  // CHECK: linalg.map ins({{.*}}) outs({{.*}}) (%[[X:.*]]: f32, %[[Y:.*]]: f32, %{{.*}}: f32) {
  // CHECK-NEXT: arith.addf %[[X]], %[[Y]] fastmath<fast> : f32
  %4 = linalg.map { arith.addf {fastmath = #arith.fastmath<fast>} } ins(%2, %3 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%3 : tensor<4x4xf32>)
  // CHECK: linalg.map ins({{.*}}) outs({{.*}}) (%[[X:.*]]: f32, %{{.*}}: f32) {
  %5 = linalg.map ins(%4 : tensor<4x4xf32>) outs(%3 : tensor<4x4xf32>) (%x: f32) {
    %y = math.exp %x : f32
    linalg.yield %y : f32
  }
  // CHECK: linalg.fill {tag} ins(%{{.*}} : f64) outs(%{{.*}} : tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = linalg.fill {tag} ins(%s : f64) outs(%5 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.copy ins(%{{.*}} : tensor<4x4xf16>) outs(%{{.*}} : tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = linalg.copy ins(%h : tensor<4x4xf16>) outs(%6 : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: linalg.reduce ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<4xf32>) dimensions = [1] (%[[IN:.*]]: f32, %[[INIT:.*]]: f32) {
  // CHECK-NEXT: arith.subf %[[INIT]], %[[IN]] : f32
  %8 = linalg.reduce { arith.subf } ins(%7 : tensor<4x4xf32>) outs(%v : tensor<4xf32>) dimensions = [1]
  // CHECK: linalg.reduce ins(%{{.*}}, %{{.*}} : tensor<4x4xf32>, tensor<4x4xf32>) outs(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>) dimensions = [0] (
  %9:2 = linalg.reduce ins(%7, %1 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%v, %8 : tensor<4xf32>, tensor<4xf32>) dimensions = [0]
    (%x: f32, %y: f32, %o: f32, %p: f32) {
      %z = arith.addf %x, %o : f32
      linalg.yield %z, %p : f32, f32
    }
  // CHECK: linalg.generic {
  // CHECK: } -> (tensor<4xf32>, tensor<4xf32>)
  %10:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%9#0 : tensor<4xf32>) outs(%9#1, %v : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32, %p: f32):
    linalg.yield %x, %p : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return %10#0, %10#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @windows
func.func @windows(%i: memref<1x9x9x2xi8>, %k: memref<3x3x2x4xi8>, %z: i32, %o: memref<1x7x7x4xi32>, %w: memref<3x3xi8>, %p: memref<1x4x4x2xi32>) {
  // CHECK: linalg.conv_2d_nhwc_hwcf_q ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<1x9x9x2xi8>, memref<3x3x2x4xi8>, i32, i32) outs(%{{.*}} : memref<1x7x7x4xi32>)
  linalg.conv_2d_nhwc_hwcf_q ins(%i, %k, %z, %z : memref<1x9x9x2xi8>, memref<3x3x2x4xi8>, i32, i32) outs(%o : memref<1x7x7x4xi32>)
  // CHECK: linalg.pooling_nhwc_max_unsigned {{{.*}}strides = dense<2> : tensor<2xi64>{{.*}}} ins(
  linalg.pooling_nhwc_max_unsigned {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%i, %w : memref<1x9x9x2xi8>, memref<3x3xi8>) outs(%p : memref<1x4x4x2xi32>)
  return
}
