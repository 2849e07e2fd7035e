// RUN: not weft-opt %s --split-input-file -t 'cuda{arch=sm_90}' 2>&1 | filecheck %s
// RUN: not weft-opt %s --split-input-file -t opencl 2>&1 | filecheck %s --check-prefix=CL

// Shared memory beyond what may be declared is given at launch.
// CHECK:      // Block "big" of the program: blocks of 32 x 1 x 1 threads. Takes 66560 bytes of shared memory at launch.
// CHECK:        extern __shared__ __align__(32) unsigned char weft_shared[];
// CHECK-NEXT:   float *const S = (float *)(weft_shared);
// CHECK-NEXT:   float *const T = (float *)(weft_shared + 65536);
// CL: error: @big needs 66560 bytes of shared memory a block, opencl has 32768
func.func @big(%A: memref<32xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "big">} {
  %S = memref.alloca() : memref<16384xf32, "shared">
  %T = memref.alloca() : memref<256xf32, "shared">
  %tx = low.thread_id "threadIdx.x" extent 32 : index
  %a = memref.load %A[%tx] : memref<32xf32>
  memref.store %a, %S[%tx] : memref<16384xf32, "shared">
  memref.store %a, %T[%tx] : memref<256xf32, "shared">
  func.return
}

// -----

// CHECK: error: @huge needs 262144 bytes of shared memory a block, cuda has 232448
func.func @huge(%A: memref<32xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "big">} {
  %S = memref.alloca() : memref<65536xf32, "shared">
  %tx = low.thread_id "threadIdx.x" extent 32 : index
  %a = memref.load %S[%tx] : memref<65536xf32, "shared">
  memref.store %a, %A[%tx] : memref<32xf32>
  func.return
}

// -----

// CHECK: error: @many has 2048 threads a block, cuda has at most 1024
func.func @many() attributes {low.kernel = #low.kernel<[2048, 1, 1], source = "big">} {
  func.return
}

// -----

// CHECK: error: @deep has 128 threads along z, cuda has at most 64
func.func @deep() attributes {low.kernel = #low.kernel<[1, 1, 128], source = "big">} {
  func.return
}

// -----

// CHECK: error: memref.alloc is in @heap, and CUDA C++ has no heap
// CL: error: memref.alloc is in @heap, and OpenCL C has no heap
func.func @heap() attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
  %S = memref.alloc() : memref<16xf32>
  memref.dealloc %S : memref<16xf32>
  func.return
}

// -----

// CHECK: error: low.parallel_for has no form in CUDA C++: bind the loop to threads
func.func @loop(%n: index) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
  low.parallel_for %i in %n { }
  func.return
}

// -----

// CHECK: error: low.atomic add of i8 has no form in CUDA C++
// CL: error: low.atomic add of i8 has no form in OpenCL C
func.func @bytes(%A: memref<4xi8>, %v: i8) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
  %c0 = arith.constant 0 : index
  %o = low.atomic add %v, %A[%c0] : i8, memref<4xi8>
  func.return
}

// -----

// CL: error: low.shuffle is in a loop or condition: OpenCL C exchanges values through shared memory
func.func @divergent(%A: memref<32xf32>, %b: i1) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "x">} {
  %c1 = arith.constant 1 : index
  scf.if %b {
    %a = memref.load %A[%c1] : memref<32xf32>
    %o = low.shuffle up %a, %c1 width 32 : f32
    memref.store %o, %A[%c1] : memref<32xf32>
  }
  func.return
}
