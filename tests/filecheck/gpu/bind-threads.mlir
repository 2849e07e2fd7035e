// RUN: weft-opt %s --split-input-file -p 'tir-bind-threads{target=cuda}' | filecheck %s

// One loop an axis, blocks outside of threads, and x innermost. The shorter nest gets a guard.
// CHECK-LABEL: func.func @two_nests(
// CHECK-SAME: attributes {tir.threads_in_step} {
// CHECK: tir.for %[[I:\w+]] in 4 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
// CHECK-NEXT: tir.for %[[S:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.block "S" iters(%[[VI:\w+]]: spatial<32>) = [%[[I]] * 8 + %[[S]]] {
// CHECK: tir.block "B" iters(%[[VI]]: spatial<4>, %[[VJ:\w+]]: spatial<6>) = [%[[I]], %[[S]]] where [%[[S]]] < [6] {
// CHECK-NOT: tir.for
// CHECK: func.return
func.func @two_nests(%A: memref<32xf32>, %B: memref<4x6xf32>) {
  %S = memref.alloc() : memref<32xf32>
  tir.for %i in 4 thread_binding<"blockIdx.x"> {
    tir.for %s in 8 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%vi: spatial<32>) = [%i * 8 + %s] {
        %a = memref.load %A[%vi] : memref<32xf32>
        memref.store %a, %S[%vi] : memref<32xf32>
      }
    }
    tir.for %t in 6 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<6>) = [%i, %t] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vi, %vj)
        %s = memref.load %S[%p] : memref<32xf32>
        memref.store %s, %B[%vi, %vj] : memref<4x6xf32>
      }
    }
  }
  func.return
}

// -----

// The order of the axes is the target's, not that of the loops; host loops stay around; virtual threads are unrolled.
// CHECK-LABEL: func.func @axes(
// CHECK: tir.for %[[H:\w+]] in 2 {
// CHECK-NEXT: tir.for %[[B:\w+]] in 3 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
// CHECK-NEXT: tir.for %[[Y:\w+]] in 2 thread_binding<"threadIdx.y"> {
// CHECK-NEXT: tir.for %[[X:\w+]] in 4 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.for %[[V:\w+]] in 2 unrolled attributes {tir.virtual_threads} {
// CHECK-NEXT: tir.block "B"
func.func @axes(%B: memref<96xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %h in 2 {
    tir.for %x in 4 thread_binding<"threadIdx.x"> {
      tir.for %v in 2 thread_binding<"vthread.x"> {
        tir.for %b in 3 thread_binding<"blockIdx.x"> {
          tir.for %y in 2 thread_binding<"threadIdx.y"> {
            tir.block "B" iters(%vi: spatial<96>) = [%h * 48 + %b * 16 + %v * 8 + %y * 4 + %x] {
              memref.store %one, %B[%vi] : memref<96xf32>
            }
          }
        }
      }
    }
  }
  func.return
}

// -----

// What is in no loop over the threads runs in the first of them; a kernel without blocks has one.
// CHECK-LABEL: func.func @first_thread(
// CHECK: tir.for %[[BLOCK:\w+]] in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "N, B"} {
// CHECK-NEXT: tir.for %[[Z:\w+]] in 3 thread_binding<"threadIdx.z"> {
// CHECK-NEXT: tir.for %[[T:\w+]] in 4 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.block "N" iters(%[[VI:\w+]]: spatial<3>) = [%[[Z]]] where [%[[T]]] < [1] {
// CHECK: tir.block "B" iters(%[[VI]]: spatial<3>, %[[VJ:\w+]]: spatial<4>) = [%[[Z]], %[[T]]] {
func.func @first_thread(%N: memref<3xf32>, %B: memref<3x4xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %z in 3 thread_binding<"threadIdx.z"> {
    tir.block "N" iters(%vi: spatial<3>) = [%z] { memref.store %one, %N[%vi] : memref<3xf32> }
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<3>, %vj: spatial<4>) = [%z, %t] {
        memref.store %one, %B[%vi, %vj] : memref<3x4xf32>
      }
    }
  }
  func.return
}

// -----

// Host loops of one iteration are no loops: a block in them is a kernel of one thread, as it is without them.
// CHECK-LABEL: func.func @one_iteration(
// CHECK-NOT: tir.for %i
// CHECK: tir.for %[[BLOCK:\w+]] in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
// CHECK-NEXT: tir.block "B" iters(%[[VI:\w+]]: spatial<1>, %[[VJ:\w+]]: spatial<1>) = [{{.*}}] {
// CHECK: func.return
func.func @one_iteration(%B: memref<1x1xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 1 {
    tir.for %j in 1 {
      tir.block "B" iters(%vi: spatial<1>, %vj: spatial<1>) = [%i, %j] {
        memref.store %zero, %B[%vi, %vj] : memref<1x1xf32>
      }
    }
  }
  func.return
}
