// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-fuse{func=f block=B loops=0,1}' | filecheck %s --strict-whitespace --check-prefix=PASS
// fuse: quotients and remainders of the new loop.

// Two loops of a nest of two.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I_J_FUSED:\w+]] in 120 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I_J_FUSED]] floordiv 12, %[[I_J_FUSED]] mod 12] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I_J_FUSED:\w+]] in 120 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I_J_FUSED]] floordiv 12, %[[I_J_FUSED]] mod 12] {
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
  %f = sched.fuse %i, %j : loop
}

// -----

// Three loops, the reduction among them.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I_J_K_FUSED:\w+]] in 1080 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I_J_K_FUSED]] floordiv 90, %[[I_J_K_FUSED]] floordiv 9 mod 10, %[[I_J_K_FUSED]] mod 9] {
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I_J_FUSED:\w+]] in 120 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I_J_FUSED]] floordiv 10, %[[I_J_FUSED]] mod 10, %[[K]]] {
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
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
  %f = sched.fuse %i, %j, %k : loop
}

// -----

// Split and fused again: the bindings are the old ones.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0_I1_FUSED:\w+]] in 8 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<8>, %[[VJ:\w+]]: spatial<12>) = [%[[I0_I1_FUSED]], %[[J]]] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I_J_FUSED:\w+]] in 96 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<8>, %[[VJ:\w+]]: spatial<12>) = [%[[I_J_FUSED]] floordiv 12, %[[I_J_FUSED]] mod 12] {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<8x12xf32>, %D: memref<8x12xf32>) {
  tir.for %i in 8 {
    tir.for %j in 12 {
      tir.block "B" iters(%vi: spatial<8>, %vj: spatial<12>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<8x12xf32>
        memref.store %a, %D[%vi, %vj] : memref<8x12xf32>
      }
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %f = sched.fuse %i0, %i1 : loop
}

// -----

// The guard of an imperfect split follows.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0_I1_J_FUSED:\w+]] in 144 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I0_I1_J_FUSED]] floordiv 12, %[[I0_I1_J_FUSED]] mod 12] where [%[[I0_I1_J_FUSED]] floordiv 12] < [10] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I_J_FUSED:\w+]] in 120 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I_J_FUSED]] floordiv 12, %[[I_J_FUSED]] mod 12] {
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
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %f = sched.fuse %i0, %i1, %j : loop
}

// -----

// Symbolic extents: products, and quotients in the body.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %{{[0-9]+}} = arith.muli %[[M:\w+]], %[[N:\w+]] : index
// CHECK-NEXT: {{^}}    tir.for %[[I_J_FUSED:\w+]] in %{{[0-9]+}} {
// CHECK-NEXT: {{^}}      %{{[0-9]+}} = arith.remsi %[[I_J_FUSED]], %[[N]] : index
// CHECK-NEXT: {{^}}      %{{[0-9]+}} = arith.divsi %[[I_J_FUSED]], %[[N]] : index
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%{{[0-9]+}}, %{{[0-9]+}}] {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %{{[0-9]+}} = arith.muli %[[M:\w+]], %[[N:\w+]] : index
// PASS-NEXT: {{^}}    tir.for %[[I_J_FUSED:\w+]] in %{{[0-9]+}} {
// PASS-NEXT: {{^}}      %{{[0-9]+}} = arith.remsi %[[I_J_FUSED]], %[[N]] : index
// PASS-NEXT: {{^}}      %{{[0-9]+}} = arith.divsi %[[I_J_FUSED]], %[[N]] : index
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<%[[N]]>) = [%{{[0-9]+}}, %{{[0-9]+}}] {
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
  %f = sched.fuse %i, %j : loop
}
