// RUN: not weft-opt %s --split-input-file -p 'tir-bind-threads{target=cuda}' 2>&1 | filecheck %s

// CHECK: error: loop %[[J:\w+]] of block "B" is bound to no thread axis: target cuda runs the work of bound loops only (bind loops of the nest to "blockIdx.x" and "threadIdx.x")
func.func @unbound(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %j in 16 {
    tir.block "B" iters(%vi: spatial<16>) = [%j] { memref.store %one, %B[%vi] : memref<16xf32> }
  }
  func.return
}

// -----

// CHECK: error: the loop is parallel, and stands around the kernels of cuda
func.func @parallel(%B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 4 parallel {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<16>) = [%i * 4 + %t] { memref.store %one, %B[%vi] : memref<16xf32> }
    }
  }
  func.return
}

// -----

// CHECK: error: loops bound to blockIdx.x in one kernel differ in extent, and one is dynamic
func.func @extents(%A: memref<?xf32>, %B: memref<16xf32>) {
  %one = arith.constant 1.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.for %t in 1 thread_binding<"threadIdx.x"> {
    tir.for %i in %n thread_binding<"blockIdx.x"> {
      tir.block "A" iters(%vi: spatial<%n>) = [%i] { memref.store %one, %A[%vi] : memref<?xf32> }
    }
    tir.for %j in 16 thread_binding<"blockIdx.x"> {
      tir.block "B" iters(%vi: spatial<16>) = [%j] { memref.store %one, %B[%vi] : memref<16xf32> }
    }
  }
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

// CHECK: error: bind on threadIdx.x: the target runs so many threads
// CHECK-NEXT: 2048 threads along threadIdx.x, target cuda allows 1024
func.func @large(%B: memref<2048xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %t in 2048 thread_binding<"threadIdx.x"> {
    tir.block "B" iters(%vi: spatial<2048>) = [%t] { memref.store %one, %B[%vi] : memref<2048xf32> }
  }
  func.return
}

// -----

// CHECK: error: bind on threadIdx.z: the target runs so many threads
// CHECK-NEXT: 128 threads along threadIdx.z, target cuda allows 64
func.func @deep(%B: memref<128xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %t in 128 thread_binding<"threadIdx.z"> {
    tir.block "B" iters(%vi: spatial<128>) = [%t] { memref.store %one, %B[%vi] : memref<128xf32> }
  }
  func.return
}

// -----

// CHECK: error: bind on blockIdx.y: the target runs so many threads
// CHECK-NEXT: 70000 blocks along blockIdx.y, target cuda allows 65535
func.func @grid(%B: memref<70000xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %t in 70000 thread_binding<"blockIdx.y"> {
    tir.block "B" iters(%vi: spatial<70000>) = [%t] { memref.store %one, %B[%vi] : memref<70000xf32> }
  }
  func.return
}

// -----

// What all thread blocks run cannot wait for one of them.
// CHECK: error: iteration (z=0, j=0) of block "T" writes T[0]; iteration (z=0, j=0) of block "L" reads T[0], in each thread block along blockIdx.y: these do not wait for each other
func.func @wait(%A: memref<8xf32>, %C: memref<8xf32>) {
  %T = memref.alloc() : memref<8xf32>
  %L = memref.alloc() : memref<8xf32, "local">
  tir.for %z in 1 thread_binding<"blockIdx.x"> {
    tir.for %j in 8 thread_binding<"blockIdx.y"> {
      tir.block "T" iters(%v: spatial<8>) = [%j] {
        %a = memref.load %A[%v] : memref<8xf32>
        memref.store %a, %T[%v] : memref<8xf32>
      }
    }
    tir.for %j in 8 {
      tir.block "L" iters(%v: spatial<8>) = [%j] {
        %a = memref.load %T[%v] : memref<8xf32>
        memref.store %a, %L[%v] : memref<8xf32, "local">
      }
    }
    tir.for %j in 8 thread_binding<"blockIdx.y"> {
      tir.block "C" iters(%v: spatial<8>) = [%j] {
        %a = memref.load %L[%v] : memref<8xf32, "local">
        memref.store %a, %C[%v] : memref<8xf32>
      }
    }
  }
  func.return
}
