// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=cuda}' | filecheck %s

// Grids from dynamic shapes; full thread blocks run without a condition.
// CHECK-LABEL: func.func @add(%A: memref<?xf32>, %C: memref<?xf32>, %n: index)
// CHECK: [[SUM:%[0-9]+]] = arith.addi %n, %[[C63:\w+]] : index
// CHECK-NEXT: [[GRID:%[0-9]+]] = arith.divui [[SUM]], %[[C64:\w+]] : index
// CHECK-NEXT: low.launch @add_kernel blocks([[GRID]], %[[C1:\w+]], %[[C1]]) threads(%[[C64]], %[[C1]], %[[C1]]) (%A, %C, %n) : memref<?xf32>, memref<?xf32>, index
// CHECK: func.func @add_kernel(%A: memref<?xf32>, %C: memref<?xf32>, %n: index) attributes {low.kernel = #low.kernel<[64, 1, 1], source = "C">, low.arg_access = [#low<access read>, #low<access write>, #low<access read>], low.symbols = ["n"]} {
// CHECK: [[FULL:%[0-9]+]] = arith.divui %n, %[[C64:\w+]] : index
// CHECK-NEXT: %[[I0:\w+]] = low.thread_id "blockIdx.x" : index
// CHECK: %[[I1:\w+]] = low.thread_id "threadIdx.x" extent 64 : index
// CHECK: [[IN:%[0-9]+]] = arith.cmpi slt, %[[I0]], [[FULL]] : index
// CHECK-NEXT: scf.if [[IN]] {
// CHECK-NEXT: memref.load %A
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store
// CHECK-NEXT: } else {
// CHECK-NEXT: arith.cmpi slt, %{{[0-9]+}}, %n : index
// CHECK-NEXT: scf.if
func.func @add(%A: memref<?xf32>, %C: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = memref.dim %A, %c0 : memref<?xf32>
  tir.assume_shape %C[%n] : memref<?xf32>
  %g = affine.apply affine_map<(d0) -> ((d0 + 63) floordiv 64)>(%n)
  tir.for %i0 in %g thread_binding<"blockIdx.x"> {
    tir.for %i1 in 64 thread_binding<"threadIdx.x"> {
      tir.block "C" iters(%vi: spatial<%n>) = [%i0 * 64 + %i1] where [%i0 * 64 + %i1] < [%n] {
        %a = memref.load %A[%vi] : memref<?xf32>
        %c = arith.addf %a, %one : f32
        memref.store %c, %C[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}

// -----

// Two nests over the threads become one kernel with a barrier between them; what the block uses alone is shared.
// CHECK-LABEL: func.func @reverse(
// CHECK: low.launch @reverse_kernel blocks(%[[C4:\w+]], %[[C1:\w+]], %[[C1]]) threads(%[[C8:\w+]], %[[C1]], %[[C1]]) (%A, %B)
// CHECK: func.func @reverse_kernel(
// CHECK-SAME: source = "S, B"
// CHECK: %S = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "shared">
// CHECK: memref.store %{{.*}}, %S[%[[S:\w+]]]
// CHECK-NEXT: low.barrier
// CHECK-NEXT: memref.load %S
func.func @reverse(%A: memref<32xf32>, %B: memref<32xf32>) {
  %S = memref.alloc() : memref<32xf32>
  tir.for %b in 4 thread_binding<"blockIdx.x"> {
    tir.for %s in 8 thread_binding<"threadIdx.x"> {
      tir.block "S" iters(%vi: spatial<32>) = [%b * 8 + %s] {
        %a = memref.load %A[%vi] : memref<32xf32>
        memref.store %a, %S[%vi] : memref<32xf32>
      }
    }
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<4>, %vj: spatial<8>) = [%b, %t] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vi, %vj)
        %q = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%vi, %vj)
        %s = memref.load %S[%p] : memref<32xf32>
        memref.store %s, %B[%q] : memref<32xf32>
      }
    }
  }
  func.return
}

