// RUN: weft-opt %s --split-input-file -p tir-flatten,tir-lower-loops | filecheck %s

// Sums are built from the outer loops inwards and shared; kinds become forms of loops.

func.func @kinds(%A: memref<8x4x16xf32>, %B: memref<8x4x16xf32>) {
  tir.for %i in 8 parallel {
    tir.for %j in 4 {
      tir.for %k in 16 unrolled {
        %a = memref.load %A[%i, %j, %k] : memref<8x4x16xf32>
        memref.store %a, %B[%i, %j, %k] : memref<8x4x16xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @kinds
// CHECK:         low.parallel_for %[[I:\w+]] in %[[C8:\w+]] {
// CHECK-NEXT:      %[[i:.*]] = arith.muli %[[I]], %[[C64:\w+]] : index
// CHECK-NEXT:      scf.for %[[J:\w+]] = %[[C0:\w+]] to %[[C4:\w+]] step %[[C1:\w+]] {
// CHECK-NEXT:        %[[j:.*]] = arith.muli %[[J]], %[[C16:\w+]] : index
// CHECK-NEXT:        %[[ij:.*]] = arith.addi %[[i]], %[[j]] : index
// CHECK-NEXT:        scf.for %[[K:\w+]] = %[[C0]] to %[[C16]] step %[[C1]] {
// CHECK-NEXT:          %[[ijk:.*]] = arith.addi %[[ij]], %[[K]] : index
// CHECK-NEXT:          %[[A:\w+]] = memref.load %A[%[[ijk]]] : memref<512xf32>
// CHECK-NEXT:          memref.store %[[A]], %B[%[[ijk]]] : memref<512xf32>
// CHECK-NEXT:        } {low.unroll}

// -----

// Unrolled loops repeat a body at most 1024 times: of 2 * 32 * 32 iterations the outermost loop stays one.

func.func @copies(%A: memref<2x32x32xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 2 unrolled {
    tir.for %j in 32 unrolled {
      tir.for %k in 32 unrolled {
        memref.store %zero, %A[%i, %j, %k] : memref<2x32x32xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @copies
// CHECK:           } {low.unroll}
// CHECK-NEXT:    } {low.unroll}
// CHECK-NEXT:  }
// CHECK-NEXT:  func.return

// -----

// Threads of a GPU axis run one after the other; a loop of one of them is its body.

func.func @threads(%A: memref<8x4xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.for %v in 4 thread_binding<"vthread"> {
        memref.store %zero, %A[%t, %v] : memref<8x4xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @threads
// CHECK-NOT:     thread
// CHECK:         scf.for %[[T:\w+]] = %[[C0:\w+]] to %[[C8:\w+]] step %[[C1:\w+]] {
// CHECK:           scf.for %[[V:\w+]] = %[[C0]] to %[[C4:\w+]] step %[[C1]] {
// CHECK:             memref.store

// -----

// Ranges make quotients unsigned, or go.

func.func @quotients(%A: memref<6x4xf32>, %B: memref<24xf32>) {
  tir.for %f in 24 {
    %i = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%f)
    %j = affine.apply affine_map<(d0) -> (d0 mod 4)> (%f)
    %a = memref.load %A[%i, %j] : memref<6x4xf32>
    %back = affine.apply affine_map<(d0) -> (23 - d0)> (%f)
    %third = affine.apply affine_map<(d0) -> (d0 floordiv 3)> (%back)
    memref.store %a, %B[%third] : memref<24xf32>
  }
  func.return
}
// CHECK-LABEL: @quotients
// CHECK:         scf.for %[[F:\w+]]
// CHECK-NEXT:      %[[back:.*]] = arith.subi %[[C23:\w+]], %[[F]] : index
// CHECK-NEXT:      %[[third:.*]] = arith.divui %[[back]], %[[C3:\w+]] : index
// CHECK-NEXT:      %[[A:\w+]] = memref.load %A[%[[F]]] : memref<24xf32>
// CHECK-NEXT:      memref.store %[[A]], %B[%[[third]]] : memref<24xf32>
