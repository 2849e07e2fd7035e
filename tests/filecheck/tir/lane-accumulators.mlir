// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized,low-canonicalize | filecheck %s

// Lanes are combined once, behind the loop of the reduction.

func.func @sum(%A: memref<4x16x8xf32>, %S: memref<4xf32>) {
  tir.for %i in 4 {
    tir.for %k in 16 {
      tir.for %l in 8 vectorized attributes {reassociate = true} {
        %a = memref.load %A[%i, %k, %l] : memref<4x16x8xf32>
        %s = memref.load %S[%i] : memref<4xf32>
        %r = arith.addf %s, %a : f32
        memref.store %r, %S[%i] : memref<4xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @sum
// CHECK:         %[[start:.*]] = arith.constant dense<-0.000000e+00> : vector<8xf32>
// CHECK:         tir.for %[[I:\w+]] in 4 {
// CHECK:           %S_lanes = memref.alloca() {alignment = 64 : i64} : memref<8xf32, "local">
// CHECK:           vector.store %[[start]], %S_lanes
// CHECK-NEXT:      tir.for %[[K:\w+]] in 16 {
// CHECK:             %[[A:\w+]] = vector.load %A
// CHECK-NEXT:        %[[old:.*]] = vector.load %S_lanes
// CHECK-NEXT:        %[[new:.*]] = arith.addf %[[old]], %[[A]] : vector<8xf32>
// CHECK-NEXT:        vector.store %[[new]], %S_lanes
// CHECK-NEXT:      }
// CHECK-NEXT:      %[[lanes:.*]] = vector.load %S_lanes
// CHECK-NEXT:      %[[sum:.*]] = vector.reduction <add>, %[[lanes]] fastmath<reassoc> : vector<8xf32> into f32
// CHECK-NEXT:      %[[before:.*]] = memref.load %S[%[[I]]] : memref<4xf32>
// CHECK-NEXT:      %[[after:.*]] = arith.addf %[[before]], %[[sum]] : f32
// CHECK-NEXT:      memref.store %[[after]], %S[%[[I]]] : memref<4xf32>

// -----

// A loop that may run over nothing touches nothing then.

func.func @dynamic(%A: memref<?x8xi32>, %S: memref<1xi32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?x8xi32>
  tir.for %k in %n {
    tir.for %l in 8 vectorized {
      %a = memref.load %A[%k, %l] : memref<?x8xi32>
      %s = memref.load %S[%c0] : memref<1xi32>
      %r = arith.addi %s, %a : i32
      memref.store %r, %S[%c0] : memref<1xi32>
    }
  }
  func.return
}
// CHECK-LABEL: @dynamic
// CHECK:         tir.for %[[K:\w+]] in %[[n:.*]] {
// CHECK:         }
// CHECK-NEXT:    %[[some:.*]] = arith.cmpi sgt, %[[n]], %{{.*}} : index
// CHECK-NEXT:    scf.if %[[some]] {
// CHECK-NEXT:      vector.load %[[S_LANES:\w+]]
// CHECK:           memref.store %{{.*}}, %S

// -----

// Another reader in the loop sees each partial result: lanes are combined where it expects them.

func.func @prefix(%A: memref<4x8xi32>, %S: memref<1xi32>, %P: memref<4xi32>) {
  %c0 = arith.constant 0 : index
  tir.for %k in 4 {
    tir.for %l in 8 vectorized {
      %a = memref.load %A[%k, %l] : memref<4x8xi32>
      %s = memref.load %S[%c0] : memref<1xi32>
      %r = arith.addi %s, %a : i32
      memref.store %r, %S[%c0] : memref<1xi32>
    }
    %p = memref.load %S[%c0] : memref<1xi32>
    memref.store %p, %P[%k] : memref<4xi32>
  }
  func.return
}
// CHECK-LABEL: @prefix
// CHECK-NOT:     alloca
// CHECK:         tir.for %[[K:\w+]] in 4 {
// CHECK:           vector.reduction <add>
// CHECK:           memref.store %{{.*}}, %S
// CHECK:           memref.store %{{.*}}, %P

// -----

// The place moves with %k: nothing is shared by its iterations.

func.func @moving(%A: memref<4x8xi32>, %S: memref<4xi32>) {
  tir.for %k in 4 {
    tir.for %l in 8 vectorized {
      %a = memref.load %A[%k, %l] : memref<4x8xi32>
      %s = memref.load %S[%k] : memref<4xi32>
      %r = arith.addi %s, %a : i32
      memref.store %r, %S[%k] : memref<4xi32>
    }
  }
  func.return
}
// CHECK-LABEL: @moving
// CHECK-NOT:     alloca
// CHECK:         vector.reduction <add>

// -----

// Rows that an unrolled loop goes through have accumulators of their own, which are combined row by row.

func.func @rows(%A: memref<6x32xi32>, %S: memref<6xi32>) {
  tir.for %i in 2 {
    tir.for %k in 4 {
      tir.for %r in 3 unrolled {
        tir.for %l in 8 vectorized {
          %row = affine.apply affine_map<(d0, d1) -> (d0 * 3 + d1)> (%i, %r)
          %column = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%k, %l)
          %a = memref.load %A[%row, %column] : memref<6x32xi32>
          %s = memref.load %S[%row] : memref<6xi32>
          %t = arith.addi %s, %a : i32
          memref.store %t, %S[%row] : memref<6xi32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK:         tir.for %[[I:\w+]] in 2 {
// CHECK:           %S_lanes = memref.alloca() {alignment = 64 : i64} : memref<24xi32, "local">
// CHECK:           vector.store %{{.*}}, %S_lanes[%{{.*}}] : memref<24xi32, "local">, vector<8xi32>
// CHECK-NEXT:      vector.store
// CHECK-NEXT:      vector.store
// CHECK:           tir.for %[[K:\w+]] in 4 {
// CHECK:             tir.for %[[R:\w+]] in 3 unrolled {
// CHECK-NOT:           vector.reduction
// CHECK:               vector.store %{{.*}}, %S_lanes[%{{.*}}]
// CHECK:           vector.reduction <add>
// CHECK:           memref.store %{{.*}}, %S
// CHECK:           vector.reduction <add>
// CHECK:           memref.store %{{.*}}, %S
// CHECK:           vector.reduction <add>
// CHECK:           memref.store %{{.*}}, %S
// CHECK-NOT:       vector.reduction

// -----

// With no loop around them that stays at their places, and where there are too many, lanes are combined at once.

func.func @few(%A: memref<3x8xi32>, %S: memref<3xi32>) {
  tir.for %r in 3 unrolled {
    tir.for %l in 8 vectorized {
      %a = memref.load %A[%r, %l] : memref<3x8xi32>
      %s = memref.load %S[%r] : memref<3xi32>
      %t = arith.addi %s, %a : i32
      memref.store %t, %S[%r] : memref<3xi32>
    }
  }
  func.return
}
// CHECK-LABEL: @few
// CHECK-NOT:     memref.alloca
// CHECK:         vector.reduction <add>

// -----

func.func @many(%A: memref<17x32xi32>, %S: memref<17xi32>) {
  tir.for %k in 4 {
    tir.for %r in 17 unrolled {
      tir.for %l in 8 vectorized {
        %column = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%k, %l)
        %a = memref.load %A[%r, %column] : memref<17x32xi32>
        %s = memref.load %S[%r] : memref<17xi32>
        %t = arith.addi %s, %a : i32
        memref.store %t, %S[%r] : memref<17xi32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @many
// CHECK-NOT:     memref.alloca
// CHECK:         vector.reduction <add>
