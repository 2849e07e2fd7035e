// RUN: not weft-opt %s --split-input-file -p tir-assign-spaces 2>&1 | filecheck %s

// CHECK: error: %L is in memory of space "local", which is private to each thread, but not every element that a thread reads was surely written by the same thread
func.func @neighbour(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  %L = memref.alloc() : memref<8xf32, "local">
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.block "L" iters(%vi: spatial<8>) = [%t] {
        %a = memref.load %A[%vi] : memref<8xf32>
        memref.store %a, %L[%vi] : memref<8xf32, "local">
      }
      tir.block "B" iters(%vi: spatial<8>) = [%t] {
        %p = affine.apply affine_map<(d0) -> (7 - d0)>(%vi)
        %l = memref.load %L[%p] : memref<8xf32, "local">
        memref.store %l, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: %S is in memory of space "shared", which is private to a thread block, but not every element that is read was surely written in the same thread block
func.func @two_kernels(%A: memref<8xf32>, %B: memref<8xf32>) attributes {tir.threads_in_step} {
  %S = memref.alloc() : memref<8xf32, "shared">
  tir.for %b in 2 thread_binding<"blockIdx.x"> {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%vi: spatial<8>) = [%b * 4 + %t] {
        %a = memref.load %A[%vi] : memref<8xf32>
        memref.store %a, %S[%vi] : memref<8xf32, "shared">
      }
    }
  }
  tir.for %c in 2 thread_binding<"blockIdx.x"> {
    tir.for %u in 4 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<8>) = [%c * 4 + %u] {
        %s = memref.load %S[%vi] : memref<8xf32, "shared">
        memref.store %s, %B[%vi] : memref<8xf32>
      }
    }
  }
  func.return
}
