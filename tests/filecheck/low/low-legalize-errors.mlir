// RUN: weft-opt %s --verify-diagnostics -p 'low-legalize{target=cudo}' | filecheck %s

// CHECK: low-legalize: unknown target 'cudo', did you mean 'cuda'?
func.func @f() attributes {low.params = [], low.symbols = []} {
  func.return
}
