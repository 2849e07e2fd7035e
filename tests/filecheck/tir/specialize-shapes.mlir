// RUN: weft-opt %s -p 'specialize-shapes{shapes="A=n:2..9 x 8"}' | filecheck %s
// RUN: weft-opt %s -p 'specialize-shapes{shapes="A=6x8"}' | filecheck %s --check-prefix=ALL
// RUN: weft-opt %s -p 'specialize-shapes{shapes="A=kxk"}' | filecheck %s --check-prefix=EQUAL

func.func @f(%A: memref<?x?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?x?xf32>
  %m = memref.dim %A, %c1 : memref<?x?xf32>
  %c2 = arith.constant 2 : index
  %m2 = arith.muli %m, %c2 : index
  tir.assume_shape %B[%m2] : memref<?xf32>
  %t = memref.alloc(%m2) : memref<?xf32>
  tir.for %i in %n {
    tir.for %j in %m2 {
      tir.block "T" iters(%vi: spatial<%n>, %vj: spatial<%m2>) = [%i, %j] {
        %a = memref.load %A[%vi, %c0] : memref<?x?xf32>
        memref.store %a, %t[%vj] : memref<?xf32>
      }
      tir.block "B" iters(%vi: spatial<%n>, %vj: spatial<%m2>) = [%i, %j] {
        %a = memref.load %t[%vj] : memref<?xf32>
        memref.store %a, %B[%vj] : memref<?xf32>
      }
    }
  }
  func.return
}

// CHECK: func.func @f(%A: memref<?x8xf32>, %B: memref<16xf32>)
// CHECK: tir.assume [2] <= [%n] because "its stated range is 2..9"
// CHECK: tir.assume [%n] <= [9] because "its stated range is 2..9"
// CHECK: memref.alloc() : memref<16xf32>
// CHECK: tir.for %j in 16 {
// CHECK: iters(%vi: spatial<%{{.*}}>, %vj: spatial<16>)

// ALL: func.func @f(%A: memref<6x8xf32>, %B: memref<16xf32>)
// ALL-NOT: assume
// ALL: tir.for %i in 6 {

// EQUAL: %k = memref.dim %A, %c0
// EQUAL: tir.assume_shape %A[%{{.*}}, %k] : memref<?x?xf32>
