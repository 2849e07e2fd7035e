// RUN: weft-opt %s -p plan-memory --split-input-file --verify-diagnostics
// RUN: weft-opt %s -p lower-graph --split-input-file --verify-diagnostics

// expected-error@below {{plan-memory: @branches has 2 blocks: branches are not supported}}
func.func @branches() {
  cf.br ^bb1
^bb1:
  func.return
}

// -----

// expected-error@below {{plan-memory: @numbers has 2 blocks: branches are not supported}}
func.func @numbers(%n: i32) -> i32 {
  cf.br ^bb1(%n : i32)
^bb1(%i: i32):
  func.return %i : i32
}
