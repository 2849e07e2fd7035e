// RUN: weft-opt %s --split-input-file --verify-diagnostics
// RUN: not weft-opt %s --split-input-file 2>&1 >%t.out | filecheck %s

// What fails is named by its place, and the module is not printed.
// CHECK: {{.*}}verify-errors.mlir:[[# @LINE + 6]]:5: error: block "X": iterator %v: spatial<128> is bound to values in 0..126, but its domain is 0..127: the loops do not cover it
// CHECK-NEXT: {{^}}    tir.block "X"
// CHECK-NEXT: {{^}}    ^^^^^^^^^{{$}}
// CHECK-NEXT: {{.*}}verify-errors.mlir:21:8: error:
func.func @f() {
  tir.for %i in 127 { // expected-error@+1 {{the loops do not cover it}}
    tir.block "X" iters(%v: spatial<128>) = [%i] { }
  }
  func.return
}

// -----

// The scope of a value ends with the region that holds it, also for operations in generic form.
func.func @f(%A: memref<4xf32>) {
  // expected-error@+1 {{'memref.load' uses %c before its definition, the result of 'arith.constant' at line 22}}
  %p = memref.load %A[%c] : memref<4xf32>
  %c = arith.constant 0 : index
  func.return
}

// -----

func.func @f(%A: memref<4xf32>) { // expected-error@+1 {{'memref.load' uses %i outside its scope: it is an argument of 'tir.for' at line 30}}
  %p = memref.load %A[%i] : memref<4xf32>
  tir.for %i in 4 {
  }
  func.return
}

// -----

func.func @f(%c: i1) {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %z = arith.constant 1 : index
  cf.br ^bb2
^bb2: // expected-error@+1 {{'arith.addi' uses %z, the result of 'arith.constant' at line 40, which does not run on every way to this use}}
  %t = arith.addi %z, %z : index
  func.return
}

// -----

func.func @f(%c: i1) {
  %z = arith.constant 1 : index
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  cf.br ^bb2
^bb2:
  %t = arith.addi %z, %z : index
  func.return
}

// -----

// Functions do not see values of the module.
%z = arith.constant 1 : index
func.func @f() { // expected-error@+1 {{'arith.addi' uses %z outside its scope: the result of 'arith.constant' at line 62, which 'func.func' does not see}}
  %t = arith.addi %z, %z : index
  func.return
}

// -----

func.func @f(%x: f32) { // expected-error@+1 {{'func.return': Expected arguments to have the same types as the function output types}}
  func.return %x : f32
}

// -----

func.func @f(%n: index) {
  scf.for %i = %n to %n step %n { // expected-error@+1 {{'arith.constant'}}
    %x = "arith.constant"() <{value = 1 : i32}> : () -> i64
  }
  func.return
}
