// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-cache-write{func=f block=B index=0 scope=local}' | filecheck %s --strict-whitespace --check-prefix=PASS
// cache_write: a block computes into a copy in another memory scope.

// The copy of a tile goes out after the tile.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %Y = memref.alloc() : memref<12x10xf32>
// CHECK-NEXT: {{^}}    %Y_local = memref.alloc() : memref<12x10xf32, "local">
// CHECK-NEXT: {{^}}    tir.for %[[I0:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1]], %[[J]], %[[K]]] {
// CHECK-NEXT: {{^}}              tir.init {
// CHECK-NEXT: {{^}}                memref.store %[[ZERO:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// CHECK: {{^}}              %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<12x9xf32>
// CHECK-NEXT: {{^}}              %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<9x10xf32>
// CHECK: {{^}}              %[[Y:\w+]] = memref.load %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// CHECK: {{^}}              memref.store %[[S:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 10 {
// CHECK-NEXT: {{^}}          tir.block "Y_local" iters(%[[V0:\w+]]: spatial<12>, %[[V1:\w+]]: spatial<10>) = [%[[I0]] * 4 + %[[AX0]], %[[AX1]]] {
// CHECK-NEXT: {{^}}            %{{[0-9]+}} = memref.load %Y_local[%[[V0]], %[[V1]]] : memref<12x10xf32, "local">
// CHECK-NEXT: {{^}}            memref.store %{{[0-9]+}}, %Y[%[[V0]], %[[V1]]] : memref<12x10xf32>
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// CHECK: {{^}}          memref.store %[[R:\w+]], %D[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %Y = memref.alloc() : memref<12x10xf32>
// PASS-NEXT: {{^}}    %Y_local = memref.alloc() : memref<12x10xf32, "local">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J]], %[[K]]] {
// PASS-NEXT: {{^}}            tir.init {
// PASS-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// PASS: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<12x9xf32>
// PASS-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<9x10xf32>
// PASS: {{^}}            %[[Y:\w+]] = memref.load %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// PASS: {{^}}            memref.store %[[S:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
// PASS: {{^}}    tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "Y_local" iters(%[[V0:\w+]]: spatial<12>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[AX1]]] {
// PASS-NEXT: {{^}}          %{{[0-9]+}} = memref.load %Y_local[%[[V0]], %[[V1]]] : memref<12x10xf32, "local">
// PASS-NEXT: {{^}}          memref.store %{{[0-9]+}}, %Y[%[[V0]], %[[V1]]] : memref<12x10xf32>
// PASS: {{^}}    tir.for %[[I]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// PASS: {{^}}          memref.store %[[R:\w+]], %D[%[[VI]], %[[VJ]]] : memref<12x10xf32>
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
  %copy = sched.cache_write %b {index = 0, scope = "local"} : block
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.reverse_compute_at %copy, %i0
}

// -----

// A reduction straight to a parameter.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %S_shared = memref.alloc() : memref<6xf32, "shared">
// CHECK: {{^}}    tir.for %[[I:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NEXT: {{^}}            memref.store %[[ZERO:\w+]], %S_shared[%[[VI]]] : memref<6xf32, "shared">
// CHECK: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<6x10xf32>
// CHECK-NEXT: {{^}}          %[[S:\w+]] = memref.load %S_shared[%[[VI]]] : memref<6xf32, "shared">
// CHECK: {{^}}          memref.store %[[T:\w+]], %S_shared[%[[VI]]] : memref<6xf32, "shared">
// CHECK: {{^}}    tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}      tir.block "S_shared" iters(%[[V0:\w+]]: spatial<6>) = [%[[AX0]]] {
// CHECK-NEXT: {{^}}        %{{[0-9]+}} = memref.load %S_shared[%[[V0]]] : memref<6xf32, "shared">
// CHECK-NEXT: {{^}}        memref.store %{{[0-9]+}}, %S[%[[V0]]] : memref<6xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %S_local = memref.alloc() : memref<6xf32, "local">
// PASS: {{^}}    tir.for %[[I:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<6>, %[[VK:\w+]]: reduce<10>) = [%[[I]], %[[K]]] {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NEXT: {{^}}            memref.store %[[ZERO:\w+]], %S_local[%[[VI]]] : memref<6xf32, "local">
// PASS: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<6x10xf32>
// PASS-NEXT: {{^}}          %[[S:\w+]] = memref.load %S_local[%[[VI]]] : memref<6xf32, "local">
// PASS: {{^}}          memref.store %[[T:\w+]], %S_local[%[[VI]]] : memref<6xf32, "local">
// PASS: {{^}}    tir.for %[[AX0:\w+]] in 6 {
// PASS-NEXT: {{^}}      tir.block "S_local" iters(%[[V0:\w+]]: spatial<6>) = [%[[AX0]]] {
// PASS-NEXT: {{^}}        %{{[0-9]+}} = memref.load %S_local[%[[V0]]] : memref<6xf32, "local">
// PASS-NEXT: {{^}}        memref.store %{{[0-9]+}}, %S[%[[V0]]] : memref<6xf32>
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
  %copy = sched.cache_write %b {index = 0, scope = "shared"} : block
}

