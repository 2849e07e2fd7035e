// RUN: not weft-opt %s --split-input-file -p 'lower-tir-to-low{target=cuda}' 2>&1 | filecheck %s

// CHECK: error: a store to %B is outside of blocks, in a kernel
func.func @no_block(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    memref.store %one, %B[%t] : memref<16xf32>
  }
  func.return
}

// -----

// CHECK: error: block "C" is in a kernel of several thread blocks along blockIdx.x, but in no loop over them
func.func @all_blocks(%B: memref<16xf32>, %C: memref<4xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %t in 4 thread_binding<"threadIdx.x"> {
    tir.for %b in 4 thread_binding<"blockIdx.x"> {
      tir.block "B" iters(%vi: spatial<16>) = [%b * 4 + %t] { memref.store %one, %B[%vi] : memref<16xf32> }
    }
    tir.block "C" iters(%vi: spatial<4>) = [%t] { memref.store %one, %C[%vi] : memref<4xf32> }
  }
  func.return
}

// -----

// CHECK: error: %S is in a kernel, in "shared" memory, and needs a static size, got %[[N:\w+]]
func.func @dynamic_shared(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  %S = memref.alloc(%n) : memref<?xf32, "shared">
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
    tir.for %t in 1 thread_binding<"threadIdx.x"> {
      tir.for %i in %n {
        tir.block "S" iters(%vi: spatial<%n>) = [%i] {
          %a = memref.load %A[%vi] : memref<?xf32>
          memref.store %a, %S[%vi] : memref<?xf32, "shared">
        }
      }
      tir.for %i in %n {
        tir.block "B" iters(%vi: spatial<%n>) = [%i] {
          %a = memref.load %S[%vi] : memref<?xf32, "shared">
          memref.store %a, %B[%vi] : memref<?xf32>
        }
      }
    }
  }
  func.return
}

// -----

// CHECK: error: %L: kernels have no memory of space "warp"
func.func @space(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  %L = memref.alloc() : memref<16xf32, "warp">
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    tir.block "L" iters(%vi: spatial<16>) = [%t] { memref.store %one, %L[%vi] : memref<16xf32, "warp"> }
    tir.block "B" iters(%vi: spatial<16>) = [%t] {
      %l = memref.load %L[%vi] : memref<16xf32, "warp">
      memref.store %l, %B[%vi] : memref<16xf32>
    }
  }
  func.return
}

// -----

// The sum starts in the same kernel: what threads would start from is not known.
// CHECK: error: block "B" is reduced over %[[T:\w+]], which is bound to threadIdx.x, but its parts cannot be combined: iteration ({{.*}}) of block "B" writes B[0]; iteration ({{.*}}) of block "I" writes B[0] in the same kernel, whose thread blocks do not wait for each other
func.func @no_init(%A: memref<4x32xf32>, %B: memref<4xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %b in 4 thread_binding<"blockIdx.x"> {
    tir.block "I" iters(%vi: spatial<4>) = [%b] { memref.store %zero, %B[%vi] : memref<4xf32> }
    tir.for %t in 32 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<4>, %vk: reduce<32>) = [%b, %t] {
        %b0 = memref.load %B[%vi] : memref<4xf32>
        %a = memref.load %A[%vi, %vk] : memref<4x32xf32>
        %c = arith.addf %b0, %a : f32
        memref.store %c, %B[%vi] : memref<4xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: a barrier would be needed in a vectorized loop: iteration ({{.*}}) writes S[{{.*}}]; iteration ({{.*}}) reads S[{{.*}}], by different threads
func.func @lanes(%B: memref<32xf32>) {
  %one = arith.constant 1.0 : f32
  %S = memref.alloc() : memref<32xf32, "shared">
  tir.for %b in 1 thread_binding<"blockIdx.x"> {
    tir.for %v in 4 vectorized {
      tir.for %u in 8 thread_binding<"threadIdx.x"> {
        tir.block "S" iters(%vi: spatial<32>) = [%v * 8 + %u] { memref.store %one, %S[%vi] : memref<32xf32, "shared"> }
      }
      tir.for %t in 8 thread_binding<"threadIdx.x"> {
        tir.block "B" iters(%vv: spatial<4>, %vi: spatial<8>) = [%v, %t] {
          %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vv, %vi)
          %q = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%vv, %vi)
          %s = memref.load %S[%p] : memref<32xf32, "shared">
          memref.store %s, %B[%q] : memref<32xf32>
        }
      }
    }
  }
  func.return
}
