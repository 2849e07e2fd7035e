// RUN: weft-opt %s -p tir-collapse-dimensions --split-input-file | filecheck %s
// RUN: weft-opt %s -p tir-collapse-dimensions,tir-collapse-dimensions --split-input-file | filecheck %s

// All four dimensions: first the last two, whose extent is that of the parameter, then those before.
// CHECK-LABEL: func.func @main(%x: memref<?x8x?x?xf32>, %y: memref<?x8x?x?xf32>)
// CHECK:         tir.assume_shape %y[%n, %h, %w]
// CHECK:         %[[NC:.*]] = affine.apply affine_map<(d0) -> ((d0 * 8))> (%n)
// CHECK-NEXT:    %[[NCH:.*]] = arith.muli %[[NC]], %h : index
// CHECK-NEXT:    %[[ALL:.*]] = arith.muli %[[NCH]], %w : index
// CHECK-NEXT:    %x_1 = memref.reinterpret_cast %x to offset: [0], sizes: [%[[ALL]]], strides: [1] : memref<?x8x?x?xf32> to memref<?xf32>
// CHECK:         %y_1 = memref.reinterpret_cast %y to offset: [0], sizes: [%{{.*}}], strides: [1] : memref<?x8x?x?xf32> to memref<?xf32>
// CHECK-NEXT:    func.call @exp(%x_1, %y_1) : (memref<?xf32>, memref<?xf32>) -> ()
// CHECK-LABEL: func.func private @exp(%X: memref<?xf32>, %Y: memref<?xf32>)
// CHECK:         %[[S:.*]] = memref.dim %X, %{{.*}} : memref<?xf32>
// CHECK:         tir.assume_shape %Y[%[[S]]] : memref<?xf32>
// CHECK-NEXT:    tir.for %[[F:.*]] in %[[S]] {
// CHECK-NEXT:      tir.block "Y" iters(%[[V:.*]]: spatial<%[[S]]>) = [%[[F]]] {
// CHECK-NEXT:        %[[A:.*]] = memref.load %X[%[[V]]] : memref<?xf32>
// CHECK-NEXT:        %[[E:.*]] = math.exp %[[A]] : f32
// CHECK-NEXT:        memref.store %[[E]], %Y[%[[V]]] : memref<?xf32>
func.func @main(%x: memref<?x8x?x?xf32>, %y: memref<?x8x?x?xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x8x?x?xf32>
  %c2 = arith.constant 2 : index
  %h = memref.dim %x, %c2 : memref<?x8x?x?xf32>
  %c3 = arith.constant 3 : index
  %w = memref.dim %x, %c3 : memref<?x8x?x?xf32>
  tir.assume_shape %y[%n, %h, %w] : memref<?x8x?x?xf32>
  func.call @exp(%x, %y) : (memref<?x8x?x?xf32>, memref<?x8x?x?xf32>) -> ()
  func.return
}
func.func private @exp(%X: memref<?x8x?x?xf32>, %Y: memref<?x8x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %X, %c0 : memref<?x8x?x?xf32>
  %h = memref.dim %X, %c2 : memref<?x8x?x?xf32>
  %w = memref.dim %X, %c3 : memref<?x8x?x?xf32>
  tir.assume_shape %Y[%n, %h, %w] : memref<?x8x?x?xf32>
  tir.for %i in %n { tir.for %c in 8 { tir.for %j in %h { tir.for %k in %w {
    tir.block "Y" iters(%vi: spatial<%n>, %vc: spatial<8>, %vj: spatial<%h>, %vk: spatial<%w>) = [%i, %c, %j, %k] {
      %a = memref.load %X[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
      %e = math.exp %a : f32
      memref.store %e, %Y[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
    }
  } } } }
  func.return
}

// -----

// Steps of a reduction join as well, what is computed of both extents is the new one, and a temporary has the new
// dimensions. Rows of known length stay.
// CHECK-LABEL: func.func private @mean(%X: memref<?x8x?xf32>, %Y: memref<?x8xf32>)
// CHECK:         %[[S:.*]] = memref.dim %X, %c2{{.*}} : memref<?x8x?xf32>
// CHECK:         %squares = memref.alloc(%n, %[[S]]) : memref<?x8x?xf32>
// CHECK:         tir.for %{{.*}} in %n {
// CHECK:           tir.for %{{.*}} in 8 {
// CHECK-NEXT:        tir.for %{{.*}} in %[[S]] {
// CHECK-NEXT:          tir.block "squares" iters(%{{.*}}: spatial<%n>, %{{.*}}: spatial<8>, %{{.*}}: spatial<%[[S]]>)
// CHECK:         tir.block "sum" iters(%{{.*}}: spatial<%n>, %{{.*}}: spatial<8>, %{{.*}}: reduce<%[[S]]>)
// CHECK:         arith.index_cast %[[S]] : index to i64
func.func @main(%x: memref<?x8x?x?xf32>, %y: memref<?x8xf32>) attributes {tir.function} {
  func.call @mean(%x, %y) : (memref<?x8x?x?xf32>, memref<?x8xf32>) -> ()
  func.return
}
func.func private @mean(%X: memref<?x8x?x?xf32>, %Y: memref<?x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %X, %c0 : memref<?x8x?x?xf32>
  %h = memref.dim %X, %c2 : memref<?x8x?x?xf32>
  %w = memref.dim %X, %c3 : memref<?x8x?x?xf32>
  tir.assume_shape %Y[%n] : memref<?x8xf32>
  %squares = memref.alloc(%n, %h, %w) : memref<?x8x?x?xf32>
  %sum = memref.alloc(%n) : memref<?x8xf32>
  tir.for %i in %n { tir.for %c in 8 { tir.for %j in %h { tir.for %k in %w {
    tir.block "squares" iters(%vi: spatial<%n>, %vc: spatial<8>, %vj: spatial<%h>, %vk: spatial<%w>) = [%i, %c, %j, %k] {
      %a = memref.load %X[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
      %e = arith.mulf %a, %a : f32
      memref.store %e, %squares[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
    }
  } } } }
  tir.for %i in %n { tir.for %c in 8 { tir.for %j in %h { tir.for %k in %w {
    tir.block "sum" iters(%vi: spatial<%n>, %vc: spatial<8>, %vj: reduce<%h>, %vk: reduce<%w>) = [%i, %c, %j, %k] {
      tir.init {
        memref.store %zero, %sum[%vi, %vc] : memref<?x8xf32>
      }
      %a = memref.load %squares[%vi, %vc, %vj, %vk] : memref<?x8x?x?xf32>
      %s = memref.load %sum[%vi, %vc] : memref<?x8xf32>
      %e = arith.addf %s, %a : f32
      memref.store %e, %sum[%vi, %vc] : memref<?x8xf32>
    }
  } } } }
  tir.for %i in %n { tir.for %c in 8 {
    tir.block "Y" iters(%vi: spatial<%n>, %vc: spatial<8>) = [%i, %c] {
      %s = memref.load %sum[%vi, %vc] : memref<?x8xf32>
      %count = arith.muli %h, %w : index
      %wide = arith.index_cast %count : index to i64
      %number = arith.sitofp %wide : i64 to f32
      %e = arith.divf %s, %number : f32
      memref.store %e, %Y[%vi, %vc] : memref<?x8xf32>
    }
  } }
  func.return
}

// -----

// Extents of a parameter that keeps its dimensions: the product is computed.
// CHECK-LABEL: func.func private @rows(%row: memref<?xf32>, %like: memref<?x?xf32>, %Y: memref<?x?xf32>)
// CHECK:         %[[S:.*]] = arith.muli %b, %s : index
// CHECK-NEXT:    tir.assume_shape %Y[%[[S]], %t] : memref<?x?xf32>
// CHECK-NEXT:    tir.for %[[I:.*]] in %[[S]] {
func.func @main(%row: memref<?xf32>, %like: memref<?x?xf32>, %y: memref<?x?x?xf32>) attributes {tir.function} {
  func.call @rows(%row, %like, %y) : (memref<?xf32>, memref<?x?xf32>, memref<?x?x?xf32>) -> ()
  func.return
}
func.func private @rows(%row: memref<?xf32>, %like: memref<?x?xf32>, %Y: memref<?x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = memref.dim %row, %c0 : memref<?xf32>
  %b = memref.dim %like, %c0 : memref<?x?xf32>
  %s = memref.dim %like, %c1 : memref<?x?xf32>
  tir.assume_shape %Y[%b, %s, %t] : memref<?x?x?xf32>
  tir.for %i in %b { tir.for %j in %s { tir.for %k in %t {
    tir.block "Y" iters(%vi: spatial<%b>, %vj: spatial<%s>, %vk: spatial<%t>) = [%i, %j, %k] {
      %a = memref.load %row[%vk] : memref<?xf32>
      memref.store %a, %Y[%vi, %vj, %vk] : memref<?x?x?xf32>
    }
  } } }
  func.return
}

// -----

// Known extents join where elements change places.
// CHECK:         %x_1 = memref.reinterpret_cast %x to offset: [0], sizes: [2, 8, 15], strides: [120, 15, 1] : memref<2x8x3x5xf32> to memref<2x8x15xf32>
// CHECK-LABEL: func.func private @transpose(%X: memref<2x8x15xf32>, %Y: memref<2x15x8xf32>)
// CHECK:         tir.for %{{.*}} in 15 {
// CHECK:           memref.load %X[%[[I:.*]], %[[C:.*]], %[[P:.*]]] : memref<2x8x15xf32>
// CHECK-NEXT:      memref.store %{{.*}}, %Y[%[[I]], %[[P]], %[[C]]] : memref<2x15x8xf32>
// CHECK-LABEL: func.func private @copy(%X: memref<2x8x3x5xf32>, %Y: memref<2x8x3x5xf32>)
func.func @main(%x: memref<2x8x3x5xf32>, %y: memref<2x3x5x8xf32>, %z: memref<2x8x3x5xf32>) attributes {tir.function} {
  func.call @transpose(%x, %y) : (memref<2x8x3x5xf32>, memref<2x3x5x8xf32>) -> ()
  func.call @copy(%x, %z) : (memref<2x8x3x5xf32>, memref<2x8x3x5xf32>) -> ()
  func.return
}
func.func private @transpose(%X: memref<2x8x3x5xf32>, %Y: memref<2x3x5x8xf32>) {
  tir.for %i in 2 { tir.for %j in 3 { tir.for %k in 5 { tir.for %c in 8 {
    tir.block "Y" iters(%vi: spatial<2>, %vj: spatial<3>, %vk: spatial<5>, %vc: spatial<8>) = [%i, %j, %k, %c] {
      %a = memref.load %X[%vi, %vc, %vj, %vk] : memref<2x8x3x5xf32>
      memref.store %a, %Y[%vi, %vj, %vk, %vc] : memref<2x3x5x8xf32>
    }
  } } } }
  func.return
}
func.func private @copy(%X: memref<2x8x3x5xf32>, %Y: memref<2x8x3x5xf32>) {
  tir.for %i in 2 { tir.for %c in 8 { tir.for %j in 3 { tir.for %k in 5 {
    tir.block "Y" iters(%vi: spatial<2>, %vc: spatial<8>, %vj: spatial<3>, %vk: spatial<5>) = [%i, %c, %j, %k] {
      %a = memref.load %X[%vi, %vc, %vj, %vk] : memref<2x8x3x5xf32>
      memref.store %a, %Y[%vi, %vc, %vj, %vk] : memref<2x8x3x5xf32>
    }
  } } } }
  func.return
}

// -----

// What stays: a known inner extent (`rows`), an iterator that is used alone (`numbers`, `columns`), a place that is moved
// (`shifted`), an extent of the parameter that something else needs (`lengths`), and functions that others than callers
// see: one that is public and one that is not called.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     reinterpret_cast
// CHECK-LABEL: func.func private @rows(%X: memref<?x8xf32>)
// CHECK-LABEL: func.func private @numbers(%X: memref<?x?xindex>)
// CHECK-LABEL: func.func private @columns(%X: memref<?x?xf32>, %B: memref<?xf32>)
// CHECK-LABEL: func.func private @shifted(%X: memref<?x?xf32>)
// CHECK-LABEL: func.func private @lengths(%X: memref<?x?xindex>)
// CHECK-LABEL: func.func @seen(%X: memref<?x?xf32>)
// CHECK-LABEL: func.func private @not_called(%X: memref<?x?xf32>)
func.func @main(%x: memref<?x?xf32>, %r: memref<?x8xf32>, %n: memref<?x?xindex>, %b: memref<?xf32>) attributes {tir.function} {
  func.call @rows(%r) : (memref<?x8xf32>) -> ()
  func.call @numbers(%n) : (memref<?x?xindex>) -> ()
  func.call @columns(%x, %b) : (memref<?x?xf32>, memref<?xf32>) -> ()
  func.call @shifted(%x) : (memref<?x?xf32>) -> ()
  func.call @lengths(%n) : (memref<?x?xindex>) -> ()
  func.call @seen(%x) : (memref<?x?xf32>) -> ()
  func.return
}
func.func private @rows(%X: memref<?x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?x8xf32>
  tir.for %i in %n { tir.for %j in 8 {
    tir.block "rows" iters(%vi: spatial<%n>, %vj: spatial<8>) = [%i, %j] {
      memref.store %zero, %X[%vi, %vj] : memref<?x8xf32>
    }
  } }
  func.return
}
func.func private @numbers(%X: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xindex>
  %w = memref.dim %X, %c1 : memref<?x?xindex>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "numbers" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      memref.store %vj, %X[%vi, %vj] : memref<?x?xindex>
    }
  } }
  func.return
}
func.func private @columns(%X: memref<?x?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xf32>
  %w = memref.dim %X, %c1 : memref<?x?xf32>
  tir.assume_shape %B[%w] : memref<?xf32>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "columns" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      %b = memref.load %B[%vj] : memref<?xf32>
      memref.store %b, %X[%vi, %vj] : memref<?x?xf32>
    }
  } }
  func.return
}
func.func private @shifted(%X: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xf32>
  %w = memref.dim %X, %c1 : memref<?x?xf32>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "shifted" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      %back = affine.apply affine_map<(d0)[s0] -> (s0 - 1 - d0)> (%vj)[%w]
      memref.store %zero, %X[%vi, %back] : memref<?x?xf32>
    }
  } }
  func.return
}
func.func private @lengths(%X: memref<?x?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xindex>
  %w = memref.dim %X, %c1 : memref<?x?xindex>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "lengths" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      memref.store %w, %X[%vi, %vj] : memref<?x?xindex>
    }
  } }
  func.return
}
func.func @seen(%X: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xf32>
  %w = memref.dim %X, %c1 : memref<?x?xf32>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "seen" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      memref.store %zero, %X[%vi, %vj] : memref<?x?xf32>
    }
  } }
  func.return
}
func.func private @not_called(%X: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xf32>
  %w = memref.dim %X, %c1 : memref<?x?xf32>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "not_called" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      memref.store %zero, %X[%vi, %vj] : memref<?x?xf32>
    }
  } }
  func.return
}

