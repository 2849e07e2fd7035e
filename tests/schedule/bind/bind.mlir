// RUN: weft-opt %s --split-input-file -p apply-schedule | filecheck %s --strict-whitespace
// RUN: weft-opt %s --split-input-file -p 'tir-bind{func=f block=S loop=0 thread_axis="threadIdx.y"}' | filecheck %s --strict-whitespace --check-prefix=PASS
// bind: iterations are threads of a GPU axis.

// Blocks, threads and virtual threads.
// CHECK-LABEL: func.func @f(
// CHECK: {{^}}    tir.for %[[I0:\w+]] in 3 thread_binding<"blockIdx.x"> {
// CHECK-NEXT: {{^}}      tir.for %[[I1:\w+]] in 2 thread_binding<"vthread"> {
// CHECK-NEXT: {{^}}        tir.for %[[I2:\w+]] in 2 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: {{^}}          tir.for %[[K:\w+]] in 9 {
// CHECK-NEXT: {{^}}            tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I0]] * 4 + %[[I1]] * 2 + %[[I2]], %[[K]]] {
// CHECK-NEXT: {{^}}              tir.init {
// CHECK-NOT: tir.block
// CHECK: func.return
//
// PASS-LABEL: func.func @f(
// PASS: {{^}}    tir.for %[[I:\w+]] in 12 thread_binding<"threadIdx.y"> {
// PASS-NEXT: {{^}}      tir.for %[[K:\w+]] in 9 {
// PASS-NEXT: {{^}}        tir.block "S" iters(%[[VI:\w+]]: spatial<12>, %[[VK:\w+]]: reduce<9>) = [%[[I]], %[[K]]] {
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
  %i0, %i1, %i2 = sched.split %i {factors = [0, 2, 2]} : loop, loop, loop
  sched.bind %i0 {thread_axis = "blockIdx.x"}
  sched.bind %i1 {thread_axis = "vthread"}
  sched.bind %i2 {thread_axis = "threadIdx.x"}
}

// -----

// Two loops of a nest on one axis: the shorter one runs as often, under a guard.
// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[J:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.block "S" iters(%[[V:\w+]]: spatial<4>, %[[W:\w+]]: spatial<3>) = [%[[I:\w+]], %[[J]]] where [%[[J]]] < [3] {
// CHECK: tir.for %[[K:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: tir.block "C" iters(%[[V]]: spatial<4>, %[[W]]: spatial<8>) = [%[[I]], %[[K]]] {
func.func @f(%B: memref<4x3xf32>, %C: memref<4x8xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %i in 4 {
    tir.for %j in 3 {
      tir.block "S" iters(%v: spatial<4>, %w: spatial<3>) = [%i, %j] {
        memref.store %one, %B[%v, %w] : memref<4x3xf32>
      } }
    tir.for %k in 8 {
      tir.block "C" iters(%v: spatial<4>, %w: spatial<8>) = [%i, %k] {
        memref.store %one, %C[%v, %w] : memref<4x8xf32>
      } }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "S" in @f : block
  %c = sched.get_block "C" in @f : block
  %i, %j = sched.get_loops %b : loop, loop
  %i_1, %k = sched.get_loops %c : loop, loop
  sched.bind %j {thread_axis = "threadIdx.x"}
  sched.bind %k {thread_axis = "threadIdx.x"}
}
