// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-compute-at{func=f block=B at=C loop=0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// compute_at: a producer computes what an iteration of a loop of its consumers reads.

// One element.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[AX0]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  %B = memref.alloc() : memref<10x12xf32>
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
        %b = arith.mulf %a, %a : f32
        memref.store %b, %B[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
        %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
        %d = arith.negf %b : f32
        memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  sched.compute_at %b, %j
}

// -----

// A window: the halo is computed with it.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<18>) = [%[[I0]] * 4 + %[[AX0]]] {
// CHECK: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI:\w+]]: spatial<16>, %[[VK:\w+]]: reduce<3>) = [%[[I0]] * 4 + %[[I1]], %[[K]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 16 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<18>) = [%[[I]] + %[[AX0]]] {
// PASS: {{^}}      tir.for %[[K:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<16>, %[[VK:\w+]]: reduce<3>) = [%[[I]], %[[K]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<18xf32>, %C: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<18xf32>
  tir.for %i in 18 {
    tir.block "B" iters(%v: spatial<18>) = [%i] {
      %a = memref.load %A[%v] : memref<18xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<18xf32>
    }
  }
  tir.for %i in 16 {
    tir.for %k in 3 {
      tir.block "C" iters(%vi: spatial<16>, %vk: reduce<3>) = [%i, %k] {
        tir.init {
          memref.store %zero, %C[%vi] : memref<16xf32>
        }
        %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vk)
        %b = memref.load %B[%x] : memref<18xf32>
        %c = memref.load %C[%vi] : memref<16xf32>
        %s = arith.addf %c, %b : f32
        memref.store %s, %C[%vi] : memref<16xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %k = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_at %b, %i0
}

// -----

// A window and a tile that does not divide: guards keep to the domain.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<16>) = [%[[I0]] * 4 + %[[AX0]]] where [%[[I0]] * 4 + %[[AX0]]] < [16] {
// CHECK: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI:\w+]]: spatial<14>, %[[VK:\w+]]: reduce<3>) = [%[[I0]] * 4 + %[[I1]], %[[K]]] where [%[[I0]] * 4 + %[[I1]]] < [14] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 14 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<16>) = [%[[I]] + %[[AX0]]] {
// PASS: {{^}}      tir.for %[[K:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<14>, %[[VK:\w+]]: reduce<3>) = [%[[I]], %[[K]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<16xf32>, %C: memref<14xf32>) {
  %zero = arith.constant 0.0 : f32
  %B = memref.alloc() : memref<16xf32>
  tir.for %i in 16 {
    tir.block "B" iters(%v: spatial<16>) = [%i] {
      %a = memref.load %A[%v] : memref<16xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<16xf32>
    }
  }
  tir.for %i in 14 {
    tir.for %k in 3 {
      tir.block "C" iters(%vi: spatial<14>, %vk: reduce<3>) = [%i, %k] {
        tir.init {
          memref.store %zero, %C[%vi] : memref<14xf32>
        }
        %x = affine.apply affine_map<(d0, d1) -> (d0 + d1)>(%vi, %vk)
        %b = memref.load %B[%x] : memref<16xf32>
        %c = memref.load %C[%vi] : memref<14xf32>
        %s = arith.addf %c, %b : f32
        memref.store %s, %C[%vi] : memref<14xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %k = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_at %b, %i0
}

// -----

// Padding under a tile of the convolution.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}          tir.for %[[AX1:\w+]] in 6 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<11>, %[[VJ:\w+]]: spatial<10>) = [%[[I0]] * 4 + %[[AX0]], %[[J0]] * 4 + %[[AX1]]] where [%[[I0]] * 4 + %[[AX0]]] < [11] {
// CHECK: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// CHECK-NEXT: {{^}}            tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}              tir.for %[[L:\w+]] in 3 {
// CHECK-NEXT: {{^}}                tir.block "C" iters(%[[VI]]: spatial<9>, %[[VJ]]: spatial<8>, %[[VK:\w+]]: reduce<3>, %[[VL:\w+]]: reduce<3>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]], %[[K]], %[[L]]] where [%[[I0]] * 4 + %[[I1]]] < [9] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 9 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 10 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<11>, %[[VJ:\w+]]: spatial<10>) = [%[[I]] + %[[AX0]], %[[AX1]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 8 {
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
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j, %k, %l = sched.get_loops %c : loop, loop, loop, loop
  %i0, %j0, %i1, %j1 = sched.tile %i, %j {factors = [4, 4]} : loop, loop, loop, loop
  sched.compute_at %b, %j0
}

// -----

// A reduction: all of its steps, for the elements that are read.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.for %[[AX2:\w+]] in 9 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[AX0]], %[[AX1]], %[[AX2]]] {
// CHECK: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[AX0]], %[[AX1]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 10 {
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
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_at %b, %i0
}

// -----

// Two consumers below the loop.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<13>) = [%[[I]]] {
// CHECK: {{^}}      tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// CHECK: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<13>) = [%[[I]]] {
// PASS: {{^}}      tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// PASS: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12xf32>, %C: memref<12xf32>, %D: memref<12xf32>) {
  %B = memref.alloc() : memref<13xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<13>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<13xf32>
    }
  }
  tir.for %i in 12 {
    tir.block "C" iters(%v: spatial<12>) = [%i] {
      %b = memref.load %B[%v] : memref<13xf32>
      memref.store %b, %C[%v] : memref<12xf32>
    }
    tir.block "D" iters(%v: spatial<12>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (11 - d0)>(%v)
      %b = memref.load %B[%v] : memref<13xf32>
      memref.store %b, %D[%x] : memref<12xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i = sched.get_loops %c : loop
  sched.compute_at %b, %i
}

// -----

// Symbolic extents.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.for %[[AX2:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I0]] * 4 + %[[AX0]], %[[AX1]], %[[AX2]]] where [%[[I0]] * 4 + %[[AX0]]] < [%[[M]]] {
// CHECK: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [%[[M]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[AX1:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[AX0]], %[[AX1]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%X: memref<?x?xf32>, %W: memref<?x10xf32>, %D: memref<?x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %X, %c0 : memref<?x?xf32>
  %n = memref.dim %X, %c1 : memref<?x?xf32>
  tir.assume_shape %W[%n] : memref<?x10xf32>
  tir.assume_shape %D[%m] : memref<?x10xf32>
  %Y = memref.alloc(%m) : memref<?x10xf32>
  tir.for %i in %m {
    tir.for %j in 10 {
      tir.for %k in %n {
        tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<10>, %vk: reduce<%n>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %Y[%vi, %vj] : memref<?x10xf32>
          }
          %x = memref.load %X[%vi, %vk] : memref<?x?xf32>
          %w = memref.load %W[%vk, %vj] : memref<?x10xf32>
          %p = arith.mulf %x, %w : f32
          %y = memref.load %Y[%vi, %vj] : memref<?x10xf32>
          %s = arith.addf %y, %p : f32
          memref.store %s, %Y[%vi, %vj] : memref<?x10xf32>
        }
      }
    }
  }
  tir.for %i in %m {
    tir.for %j in 10 {
      tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<10>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<?x10xf32>
        %r = arith.maximumf %y, %zero : f32
        memref.store %r, %D[%vi, %vj] : memref<?x10xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_at %b, %i0
}

// -----

// A loop for each iterator, when asked for: a schedule that splits it serves all sizes.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 1 {
// CHECK-NEXT: {{^}}        tir.for %[[AX10:\w+]] in 1 {
// CHECK-NEXT: {{^}}          tir.for %[[AX11:\w+]] in 8 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<4>, %[[VJ:\w+]]: spatial<1>) = [%[[I]], 0] where [%[[AX11]]] < [1] {
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 4 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<4>, %[[VJ:\w+]]: spatial<1>) = [%[[I]], 0] {
// PASS: func.return
func.func @f(%X: memref<4x1xf32>, %D: memref<4x1xf32>) {
  %Y = memref.alloc() : memref<4x1xf32>
  tir.for %i in 4 {
    tir.for %j in 1 {
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<1>) = [%i, %j] {
        %x = memref.load %X[%vi, %vj] : memref<4x1xf32>
        memref.store %x, %Y[%vi, %vj] : memref<4x1xf32>
      }
    }
  }
  tir.for %i in 4 {
    tir.for %j in 1 {
      tir.block "C" iters(%vi: spatial<4>, %vj: spatial<1>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<4x1xf32>
        memref.store %y, %D[%vi, %vj] : memref<4x1xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  sched.compute_at %b, %i {preserve_unit_loops = true}
  %i_1, %ax0, %ax1 = sched.get_loops %b : loop, loop, loop
  %0, %1 = sched.split %ax1 {factors = [0, 8]} : loop, loop
}

// -----

// Through quotient and remainder, and every second row alone.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<48>) = [%[[I]] * 8 + %[[AX0]] * 2] {
// CHECK: {{^}}      tir.for %[[J:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "C"
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<48>) = [%[[I:\w+]] * 8 + %[[AX0:\w+]] * 2] {
// PASS: func.return
func.func @f(%A: memref<48xf32>, %C: memref<6x4xf32>) {
  %B = memref.alloc() : memref<12x4xf32>
  tir.for %i in 48 {
    tir.block "B" iters(%v: spatial<48>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 floordiv 4)>(%v)
      %y = affine.apply affine_map<(d0) -> (d0 mod 4)>(%v)
      %a = memref.load %A[%v] : memref<48xf32>
      memref.store %a, %B[%x, %y] : memref<12x4xf32>
    } }
  tir.for %i in 6 { tir.for %j in 4 {
    tir.block "C" iters(%v: spatial<6>, %w: spatial<4>) = [%i, %j] {
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1 floordiv 2)>(%v, %w)
      %y = affine.apply affine_map<(d0) -> (d0 mod 2 * 2)>(%w)
      %b = memref.load %B[%x, %y] : memref<12x4xf32>
      memref.store %b, %C[%v, %w] : memref<6x4xf32>
    } } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %c : loop, loop
  sched.compute_at %b, %i
}

// -----

// Windows of 2 rows, 4 apart: 6 rows for three of them, not the 10 from the first to the last.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 2 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<24>) = [%[[I0]] * 12 + %[[AX0]] floordiv 2 * 4 + %[[AX0]] mod 2] {
// CHECK: {{^}}          tir.block "C" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: spatial<2>) = [%[[I0]] * 3 + %[[I1:\w+]], %[[K:\w+]]] {
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 2 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<24>) = [%[[I]] * 4 + %[[AX0]]] {
// PASS: func.return
func.func @f(%A: memref<24xf32>, %C: memref<6x2xf32>) {
  %B = memref.alloc() : memref<24xf32>
  tir.for %i in 24 {
    tir.block "B" iters(%v: spatial<24>) = [%i] {
      %a = memref.load %A[%v] : memref<24xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<24xf32>
    }
  }
  tir.for %i in 6 {
    tir.for %k in 2 {
      tir.block "C" iters(%vi: spatial<6>, %vk: spatial<2>) = [%i, %k] {
        %x = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%vi, %vk)
        %b = memref.load %B[%x] : memref<24xf32>
        memref.store %b, %C[%vi, %vk] : memref<6x2xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %k = sched.get_loops %c : loop, loop
  %i0, %i1 = sched.split %i {factors = [2, 3]} : loop, loop
  sched.compute_at %b, %i0
}
