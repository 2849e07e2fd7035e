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

// -----

// C: arith.extf: a value of f8E5M2 stands between arith.bitcast and arith.extf or arith.truncf only
func.func @chosen(%A: memref<2xi8>, %B: memref<2xf32>, %which: i1) attributes {
    low.params = [#low.param<"A", memref<2xf8E5M2>, read, []>, #low.param<"B", memref<2xf32>, write, []>,
                  #low.param<"which", i1, read, []>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %byte = memref.load %A[%c0] : memref<2xi8>
  %a = arith.bitcast %byte : i8 to f8E5M2
  %b = arith.select %which, %a, %a : f8E5M2
  %x = arith.extf %b : f8E5M2 to f32
  memref.store %x, %B[%c0] : memref<2xf32>
  func.return
}
