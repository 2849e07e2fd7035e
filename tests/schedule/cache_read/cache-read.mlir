// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-cache-read{func=f block=C index=0 scope=local}' | filecheck %s --strict-whitespace --check-prefix=PASS
// cache_read: blocks read a copy in another memory scope.

// A temporary: the copy follows its writer. In the schedule, a parameter: the copy comes first.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %A_shared = memref.alloc() : memref<10x12xf32, "shared">
// CHECK-NEXT: {{^}}    %B = memref.alloc() : memref<10x12xf32>
// CHECK-NEXT: {{^}}    tir.for %[[AX0:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "A_shared" iters(%[[V0:\w+]]: spatial<10>, %[[V1:\w+]]: spatial<12>) = [%[[AX0]], %[[AX1]]] {
// CHECK-NEXT: {{^}}          %{{[0-9]+}} = memref.load %A[%[[V0]], %[[V1]]] : memref<10x12xf32>
// CHECK-NEXT: {{^}}          memref.store %{{[0-9]+}}, %A_shared[%[[V0]], %[[V1]]] : memref<10x12xf32, "shared">
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A_shared[%[[VI]], %[[VJ]]] : memref<10x12xf32, "shared">
// CHECK: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}    tir.for %[[I]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[B]] = memref.load %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %B = memref.alloc() : memref<10x12xf32>
// PASS-NEXT: {{^}}    %B_local = memref.alloc() : memref<10x12xf32, "local">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}          memref.store %[[B:\w+]], %B[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// PASS: {{^}}    tir.for %[[AX0:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "B_local" iters(%[[V0:\w+]]: spatial<10>, %[[V1:\w+]]: spatial<12>) = [%[[AX0]], %[[AX1]]] {
// PASS-NEXT: {{^}}          %{{[0-9]+}} = memref.load %B[%[[V0]], %[[V1]]] : memref<10x12xf32>
// PASS-NEXT: {{^}}          memref.store %{{[0-9]+}}, %B_local[%[[V0]], %[[V1]]] : memref<10x12xf32, "local">
// PASS: {{^}}    tir.for %[[I]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<10>, %[[VJ]]: spatial<12>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[B]] = memref.load %B_local[%[[VI]], %[[VJ]]] : memref<10x12xf32, "local">
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
  %copy = sched.cache_read %b {index = 0, scope = "shared"} : block
}

// -----

// The second operand of a product, moved under a loop: a tile of the copy.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %W_global_W_packed = memref.alloc() : memref<9x10xf32, "global.W_packed">
// CHECK: {{^}}    %Y = memref.alloc() : memref<12x10xf32>
// CHECK-NEXT: {{^}}    tir.for %[[J0:\w+]] in 2 {
// CHECK-NEXT: {{^}}      tir.for %[[AX0:\w+]] in 9 {
// CHECK-NEXT: {{^}}        tir.for %[[AX1:\w+]] in 5 {
// CHECK-NEXT: {{^}}          tir.block "W_global_W_packed" iters(%[[V0:\w+]]: spatial<9>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[J0]] * 5 + %[[AX1]]] {
// CHECK-NEXT: {{^}}            %{{[0-9]+}} = memref.load %W[%[[V0]], %[[V1]]] : memref<9x10xf32>
// CHECK-NEXT: {{^}}            memref.store %{{[0-9]+}}, %W_global_W_packed[%[[V0]], %[[V1]]] : memref<9x10xf32, "global.W_packed">
// CHECK: {{^}}      tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.for %[[J1:\w+]] in 5 {
// CHECK-NEXT: {{^}}          tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}            tir.block "B" iters(%[[VI:\w+]]: spatial<12>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[J0]] * 5 + %[[J1]], %[[K]]] {
// CHECK-NEXT: {{^}}              tir.init {
// CHECK-NEXT: {{^}}                memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// CHECK: {{^}}              %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<12x9xf32>
// CHECK-NEXT: {{^}}              %[[W:\w+]] = memref.load %W_global_W_packed[%[[VK]], %[[VJ]]] : memref<9x10xf32, "global.W_packed">
// CHECK: {{^}}              %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// CHECK: {{^}}              memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// CHECK: {{^}}    tir.for %[[I]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
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
// PASS-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// PASS: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<12x9xf32>
// PASS-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<9x10xf32>
// PASS: {{^}}            %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// PASS: {{^}}            memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<12x10xf32>
// PASS: {{^}}    tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "Y_local" iters(%[[V0:\w+]]: spatial<12>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[AX1]]] {
// PASS-NEXT: {{^}}          %{{[0-9]+}} = memref.load %Y[%[[V0]], %[[V1]]] : memref<12x10xf32>
// PASS-NEXT: {{^}}          memref.store %{{[0-9]+}}, %Y_local[%[[V0]], %[[V1]]] : memref<12x10xf32, "local">
// PASS: {{^}}    tir.for %[[I]] in 12 {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<12>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[Y]] = memref.load %Y_local[%[[VI]], %[[VJ]]] : memref<12x10xf32, "local">
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
  %i, %j, %k = sched.get_loops %b : loop, loop, loop
  %j0, %j1 = sched.split %j {factors = [0, 5]} : loop, loop
  sched.reorder %j0, %i
  %copy = sched.cache_read %b {index = 1, scope = "global.W_packed"} : block
  sched.compute_at %copy, %j0
}

