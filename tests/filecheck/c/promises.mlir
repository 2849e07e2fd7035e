// RUN: weft-opt %s --split-input-file -p 'lower-tir-to-low{target=c}' -t c | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=cuda},lower-tir-to-low{target=cuda}' -t cuda | filecheck %s --check-prefix=CUDA
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=opencl},lower-tir-to-low{target=opencl}' -t opencl | filecheck %s --check-prefix=OPENCL
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=metal},lower-tir-to-low{target=metal}' -t metal | filecheck %s --check-prefix=METAL

// Buffers of one type that may overlap; nothing is contracted. One thread runs the nest in order.
// CHECK:      #if defined(__GNUC__) && !defined(__clang__)
// CHECK-NEXT: #pragma GCC optimize("fp-contract=off")
// CHECK-NEXT: #else
// CHECK-NEXT: #pragma STDC FP_CONTRACT OFF
// CHECK-NEXT: #endif
// CHECK:      void f(const float *A, float *C) {
// CUDA:       return __fmul_rn(a, b);
// CUDA:       __global__ void __launch_bounds__(1) f_kernel(const float *A, float *C) {
// CUDA:         C[i] = weft_rounded_add_f32(weft_rounded_mul_f32(x, x), x);
// OPENCL:     #pragma OPENCL FP_CONTRACT OFF
// OPENCL:     void f_kernel(__global const float *A, __global float *C) {
// METAL:      #pragma METAL fp contract(off)
// METAL:      device const float *A {{\[\[}}buffer(0)]]
func.func @f(%A: memref<8xf32>, %C: memref<8xf32>) attributes {tir.promises = []} {
  tir.for %i in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %x = memref.load %A[%v] : memref<8xf32>
      %p = arith.mulf %x, %x : f32
      %s = arith.addf %p, %x : f32
      memref.store %s, %C[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// Buffers of two types that may overlap, and one that overlaps none. An op that allows contraction by itself.
// CHECK:      typedef float WEFT_MAY_ALIAS weft_shared_float;
// CHECK:      void f(const weft_shared_int32_t *A, weft_shared_float *C, const float *restrict D) {
// CUDA:       f_kernel(const int *A, const float *__restrict__ D, float *C) {
// CUDA:         C[i] = (float)A[i] * D[i];
// OPENCL:     typedef float __attribute__((may_alias)) weft_shared_float;
// OPENCL:     __global const weft_shared_int *A, __global const float *restrict D, __global weft_shared_float *C) {
// METAL:      device const weft_shared_int *A
func.func @f(%A: memref<8xi32>, %C: memref<8xf32>, %D: memref<8xf32> {llvm.noalias}) attributes {tir.promises = []} {
  tir.for %i in 8 {
    tir.block "C" iters(%v: spatial<8>) = [%i] {
      %n = memref.load %A[%v] : memref<8xi32>
      %y = memref.load %D[%v] : memref<8xf32>
      %x = arith.sitofp %n : i32 to f32
      %p = arith.mulf %x, %y fastmath<contract> : f32
      memref.store %p, %C[%v] : memref<8xf32>
    }
  }
  func.return
}
