// RUN: weft-opt %s --split-input-file --verify-diagnostics -p canonicalize --validate 2>&1 | filecheck %s
// Programs too large for the interpreter are told; what has no text is an error where it stands.

// CHECK: note: --validate did not compare @memory: it fails before the change: 'memref.alloc' of 1,000,000,000,000 elements: the interpreter allocates at most 67,108,864
func.func @memory() {
  %t = memref.alloc() : memref<1000000x1000000xf32>
  func.return
}

// -----

// CHECK: note: --validate did not compare @parameter: parameter A has 1,000,000,000,000 elements, more than 67,108,864
func.func @parameter(%A: memref<1000000x1000000xf32>) {
  func.return
}

// -----

// CHECK: note: --validate did not compare @iterations: a call executes about {{[0-9,]+}} operations, the limit is 30,000,000
func.func @iterations() {
  %lo = arith.constant -9223372036854775808 : index
  %hi = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %lo to %hi step %c1 {
  }
  func.return
}

// -----

// CHECK: note: --validate did not compare @branches: the interpreter runs functions of one block, it has 2
func.func @branches() {
  cf.br ^bb1
^bb1:
  func.return
}

// -----

func.func @number() -> f80 {
  // expected-error@+1 {{a number of type f80: it has no bits here, and could not be printed}}
  %x = arith.constant 1.0 : f80
  func.return %x : f80
}

// -----

func.func @attribute(%A: memref<8xf32>) {
  // expected-error@+1 {{a number of type f80: it has no bits here, and could not be printed}}
  tir.for %k in 8 attributes {pipeline_stages = 9223372036854775808 : f80} { }
  func.return
}
