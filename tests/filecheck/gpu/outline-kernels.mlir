// RUN: weft-opt %s -p 'tir-outline-kernels{target=cuda}' | filecheck %s

// Each nest a kernel, launched in its place. What the body uses from outside becomes an argument: buffers, then values,
// then extents; computations are repeated. Temporaries stand at the top.
// CHECK-LABEL: func.func @f(
// CHECK-NOT: tir.threads_in_step
// CHECK: low.launch @f_kernel blocks(%[[G:\w+]], %[[C1:\w+]], %{{c1_[0-9]+}}) threads(%[[C8:\w+]], %{{c1_[0-9]+}}, %{{c1_[0-9]+}}) (%A, %B, %n) : memref<?xf32>, memref<?xf32>, index
// CHECK: low.launch @f_kernel_1 blocks(%{{.*}}) threads(%[[C4:\w+]], %[[C2:\w+]], %{{c1_[0-9]+}})
// CHECK-SAME: (%B, %scale) : memref<?xf32>, f32
// CHECK-NEXT: func.return
// CHECK: func.func @f_kernel(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) attributes {low.kernel = #low.kernel<[8, 1, 1], source = "S, B">, low.arg_access = [#low<access read>, #low<access write>, #low<access read>], low.symbols = ["n"]} {
// CHECK-NEXT: %S = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "shared">
// CHECK-NEXT: %[[B:\w+]] = low.thread_id "blockIdx.x" : index
// CHECK-NEXT: %[[T:\w+]] = low.thread_id "threadIdx.x" extent 8 : index
// CHECK-NEXT: affine.apply affine_map<(d0) -> ((d0 + -1))> (%n)
// CHECK: func.return
// CHECK: func.func @f_kernel_1(%B: memref<?xf32>, %scale: f32) attributes {low.kernel = #low.kernel<[4, 2, 1], source = "C">, low.arg_access = [#low<access readwrite>, #low<access read>], low.symbols = []} {
// CHECK: low.thread_id "threadIdx.y" extent 2 : index
// CHECK-NEXT: low.thread_id "threadIdx.x" extent 4 : index
func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %scale: f32, %n: index)
    attributes {tir.threads_in_step, low.params = [#low.param<"A", memref<?xf32>, read, ["n"]>, #low.param<"B", memref<?xf32>, write, ["n"]>, #low.param<"scale", f32, read, []>], low.symbols = ["n"]} {
  %g = affine.apply affine_map<(d0) -> (d0 floordiv 8)>(%n)
  %last = affine.apply affine_map<(d0) -> (d0 - 1)>(%n)
  tir.for %b in %g thread_binding<"blockIdx.x"> attributes {tir.source = "S, B"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%b, %t)
      %back = affine.apply affine_map<(d0, d1) -> (d0 - d1)>(%last, %at)
      %a = memref.load %A[%back] : memref<?xf32>
      %S = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "shared">
      memref.store %a, %S[%t] : memref<8xf32, "shared">
      %s = memref.load %S[%t] : memref<8xf32, "shared">
      memref.store %s, %B[%at] : memref<?xf32>
    }
  }
  tir.for %c in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "C"} {
    tir.for %y in 2 thread_binding<"threadIdx.y"> {
      tir.for %x in 4 thread_binding<"threadIdx.x"> {
        %at = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)>(%y, %x)
        %b = memref.load %B[%at] : memref<?xf32>
        %m = arith.mulf %b, %scale : f32
        memref.store %m, %B[%at] : memref<?xf32>
      }
    }
  }
  func.return
}
