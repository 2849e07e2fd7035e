// RUN: not weft-opt %s --split-input-file -p tir-insert-barriers 2>&1 | filecheck %s

// CHECK: error: iteration (b=0, t=0) writes S[0]; iteration (b=0, t=1) writes S[0], by different threads at the same time
func.func @same(%A: memref<8xf32>) attributes {tir.threads_in_step} {
  %c0 = arith.constant 0 : index
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<1xf32, "shared">
      %a = memref.load %A[%t] : memref<8xf32>
      memref.store %a, %S[%c0] : memref<1xf32, "shared">
    }
  }
  func.return
}

// -----

// CHECK: error: a barrier would be needed under a condition that differs between the threads of a block
// CHECK-SAME: by different threads
func.func @condition(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  %c4 = arith.constant 4 : index
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<8xf32, "shared">
      %other = affine.apply affine_map<(d0) -> (3 - d0)>(%t)
      %inside = arith.cmpi slt, %t, %c4 : index
      scf.if %inside {
        %a = memref.load %A[%t] : memref<8xf32>
        memref.store %a, %S[%t] : memref<8xf32, "shared">
        %s = memref.load %S[%other] : memref<8xf32, "shared">
        memref.store %s, %B[%t] : memref<8xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: a barrier would be needed in a loop whose extent differs between the threads of a block
func.func @extent(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<8xf32, "shared">
      %other = affine.apply affine_map<(d0) -> (7 - d0)>(%t)
      tir.for %k in %t {
        %a = memref.load %A[%k] : memref<8xf32>
        memref.store %a, %S[%t] : memref<8xf32, "shared">
        %s = memref.load %S[%other] : memref<8xf32, "shared">
        memref.store %s, %B[%t] : memref<8xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: a barrier would be needed in a vectorized loop
func.func @lanes(%A: memref<8x4xf32>, %B: memref<8x4xf32>) attributes {tir.threads_in_step} {
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %S = memref.alloc() : memref<8x4xf32, "shared">
      %other = affine.apply affine_map<(d0) -> (7 - d0)>(%t)
      tir.for %j in 4 vectorized {
        %a = memref.load %A[%t, %j] : memref<8x4xf32>
        memref.store %a, %S[%t, %j] : memref<8x4xf32, "shared">
        %s = memref.load %S[%other, %j] : memref<8x4xf32, "shared">
        memref.store %s, %B[%t, %j] : memref<8x4xf32>
      }
    }
  }
  func.return
}

// -----

// A barrier that a pass of a user asked for.
// CHECK: error: low.barrier is under a condition that differs between the threads of a block: not all threads reach it
func.func @requested(%A: memref<8xf32>) attributes {tir.threads_in_step} {
  %one = arith.constant 1.0 : f32
  %c4 = arith.constant 4 : index
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "A"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %inside = arith.cmpi slt, %t, %c4 : index
      scf.if %inside {
        memref.store %one, %A[%t] : memref<8xf32>
        low.barrier
      }
    }
  }
  func.return
}
