// RUN: weft-opt %s --split-input-file --validate | filecheck %s --check-prefix=SAME
// RUN: weft-opt %s -p "lower-tir-to-low{target=c}" --split-input-file --validate | filecheck %s --check-prefix=LOW
// RUN: weft-opt %s -p lower-tir-to-low -t llvm-ir --split-input-file | filecheck %s --check-prefix=LLVM

// SAME: %s = low.stride %A {dimension = 0 : i64} : memref<?x?xf32, strided<[?, 1], offset: ?>>
// SAME-NEXT: tir.assume_strides %C[%s] : memref<?x?xf32, strided<[?, 1]>>

// Symbols of a parameter: its extents, then its strides.
// LOW: func.func @double(%A: memref<?xf32>, %C: memref<?xf32>, %m: index, %n: index, %s: index) attributes
// LOW-SAME: #low.param<"A", memref<?x?xf32, strided<[?, 1], offset: ?>>, read, ["m", "n", "s"]>
// LOW-SAME: #low.param<"C", memref<?x?xf32, strided<[?, 1]>>, write, ["m", "n", "s"]>
// LOW: scf.for %[[I:\w+]]
// LOW-NEXT: %[[ROW:.*]] = arith.muli %[[I]], %s : index
// LOW: scf.for %[[J:\w+]]
// LOW-NEXT: %[[AT:.*]] = arith.addi %[[ROW]], %[[J]] : index
// LOW-NEXT: memref.load %A[%[[AT]]] : memref<?xf32>
// A stride that calls decide may be negative: addresses may lie before the first element.
// LLVM: define void @weft_function_double(ptr noalias {{.*}} %A, ptr noalias {{.*}} %C, i64 %m, i64 %n, i64 %s)
// LLVM: getelementptr inbounds float, ptr %A
func.func @double(%A: memref<?x?xf32, strided<[?, 1], offset: ?>>, %C: memref<?x?xf32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %A, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  %n = memref.dim %A, %c1 : memref<?x?xf32, strided<[?, 1], offset: ?>>
  tir.assume_shape %C[%m, %n] : memref<?x?xf32, strided<[?, 1]>>
  %s = low.stride %A {dimension = 0} : memref<?x?xf32, strided<[?, 1], offset: ?>>
  tir.assume_strides %C[%s] : memref<?x?xf32, strided<[?, 1]>>
  tir.for %i in %m { tir.for %j in %n {
    tir.block "C" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<?x?xf32, strided<[?, 1], offset: ?>>
      %c = arith.addf %a, %a : f32
      memref.store %c, %C[%vi, %vj] : memref<?x?xf32, strided<[?, 1]>>
    }
  } }
  func.return
}

// -----

// Fixed strides need no symbol; calls hand on the strides of what they pass.
// LOW: func.func @inner(%X: memref<?xf32>, %X_s0: index)
// LOW: arith.muli %[[I:\w+]], %X_s0
// LOW: func.func @outer(%A: memref<?xf32>)
// LOW: %[[S:.*]] = arith.constant 24 : index
// LOW: func.call @inner(%A, %[[S]]) : (memref<?xf32>, index) -> ()
// LLVM: define void @inner
// LLVM: getelementptr inbounds float, ptr %X
func.func @inner(%X: memref<4x8xf32, strided<[?, 1]>>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 4 { tir.for %j in 8 vectorized {
    tir.block "X" iters(%vi: spatial<4>, %vj: spatial<8>) = [%i, %j] {
      memref.store %one, %X[%vi, %vj] : memref<4x8xf32, strided<[?, 1]>>
    }
  } }
  func.return
}
func.func @outer(%A: memref<4x8xf32, strided<[24, 1]>>) attributes {tir.function} {
  %X = "memref.cast"(%A) : (memref<4x8xf32, strided<[24, 1]>>) -> memref<4x8xf32, strided<[?, 1]>>
  func.call @inner(%X) : (memref<4x8xf32, strided<[?, 1]>>) -> ()
  func.return
}
