// RUN: weft-opt %s --split-input-file -p lower-te-to-tir | filecheck %s

// CHECK:       func.func @mm_relu(%A: memref<4x8xf32>, %B: memref<8x6xf32>, %C: memref<4x6xf32>) {
// CHECK-NEXT:    %[[ZERO:\w+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %Y = memref.alloc() : memref<4x6xf32>
// CHECK-NEXT:    tir.for %[[I:\w+]] in 4 {
// CHECK-NEXT:      tir.for %[[J:\w+]] in 6 {
// CHECK-NEXT:        tir.for %[[K:\w+]] in 8 {
// CHECK-NEXT:          tir.block "Y" iters(%[[VI:\w+]]: spatial<4>, %[[VJ:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<8>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK-NEXT:            tir.init {
// CHECK-NEXT:              memref.store %[[ZERO]], %Y[%[[VI]], %[[VJ]]] : memref<4x6xf32>
// CHECK-NEXT:            }
// CHECK-NEXT:            %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<4x8xf32>
// CHECK-NEXT:            %[[B:\w+]] = memref.load %B[%[[VK]], %[[VJ]]] : memref<8x6xf32>
// CHECK-NEXT:            %[[P:\w+]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT:            %[[OLD:.*]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<4x6xf32>
// CHECK-NEXT:            %[[NEW:.*]] = arith.addf %[[OLD]], %[[P]] : f32
// CHECK-NEXT:            memref.store %[[NEW]], %Y[%[[VI]], %[[VJ]]] : memref<4x6xf32>
// CHECK:         tir.for
// CHECK-NEXT:      tir.for
// CHECK-NEXT:        tir.block "C" iters({{%vi(_1)?}}: spatial<4>, {{%vj(_1)?}}: spatial<6>) = [{{%i(_1)?, %j(_1)?}}] {
// CHECK-NEXT:          %[[Y:\w+]] = memref.load %Y[{{%vi(_1)?}}, {{%vj(_1)?}}] : memref<4x6xf32>
// CHECK-NEXT:          %[[R:\w+]] = arith.maximumf %[[Y]], %[[ZERO]] : f32
// CHECK-NEXT:          memref.store %[[R]], %C[{{%vi(_1)?}}, {{%vj(_1)?}}] : memref<4x6xf32>
// CHECK:         func.return
// CHECK-NEXT:  }
func.func @mm_relu(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %Y = te.compute "Y" (%i, %j) : tensor<4x6xf32> {
    %s = te.reduce sum (%k in 8) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      %b = tensor.extract %B[%k, %j] : tensor<8x6xf32>
      %p = arith.mulf %a, %b : f32
      te.yield %p : f32
    }
    te.yield %s : f32
  }
  %unused = te.compute "unused" (%i) : tensor<4xf32> {
    %zero = arith.constant 0.0 : f32
    te.yield %zero : f32
  }
  %C = te.compute "C" (%i, %j) : tensor<4x6xf32> {
    %y = tensor.extract %Y[%i, %j] : tensor<4x6xf32>
    %zero = arith.constant 0.0 : f32
    %r = arith.maximumf %y, %zero : f32
    te.yield %r : f32
  }
  func.return %C : tensor<4x6xf32>
}

// -----

// Dynamic extents: those of arguments are asked for, those of results stated. A read under a condition stays under it.
// CHECK-LABEL: func.func private @pad(%A: memref<?xf32>, %bias: memref<?xf32>, %P: memref<?xf32>) {
// CHECK-DAG:     %c0 = arith.constant 0 : index
// CHECK:         %[[N:\w+]] = memref.dim %A, %[[C0:\w+]] : memref<?xf32>
// CHECK-NEXT:    tir.assume_shape %bias[%[[N]]] : memref<?xf32>
// CHECK-NEXT:    %[[M:\w+]] = affine.apply affine_map<(d0) -> ((d0 + 2))> (%[[N]])
// CHECK-NEXT:    tir.assume_shape %P[%[[M]]] : memref<?xf32>
// CHECK-NEXT:    tir.for %[[I:\w+]] in %[[M]] {
// CHECK-NEXT:      tir.block "P" iters(%[[VI:\w+]]: spatial<%[[M]]>) = [%[[I]]] {
// CHECK:             scf.if %[[IN:\w+]] -> (f32) {
// CHECK-NEXT:          %[[AT:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%[[VI]])
// CHECK-NEXT:          %[[A:\w+]] = memref.load %A[%[[AT]]] : memref<?xf32>
// CHECK:             memref.store %{{.*}}, %P[%[[VI]]] : memref<?xf32>
func.func private @pad(%A: tensor<?xf32>, %bias: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %A, %c0 : tensor<?xf32>
  te.assume_shape %bias[%n] : tensor<?xf32>
  %m = affine.apply affine_map<(d0) -> (d0 + 2)>(%n)
  %P = te.compute "P" (%i in %m) : tensor<?xf32> {
    %low = arith.cmpi sge, %i, %c1 : index
    %high = arith.cmpi sle, %i, %n : index
    %in = arith.andi %low, %high : i1
    %p = scf.if %in -> (f32) {
      %at = affine.apply affine_map<(d0) -> (d0 - 1)>(%i)
      %a = tensor.extract %A[%at] : tensor<?xf32>
      scf.yield %a : f32
    } else {
      scf.yield %zero : f32
    }
    te.yield %p : f32
  }
  func.return %P : tensor<?xf32>
}

// -----

