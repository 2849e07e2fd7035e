// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-compute-inline{func=f block=B}' | filecheck %s --strict-whitespace --check-prefix=PASS
// compute_inline: every read of the producer's temporary computes the value.

// One reader, after a split of the producer.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 10 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK: {{^}}          memref.store %[[D:\w+]], %D[%[[VI]], %[[VJ]]] : memref<10x12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 10 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 12 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<10>, %[[VJ:\w+]]: spatial<12>) = [%[[I]], %[[J]]] {
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
  %i, %j = sched.get_loops %b : loop, loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  sched.compute_inline %b
}

// -----

// A window: the value at the place that is read.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 16 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<16>, %[[VK:\w+]]: reduce<3>) = [%[[I]], %[[K]]] {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NEXT: {{^}}            memref.store %[[ZERO:\w+]], %C[%[[VI]]] : memref<16xf32>
// CHECK: {{^}}          %[[X:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// CHECK-NEXT: {{^}}          %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%{{[0-9]+}}] : memref<18xf32>
// CHECK: {{^}}          %[[C:\w+]] = memref.load %C[%[[VI]]] : memref<16xf32>
// CHECK: {{^}}          memref.store %[[S:\w+]], %C[%[[VI]]] : memref<16xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 16 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 3 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<16>, %[[VK:\w+]]: reduce<3>) = [%[[I]], %[[K]]] {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NEXT: {{^}}            memref.store %[[ZERO:\w+]], %C[%[[VI]]] : memref<16xf32>
// PASS: {{^}}          %[[X:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// PASS-NEXT: {{^}}          %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%{{[0-9]+}}] : memref<18xf32>
// PASS: {{^}}          %[[C:\w+]] = memref.load %C[%[[VI]]] : memref<16xf32>
// PASS: {{^}}          memref.store %[[S:\w+]], %C[%[[VI]]] : memref<16xf32>
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
  sched.compute_inline %b
}

// -----

// Padding: the condition comes along.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 9 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 8 {
// CHECK-NEXT: {{^}}        tir.for %[[K:\w+]] in 3 {
// CHECK-NEXT: {{^}}          tir.for %[[L:\w+]] in 3 {
// CHECK-NEXT: {{^}}            tir.block "C" iters(%[[VI:\w+]]: spatial<9>, %[[VJ:\w+]]: spatial<8>, %[[VK:\w+]]: reduce<3>, %[[VL:\w+]]: reduce<3>) = [%[[I]], %[[J]], %[[K]], %[[L]]] {
// CHECK-NEXT: {{^}}              tir.init {
// CHECK-NEXT: {{^}}                memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
// CHECK: {{^}}              %[[R:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// CHECK-NEXT: {{^}}              %[[S:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VJ]], %[[VL]])
// CHECK-NEXT: {{^}}              %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// CHECK-NEXT: {{^}}              %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VJ]], %[[VL]])
// CHECK-NEXT: {{^}}              %[[U:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%{{[0-9]+}})
// CHECK-NEXT: {{^}}              %[[V:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%{{[0-9]+}})
// CHECK: {{^}}              %[[X:\w+]] = scf.if %[[Q:\w+]] -> (f32) {
// CHECK-NEXT: {{^}}                %[[INSIDE:\w+]] = memref.load %X[%[[U]], %[[V]]] : memref<9x8xf32>
// CHECK: {{^}}              %[[W:\w+]] = memref.load %W[%[[VK]], %[[VL]]] : memref<3x3xf32>
// CHECK: {{^}}              %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
// CHECK: {{^}}              memref.store %[[T:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 9 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 8 {
// PASS-NEXT: {{^}}        tir.for %[[K:\w+]] in 3 {
// PASS-NEXT: {{^}}          tir.for %[[L:\w+]] in 3 {
// PASS-NEXT: {{^}}            tir.block "C" iters(%[[VI:\w+]]: spatial<9>, %[[VJ:\w+]]: spatial<8>, %[[VK:\w+]]: reduce<3>, %[[VL:\w+]]: reduce<3>) = [%[[I]], %[[J]], %[[K]], %[[L]]] {
// PASS-NEXT: {{^}}              tir.init {
// PASS-NEXT: {{^}}                memref.store %[[ZERO:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
// PASS: {{^}}              %[[R:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// PASS-NEXT: {{^}}              %[[S:\w+]] = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VJ]], %[[VL]])
// PASS-NEXT: {{^}}              %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VI]], %[[VK]])
// PASS-NEXT: {{^}}              %{{[0-9]+}} = affine.apply affine_map<(d0, d1) -> ((d0 + d1))> (%[[VJ]], %[[VL]])
// PASS-NEXT: {{^}}              %[[U:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%{{[0-9]+}})
// PASS-NEXT: {{^}}              %[[V:\w+]] = affine.apply affine_map<(d0) -> ((d0 + -1))> (%{{[0-9]+}})
// PASS: {{^}}              %[[X:\w+]] = scf.if %[[Q:\w+]] -> (f32) {
// PASS-NEXT: {{^}}                %[[INSIDE:\w+]] = memref.load %X[%[[U]], %[[V]]] : memref<9x8xf32>
// PASS: {{^}}              %[[W:\w+]] = memref.load %W[%[[VK]], %[[VL]]] : memref<3x3xf32>
// PASS: {{^}}              %[[Y:\w+]] = memref.load %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
// PASS: {{^}}              memref.store %[[T:\w+]], %Y[%[[VI]], %[[VJ]]] : memref<9x8xf32>
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
  sched.compute_inline %b
}

