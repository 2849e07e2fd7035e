# RUN: python %s | filecheck %s
"""The shape of what tensorize makes: corners of boxes, pointers, the outside function."""

import weft

DESCRIPTION = """
func.func @desc(%A: memref<8xf32>, %C: memref<8xf32>) {
  tir.for %i in 8 { tir.block "" iters(%v: spatial<8>) = [%i] {
    %a = memref.load %A[%v] : memref<8xf32>
    memref.store %a, %C[%v] : memref<8xf32>
  } }
  func.return
}"""
IMPLEMENTATION = """
func.func private @copy8(!ptr_xdsl.ptr, !ptr_xdsl.ptr)
func.func @impl(%A: memref<8xf32>, %C: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0] sizes [8] read : memref<8xf32>
  %c = low.access_ptr %C[%c0] sizes [8] write : memref<8xf32>
  func.call @copy8(%a, %c) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr) -> ()
  func.return
}"""
PROGRAM = """
func.func @f(%A: memref<3x64xf32>, %C: memref<64xf32>) {
  %c2 = arith.constant 2 : index
  tir.for %i in 64 { tir.block "C" iters(%v: spatial<64>) = [%i] {
    %a = memref.load %A[%c2, %v] : memref<3x64xf32>
    memref.store %a, %C[%v] : memref<64xf32>
  } }
  func.return
}"""

weft.register_tensor_intrinsic("copy8", weft.parse(DESCRIPTION), weft.parse(IMPLEMENTATION))
sch = weft.Schedule(weft.parse(PROGRAM))
(i,) = sch.get_loops("C")
_, inner = sch.split(i, [None, 8])
sch.tensorize(inner, "copy8")
print(sch.mod)
print(sch.trace)
# CHECK:       func.func private @copy8(!ptr_xdsl.ptr, !ptr_xdsl.ptr)
# CHECK:       tir.for %i0 in 8 {
# CHECK-NEXT:    tir.block "C_o" iters(%v_o: spatial<8>) = [%i0] {
# CHECK-NEXT:      %c0 = arith.constant 0 : index
# CHECK-NEXT:      %[[ROW:.*]] = arith.constant 2 : index
# CHECK-NEXT:      %[[X:.*]] = affine.apply affine_map<(d0) -> ((d0 * 8))> (%v_o)
# CHECK-NEXT:      %a = low.access_ptr %A[%[[ROW]], %[[X]]] sizes [1, 8] read : memref<3x64xf32>
# CHECK-NEXT:      %[[Y:.*]] = affine.apply affine_map<(d0) -> ((d0 * 8))> (%v_o)
# CHECK-NEXT:      %c = low.access_ptr %C[%[[Y]]] sizes [8] write : memref<64xf32>
# CHECK-NEXT:      func.call @copy8(%a, %c) : (!ptr_xdsl.ptr, !ptr_xdsl.ptr) -> ()
# CHECK-NEXT:    }
# CHECK:       sched.tensorize %i1 {intrinsic = "copy8"}
