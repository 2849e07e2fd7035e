# RUN: python %s | filecheck %s
# A script becomes IR, a schedule changes it, and the result is a script again.

import weft
from weft.script import ir_module, print_script
from weft.script import tir as T


@ir_module
class Module:
    @T.prim_func
    def rows(a: T.handle, C: T.Buffer((10,), "float32")):
        n = T.int64()
        A = T.match_buffer(a, (10, n), "float32")
        S = T.alloc_buffer((10,), "float32", scope="local")
        for i, k in T.grid(10, n):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk])
                T.writes(S[vi])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] += A[vi, vk]
        for i in range(10):
            with T.block("C"):
                vi = T.axis.spatial(10, i)
                C[vi] = T.if_then_else(vi > 0, S[vi] / S[vi - 1], T.float32(1))


print(Module)
# CHECK:       func.func @rows(%A: memref<10x?xf32>, %C: memref<10xf32>) {
# CHECK:         %n = memref.dim %A, %c1 : memref<10x?xf32>
# CHECK-NEXT:    %S = memref.alloc() : memref<10xf32, "local">
# CHECK-NEXT:    tir.for %i in 10 {
# CHECK-NEXT:      tir.for %k in %n {
# CHECK-NEXT:        tir.block "S" iters(%vi: spatial<10>, %vk: reduce<%n>) = [%i, %k] {
# CHECK-NEXT:          tir.reads %A[%vi, %vk] : memref<10x?xf32>
# CHECK-NEXT:          tir.writes %S[%vi] : memref<10xf32, "local">
# CHECK-NEXT:          tir.init {
# CHECK-NEXT:            memref.store %zero, %S[%vi] : memref<10xf32, "local">
# CHECK-NEXT:          }
# CHECK-NEXT:          %a = memref.load %A[%vi, %vk] : memref<10x?xf32>
# CHECK-NEXT:          %s = memref.load %S[%vi] : memref<10xf32, "local">
# CHECK-NEXT:          %0 = arith.addf %s, %a : f32
# CHECK-NEXT:          memref.store %0, %S[%vi] : memref<10xf32, "local">
# CHECK:         tir.for %i_1 in 10 {
# CHECK-NEXT:      tir.block "C" iters(%vi_1: spatial<10>) = [%i_1] {
# CHECK-NEXT:        %1 = arith.cmpi sgt, %vi_1, %c0 : index
# CHECK-NEXT:        %2 = scf.if %1 -> (f32) {

sch = weft.Schedule(Module)
i, k = sch.get_loops("S")
sch.split(i, factors=[None, 4])
sch.parallel(sch.get_loops("C")[0])
print(print_script(sch.mod))
# CHECK:       from weft.script import ir as I, tir as T
# CHECK:       @I.ir_module
# CHECK-NEXT:  class Module:
# CHECK-NEXT:      @T.prim_func
# CHECK-NEXT:      def rows(var_A: T.handle, C: T.Buffer((10,), "float32")):
# CHECK-NEXT:          T.func_attr({"global_symbol": "rows", "tir.noalias": True})
# CHECK-NEXT:          n = T.int64()
# CHECK-NEXT:          A = T.match_buffer(var_A, (10, n), "float32")
# CHECK-NEXT:          S = T.alloc_buffer((10,), "float32", scope="local")
# CHECK-NEXT:          for i0, i1, k in T.grid(3, 4, n):
# CHECK-NEXT:              with T.block("S"):
# CHECK-NEXT:                  vi = T.axis.spatial(10, i0 * 4 + i1)
# CHECK-NEXT:                  vk = T.axis.reduce(n, k)
# CHECK-NEXT:                  T.where(i0 * 4 + i1 < 10)
# CHECK-NEXT:                  T.reads(A[vi, vk])
# CHECK-NEXT:                  T.writes(S[vi])
# CHECK-NEXT:                  with T.init():
# CHECK-NEXT:                      S[vi] = T.float32(0)
# CHECK-NEXT:                  S[vi] = S[vi] + A[vi, vk]
# CHECK-NEXT:          for i in T.parallel(10):
# CHECK-NEXT:              with T.block("C"):
# CHECK-NEXT:                  vi = T.axis.spatial(10, i)
# CHECK-NEXT:                  C[vi] = T.if_then_else(vi > 0, S[vi] / S[vi - 1], T.float32(1))
