// RUN: weft-opt %s -p lower-tir-to-low -t 'header{file="scale.h" threads=3}' | filecheck %s
// RUN: weft-opt %s -p lower-tir-to-low -t object -o %t.o --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: not weft-opt %s -t object -o %t.none.o 2>&1 | filecheck %s --check-prefix=LEVEL
// RUN: weft build %s -o %t.s -o %t.ll --header %t.h --target "llvm -num-threads=3" --timing | filecheck %s --check-prefix=BUILD
// RUN: filecheck %s --input-file %t.h
// RUN: filecheck %s --input-file %t.ll --check-prefix=LL
// RUN: weft build %s -o %t.c && filecheck %s --input-file %t.c --check-prefix=C
// RUN: not weft build %s 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not weft build %s -o %t.o --target cuda 2>&1 | filecheck %s --check-prefix=KERNELS

// CHECK:      void weft_set_num_threads(int32_t count);
// CHECK:      /* scale
// CHECK-NEXT:  *   A: float32[n]
// CHECK-NEXT:  *   s: float32
// CHECK-NEXT:  *   B: out float32[n]
// CHECK-NEXT:  *   n: the extent n of A, B */
// CHECK-NEXT: void scale(const float *WEFT_RESTRICT A, float s, float *WEFT_RESTRICT B, int64_t n);

// TIMING: (parse)
// TIMING: lower-tir-to-low: tir-flatten
// TIMING: LLVM IR
// TIMING: LLVM: optimise
// TIMING: LLVM: code generation
// TIMING: total

// LEVEL: memref.dim is not allowed at level low: lower the module first

// BUILD:      saved {{.*}}.s
// BUILD-NEXT: saved {{.*}}.ll
// BUILD-NEXT: saved {{.*}}.h
// BUILD:      read
// BUILD:      tir-flatten
// BUILD:      LLVM: optimise

// LL:     define void @scale(
// LL:     define internal void @weft_parallel_for(

// C: void scale(

// NOTHING: error: name a file to write: -o FILE
// KERNELS: error: weft build makes programs for CPUs, got the target 'cuda'

func.func @scale(%A: memref<?xf32>, %s: f32, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.for %i in %n parallel {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      %b = arith.mulf %a, %s : f32
      memref.store %b, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
