// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=opencl only_trace=true}' | filecheck %s
// RUN: weft-opt %s --split-input-file -p 'default-schedule{target=cuda only_trace=true},apply-schedule,lower-tir-to-low{target=cuda}' | filecheck %s --check-prefix=KERNELS

// Elementwise: one loop over all elements, a thread for each.
// CHECK-LABEL: sched.func @default_elements {
// CHECK: sched.compute_inline
// CHECK: [[loop:%.*]] = sched.fuse %[[I0:\w+]], %[[I1:\w+]] : loop
// CHECK-NEXT: [[b:%.*]], [[t:%.*]] = sched.split [[loop]] {factors = [0, 256]} : loop, loop
// CHECK-NEXT: sched.bind [[b]] {thread_axis = "blockIdx.x"}
// CHECK-NEXT: sched.bind [[t]] {thread_axis = "threadIdx.x"}
// CHECK-NEXT: }
// KERNELS-LABEL: func.func @elements(
// KERNELS: low.launch @elements_kernel blocks(%[[C2:\w+]], %[[C1:\w+]], %[[C1]]) threads(%[[C256:\w+]], %[[C1]], %[[C1]])
// KERNELS-NOT: low.launch
func.func @elements(%A: memref<6x50xf32>, %B: memref<6x50xf32>, %relu: memref<6x50xf32>) {
  %zero = arith.constant 0.000000e+00 : f32
  %add = memref.alloc() : memref<6x50xf32>
  tir.for %i0 in 6 {
    tir.for %i1 in 50 {
      tir.block "add" iters(%vi0: spatial<6>, %vi1: spatial<50>) = [%i0, %i1] {
        %a = memref.load %A[%vi0, %vi1] : memref<6x50xf32>
        %b = memref.load %B[%vi0, %vi1] : memref<6x50xf32>
        %0 = arith.addf %a, %b : f32
        memref.store %0, %add[%vi0, %vi1] : memref<6x50xf32>
      }
    }
  }
  tir.for %i0_1 in 6 {
    tir.for %i1_1 in 50 {
      tir.block "relu" iters(%vi0_1: spatial<6>, %vi1_1: spatial<50>) = [%i0_1, %i1_1] {
        %add_1 = memref.load %add[%vi0_1, %vi1_1] : memref<6x50xf32>
        %1 = arith.maximumf %add_1, %zero : f32
        memref.store %1, %relu[%vi0_1, %vi1_1] : memref<6x50xf32>
      }
    }
  }
  func.return
}

// -----

// Nests over the same rows: one kernel, a thread block for each row.
// CHECK-LABEL: sched.func @default_rows {
// CHECK: [[row:%.*]] = sched.merge %[[I0:\w+]], %[[I0_1:\w+]], %[[I0_2:\w+]], %[[I0_3:\w+]] : loop
// CHECK-COUNT-4: {factors = [0, 256]} : loop, loop
// CHECK: {thread_axis = "blockIdx.x"}
// CHECK-NEXT: }
// KERNELS-LABEL: func.func @rows(
// KERNELS: low.launch @rows_kernel blocks(%[[C6:\w+]], %[[C1:\w+]], %[[C1]]) threads(%[[C256:\w+]], %[[C1]], %[[C1]])
// KERNELS-NOT: low.launch
// KERNELS: func.func @rows_kernel(
// KERNELS: memref<{{.*}}xf32, "shared">
// KERNELS: low.shuffle down
func.func @rows(%A: memref<6x300xf32>, %s: memref<6x300xf32>) {
  %one = arith.constant 1.000000e+00 : f32
  %0 = arith.constant 0xff800000 : f32
  %1 = arith.constant 0.000000e+00 : f32
  %s_max = memref.alloc() : memref<6xf32>
  %s_exp = memref.alloc() : memref<6x300xf32>
  %s_sum = memref.alloc() : memref<6xf32>
  tir.for %i0 in 6 {
    tir.for %k in 300 {
      tir.block "s_max" iters(%vi0: spatial<6>, %vk: reduce<300>) = [%i0, %k] {
        tir.init {
          memref.store %0, %s_max[%vi0] : memref<6xf32>
        }
        %a = memref.load %A[%vi0, %vk] : memref<6x300xf32>
        %2 = memref.load %s_max[%vi0] : memref<6xf32>
        %3 = arith.maximumf %2, %a : f32
        memref.store %3, %s_max[%vi0] : memref<6xf32>
      }
    }
  }
  tir.for %i0_1 in 6 {
    tir.for %i1 in 300 {
      tir.block "s_exp" iters(%vi0_1: spatial<6>, %vi1: spatial<300>) = [%i0_1, %i1] {
        %a_1 = memref.load %A[%vi0_1, %vi1] : memref<6x300xf32>
        %s_max_1 = memref.load %s_max[%vi0_1] : memref<6xf32>
        %4 = arith.subf %a_1, %s_max_1 : f32
        %5 = math.exp %4 : f32
        memref.store %5, %s_exp[%vi0_1, %vi1] : memref<6x300xf32>
      }
    }
  }
  tir.for %i0_2 in 6 {
    tir.for %k_1 in 300 {
      tir.block "s_sum" iters(%vi0_2: spatial<6>, %vk_1: reduce<300>) = [%i0_2, %k_1] {
        tir.init {
          memref.store %1, %s_sum[%vi0_2] : memref<6xf32>
        }
        %s_exp_1 = memref.load %s_exp[%vi0_2, %vk_1] : memref<6x300xf32>
        %6 = memref.load %s_sum[%vi0_2] : memref<6xf32>
        %7 = arith.addf %6, %s_exp_1 : f32
        memref.store %7, %s_sum[%vi0_2] : memref<6xf32>
      }
    }
  }
  tir.for %i0_3 in 6 {
    tir.for %i1_1 in 300 {
      tir.block "s" iters(%vi0_3: spatial<6>, %vi1_1: spatial<300>) = [%i0_3, %i1_1] {
        %s_exp_2 = memref.load %s_exp[%vi0_3, %vi1_1] : memref<6x300xf32>
        %s_sum_1 = memref.load %s_sum[%vi0_3] : memref<6xf32>
        %8 = arith.divf %one, %s_sum_1 : f32
        %9 = arith.mulf %s_exp_2, %8 : f32
        memref.store %9, %s[%vi0_3, %vi1_1] : memref<6x300xf32>
      }
    }
  }
  func.return
}

