// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s

// CHECK: low.barrier must be in a kernel, but @host has no low.kernel
func.func @host() {
  low.barrier
  func.return
}

// -----

// CHECK: low.launch starts @k, which is no function of the module
func.func @host() {
  %c1 = arith.constant 1 : index
  low.launch @k blocks(%c1, %c1, %c1) threads(%c1, %c1, %c1) ()
  func.return
}

// -----

// CHECK: low.launch starts @k, which has no low.kernel
func.func @host() {
  %c1 = arith.constant 1 : index
  low.launch @k blocks(%c1, %c1, %c1) threads(%c1, %c1, %c1) ()
  func.return
}
func.func @k() {
  func.return
}

// -----

// CHECK: low.launch passes (index) to @k, which takes (memref<?xf32>)
func.func @host() {
  %c1 = arith.constant 1 : index
  low.launch @k blocks(%c1, %c1, %c1) threads(%c1, %c1, %c1) (%c1) : index
  func.return
}
func.func @k(%A: memref<?xf32>) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  func.return
}

// -----

// CHECK: low.launch takes three extents of blocks and three of threads
func.func @host() {
  %c1 = arith.constant 1 : index
  low.launch @k blocks(%c1, %c1) threads(%c1, %c1, %c1) ()
  func.return
}
func.func @k() attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  func.return
}

// -----

// CHECK: low.thread_id: 'threadIdx.w' is none of blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x
func.func @k() attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %t = low.thread_id "threadIdx.w" : index
  func.return
}

// -----

// CHECK: low.thread_id: an axis has at least one thread, got extent 0
func.func @k() attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %t = low.thread_id "threadIdx.x" extent 0 : index
  func.return
}

// -----

// CHECK: low.shuffle width is a power of two up to 32, got 48
func.func @k(%v: f32, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %w = low.shuffle down %v, %t width 48 : f32
  func.return
}

// -----

// CHECK: low.atomic combines f32 into elements of memref<?xi32>
func.func @k(%v: f32, %B: memref<?xi32>, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %w = low.atomic add %v, %B[%t] : f32, memref<?xi32>
  func.return
}

// -----

// CHECK: low.atomic has 1 indices into memref<4x4xf32>
func.func @k(%v: f32, %B: memref<4x4xf32>, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %w = low.atomic add %v, %B[%t] : f32, memref<4x4xf32>
  func.return
}

// -----

// CHECK: low.atomic or combines integers, got f32
func.func @k(%v: f32, %B: memref<4xf32>, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  %w = low.atomic or %v, %B[%t] : f32, memref<4xf32>
  func.return
}

// -----

// CHECK: low.async_copy copies to shared memory, got memref<?xf32>
func.func @k(%A: memref<?xf32>, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  low.async_copy %A[%t] to %A[%t] bytes 16 : memref<?xf32>, memref<?xf32>
  func.return
}

// -----

// CHECK: low.async_copy copies 4, 8 or 16 bytes, got 3
func.func @k(%A: memref<?xf32>, %S: memref<4xf32, "shared">, %t: index) attributes {low.kernel = #low.kernel<[1, 1, 1], source = "">} {
  low.async_copy %A[%t] to %S[%t] bytes 3 : memref<?xf32>, memref<4xf32, "shared">
  func.return
}
