// RUN: weft-opt %s -p 'tir-split{func=f block=B loop=0 factors=0,4}' | filecheck %s
// RUN: not weft-opt %s -p 'tir-split{func=f loop=0 factors=0,4}' 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not weft-opt %s -p 'tir-split{block=B loop=outer factors=0,4}' 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not weft-opt %s -p 'tir-split{block=B loop=0 factor=4}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not weft-opt %s -p 'tir-split{block=B loop=0 factors=0,4' 2>&1 | filecheck %s --check-prefix=SYNTAX
// RUN: not weft-opt %s -p 'tir-splitt{block=B}' 2>&1 | filecheck %s --check-prefix=PASS
// RUN: not weft-opt %s -p 'tir-split{block=C loop=0 factors=0,4}' 2>&1 | filecheck %s --check-prefix=BLOCK
// RUN: not weft-opt %s -t llvm_ir 2>&1 | filecheck %s --check-prefix=TARGET
// RUN: not weft-opt %s -t 'asm{cpus=haswell}' 2>&1 | filecheck %s --check-prefix=TARGET-OPTION
// RUN: xdsl-opt %s -p 'tir-split{func=f block=B loop=0 factors=0,4}' | filecheck %s

// CHECK: tir.for %[[I0:\w+]] in 16 {
// CHECK: tir.for %[[I1:\w+]] in 4 {
// MISSING: error: pass 'tir-split' needs option 'block', a name or string
// TYPE: error: pass 'tir-split': option 'loop' expects an integer, got 'outer'
// OPTION: error: pass 'tir-split' has no option 'factor', did you mean 'factors'?
// SYNTAX: <pass option>:1:37: error: Malformed pass arguments, expected either a space or `}` here
// PASS: error: unknown pass 'tir-splitt', did you mean 'tir-split'
// BLOCK: error: unknown block 'C'
// TARGET: error: unknown target 'llvm_ir', did you mean 'llvm-ir'
// TARGET-OPTION: error: target 'asm' has no option 'cpus', did you mean 'cpu'
func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "B" iters(%v: spatial<64>) = [%i] {
      %a = memref.load %A[%v] : memref<64xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<64xf32>
    }
  }
  func.return
}
