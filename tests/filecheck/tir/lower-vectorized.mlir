// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-flatten,tir-lower-vectorized,low-canonicalize | filecheck %s

func.func @strides(%A: memref<16x8xf32>, %B: memref<16x16xf32>, %C: memref<8x16xf32>) {
  tir.for %i in 16 {
    tir.for %j in 8 vectorized {
      %a = memref.load %A[%i, %j] : memref<16x8xf32>
      %b = memref.load %B[%i, %i] : memref<16x16xf32>
      %p = arith.mulf %a, %b : f32
      memref.store %p, %C[%j, %i] : memref<8x16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @strides
// CHECK:         %[[offsets:.*]] = arith.constant dense<[0, 16, 32, 48, 64, 80, 96, 112]> : vector<8xindex>
// CHECK:         tir.for %[[I:\w+]] in 16 {
// CHECK:           %[[A:\w+]] = vector.load %A[%{{.*}}] : memref<128xf32>, vector<8xf32>
// CHECK:           %[[place:.*]] = affine.apply affine_map<(d0) -> ((d0 * 17))> (%[[I]])
// CHECK-NEXT:      %[[B:\w+]] = memref.load %B[%[[place]]] : memref<256xf32>
// CHECK-NEXT:      %[[b:.*]] = vector.broadcast %[[B]] : f32 to vector<8xf32>
// CHECK-NEXT:      %[[P:\w+]] = arith.mulf %[[A]], %[[b]] : vector<8xf32>
// CHECK-NEXT:      %[[i:i_.*]] = vector.broadcast %[[I]] : index to vector<8xindex>
// CHECK-NEXT:      %[[places:.*]] = arith.addi %[[i]], %[[offsets]] : vector<8xindex>
// CHECK-NEXT:      low.scatter %[[P]], %C[%[[places]]] : vector<8xf32>, memref<128xf32>, vector<8xindex>

// -----

// A condition that differs between lanes is a mask; comparisons that only the lane decides are constants.

func.func @masks(%A: memref<29xf32>, %B: memref<29xf32>) {
  %n = arith.constant 29 : index
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 + 24)> (%i)
    %inside = arith.cmpi slt, %x, %n : index
    scf.if %inside {
      %a = memref.load %A[%x] : memref<29xf32>
      %positive = arith.cmpf ogt, %a, %zero : f32
      %r = arith.select %positive, %a, %zero : f32
      memref.store %r, %B[%x] : memref<29xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @masks
// CHECK:         %[[mask:.*]] = arith.constant dense<[true, true, true, true, true, false, false, false]> : vector<8xi1>
// CHECK:         %[[A:\w+]] = vector.maskedload %A[%{{.*}}], %[[mask]], %{{.*}} : memref<29xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
// CHECK:         %[[POSITIVE:\w+]] = low.cmpf ogt, %[[A]], %{{.*}} : vector<8xf32>
// CHECK:         %[[R:\w+]] = low.select %[[POSITIVE]], %[[A]], %{{.*}} : vector<8xf32>
// CHECK:         vector.maskedstore %B[%{{.*}}], %[[mask]], %[[R]]

// -----

// Inner loops stay around vector operations; sums of integers over the lanes are reductions.

func.func @reduction(%A: memref<4x8xi32>, %S: memref<4xi32>) {
  tir.for %k in 8 vectorized {
    tir.for %i in 4 {
      %a = memref.load %A[%i, %k] : memref<4x8xi32>
      %s = memref.load %S[%i] : memref<4xi32>
      %r = arith.addi %s, %a : i32
      memref.store %r, %S[%i] : memref<4xi32>
    }
  }
  func.return
}
// CHECK-LABEL: @reduction
// CHECK:         tir.for %[[I:\w+]] in 4 {
// CHECK:           %[[A:\w+]] = vector.load %A
// CHECK:           %[[S:\w+]] = memref.load %S[%[[I]]] : memref<4xi32>
// CHECK:           %[[sum:.*]] = vector.reduction <add>, %[[A]] : vector<8xi32> into i32
// CHECK-NEXT:      %[[R:\w+]] = arith.addi %[[S]], %[[sum]] : i32
// CHECK-NEXT:      memref.store %[[R]], %S[%[[I]]] : memref<4xi32>

// -----

// The order of a float sum matters unless the loop says otherwise: unrolled, in order.

func.func @in_order(%A: memref<8xf32>, %S: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  tir.for %k in 8 vectorized {
    %a = memref.load %A[%k] : memref<8xf32>
    %s = memref.load %S[%c0] : memref<1xf32>
    %r = arith.addf %s, %a : f32
    memref.store %r, %S[%c0] : memref<1xf32>
  }
  tir.for %k in 8 vectorized attributes {reassociate} {
    %a = memref.load %A[%k] : memref<8xf32>
    %s = memref.load %S[%c0] : memref<1xf32>
    %r = arith.addf %s, %a : f32
    memref.store %r, %S[%c0] : memref<1xf32>
  }
  func.return
}
// CHECK-LABEL: @in_order
// CHECK:         tir.for %[[K:\w+]] in 8 unrolled {
// CHECK:           arith.addf %[[S:\w+]], %[[A:\w+]] : f32
// CHECK:         }
// CHECK:         vector.reduction <add>, %{{.*}} fastmath<reassoc> : vector<8xf32> into f32

// -----

// A division runs in no inactive lane.

func.func @division(%A: memref<8xi32>, %B: memref<8xi32>) {
  %zero = arith.constant 0 : i32
  tir.for %i in 8 vectorized {
    %b = memref.load %B[%i] : memref<8xi32>
    %ok = arith.cmpi ne, %b, %zero : i32
    scf.if %ok {
      %a = memref.load %A[%i] : memref<8xi32>
      %q = arith.divsi %a, %b : i32
      memref.store %q, %A[%i] : memref<8xi32>
    }
  }
  func.return
}
// CHECK-LABEL: @division
// CHECK:         %[[ones:.*]] = arith.constant dense<1> : vector<8xi32>
// CHECK:         %[[OK:\w+]] = low.cmpi ne, %[[B:\w+]]
// CHECK:         %[[divisor:.*]] = low.select %[[OK]], %[[B]], %[[ones]] : vector<8xi32>
// CHECK:         arith.divsi %[[A:\w+]], %[[divisor]] : vector<8xi32>

// -----

// Each lane has its own copy of a buffer that is allocated in the loop.

func.func @private(%A: memref<8x2xf32>, %B: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tir.for %i in 8 vectorized {
    %T = memref.alloc() : memref<2xf32>
    tir.for %k in 2 {
      %a = memref.load %A[%i, %k] : memref<8x2xf32>
      memref.store %a, %T[%k] : memref<2xf32>
    }
    %x = memref.load %T[%c0] : memref<2xf32>
    %y = memref.load %T[%c1] : memref<2xf32>
    %d = arith.subf %x, %y : f32
    memref.store %d, %B[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @private
// CHECK:         %T = memref.alloca() {alignment = 64 : i64} : memref<16xf32, "local">
// CHECK:         tir.for %[[K:\w+]] in 2 {
// CHECK:           vector.store %{{.*}}, %T[%{{.*}}] : memref<16xf32, "local">, vector<8xf32>
// CHECK:         vector.load %T[%{{.*}}] : memref<16xf32, "local">, vector<8xf32>

// -----

// Lanes that lie in a few vectors are shuffled out of these; the last vector ends at the last lane.

func.func @every_second(%A: memref<64xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 * 2 + 3)> (%i)
    %a = memref.load %A[%x] : memref<64xf32>
    memref.store %a, %B[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @every_second
// CHECK-NEXT:    %[[first:.*]] = arith.constant 3 : index
// CHECK-NEXT:    %[[second:.*]] = arith.constant 10 : index
// CHECK:         %[[A:\w+]] = vector.load %A[%[[first]]] : memref<64xf32>, vector<8xf32>
// CHECK-NEXT:    %[[A1:\w+]] = vector.load %A[%[[second]]] : memref<64xf32>, vector<8xf32>
// CHECK:         %[[R:\w+]] = vector.shuffle %[[A]], %[[A1]] [0, 2, 4, 6, 9, 11, 13, 15] : vector<8xf32>, vector<8xf32>
// CHECK-NOT:     low.gather
// CHECK:         vector.store %[[R]], %B

// -----

// A vector that is shorter than the lanes, and lanes in reverse order.

func.func @repeated(%A: memref<64xf32>, %B: memref<8xf32>, %C: memref<8xf32>) {
  tir.for %i in 8 vectorized {
    %x = affine.apply affine_map<(d0) -> (d0 floordiv 2)> (%i)
    %a = memref.load %A[%x] : memref<64xf32>
    memref.store %a, %B[%i] : memref<8xf32>
    %y = affine.apply affine_map<(d0) -> (-d0 + 20)> (%i)
    %b = memref.load %A[%y] : memref<64xf32>
    memref.store %b, %C[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @repeated
// CHECK:         %[[A:\w+]] = vector.load %A[%{{.*}}] : memref<64xf32>, vector<4xf32>
// CHECK:         vector.shuffle %[[A]], %[[A]] [0, 0, 1, 1, 2, 2, 3, 3] : vector<4xf32>, vector<4xf32>
// CHECK:         %[[B:\w+]] = vector.load %A[%{{.*}}] : memref<64xf32>, vector<8xf32>
// CHECK:         vector.shuffle %[[B]], %[[B]] [7, 6, 5, 4, 3, 2, 1, 0] : vector<8xf32>, vector<8xf32>

// -----

// Lanes that run are known where a condition is the same for all values of a loop, and so are those of two conditions:
// what they read of every second element is shuffled.

func.func @known_for_all_values(%A: memref<2x40xf32>, %B: memref<2x8xf32>) {
  tir.for %k in 2 {
    tir.for %l in 8 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2 - 2)> (%k, %l)
      %zero = arith.constant 0 : index
      %inside = arith.cmpi sge, %x, %zero : index
      %seven = arith.constant 7 : index
      %before = arith.cmpi slt, %l, %seven : index
      scf.if %inside {
        scf.if %before {
          %a = memref.load %A[%k, %x] : memref<2x40xf32>
          memref.store %a, %B[%k, %l] : memref<2x8xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @known_for_all_values
// CHECK-DAG:     %[[MASK:.*]] = arith.constant dense<[false, true, true, true, true, true, true, false]> : vector<8xi1>
// CHECK:         vector.load %A
// CHECK:         vector.shuffle
// CHECK-NOT:     low.gather
// CHECK:         vector.maskedstore %B[%{{.*}}], %[[MASK]]

// -----

// One whose outcome depends on the loop is a mask that is computed.

func.func @known_for_some_values(%A: memref<2x40xf32>, %B: memref<2x8xf32>) {
  tir.for %k in 2 {
    tir.for %l in 8 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2 - 1)> (%k, %l)
      %zero = arith.constant 0 : index
      %inside = arith.cmpi sge, %x, %zero : index
      scf.if %inside {
        %a = memref.load %A[%k, %x] : memref<2x40xf32>
        memref.store %a, %B[%k, %l] : memref<2x8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @known_for_some_values
// CHECK:         %[[MASK:.*]] = low.cmpi sge, %{{.*}} : vector<8xindex>
// CHECK:         low.gather %A
// CHECK:         vector.maskedstore %B[%{{.*}}], %[[MASK]]

// -----

// From an array of symbolic size, the elements of lanes that run are loaded under it, and shuffled.

func.func @known_for_some_values_of_symbolic_size(%A: memref<?xf32>, %B: memref<16xf32>) {
  tir.for %k in 2 {
    tir.for %l in 8 vectorized {
      %x = affine.apply affine_map<(d0, d1) -> (d0 + d1 * 2 - 1)> (%k, %l)
      %y = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%k, %l)
      %zero = arith.constant 0 : index
      %inside = arith.cmpi sge, %x, %zero : index
      scf.if %inside {
        %a = memref.load %A[%x] : memref<?xf32>
        memref.store %a, %B[%y] : memref<16xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @known_for_some_values_of_symbolic_size
// CHECK:         %[[SOME:.*]] = low.cmpi sge, %{{.*}} : vector<8xindex>
// CHECK:         %[[FIRST:.*]] = vector.shuffle %[[SOME]], %{{.*}}[0, 8, 1, 8, 2, 8, 3, 8]
// CHECK:         vector.maskedload %A[%{{.*}}], %[[FIRST]]
// CHECK:         vector.maskedload %A
// CHECK:         vector.shuffle {{.*}} : vector<8xf32>, vector<8xf32>
// CHECK:         vector.maskedstore %B[%{{.*}}], %[[SOME]]

// -----

// A masked load yields the other lanes of a choice. If two results are the loaded value, or a result of an earlier
// choice is, the other lanes are selected.

func.func @other_lanes(%A: memref<8xf32>, %M: memref<8xi32>, %B: memref<8xf32>, %C: memref<8xf32>, %D: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %seven = arith.constant 7 : i32
  tir.for %i in 8 vectorized {
    %m = memref.load %M[%i] : memref<8xi32>
    %on = arith.cmpi slt, %m, %seven : i32
    %b = scf.if %on -> (f32) {
      %a = memref.load %A[%i] : memref<8xf32>
      scf.yield %a : f32
    } else {
      scf.yield %one : f32
    }
    %again = scf.if %on -> (f32) {
      scf.yield %b : f32
    } else {
      scf.yield %two : f32
    }
    memref.store %b, %B[%i] : memref<8xf32>
    memref.store %again, %B[%i] : memref<8xf32>
    %c, %d = scf.if %on -> (f32, f32) {
      %a = memref.load %A[%i] : memref<8xf32>
      scf.yield %a, %a : f32, f32
    } else {
      scf.yield %one, %two : f32, f32
    }
    memref.store %c, %C[%i] : memref<8xf32>
    memref.store %d, %D[%i] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @other_lanes
// CHECK:         %[[ON:\w+]] = low.cmpi slt
// CHECK:         %[[ONE:\w+]] = vector.broadcast %one
// CHECK-NEXT:    %[[B:\w+]] = vector.maskedload %A[%{{.*}}], %[[ON]], %[[ONE]] :
// CHECK:         %[[TWO:\w+]] = vector.broadcast %two
// CHECK-NEXT:    %[[AGAIN:\w+]] = low.select %[[ON]], %[[B]], %[[TWO]] :
// CHECK-NEXT:    vector.store %[[B]], %B
// CHECK-NEXT:    vector.store %[[AGAIN]], %B
// CHECK-NEXT:    %[[BOTH:\w+]] = vector.maskedload %A[%{{.*}}], %[[ON]], %{{.*}} :
// CHECK-NEXT:    %[[C:\w+]] = low.select %[[ON]], %[[BOTH]], %[[ONE]] :
// CHECK-NEXT:    %[[D:\w+]] = low.select %[[ON]], %[[BOTH]], %[[TWO]] :
// CHECK-NEXT:    vector.store %[[C]], %C
// CHECK-NEXT:    vector.store %[[D]], %D