// -----

// A schedule in the module names loops: nothing changes.
// CHECK-LABEL: func.func private @scheduled(%X: memref<?x?xf32>)
func.func @main(%x: memref<?x?xf32>) attributes {tir.function} {
  func.call @scheduled(%x) : (memref<?x?xf32>) -> ()
  func.return
}
func.func private @scheduled(%X: memref<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %h = memref.dim %X, %c0 : memref<?x?xf32>
  %w = memref.dim %X, %c1 : memref<?x?xf32>
  tir.for %i in %h { tir.for %j in %w {
    tir.block "Z" iters(%vi: spatial<%h>, %vj: spatial<%w>) = [%i, %j] {
      memref.store %zero, %X[%vi, %vj] : memref<?x?xf32>
    }
  } }
  func.return
}
sched.func @schedule {
  %block = sched.get_block "Z" in @scheduled : block
  %i, %j = sched.get_loops %block : loop, loop
  sched.parallel %i
}

// -----

// Pixels of a convolution by 1 x 1: the offsets in its window are 0.
// CHECK-LABEL: func.func private @conv(%X: memref<4x?xf32>, %W: memref<6x4x1x1xf32>, %Y: memref<6x?xf32>)
// CHECK:         tir.block "Y" iters(%vc: spatial<6>, %[[P:.*]]: spatial<%{{.*}}>, %vrc: reduce<4>, %vrh: reduce<1>, %vrw: reduce<1>)
// CHECK:           %[[I:.*]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[P]], %vrh)
// CHECK-NEXT:      memref.load %X[%vrc, %[[I]]] : memref<4x?xf32>
// CHECK-NEXT:      memref.load %W[%vc, %vrc, %vrh, %vrw] : memref<6x4x1x1xf32>
func.func @main(%x: memref<4x?x?xf32>, %w: memref<6x4x1x1xf32>, %y: memref<6x?x?xf32>) attributes {tir.function} {
  func.call @conv(%x, %w, %y) : (memref<4x?x?xf32>, memref<6x4x1x1xf32>, memref<6x?x?xf32>) -> ()
  func.return
}
func.func private @conv(%X: memref<4x?x?xf32>, %W: memref<6x4x1x1xf32>, %Y: memref<6x?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %h = memref.dim %X, %c1 : memref<4x?x?xf32>
  %w = memref.dim %X, %c2 : memref<4x?x?xf32>
  tir.assume_shape %Y[%h, %w] : memref<6x?x?xf32>
  tir.for %c in 6 { tir.for %j in %h { tir.for %k in %w { tir.for %rc in 4 { tir.for %rh in 1 { tir.for %rw in 1 {
    tir.block "Y" iters(%vc: spatial<6>, %vj: spatial<%h>, %vk: spatial<%w>, %vrc: reduce<4>, %vrh: reduce<1>, %vrw: reduce<1>) = [%c, %j, %k, %rc, %rh, %rw] {
      tir.init {
        memref.store %zero, %Y[%vc, %vj, %vk] : memref<6x?x?xf32>
      }
      %row = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%vj, %vrh)
      %column = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%vk, %vrw)
      %a = memref.load %X[%vrc, %row, %column] : memref<4x?x?xf32>
      %b = memref.load %W[%vc, %vrc, %vrh, %vrw] : memref<6x4x1x1xf32>
      %s = memref.load %Y[%vc, %vj, %vk] : memref<6x?x?xf32>
      %p = arith.mulf %a, %b : f32
      %e = arith.addf %s, %p : f32
      memref.store %e, %Y[%vc, %vj, %vk] : memref<6x?x?xf32>
    }
  } } } } } }
  func.return
}

