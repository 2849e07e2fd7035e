// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'raise-affine-to-tir{strict=true}'

// expected-error@below {{raise-affine-to-tir finds no function of affine or scf loops over buffers}}
builtin.module {
  func.func @nothing(%x: f32) -> f32 {
    func.return %x : f32
  }
}

// -----

// expected-error@below {{@buffer returns a buffer: results are in buffers that callers pass}}
func.func @buffer(%x: f32) -> memref<4xf32> {
  %A = memref.alloc() : memref<4xf32>
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xf32>
  }
  func.return %A : memref<4xf32>
}

// -----

func.func @swapped(%A: memref<4xf32>, %B: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-error@below {{scf.for passes buffers on: which one an access touches is not known}}
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %A, %b = %B) -> (memref<4xf32>, memref<4xf32>) {
    %v = memref.load %a[%i] : memref<4xf32>
    memref.store %v, %b[%i] : memref<4xf32>
    scf.yield %b, %a : memref<4xf32>, memref<4xf32>
  }
  func.return
}

// -----

func.func @places(%A: memref<4x4xf32, strided<[8, 1]>>, %x: f32) {
  // expected-error@below {{memref.reinterpret_cast of a buffer that is not dense, memref<4x4xf32, strided<[8, 1]>>: its elements have no indices}}
  %v = memref.reinterpret_cast %A to offset: [1], sizes: [3], strides: [2] : memref<4x4xf32, strided<[8, 1]>> to memref<3xf32, strided<[2], offset: 1>>
  affine.for %i = 0 to 3 {
    affine.store %x, %v[%i] : memref<3xf32, strided<[2], offset: 1>>
  }
  func.return
}

// -----

func.func @last(%A: memref<4xf32>, %B: memref<f32>) {
  // expected-error@below {{affine.parallel: results of reduction 'assign' depend on the order of iterations}}
  %r = affine.parallel (%i) = (0) to (4) reduce ("assign") -> f32 {
    %a = affine.load %A[%i] : memref<4xf32>
    affine.yield %a : f32
  }
  affine.store %r, %B[] : memref<f32>
  func.return
}

// -----

// expected-error@below {{parameter A: buffers are row-major or strided, got the layout of memref<8xf32}}
func.func @tiles(%A: memref<8xf32, affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)>>, %x: f32) {
  affine.for %i = 0 to 8 {
    affine.store %x, %A[%i] : memref<8xf32, affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)>>
  }
  func.return
}

// -----

func.func @tensors(%A: memref<4xf32>) {
  %t = tensor.empty() : tensor<4xf32>
  // expected-error@below {{scf.forall shares tensors: bufferize-tensors comes first}}
  %r = scf.forall (%i) in (4) shared_outs(%o = %t) -> (tensor<4xf32>) {
  }
  func.return
}

// -----

func.func @sum(%A: memref<4xf32>) -> f32 {
  %zero = arith.constant 0.0 : f32
  %r = affine.for %i = 0 to 4 iter_args(%s = %zero) -> f32 {
    %a = affine.load %A[%i] : memref<4xf32>
    %n = arith.addf %s, %a : f32
    affine.yield %n : f32
  }
  func.return %r : f32
}
func.func @caller(%A: memref<4xf32>, %B: memref<f32>) {
  // expected-error@below {{@sum returns numbers to this op: raised, it would store them to buffers}}
  %r = func.call @sum(%A) : (memref<4xf32>) -> f32
  memref.store %r, %B[] : memref<f32>
  func.return
}

// -----

func.func @lanes(%A: memref<8xf32>) {
  affine.for %i = 0 to 8 step 4 {
    // expected-error@below {{vector.load has no form in tir: it stays in a block, for another pass to lower}}
    %a = affine.vector_load %A[%i] : memref<8xf32>, vector<4xf32>
    affine.vector_store %a, %A[%i] : memref<8xf32>, vector<4xf32>
  }
  func.return
}

// -----

func.func @unranked(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  // expected-error@below {{memref.cast has a buffer without a rank, whose elements have no indices}}
  %u = memref.cast %A : memref<4xf32> to memref<*xf32>
  %v = memref.cast %u : memref<*xf32> to memref<4xf32>
  %x = memref.load %v[%c0] : memref<4xf32>
  memref.store %x, %A[%c0] : memref<4xf32>
  func.return
}

// -----

// expected-error@below {{parameter 'A' of @bits: no array has elements of i3}}
func.func @bits(%A: memref<4xi3>, %x: i3) {
  affine.for %i = 0 to 4 {
    affine.store %x, %A[%i] : memref<4xi3>
  }
  func.return
}

// -----

func.func @extended(%A: memref<4xi4>, %B: memref<4xi1>) {
  affine.for %i = 0 to 4 {
    %a = affine.load %A[%i] : memref<4xi4>
    // expected-error@below {{arith.addui_extended on i4 is not supported}}
    %s, %o = arith.addui_extended %a, %a : i4, i1
    affine.store %o, %B[%i] : memref<4xi1>
  }
  func.return
}

// -----

func.func private @outside(memref<4xi4>)
func.func @passes(%A: memref<4xi4>) {
  affine.for %i = 0 to 4 {
    // expected-error@below {{func.call passes memref<4xi4> to a function without a body}}
    func.call @outside(%A) : (memref<4xi4>) -> ()
  }
  func.return
}

// -----

func.func private @buffer() -> memref<4xf32>
func.func @opaque(%A: memref<4xf32>) {
  affine.for %i = 0 to 4 {
    // expected-error@below {{func.call returns a buffer whose aliases are not known}}
    %b = func.call @buffer() : () -> memref<4xf32>
    %x = memref.load %b[%i] : memref<4xf32>
    memref.store %x, %A[%i] : memref<4xf32>
  }
  func.return
}
