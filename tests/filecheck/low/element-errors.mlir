// RUN: weft-opt %s --split-input-file --verify-diagnostics -p lower-tir-to-low

// expected-error@+1 {{@f: elements of memref<4xi8> are no ui16, as tir.element states}}
func.func @f(%A: memref<4xi8> {tir.element = ui16}) {
  tir.for %i in 4 {
    tir.block "A" iters(%v: spatial<4>) = [%i] {
      %a = memref.load %A[%v] : memref<4xi8>
      memref.store %a, %A[%v] : memref<4xi8>
    }
  }
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @g is memref<4xui8> to callers and memref<4xi16> here: values are i8}}
func.func @g(%A: memref<4xi16>) attributes {low.params = [#low.param<"A", memref<4xui8>, read, []>]} {
  func.return
}

// -----

// expected-error@+1 {{parameter 'A' of @h is memref<4xi4> to callers and memref<4xi4> here: values are i8}}
func.func @h(%A: memref<4xi4>) attributes {low.params = [#low.param<"A", memref<4xi4>, read, []>]} {
  func.return
}
