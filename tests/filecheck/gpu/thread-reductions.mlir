// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=cuda}' | filecheck %s
// RUN: weft-opt %s --split-input-file --validate -p 'lower-tir-to-low{target=opencl}' | filecheck %s --check-prefix=OPENCL
// RUN: weft-opt %s --split-input-file -p tir-factor-thread-reductions | filecheck %s --check-prefix=FACTOR

// FACTOR-LABEL: func.func @sum(
// FACTOR: %B_rf = memref.alloc() : memref<8x64xf32, "local">
// FACTOR: tir.for %t_init in 64 thread_binding<"threadIdx.x"> {
// FACTOR-NEXT: tir.block "B_rf_init" iters(%vi: spatial<8>, %vt: spatial<64>) = [%i, %t_init] {
// FACTOR: tir.for %k in 4 {
// FACTOR-NEXT: tir.for %t in 64 thread_binding<"threadIdx.x"> {
// FACTOR-NEXT: tir.block "B_rf_update" iters(%vi: spatial<8>, %vt: spatial<64>, %vk: reduce<4>) = [%i, %t, %k] {
// FACTOR: tir.for %t in 64 thread_binding<"threadIdx.x"> {
// FACTOR-NEXT: tir.block "B" iters(%vi: spatial<8>, %vt: reduce<64>) = [%i, %t] attributes {tir.across_threads = "threadIdx.x"} {

// Two warps: shuffles, one value a warp in shared memory, shuffles.
// CHECK-LABEL: func.func @sum_kernel(
// CHECK-DAG: %B_rf = memref.alloca() {alignment = 16 : i64} : memref<1xf32, "local">
// CHECK-DAG: %B_parts = memref.alloca() {alignment = 16 : i64} : memref<2xf32, "shared">
// CHECK: low.shuffle down %{{.*}}, %c16 width 32 : f32
// CHECK: low.shuffle down %{{.*}}, %c1 width 32 : f32
// CHECK: scf.if
// CHECK-NEXT: memref.store %{{.*}}, %B_parts
// CHECK: low.barrier
// CHECK: memref.load %B_parts
// CHECK: low.shuffle down %{{.*}}, %c1 width 32 : f32
// CHECK-NOT: low.shuffle
// CHECK: memref.store %{{.*}}, %B[%i]
// OPENCL-LABEL: func.func @sum_kernel(
// OPENCL-NOT: low.shuffle
// OPENCL: memref.alloca() {alignment = 16 : i64} : memref<64xf32, "shared">
func.func @sum(%A: memref<8x256xf32>, %B: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %i in 8 thread_binding<"blockIdx.x"> {
    tir.for %k in 4 {
      tir.for %t in 64 thread_binding<"threadIdx.x"> {
        tir.block "B" iters(%vi: spatial<8>, %vk: reduce<256>) = [%i, %k * 64 + %t] {
          tir.init { memref.store %zero, %B[%vi] : memref<8xf32> }
          %b = memref.load %B[%vi] : memref<8xf32>
          %a = memref.load %A[%vi, %vk] : memref<8x256xf32>
          %c = arith.addf %b, %a : f32
          memref.store %c, %B[%vi] : memref<8xf32>
        }
      }
    }
  }
  func.return
}

// -----

// Groups of eight threads along x in a block of four rows; the guard of the rows keeps no thread from the shuffles.
// CHECK-LABEL: func.func @rows_kernel(
// CHECK: low.shuffle down %{{.*}}, %c4 width 8 : i32
// CHECK: low.shuffle down %{{.*}}, %{{c?2}} width 8 : i32
// CHECK-NOT: low.barrier
func.func @rows(%A: memref<6x40xi32>, %B: memref<6xi32>) {
  %least = arith.constant -100 : i32
  tir.for %b in 2 thread_binding<"blockIdx.x"> {
    tir.for %y in 4 thread_binding<"threadIdx.y"> {
      tir.for %k in 5 {
        tir.for %t in 8 thread_binding<"threadIdx.x"> {
          tir.block "B" iters(%vi: spatial<6>, %vk: reduce<40>) = [%b * 4 + %y, %k * 8 + %t] where [%b * 4 + %y] < [6] {
            tir.init { memref.store %least, %B[%vi] : memref<6xi32> }
            %b0 = memref.load %B[%vi] : memref<6xi32>
            %a = memref.load %A[%vi, %vk] : memref<6x40xi32>
            %c = arith.maxsi %b0, %a : i32
            memref.store %c, %B[%vi] : memref<6xi32>
          }
        }
      }
    }
  }
  func.return
}

// -----

// A number of threads that is no power of two, along y: through shared memory.
// CHECK-LABEL: func.func @columns_kernel(
// CHECK-NOT: low.shuffle
// CHECK: memref.alloca() {alignment = 16 : i64} : memref<35xf32, "shared">
// CHECK-NOT: low.shuffle
func.func @columns(%A: memref<14x5xf32>, %B: memref<5xf32>) {
  %zero = arith.constant 0.0 : f32
  tir.for %x in 5 thread_binding<"threadIdx.x"> {
    tir.for %k in 2 {
      tir.for %t in 7 thread_binding<"threadIdx.y"> {
        tir.block "B" iters(%vi: spatial<5>, %vk: reduce<14>) = [%x, %k * 7 + %t] {
          tir.init { memref.store %zero, %B[%vi] : memref<5xf32> }
          %b = memref.load %B[%vi] : memref<5xf32>
          %a = memref.load %A[%vk, %vi] : memref<14x5xf32>
          %c = arith.addf %b, %a : f32
          memref.store %c, %B[%vi] : memref<5xf32>
        }
      }
    }
  }
  func.return
}
