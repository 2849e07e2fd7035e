// RUN: weft-opt %s -p 'tir-recode{block=C index=1 encoding=unsigned}' | filecheck %s --check-prefixes=CHECK,SHIFT
// RUN: weft-opt %s -p 'tir-recode{block=C index=1 encoding=int16}' | filecheck %s --check-prefixes=CHECK,WIDE

func.func @products(%A: memref<4x8xi8>, %B: memref<8x6xi8>, %C: memref<4x6xi32>) {
  %one = arith.constant 1 : i32
  tir.for %i in 4 { tir.for %j in 6 { tir.for %k in 8 {
    tir.block "C" iters(%vi: spatial<4>, %vj: spatial<6>, %vk: reduce<8>) = [%i, %j, %k] {
      tir.init { memref.store %one, %C[%vi, %vj] : memref<4x6xi32> }
      %a = memref.load %A[%vi, %vk] : memref<4x8xi8>
      %wide_a = arith.extsi %a : i8 to i32
      %b = memref.load %B[%vk, %vj] : memref<8x6xi8>
      %wide_b = arith.extsi %b : i8 to i32
      %p = arith.muli %wide_a, %wide_b : i32
      %c = memref.load %C[%vi, %vj] : memref<4x6xi32>
      %s = arith.addi %c, %p : i32
      memref.store %s, %C[%vi, %vj] : memref<4x6xi32>
    } } } }
  func.return
}
// The copy, half of the range away, with its highest bits flipped.
// CHECK-LABEL: @products
// SHIFT-DAG:     %B_global = memref.alloc() : memref<8x6xi8>
// SHIFT-DAG:     %C_sums = memref.alloc() : memref<4xi32>
// SHIFT-DAG:     %C_global = memref.alloc() : memref<4x6xi32>
// SHIFT:         tir.block "B_global"
// SHIFT-NEXT:      %[[B:.*]] = memref.load %B[%[[V0:\w+]], %[[V1:\w+]]] : memref<8x6xi8>
// SHIFT-NEXT:      %[[HALF:.*]] = arith.constant -128 : i8
// SHIFT-NEXT:      %[[FLIPPED:.*]] = arith.xori %[[B]], %[[HALF]] : i8
// SHIFT-NEXT:      memref.store %[[FLIPPED]], %B_global[%[[V0]], %[[V1]]] : memref<8x6xi8>
// The other factor, added up once for all columns.
// SHIFT:         tir.for %[[I:\w+]] in 4 {
// SHIFT-NEXT:      tir.for %[[K:\w+]] in 8 {
// SHIFT-NEXT:        tir.block "C_sums" iters(%[[VI:\w+]]: spatial<4>, %[[VK:\w+]]: reduce<8>) = [%[[I]], %[[K]]] {
// SHIFT-NEXT:          tir.init {
// SHIFT-NEXT:            %[[ZERO:.*]] = arith.constant 0 : i32
// SHIFT-NEXT:            memref.store %[[ZERO]], %C_sums[%[[VI]]] : memref<4xi32>
// SHIFT:               %[[A:\w+]] = memref.load %A[%[[VI]], %[[VK]]] : memref<4x8xi8>
// SHIFT-NEXT:          %[[WIDE_A:\w+]] = arith.extsi %[[A]] : i8 to i32
// SHIFT-NEXT:          %[[OLD:.*]] = memref.load %C_sums[%[[VI]]] : memref<4xi32>
// SHIFT-NEXT:          %[[NEW:.*]] = arith.addi %[[OLD]], %[[WIDE_A]] : i32
// SHIFT-NEXT:          memref.store %[[NEW]], %C_sums[%[[VI]]] : memref<4xi32>
// The products, read with the other sign.
// SHIFT:         tir.block "C"
// SHIFT:           memref.store %[[ONE:\w+]], %C_global
// SHIFT:           arith.extsi %[[A]]
// SHIFT-NEXT:      %[[U:.*]] = memref.load %B_global
// SHIFT-NEXT:      arith.extui %[[U]] : i8 to i32
// The results, put right.
// SHIFT:         tir.block "C_global"
// SHIFT-NEXT:      %[[SUM:.*]] = memref.load %C_global[%[[I:.*]], %[[J:.*]]] : memref<4x6xi32>
// SHIFT-NEXT:      %[[ROW:.*]] = memref.load %C_sums[%[[I]]] : memref<4xi32>
// SHIFT-NEXT:      %[[FACTOR:.*]] = arith.constant -128 : i32
// SHIFT-NEXT:      %[[MOVED:.*]] = arith.muli %[[ROW]], %[[FACTOR]] : i32
// SHIFT-NEXT:      %[[TOTAL:.*]] = arith.addi %[[SUM]], %[[MOVED]] : i32
// SHIFT-NEXT:      memref.store %[[TOTAL]], %C[%[[I]], %[[J]]] : memref<4x6xi32>

// WIDE:          %B_global = memref.alloc() : memref<8x6xi16>
// WIDE:          tir.block "B_global"
// WIDE-NEXT:       %[[B:.*]] = memref.load %B[%[[V0:\w+]], %[[V1:\w+]]] : memref<8x6xi8>
// WIDE-NEXT:       %[[W:.*]] = arith.extsi %[[B]] : i8 to i16
// WIDE-NEXT:       memref.store %[[W]], %B_global[%[[V0]], %[[V1]]] : memref<8x6xi16>
// WIDE:          tir.block "C"
// WIDE:            %[[L:.*]] = memref.load %B_global
// WIDE-NEXT:       arith.extsi %[[L]] : i16 to i32
// WIDE-NOT:      tir.block
