// RUN: weft-opt %s --split-input-file -p tir-lower-atomic-reductions | filecheck %s
// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=cuda}' -t cuda | filecheck %s --check-prefix=CUDA
// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=opencl}' -t opencl | filecheck %s --check-prefix=CL
// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=metal}' -t metal | filecheck %s --check-prefix=METAL

// A sum over thread blocks; the init is a kernel of its own.
// CHECK-LABEL: func.func @sum(
// CHECK: tir.block "S" iters(%[[VI:\w+]]: spatial<8>, %[[VK:\w+]]: reduce<64>) = [%[[I:\w+]], %[[Z:\w+]] * 16 + %[[K:\w+]]] {
// CHECK-NEXT: %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<8x64xf32>
// CHECK-NEXT: %[[S:\w+]] = low.atomic add %[[A]], %S[%[[VI]]] : f32, memref<8xf32>
// CHECK-NEXT: }
// CHECK-NOT: low.barrier
// CUDA-LABEL: sum_kernel_1(const float *__restrict__ A, float *__restrict__ S) {
// CUDA: atomicAdd(S + i, A[{{.*}}]);
// CUDA-NOT: __syncthreads
// CL: static inline float weft_atomic_add_f32_global(volatile __global float *place, float value) {
// CL-NEXT: volatile __global int *bits = (volatile __global int *)place;
// CL-NEXT: int seen = atomic_or(bits, 0);
// CL: const int before = atomic_cmpxchg(bits, seen, as_int(old + value));
// CL: weft_atomic_add_f32_global(S + i, A[{{.*}}]);
// METAL: atomic_fetch_add_explicit((device atomic_float *)place, value, memory_order_relaxed);
// METAL: weft_atomic_add_f32_global(S + i, A[{{.*}}]);
func.func @sum(%A: memref<8x64xf32>, %S: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 thread_binding<"threadIdx.x"> {
    tir.block "S_init" iters(%vi: spatial<8>) = [%i] { memref.store %zero, %S[%vi] : memref<8xf32> }
  }
  tir.for %z in 4 thread_binding<"blockIdx.z"> { tir.for %i in 8 thread_binding<"threadIdx.x"> { tir.for %k in 16 {
    tir.block "S" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %z * 16 + %k] {
      %a = memref.load %A[%vi, %vk] : memref<8x64xf32>
      %s = memref.load %S[%vi] : memref<8xf32>
      %t = arith.addf %s, %a : f32
      memref.store %t, %S[%vi] : memref<8xf32>
    }
  } } }
  func.return
}

// -----

// Threads whose accumulator starts elsewhere do so too, with a minimum and bits at once, the old value on the right.
// Blocks outside of a loop over threads run in one of them.
// CHECK-LABEL: func.func @bits(
// CHECK: %[[M:\w+]] = low.atomic min %[[A:\w+]], %M[%[[VI:\w+]]] : i32, memref<4xi32>
// CHECK-NEXT: %[[O:\w+]] = low.atomic or %[[A]], %O[%[[VI]]] : i32, memref<4xi32>
// CHECK-NEXT: }
// CUDA-LABEL: bits_kernel(
// CUDA: atomicMin(M + b, a);
// CUDA-NEXT: atomicOr(O + b, a);
// CL: atomic_min(M + b, a);
// CL-NEXT: atomic_or(O + b, a);
// METAL: return atomic_fetch_or_explicit((device atomic_int *)place, value, memory_order_relaxed);
// METAL: weft_atomic_min_i32_global(M + b, a);
func.func @bits(%A: memref<4x32xi32>, %M: memref<4xi32>, %O: memref<4xi32>) {
  tir.for %b in 4 thread_binding<"blockIdx.x"> { tir.for %t in 32 thread_binding<"threadIdx.x"> {
    tir.block "B" iters(%vi: spatial<4>, %vk: reduce<32>) = [%b, %t] {
      %a = memref.load %A[%vi, %vk] : memref<4x32xi32>
      %m = memref.load %M[%vi] : memref<4xi32>
      %n = arith.minsi %a, %m : i32
      memref.store %n, %M[%vi] : memref<4xi32>
      %o = memref.load %O[%vi] : memref<4xi32>
      %p = arith.ori %o, %a : i32
      memref.store %p, %O[%vi] : memref<4xi32>
    }
  } }
  func.return
}

// -----

// Floats: the greater one is NaN when either is. Threads that reduce together need no atomic operation.
// CHECK-LABEL: func.func @largest(
// CHECK: low.atomic max %[[A:\w+]], %S[%[[VI:\w+]]] : f32, memref<8xf32>
// CHECK: tir.init {
// CHECK-NOT: low.atomic
// CUDA: const int best = (int)__float_as_int(weft_maximum_f32(old, value));
// CUDA-NEXT: if (best == seen) return old;
// CL: atomic_cmpxchg(bits, seen, as_int(weft_maximum_f32(old, value)));
// METAL: const int best = as_type<int>(weft_maximum_f32(old, value));
func.func @largest(%A: memref<8x64xf32>, %S: memref<8xf32>, %T: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %z in 64 thread_binding<"blockIdx.z"> { tir.for %i in 8 thread_binding<"threadIdx.x"> {
    tir.block "S" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %z] {
      %a = memref.load %A[%vi, %vk] : memref<8x64xf32>
      %s = memref.load %S[%vi] : memref<8xf32>
      %t = arith.maximumf %s, %a : f32
      memref.store %t, %S[%vi] : memref<8xf32>
    }
  } }
  tir.for %i in 8 thread_binding<"blockIdx.z"> { tir.for %k in 64 thread_binding<"threadIdx.x"> {
    tir.block "T" iters(%vi: spatial<8>, %vk: reduce<64>) = [%i, %k] {
      tir.init { memref.store %zero, %T[%vi] : memref<8xf32> }
      %a = memref.load %A[%vi, %vk] : memref<8x64xf32>
      %s = memref.load %T[%vi] : memref<8xf32>
      %t = arith.maximumf %s, %a : f32
      memref.store %t, %T[%vi] : memref<8xf32>
    }
  } }
  func.return
}
