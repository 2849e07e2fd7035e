// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-reverse-compute-inline{func=f block=C}' | filecheck %s --strict-whitespace --check-prefix=PASS
// reverse_compute_inline: a consumer becomes part of its producer.

// Into a producer whose loops were tiled; guards stay.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[J0:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}          tir.for %[[J1:\w+]] in 4 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0]] * 4 + %[[I1]], %[[J0]] * 4 + %[[J1]]] where [%[[I0]] * 4 + %[[I1]]] < [10] {
// CHECK-NEXT: {{^}}              %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}              memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
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
  sched.tile %i, %j {factors = [4, 4]} : loop, loop, loop, loop
  sched.reverse_compute_inline %c
}

// -----

// Dimensions in another order.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 7 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ:\w+]]: spatial<7>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<6x7xf32>
// CHECK: {{^}}          memref.store %[[B:\w+]], %D[%[[VJ]], %[[VI]]] : memref<7x6xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 7 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VJ:\w+]]: spatial<7>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<6x7xf32>
// PASS: {{^}}          memref.store %[[B:\w+]], %D[%[[VJ]], %[[VI]]] : memref<7x6xf32>
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
  %c = sched.get_block "C" in @f : block
  sched.reverse_compute_inline %c
}

// -----

// Blocks of the same names in two functions.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %B = memref.alloc() : memref<10x12xf32>
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}    tir.for %[[I]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[B]] = memref.load %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
// CHECK-LABEL: func.func @g(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS-NOT: tir.block
// PASS: func.return
// PASS-LABEL: func.func @g(
// PASS: {{^}}    %B = memref.alloc() : memref<10x12xf32>
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}    tir.for %[[I]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[B]] = memref.load %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
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
  %c = sched.get_block "C" in @g : block
  sched.reverse_compute_inline %c
}

// -----

// Rows 2 to 6 are read, in another shape: a condition keeps the other instances from storing.
// CHECK-LABEL: func.func @f(
// CHECK: tir.block "B" iters(%[[V:\w+]]: spatial<12>, %[[W:\w+]]: spatial<3>) = [%[[I:\w+]], %[[J:\w+]]] {
// CHECK-NEXT: %[[A:\w+]] = memref.load %A[%[[V]], %[[W]]]
// CHECK-NEXT: %[[V0:\w+]] = affine.apply affine_map<(d0, d1) -> ((((d0 * 3) + d1) + -6))> (%[[V]], %[[W]])
// CHECK: arith.cmpi sge, %[[V0]], %[[V1:\w+]] : index
// CHECK-NEXT: %[[V3:\w+]] = affine.apply affine_map<(d0, d1) -> ((((d0 * -3) + (d1 * -1)) + 20))> (%[[V]], %[[W]])
// CHECK: arith.cmpi sge, %[[V3]], %[[V4:\w+]] : index
// CHECK: scf.if
// CHECK-NEXT: %[[V7:\w+]] = affine.apply affine_map<(d0, d1) -> ((((d0 * 3) + d1) + -6))> (%[[V]], %[[W]])
// CHECK-NEXT: memref.store %[[A]], %C[%[[V7]]]
// CHECK-NOT: tir.block
func.func @f(%A: memref<12x3xf32>, %C: memref<15xf32>) {
  %B = memref.alloc() : memref<12x3xf32>
  tir.for %i in 12 { tir.for %j in 3 {
    tir.block "B" iters(%v: spatial<12>, %w: spatial<3>) = [%i, %j] {
      %a = memref.load %A[%v, %w] : memref<12x3xf32>
      memref.store %a, %B[%v, %w] : memref<12x3xf32>
    } } }
  tir.for %i in 15 {
    tir.block "C" iters(%v: spatial<15>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 floordiv 3 + 2)>(%v)
      %y = affine.apply affine_map<(d0) -> (d0 mod 3)>(%v)
      %b = memref.load %B[%x, %y] : memref<12x3xf32>
      memref.store %b, %C[%v] : memref<15xf32>
    } }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  sched.reverse_compute_inline %c
}
