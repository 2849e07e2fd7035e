// RUN: weft-opt %s -p plan-memory --split-input-file | filecheck %s
// RUN: weft-opt %s -p 'plan-memory{in-place=false}' --split-input-file | filecheck %s --check-prefix=APART
// RUN: weft-opt %s -p plan-memory,default-schedule --split-input-file | filecheck %s --check-prefix=SCHEDULED

// The last reader of a temporary writes over it, through casts too; a temporary that becomes a result lies in it from
// the start. The function that works in place has one parameter for the two.
// CHECK-LABEL: func.func @chain(%x: memref<64xf32>, %y: memref<64xf32>) attributes {tir.function, tir.parameter_access = [#low<access read>, #low<access write>], tir.arena_bytes = 0 : i64} {
// CHECK-NEXT:    func.call @twice(%x, %y)
// CHECK-NEXT:    func.call @twice_in_place(%y)
// CHECK-NEXT:    func.call @twice_in_place(%y)
// CHECK-NEXT:    func.return
// CHECK:       func.func private @twice(%A: memref<64xf32>, %B: memref<64xf32>)
// CHECK:       func.func private @twice_in_place(%A: memref<64xf32>) {
// CHECK:             memref.store %{{.*}}, %A[%v] : memref<64xf32>
// APART-LABEL: func.func @chain
// APART:         func.call @twice(%x, %a)
// APART-NEXT:    func.call @twice(%a, %b)
// APART-NEXT:    func.call @twice(%b, %y)
// SCHEDULED:   func.func private @twice_in_place
// SCHEDULED:     vectorized
func.func @chain(%x: memref<64xf32>, %y: memref<64xf32>) attributes {tir.function} {
  %a = memref.alloc() : memref<64xf32>
  %b = memref.alloc() : memref<64xf32>
  func.call @twice(%x, %a) : (memref<64xf32>, memref<64xf32>) -> ()
  func.call @twice(%a, %b) : (memref<64xf32>, memref<64xf32>) -> ()
  func.call @twice(%b, %y) : (memref<64xf32>, memref<64xf32>) -> ()
  func.return
}
func.func private @twice(%A: memref<64xf32>, %B: memref<64xf32>) {
  tir.for %i in 64 {
    tir.block "B" iters(%v: spatial<64>) = [%i] {
      %a = memref.load %A[%v] : memref<64xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %B[%v] : memref<64xf32>
    }
  }
  func.return
}

// -----

// Not what is read later, nor what is given twice, nor by a function that reads elements after others are written. An
// operand at the same indices may be overwritten beside one that is read elsewhere.
// CHECK-LABEL: func.func @kept
// CHECK:         func.call @reversed(%x, %a)
// CHECK-NEXT:    func.call @reversed(%a, %y)
// CHECK-NEXT:    func.call @sum(%a, %y, %c)
// CHECK-NEXT:    func.call @sum_in_place(%a, %c)
// CHECK-NEXT:    func.call @sum(%a, %a, %e)
// CHECK-NEXT:    func.call @sum_in_place(%y, %e)
// CHECK-NEXT:    func.call @sum_in_place(%y, %e)
// CHECK-NEXT:    func.return
// CHECK:       func.func private @sum_in_place(%A: memref<8xf32>, %B: memref<8xf32>) {
// CHECK:           memref.store %{{.*}}, %A[%v]
func.func @kept(%x: memref<8xf32>, %y: memref<8xf32>) attributes {tir.function} {
  %a = memref.alloc() : memref<8xf32>
  %b = memref.alloc() : memref<8xf32>
  %c = memref.alloc() : memref<8xf32>
  %d = memref.alloc() : memref<8xf32>
  %e = memref.alloc() : memref<8xf32>
  %f = memref.alloc() : memref<8xf32>
  func.call @reversed(%x, %a) : (memref<8xf32>, memref<8xf32>) -> ()
  func.call @reversed(%a, %b) : (memref<8xf32>, memref<8xf32>) -> ()
  func.call @sum(%a, %b, %c) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  func.call @sum(%a, %c, %d) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  func.call @sum(%d, %d, %e) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  func.call @sum(%b, %e, %f) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  func.call @sum(%f, %e, %y) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
  func.return
}
func.func private @reversed(%A: memref<8xf32>, %B: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %w = affine.apply affine_map<(d0) -> (7 - d0)> (%v)
      %a = memref.load %A[%w] : memref<8xf32>
      memref.store %a, %B[%v] : memref<8xf32>
    }
  }
  func.return
}
func.func private @sum(%A: memref<8xf32>, %B: memref<8xf32>, %C: memref<8xf32>) {
  tir.for %i in 8 {
    tir.block "B" iters(%v: spatial<8>) = [%i] {
      %w = affine.apply affine_map<(d0) -> (7 - d0)> (%v)
      %a = memref.load %A[%v] : memref<8xf32>
      %b = memref.load %B[%w] : memref<8xf32>
      %c = arith.addf %a, %b : f32
      memref.store %c, %C[%v] : memref<8xf32>
    }
  }
  func.return
}

// -----

// A function that writes a part of the result only keeps the result apart: what callers pass in it may count.
// CHECK-LABEL: func.func @partly
// CHECK:         func.call @row(%x, %a)
// CHECK-NEXT:    func.call @row(%a, %y)
func.func @partly(%x: memref<4x8xf32>, %y: memref<4x8xf32>) attributes {tir.function} {
  %a = memref.alloc() : memref<4x8xf32>
  func.call @row(%x, %a) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  func.call @row(%a, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  func.return
}
func.func private @row(%A: memref<4x8xf32>, %B: memref<4x8xf32>) {
  tir.for %i in 1 { tir.for %j in 8 {
    tir.block "B" iters(%v: spatial<1>, %w: spatial<8>) = [%i, %j] {
      %a = memref.load %A[%v, %w] : memref<4x8xf32>
      memref.store %a, %B[%v, %w] : memref<4x8xf32>
    }
  } }
  func.return
}