// -----

// Symbolic extents.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %Y = memref.alloc(%[[M:\w+]]) : memref<?x10xf32>
// CHECK-NEXT: {{^}}    %Y_global_acc = memref.alloc(%[[M]]) : memref<?x10xf32, "global.acc">
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK-NEXT: {{^}}            tir.init {
// CHECK-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y_global_acc[%[[VI]], %[[VJ]]] : memref<?x10xf32, "global.acc">
// CHECK: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<?x?xf32>
// CHECK-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}            %[[Y:\w+]] = memref.load %Y_global_acc[%[[VI]], %[[VJ]]] : memref<?x10xf32, "global.acc">
// CHECK: {{^}}            memref.store %[[S:\w+]], %Y_global_acc[%[[VI]], %[[VJ]]] : memref<?x10xf32, "global.acc">
// CHECK: {{^}}    tir.for %[[AX0:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "Y_global_acc" iters(%[[V0:\w+]]: spatial<%[[M]]>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[AX1]]] {
// CHECK-NEXT: {{^}}          %{{[0-9]+}} = memref.load %Y_global_acc[%[[V0]], %[[V1]]] : memref<?x10xf32, "global.acc">
// CHECK-NEXT: {{^}}          memref.store %{{[0-9]+}}, %Y[%[[V0]], %[[V1]]] : memref<?x10xf32>
// CHECK: {{^}}    tir.for %[[I]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 10 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}          memref.store %[[R:\w+]], %D[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %Y = memref.alloc(%[[M:\w+]]) : memref<?x10xf32>
// PASS-NEXT: {{^}}    %Y_local = memref.alloc(%[[M]]) : memref<?x10xf32, "local">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N:\w+]] {
// PASS-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// PASS-NEXT: {{^}}            tir.init {
// PASS-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<?x10xf32, "local">
// PASS: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<?x?xf32>
// PASS-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}            %[[Y:\w+]] = memref.load %Y_local[%[[VI]], %[[VJ]]] : memref<?x10xf32, "local">
// PASS: {{^}}            memref.store %[[S:\w+]], %Y_local[%[[VI]], %[[VJ]]] : memref<?x10xf32, "local">
// PASS: {{^}}    tir.for %[[AX0:\w+]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "Y_local" iters(%[[V0:\w+]]: spatial<%[[M]]>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[AX1]]] {
// PASS-NEXT: {{^}}          %{{[0-9]+}} = memref.load %Y_local[%[[V0]], %[[V1]]] : memref<?x10xf32, "local">
// PASS-NEXT: {{^}}          memref.store %{{[0-9]+}}, %Y[%[[V0]], %[[V1]]] : memref<?x10xf32>
// PASS: {{^}}    tir.for %[[I]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[Y]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
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
  %copy = sched.cache_write %b {index = 0, scope = "global.acc"} : block
}

// -----

// Writer and reader share a loop: an iteration copies its row, before it is read.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 4 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 6 {
// CHECK: memref.store %[[A:\w+]], %[[C_LOCAL:\w+]][%[[V:\w+]], %[[W:\w+]]]
// CHECK: {{^}}      tir.for %[[AX0:\w+]] in 6 {
// CHECK-NEXT: {{^}}        tir.block "C_local" iters(%[[V0:\w+]]: spatial<4>, %[[V1:\w+]]: spatial<6>) = [%[[I]], %[[AX0]]] {
// CHECK: {{^}}      tir.for %[[J]]{{.*}} in 6 {
// CHECK-NEXT: {{^}}        tir.block "D"
// CHECK: memref.load %C[
func.func @f(%A: memref<4x6xf32>, %D: memref<4x6xf32>) {
  %C = memref.alloc() : memref<4x6xf32>
  tir.for %i in 4 {
    tir.for %j in 6 {
      tir.block "B" iters(%v: spatial<4>, %w: spatial<6>) = [%i, %j] {
        %a = memref.load %A[%v, %w] : memref<4x6xf32>
        memref.store %a, %C[%v, %w] : memref<4x6xf32>
      } }
    tir.for %j in 6 {
      tir.block "D" iters(%v: spatial<4>, %w: spatial<6>) = [%i, %j] {
        %a = memref.load %C[%v, %w] : memref<4x6xf32>
        memref.store %a, %D[%v, %w] : memref<4x6xf32>
      } }
  }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "B" in @f : block
  sched.cache_write %c {index = 0, scope = "local"} : block
}
