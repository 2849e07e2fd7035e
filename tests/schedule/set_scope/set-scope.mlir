// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-set-scope{func=f block=B index=0 scope=shared}' | filecheck %s --strict-whitespace --check-prefix=PASS
// set_scope: the memory scope of a temporary.

// A temporary of a chain.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %B = memref.alloc() : memref<10x12xf32, "local">
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32, "local">
// CHECK: {{^}}    tir.for %[[I]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[B]] = memref.load %B[%[[VI]], %[[VJ]]] : memref<10x12xf32, "local">
// CHECK: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %B = memref.alloc() : memref<10x12xf32, "shared">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32, "shared">
// PASS: {{^}}    tir.for %[[I]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[B]] = memref.load %B[%[[VI]], %[[VJ]]] : memref<10x12xf32, "shared">
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
  sched.set_scope %b {index = 0, scope = "local"}
}

// -----

// A symbolic extent, and a tag.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %Y = memref.alloc(%[[M:\w+]]) : memref<?x10xf32, "wmma.accumulator">
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK-NEXT: {{^}}            tir.init {
// CHECK-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "wmma.accumulator">
// CHECK: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<?x?xf32>
// CHECK-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}            %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "wmma.accumulator">
// CHECK: {{^}}            memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "wmma.accumulator">
// CHECK: {{^}}    tir.for %[[I]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "wmma.accumulator">
// CHECK: {{^}}          memref.store %[[R:\w+]], %D[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %Y = memref.alloc(%[[M:\w+]]) : memref<?x10xf32, "shared">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// PASS-NEXT: {{^}}            tir.init {
// PASS-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "shared">
// PASS: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<?x?xf32>
// PASS-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}            %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "shared">
// PASS: {{^}}            memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "shared">
// PASS: {{^}}    tir.for %[[I]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32, "shared">
// PASS: {{^}}          memref.store %[[R:\w+]], %D[%[[VI]], %[[VJ]]] : memref<?x10xf32>
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
  sched.set_scope %b {index = 0, scope = "wmma.accumulator"}
}