// -----

// The extent of a collapsed dimension is that of another one, too, which other uses then read.
// CHECK-LABEL: func.func private @squares(%X: memref<?x?xf32>, %Z: memref<?xf32>, %Y: memref<?x?xf32>)
// CHECK:         %[[LAST:.*]] = memref.dim %X, %{{.*}} : memref<?x?xf32>
// CHECK:         %[[BOTH:.*]] = memref.dim %X, %{{.*}} : memref<?x?xf32>
// CHECK-NEXT:    tir.assume_shape %X[%[[BOTH]], %[[LAST]]] : memref<?x?xf32>
// CHECK:         tir.for %{{.*}} in %[[BOTH]] {
// CHECK-NEXT:      tir.for %{{.*}} in %[[LAST]] {
// CHECK-NEXT:        tir.block "Y" iters(%{{.*}}: spatial<%[[BOTH]]>, %{{.*}}: spatial<%[[LAST]]>)
func.func @caller(%X: memref<4x?x?xf32>, %Z: memref<?xf32>, %Y: memref<4x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %s = memref.dim %X, %c1 : memref<4x?x?xf32>
  tir.assume_shape %X[%s, %s] : memref<4x?x?xf32>
  tir.assume_shape %Z[%s] : memref<?xf32>
  tir.assume_shape %Y[%s, %s] : memref<4x?x?xf32>
  func.call @squares(%X, %Z, %Y) : (memref<4x?x?xf32>, memref<?xf32>, memref<4x?x?xf32>) -> ()
  func.return
}
func.func private @squares(%X: memref<4x?x?xf32>, %Z: memref<?xf32>, %Y: memref<4x?x?xf32>) {
  %c1 = arith.constant 1 : index
  %s = memref.dim %X, %c1 : memref<4x?x?xf32>
  tir.assume_shape %X[%s, %s] : memref<4x?x?xf32>
  tir.assume_shape %Z[%s] : memref<?xf32>
  tir.assume_shape %Y[%s, %s] : memref<4x?x?xf32>
  tir.for %i in 4 { tir.for %j in %s { tir.for %k in %s {
    tir.block "Y" iters(%vi: spatial<4>, %vj: spatial<%s>, %vk: spatial<%s>) = [%i, %j, %k] {
      %x = memref.load %X[%vi, %vj, %vk] : memref<4x?x?xf32>
      %z = memref.load %Z[%vk] : memref<?xf32>
      %y = arith.addf %x, %z : f32
      memref.store %y, %Y[%vi, %vj, %vk] : memref<4x?x?xf32>
    }
  } } }
  func.return
}

