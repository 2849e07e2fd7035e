// RUN: weft-opt %s --split-input-file -p tir-state-preconditions | filecheck %s
// RUN: weft-opt %s --split-input-file -p tir-state-preconditions | weft-opt --split-input-file | filecheck %s
// RUN: weft-opt %s --split-input-file -p tir-state-preconditions 2>&1 | filecheck %s --check-prefix=REMARK
// RUN: weft-opt %s --split-input-file -p lower-tir-to-low | filecheck %s --check-prefix=LOW

// Extents that differ: a disjunction, because an empty loop accesses nothing.

func.func @shift(%A: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  %m = memref.dim %B, %c0 : memref<?xf32>
  tir.for %i in %m {
    tir.block "B" iters(%v: spatial<%m>) = [%i] {
      %next = affine.apply affine_map<(d0) -> (d0 + 5)> (%v)
      %a = memref.load %A[%next] : memref<?xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @shift
// CHECK:         %[[LEAST:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK-NEXT:    tir.assume [%[[LEAST]]] < [0] because "block \22B\22 reads A out of bounds otherwise"
// CHECK-NEXT:    tir.for
// LOW-LABEL: @shift
// LOW-SAME:    low.assume = ["m + 5 <= n or m <= 0 # block \22B\22 reads A out of bounds otherwise, at {{.*}}"]

// -----

// A parameter whose extent no op reads; the strongest of three conditions is stated.

func.func @fixed(%A: memref<?xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      %next = affine.apply affine_map<(d0) -> (d0 + 3)> (%v)
      %b = memref.load %A[%next] : memref<?xf32>
      %other = affine.apply affine_map<(d0) -> (d0 floordiv 2 + 2)> (%v)
      %c = memref.load %A[%other] : memref<?xf32>
      %ab = arith.addf %a, %b : f32
      %abc = arith.addf %ab, %c : f32
      memref.store %abc, %B[%v] : memref<8xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @fixed
// CHECK-NEXT:    %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %A_d0 = memref.dim %A, %[[C0]] : memref<?xf32>
// CHECK-NEXT:    tir.assume [11] <= [%A_d0] because "block \22B\22 reads A out of bounds otherwise"
// CHECK-NEXT:    tir.for

// -----

// What is proved, by the extents, by guards or by facts, is not stated; nor what data decide.

func.func @proved(%A: memref<?xf32>, %I: memref<?xindex>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %I[%n] : memref<?xindex>
  tir.assume_shape %B[%n] : memref<?xf32>
  tir.assume [%n mod 4] == [0]
  %last = affine.apply affine_map<(d0) -> (d0 - 1)> (%n)
  %quarters = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%n)
  tir.for %i in %quarters {
    tir.for %j in 4 {
      tir.block "B" iters(%v: spatial<%n>) = [%i * 4 + %j] {
        %before = affine.apply affine_map<(d0) -> (d0 - 1)> (%v)
        %after = affine.apply affine_map<(d0) -> (d0 + 1)> (%v)
        %low = arith.maxsi %before, %c0 : index
        %high = arith.minsi %after, %last : index
        %a = memref.load %A[%low] : memref<?xf32>
        %b = memref.load %A[%high] : memref<?xf32>
        %p = memref.load %I[%v] : memref<?xindex>
        %c = memref.load %A[%p] : memref<?xf32>
        %ab = arith.addf %a, %b : f32
        %abc = arith.addf %ab, %c : f32
        memref.store %abc, %B[%v] : memref<?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @proved
// CHECK:         tir.assume [%n mod 4] == [0]
// CHECK-NOT:     because

// -----

// Products of a symbol and a loop variable: the greatest index, by intervals.

func.func @flat(%A: memref<?xf32>, %B: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %B, %c0 : memref<?x?xf32>
  %n = memref.dim %B, %c1 : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.block "B" iters(%vi: spatial<%m>, %vj: spatial<%n>) = [%i, %j] {
        %row = arith.muli %vi, %n : index
        %at = arith.addi %row, %vj : index
        %a = memref.load %A[%at] : memref<?xf32>
        memref.store %a, %B[%vi, %vj] : memref<?x?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @flat
// LOW-LABEL: @flat
// LOW-SAME:    low.assume = ["m * n <= A_d0 or m <= 0 or n <= 0 # block \22B\22 reads A out of bounds otherwise, at {{.*}}"]

// -----

// A call: what the callee assumes is assumed by the caller, in its own terms; a private callee needs no reason.

func.func private @first(%A: memref<?xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<?xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  func.return
}
func.func @main(%X: memref<?xf32>, %Y: memref<8xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?xf32>
  %twice = affine.apply affine_map<(d0) -> (d0 * 2)> (%n)
  %t = memref.alloc(%twice) : memref<?xf32>
  func.call @first(%X, %Y) : (memref<?xf32>, memref<8xf32>) -> ()
  func.call @first(%t, %Y) : (memref<?xf32>, memref<8xf32>) -> ()
  func.return
}
// CHECK-LABEL: @first
// CHECK:         tir.assume [8] <= [%A_d0]{{$}}
// CHECK-LABEL: @main
// CHECK:         tir.assume [8] <= [%n] because "block \22B\22 reads A out of bounds otherwise"
// CHECK-NEXT:    tir.assume [8] <= [%n * 2] because

// -----

// A remainder by a size that is a parameter, which is computed with the sign of the divisor: a size of the caller.

func.func private @parts(%A: memref<?xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %a = memref.dim %A, %c0 : memref<?xf32>
  %r = arith.remsi %a, %n : index
  %signs = arith.xori %r, %n : index
  %differ = arith.cmpi slt, %signs, %c0 : index
  %inexact = arith.cmpi ne, %r, %c0 : index
  %wrong = arith.andi %differ, %inexact : i1
  %shifted = arith.addi %r, %n : index
  %rest = arith.select %wrong, %shifted, %r : index
  tir.assume [%rest] == [0] because "block \22parts\22 requires it"
  func.return
}
func.func @divided(%X: memref<?xf32>, %Y: memref<?xf32>) attributes {tir.function} {
  %c0 = arith.constant 0 : index
  %m = memref.dim %Y, %c0 : memref<?xf32>
  func.call @parts(%X, %m) : (memref<?xf32>, index) -> ()
  func.return
}
// CHECK-LABEL: @divided
// CHECK:         %[[REST:.*]] = arith.remsi %X_d0, %m : index
// CHECK:         tir.assume [%[[REST]]] == [0] because "block \22parts\22 requires it"
// LOW-LABEL: @divided
// LOW-SAME:    low.assume = ["X_d0 % m == 0 # block \22parts\22 requires it, at {{.*}}"]

// -----

// One of two indices, as of a recurrent network that runs backwards in its second direction.

func.func @directions(%A: memref<?xf32>, %B: memref<2x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<2x?xf32>
  tir.for %d in 2 {
    tir.for %i in %n {
      tir.block "B" iters(%vd: spatial<2>, %v: spatial<%n>) = [%d, %i] {
        %is_reverse = arith.cmpi eq, %vd, %c1 : index
        %back = affine.apply affine_map<(d0, d1) -> (d0 - d1 - 1)> (%n, %v)
        %at = arith.select %is_reverse, %back, %v : index
        %a = memref.load %A[%at] : memref<?xf32>
        memref.store %a, %B[%vd, %v] : memref<2x?xf32>
      }
    }
  }
  func.return
}
// CHECK-LABEL: @directions
// CHECK-NOT:     tir.assume [
// CHECK:         func.return

// -----

// Extents of the parameters of a private function bound its numbers: %s is at least 5, so the quotient is positive.

func.func private @rows(%A: memref<?x4xf32>, %s: index, %B: memref<?xf32>) {
  %half = affine.apply affine_map<(d0) -> ((d0 - 5) floordiv 2)> (%s)
  tir.assume_shape %A[%half] : memref<?x4xf32>
  %all = affine.apply affine_map<(d0) -> (((d0 - 5) floordiv 2) * 4)> (%s)
  tir.assume_shape %B[%all] : memref<?xf32>
  tir.for %i in %all {
    tir.block "B" iters(%v: spatial<%all>) = [%i] {
      %column = arith.floordivsi %v, %half : index
      %row = arith.remsi %v, %half : index
      %a = memref.load %A[%row, %column] : memref<?x4xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @rows
// CHECK:         tir.assume [5] <= [%s] because "A has an extent below 0 otherwise"
// CHECK-NOT:     tir.assume [
// CHECK:         func.return

// -----

// Callers take over that extents of temporaries are not negative: an array of `%n - 4` elements.

func.func private @edges(%A: memref<?xf32>, %n: index, %B: memref<?xf32>) {
  %inner = affine.apply affine_map<(d0) -> (d0 - 4)> (%n)
  tir.assume_shape %A[%inner] : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  %c0 = arith.constant 0 : index
  %last = affine.apply affine_map<(d0) -> (d0 - 5)> (%n)
  tir.for %i in %n {
    tir.block "B" iters(%v: spatial<%n>) = [%i] {
      %below = arith.minsi %v, %last : index
      %at = arith.maxsi %below, %c0 : index
      %a = memref.load %A[%at] : memref<?xf32>
      memref.store %a, %B[%v] : memref<?xf32>
    }
  }
  func.return
}

func.func @padded(%X: memref<?xf32>, %B: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %X, %c0 : memref<?xf32>
  tir.assume_shape %B[%n] : memref<?xf32>
  %inner = affine.apply affine_map<(d0) -> (d0 - 4)> (%n)
  %A = memref.alloc(%inner) : memref<?xf32>
  func.call @edges(%A, %n, %B) : (memref<?xf32>, index, memref<?xf32>) -> ()
  func.return
}
// CHECK-LABEL: @padded
// CHECK-DAG:     tir.assume [4] <= [%n] because "A has an extent below 0 otherwise"
// CHECK-DAG:     tir.assume {{.*}} because "block \22B\22 reads A out of bounds otherwise"

// -----

// If one of two indices is out of bounds, the other may be read: a condition that is necessary, and a remark.

func.func @later(%A: memref<?xf32>, %B: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %is_late = arith.cmpi sgt, %v, %c4 : index
      %next = affine.apply affine_map<(d0) -> (d0 + 2)> (%v)
      %at = arith.select %is_late, %next, %v : index
      %a = memref.load %A[%at] : memref<?xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  func.return
}
// CHECK-LABEL: @later
// CHECK:         tir.assume [8] <= [%n] because "block \22B\22 reads A out of bounds otherwise"
// REMARK: index 0 of A depends on sizes in a way that calls do not check
