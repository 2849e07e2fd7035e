// RUN: weft-opt %s -p lower-graph-to-tir --split-input-file --verify-diagnostics | filecheck %s
// RUN: weft-opt %s -p lower-graph-to-tir --split-input-file --verify-diagnostics | weft-opt --split-input-file | filecheck %s

// Parameters and results become buffers, intermediates allocations, equal constants (of arith too) one global.
// CHECK: "memref.global"() <{{.*}}sym_name = "main_w"
// CHECK-SAME: type = memref<4xf32>
// CHECK-NOT: memref.global
// CHECK-LABEL: func.func @main(%x: memref<?x4xf32>, %c: memref<?x4xf32>) attributes {tir.function} {
// CHECK:         %n = memref.dim %x, %c0 : memref<?x4xf32>
// CHECK-NEXT:    tir.assume_shape %c[%n] : memref<?x4xf32>
// CHECK:         %w = memref.get_global @main_w : memref<4xf32>
// CHECK:         %a = memref.alloc(%n) : memref<?x4xf32>
// CHECK:         func.call @bias(%x, %w, %a) : (memref<?x4xf32>, memref<4xf32>, memref<?x4xf32>) -> ()
// CHECK:         func.call @bias(%a, %{{.*}}, %b) : (memref<?x4xf32>, memref<4xf32>, memref<?x4xf32>) -> ()
// CHECK:         [[B:%.*]] = "memref.cast"(%b) : (memref<?x4xf32>) -> memref<?x?xf32>
// CHECK-NEXT:    [[C:%.*]] = "memref.cast"(%c) : (memref<?x4xf32>) -> memref<?x?xf32>
// CHECK-NEXT:    func.call @relu([[B]], [[C]]) : (memref<?x?xf32>, memref<?x?xf32>) -> ()
// CHECK-NEXT:    func.return
func.func @main(%x: tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>> {
  %y = graph.dataflow -> tensor<?x4xf32, #graph.dims<n>> {
    %w = graph.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %same = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %unused = graph.constant dense<7.0> : tensor<4xf32>
    %a = graph.call_tir @bias(%x, %w) : (tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>) -> tensor<?x4xf32, #graph.dims<n>>
    %b = graph.call_tir @bias(%a, %same) : (tensor<?x4xf32, #graph.dims<n>>, tensor<4xf32>) -> tensor<?x4xf32, #graph.dims<n>>
    %c = graph.call_tir @relu(%b) : (tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>>
    graph.output %c : tensor<?x4xf32, #graph.dims<n>>
  }
  func.return %y : tensor<?x4xf32, #graph.dims<n>>
}
func.func private @bias(%A: memref<?x4xf32>, %B: memref<4xf32>, %C: memref<?x4xf32>)
func.func private @relu(%A: memref<?x?xf32>, %B: memref<?x?xf32>)

// -----

// What no call computes is copied: a parameter, a constant, a tensor returned twice. Tuples are taken apart.
// CHECK-LABEL: func.func @copies(%x: memref<2xf32>, %n: index, %x_out: memref<2xf32>, %k: memref<f32>, %r: memref<2xf32>, %r_out: memref<2xf32>) attributes {tir.function, tir.parameter_access = [#low<access read>, #low<access read>, #low<access write>, #low<access write>, #low<access write>, #low<access write>]} {
// CHECK:         %k_1 = memref.get_global @copies_k : memref<f32>
// CHECK:         func.call @relu(%x, %r)
// CHECK:         tir.block "copy_x_out" iters(%v0: spatial<2>) = [%i0] {
// CHECK-NEXT:      {{.*}} = memref.load %x[%v0] : memref<2xf32>
// CHECK-NEXT:      memref.store {{.*}}, %x_out[%v0] : memref<2xf32>
// CHECK:         tir.block "copy_k" iters() = [] {
// CHECK:         tir.block "copy_r_out"
func.func @copies(%x: tensor<2xf32>, %n: index) -> (tuple<tensor<2xf32>, tensor<f32>>, tensor<2xf32>, tensor<2xf32>) {
  %k = graph.constant dense<5.0> : tensor<f32>
  %r = graph.call_tir @relu(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %t = graph.make_tuple %x, %k : tuple<tensor<2xf32>, tensor<f32>>
  %x2 = graph.tuple_get %t[0] : tuple<tensor<2xf32>, tensor<f32>>
  %t2 = graph.make_tuple %x2, %k : tuple<tensor<2xf32>, tensor<f32>>
  func.return %t2, %r, %r : tuple<tensor<2xf32>, tensor<f32>>, tensor<2xf32>, tensor<2xf32>
}
func.func private @relu(%A: memref<2xf32>, %B: memref<2xf32>)

// -----

// Extents are computed from the names that parameters bind; a parameter that shares a name is tied to it.
// CHECK-LABEL: func.func @extents(%x: memref<?xf32>, %y: memref<?x?xf32>, %z: memref<?x?xf32>)
// CHECK:         %n = memref.dim %x, %c0 : memref<?xf32>
// CHECK:         %m = memref.dim %y, %c1 : memref<?x?xf32>
// CHECK:         tir.assume_shape %y[%n, %m] : memref<?x?xf32>
// CHECK:         [[NM:%.*]] = arith.muli {{%n, %m|%m, %n}} : index
// CHECK:         [[E:%.*]] = affine.apply affine_map<(d0) -> ((d0 + 1))> ([[NM]])
// CHECK:         tir.assume_shape %z[%n, [[E]]] : memref<?x?xf32>
func.func @extents(%x: tensor<?xf32, #graph.dims<n>>, %y: tensor<?x?xf32, #graph.dims<n, m>>) -> tensor<?x?xf32, #graph.dims<n, n * m + 1>> {
  %z = graph.call_tir @f(%x, %y) : (tensor<?xf32, #graph.dims<n>>, tensor<?x?xf32, #graph.dims<n, m>>) -> tensor<?x?xf32, #graph.dims<n, n * m + 1>>
  func.return %z : tensor<?x?xf32, #graph.dims<n, n * m + 1>>
}
func.func private @f(%A: memref<?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>)

// -----

// Parameters that get constants in every call are marked. A function with a reduction that gets one in some calls only is
// copied for these, and one that others call is left.
// CHECK-LABEL: func.func @constants(
// CHECK:         func.call @scale(%x, %{{[kw].*}}, %{{.*}})
// CHECK:         func.call @dot(%{{.*}}, %{{[kw].*}}, %{{.*}})
// CHECK:         func.call @dot_1(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK:         func.call @public(
// CHECK:       func.func private @scale(%a: memref<2xf32>, %w: memref<2xf32> {tir.constant}, %b: memref<2xf32>)
// CHECK:       func.func private @dot(%a: memref<2xf32>, %w: memref<2xf32> {tir.constant}, %b: memref<f32>)
// CHECK:       func.func private @dot_1(%a: memref<2xf32>, %w: memref<2xf32>, %b: memref<f32>)
// CHECK:       func.func @public(memref<2xf32>, memref<2xf32>, memref<2xf32>)
func.func @constants(%x: tensor<2xf32>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>) {
  %w = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = graph.call_tir @scale(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = graph.call_tir @scale(%a, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %c = graph.call_tir @dot(%b, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %d = graph.call_tir @dot(%b, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %e = graph.call_tir @public(%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %c, %d, %e : tensor<f32>, tensor<f32>, tensor<2xf32>
}
func.func private @scale(%a: memref<2xf32>, %w: memref<2xf32>, %b: memref<2xf32>) {
  tir.for %i in 2 {
    tir.block "scale" iters(%v: spatial<2>) = [%i] {
      %e = memref.load %a[%v] : memref<2xf32>
      %d = memref.load %w[%v] : memref<2xf32>
      %s = arith.mulf %e, %d : f32
      memref.store %s, %b[%v] : memref<2xf32>
    }
  }
  func.return
}
func.func private @dot(%a: memref<2xf32>, %w: memref<2xf32>, %b: memref<f32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 2 {
    tir.block "dot" iters(%v: reduce<2>) = [%i] {
      tir.init {
        memref.store %zero, %b[] : memref<f32>
      }
      %e = memref.load %a[%v] : memref<2xf32>
      %d = memref.load %w[%v] : memref<2xf32>
      %p = arith.mulf %e, %d : f32
      %o = memref.load %b[] : memref<f32>
      %s = arith.addf %o, %p : f32
      memref.store %s, %b[] : memref<f32>
    }
  }
  func.return
}
func.func @public(%a: memref<2xf32>, %w: memref<2xf32>, %b: memref<2xf32>)

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.relu must be legalised first (pass legalize-graph-to-te)}}
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A registered function gets the extents of its arrays, and writes buffers of the caller.
// CHECK-LABEL: func.func @registered(%x: memref<?x4xf32>, %y: memref<?xf32>, %z: memref<f32>) attributes {tir.function, tir.parameter_access = {{.*}}read>, {{.*}}write>, {{.*}}write>]}
// CHECK:         %h = memref.alloc(%n) : memref<?x4xf32>
// CHECK-NEXT:    low.call_registered "env.split"(%x) outs(%h, %y) extents(%n, %n, %{{.*}}) [memref<?x4xf32>, memref<?x4xf32>, memref<?xf32>] : (memref<?x4xf32>) -> (memref<?x4xf32>, memref<?xf32>)
// CHECK-NEXT:    low.call_registered "env.sum"(%h, %y) outs(%z) extents(%n, %{{.*}}) [memref<?x4xf32>, memref<?xf32>, memref<f32>] : (memref<?x4xf32>, memref<?xf32>) -> (memref<f32>)
func.func @registered(%x: tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?xf32, #graph.dims<2 * n>>, tensor<f32>) {
  %h, %y = graph.call_dps "env.split"(%x) : (tensor<?x4xf32, #graph.dims<n>>) -> (tensor<?x4xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<2 * n>>)
  %z = graph.call_dps "env.sum"(%h, %y) : (tensor<?x4xf32, #graph.dims<n>>, tensor<?xf32, #graph.dims<2 * n>>) -> tensor<f32>
  func.return %y, %z : tensor<?xf32, #graph.dims<2 * n>>, tensor<f32>
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{graph.call_tir: @g works on tensors, lower it first (pass lower-te-to-tir)}}
  %y = graph.call_tir @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{@f: tensor<?xf32> has an unknown extent; name the dynamic extents with #graph.dims<...>}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = graph.call_tir @g(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
func.func private @g(%A: memref<?xf32>, %B: memref<?xf32>)

// -----

// expected-error@+1 {{extent 'm' is not bound by the shape of any operand (bound: n)}}
func.func @f(%x: tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<m>> {
  %y = graph.call_tir @g(%x) : (tensor<?xf32, #graph.dims<n>>) -> tensor<?xf32, #graph.dims<m>>
  func.return %y : tensor<?xf32, #graph.dims<m>>
}
func.func private @g(%A: memref<?xf32>, %B: memref<?xf32>)

// -----

// expected-error@+1 {{@f: tuple parameters cannot be lowered, got tuple<tensor<4xf32>>}}
func.func @f(%t: tuple<tensor<4xf32>>) -> tensor<4xf32> {
  %y = graph.tuple_get %t[0] : tuple<tensor<4xf32>>
  func.return %y : tensor<4xf32>
}

// -----

// A result that is smaller than what the callee writes.
func.func @f(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  // expected-error@+1 {{graph.call_tir @g: dimension 1 of result 0 is 2, but the function states that it equals dimension 1 of operand 0, which is 3}}
  %y = graph.call_tir @g(%x) : (tensor<2x3xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}
func.func @g(%A: memref<?x?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%m, %n] : memref<?x?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call_tir @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{tensor.empty makes a tensor that graph functions cannot lower}}
  %z = tensor.empty() : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func private @relu(%A: memref<?xf32>, %B: memref<?xf32>)

// -----

// A function that calls others passes its parameters on, to what may write them.
// CHECK-LABEL: func.func private @step
// CHECK-SAME:    (%t: memref<i64>, %h: memref<2xf32>, %w: memref<2xf32>, %s: memref<2xf32>)
func.func private @step(%t: tensor<i64>, %h: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> {
  %s = graph.call_tir @scale(%h, %w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %s : tensor<2xf32>
}
func.func @captured(%h: tensor<2xf32>) -> tensor<2xf32> {
  %w = graph.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %last = graph.loop @step for 3 carried(%h) captured(%w) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %last : tensor<2xf32>
}
func.func private @scale(%a: memref<2xf32>, %w: memref<2xf32>, %b: memref<2xf32>)

// -----

// Functions that get constants of a module with more than 16 MiB of them say so.
// CHECK-LABEL: func.func @model
// CHECK:       func.func private @large(%a: memref<1024x4097xf32>, %w: memref<1024x4097xf32> {tir.constant}, %b: memref<1024x4097xf32>) attributes {tir.constants_from_memory}
// CHECK:       func.func private @none(%a: memref<1024x4097xf32>, %b: memref<1024x4097xf32>) {{[{]$}}
func.func @model(%x: tensor<1024x4097xf32>) -> tensor<1024x4097xf32> {
  %w = graph.constant dense<1.0> : tensor<1024x4097xf32>
  %y = graph.call_tir @large(%x, %w) : (tensor<1024x4097xf32>, tensor<1024x4097xf32>) -> tensor<1024x4097xf32>
  %z = graph.call_tir @none(%y) : (tensor<1024x4097xf32>) -> tensor<1024x4097xf32>
  func.return %z : tensor<1024x4097xf32>
}
func.func private @large(%a: memref<1024x4097xf32>, %w: memref<1024x4097xf32>, %b: memref<1024x4097xf32>) {
  %0 = arith.constant 0 : index
  %v = memref.load %a[%0, %0] : memref<1024x4097xf32>
  memref.store %v, %b[%0, %0] : memref<1024x4097xf32>
  func.return
}
func.func private @none(%a: memref<1024x4097xf32>, %b: memref<1024x4097xf32>) {
  %0 = arith.constant 0 : index
  %v = memref.load %a[%0, %0] : memref<1024x4097xf32>
  memref.store %v, %b[%0, %0] : memref<1024x4097xf32>
  func.return
}
