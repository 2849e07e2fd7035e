// RUN: weft-opt %s -p 'apply-schedule,lower-tir-to-low{target=opencl}' -t opencl | filecheck %s --strict-whitespace
// Full thread blocks run without a condition; the last one asks for each thread.

// CHECK:      {{^}}// Block "C" of the program: ? x 1 x 1 blocks of 64 x 1 x 1 threads.
// CHECK-NEXT: {{^}}__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
// CHECK-NEXT: {{^}}void multiply_kernel(
// CHECK-NEXT: {{^}}    __global const float *restrict A, __global const float *restrict B, __global float *restrict C, long n) {
// CHECK-NEXT: {{^}}  const int i0 = get_group_id(0);
// CHECK-NEXT: {{^}}  const int i1 = get_local_id(0);
// CHECK-NEXT: {{^}}  long at = (long)i0 * 64 + i1;
// CHECK-NEXT: {{^}}  if (i0 < n / 64) {
// CHECK-NEXT: {{^}}    C[at] = A[at] * B[at];
// CHECK-NEXT: {{^}}  } else {
// CHECK-NEXT: {{^}}    if (at < n) {
// CHECK-NEXT: {{^}}      C[at] = A[at] * B[at];
// CHECK-NEXT: {{^}}    }
// CHECK-NEXT: {{^}}  }
// CHECK-NEXT: {{^}}}
func.func @multiply(%A: memref<?xf32>, %B: memref<?xf32>, %C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume_shape %C[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.block "C" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      %b = memref.load %B[%v] : memref<?xf32>
      %c = arith.mulf %a, %b : f32
      memref.store %c, %C[%v] : memref<?xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %c = sched.get_block "C" : block
  %i = sched.get_loops %c : loop
  %i0, %i1 = sched.split %i {factors = [0, 64]} : loop, loop
  sched.bind %i0 {thread_axis = "blockIdx.x"}
  sched.bind %i1 {thread_axis = "threadIdx.x"}
}
