// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-reverse-compute-at{func=f block=C at=B loop=0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// reverse_compute_at: a consumer takes what an iteration of a loop of its producers made.

// A tile of the consumer after a tile of the reduction.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 5 {
// CHECK-NEXT: {{^}}            tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}              tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 5 + %[[J1]], %[[K]]] {
// CHECK: {{^}}        tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[AX1:\w+]] in 5 {
// CHECK-NEXT: {{^}}            tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I0]] * 4 + %[[AX0]], %[[J0]] * 5 + %[[AX1]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[AX0]]] {
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
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %i0, %j0, %i1, %j1 = sched.tile %i, %j {factors = [4, 5]} : loop, loop, loop, loop
  sched.reverse_compute_at %c, %j0
}

// -----

// Tiles that do not divide: guards.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 12 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I0]] * 4 + %[[AX0]], %[[AX1]]] where [%[[I0]] * 4 + %[[AX0]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[AX0]]] {
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
  %i, %j = sched.get_loops %b : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.reverse_compute_at %c, %i0
}

// -----

// Dimensions in another order.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 7 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ:\w+]]: spatial<7>) = [%[[I]], %[[J]]] {
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 7 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<7>, %[[VJ]]: spatial<6>) = [%[[AX0]], %[[I]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 7 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ:\w+]]: spatial<7>) = [%[[I]], %[[J]]] {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 7 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<7>, %[[VJ]]: spatial<6>) = [%[[AX0]], %[[I]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<6x7xf32>, %D: memref<7x6xf32>) {
  %B = memref.alloc() : memref<6x7xf32>
  tir.for %i in 6 {
    tir.for %j in 7 {
      tir.block "B" iters(%vi: spatial<6>, %vj: spatial<7>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<6x7xf32>
        %b = arith.mulf %a, %a : f32
        memref.store %b, %B[%vi, %vj] : memref<6x7xf32>
      }
    }
  }
  tir.for %i in 7 {
    tir.for %j in 6 {
      tir.block "C" iters(%vi: spatial<7>, %vj: spatial<6>) = [%i, %j] {
        %b = memref.load %B[%vj, %vi] : memref<6x7xf32>
        memref.store %b, %D[%vi, %vj] : memref<7x6xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.reverse_compute_at %c, %i
}

// -----

// Symbolic extents.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.for %[[K:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I0]] * 4 + %[[I1]], %[[J]], %[[K]]] where [%[[I0]] * 4 + %[[I1]]] < [%[[M]]] {
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I0]] * 4 + %[[AX0]], %[[AX1]]] where [%[[I0]] * 4 + %[[AX0]]] < [%[[M]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[AX0]]] {
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
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.reverse_compute_at %c, %i0
}

// -----

// Blocks of the same names in two functions: only the named ones change.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK: {{^}}    tir.for %[[I]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
// CHECK-LABEL: func.func @g(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[AX0]]] {
// PASS-NOT: tir.block
// PASS: func.return
// PASS-LABEL: func.func @g(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS: {{^}}    tir.for %[[I]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 12 {
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
func.func @g(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
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
  %b = sched.get_block "B" in @g : block
  %c = sched.get_block "C" in @g : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.reverse_compute_at %c, %j
}

// -----

// A tile longer than the dimension: what an iteration has of it, or nothing, and no element twice.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 1 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 8 {
// CHECK: {{^}}        tir.for %[[AX0:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.for %[[AX1:\w+]] in 1 {
// CHECK-NEXT: {{^}}            tir.block "C" iters(%[[VI:\w+]]: spatial<3>, %[[VJ:\w+]]: spatial<1>) = [%[[I1]] * 4 + %[[AX0]], 0] where [%[[I1]] * 4 + %[[AX0]]] < [3] {
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 3 {
// PASS: {{^}}      tir.block "C" iters(%[[VI:\w+]]: spatial<3>, %[[VJ:\w+]]: spatial<1>) = [%[[I]], 0] {
// PASS: func.return
func.func @f(%X: memref<3x1xf32>, %D: memref<3x1xf32>) {
  %zero = arith.constant 0.0 : f32
  %Y = memref.alloc() : memref<3x1xf32>
  tir.for %i in 3 {
    tir.for %j in 1 {
      tir.block "B" iters(%vi: spatial<3>, %vj: spatial<1>) = [%i, %j] {
        %x = memref.load %X[%vi, %vj] : memref<3x1xf32>
        memref.store %x, %Y[%vi, %vj] : memref<3x1xf32>
      }
    }
  }
  tir.for %i in 3 {
    tir.for %j in 1 {
      tir.block "C" iters(%vi: spatial<3>, %vj: spatial<1>) = [%i, %j] {
        %y = memref.load %Y[%vi, %vj] : memref<3x1xf32>
        %r = arith.maximumf %y, %zero : f32
        memref.store %r, %D[%vi, %vj] : memref<3x1xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %i0, %i1, %i2 = sched.split %i {factors = [0, 8, 4]} : loop, loop, loop
  sched.reverse_compute_at %c, %i1 {preserve_unit_loops = true}
}

// -----

// Reads through a quotient and a remainder: all values with that part, counted through in their runs.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 8 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 8 {
// CHECK-NEXT: {{^}}          tir.block "C" iters(%[[VI:\w+]]: spatial<24>, %[[VJ:\w+]]: spatial<8>) = [%[[I0]] * 4 + %[[AX0]] floordiv 4 * 12 + %[[AX0]] mod 4, %[[AX1]]] {
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS: {{^}}      tir.for %[[AX0:\w+]] in 2 {
// PASS-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 8 {
// PASS-NEXT: {{^}}          tir.block "C" iters(%[[VI:\w+]]: spatial<24>, %[[VJ:\w+]]: spatial<8>) = [%[[I]] + %[[AX0]] * 12, %[[AX1]]] {
// PASS: func.return
func.func @f(%X: memref<12x4xf32>, %D: memref<24x8xf32>) {
  %Y = memref.alloc() : memref<12x4xf32>
  tir.for %i in 12 {
    tir.for %j in 4 {
      tir.block "B" iters(%vi: spatial<12>, %vj: spatial<4>) = [%i, %j] {
        %x = memref.load %X[%vi, %vj] : memref<12x4xf32>
        %y = arith.mulf %x, %x : f32
        memref.store %y, %Y[%vi, %vj] : memref<12x4xf32>
      }
    }
  }
  tir.for %i in 24 {
    tir.for %j in 8 {
      tir.block "C" iters(%vi: spatial<24>, %vj: spatial<8>) = [%i, %j] {
        %r = affine.apply affine_map<(d0) -> (d0 mod 12)>(%vi)
        %q = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%vj)
        %y = memref.load %Y[%r, %q] : memref<12x4xf32>
        memref.store %y, %D[%vi, %vj] : memref<24x8xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %i0, %i1 = sched.split %i {factors = [3, 4]} : loop, loop
  sched.reverse_compute_at %c, %i0
}
