// RUN: weft-opt %s --split-input-file --verify-diagnostics
// RUN: not weft-opt %s --split-input-file 2>&1 >%t.out | filecheck %s

// What fails is named by its place, and the module is not printed.
// CHECK: {{.*}}verify-errors.mlir:[[# @LINE + 6]]:5: error: block "X": iterator %[[V:\w+]]: spatial<128> is bound to values in 0..126, but its domain is 0..127: the loops do not cover it
// CHECK-NEXT: {{^}}    tir.block "X"
// CHECK-NEXT: {{^}}    ^^^^^^^^^{{$}}
// CHECK-NEXT: {{.*}}verify-errors.mlir:[[# @LINE + 16]]:12: error: reads X out of bounds
func.func @f(%X: memref<128xf32>, %one: f32) {
  tir.for %i in 127 { // expected-error@+1 {{the loops do not cover it}}
    tir.block "X" iters(%v: spatial<128>) = [%i] {
      memref.store %one, %X[%v] : memref<128xf32>
    }
  }
  func.return
}

// -----

func.func @f(%X: memref<128xf32>, %Y: memref<130xf32>) {
  tir.for %i in 130 {
    tir.block "Y" iters(%v: spatial<130>) = [%i] {
      // expected-error@+1 {{reads X out of bounds: in iteration (i=128) index 0 is 128, the buffer is memref<128xf32>}}
      %x = memref.load %X[%v] : memref<128xf32>
      memref.store %x, %Y[%v] : memref<130xf32>
    }
  }
  func.return
}

// -----

func.func @f(%X: memref<8xf32>, %Y: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "Y" iters(%v: reduce<8>) = [%i] {
      %x = memref.load %X[%v] : memref<8xf32>
      // expected-error@+1 {{block "Y": reduce iterator %v is in index 0 of the output Y}}
      memref.store %x, %Y[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// The scope of a value ends with the region that holds it, also for operations in generic form.
func.func @f(%A: memref<4xf32>) {
  // expected-error@+1 {{'memref.load' uses %c before its definition, the result of 'arith.constant' at line 50}}
  %p = memref.load %A[%c] : memref<4xf32>
  %c = arith.constant 0 : index // expected-note {{it is defined here}}
  func.return
}

// -----

func.func @f(%A: memref<4xf32>) { // expected-error@+1 {{'memref.load' uses %i outside its scope: it is an argument of 'tir.for' at line 58}}
  %p = memref.load %A[%i] : memref<4xf32>
  tir.for %i in 4 { // expected-note {{it is defined here}}
  }
  func.return
}

// -----

func.func @f(%c: i1) {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %z = arith.constant 1 : index // expected-note {{it is defined here}}
  cf.br ^bb2
^bb2: // expected-error@+1 {{'arith.addi' uses %z, the result of 'arith.constant' at line 68, which does not run on every way to this use}}
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
%z = arith.constant 1 : index // expected-note {{it is defined here}}
func.func @f() { // expected-error@+1 {{'arith.addi' uses %z outside its scope: the result of 'arith.constant' at line 90, which 'func.func' does not see}}
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

// -----

func.func @f(%x: f32) {
  tir.for %i in 4 { // expected-error@+1 {{'func.func' must not be in 'func.func'}}
    func.func @g(%A: memref<4xf32>) {
      func.return
    }
  }
  func.return
}

// -----

func.func @f(%n: index, %A: memref<4xf32>) {
  tir.for %i in 4 {
    tir.block "B" iters(%v: spatial<4>) = [%i] { // expected-error@+1 {{an index expression divides by positive constants only, got (d0 mod -1)}}
      %x = affine.apply affine_map<(d0) -> (d0 mod -1)> (%v)
      %a = memref.load %A[%x] : memref<4xf32>
      memref.store %a, %A[%v] : memref<4xf32>
    }
  }
  func.return
}

// -----

// expected-error@+1 {{'memref.global' of type memref<7xi1> has a value of type tensor<3xi1>}}
"memref.global"() <{sym_name = "truth", type = memref<7xi1>, initial_value = dense<[true, false, true]> : tensor<3xi1>, sym_visibility = "private", constant}> : () -> ()

// -----

func.func @f(%p: i1, %x: f32) -> f32 { // expected-error@+1 {{'scf.if' yields (), its results are (f32)}}
  %y = "scf.if"(%p) ({
    "scf.yield"() : () -> ()
  }, {
    "scf.yield"(%x) : (f32) -> ()
  }) : (i1) -> f32
  func.return %y : f32
}

// -----

func.func @f(%x: f32, %A: memref<f32>) {
  // expected-error@+1 {{'affine.for' yields (), its results are (f32)}}
  %y = affine.for %i = 0 to 4 iter_args(%s = %x) -> (f32) {
    affine.store %s, %A[] : memref<f32>
  }
  func.return
}

// -----

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { // expected-error@+1 {{there is no function @g with a type in this module}}
  %y = graph.call_tir @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"func.func"() <{sym_name = "g"}> ({}) : () -> ()
