// RUN: weft-opt %s --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | xdsl-opt --split-input-file | filecheck %s
// RUN: not weft-opt %s -p no-such-pass 2>&1 | filecheck %s --check-prefix=UNKNOWN

// UNKNOWN: no-such-pass

// CHECK-LABEL: func.func @first
func.func @first() {
  func.return
}

// -----

// CHECK-LABEL: func.func @second
func.func @second() {
  func.return
}
