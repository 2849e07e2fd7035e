// RUN: not weft-opt %s --split-input-file -p 'low-legalize{target=cudo}' 2>&1 | filecheck %s
// RUN: not weft-opt %s --split-input-file -p 'low-legalize{target=c}' 2>&1 | filecheck %s --check-prefix=C

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
