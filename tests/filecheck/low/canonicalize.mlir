// RUN: weft-opt %s -p low-canonicalize | filecheck %s

func.func @clean(%A: memref<64xf32>, %B: memref<64xf32>, %n: index) attributes {low.params = [#low.param<"A", memref<64xf32>, read, []>, #low.param<"B", memref<64xf32>, write, []>, #low.param<"n", index, read, []>], low.symbols = []} {
  %unread = memref.alloca() : memref<8xf32, "local">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %eight = arith.constant 8 : index
    %p = arith.muli %i, %eight : index
    %q = arith.muli %i, %c8 : index
    %inv = arith.muli %n, %c8 : index
    %quotient = arith.divsi %c8, %n : index
    scf.for %j = %c0 to %c8 step %c1 {
      %x = arith.addi %p, %j : index
      %y = arith.addi %q, %j : index
      %z = arith.addi %x, %inv : index
      %w = arith.addi %z, %quotient : index
      %unused = memref.load %A[%y] : memref<64xf32>
      %a = memref.load %A[%w] : memref<64xf32>
      memref.store %a, %unread[%j] : memref<8xf32, "local">
      memref.store %a, %B[%y] : memref<64xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
    }
  }
  func.return
}
// CHECK-LABEL: @clean
// CHECK-NEXT:    %[[C0:\w+]] = arith.constant 0 : index
// CHECK-NEXT:    %[[C1:\w+]] = arith.constant 1 : index
// CHECK-NEXT:    %[[C8:\w+]] = arith.constant 8 : index
// CHECK-NEXT:    %[[INV:\w+]] = arith.muli %n, %[[C8]] : index
// CHECK-NEXT:    scf.for %[[I:\w+]] = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT:      %[[P:\w+]] = arith.muli %[[I]], %[[C8]] : index
// CHECK-NEXT:      %[[QUOTIENT:\w+]] = arith.divsi %[[C8]], %n : index
// CHECK-NEXT:      scf.for %[[J:\w+]] = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT:        %[[X:\w+]] = arith.addi %[[P]], %[[J]] : index
// CHECK-NEXT:        %[[Z:\w+]] = arith.addi %[[X]], %[[INV]] : index
// CHECK-NEXT:        %[[W:\w+]] = arith.addi %[[Z]], %[[QUOTIENT]] : index
// CHECK-NEXT:        %[[A:\w+]] = memref.load %A[%[[W]]] : memref<64xf32>
// CHECK-NEXT:        memref.store %[[A]], %B[%[[X]]] : memref<64xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
