// RUN: weft-opt %s -p low-canonicalize | filecheck %s

// Pure calls are shared and erased, and stay in their loop; calls that may have effects are left as they are.
func.func private @pure(f32) -> f32 attributes {low.pure}
func.func private @any(f32) -> f32
func.func @calls(%x: f32, %A: memref<8xf32>, %B: memref<8xf32>) attributes {low.params = [
    #low.param<"x", f32, read, []>, #low.param<"A", memref<8xf32>, write, []>, #low.param<"B", memref<8xf32>, write, []>
  ], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %unused = func.call @pure(%x) : (f32) -> f32
    %p = func.call @pure(%x) : (f32) -> f32
    %q = func.call @pure(%x) : (f32) -> f32
    %lost = func.call @any(%x) : (f32) -> f32
    %r = func.call @any(%x) : (f32) -> f32
    %s = arith.addf %p, %q : f32
    memref.store %s, %A[%i] : memref<8xf32>
    memref.store %r, %B[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: func.func @calls
// CHECK:         scf.for %[[I:\w+]] = %[[C0:\w+]] to %[[C8:\w+]] step %[[C1:\w+]] {
// CHECK-NEXT:      %[[p:[a-z]+]] = func.call @pure(%x) : (f32) -> f32
// CHECK-NEXT:      %[[LOST:\w+]] = func.call @any(%x) : (f32) -> f32
// CHECK-NEXT:      %[[R:\w+]] = func.call @any(%x) : (f32) -> f32
// CHECK-NEXT:      %[[S:\w+]] = arith.addf %[[p]], %[[p]] : f32
// CHECK-NEXT:      memref.store %[[S]], %A[%[[I]]] : memref<8xf32>
// CHECK-NEXT:      memref.store %[[R]], %B[%[[I]]] : memref<8xf32>
// CHECK-NEXT:    }
