// What a block states of a buffer is dropped when inlining brings other accesses to that buffer into it.
// RUN: weft-opt %s -p 'tir-compute-inline{func=f block=B},tir-reverse-compute-inline{func=g block=C},verify-level{level=tir}' | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NOT: tir.reads
// CHECK: tir.writes %C[%[[VI:\w+]]] : memref<8xf32>
func.func @f(%A: memref<16xf32>, %C: memref<8xf32>) {
  %c8 = arith.constant 8 : index
  %B = memref.alloc() : memref<8xf32>
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      %at = arith.addi %vi, %c8 : index
      %a = memref.load %A[%at] : memref<16xf32>
      memref.store %a, %B[%vi] : memref<8xf32>
    }
  }
  tir.for %i in 8 {
    tir.block "C" iters(%vi: spatial<8>) = [%i] {
      tir.reads %A[%vi] : memref<16xf32>
      tir.reads %B[%vi] : memref<8xf32>
      tir.writes %C[%vi] : memref<8xf32>
      %a = memref.load %A[%vi] : memref<16xf32>
      %b = memref.load %B[%vi] : memref<8xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%vi] : memref<8xf32>
    }
  }
  func.return
}

// CHECK-LABEL: func.func @g
// CHECK: tir.reads %D[%[[VI:\w+]]] : memref<8xf32>
// CHECK-NOT: tir.reads
func.func @g(%A: memref<16xf32>, %C: memref<8xf32>, %D: memref<8xf32>) {
  %c8 = arith.constant 8 : index
  %B = memref.alloc() : memref<8xf32>
  tir.for %i in 8 {
    tir.block "B" iters(%vi: spatial<8>) = [%i] {
      tir.reads %A[%vi] : memref<16xf32>
      tir.reads %D[%vi] : memref<8xf32>
      %a = memref.load %A[%vi] : memref<16xf32>
      %d = memref.load %D[%vi] : memref<8xf32>
      %b = arith.mulf %a, %d : f32
      memref.store %b, %B[%vi] : memref<8xf32>
    }
  }
  tir.for %i in 8 {
    tir.block "C" iters(%vi: spatial<8>) = [%i] {
      %at = arith.addi %vi, %c8 : index
      %a = memref.load %A[%at] : memref<16xf32>
      %b = memref.load %B[%vi] : memref<8xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%vi] : memref<8xf32>
    }
  }
  func.return
}
