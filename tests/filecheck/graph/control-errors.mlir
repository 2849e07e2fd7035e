// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if: there is no function @gone with a type in this module}}
  %y = graph.if %c then @gone else @gone(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @g(%x: tensor<5xf32>) -> tensor<5xf32>
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if @g: argument 0 is tensor<4xf32>, but the function takes tensor<5xf32>}}
  %y = graph.if %c then @g else @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @square(%x: tensor<?x?xf32, #graph.dims<n, n>>) -> tensor<?xf32, #graph.dims<n>>
func.func @f(%c: tensor<i1>, %x: tensor<4x5xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if @square: argument 0 is tensor<4x5xf32>, but the function takes}}
  %y = graph.if %c then @square else @square(%x) : (tensor<4x5xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32>
func.func private @h(%x: tensor<4xf32>) -> tensor<5xf32>
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if: @g and @h give different results: (tensor<4xf32>) and (tensor<5xf32>)}}
  %y = graph.if %c then @g else @h(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{graph.if is declared to give (tensor<3xf32>), but its functions give (tensor<4xf32>)}}
  %y = graph.if %c then @g else @g(%x) : (tensor<4xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

func.func private @g(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if @g takes 2 tensors, got 1}}
  %y = graph.if %c then @g else @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @g(%x: memref<4xf32>, %y: memref<4xf32>)
func.func @f(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.if @g must be a function over tensors, got (memref<4xf32>, memref<4xf32>) -> ()}}
  %y = graph.if %c then @g else @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func private @step(%t: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32>
func.func @f(%x: tensor<6x4xf32>) -> tensor<5x4xf32> {
  // expected-error@+1 {{graph.loop of 5 steps: the first extent of a scanned tensor is the number of steps, got tensor<6x4xf32>}}
  %y = graph.loop @step for 5 scanned(%x) : (tensor<6x4xf32>) -> tensor<5x4xf32>
  func.return %y : tensor<5x4xf32>
}

// -----

func.func private @step(%t: tensor<i64>, %x: tensor<4xf32>) -> tensor<5xf32>
func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{graph.loop @step: carried value 0 is tensor<4xf32>, but the function gives tensor<5xf32>}}
  %y = graph.loop @step for 5 carried(%x) : (tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

func.func private @step(%t: tensor<i64>, %x: tensor<4xf32>)
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.loop @step: carried value 0 is tensor<4xf32>, but the function gives no such result}}
  %y = graph.loop @step for 5 carried(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.loop needs its number of steps}}
  %y = "graph.loop"(%x) <{body = @f, steps = #graph.dims<?>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.while: @f must give tensor<i1>, got (tensor<4xf32>)}}
  %y = graph.while @f do @f carried(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.while @g: the carried values are (tensor<4xf32>), but the function gives (tensor<f32>)}}
  %y = graph.while @f do @g carried(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<i1> {
  %c = graph.constant dense<true> : tensor<i1>
  func.return %c : tensor<i1>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<f32> {
  %y = graph.max %x : tensor<4xf32> -> tensor<f32>
  func.return %y : tensor<f32>
}

// -----

func.func @root(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.while gives the types of its carried values}}
  %y = graph.while @f do @g carried(%x) : (tensor<4xf32>) -> tensor<f32>
  func.return %y : tensor<4xf32>
}