// -----

// The extent that is used elsewhere is read from a dimension that stays.
// CHECK-LABEL: func.func private @chosen(%X: memref<?x?xf32>, %Z: memref<4xindex>, %Y: memref<4x?xf32>)
// CHECK:         %[[S:.*]] = memref.dim %X, %{{.*}} : memref<?x?xf32>
// CHECK:         %[[BOTH:.*]] = memref.dim %X, %{{.*}} : memref<?x?xf32>
// CHECK:         tir.assume_shape %X[%[[S]], %[[BOTH]]] : memref<?x?xf32>
// CHECK-NEXT:    tir.assume_shape %Y[%[[BOTH]]] : memref<4x?xf32>
// CHECK:         arith.minsi %{{.*}}, %[[S]] : index
func.func @choosing(%X: memref<?x?x?xf32>, %Z: memref<4xindex>, %Y: memref<4x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = memref.dim %X, %c0 : memref<?x?x?xf32>
  %t = memref.dim %X, %c1 : memref<?x?x?xf32>
  tir.assume_shape %X[%s, %t, %s] : memref<?x?x?xf32>
  tir.assume_shape %Y[%t, %s] : memref<4x?x?xf32>
  func.call @chosen(%X, %Z, %Y) : (memref<?x?x?xf32>, memref<4xindex>, memref<4x?x?xf32>) -> ()
  func.return
}
func.func private @chosen(%X: memref<?x?x?xf32>, %Z: memref<4xindex>, %Y: memref<4x?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = memref.dim %X, %c0 : memref<?x?x?xf32>
  %t = memref.dim %X, %c1 : memref<?x?x?xf32>
  tir.assume_shape %X[%s, %t, %s] : memref<?x?x?xf32>
  tir.assume_shape %Y[%t, %s] : memref<4x?x?xf32>
  tir.for %i in 4 { tir.for %j in %t { tir.for %k in %s {
    tir.block "Y" iters(%vi: spatial<4>, %vj: spatial<%t>, %vk: spatial<%s>) = [%i, %j, %k] {
      %z = memref.load %Z[%vi] : memref<4xindex>
      %at = arith.minsi %z, %s : index
      %x = memref.load %X[%at, %vj, %vk] : memref<?x?x?xf32>
      memref.store %x, %Y[%vi, %vj, %vk] : memref<4x?x?xf32>
    }
  } } }
  func.return
}
