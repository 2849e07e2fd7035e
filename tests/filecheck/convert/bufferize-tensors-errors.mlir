// RUN: not weft-opt %s -p bufferize-tensors --split-input-file 2>&1 | filecheck %s
// RUN: not weft-opt %S/../../../examples/mm_relu.mlir -p 'bufferize-tensors{strict=true}' 2>&1 | filecheck %s --check-prefix=STRICT
// RUN: weft-opt %S/../../../examples/mm_relu.mlir -p bufferize-tensors 2>&1 | filecheck %s --check-prefix=REMARK

// STRICT: error: bufferize-tensors: the module has no function over tensors of upstream operations
// REMARK: remark: bufferize-tensors: the module has no function over tensors of upstream operations

// CHECK: bufferize-tensors: 'vector.transfer_read' on tensors has no form on buffers
func.func @no_rule(%A: tensor<4xf32>) -> vector<4xf32> {
  %c0 = arith.constant 0 : index
  %p = arith.constant 0.0 : f32
  %v = vector.transfer_read %A[%c0], %p {in_bounds = [true]} : tensor<4xf32>, vector<4xf32>
  return %v : vector<4xf32>
}

// -----

// CHECK: bufferize-tensors: 'tensor.cast' has a tensor without rank, tensor<*xf32>
func.func @unranked(%A: tensor<4xf32>) {
  %u = tensor.cast %A : tensor<4xf32> to tensor<*xf32>
  return
}

// -----

// CHECK: bufferize-tensors: @elsewhere is not in the module, so how it takes tensors is not known
func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @calls(%A: tensor<4xf32>) -> tensor<4xf32> {
  %r = func.call @elsewhere(%A) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// CHECK: bufferize-tensors: the shape of a tensor that 'scf.for' carries may change, of type tensor<?xf32>
func.func @grows(%A: tensor<?xf32>, %B: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %A) -> (tensor<?xf32>) {
    scf.yield %B : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// CHECK: bufferize-tensors: the branches of 'scf.if' may yield tensors of different shapes
func.func @either(%A: tensor<?xf32>, %B: tensor<?xf32>, %c: i1) -> tensor<?xf32> {
  %r = scf.if %c -> (tensor<?xf32>) {
    scf.yield %A : tensor<?xf32>
  } else {
    scf.yield %B : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// CHECK: bufferize-tensors: 'func.func' has a tensor with an encoding, tensor<4xf32, "sparse">
func.func @encoded(%A: tensor<4xf32, "sparse">, %i: index) -> f32 {
  %x = tensor.extract %A[%i] : tensor<4xf32, "sparse">
  return %x : f32
}

// -----

// CHECK: bufferize-tensors: the shape of a result of 'scf.if' is not known in front of it
func.func @unknown_shape(%A: tensor<?xf32>, %c: i1, %n: index) -> tensor<?xf32> {
  %r = scf.if %c -> (tensor<?xf32>) {
    %m = arith.addi %n, %n : index
    %e = tensor.empty(%m) : tensor<?xf32>
    scf.yield %e : tensor<?xf32>
  } else {
    scf.yield %A : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}

// -----

// CHECK: bufferize-tensors: the shape of result 0 of @half does not follow from its arguments
func.func private @half(%A: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %m = arith.divui %n, %n : index
  %e = tensor.extract_slice %A[0] [%m] [1] : tensor<?xf32> to tensor<?xf32>
  return %e : tensor<?xf32>
}
func.func @calls_half(%A: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %r = func.call @half(%A, %n) : (tensor<?xf32>, index) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
