// RUN: weft-opt %s -t llvm-ir --split-input-file --verify-diagnostics

func.func @f() attributes {low.params = [], low.symbols = []} {
  // expected-error@+1 {{the module has no memref.global @nobody}}
  %K = memref.get_global @nobody : memref<2xf32>
  func.return
}

// -----

// expected-error@+1 {{memref.global @open needs a static size, got memref<?xf32>}}
"memref.global"() <{sym_name = "open", type = memref<?xf32>, initial_value, sym_visibility = "private"}> : () -> ()

// -----

// A function that says it only reads a buffer passes it to one that writes it.
func.func @write(%A: memref<2xf32>) attributes {low.params = [#low.param<"A", memref<2xf32>, write, []>], low.symbols = []} {
  func.return
}
func.func @f(%A: memref<2xf32>) attributes {low.params = [#low.param<"A", memref<2xf32>, read, []>], low.symbols = []} {
  // expected-error@+1 {{func.call writes parameter 'A' of @f, which is only read}}
  func.call @write(%A) : (memref<2xf32>) -> ()
  func.return
}
