// RUN: weft-opt %s --split-input-file -p 'tir-lower-thread-reductions{target=cuda}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'tir-lower-thread-reductions{target=opencl}' | filecheck %s --check-prefix=OPENCL

// A warp halves the number of threads with each shuffle; the first thread runs the init and stores.
// CHECK-LABEL: func.func @warp(
// CHECK: %P_1 = memref.load %P[%i, %t]
// CHECK: [[S4:%[0-9]+]] = low.shuffle down %P_1, %c4 width 8 : f32
// CHECK-NEXT: [[A4:%[0-9]+]] = arith.addf %P_1, [[S4]] : f32
// CHECK: low.shuffle down [[A4]], %c2 width 8 : f32
// CHECK: low.shuffle down %{{[0-9]+}}, %c1 width 8
// CHECK-NEXT: [[ALL:%[0-9]+]] = arith.addf
// CHECK-NOT: low.shuffle
// CHECK: arith.cmpi slt, %t, %{{[0-9]+}} : index
// CHECK-NEXT: scf.if
// CHECK-NEXT: memref.store %zero, %B[%i]
// CHECK-NEXT: [[OLD:%[0-9]+]] = memref.load %B[%i]
// CHECK-NEXT: [[SUM:%[0-9]+]] = arith.addf [[OLD]], [[ALL]] : f32
// CHECK-NEXT: memref.store [[SUM]], %B[%i]

// Without shuffles: half of the threads take what the other half has in shared memory, and so on.
// OPENCL-LABEL: func.func @warp(
// OPENCL-NOT: low.shuffle
// OPENCL: %B_parts = memref.alloc() : memref<8xf32, "shared">
// OPENCL: memref.store %P_1, %B_parts[%t]
// OPENCL: memref.load %B_parts[%t]
// OPENCL: [[HERE:%[0-9]+]] = affine.apply affine_map<(d0) -> ((d0 + 4))> (%t)
// OPENCL: memref.load %B_parts{{.}}[[HERE]]]
// OPENCL: arith.addf
// OPENCL-NEXT: memref.store %{{.*}}, %B_parts[%t]
func.func @warp(%P: memref<8x8xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<8>, %vt: reduce<8>) = [%i, %t] attributes {tir.across_threads = "threadIdx.x"} {
        tir.init { memref.store %zero, %B[%vi] : memref<8xf32> }
        %0 = memref.load %P[%vi, %vt] : memref<8x8xf32>
        %1 = memref.load %B[%vi] : memref<8xf32>
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}

// -----

// A block that some threads leave out: those have zero to shuffle, and nobody misses a shuffle.
// CHECK-LABEL: func.func @guarded(
// CHECK: [[IN:%[0-9]+]] = arith.cmpi slt
// CHECK: scf.if [[IN]] -> (f32) {
// CHECK-NEXT: memref.load %P
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: arith.constant 0.000000e+00 : f32
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK: low.shuffle down
// CHECK-NOT: scf.if
// CHECK: low.shuffle down
// CHECK: scf.if
func.func @guarded(%P: memref<6x4xf32>, %B: memref<6xf32>) attributes {tir.threads_in_step} {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 2 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %y in 4 thread_binding<"threadIdx.y"> {
      tir.for %t in 4 thread_binding<"threadIdx.x"> {
        tir.block "B" iters(%vi: spatial<6>, %vt: reduce<4>) = [%i * 4 + %y, %t] where [%i * 4 + %y] < [6] attributes {tir.across_threads = "threadIdx.x"} {
          tir.init { memref.store %zero, %B[%vi] : memref<6xf32> }
          %0 = memref.load %P[%vi, %vt] : memref<6x4xf32>
          %1 = memref.load %B[%vi] : memref<6xf32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %B[%vi] : memref<6xf32>
        }
      }
    }
  }
  func.return
}

// -----

// Each thread has an accumulator of its own: all of them get the result.
// CHECK-LABEL: func.func @for_all(
// CHECK: low.shuffle down %{{[0-9]+}}, %c1 width 8
// CHECK-NEXT: [[OWN:%[0-9]+]] = arith.addf
// CHECK-NEXT: %c0 = arith.constant 0 : index
// CHECK-NEXT: [[ALL:%[0-9]+]] = low.shuffle idx [[OWN]], %c0 width 8 : f32
// CHECK-NEXT: memref.store %zero, %S[%i]
// CHECK-NEXT: [[OLD:%[0-9]+]] = memref.load %S[%i]
// CHECK-NEXT: [[SUM:%[0-9]+]] = arith.addf [[OLD]], [[ALL]] : f32
// CHECK-NEXT: memref.store [[SUM]], %S[%i]
// CHECK-NOT: scf.if
// CHECK: func.return
// OPENCL-LABEL: func.func @for_all(
// OPENCL: %S_parts = memref.alloc() : memref<8xf32, "shared">
// OPENCL: memref.store %zero, %S[%i]
// OPENCL-NOT: scf.if
// OPENCL: tir.block "B"
func.func @for_all(%P: memref<8x8xf32>, %B: memref<8x8xf32>) attributes {tir.threads_in_step} {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<8xf32, "local">
      tir.block "S" iters(%vi: spatial<8>, %vt: reduce<8>) = [%i, %t] attributes {tir.across_threads = "threadIdx.x"} {
        tir.init { memref.store %zero, %S[%vi] : memref<8xf32, "local"> }
        %0 = memref.load %P[%vi, %vt] : memref<8x8xf32>
        %1 = memref.load %S[%vi] : memref<8xf32, "local">
        %2 = arith.addf %1, %0 : f32
        memref.store %2, %S[%vi] : memref<8xf32, "local">
      }
      tir.block "B" iters(%vi: spatial<8>, %vt: spatial<8>) = [%i, %t] {
        %s = memref.load %S[%vi] : memref<8xf32, "local">
        memref.store %s, %B[%vi, %vt] : memref<8x8xf32>
      }
    }
  }
  func.return
}
