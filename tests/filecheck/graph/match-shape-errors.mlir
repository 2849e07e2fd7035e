// RUN: weft-opt %s --split-input-file --verify-diagnostics -p graph-infer-types

func.func @f(%c: tensor<f32>) {
  // expected-error@+1 {{graph.match_shape takes integers of 32 or 64 bits, got tensor<f32>}}
  graph.match_shape %c as <k> : tensor<f32>
  func.return
}

// -----

func.func @f(%c: tensor<3xi64>) {
  // expected-error@+1 {{graph.match_shape binds 2 names to as many integers, got tensor<3xi64>}}
  graph.match_shape %c as <k, j> : tensor<3xi64>
  func.return
}

// -----

func.func @f(%c: tensor<i64>) {
  // expected-error@+1 {{graph.match_shape binds names, got (2 * k,)}}
  graph.match_shape %c as <2 * k> : tensor<i64>
  func.return
}

// -----

func.func @f(%c: tensor<2xi64>) {
  // expected-error@+1 {{graph.match_shape binds 2 names, but has 1 bounds}}
  graph.match_shape %c as <k, j> at_most <4 * m> : tensor<2xi64>
  func.return
}

// -----

func.func @f(%c: tensor<2xi64>) {
  // expected-error@+1 {{graph.match_shape binds each name once, got (k, k)}}
  graph.match_shape %c as <k, k> : tensor<2xi64>
  func.return
}

// -----

func.func @f(%c: tensor<2xi64>) {
  // expected-error@+1 {{graph.match_shape: a bound is over earlier names, got (?, k)}}
  graph.match_shape %c as <k, j> at_most <?, k> : tensor<2xi64>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32, #graph.dims<n>>, %c: tensor<i64>) {
  // expected-error@+1 {{graph.match_shape binds new names, but 'n' is the extent of a parameter or of an earlier op}}
  graph.match_shape %c as <n> : tensor<i64>
  func.return
}

// -----

func.func @f(%c: tensor<i64>) -> tensor<?xi64, #graph.dims<k>> {
  %y = graph.iota {shape = #graph.dims<k>} -> tensor<?xi64, #graph.dims<k>>
  // expected-error@+1 {{graph.match_shape binds new names, but 'k' is the extent of a parameter or of an earlier op}}
  graph.match_shape %c as <k> : tensor<i64>
  func.return %y : tensor<?xi64, #graph.dims<k>>
}

// -----

func.func @f(%c: tensor<i64>) {
  // expected-error@+1 {{graph.match_shape: no parameter has the extent 'm', and no earlier op binds it (known: none)}}
  graph.match_shape %c as <k> at_most <m> : tensor<i64>
  func.return
}

// -----

func.func @f(%y: memref<?xf32>, %d: memref<3xi64>, %k: index) {
  // expected-error@+1 {{low.return_result: the descriptor of memref<?xf32> is memref<2xi64>}}
  low.return_result %y extents(%k) memref<?xf32> in %d : memref<?xf32>, memref<3xi64>
  func.return
}

// -----

func.func @f(%y: memref<?xf32>, %d: memref<2xi64>) {
  // expected-error@+1 {{low.return_result: memref<?xf32> has 1 dynamic extents, got 0}}
  low.return_result %y extents() memref<?xf32> in %d : memref<?xf32>, memref<2xi64>
  func.return
}

// -----

func.func @f(%y: memref<?x2xf64>, %d: memref<2xi64>, %k: index) {
  // expected-error@+1 {{low.return_result: memref<?x2xf64> cannot be returned as memref<?xf32>}}
  low.return_result %y extents(%k) memref<?xf32> in %d : memref<?x2xf64>, memref<2xi64>
  func.return
}
