// RUN: weft-opt %s --split-input-file | weft-opt --split-input-file | filecheck %s --check-prefix=ROUND
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low | filecheck %s

// Facts print as they are read, and stay as what calls check.

func.func @facts(%A: memref<?x?xf32>, %k: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  %mn = arith.muli %m, %n : index
  tir.assume [%n mod 32] == [0]
  tir.assume [%m] <= [1024]
  tir.assume [%k * 2 - 1] < [(%m + 3) floordiv 4]
  tir.assume [%mn] == [%k]
  func.return
}
// ROUND-LABEL: @facts
// ROUND:         tir.assume [%[[N:\w+]] mod 32] == [0]
// ROUND-NEXT:    tir.assume [%[[M:\w+]]] <= [1024]
// ROUND-NEXT:    tir.assume [%k * 2 - 1] < [(%[[M]] + 3) floordiv 4]
// ROUND-NEXT:    tir.assume [%{{.*}}] == [%k]

// CHECK-LABEL: @facts
// CHECK-SAME:    low.assume = ["n % 32 == 0", "m <= 1024", "2 * k - 1 < (m + 3) // 4", "m * n == k"]
// CHECK-NOT:     tir.assume

// -----

// A computed extent is a symbol of its own that calls check.

func.func @computed(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %m = memref.dim %A, %c0 : memref<?xf32>
  %n = affine.apply affine_map<(d0) -> (d0 + 1)> (%m)
  tir.assume_shape %B[%n] : memref<?xf32>
  func.return
}
// CHECK-LABEL: @computed
// CHECK-SAME:    low.symbols = ["m", "B_d0"], low.assume = ["B_d0 == m + 1"]

// -----

// A condition that follows from the facts does not reach the loop.

func.func @guarded(%A: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  tir.assume [%n mod 32] == [0]
  %o = affine.apply affine_map<(d0) -> ((d0 + 31) floordiv 32)> (%n)
  tir.for %i in %o {
    tir.for %j in 32 {
      tir.block "A" iters(%v: spatial<%n>) = [%i * 32 + %j] where [%i * 32 + %j] < [%n] {
        memref.store %zero, %A[%v] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @guarded
// CHECK-NOT:     scf.if
// CHECK-NOT:     minsi
// CHECK:         vector.store
// CHECK-NOT:     {{memref|vector}}.store
// CHECK:         func.return
