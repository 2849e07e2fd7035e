// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-loop-partition{func=f block=S loop=0 factors=4,0}' | filecheck %s --strict-whitespace --check-prefix=PASS
// loop_partition: a loop becomes several that follow each other.

// Of a reduction: the init stays in the part that begins. A loop of rows: both parts have it.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I:\w+]] in 12 {
// CHECK-NEXT: {{^}}      tir.for %[[K0:\w+]] in 2 {
// CHECK-NEXT: {{^}}        tir.block "S_k0" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K0]]] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK: {{^}}      tir.for %[[K1:\w+]] in 4 {
// CHECK-NEXT: {{^}}        tir.block "S_k1" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [%[[I]], %[[K1]] + 2] attributes {tir.part_of = "S"} {
// CHECK: {{^}}      tir.for %[[K2:\w+]] in 3 {
// CHECK-NEXT: {{^}}        tir.block "S_k2" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [%[[I]], %[[K2]] + 6] attributes {tir.part_of = "S"} {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 4 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S_i0" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I0]], %[[K]]] attributes {tir.part_of = "S"} {
// PASS-NEXT: {{^}}          tir.init {
// PASS: {{^}}    tir.for %[[I1:\w+]] in 8 {
// PASS-NEXT: {{^}}      tir.for %[[K]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S_i1" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [%[[I1]] + 4, %[[K]]] attributes {tir.part_of = "S"} {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12x9xf32>, %S: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.for %k in 9 {
      tir.block "S" iters(%vi: spatial<12>, %vk: reduce<9>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<12xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<12x9xf32>
        %s = memref.load %S[%vi] : memref<12xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<12xf32>
      }
    }
  }
  func.return
}
sched.func @steps {
  %s = sched.get_block "S" : block
  %i, %k = sched.get_loops %s : loop, loop
  %k0, %k1, %k2 = sched.loop_partition %k {factors = [2, 0, 3]} : loop, loop, loop
}

// -----

// The parts are parts of one block, however often it is cut.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 8 {
// CHECK-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}        tir.block "S_i0" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I0]], %[[K]]] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK: {{^}}    tir.for %[[I10:\w+]] in 1 {
// CHECK-NEXT: {{^}}      tir.for %[[K]] in 9 {
// CHECK-NEXT: {{^}}        tir.block "S_i1_i10" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [8, %[[K]]] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK: {{^}}    tir.for %[[I11:\w+]] in 3 {
// CHECK-NEXT: {{^}}      tir.for %[[K]] in 9 {
// CHECK-NEXT: {{^}}        tir.block "S_i1_i11" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [%[[I11]] + 9, %[[K]]] attributes {tir.part_of = "S"} {
// CHECK-NEXT: {{^}}          tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I0:\w+]] in 4 {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S_i0" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I0]], %[[K]]] attributes {tir.part_of = "S"} {
// PASS-NEXT: {{^}}          tir.init {
// PASS: {{^}}    tir.for %[[I1:\w+]] in 8 {
// PASS-NEXT: {{^}}      tir.for %[[K]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S_i1" iters(%[[VI]]: spatial<12>, %[[VK]]: reduce<9>) = [%[[I1]] + 4, %[[K]]] attributes {tir.part_of = "S"} {
// PASS-NEXT: {{^}}          tir.init {
// PASS-NOT: tir.block
// PASS: func.return
func.func @f(%A: memref<12x9xf32>, %S: memref<12xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 12 {
    tir.for %k in 9 {
      tir.block "S" iters(%vi: spatial<12>, %vk: reduce<9>) = [%i, %k] {
        tir.init {
          memref.store %zero, %S[%vi] : memref<12xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<12x9xf32>
        %s = memref.load %S[%vi] : memref<12xf32>
        %t = arith.addf %s, %a : f32
        memref.store %t, %S[%vi] : memref<12xf32>
      }
    }
  }
  func.return
}
sched.func @steps {
  %s = sched.get_block "S" : block
  %i, %k = sched.get_loops %s : loop, loop
  %i0, %i1 = sched.loop_partition %i {factors = [8, 0]} : loop, loop
  %t = sched.get_block "S_i1" : block
  %i2, %k2 = sched.get_loops %t : loop, loop
  %a, %b = sched.loop_partition %i2 {factors = [1, 3]} : loop, loop
}

// -----

// What the factors leave is a part of its own.
// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[I0:\w+]] in 3 {
// CHECK: tir.for %[[I1:\w+]] in 5 {
func.func @f(%C: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 8 {
    tir.block "S" iters(%v: spatial<8>) = [%i] {
      memref.store %one, %C[%v] : memref<8xf32>
    } }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "S" in @f : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.loop_partition %i {factors = [3]} : loop, loop
}
