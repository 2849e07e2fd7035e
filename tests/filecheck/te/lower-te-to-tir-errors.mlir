// RUN: weft-opt %s --split-input-file --verify-diagnostics -p lower-te-to-tir

func.func @mixed(%A: tensor<4xf32>) -> tensor<4xf32> {
  %y = te.compute "y" (%i) : tensor<4xf32> {
    %a = tensor.extract %A[%i] : tensor<4xf32>
    te.yield %a : f32
  }
  // expected-error@+1 {{@mixed: 'graph.relu' does not belong in a function of tensor expressions}}
  %b = graph.relu %y : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

// -----

func.func @scalar(%x: f32) -> f32 {
  %y = te.compute "y" () : tensor<f32> {
    te.yield %x : f32
  }
  // expected-error@+1 {{@scalar: results are tensors, got f32}}
  func.return %x : f32
}

// -----

func.func @copy(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = te.compute "y" (%i) : tensor<2xf32> {
    %a = tensor.extract %x[%i] : tensor<2xf32>
    te.yield %a : f32
  }
  func.return %y : tensor<2xf32>
}
func.func @theirs(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@+1 {{@copy is a function of tensor expressions: lowered, it takes buffers, and this call gives it tensors}}
  %y = func.call @copy(%x) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

// expected-error@+1 {{te.parameter_order must list each of the 2 inputs and results once, as array<i64: 0, 1, ...>, got array<i64: 0, 0>}}
func.func @order(%x: f32) -> tensor<f32> attributes {te.parameter_order = array<i64: 0, 0>} {
  %y = te.compute "y" () : tensor<f32> {
    te.yield %x : f32
  }
  func.return %y : tensor<f32>
}

// -----

func.func @dimension(%A: tensor<?x?xf32>, %d: index) -> tensor<f32> {
  %y = te.compute "y" () : tensor<f32> {
    // expected-error@+1 {{tensor.dim needs a constant dimension}}
    %n = tensor.dim %A, %d : tensor<?x?xf32>
    %last = affine.apply affine_map<(d0) -> (d0 - 1)>(%n)
    %a = tensor.extract %A[%last, %last] : tensor<?x?xf32>
    te.yield %a : f32
  }
  func.return %y : tensor<f32>
}

// -----

func.func private @half(%x: tensor<2xf32>) -> tensor<2xf32>

func.func @calls(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = te.compute "y" (%i) : tensor<2xf32> {
    %a = tensor.extract %x[%i] : tensor<2xf32>
    te.yield %a : f32
  }
  // expected-error@+1 {{@calls calls @half on tensors: a function of a graph does, by graph.call_tir}}
  %z = func.call @half(%y) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %z : tensor<2xf32>
}
