// RUN: weft-opt %s -t cuda | filecheck %s
// The comment above a kernel says how it is launched.

func.func @main(%A: memref<8xf32>) attributes {
    low.params = [#low.param<"A", memref<8xf32>, readwrite, []>], low.symbols = []} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  low.launch @once blocks(%c3, %c2, %c1) threads(%c32, %c1, %c1) (%A) : memref<8xf32>
  low.launch @twice blocks(%c2, %c1, %c1) threads(%c32, %c1, %c1) (%A) : memref<8xf32>
  low.launch @twice blocks(%c3, %c1, %c1) threads(%c32, %c1, %c1) (%A) : memref<8xf32>
  func.return
}
// CHECK:      // Blocks "S", "C" of the program: 3 x 2 x 1 blocks of 32 x 1 x 1 threads.
// CHECK-NEXT: __launch_bounds__(32) once(
func.func @once(%A: memref<8xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "S, C">} {
  func.return
}
// CHECK:      // Block "C" of the program: ? x 1 x 1 blocks of 32 x 1 x 1 threads.
// CHECK-NEXT: __launch_bounds__(32) twice(
func.func @twice(%A: memref<8xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  func.return
}
// CHECK:      // Block "C" of the program: blocks of 32 x 1 x 1 threads.
// CHECK-NEXT: __launch_bounds__(32) never(
func.func @never(%A: memref<8xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">} {
  func.return
}