// Pairs: one block updates both buffers; the one that is not returned is a temporary.
// CHECK-LABEL: func.func @argmin(%A: memref<4x8xf32>, %at: memref<4xi32>) {
// CHECK:         %v = memref.alloc() : memref<4xf32>
// CHECK:           tir.block "at" iters(%[[VI:\w+]]: spatial<4>, %[[VK:\w+]]: reduce<8>)
// CHECK-NEXT:        tir.init {
// CHECK-NEXT:          memref.store %{{.*}}, %v[%[[VI]]] : memref<4xf32>
// CHECK-NEXT:          memref.store %{{.*}}, %at[%[[VI]]] : memref<4xi32>
// CHECK:             arith.cmpf olt
// CHECK:             memref.store %{{.*}}, %v[%[[VI]]] : memref<4xf32>
// CHECK-NEXT:        memref.store %{{.*}}, %at[%[[VI]]] : memref<4xi32>
func.func @argmin(%A: tensor<4x8xf32>) -> tensor<4xi32> {
  %at = te.compute "at" (%i) : tensor<4xi32> {
    %v, %p = te.reduce argmin (%k in 8) : f32, i32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      %kk = arith.index_cast %k : index to i32
      te.yield %a, %kk : f32, i32
    }
    te.yield %p : i32
  }
  func.return %at : tensor<4xi32>
}

// -----

// Parameters in another order; an argument that is returned and a result that is returned twice are copied; names are
// kept apart; a scalar has no loops.
// CHECK-LABEL: func.func @order(%y: memref<f32>, %A: memref<2xf32>, %out1: memref<2xf32>, %x: f32, %out2: memref<f32>) {
// CHECK-NEXT:    tir.block "y" iters() = [] {
// CHECK-NEXT:      memref.store %x, %y[] : memref<f32>
// CHECK-NEXT:    }
// CHECK:         tir.for
// CHECK-NEXT:      tir.block "out1_copy" iters(%[[VI0:\w+]]: spatial<2>) = [%[[I0:\w+]]] {
// CHECK:         tir.block "out2_copy" iters() = [] {
func.func @order(%A: tensor<2xf32>, %x: f32) -> (tensor<f32>, tensor<2xf32>, tensor<f32>)
    attributes {te.parameter_order = array<i64: 2, 0, 3, 1, 4>} {
  %y = te.compute "y" () : tensor<f32> {
    te.yield %x : f32
  }
  func.return %y, %A, %y : tensor<f32>, tensor<2xf32>, tensor<f32>
}

// -----

// A reduction over nothing is its identity.
// CHECK-LABEL: func.func @empty
// CHECK:         tir.for %[[I:\w+]] in 4 {
// CHECK-NEXT:      tir.block "y" iters(%[[VI:\w+]]: spatial<4>) = [%[[I]]] {
// CHECK-NEXT:        memref.store %{{.*}}, %[[Y:\w+]][%[[VI]]] : memref<4xf32>
func.func @empty(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = te.compute "y" (%i) : tensor<4xf32> {
    %s = te.reduce max (%k in 0) : f32 {
      %a = tensor.extract %A[%i, %k] : tensor<4x8xf32>
      te.yield %a : f32
    }
    te.yield %s : f32
  }
  func.return %y : tensor<4xf32>
}

// -----

// What is no function of tensor expressions stays.
// CHECK-LABEL: func.func @graph
// CHECK:         graph.relu
// CHECK-LABEL: func.func @loops
// CHECK-NEXT:    tir.for
func.func @graph(%A: tensor<4xf32>) -> tensor<4xf32> {
  %b = graph.relu %A : tensor<4xf32>
  func.return %b : tensor<4xf32>
}

func.func @loops(%A: memref<4xf32>, %x: f32) {
  tir.for %i in 4 {
    tir.block "A" iters(%vi: spatial<4>) = [%i] {
      memref.store %x, %A[%vi] : memref<4xf32>
    }
  }
  func.return
}

// -----

// Constant tensors are data of the module; equal ones of a function are one.
// CHECK:      "memref.global"() <{sym_name = "weights_w", {{.*}} dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-LABEL: func.func @weights
// CHECK-NOT:  memref.global
// CHECK:      memref.get_global @weights_w : memref<2xf32>
func.func @weights(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %v = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = te.compute "y" (%i) : tensor<2xf32> {
    %a = tensor.extract %x[%i] : tensor<2xf32>
    %b = tensor.extract %w[%i] : tensor<2xf32>
    %c = tensor.extract %v[%i] : tensor<2xf32>
    %d = arith.mulf %a, %b : f32
    %e = arith.addf %d, %c : f32
    te.yield %e : f32
  }
  func.return %y : tensor<2xf32>
}

// -----

// What parameters and results state of their elements stays with the buffers that they become.
// CHECK-LABEL: func.func @top(%T: memref<4xi8> {tir.element = ui8}, %A: memref<4x9xi8> {tir.element = ui8})
// CHECK:         %[[ZERO:\w+]] = arith.constant 0 : i8
// CHECK:         memref.store %[[ZERO]], %T
// CHECK:         arith.maxui {{.*}} : i8
func.func @top(%A: tensor<4x9xi8> {tir.element = ui8}) -> (tensor<4xi8> {tir.element = ui8}) attributes {te.parameter_order = array<i64: 1, 0>} {
  %T = te.compute "T" (%i) : tensor<4xi8> {
    %s = te.reduce maxu (%k in 9) : i8 {
      %a = tensor.extract %A[%i, %k] : tensor<4x9xi8>
      te.yield %a : i8
    }
    te.yield %s : i8
  }
  func.return %T : tensor<4xi8>
}
