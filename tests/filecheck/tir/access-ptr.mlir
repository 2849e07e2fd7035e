// RUN: weft-opt %s | filecheck %s --check-prefix=ROUND
// RUN: weft-opt %s -p verify-level{level=tir},lower-tir-to-low | filecheck %s
// RUN: weft-opt %s -p lower-tir-to-low -t llvm-ir | filecheck %s --check-prefix=LLVM

// A temporary that is filled in each tile shrinks to what the pointer gives access to; the stride follows. The code that
// a loop brings along becomes part of the module.

func.func private @kernel(!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, i8) -> i32
func.func @tiles(%A: memref<64x32xf32>, %C: memref<64x32xf32>) {
  %three = arith.constant 3 : i8
  %T = memref.alloc() : memref<64x32xf32>
  tir.for %i in 4 attributes {pragma_import_llvm = "define i32 @kernel(ptr %a, ptr %c, i64 %s, i8 signext %n) {\n ret i32 0\n}"} {
    tir.for %j in 2 {
      tir.for %ii in 16 {
        tir.for %jj in 16 {
          tir.block "T" iters(%vi: spatial<64>, %vj: spatial<32>) = [%i * 16 + %ii, %j * 16 + %jj] {
            %a = memref.load %A[%vi, %vj] : memref<64x32xf32>
            memref.store %a, %T[%vi, %vj] : memref<64x32xf32>
          }
        }
      }
      tir.block "C" iters(%vi: spatial<4>, %vj: spatial<2>) = [%i, %j] {
        %x = affine.apply affine_map<(d0) -> (d0 * 16)>(%vi)
        %y = affine.apply affine_map<(d0) -> (d0 * 16)>(%vj)
        %p = low.access_ptr %T[%x, %y] sizes [16, 16] read : memref<64x32xf32>
        %q = low.access_ptr %C[%x, %y] sizes [16, 16] write : memref<64x32xf32>
        %s = low.stride %T {dimension = 0} : memref<64x32xf32>
        %r = func.call @kernel(%p, %q, %s, %three) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, i8) -> i32
      }
    }
  }
  func.return
}
// ROUND:         %p = low.access_ptr %T[%x, %y] sizes [16, 16] read : memref<64x32xf32>
// ROUND-NEXT:    %q = low.access_ptr %C[%x, %y] sizes [16, 16] write : memref<64x32xf32>
// ROUND-NEXT:    %s = low.stride %T {dimension = 0 : i64} : memref<64x32xf32>

// CHECK:       builtin.module attributes {low.import_llvm = ["define i32 @kernel
// CHECK:       func.func private @kernel(!ptr_xdsl.ptr, !ptr_xdsl.ptr, index, i8) -> i32
// CHECK-LABEL: func.func @tiles
// CHECK-SAME:    #low.param<"C", memref<64x32xf32>, write, []>
// CHECK:         %[[J:.*]] = arith.muli %j, %c16 : index
// CHECK:         %[[IJ:.*]] = arith.addi %{{.*}}, %[[J]] : index
// CHECK:         %T = memref.alloca() {alignment = 64 : i64} : memref<256xf32, "local">
// CHECK:         %p = low.access_ptr %T[%c0] read : memref<256xf32, "local">
// CHECK-NEXT:    %q = low.access_ptr %C[%[[IJ]]] write : memref<2048xf32>
// CHECK-NEXT:    %r = func.call @kernel(%p, %q, %c16, %three)

// LLVM:        define void @tiles(ptr noalias {{[^%]*}}readonly {{[^%]*}}%A, ptr noalias {{[^%]*}}writeonly {{[^%]*}}%C)
// LLVM:        %r = call i32 @kernel(ptr %T, ptr %at{{.*}}, i64 16, i8 signext 3)
// LLVM:        define linkonce_odr i32 @kernel(ptr %a, ptr %c, i64 %s, i8 signext %n)
