// RUN: weft-opt %s -p tir-assign-spaces | filecheck %s

// What a thread alone reads and writes is its own; what the threads of a block hand on is theirs, where it is allocated
// in the kernel; what other blocks read stays outside. A space that was named is kept.
// CHECK-LABEL: func.func @spaces(
// CHECK-NEXT: %All = memref.alloc() : memref<32xf32>
// CHECK-NEXT: tir.for %[[B:\w+]] in 4 thread_binding<"blockIdx.x"> attributes {tir.source = "own, block, named, all"} {
// CHECK-NEXT: tir.for %[[T:\w+]] in 8 thread_binding<"threadIdx.x"> {
// CHECK-NEXT: %Own = memref.alloc() : memref<32xf32, "local">
// CHECK-NEXT: %Block = memref.alloc() : memref<32xf32, "shared">
// CHECK-NEXT: %Named = memref.alloc() : memref<32xf32, "shared">
func.func @spaces(%A: memref<32xf32>, %B: memref<32xf32>) attributes {tir.threads_in_step} {
  %Own = memref.alloc() : memref<32xf32>
  %All = memref.alloc() : memref<32xf32>
  tir.for %b in 4 thread_binding<"blockIdx.x"> attributes {tir.source = "own, block, named, all"} {
    tir.for %t in 8 thread_binding<"threadIdx.x"> {
      %Block = memref.alloc() : memref<32xf32>
      %Named = memref.alloc() : memref<32xf32, "shared">
      tir.block "own" iters(%vi: spatial<32>) = [%b * 8 + %t] {
        %a = memref.load %A[%vi] : memref<32xf32>
        memref.store %a, %Own[%vi] : memref<32xf32>
      }
      tir.block "block" iters(%vi: spatial<32>) = [%b * 8 + %t] {
        %a = memref.load %Own[%vi] : memref<32xf32>
        memref.store %a, %Block[%vi] : memref<32xf32>
      }
      tir.block "named" iters(%vb: spatial<4>, %vi: spatial<8>) = [%b, %t] {
        %here = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%vb, %vi)
        %there = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vb, %vi)
        %a = memref.load %Block[%there] : memref<32xf32>
        memref.store %a, %Named[%here] : memref<32xf32, "shared">
      }
      tir.block "all" iters(%vb: spatial<4>, %vi: spatial<8>) = [%b, %t] {
        %here = affine.apply affine_map<(d0, d1) -> (d0 * 8 + d1)>(%vb, %vi)
        %there = affine.apply affine_map<(d0, d1) -> (d0 * 8 + 7 - d1)>(%vb, %vi)
        %a = memref.load %Named[%there] : memref<32xf32, "shared">
        memref.store %a, %All[%here] : memref<32xf32>
      }
    }
  }
  tir.for %c in 4 thread_binding<"blockIdx.x"> attributes {tir.source = "B"} {
    tir.for %u in 8 thread_binding<"threadIdx.x"> {
      tir.block "B" iters(%vi: spatial<32>) = [%c * 8 + %u] {
        %other = affine.apply affine_map<(d0) -> (31 - d0)>(%vi)
        %a = memref.load %All[%other] : memref<32xf32>
        memref.store %a, %B[%vi] : memref<32xf32>
      }
    }
  }
  func.return
}
