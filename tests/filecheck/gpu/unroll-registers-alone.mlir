// RUN: weft-opt %s -p tir-unroll-registers | filecheck %s

// Loops that pick an element of a small buffer; not those over shared memory, of dynamic extent, or that make too many
// copies of a body.
// CHECK-LABEL: func.func @f(
// CHECK: tir.for %[[I:\w+]] in 8 unrolled {
// CHECK-NEXT: memref.store %[[ZERO:\w+]], %Small
// CHECK: tir.for %[[J:\w+]] in 8 {
// CHECK-NEXT: memref.store %[[ZERO]], %Shared
// CHECK: tir.for %[[K:\w+]] in 512 {
// CHECK-NEXT: memref.store %[[ZERO]], %Large
// CHECK: tir.for %[[D:\w+]] in %m {
// CHECK-NEXT: memref.store %[[ZERO]], %Small
// CHECK: tir.for %[[P:\w+]] in 2 {
// CHECK-NEXT: tir.for %[[Q:\w+]] in 1024 unrolled {
// CHECK: tir.for %[[R:\w+]] in 4 {
// CHECK-NEXT: tir.for %[[S:\w+]] in 8 unrolled {
// CHECK-NEXT: memref.load %Small[%[[S]]]
func.func @f(%B: memref<32xf32>, %m: index)
    attributes {tir.threads_in_step, low.params = [#low.param<"B", memref<32xf32>, write, []>, #low.param<"m", index, read, []>], low.symbols = []} {
  %zero = arith.constant 0.0 : f32
  tir.for %b in 1 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %t in 1 thread_binding<"threadIdx.x"> {
      %Small = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "local">
      %Large = memref.alloca() {alignment = 16 : i64} : memref<512xf32, "local">
      %Shared = memref.alloca() {alignment = 16 : i64} : memref<8xf32, "shared">
      tir.for %i in 8 { memref.store %zero, %Small[%i] : memref<8xf32, "local"> }
      tir.for %j in 8 { memref.store %zero, %Shared[%j] : memref<8xf32, "shared"> }
      tir.for %k in 512 { memref.store %zero, %Large[%k] : memref<512xf32, "local"> }
      tir.for %d in %m { memref.store %zero, %Small[%d] : memref<8xf32, "local"> }
      tir.for %p in 2 {
        tir.for %q in 1024 {
          %e = affine.apply affine_map<(d0, d1) -> ((d0 + d1) mod 8)>(%p, %q)
          memref.store %zero, %Small[%e] : memref<8xf32, "local">
        }
      }
      tir.for %r in 4 {
        tir.for %s in 8 {
          %l = memref.load %Small[%s] : memref<8xf32, "local">
          %at = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%r, %s)
          memref.store %l, %B[%at] : memref<32xf32>
        }
      }
    }
  }
  func.return
}
