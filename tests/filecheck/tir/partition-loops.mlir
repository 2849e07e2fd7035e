// RUN: weft-opt %s --split-input-file -p tir-lower-blocks,tir-partition-loops | filecheck %s

// A split that does not divide: 31 full tiles, then two iterations, no condition left.

func.func @split(%C: memref<126xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i0 in 32 {
    tir.for %i1 in 4 {
      tir.block "C" iters(%vi: spatial<126>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [126] {
        memref.store %zero, %C[%vi] : memref<126xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @split
// CHECK:         tir.for %i0 in 31 {
// CHECK-NEXT:      tir.for %i1 in 4 {
// CHECK-NOT:         scf.if
// CHECK:         tir.for %i1 in 2 {
// CHECK-NOT:         scf.if
// CHECK:         func.return

// -----

// Padding: the middle needs no condition; where the condition is false, its other branch stays.

func.func @padding(%A: memref<14xf32>, %C: memref<16xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 16 parallel {
    tir.block "C" iters(%v: spatial<16>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 - 1)> (%v)
      %c0 = arith.constant 0 : index
      %c14 = arith.constant 14 : index
      %p = arith.cmpi sge, %x, %c0 : index
      %q = arith.cmpi slt, %x, %c14 : index
      %inside = arith.andi %p, %q : i1
      %r = scf.if %inside -> (f32) {
        %a = memref.load %A[%x] : memref<14xf32>
        scf.yield %a : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %r, %C[%v] : memref<16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @padding
// CHECK-NOT:     scf.if
// CHECK:         memref.store %zero, %C
// CHECK:         tir.for %{{.*}} in 14 parallel {
// CHECK:           %a = memref.load %A
// CHECK-NEXT:      memref.store %a, %C
// CHECK:         memref.store %zero, %C
// CHECK-NOT:     scf.if

// -----

// The first iteration is peeled off.

func.func @first(%A: memref<8xf32>, %C: memref<8xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  tir.for %k in 8 {
    %is_first = arith.cmpi eq, %k, %c0 : index
    scf.if %is_first {
      memref.store %zero, %C[%c0] : memref<8xf32>
    }
    %a = memref.load %A[%k] : memref<8xf32>
    memref.store %a, %C[%k] : memref<8xf32>
  }
  func.return
}
// CHECK-LABEL: @first
// CHECK:         memref.store %zero, %C
// CHECK:         tir.for %{{.*}} in 7 {
// CHECK-NOT:       scf.if
// CHECK:           memref.store %a

// -----

// Dynamic extents: n floordiv 4 full tiles.

func.func @dynamic(%C: memref<?xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %C, %c0 : memref<?xf32>
  %tiles = affine.apply affine_map<(d0) -> (d0 ceildiv 4)> (%n)
  tir.for %i0 in %tiles {
    tir.for %i1 in 4 {
      tir.block "C" iters(%vi: spatial<%n>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [%n] {
        memref.store %zero, %C[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @dynamic
// CHECK:         %[[full:.*]] = affine.apply affine_map<(d0) -> ((d0 floordiv 4))> (%n)
// CHECK:         tir.for %i0 in %[[full]] {
// CHECK-NEXT:      tir.for %i1 in 4 {
// CHECK-NOT:         scf.if
// CHECK:         %[[some:.*]] = arith.cmpi sgt, %{{.*}}, %{{.*}} : index
// CHECK:         scf.if %[[some]] {
// CHECK:           tir.for %i1 in %
// CHECK-NOT:         scf.if

// -----

// What remains of unrolled loops has a version for each number of iterations.

func.func @versions(%C: memref<?xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %C, %c0 : memref<?xf32>
  %tiles = affine.apply affine_map<(d0) -> (d0 ceildiv 3)> (%n)
  tir.for %i0 in %tiles {
    tir.for %i1 in 3 unrolled {
      tir.block "C" iters(%vi: spatial<%n>) = [%i0 * 3 + %i1] where [%i0 * 3 + %i1] < [%n] {
        memref.store %zero, %C[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @versions
// CHECK:         tir.for %i1 in 3 unrolled {
// CHECK:         scf.if %{{.*}} {
// CHECK:           %[[one:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : index
// CHECK:           scf.if %[[one]] {
// CHECK-NOT:         tir.for
// CHECK:             memref.store
// CHECK:           } else {
// CHECK:             tir.for %i1{{.*}} in 2 unrolled {
// CHECK-NOT:         scf.if

// -----

// A version for each number of vectors: the last one accumulates in all lanes, and reads others' memory under a mask.

func.func @vectors(%A: memref<?xf32>, %C: memref<?xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %C, %c0 : memref<?xf32>
  %tiles = affine.apply affine_map<(d0) -> (d0 ceildiv 8)> (%n)
  tir.for %i0 in %tiles {
    %sums = memref.alloc() : memref<8xf32, "local">
    tir.for %i1 in 2 unrolled {
      tir.for %i2 in 4 vectorized {
        tir.block "init" iters(%vi: spatial<%n>) = [%i0 * 8 + %i1 * 4 + %i2] where [%i0 * 8 + %i1 * 4 + %i2] < [%n] {
          %vl = affine.apply affine_map<(d0) -> (d0 mod 8)> (%vi)
          %a = memref.load %A[%vi] : memref<?xf32>
          memref.store %a, %sums[%vl] : memref<8xf32, "local">
        }
      }
    }
    tir.for %i1 in 2 unrolled {
      tir.for %i2 in 4 vectorized {
        tir.block "C" iters(%vi: spatial<%n>) = [%i0 * 8 + %i1 * 4 + %i2] where [%i0 * 8 + %i1 * 4 + %i2] < [%n] {
          %vl = affine.apply affine_map<(d0) -> (d0 mod 8)> (%vi)
          %s = memref.load %sums[%vl] : memref<8xf32, "local">
          memref.store %s, %C[%vi] : memref<?xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @vectors
// CHECK:         tir.for %i1 in 2 unrolled {
// CHECK:         tir.for %i1 in 2 unrolled {
// CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : index
// One vector is left:
// CHECK:           %[[sums:.*]] = memref.alloc() : memref<8xf32, "local">
// CHECK:           tir.for %i2 in 4 vectorized {
// CHECK:             %[[inside:.*]] = arith.cmpi slt
// CHECK:             %[[a:.*]] = scf.if %[[inside]] -> (f32) {
// CHECK:             } else {
// CHECK:             memref.store %[[a]], %[[sums]]
// CHECK:           tir.for %i2 in 4 vectorized {
// CHECK:             scf.if
// CHECK:               memref.load %[[sums]]
// CHECK:               memref.store %{{.*}}, %C

// -----

// Lanes are never cut; where the guard changes inside a vector it stays, to become a mask.

func.func @lanes(%C: memref<30xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i0 in 4 {
    tir.for %i1 in 8 vectorized {
      tir.block "C" iters(%vi: spatial<30>) = [%i0 * 8 + %i1] where [%i0 * 8 + %i1] < [30] {
        memref.store %zero, %C[%vi] : memref<30xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @lanes
// CHECK:         tir.for %i0 in 3 {
// CHECK-NEXT:      tir.for %i1 in 8 vectorized {
// CHECK-NOT:         scf.if
// CHECK:         tir.for %i1 in 8 vectorized {
// CHECK:           scf.if

// -----

// What holds in the first iteration alone does not hold in the others: they have no condition left.
// CHECK-LABEL: func.func @first_rows
// CHECK:         tir.for %j in 8 {
// CHECK-NEXT:      memref.store
// CHECK-NOT:     scf.if
// CHECK:         tir.for {{.*}} in 134 {
// CHECK-NOT:     scf.if
// CHECK:           memref.load
// CHECK:         func.return
func.func @first_rows(%A: memref<135x8xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  tir.for %i in 135 {
    tir.for %j in 8 {
      %first = arith.cmpi slt, %i, %c1 : index
      scf.if %first {
        memref.store %zero, %B[%j] : memref<8xf32>
      }
    }
    tir.for %j in 8 {
      %b = memref.load %B[%j] : memref<8xf32>
      memref.store %b, %A[%i, %j] : memref<135x8xf32>
    }
  }
  func.return
}

// -----

// The end of a loop is cut again: both of its last iterations reach the border, and only one is short.

func.func @ends(%A: memref<14xf32>, %C: memref<14xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i0 in 4 {
    tir.for %i1 in 4 {
      tir.block "C" iters(%v: spatial<14>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [14] {
        %x = affine.apply affine_map<(d0) -> (d0 + 5)> (%v)
        %c14 = arith.constant 14 : index
        %inside = arith.cmpi slt, %x, %c14 : index
        %r = scf.if %inside -> (f32) {
          %a = memref.load %A[%x] : memref<14xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %r, %C[%v] : memref<14xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @ends
// CHECK:         tir.for %i0 in 2 {
// CHECK-NEXT:      tir.for %i1 in 4 {
// CHECK:         memref.load
// CHECK:         tir.for %{{.*}} in 3 {
// CHECK:           memref.store %zero
// CHECK:         tir.for %{{.*}} in 2 {
// CHECK:           memref.store %zero
// CHECK-NOT:     scf.if

// -----

// Each iteration of an unrolled loop knows on which side of a constant it is: no copies for the padding.

func.func @unrolled(%A: memref<15xf32>, %C: memref<16xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  tir.for %i in 16 unrolled {
    tir.block "C" iters(%v: spatial<16>) = [%i] {
      %x = affine.apply affine_map<(d0) -> (d0 - 1)> (%v)
      %c0 = arith.constant 0 : index
      %p = arith.cmpi sge, %x, %c0 : index
      %r = scf.if %p -> (f32) {
        %a = memref.load %A[%x] : memref<15xf32>
        scf.yield %a : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %r, %C[%v] : memref<16xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @unrolled
// CHECK-NEXT:    %zero
// CHECK-NEXT:    tir.for %{{.*}} in 16 unrolled {
// CHECK:           scf.if
// CHECK-NOT:     tir.for

// -----

// Of five tiles of 48 columns, one is whole, one in part, and three hold nothing: the loop that they are in ends before
// them. The same from the other side.

func.func @none(%C: memref<64x7xf32>, %v: f32) {
  tir.for %i in 7 {
    tir.for %t in 5 {
      tir.for %j in 48 {
        tir.block "C" iters(%vi: spatial<7>, %vj: spatial<64>) = [%i, %t * 48 + %j] where [%t * 48 + %j] < [64] {
          memref.store %v, %C[%vj, %vi] : memref<64x7xf32>
        }
      }
      tir.for %j in 48 {
        tir.block "D" iters(%vi: spatial<7>, %vj: spatial<64>) = [%i, %t * 48 + %j] where [%t * 48 + %j] < [64] {
          %c = memref.load %C[%vj, %vi] : memref<64x7xf32>
          %d = arith.addf %c, %v : f32
          memref.store %d, %C[%vj, %vi] : memref<64x7xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @none
// CHECK-NEXT:    tir.for %i in 7 {
// CHECK:           tir.for %{{.*}} in 48 {
// CHECK:           tir.for %{{.*}} in 48 {
// CHECK:           tir.for %{{.*}} in 16 {
// CHECK:           tir.for %{{.*}} in 16 {
// CHECK-NOT:       tir.for
// CHECK-NOT:     scf.if
// CHECK:         func.return

// -----

func.func @none_before(%C: memref<64xf32>, %v: f32) {
  tir.for %t in 5 {
    tir.for %j in 48 {
      tir.block "C" iters(%vj: spatial<240>) = [%t * 48 + %j] {
        %c176 = arith.constant 176 : index
        %p = arith.cmpi sge, %vj, %c176 : index
        scf.if %p {
          %at = affine.apply affine_map<(d0) -> (d0 - 176)> (%vj)
          memref.store %v, %C[%at] : memref<64xf32>
        }
      }
    }
    tir.for %j in 48 {
      tir.block "D" iters(%vj: spatial<240>) = [%t * 48 + %j] {
        %c176 = arith.constant 176 : index
        %p = arith.cmpi sge, %vj, %c176 : index
        scf.if %p {
          %at = affine.apply affine_map<(d0) -> (d0 - 176)> (%vj)
          %c = memref.load %C[%at] : memref<64xf32>
          %d = arith.addf %c, %v : f32
          memref.store %d, %C[%at] : memref<64xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @none_before
// CHECK:         tir.for %{{.*}} in 16 {
// CHECK:         tir.for %{{.*}} in 16 {
// CHECK:         tir.for %{{.*}} in 48 {
// CHECK:         tir.for %{{.*}} in 48 {
// CHECK-NOT:     tir.for
// CHECK-NOT:     scf.if
// CHECK:         func.return

// -----

// Threads share all iterations of a parallel loop over nests: each chooses what to run. A parallel loop of elements is
// cut as ever.

func.func @shared(%C: memref<14x8xf32>, %D: memref<127xf32>, %v: f32) {
  tir.for %t in 4 parallel {
    tir.for %i in 4 {
      tir.for %j in 8 {
        tir.block "C" iters(%vi: spatial<14>, %vj: spatial<8>) = [%t * 4 + %i, %j] where [%t * 4 + %i] < [14] {
          memref.store %v, %C[%vi, %vj] : memref<14x8xf32>
        }
      }
    }
    tir.for %i in 4 {
      tir.for %j in 8 {
        tir.block "C2" iters(%vi: spatial<14>, %vj: spatial<8>) = [%t * 4 + %i, %j] where [%t * 4 + %i] < [14] {
          %c = memref.load %C[%vi, %vj] : memref<14x8xf32>
          %d = arith.addf %c, %v : f32
          memref.store %d, %C[%vi, %vj] : memref<14x8xf32>
        }
      }
    }
  }
  tir.for %t in 32 parallel {
    tir.for %l in 4 vectorized {
      tir.block "D" iters(%vi: spatial<127>) = [%t * 4 + %l] where [%t * 4 + %l] < [127] {
        memref.store %v, %D[%vi] : memref<127xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @shared
// CHECK:         tir.for %t in 4 parallel {
// CHECK:           [[MAIN:%.*]] = arith.cmpi slt, %t, %{{.*}} : index
// CHECK-NEXT:      scf.if [[MAIN]] {
// CHECK-NEXT:        tir.for %i in 4 {
// CHECK:             tir.for %i in 4 {
// CHECK:           } else {
// CHECK:             tir.for %i in 2 {
// CHECK:             tir.for %i in 2 {
// CHECK-NOT:       scf.if
// CHECK:         tir.for %t in 31 parallel {
// CHECK-NEXT:      tir.for %l in 4 vectorized {
// CHECK:         tir.for %l in 4 vectorized {
// CHECK-NOT:     parallel

// -----

// From the other side, and from both.

func.func @shared_ends(%A: memref<14x8xf32>, %C: memref<16x8xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c14 = arith.constant 14 : index
  tir.for %t in 8 parallel {
    tir.for %i in 2 {
      tir.for %j in 8 {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)> (%t, %i)
        %x = affine.apply affine_map<(d0) -> (d0 - 1)> (%row)
        %p = arith.cmpi sge, %x, %c0 : index
        %q = arith.cmpi slt, %x, %c14 : index
        %inside = arith.andi %p, %q : i1
        %r = scf.if %inside -> (f32) {
          %a = memref.load %A[%x, %j] : memref<14x8xf32>
          scf.yield %a : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %r, %C[%row, %j] : memref<16x8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @shared_ends
// CHECK:         tir.for %t in 8 parallel {
// CHECK:           scf.if %{{.*}} {
// CHECK:             scf.if %{{.*}} {
// CHECK-NEXT:          tir.for %i in 2 {
// CHECK:                 memref.load %A
// CHECK:             } else {
// CHECK:               memref.load %A
// CHECK:               memref.store %zero, %C
// CHECK:           } else {
// CHECK:             memref.store %zero, %C
// CHECK:             memref.load %A

// -----

// A bound that depends on a loop around, but is the same for all of its values: the first iteration alone has a
// condition.

func.func @same_bound(%C: memref<2x4x8xf32>) {
  tir.for %p in 2 {
    tir.for %o in 4 {
      tir.for %i in 8 {
        %zero = arith.constant 0.000000e+00 : f32
        %x = affine.apply affine_map<(d0, d1, d2) -> (d0 + d1 * 16 + d2 * 2 - 2)> (%p, %o, %i)
        %none = arith.constant 0 : index
        %inside = arith.cmpi sge, %x, %none : index
        %value = scf.if %inside -> (f32) {
          %one = arith.constant 1.000000e+00 : f32
          scf.yield %one : f32
        } else {
          scf.yield %zero : f32
        }
        memref.store %value, %C[%p, %o, %i] : memref<2x4x8xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @same_bound
// CHECK:         tir.for %p in 2 {
// CHECK:           tir.for %{{.*}} in 7 {
// CHECK:           tir.for %{{.*}} in 3 {
// CHECK-NOT:         scf.if
// CHECK:         func.return

// -----

// The panels of a factor are packed with a bound on the columns. The loop over panels ends where there are no columns.

func.func @panels(%B: memref<?x64xf32>, %P: memref<64x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %B, %c0 : memref<?x64xf32>
  tir.for %p in 64 {
    tir.for %j in 8 {
      tir.for %k in 64 {
        tir.for %l in 8 unrolled {
          %column = affine.apply affine_map<(d0, d1, d2) -> (d0 * 64 + d1 * 8 + d2)> (%p, %j, %l)
          %inside = arith.cmpi slt, %column, %n : index
          scf.if %inside {
            %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)> (%j, %l)
            %b = memref.load %B[%column, %k] : memref<?x64xf32>
            memref.store %b, %P[%p, %k, %at] : memref<64x64x64xf32>
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @panels
// CHECK:         %[[PANELS:.*]] = affine.apply affine_map<(d0) -> (((d0 + 63) floordiv 64))> (%n)
// CHECK-NEXT:    %[[SOME:.*]] = arith.minsi %{{.*}}, %[[PANELS]] : index
// CHECK-NEXT:    tir.for %p in %[[SOME]] {

// -----

// Zeros are stored in all panels.

func.func @filled_panels(%B: memref<?x64xf32>, %P: memref<64x64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %B, %c0 : memref<?x64xf32>
  tir.for %p in 64 {
    tir.for %j in 64 {
      tir.for %k in 64 {
        %column = affine.apply affine_map<(d0, d1) -> (d0 * 64 + d1)> (%p, %j)
        memref.store %zero, %P[%p, %k, %j] : memref<64x64x64xf32>
        %inside = arith.cmpi slt, %column, %n : index
        scf.if %inside {
          %b = memref.load %B[%column, %k] : memref<?x64xf32>
          memref.store %b, %P[%p, %k, %j] : memref<64x64x64xf32>
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @filled_panels
// CHECK:         tir.for %p in 64 {

// -----

// The first part of %j has one iteration, so that only the loops in it are left; %i is no end of a loop and is split.
func.func @dissolved(%A: memref<?xf32>, %n: index) {
  %one = arith.constant 1.0 : f32
  %tiles = affine.apply affine_map<()[s0] -> (s0 ceildiv 6)>()[%n]
  tir.for %j in 2 {
    tir.for %i in %tiles {
      tir.for %p in 10 {
        tir.for %r in 6 unrolled {
          %row = affine.apply affine_map<(d0, d1) -> (d0 * 6 + d1)> (%i, %r)
          %panel = affine.apply affine_map<(d0, d1) -> (d0 * 10 + d1)> (%j, %p)
          %twelve = arith.constant 12 : index
          %is_row = arith.cmpi slt, %row, %n : index
          %is_panel = arith.cmpi slt, %panel, %twelve : index
          %both = arith.andi %is_row, %is_panel : i1
          scf.if %both {
            memref.store %one, %A[%row] : memref<?xf32>
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @dissolved
// CHECK:         %[[N:\w+]] = affine.apply affine_map<{{.*}} floordiv 6{{.*}}> (%n)
// CHECK-NEXT:    %[[WHOLE:\w+]] = arith.maxsi %{{\w+}}, %[[N]]
// CHECK-NEXT:    tir.for %i in %[[WHOLE]] {
// CHECK-NEXT:      tir.for %p in 10 {
// CHECK-NEXT:        tir.for %r in 6 unrolled {
// CHECK-NEXT:          %{{\w+}} = affine.apply
// CHECK-NEXT:          memref.store

// -----

// In the version for one row, the loop over vectors of columns ends where there are no columns.

func.func @long_end(%B: memref<?x?xf32>, %P: memref<2048xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %B, %c0 : memref<?x?xf32>
  %n = memref.dim %B, %c1 : memref<?x?xf32>
  %rows = affine.apply affine_map<(d0) -> ((d0 + 3) floordiv 4)> (%m)
  tir.for %k in %rows {
    tir.for %j in 128 {
      tir.for %u in 4 unrolled {
        tir.for %l in 16 vectorized {
          %row = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%k, %u)
          %column = affine.apply affine_map<(d0, d1) -> (d0 * 16 + d1)> (%j, %l)
          %some = arith.cmpi slt, %row, %m : index
          %inside = arith.cmpi slt, %column, %n : index
          %both = arith.andi %some, %inside : i1
          scf.if %both {
            %b = memref.load %B[%row, %column] : memref<?x?xf32>
            %a = memref.load %P[%column] : memref<2048xf32>
            %s = arith.addf %a, %b : f32
            memref.store %s, %P[%column] : memref<2048xf32>
          }
        }
      }
    }
  }
  func.return
}
// CHECK-LABEL: @long_end
// CHECK-NOT:     tir.for %j in 128 {
// CHECK:         %[[VECTORS:.*]] = affine.apply affine_map<(d0) -> (((d0 + 15) floordiv 16))> (%n)
// CHECK-NEXT:    %[[ONES:.*]] = arith.minsi %{{.*}}, %[[VECTORS]] : index
// CHECK-NEXT:    tir.for %j in %[[ONES]] {
// CHECK-NOT:     tir.for %j in 128 {
// CHECK:         func.return