// -----

// A temporary of one thread is in its registers; between two kernels it is memory of the device.
// CHECK-LABEL: func.func @temporaries(
// CHECK: %U = memref.alloc() {alignment = 64 : i64} : memref<32xf32>
// CHECK-NEXT: low.launch @temporaries_kernel blocks(%[[C1:\w+]], %[[C1]], %[[C1]]) threads(%[[C32:\w+]], %[[C1]], %[[C1]]) (%A, %U)
// CHECK-NEXT: low.launch @temporaries_kernel_1 blocks(%[[C1]], %[[C1]], %[[C1]]) threads(%[[C32]], %[[C1]], %[[C1]]) (%U, %B)
// CHECK-NEXT: memref.dealloc %U
// CHECK: func.func @temporaries_kernel(
// CHECK: memref.alloca() {alignment = 16 : i64} : memref<1xf32, "local">
// CHECK-NOT: low.barrier
// CHECK: func.func @temporaries_kernel_1(
func.func @temporaries(%A: memref<32xf32>, %B: memref<32xf32>) {
  %T = memref.alloc() : memref<32xf32>
  %U = memref.alloc() : memref<32xf32>
  tir.for %t in 32 thread_binding<"threadIdx.x"> {
    tir.block "T" iters(%vi: spatial<32>) = [%t] {
      %a = memref.load %A[%vi] : memref<32xf32>
      memref.store %a, %T[%vi] : memref<32xf32>
    }
    tir.block "U" iters(%vi: spatial<32>) = [%t] {
      %a = memref.load %T[%vi] : memref<32xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %U[%vi] : memref<32xf32>
    }
  }
  tir.for %t in 32 thread_binding<"threadIdx.x"> {
    tir.block "B" iters(%vi: spatial<32>) = [%t] {
      %p = affine.apply affine_map<(d0) -> (31 - d0)>(%vi)
      %a = memref.load %U[%p] : memref<32xf32>
      memref.store %a, %B[%vi] : memref<32xf32>
    }
  }
  func.return
}

// -----

// A loop around kernels is a loop of the host.
// CHECK-LABEL: func.func @steps(
// CHECK: scf.for %[[S:\w+]] = %[[C0:\w+]] to %[[C3:\w+]] step %[[C1:\w+]] {
// CHECK-NEXT: low.launch @steps_kernel blocks(%[[C1]], %[[C1]], %[[C1]]) threads(%[[C16:\w+]], %[[C1]], %[[C1]]) (%A, %[[S]]) : memref<48xf32>, index
func.func @steps(%A: memref<48xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %s in 3 {
    tir.for %t in 16 thread_binding<"threadIdx.x"> {
      tir.block "A" iters(%vs: spatial<3>, %vi: spatial<16>) = [%s, %t] {
        %p = affine.apply affine_map<(d0, d1) -> (d0 * 16 + d1)>(%vs, %vi)
        memref.store %one, %A[%p] : memref<48xf32>
      }
    }
  }
  func.return
}

// -----

// What no loop over threads is around runs in the first one.
// CHECK-LABEL: func.func @once_kernel(
// CHECK: [[FIRST:%[0-9]+]] = arith.cmpi slt, %[[T:\w+]], %{{[a-z0-9]+}} : index
// CHECK-NEXT: scf.if [[FIRST]] {
// CHECK-NEXT: memref.store %[[ONE:\w+]], %C
func.func @once(%B: memref<16xf32>, %C: memref<4xf32>) {
  %one = arith.constant 1.0 : f32
  tir.for %b in 4 thread_binding<"blockIdx.x"> {
    tir.for %t in 4 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<16>) = [%b * 4 + %t] { memref.store %one, %B[%vi] : memref<16xf32> }
    }
    tir.block "C" iters(%vi: spatial<4>) = [%b] { memref.store %one, %C[%vi] : memref<4xf32> }
  }
  func.return
}
