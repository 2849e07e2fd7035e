// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-split{func=f block=B loop=0 factors=0,4}' | filecheck %s --strict-whitespace --check-prefix=PASS
// split: loops by steps and by the pass; guards where factors do not divide.

// Dividing and not dividing factors.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J0:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
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
  sched.split %i {factors = [0, 4]} : loop, loop
  sched.split %j {factors = [3, 4]} : loop, loop
}

// -----

// A loop that came from a split, split again: the guards of both stay.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[I10:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.for %[[I11:\w+]] in 2 {
// CHECK-NEXT: {{^}}          tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 3 + %[[I10]] * 2 + %[[I11]], %[[J]]] where [%[[I0]] * 3 + %[[I10]] * 2 + %[[I11]], %[[I10]] * 2 + %[[I11]]] < [10, 3] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
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
  %i0, %i1 = sched.split %i {factors = [4, 3]} : loop, loop
  sched.split %i1 {factors = [2, 0]} : loop, loop
}

// -----

// A symbolic extent: the outer one is computed before the nest.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 15) floordiv 16))> (%[[N:\w+]])
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in %[[M:\w+]] {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}        tir.for %[[J1:\w+]] in 8 {
// CHECK-NEXT: {{^}}          tir.for %[[J2:\w+]] in 2 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I]], %[[J0]] * 16 + %[[J1]] * 2 + %[[J2]]] where [%[[J0]] * 16 + %[[J1]] * 2 + %[[J2]]] < [%[[N]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %{{[0-9]+}} = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[M:\w+]])
// PASS-NEXT: {{^}}    tir.for %[[I0:\w+]] in %{{[0-9]+}} {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[J:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [%[[M]]] {
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
  sched.split %j {factors = [0, 8, 2]} : loop, loop, loop
}

// -----

// A guard that is already there.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 3 + %[[I1]], %[[J]]] where [%[[I0]] * 3 + %[[I1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
  tir.for %i in 10 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] where [%i] < [10] {
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
  sched.split %i {factors = [0, 3]} : loop, loop
}

// -----

// A reduction loop; the init keeps to the first step.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[K0:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.for %[[K1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K0]] * 4 + %[[K1]]] where [%[[K0]] * 4 + %[[K1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 2 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 10 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I0]] * 4 + %[[I1]], %[[K]]] where [%[[I0]] * 4 + %[[I1]]] < [6] {
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
  sched.split %k {factors = [0, 4]} : loop, loop
}

// -----

// Two blocks below the loop: both get the guard.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK: {{^}}        tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// PASS: {{^}}        tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I0]] * 4 + %[[I1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<10xf32>, %C: memref<10xf32>) {
  %T = memref.alloc() : memref<10xf32>
  tir.for %i in 10 {
    tir.block "B" iters(%v: spatial<10>) = [%i] {
      %a = memref.load %A[%v] : memref<10xf32>
      memref.store %a, %T[%v] : memref<10xf32>
    }
    tir.block "C" iters(%v: spatial<10>) = [%i] {
      %t = memref.load %T[%v] : memref<10xf32>
      memref.store %t, %C[%v] : memref<10xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i = sched.get_loops %b : loop
  sched.split %i {factors = [0, 4]} : loop, loop
}

// -----

// Blocks of the same name in two functions: only the named one changes.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
// CHECK-LABEL: func.func @g(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 3 {
// PASS-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// PASS-NEXT: {{^}}        tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// PASS-NOT: tir.block
// PASS: func.return
// PASS-LABEL: func.func @g(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
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
func.func @g(%A: memref<10x12xf32>, %D: memref<10x12xf32>) {
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
  %b = sched.get_block "B" in @g : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.split %i {factors = [0, 4]} : loop, loop
}

// -----

// An inner factor of an extent that is known at run time.
// CHECK-LABEL: func.func @f(
// CHECK: %[[LENGTH:.*]] = affine.apply affine_map<(d0) -> (((d0 + 3) floordiv 4))> (%[[N:\w+]])
// CHECK-NEXT: tir.for %[[I0:\w+]] in 4 {
// CHECK-NEXT: tir.for %[[I1:\w+]] in %[[LENGTH]] {
// CHECK-NEXT: %[[START:.*]] = arith.muli %[[I0]], %[[LENGTH]] : index
// CHECK-NEXT: tir.block "B" iters(%[[V:\w+]]: spatial<%[[N]]>) = [%[[START]] + %[[I1]]] where [%[[START]] + %[[I1]]] < [%[[N]]] {
func.func @f(%C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %C, %c0 : memref<?xf32>
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      memref.store %one, %C[%v] : memref<?xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i = sched.get_loops %b : loop
  sched.split %i {factors = [4, 0]} : loop, loop
}

// -----

// All factors of an extent with an upper bound.
// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[I0:\w+]] in 16 {
// CHECK-NEXT: tir.block "B" iters(%[[V:\w+]]: spatial<%[[N:\w+]]>) = [%[[I0]]] where [%[[I0]]] < [%[[N]]] {
func.func @f(%C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %C, %c0 : memref<?xf32>
  tir.assume [%n] <= [16]
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      memref.store %one, %C[%v] : memref<?xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i = sched.get_loops %b : loop
  sched.split %i {factors = [16]} : loop
}
