// RUN: weft-opt %s --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file | xdsl-opt --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file > %t.once
// RUN: weft-opt %t.once -f mlir --split-input-file > %t.twice
// RUN: diff %t.once %t.twice
// RUN: weft-opt %s --split-input-file -p canonicalize,cse --print-between-passes | filecheck %s --check-prefix=BETWEEN
// RUN: weft-opt %s --split-input-file -p canonicalize,cse --timing 2>&1 >%t.out | filecheck %s --check-prefix=TIMING
// RUN: weft-opt %s --split-input-file --print-debuginfo -o %t.debug
// RUN: filecheck %s --check-prefix=LOCATION --input-file %t.debug
// RUN: weft-opt - --split-input-file < %s | filecheck %s

// CHECK-LABEL: func.func @first
// CHECK-NEXT:    %[[C:\w+]] = arith.constant 1 : i32
// BETWEEN: IR after canonicalize:
// BETWEEN: func.func @first
// BETWEEN: func.func @first
// LOCATION: func.func @first
// LOCATION: arith.constant 1 : i32 loc("{{.*}}weft-opt.mlir":[[# @LINE + 2]]:8)
func.func @first() -> i32 {
  %c = arith.constant 1 : i32
  func.return %c : i32
}

// -----

// CHECK: // -----
// CHECK-LABEL: func.func @second
// LOCATION: func.func @second
// LOCATION: func.return loc("there":7:9)
// LOCATION: } loc("{{.*}}weft-opt.mlir":[[# @LINE + 1]]:1)
func.func @second() {
  func.return loc("there":7:9)
}

// -----
// Nothing but a comment is an empty module.
// CHECK: builtin.module {
// CHECK-NEXT: }

// TIMING:      stage {{ *}}ms
// TIMING:      (parse) {{ *}}{{[0-9.]+}}
// TIMING-NEXT: (verify)
// TIMING-NEXT: canonicalize
// TIMING-NEXT: cse
// TIMING-NEXT: (output)
// TIMING-NEXT: total
