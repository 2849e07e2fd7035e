// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-reverse-compute-inline{func=f block=C}' | filecheck %s --strict-whitespace --check-prefix=PASS
// reverse_compute_inline: a consumer becomes part of its producer.

// Into a producer whose loops were tiled; guards stay.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %i0 in 3 {
// CHECK-NEXT: {{^}}      tir.for %j0 in 3 {
// CHECK-NEXT: {{^}}        tir.for %i1 in 4 {
// CHECK-NEXT: {{^}}          tir.for %j1 in 4 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i0 * 4 + %i1, %j0 * 4 + %j1] where [%i0 * 4 + %i1] < [10] {
// CHECK-NEXT: {{^}}              %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// CHECK: {{^}}              memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %i in 10 {
// PASS-NEXT: {{^}}      tir.for %j in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// PASS-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// PASS: {{^}}          memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
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
// CHECK: {{^}}    tir.for %i in 6 {
// CHECK-NEXT: {{^}}      tir.for %j in 7 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<6>, %vj: spatial<7>) = [%i, %j] {
// CHECK-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<6x7xf32>
// CHECK: {{^}}          memref.store %b, %D[%vj, %vi] : memref<7x6xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %i in 6 {
// PASS-NEXT: {{^}}      tir.for %j in 7 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<6>, %vj: spatial<7>) = [%i, %j] {
// PASS-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<6x7xf32>
// PASS: {{^}}          memref.store %b, %D[%vj, %vi] : memref<7x6xf32>
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
// CHECK-NEXT: {{^}}    tir.for %i in 10 {
// CHECK-NEXT: {{^}}      tir.for %j in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// CHECK-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %b, %B[%vi, %vj] : memref<10x12xf32>
// CHECK: {{^}}    tir.for %i in 10 {
// CHECK-NEXT: {{^}}      tir.for %j in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// CHECK-NEXT: {{^}}          %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
// CHECK-LABEL: func.func @g(
// CHECK: {{^}}    tir.for %i in 10 {
// CHECK-NEXT: {{^}}      tir.for %j in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// CHECK-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %i in 10 {
// PASS-NEXT: {{^}}      tir.for %j in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// PASS-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// PASS: {{^}}          memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
// PASS-NOT: tir.block
// PASS: func.return
// PASS-LABEL: func.func @g(
// PASS: {{^}}    %B = memref.alloc() : memref<10x12xf32>
// PASS-NEXT: {{^}}    tir.for %i in 10 {
// PASS-NEXT: {{^}}      tir.for %j in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// PASS-NEXT: {{^}}          %a = memref.load %A[%vi, %vj] : memref<10x12xf32>
// PASS: {{^}}          memref.store %b, %B[%vi, %vj] : memref<10x12xf32>
// PASS: {{^}}    tir.for %i in 10 {
// PASS-NEXT: {{^}}      tir.for %j in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%vi: spatial<10>, %vj: spatial<12>) = [%i, %j] {
// PASS-NEXT: {{^}}          %b = memref.load %B[%vi, %vj] : memref<10x12xf32>
// PASS: {{^}}          memref.store %d, %D[%vi, %vj] : memref<10x12xf32>
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
// CHECK: tir.block "B" iters(%v: spatial<12>, %w: spatial<3>) = [%i, %j] {
// CHECK-NEXT: %a = memref.load %A[%v, %w]
// CHECK-NEXT: %0 = affine.apply affine_map<(d0, d1) -> ((((d0 * 3) + d1) + -6))> (%v, %w)
// CHECK: arith.cmpi sge, %0, %1 : index
// CHECK-NEXT: %3 = affine.apply affine_map<(d0, d1) -> ((((d0 * -3) + (d1 * -1)) + 20))> (%v, %w)
// CHECK: arith.cmpi sge, %3, %4 : index
// CHECK: scf.if
// CHECK-NEXT: %7 = affine.apply affine_map<(d0, d1) -> ((((d0 * 3) + d1) + -6))> (%v, %w)
// CHECK-NEXT: memref.store %a, %C[%7]
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