// -----

// Sums of rows of any length: the threads of a block reduce together.
// CHECK-LABEL: sched.func @default_sums {
// CHECK: %[[K0:\w+]], %[[K1:\w+]] = sched.split %[[K:\w+]] {factors = [0, 256]} : loop, loop
// CHECK-NEXT: sched.bind %[[K1]] {thread_axis = "threadIdx.x"}
// CHECK-NEXT: sched.bind %[[I:\w+]] {thread_axis = "blockIdx.x"}
// CHECK-NEXT: }
// KERNELS-LABEL: func.func @sums_kernel(
// KERNELS: low.shuffle down
func.func @sums(%A: memref<?x?xf32>, %S: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = arith.constant 0.000000e+00 : f32
  %m = memref.dim %A, %c0 : memref<?x?xf32>
  %n = memref.dim %A, %c1 : memref<?x?xf32>
  tir.assume_shape %S[%m] : memref<?xf32>
  tir.for %i in %m {
    tir.for %k in %n {
      tir.block "S" iters(%vi: spatial<%m>, %vk: reduce<%n>) = [%i, %k] {
        tir.init {
          memref.store %0, %S[%vi] : memref<?xf32>
        }
        %a = memref.load %A[%vi, %vk] : memref<?x?xf32>
        %1 = memref.load %S[%vi] : memref<?xf32>
        %2 = arith.addf %1, %a : f32
        memref.store %2, %S[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}

// -----

// A product: tiles of both factors in shared memory, what comes behind it on the way out.
// CHECK-LABEL: sched.func @default_product {
// CHECK: sched.cache_write %[[P:\w+]] {index = 0, scope = "local"} : block
// CHECK: sched.reverse_compute_inline
// CHECK: sched.cache_read %[[P]] {index = 0, scope = "shared"} : block
// CHECK: sched.cache_read %[[P]] {index = 1, scope = "shared"} : block
// CHECK: sched.split %[[I:\w+]] {factors = [0, 16, 4]} : loop, loop, loop
// CHECK: sched.bind %[[I0:\w+]] {thread_axis = "blockIdx.y"}
// CHECK-NEXT: sched.bind %[[J0:\w+]] {thread_axis = "blockIdx.x"}
// CHECK: sched.decompose_reduction %[[P]], %[[K0:\w+]] : block
// KERNELS-LABEL: func.func @product(
// KERNELS: low.launch @product_kernel
// KERNELS-NOT: low.launch
func.func @product(%M: memref<?x?xf32>, %N: memref<?x?xf32>, %R: memref<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.000000e+00 : f32
  %m = memref.dim %M, %c0 : memref<?x?xf32>
  %k = memref.dim %M, %c1 : memref<?x?xf32>
  %n = memref.dim %N, %c1 : memref<?x?xf32>
  tir.assume_shape %N[%k, %n] : memref<?x?xf32>
  %P = memref.alloc(%m, %n) : memref<?x?xf32>
  tir.assume_shape %R[%m, %n] : memref<?x?xf32>
  tir.for %i in %m {
    tir.for %j in %n {
      tir.for %k_1 in %k {
        tir.block "P" iters(%vi: spatial<%m>, %vj: spatial<%n>, %vk: reduce<%k>) = [%i, %j, %k_1] {
          tir.init {
            memref.store %zero, %P[%vi, %vj] : memref<?x?xf32>
          }
          %m_1 = memref.load %M[%vi, %vk] : memref<?x?xf32>
          %n_1 = memref.load %N[%vk, %vj] : memref<?x?xf32>
          %0 = arith.mulf %m_1, %n_1 : f32
          %1 = memref.load %P[%vi, %vj] : memref<?x?xf32>
          %2 = arith.addf %1, %0 : f32
          memref.store %2, %P[%vi, %vj] : memref<?x?xf32>
        }
      }
    }
  }
  tir.for %i0 in %m {
    tir.for %i1 in %n {
      tir.block "R" iters(%vi0: spatial<%m>, %vi1: spatial<%n>) = [%i0, %i1] {
        %p = memref.load %P[%vi0, %vi1] : memref<?x?xf32>
        %3 = arith.maximumf %p, %zero : f32
        memref.store %3, %R[%vi0, %vi1] : memref<?x?xf32>
      }
    }
  }
  func.return
}

// -----

// Columns: neighbouring threads read neighbouring elements, and each reduces alone, in a register.
// CHECK-LABEL: sched.func @default_columns {
// CHECK-NOT: sched.reorder
// CHECK: sched.cache_write %[[S:\w+]] {index = 0, scope = "local"} : block
// CHECK: sched.split %[[I:\w+]] {factors = [0, 256]} : loop, loop
// CHECK: sched.decompose_reduction %[[S]], %[[K:\w+]] : block
// KERNELS-LABEL: func.func @columns(
// KERNELS: func.func @columns_kernel(
// KERNELS-NOT: low.shuffle
func.func @columns(%A: memref<300x?xf32>, %S: memref<?xf32>) {
  %c1 = arith.constant 1 : index
  %0 = arith.constant 0xff800000 : f32
  %n = memref.dim %A, %c1 : memref<300x?xf32>
  tir.assume_shape %S[%n] : memref<?xf32>
  tir.for %i in %n {
    tir.for %k in 300 {
      tir.block "S" iters(%vi: spatial<%n>, %vk: reduce<300>) = [%i, %k] {
        tir.init {
          memref.store %0, %S[%vi] : memref<?xf32>
        }
        %a = memref.load %A[%vk, %vi] : memref<300x?xf32>
        %1 = memref.load %S[%vi] : memref<?xf32>
        %2 = arith.maximumf %1, %a : f32
        memref.store %2, %S[%vi] : memref<?xf32>
      }
    }
  }
  func.return
}

// -----

// Loops of several blocks: threads run the iterations of those that all blocks share.
// CHECK-LABEL: sched.func @default_shared {
// CHECK-NEXT: %[[A:\w+]] = sched.get_block "A" in @shared
// CHECK: %[[IJ:\w+]] = sched.fuse %[[I:\w+]], %[[J:\w+]] : loop
// CHECK-NEXT: [[b:%.*]], [[t:%.*]] = sched.split %[[IJ]] {factors = [0, 256]} : loop, loop
// CHECK-NEXT: sched.bind [[b]] {thread_axis = "blockIdx.x"}
// CHECK-NEXT: sched.bind [[t]] {thread_axis = "threadIdx.x"}
// CHECK-NEXT: }
// KERNELS-LABEL: func.func @shared(
// KERNELS: func.func @shared_kernel(
// KERNELS-NOT: func.func
func.func @shared(%X: memref<8x100x3xf32>, %Y: memref<8x100x3xf32>, %Z: memref<8x100x3xf32>) {
  tir.for %i in 8 {
    tir.for %j in 100 {
      tir.for %k in 3 {
        tir.block "A" iters(%vi: spatial<8>, %vj: spatial<100>, %vk: spatial<3>) = [%i, %j, %k] {
          %x = memref.load %X[%vi, %vj, %vk] : memref<8x100x3xf32>
          %e = math.exp %x : f32
          memref.store %e, %Y[%vi, %vj, %vk] : memref<8x100x3xf32>
        }
      }
      tir.for %k in 3 {
        tir.block "B" iters(%vi: spatial<8>, %vj: spatial<100>, %vk: spatial<3>) = [%i, %j, %k] {
          %x = memref.load %Y[%vi, %vj, %vk] : memref<8x100x3xf32>
          %t = math.tanh %x : f32
          memref.store %t, %Z[%vi, %vj, %vk] : memref<8x100x3xf32>
        }
      }
    }
  }
  func.return
}
