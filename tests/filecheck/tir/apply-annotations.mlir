// RUN: weft-opt %s --split-input-file -p tir-apply-annotations | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'tir-apply-annotations{on-device=true}' | filecheck %s --check-prefix=GPU
// tir-apply-annotations: loops that annotations of the function ask for.

// Outer loops run in parallel, an inner loop in lanes; the reduction keeps its loop, which is unrolled.
// CHECK-LABEL: func.func @both(
// CHECK-NOT: attributes
// CHECK: tir.for %{{\w+}} in 64 parallel {
// CHECK-NEXT: tir.for %{{\w+}} in 8 vectorized {
// CHECK: tir.for %{{\w+}} in 512 parallel {
// CHECK-NEXT: tir.for %{{\w+}} in 4 unrolled {
// GPU-LABEL: func.func @both(
// GPU: tir.for %{{\w+}} in 64 {
// GPU-NEXT: tir.for %{{\w+}} in 8 unrolled {
// GPU: tir.for %{{\w+}} in 4 unrolled {
func.func @both(%A: memref<64x8xf32>, %B: memref<64x8xf32>, %C: memref<64x8xf32>) attributes {meta_schedule.parallel = 64 : i64, meta_schedule.vectorize = 8 : i64, meta_schedule.unroll_explicit = 16 : i64} {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.block "B" iters(%vi: spatial<64>, %vj: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<64x8xf32>
        memref.store %a, %B[%vi, %vj] : memref<64x8xf32>
      }
    }
  }
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.for %k in 4 {
        tir.block "C" iters(%vi: spatial<64>, %vj: spatial<8>, %vk: reduce<4>) = [%i, %j, %k] {
          tir.init {
            memref.store %zero, %C[%vi, %vj] : memref<64x8xf32>
          }
          %b = memref.load %B[%vi, %vj] : memref<64x8xf32>
          %c = memref.load %C[%vi, %vj] : memref<64x8xf32>
          %t = arith.addf %c, %b : f32
          memref.store %t, %C[%vi, %vj] : memref<64x8xf32>
        }
      }
    }
  }
  func.return
}

// -----

// Loops that are wanted for both are fused and split.
// CHECK-LABEL: func.func @split(
// CHECK: tir.for %{{\w+}} in 4 parallel {
// CHECK-NEXT: tir.for %{{\w+}} in 64 vectorized {
func.func @split(%A: memref<16x16xf32>, %B: memref<16x16xf32>) attributes {meta_schedule.parallel = 16 : i64, meta_schedule.vectorize = 64 : i64} {
  tir.for %i in 16 {
    tir.for %j in 16 {
      tir.block "B" iters(%vi: spatial<16>, %vj: spatial<16>) = [%i, %j] {
        %a = memref.load %A[%vi, %vj] : memref<16x16xf32>
        memref.store %a, %B[%vi, %vj] : memref<16x16xf32>
      }
    }
  }
  func.return
}

// -----

// Iterations that depend on each other stay in order. Loops with an annotation of their own are unrolled alone.
// CHECK-LABEL: func.func @recurrence(
// CHECK: tir.for %{{\w+}} in 15 {
// CHECK: tir.for %{{\w+}} in 4 {
// CHECK-NEXT: tir.for %{{\w+}} in 4 unrolled {
func.func @recurrence(%A: memref<16xf32>, %B: memref<4x4xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 15 {
    tir.block "A" iters(%vi: spatial<15>) = [%i] {
      %a = memref.load %A[%vi] : memref<16xf32>
      %n = affine.apply affine_map<(d0) -> (d0 + 1)> (%vi)
      memref.store %a, %A[%n] : memref<16xf32>
    }
  }
  tir.for %i in 4 attributes {pragma_auto_unroll_max_step = 8 : i64} {
    tir.for %j in 4 {
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<4>) = [%i, %j] {
        memref.store %one, %B[%vi, %vj] : memref<4x4xf32>
      }
    }
  }
  func.return
}
