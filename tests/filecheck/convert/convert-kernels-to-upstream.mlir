// RUN: weft-opt %s -p convert-low-to-upstream -t upstream | filecheck %s

// A launch, thread numbers, a shared buffer, barriers, atomics; shuffles name the lane; copies are made at once.
// CHECK:       builtin.module attributes {gpu.container_module}
// CHECK-LABEL: func.func @main(%A: memref<8x8xf32>, %B: memref<64xf32>)
// CHECK:         "gpu.launch_func"(%c2, %c1, %c1, %c32, %c1, %c1, %{{.*}}, %B) <{kernel = @kernels::@k, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 0>}>
// CHECK:       "gpu.module"() <{sym_name = "kernels"}> ({
// CHECK-NEXT:    "memref.global"() <{sym_name = "k_s", type = memref<128xf32, 3 : i64>, initial_value, sym_visibility = "private"}>
// CHECK-NEXT:    "gpu.func"() <{function_type = (memref<64xf32>, memref<64xf32>) -> ()}> ({
// CHECK-NEXT:    ^bb0(%A: memref<64xf32>, %B: memref<64xf32>):
// CHECK:           %s = memref.get_global @k_s : memref<128xf32, 3 : i64>
// CHECK-NEXT:      %b = gpu.block_id x
// CHECK-NEXT:      %t = gpu.thread_id x
// CHECK:           %[[FOUR:.*]] = vector.load %A[%c0] : memref<64xf32>, vector<4xf32>
// CHECK-NEXT:      vector.store %[[FOUR]], %s[%c0] : memref<128xf32, 3 : i64>, vector<4xf32>
// CHECK-NEXT:      "gpu.barrier"() : () -> ()
// CHECK:           %[[LAST:.*]] = arith.constant 15 : index
// CHECK:           %[[PLACE:.*]] = arith.andi %{{.*}}, %[[LAST]] : index
// CHECK:           %[[OTHER:.*]] = arith.addi %[[PLACE]], %c2 : index
// CHECK-NEXT:      %[[INSIDE:.*]] = arith.cmpi ule, %[[OTHER]], %[[LAST]] : index
// CHECK-NEXT:      arith.select %[[INSIDE]], %[[OTHER]], %[[PLACE]] : index
// CHECK:           %r, %{{.*}} = gpu.shuffle idx %x, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:      memref.atomic_rmw minimumf %r, %B[%c0] : (f32, memref<64xf32>) -> f32
// CHECK-NEXT:      "gpu.return"() : () -> ()
// CHECK-NEXT:    }) {sym_name = "k", gpu.kernel, known_block_size = array<i32: 32, 1, 1>} : () -> ()
func.func @main(%A: memref<64xf32>, %B: memref<64xf32>) attributes {low.params = [
    #low.param<"A", memref<8x8xf32>, read, []>, #low.param<"B", memref<64xf32>, readwrite, []>], low.symbols = []} {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  low.launch @k blocks(%c2, %c1, %c1) threads(%c32, %c1, %c1) (%A, %B) : memref<64xf32>, memref<64xf32>
  func.return
}
func.func @k(%A: memref<64xf32>, %B: memref<64xf32>) attributes {low.kernel = #low.kernel<[32, 1, 1], source = "C">,
    low.arg_access = [#low<access read>, #low<access readwrite>], low.symbols = []} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %s = memref.alloca() {alignment = 16 : i64} : memref<128xf32, "shared">
  %b = low.thread_id "blockIdx.x" extent 2 : index
  %t = low.thread_id "threadIdx.x" extent 32 : index
  low.async_copy %A[%c0] to %s[%c0] bytes 16 : memref<64xf32>, memref<128xf32, "shared">
  low.async_commit
  low.async_wait 0
  low.barrier
  %x = memref.load %s[%t] : memref<128xf32, "shared">
  %r = low.shuffle down %x, %c2 width 16 : f32
  %old = low.atomic min %r, %B[%c0] : f32, memref<64xf32>
  func.return
}
