// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-decompose-reduction{block=B loop=1}' | filecheck %s --strict-whitespace --check-prefix=PASS
// decompose_reduction: the init as a block of its own before a loop.

// Before the reduction loop, and before all loops.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I_INIT:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.block "B_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[I_INIT]]] {
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "B_update" iters(%[[VI]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.block "B_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[I]]] {
// PASS: {{^}}      tir.for %[[K:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B_update" iters(%[[VI]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<6x10xf32>, %S: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 {
    tir.for %k in 10 {
      tir.block "B" iters(%vi: spatial<6>, %vk: reduce<10>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<6xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<6x10xf32>
        %s = memref.load %S[%vi] : memref<6xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<6xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %k = sched.get_loops %b : loop, loop
  %init = sched.decompose_reduction %b, %i : block
}

// -----

// A guard over the elements goes with the init, one over the steps does not.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 2 {
// CHECK-NEXT: {{^}}      tir.for %[[I1_INIT:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "B_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[I0]] * 4 + %[[I1_INIT]]] where [%[[I0]] * 4 + %[[I1_INIT]]] < [6] {
// CHECK: {{^}}      tir.for %[[K0:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.for %[[K1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}            tir.block "B_update" iters(%[[VI]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I0]] * 4 + %[[I1]], %[[K0]] * 4 + %[[K1]]] where [%[[I0]] * 4 + %[[I1]], %[[K0]] * 4 + %[[K1]]] < [6, 10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.block "B_init" iters(%[[VI:\w+]]: spatial<6>) = [%[[I]]] {
// PASS: {{^}}      tir.for %[[K:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B_update" iters(%[[VI]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<6x10xf32>, %S: memref<6xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 {
    tir.for %k in 10 {
      tir.block "B" iters(%vi: spatial<6>, %vk: reduce<10>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<6xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<6x10xf32>
        %s = memref.load %S[%vi] : memref<6xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<6xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %k = sched.get_loops %b : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %k0, %k1 = sched.split %k {factors = [0, 4]} : loop, loop
  sched.reorder %i0, %k0, %k1, %i1
  %init = sched.decompose_reduction %b, %k0 : block
}

// -----

// The inner loops of a product.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[J1_INIT:\w+]] in 5 {
// CHECK-NEXT: {{^}}          tir.block "B_init" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>) = [%[[I]], %[[J0]] * 5 + %[[J1_INIT]]] {
// CHECK: {{^}}        tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 5 {
// CHECK-NEXT: {{^}}            tir.block "B_update" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J0]] * 5 + %[[J1]], %[[K]]] {
// CHECK: {{^}}    tir.for %[[I]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J_INIT:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B_init" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>) = [%[[I]], %[[J_INIT]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B_update" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
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
  %j0, %j1 = sched.split %j {factors = [0, 5]} : loop, loop
  sched.reorder %j0, %k, %j1
  %init = sched.decompose_reduction %b, %k : block
}

// -----

// Symbolic extents.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[I0_INIT:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      tir.for %[[I1_INIT:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J_INIT:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.block "B_init" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>) = [%[[I0_INIT]] * 4 + %[[I1_INIT]], %[[J_INIT]]] where [%[[I0_INIT]] * 4 + %[[I1_INIT]]] < [%[[M]]] {
// CHECK: {{^}}    tir.for %[[K:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}      tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}            tir.block "B_update" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I0]] * 4 + %[[I1]], %[[J]], %[[K]]] where [%[[I0]] * 4 + %[[I1]]] < [%[[M]]] {
// CHECK: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] {
// PASS-NEXT: {{^}}      tir.for %[[J_INIT:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B_init" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>) = [%[[I]], %[[J_INIT]]] {
// PASS: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B_update" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// PASS: {{^}}    tir.for %[[I]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
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
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.reorder %k, %i0, %i1, %j
  %init = sched.decompose_reduction %b, %k : block
}

// -----

// The loops of the init run as those of the block: on the same threads, as lanes, unrolled; not the reduction's.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I_INIT:\w+]] in 6 thread_binding<"blockIdx.x"> {
// CHECK-NEXT: {{^}}      tir.for %[[J_INIT:\w+]] in 4 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: {{^}}        tir.for %[[U_INIT:\w+]] in 2 unrolled {
// CHECK-NEXT: {{^}}          tir.for %[[V_INIT:\w+]] in 4 vectorized {
// CHECK-NEXT: {{^}}            tir.block "B_init"
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 thread_binding<"blockIdx.x"> {
// CHECK: tir.block "B_update"
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 thread_binding<"blockIdx.x"> {
// PASS-NEXT: {{^}}      tir.for %[[J_INIT:\w+]] in 4 thread_binding<"threadIdx.x"> {
// PASS-NEXT: {{^}}        tir.for %[[U_INIT:\w+]] in 2 unrolled {
// PASS: {{^}}      tir.for %[[J:\w+]] in 4 thread_binding<"threadIdx.x"> {
func.func @f(%A: memref<6x4x2x4x5xf32>, %S: memref<6x4x2x4xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 6 thread_binding<"blockIdx.x"> {
    tir.for %j in 4 thread_binding<"threadIdx.x"> {
      tir.for %k in 5 {
        tir.for %u in 2 unrolled {
          tir.for %v in 4 vectorized {
            tir.block "B" iters(%vi: spatial<6>, %vj: spatial<4>, %vu: spatial<2>, %vv: spatial<4>, %vk: reduce<5>) = [%i, %j, %u, %v, %k] {
              tir.init {
                memref.store %zero, %S[%vi, %vj, %vu, %vv] : memref<6x4x2x4xf32>
              }
              %a = memref.load %A[%vi, %vj, %vu, %vv, %vk] : memref<6x4x2x4x5xf32>
              %s = memref.load %S[%vi, %vj, %vu, %vv] : memref<6x4x2x4xf32>
              %t = arith.addf %s, %a : f32
              memref.store %t, %S[%vi, %vj, %vu, %vv] : memref<6x4x2x4xf32>
            }
          }
        }
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j, %k, %u, %v = sched.get_loops %b : loop, loop, loop, loop, loop
  %init = sched.decompose_reduction %b, %i : block
}

// -----

// A loop that runs elements and steps starts elements several times: the loops of the init stay serial.
// CHECK-LABEL: func.func @g(
// CHECK: {{^}}      tir.for %[[F_INIT:\w+]] in 15 {
// CHECK: tir.block "B_update"
//
// PASS-LABEL: func.func @g(
// PASS: tir.block "B_update"
func.func @g(%A: memref<2x5x3xf32>, %S: memref<2x5xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 2 {
    tir.for %f in 15 unrolled {
      tir.block "B" iters(%vi: spatial<2>, %vj: spatial<5>, %vk: reduce<3>) = [%i, %f floordiv 3, %f mod 3] {
        tir.init {
          memref.store %zero, %S[%vi, %vj] : memref<2x5xf32>
        }
        %a = memref.load %A[%vi, %vj, %vk] : memref<2x5x3xf32>
        %s = memref.load %S[%vi, %vj] : memref<2x5xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi, %vj] : memref<2x5xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @g : block
  %i, %f = sched.get_loops %b : loop, loop
  %init = sched.decompose_reduction %b, %f : block
}