// -----

// Writer and reader in one loop: what an iteration reads.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %T = memref.alloc() : memref<10xf32>
// CHECK-NEXT: {{^}}    %T_local = memref.alloc() : memref<10xf32, "local">
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<10xf32>
// CHECK-NEXT: {{^}}        memref.store %[[A]], %T[%[[V]]] : memref<10xf32>
// CHECK: {{^}}      tir.block "T_local" iters(%[[V0:\w+]]: spatial<10>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %{{[0-9]+}} = memref.load %T[%[[V0]]] : memref<10xf32>
// CHECK-NEXT: {{^}}        memref.store %{{[0-9]+}}, %T_local[%[[V0]]] : memref<10xf32, "local">
// CHECK: {{^}}      tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[T:\w+]] = memref.load %T_local[%[[V]]] : memref<10xf32, "local">
// CHECK-NEXT: {{^}}        memref.store %[[T]], %C[%[[V]]] : memref<10xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %T = memref.alloc() : memref<10xf32>
// PASS-NEXT: {{^}}    %T_local = memref.alloc() : memref<10xf32, "local">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<10>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<10xf32>
// PASS-NEXT: {{^}}        memref.store %[[A]], %T[%[[V]]] : memref<10xf32>
// PASS: {{^}}      tir.block "T_local" iters(%[[V0:\w+]]: spatial<10>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %{{[0-9]+}} = memref.load %T[%[[V0]]] : memref<10xf32>
// PASS-NEXT: {{^}}        memref.store %{{[0-9]+}}, %T_local[%[[V0]]] : memref<10xf32, "local">
// PASS: {{^}}      tir.block "C" iters(%[[V]]: spatial<10>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[T:\w+]] = memref.load %T_local[%[[V]]] : memref<10xf32, "local">
// PASS-NEXT: {{^}}        memref.store %[[T]], %C[%[[V]]] : memref<10xf32>
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
  %c = sched.get_block "C" in @f : block
  %copy = sched.cache_read %c {index = 0, scope = "local"} : block
}

// -----

// All readers of the scope read the copy. Only what they read was written, and is copied.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %B = memref.alloc() : memref<13xf32>
// CHECK-NEXT: {{^}}    %B_local = memref.alloc() : memref<13xf32, "local">
// CHECK-NEXT: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<13>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<12xf32>
// CHECK: {{^}}        memref.store %[[B:\w+]], %B[%[[V]]] : memref<13xf32>
// CHECK: {{^}}    tir.for %[[AX0:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "B_local" iters(%[[V0:\w+]]: spatial<13>) = [%[[AX0]]] {
// CHECK-NEXT: {{^}}        %{{[0-9]+}} = memref.load %B[%[[V0]]] : memref<13xf32>
// CHECK-NEXT: {{^}}        memref.store %{{[0-9]+}}, %B_local[%[[V0]]] : memref<13xf32, "local">
// CHECK: {{^}}    tir.for %[[I]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[B]] = memref.load %B_local[%[[V]]] : memref<13xf32, "local">
// CHECK-NEXT: {{^}}        memref.store %[[B]], %C[%[[V]]] : memref<12xf32>
// CHECK: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[X:\w+]] = affine.apply affine_map<(d0) -> (((d0 * -1) + 11))> (%[[V]])
// CHECK-NEXT: {{^}}        %[[B]] = memref.load %B_local[%[[V]]] : memref<13xf32, "local">
// CHECK-NEXT: {{^}}        memref.store %[[B]], %D[%[[X]]] : memref<12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    %B = memref.alloc() : memref<13xf32>
// PASS-NEXT: {{^}}    %B_local = memref.alloc() : memref<13xf32, "local">
// PASS-NEXT: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "B" iters(%[[V:\w+]]: spatial<13>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<12xf32>
// PASS: {{^}}        memref.store %[[B:\w+]], %B[%[[V]]] : memref<13xf32>
// PASS: {{^}}    tir.for %[[AX0:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "B_local" iters(%[[V0:\w+]]: spatial<13>) = [%[[AX0]]] {
// PASS-NEXT: {{^}}        %{{[0-9]+}} = memref.load %B[%[[V0]]] : memref<13xf32>
// PASS-NEXT: {{^}}        memref.store %{{[0-9]+}}, %B_local[%[[V0]]] : memref<13xf32, "local">
// PASS: {{^}}    tir.for %[[I]] in 12 {
// PASS-NEXT: {{^}}      tir.block "C" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[B]] = memref.load %B_local[%[[V]]] : memref<13xf32, "local">
// PASS-NEXT: {{^}}        memref.store %[[B]], %C[%[[V]]] : memref<12xf32>
// PASS: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[X:\w+]] = affine.apply affine_map<(d0) -> (((d0 * -1) + 11))> (%[[V]])
// PASS-NEXT: {{^}}        %[[B]] = memref.load %B_local[%[[V]]] : memref<13xf32, "local">
// PASS-NEXT: {{^}}        memref.store %[[B]], %D[%[[X]]] : memref<12xf32>
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
  %c = sched.get_block "C" in @f : block
  %copy = sched.cache_read %c {index = 0, scope = "local"} : block
}

