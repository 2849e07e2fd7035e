// RUN: not weft-opt %s --split-input-file -p 'lower-tir-to-low{target=opencl}' 2>&1 | filecheck %s

// CHECK: error: loop %[[I:\w+]] of block "B" is bound to no thread axis: target opencl runs the work of bound loops only
func.func @unbound(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 16 {
    tir.block "B" iters(%vi: spatial<16>) = [%i] { memref.store %one, %B[%vi] : memref<16xf32> }
  }
  func.return
}

// -----

// CHECK: error: loop %[[I:\w+]] of block "B" is bound to no thread axis
func.func @parallel(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 16 parallel {
    tir.block "B" iters(%vi: spatial<16>) = [%i] { memref.store %one, %B[%vi] : memref<16xf32> }
  }
  func.return
}

// -----

// CHECK: error: host code touches %B, which is in device memory: only kernels access buffers
func.func @host(%B: memref<16xf32>) attributes {tir.function} {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  memref.store %one, %B[%c0] : memref<16xf32>
  func.return
}

// -----

// Truth values decide what runs, and nothing else.
// CHECK: error: host code touches %B, which is in device memory: only kernels access buffers
func.func @reads(%B: memref<i1>, %n: index, %m: index) attributes {tir.function} {
  %c = memref.load %B[] : memref<i1>
  %e = arith.select %c, %n, %m : index
  func.return
}

// -----

// CHECK: error: loop %[[T:\w+]] is bound to threadIdx.x, but its extent is not a constant
func.func @dynamic(%B: memref<?xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %B, %c0 : memref<?xf32>
  tir.for %t in %n thread_binding<"threadIdx.x"> {
    tir.block "B" iters(%vi: spatial<%n>) = [%t] { memref.store %one, %B[%vi] : memref<?xf32> }
  }
  func.return
}

// -----

// CHECK: error: %L is in memory of space "local", which is private to each thread
func.func @local(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  %L = memref.alloc() : memref<16xf32, "local">
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    tir.block "L" iters(%vi: spatial<16>) = [%t] { memref.store %one, %L[%vi] : memref<16xf32, "local"> }
  }
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    tir.block "B" iters(%vi: spatial<16>) = [%t] {
      %p = affine.apply affine_map<(d0) -> (15 - d0)>(%vi)
      %l = memref.load %L[%p] : memref<16xf32, "local">
      memref.store %l, %B[%vi] : memref<16xf32>
    }
  }
  func.return
}

// -----

// CHECK: error: %S is in memory of space "shared", which is private to a thread block
func.func @shared(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  %S = memref.alloc() : memref<16xf32, "shared">
  tir.for %b in 4 thread_binding<"blockIdx.x"> {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%vi: spatial<16>) = [%b * 4 + %t] { memref.store %one, %S[%vi] : memref<16xf32, "shared"> }
    }
  }
  tir.for %b in 4 thread_binding<"blockIdx.x"> {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<16>) = [%b * 4 + %t] {
        %l = memref.load %S[%vi] : memref<16xf32, "shared">
        memref.store %l, %B[%vi] : memref<16xf32>
      }
    }
  }
  func.return
}

// -----

// CHECK: error: block "B" is reduced over %[[B:\w+]], which is bound to blockIdx.x, but its parts cannot be combined: block "B" combines by arith.mulf, for which there is no atomic operation
func.func @reduced(%A: memref<16xf32>, %B: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %t in 1 thread_binding<"threadIdx.x"> {
    tir.for %b in 16 thread_binding<"blockIdx.x"> {
      tir.block "B" iters(%vk: reduce<16>) = [%b] {
        %a = memref.load %A[%vk] : memref<16xf32>
        %b0 = memref.load %B[%c0] : memref<1xf32>
        %c = arith.mulf %b0, %a : f32
        memref.store %c, %B[%c0] : memref<1xf32>
      }
    }
  }
  func.return
}

// -----

// Each thread has values of its own in S, but there is one S for all of them.
// CHECK: error: iteration ({{.*}}) writes S[0]; iteration ({{.*}}) writes S[0], by different threads at the same time
func.func @same_place(%A: memref<64xf32>, %B: memref<64xf32>) {
  %S = memref.alloc() : memref<64xf32, "shared">
  tir.for %t in 16 thread_binding<"threadIdx.x"> {
    tir.for %j in 4 {
      tir.block "S" iters(%vt: spatial<16>, %vj: spatial<4>) = [%t, %j] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%vt, %vj)
        %a = memref.load %A[%p] : memref<64xf32>
        memref.store %a, %S[%vj] : memref<64xf32, "shared">
      }
    }
    tir.for %j in 4 {
      tir.block "B" iters(%vt: spatial<16>, %vj: spatial<4>) = [%t, %j] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%vt, %vj)
        %s = memref.load %S[%vj] : memref<64xf32, "shared">
        memref.store %s, %B[%p] : memref<64xf32>
      }
    }
  }
  func.return
}
