// RUN: not weft-opt %s --split-input-file 2>&1 | filecheck %s

func.func @in_loop(%n: index) {
  tir.for %i in %n {
    tir.assume [%n] == [4]
  }
  func.return
}
// CHECK: tir.assume must be at the top of a function, not in a loop or block

// -----

func.func @after_loop(%n: index) {
  tir.for %i in %n {
  }
  tir.assume [%n] == [4]
  func.return
}
// CHECK: tir.assume must precede the loops of a function

// -----

func.func @relation(%n: index) {
  tir.assume [%n] > [4]
  func.return
}
// CHECK: in a relation (==, <= or <)

// -----

func.func @pairs(%n: index) {
  tir.assume [%n, %n] == [4, 4]
  func.return
}
// CHECK: tir.assume compares one expression with one