// -----

// Symbolic extents.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    %X_local = memref.alloc(%[[M:\w+]], %[[N:\w+]]) : memref<?x?xf32, "local">
// CHECK: {{^}}    %Y = memref.alloc(%[[M]]) : memref<?x10xf32>
// CHECK-NEXT: {{^}}    tir.for %[[AX0:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[AX1:\w+]] in %[[N]] {
// CHECK-NEXT: {{^}}        tir.block "X_local" iters(%[[V0:\w+]]: spatial<%[[M]]>, %[[V1:\w+]]: spatial<%[[N]]>) = [%[[AX0]], %[[AX1]]] {
// CHECK-NEXT: {{^}}          %{{[0-9]+}} = memref.load %X[%[[V0]], %[[V1]]] : memref<?x?xf32>
// CHECK-NEXT: {{^}}          memref.store %{{[0-9]+}}, %X_local[%[[V0]], %[[V1]]] : memref<?x?xf32, "local">
// CHECK: {{^}}    tir.for %[[I:\w+]] in %[[M]] {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 10 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in %[[N]] {
// CHECK-NEXT: {{^}}          tir.block "B" iters(%[[VI:\w+]]: spatial<%[[M]]>, %[[VJ:\w+]]: spatial<10>, %[[VK:\w+]]: reduce<%[[N]]>) = [%[[I]], %[[J]], %[[K]]] {
// CHECK-NEXT: {{^}}            tir.init {
// CHECK-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}            %[[X:\w+]] = memref.load %X_local[%[[VI]], %[[VK]]] : memref<?x?xf32, "local">
// CHECK-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}            %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// CHECK: {{^}}            memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
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
// PASS-NEXT: {{^}}              memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}            %[[X:\w+]] = memref.load %X[%[[VI]], %[[VK]]] : memref<?x?xf32>
// PASS-NEXT: {{^}}            %[[W:\w+]] = memref.load %W[%[[VK]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}            %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}            memref.store %[[S:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<?x10xf32>
// PASS: {{^}}    tir.for %[[AX0:\w+]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[AX1:\w+]] in 10 {
// PASS-NEXT: {{^}}        tir.block "Y_local" iters(%[[V0:\w+]]: spatial<%[[M]]>, %[[V1:\w+]]: spatial<10>) = [%[[AX0]], %[[AX1]]] {
// PASS-NEXT: {{^}}          %{{[0-9]+}} = memref.load %Y[%[[V0]], %[[V1]]] : memref<?x10xf32>
// PASS-NEXT: {{^}}          memref.store %{{[0-9]+}}, %Y_local[%[[V0]], %[[V1]]] : memref<?x10xf32, "local">
// PASS: {{^}}    tir.for %[[I]] in %[[M]] {
// PASS-NEXT: {{^}}      tir.for %[[J]] in 10 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI]]: spatial<%[[M]]>, %[[VJ]]: spatial<10>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[Y]] = memref.load %Y_local[%[[VI]], %[[VJ]]] : memref<?x10xf32, "local">
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
  %copy = sched.cache_read %b {index = 0, scope = "local"} : block
}

// -----

// What guards leave of a parameter.
// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[AX0:\w+]] in 9 {
// CHECK-NEXT: tir.block "A_local" iters(%[[V0:\w+]]: spatial<16>) = [%[[AX0]] + 3] {
func.func @f(%A: memref<16xf32>) {
  %C = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "C" iters(%v: spatial<12>) = [%i] where [%i] < [9] {
      %x = affine.apply affine_map<(d0) -> (d0 + 3)>(%v)
      %a = memref.load %A[%x] : memref<16xf32>
      memref.store %a, %C[%v] : memref<12xf32>
    } }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" in @f : block
  sched.cache_read %c {index = 0, scope = "local"} : block
}
