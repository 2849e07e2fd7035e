// RUN: weft-opt %s -p 'lower-tir-to-low{insert="before:vectorize=cse,dce","after:canonicalize=cse"}' --print-between-passes --validate | filecheck %s --check-prefix=BETWEEN
// RUN: not weft-opt %s -p 'lower-tir-to-low{insert="before:vectorise=cse"}' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not weft-opt %s -p 'lower-tir-to-low{insert="before:vectorize"}' 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: weft run %s --insert before:vectorize=cse --check | filecheck %s --check-prefix=EXEC

// BETWEEN: IR after tir-place-buffers (place-buffers of lower-tir-to-low):
// BETWEEN: tir.block
// BETWEEN: IR after tir-flatten (flatten of lower-tir-to-low):
// BETWEEN: memref.load {{.*}} : memref<16xf32>
// BETWEEN: IR after cse (inserted into lower-tir-to-low):
// BETWEEN: memref.load
// BETWEEN: IR after dce (inserted into lower-tir-to-low):
// BETWEEN: IR after tir-lower-vectorized (vectorize of lower-tir-to-low):
// BETWEEN: vector.load
// BETWEEN: IR after low-canonicalize (canonicalize of lower-tir-to-low):
// BETWEEN: IR after cse (inserted into lower-tir-to-low):

// UNKNOWN: error: 'before:vectorise': no step is called 'vectorise', did you mean 'vectorize'{{.*}}; in order: place-buffers, apply-annotations, collect-imports
// NOTHING: error: an inserted pass is given as before:POINT=PASS or after:POINT=PASS, got 'before:vectorize'
// EXEC: check     B: within {{.*}} of the interpreter

func.func @double(%A: memref<16xf32>, %B: memref<16xf32>) {
  %two = arith.constant 2.0 : f32
  tir.for %i in 16 vectorized {
    tir.block "B" iters(%v: spatial<16>) = [%i] {
      %a = memref.load %A[%v] : memref<16xf32>
      %b = arith.mulf %a, %two : f32
      memref.store %b, %B[%v] : memref<16xf32>
    }
  }
  func.return
}
