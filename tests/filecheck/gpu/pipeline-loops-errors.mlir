// RUN: not weft-opt %s --split-input-file -p 'lower-tir-to-low{target=cuda}' 2>&1 | filecheck %s

// CHECK: error: pipeline_stages is a number of at least 2, got 1 : i64
func.func @one(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %t in 8 thread_binding<"threadIdx.x"> {
    tir.for %k in 8 attributes {pipeline_stages = 1 : i64} {
      tir.block "B" iters(%vi: spatial<64>) = [%k * 8 + %t] {
        %a = memref.load %A[%vi] : memref<64xf32>
        memref.store %a, %B[%vi] : memref<64xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: loop %[[K:\w+]] cannot be pipelined: its body is not one part that fetches, a barrier, and one part that uses
func.func @no_fetch(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %t in 8 thread_binding<"threadIdx.x"> {
    tir.for %k in 8 attributes {pipeline_stages = 2 : i64} {
      tir.block "B" iters(%vi: spatial<64>) = [%k * 8 + %t] {
        %a = memref.load %A[%vi] : memref<64xf32>
        memref.store %a, %B[%vi] : memref<64xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: loop %[[K:\w+]] cannot be pipelined: it is not serial
func.func @unrolled(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %t in 8 thread_binding<"threadIdx.x"> {
    tir.for %k in 8 unrolled attributes {pipeline_stages = 2 : i64} {
      tir.block "B" iters(%vi: spatial<64>) = [%k * 8 + %t] {
        %a = memref.load %A[%vi] : memref<64xf32>
        memref.store %a, %B[%vi] : memref<64xf32>
      }
    }
  }
  func.return
}

// -----

// What the loop fetches is what it wrote before: it cannot be fetched earlier.
// CHECK: error: loop %[[K:\w+]] cannot be pipelined: it fetches from %B, which it writes
func.func @feedback(%B: memref<64xf32>) {
  %S = memref.alloc() : memref<64xf32, "shared">
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
    tir.for %k in 7 attributes {pipeline_stages = 2 : i64} {
      tir.for %u in 8 thread_binding<"threadIdx.x"> {
        tir.block "S" iters(%vi: spatial<56>) = [%k * 8 + %u] {
          %a = memref.load %B[%vi] : memref<64xf32>
          memref.store %a, %S[%vi] : memref<64xf32, "shared">
        }
      }
      tir.for %t in 8 thread_binding<"threadIdx.x"> {
        tir.block "B" iters(%vk: spatial<7>, %vi: spatial<8>) = [%k, %t] {
          %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vk, %vi)
          %q = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 8 + d1)>(%vk, %vi)
          %a = memref.load %S[%p] : memref<64xf32, "shared">
          memref.store %a, %B[%q] : memref<64xf32>
        }
      }
    }
  }
  func.return
}