// -----

// Dimensions in another order.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 7 {
// CHECK-NEXT: {{^}}      tir.for %[[J:\w+]] in 6 {
// CHECK-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<7>, %[[VJ:\w+]]: spatial<6>) = [%[[I]], %[[J]]] {
// CHECK-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VJ]], %[[VI]]] : memref<6x7xf32>
// CHECK: {{^}}          memref.store %[[B:\w+]], %D[%[[VI]], %[[VJ]]] : memref<7x6xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 7 {
// PASS-NEXT: {{^}}      tir.for %[[J:\w+]] in 6 {
// PASS-NEXT: {{^}}        tir.block "C" iters(%[[VI:\w+]]: spatial<7>, %[[VJ:\w+]]: spatial<6>) = [%[[I]], %[[J]]] {
// PASS-NEXT: {{^}}          %[[A:\w+]] = memref.load %A[%[[VJ]], %[[VI]]] : memref<6x7xf32>
// PASS: {{^}}          memref.store %[[B:\w+]], %D[%[[VI]], %[[VJ]]] : memref<7x6xf32>
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
  sched.compute_inline %b
}

// -----

// Two readers.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.block "C" iters(%[[V:\w+]]: spatial<12>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<12xf32>
// CHECK: {{^}}        memref.store %[[B:\w+]], %C[%[[V]]] : memref<12xf32>
// CHECK: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// CHECK-NEXT: {{^}}        %[[X:\w+]] = affine.apply affine_map<(d0) -> (((d0 * -1) + 11))> (%[[V]])
// CHECK-NEXT: {{^}}        %[[A]] = memref.load %A[%[[V]]] : memref<12xf32>
// CHECK: {{^}}        memref.store %[[B]], %D[%[[X]]] : memref<12xf32>
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 {
// PASS-NEXT: {{^}}      tir.block "C" iters(%[[V:\w+]]: spatial<12>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[A:\w+]] = memref.load %A[%[[V]]] : memref<12xf32>
// PASS: {{^}}        memref.store %[[B:\w+]], %C[%[[V]]] : memref<12xf32>
// PASS: {{^}}      tir.block "D" iters(%[[V]]: spatial<12>) = [%[[I]]] {
// PASS-NEXT: {{^}}        %[[X:\w+]] = affine.apply affine_map<(d0) -> (((d0 * -1) + 11))> (%[[V]])
// PASS-NEXT: {{^}}        %[[A]] = memref.load %A[%[[V]]] : memref<12xf32>
// PASS: {{^}}        memref.store %[[B]], %D[%[[X]]] : memref<12xf32>
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12xf32>, %C: memref<12xf32>, %D: memref<12xf32>) {
  %B = memref.alloc() : memref<12xf32>
  tir.for %i in 12 {
    tir.block "B" iters(%v: spatial<12>) = [%i] {
      %a = memref.load %A[%v] : memref<12xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<12xf32>
    }
  }
  tir.for %i in 12 {
    tir.block "C" iters(%v: spatial<12>) = [%i] {
      %b = memref.load %B[%v] : memref<12xf32>
      memref.store %b, %C[%v] : memref<12xf32>
    }
    tir.block "D" iters(%v: spatial<12>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (11 - d0)>(%v)
      %b = memref.load %B[%v] : memref<12xf32>
      memref.store %b, %D[%x] : memref<12xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  sched.compute_inline %b
}

// -----

// Indices of the store are inverted: quotient and remainder.
// CHECK-LABEL: func.func @f(
// CHECK-NOT: memref.alloc
// CHECK: tir.block "C" iters(%[[V:\w+]]: spatial<24>) = [%[[I:\w+]]] {
// CHECK-NEXT: %[[ROW:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%[[V]])
// CHECK-NEXT: %[[COLUMN:.*]] = affine.apply affine_map<(d0) -> ((((d0 mod 4) * -1) + 3))> (%[[V]])
// CHECK-NEXT: memref.load %A[%[[ROW]], %[[COLUMN]]]
func.func @f(%A: memref<6x4xf32>, %C: memref<24xf32>) {
  %B = memref.alloc() : memref<24xf32>
  tir.for %i in 6 { tir.for %j in 4 {
    tir.block "B" iters(%v: spatial<6>, %w: spatial<4>) = [%i, %j] {
      %a = memref.load %A[%v, %w] : memref<6x4xf32>
      %x = affine.apply affine_map<(d0, d1) -> (d0 * 4 + 3 - d1)>(%v, %w)
      memref.store %a, %B[%x] : memref<24xf32>
    } } }
  tir.for %i in 24 {
    tir.block "C" iters(%v: spatial<24>) = [%i] {
      %b = memref.load %B[%v] : memref<24xf32>
      memref.store %b, %C[%v] : memref<24xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @f : block
  sched.compute_inline %b
}
