// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-reorder{func=f block=B loops=1,0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// reorder: loops of a chain in another order; those that are not named keep their places.

// Two loops.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
        memref.store %a, %D[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.reorder %j, %i
}

// -----

// The reduction outside, the middle loop stays.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK: {{^}}    tir.for %[[I]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
// PASS: {{^}}    tir.for %[[I]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%X: memref<12x9xf32>, %W: memref<9x10xf32>, %D: memref<12x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<12x10xf32>
  tir.for %i in 12 {
    tir.for %j in 10 {
      tir.for %k in 9 {
        tir.block "B" iters(%vi: spatial<12>, %vj: spatial<10>, %vk: reduce<9>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %Y[%vi, %vj] : memref<12x10xf32>
          }
          %x = memref.load %X[%vi, %vk] : memref<12x9xf32>
          %w = memref.load %W[%vk, %vj] : memref<9x10xf32>
          %p = arith.mulf %x, %w : f32
          %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
          %s = arith.addf %y, %p : f32
          memref.store %s, %Y[%vi, %vj] : memref<12x10xf32>
        }
      }
    }
  }
  tir.for %i in 12 {
    tir.for %j in 10 {
      tir.block "C" iters(%vi: spatial<12>, %vj: spatial<10>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<12x10xf32>
        %r = arith.maximumf %y, %zero : f32
        memref.store %r, %D[%vi, %vj] : memref<12x10xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  sched.reorder %k, %i
}

// -----

// Padding, then the window loops of a convolution: the pass turns the padding, the schedule the window.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 11 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<11>, %[[VJ:\w+]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK: {{^}}    tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[L:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.for %[[I]] in 9 {
// CHECK-NEXT: {{^}}          tir.for %[[J]] in 8 {
// CHECK-NEXT: {{^}}            tir.block "C" iters(%[[VI]]: spatial<9>, %[[VJ]]: spatial<8>, %[[VK:\w+]]: reduce<3>, %[[VL:\w+]]: reduce<3>) = [%[[I]], %[[J]], %[[K]], %[[L]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[I:\w+]] in 11 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<11>, %[[VJ:\w+]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS: {{^}}    tir.for %[[I]] in 9 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 8 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 3 {
// PASS-NEXT: {{^}}          tir.for %[[L:\w+]] in 3 {
// PASS-NEXT: {{^}}            tir.block "C" iters(%[[VI]]: spatial<9>, %[[VJ]]: spatial<8>, %[[VK:\w+]]: reduce<3>, %[[VL:\w+]]: reduce<3>) = [%[[I]], %[[J]], %[[K]], %[[L]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%X: memref<9x8xf32>, %W: memref<3x3xf32>, %Y: memref<9x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %c8 = arith.constant 8 : index
  %P = memref.alloc() : memref<11x10xf32>
  tir.for %i in 11 {
    tir.for %j in 10 {
      tir.block "B" iters(%vi: spatial<11>, %vj: spatial<10>) = [%i, %j] {
        %u = affine.apply affine_map<(d0) -> (d0 - 1)>(%vi)
        %v = affine.apply affine_map<(d0) -> (d0 - 1)>(%vj)
        %p0 = arith.cmpi sge, %u, %c0 : index
        %p1 = arith.cmpi slt, %u, %c9 : index
        %p2 = arith.cmpi sge, %v, %c0 : index
        %p3 = arith.cmpi slt, %v, %c8 : index
        %q0 = arith.andi %p0, %p1 : i1
        %q1 = arith.andi %p2, %p3 : i1
        %q = arith.andi %q0, %q1 : i1
        %x = scf.if %q -> (f32) {
          %inside = memref.load %X[%u, %v] : memref<9x8xf32>
          scf.yield %inside : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %x, %P[%vi, %vj] : memref<11x10xf32>
      }
    }
  }
  tir.for %i in 9 {
    tir.for %j in 8 {
      tir.for %k in 3 {
        tir.for %l in 3 {
          tir.block "C" iters(%vi: spatial<9>, %vj: spatial<8>, %vk: reduce<3>, %vl: reduce<3>) = [%i, %j, %k, %l] {
            tir.init {
              memref.store %zero, %Y[%vi, %vj] : memref<9x8xf32>
            }
            %r = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vk)
            %s = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vj, %vl)
            %x = memref.load %P[%r, %s] : memref<11x10xf32>
            %w = memref.load %W[%vk, %vl] : memref<3x3xf32>
            %p = arith.mulf %x, %w : f32
            %y = memref.load %Y[%vi, %vj] : memref<9x8xf32>
            %t = arith.addf %y, %p : f32
            memref.store %t, %Y[%vi, %vj] : memref<9x8xf32>
          }
        }
      }
    }
  }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  %i, %j, %k, %l = sched.get_loops %c : loop, loop, loop, loop
  sched.reorder %k, %l, %i, %j
}

// -----

// Symbolic extents after a split.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[N:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[J0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      tir.for %[[I:\w+]] in %[[M:\w+]] {
// CHECK-NEXT: {{^}}        tir.for %[[J1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I]], %[[J0]] * 4 + %[[J1]]] where [%[[J0]] * 4 + %[[J1]]] < [%[[N]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[J:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}      tir.for %[[I:\w+]] in %[[M:\w+]] {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<?x?xf32>, %D: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %D[%m, %n] : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<?x?xf32>
        memref.store %a, %D[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop
  sched.reorder %j0, %i, %j1
}
