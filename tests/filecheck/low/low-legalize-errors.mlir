// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'low-legalize{target=cudo}' | filecheck %s
// RUN: weft-opt %s --split-input-file --verify-diagnostics -p 'low-legalize{target=c}' | filecheck %s --check-prefix=C

// CHECK: low-legalize: unknown target 'cudo', did you mean 'cuda'?
func.func @f() attributes {low.params = [], low.symbols = []} {
  func.return
}

// -----

// C: math.ipowi of i1 has no form in any target: extend it first
func.func @truth(%a: i1) attributes {low.params = [#low.param<"a", i1, read, []>], low.symbols = []} {
  %p = math.ipowi %a, %a : i1
  func.return
}
