// RUN: weft-opt %s --split-input-file --verify-diagnostics

func.func @operands(%n: index) {
  // expected-error@+1 {{tir.intrinsic has 1 operands, and its call names _0, _1: `T.f(_0, _1)`}}
  tir.intrinsic "T.f(_0, _1)"(%n) : (index) -> ()
  func.return
}

// -----

func.func @python() {
  // expected-error@+1 {{tir.intrinsic: `T.f(` is no Python}}
  tir.intrinsic "T.f("() : () -> ()
  func.return
}

// -----

func.func @parts() {
  // expected-error@+1 {{tir.intrinsic: `T.f([1])` is no call of values, numbers and texts}}
  tir.intrinsic "T.f([1])"() : () -> ()
  func.return
}
