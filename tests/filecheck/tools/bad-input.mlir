// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'lower-graph,lower-tir-to-low{target=c}' -t c
// What a program says wrongly is an error at its place, never one of the passes, the emitters or the interpreter.

func.func @dimension(%A: memref<?xf32>) {
  %c5 = arith.constant 5 : index
  // expected-error@+1 {{'memref.dim' reads dimension 5 of memref<?xf32>}}
  %n = memref.dim %A, %c5 : memref<?xf32>
  tir.for %i in %n { }
  func.return
}

// -----

// expected-error@+1 {{@blocks has 2 blocks, functions at the levels of weft have one}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32> -> tensor<4xf32>
  cf.br ^bb1
^bb1:
  func.return %y : tensor<4xf32>
}

// -----

func.func @same(%A: memref<64xi8>) attributes {low.params = [#low.param<"A", memref<64xi8>, readwrite, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %p = low.access_ptr %A[%c0] sizes [16] read : memref<64xi8>
  %q = low.access_ptr %A[%c0] sizes [16] write : memref<64xi8>
  // expected-error@+1 {{low.tile_interleave moves elements between two buffers, got one}}
  low.tile_interleave %p, %c4 to %q {lanes = 4 : i64, rows = 4 : i64}
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @extent names the extent 'm', which is not among low.symbols}}
func.func @extent(%A: memref<?xf32>, %n: index) attributes {low.params = [#low.param<"A", memref<?xf32>, read, ["m"]>, #low.param<"B", memref<?xf32>, read, ["n"]>], low.symbols = []} {
  func.return
}

// -----

// expected-error@+1 {{no parameter of @symbol has an extent named n}}
func.func @symbol(%A: memref<4xf32>, %n: index) attributes {low.params = [#low.param<"A", memref<4xf32>, read, []>], low.symbols = ["n"]} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @kind is f32 to callers and memref<4xf32> here}}
func.func @kind(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", f32, read, []>], low.symbols = []} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'n' of @scalar is f16 to callers and index here}}
func.func @scalar(%n: index) attributes {low.params = [#low.param<"n", f16, read, []>], low.symbols = []} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @elements has 8 elements to callers and 4 here}}
func.func @elements(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<2x4xf32>, read, []>], low.symbols = []} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @element is memref<4xf16> to callers and memref<4xf32> here}}
func.func @element(%A: memref<4xf32>) attributes {low.params = [#low.param<"A", memref<4xf16>, read, []>], low.symbols = []} {
  func.return
}

// -----

// expected-error@+1 {{low.params of @list lists #low.param, got [1 : i64]}}
func.func @list(%A: memref<4xf32>) attributes {low.params = [1]} {
  func.return
}

// -----

func.func @thread(%A: memref<4xf32>) attributes {low.kernel = #low.kernel<[4, 1, 1], source = "thread">} {
  // expected-error@+1 {{low.thread_id has no form in C outside of kernels}}
  %t = low.thread_id "threadIdx.x" extent 4 : index
  %a = memref.load %A[%t] : memref<4xf32>
  memref.store %a, %A[%t] : memref<4xf32>
  func.return
}

// -----

func.func @shuffle(%A: memref<4xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "shuffle">} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.load %A[%c0] : memref<4xf32>
  // expected-error@+1 {{low.shuffle of f32 has no form in C}}
  %b = low.shuffle up %a, %c1 width 32 : f32
  memref.store %b, %A[%c0] : memref<4xf32>
  func.return
}

// -----

// expected-error@+1 {{a buffer has less than 2^63 bytes, got memref<1000000000000x1000000000000xf32>}}
func.func @huge(%A: memref<1000000000000x1000000000000xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 4 { tir.block "B" iters(%v: spatial<4>) = [%i] {
    memref.store %zero, %A[%v, %v] : memref<1000000000000x1000000000000xf32> } }
  func.return
}

// -----

func.func @twice() {
  func.return
}
// expected-error@+1 {{'builtin.module': Redefinition of symbol "twice"}}
func.func @twice() {
  func.return
}

// -----

// expected-error@+1 {{parameter A: strides fit 64 bits, got memref<4xf32, strided<[9223372036854775808]>>}}
func.func @stride(%A: memref<4xf32, strided<[9223372036854775808]>>) attributes {tir.function} {
  func.return
}

// -----

func.func @offset(%A: memref<?xf32>, %i: index) {
  // expected-error@+1 {{a constant of 'affine.apply' fits 64 bits, got affine_map<(d0) -> ((d0 + 9223372036854775808))>}}
  %j = affine.apply affine_map<(d0) -> (d0 + 9223372036854775808)>(%i)
  func.return
}

// -----

func.func @no_bound(%A: memref<8xf32>, %t: index) {
  // expected-error@+1 {{a map of 'affine.for' has at least one result, got affine_map<(d0) -> ()>}}
  affine.for %i = max affine_map<(d0) -> ()>(%t) to 8 {
  }
  func.return
}

// -----

func.func @large_bound(%A: memref<8xf32>, %t: index) {
  // expected-error@+1 {{a constant of 'affine.for' fits 64 bits, got affine_map<(d0) -> (d0, 9223372036854775808)>}}
  affine.for %i = max affine_map<(d0) -> (d0, 9223372036854775808)>(%t) to 8 {
  }
  func.return
}

// -----

func.func @no_step(%A: memref<8xf32>) {
  // expected-error@+1 {{the steps of 'affine.for' are positive, got 0}}
  affine.for %i = 0 to 8 step 0 {
  }
  func.return
}

// -----

func.func @least_of_none(%t: index) {
  // expected-error@+1 {{a map of 'affine.min' has at least one result, got affine_map<(d0) -> ()>}}
  %m = "affine.min"(%t) {map = affine_map<(d0) -> ()>} : (index) -> index
  func.return
}

// -----

func.func @loop_without_bound(%t: index) {
  // expected-error@+1 {{each loop of 'affine.parallel' has a lower and an upper bound}}
  "affine.parallel"(%t) <{lowerBoundsGroups = dense<[0, 1]> : tensor<2xi32>, lowerBoundsMap = affine_map<() -> (0)>, reductions = [], steps = [1, 1], upperBoundsGroups = dense<[1, 0]> : tensor<2xi32>, upperBoundsMap = affine_map<(d0) -> (d0)>}> ({
  ^bb0(%i: index, %j: index):
    affine.yield
  }) : (index) -> ()
  func.return
}

// -----

func.func @few_indices(%A: memref<8x8xf32>, %t: index) {
  // expected-error@+1 {{'affine.load' has 1 indices into memref<8x8xf32>}}
  %v = "affine.load"(%A, %t) {map = affine_map<(d0) -> (d0)>} : (memref<8x8xf32>, index) -> f32
  func.return
}

// -----

func.func @few_operands(%A: memref<8xf32>, %c: f32) {
  // expected-error@+1 {{'affine.store' has 0 operands for its map affine_map<(d0) -> (d0)>}}
  "affine.store"(%c, %A) {map = affine_map<(d0) -> (d0)>} : (f32, memref<8xf32>) -> ()
  func.return
}

// -----

func.func @operands_of_a_set(%t: index) {
  // expected-error@+1 {{'affine.if' has 1 operands, its set takes 2}}
  "affine.if"(%t) <{condition = affine_set<(d0, d1) : (d0 >= 0)>}> ({
    affine.yield
  }, {
  }) : (index) -> ()
  func.return
}

// -----

func.func @binding(%A: memref<?xf32>) {
  tir.for %i in 4 {
    // expected-error@+1 {{a constant of an index expression fits 64 bits}}
    tir.block "B" iters(%v: spatial<4>) = [%i + 9223372036854775808] {
    }
  }
  func.return
}

// -----

// expected-error@+1 {{@nothing has 0 blocks, functions at the levels of weft have one}}
func.func @nothing() attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
}

// -----

// expected-error@+1 {{'memref.global' has less than 2^31 elements, got memref<4294967296xf32>}}
"memref.global"() <{sym_name = "g", sym_visibility = "private", type = memref<4294967296xf32>, initial_value}> : () -> ()
