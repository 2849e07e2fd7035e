// RUN: weft-opt %s --split-input-file --verify-diagnostics
// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s
// Every error stands at its place, and keeps no later chunk from running.

// CHECK: {{.*}}parse-errors.mlir:[[# @LINE + 4]]:3: error: unknown operation 'tir.blok', did you mean 'tir.block'
// CHECK-NEXT: {{^}}  tir.blok "x"
// CHECK-NEXT: {{^}}  ^^^^^^^^{{$}}
func.func @f() { // expected-error@+1 {{unknown operation 'tir.blok', did you mean 'tir.block'}}
  tir.blok "x"
}

// -----

func.func @f() { // expected-error@+1 {{unknown operation 'func.retrun', did you mean 'func.return'}}
  "func.retrun"() : () -> ()
}

// -----

func.func @f() { // expected-error@below {{there is no dialect 'tri', did you mean 'tir'}}
  tri.for %i in 4 { }
}

// -----

// Undefined values are reported where they are first used.
// CHECK: {{.*}}parse-errors.mlir:[[# @LINE + 4]]:23: error: value %nn is used but not defined, did you mean '%n'?
// CHECK-NEXT: {{^}}  %[[P:\w+]] = memref.load %A[%nn] : memref<4xf32>
// CHECK-NEXT: {{^                      \^\^\^$}}
func.func @f(%A: memref<4xf32>, %n: index) { // expected-error@+1 {{value %nn is used but not defined}}
  %p = memref.load %A[%nn] : memref<4xf32>
  %q = memref.load %A[%nn] : memref<4xf32>
  func.return
}

// -----

// An undefined value in the first function is found before a syntax error in the second.
func.func @f(%A: memref<4xf32>) { // expected-error@+1 {{value %n is used but not defined}}
  %p = memref.load %A[%n] : memref<4xf32>
  func.return
}
func.func @g( {

// -----

// An iterator bound to a loop outside its scope.
func.func @f(%A: memref<4xf32>) {
  tir.for %i in 4 { // expected-note {{it is defined here}}
  }
  tir.for %j in 4 {
    // expected-error@+1 {{value %i is used outside its scope (it is defined at line 49, in a region}}
    tir.block "A" iters(%v: spatial<4>) = [%i] {
    }
  }
  func.return
}

// -----

func.func @f(%n: index) { // expected-error@+1 {{operand is used with type f32, but has been previously used or defined with type index}}
  %x = arith.addf %n, %n : f32
  func.return
}

// -----

func.func @f(%n: index) { // expected-error@+1 {{value %n is already defined, at line 68}} // expected-note {{it is defined here}}
  %n = arith.constant 1 : index
  func.return
}

// -----

func.func @f(%n: index) {
  tir.for %i in 4 { // expected-error@+1 {{multiplies and divides by integer constants only: compute a product of values with arith.muli}}
    tir.block "X" iters(%v: spatial<16>) = [%i * %n] { }
  }
  func.return
}

// -----

func.func @f(%n: index) {
  tir.for %i in 4 { // expected-error@+1 {{divides by positive constants only}}
    tir.block "X" iters(%v: spatial<1>) = [%i floordiv 0] { }
  }
  func.return
}

// -----

// expected-error@+1 {{expected an element type and the end of the shape, got 'f33'}}
func.func @f(%A: memref<4xf33>) {
  func.return
}

// -----

func.func @f() { // expected-error@+1 {{expected an operation or '}', got '='}}
  = arith.constant 1 : index
}

// -----

}{ // expected-error {{expected an operation, got '}'}}

// -----

func.func @f() { // expected-error@+1 {{block ^bb7 is used but not defined in this region}}
  cf.br ^bb7
^bb1:
  func.return
}

// -----

// A long string that is not closed is found at once.
func.func @f() attributes {
  // expected-error@+1 {{this string is not closed on its line, or holds a wrong escape}}
  note = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
} {
  func.return
}

// -----

// A file that ends too early.
// CHECK: error: expected an operation or '}', got the end of the text
// expected-error@+3 {{got the end of the text}}
func.func @f() {
  func.return
