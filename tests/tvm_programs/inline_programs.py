"""compute_inline, reverse_compute_inline and fuse_reduction_epilogue, in the style of TVM's tests."""

from running import Programs

from tvm.script import tirx as T

PROGRAMS = Programs()
on = PROGRAMS.on


@T.prim_func(s_tir=True)
def elementwise(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_multi_producer_consumer(a: T.handle, c: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 128))
    D = T.match_buffer(d, (128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0
    for i, j in T.grid(128, 128):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + 2.0 + C[vi, vj]


@T.prim_func(s_tir=True)
def elementwise_standalone(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_under_loop(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    C = T.match_buffer(c, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    for i in T.serial(0, 128):
        for j in T.serial(0, 128):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for j in T.serial(0, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_multi_reverse_loads(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = (B[vi, vj] + 1.0) * (B[vi, vj] * 2.0) + 3.0


@T.prim_func(s_tir=True)
def elementwise_reverse_affine_load(A: T.Buffer((128, 128), "float32"), C: T.Buffer((8, 32, 8, 8), "float32")) -> None:
    B = T.sblock_alloc_buffer((128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j, k, l in T.grid(8, 32, 8, 8):
        with T.sblock("C"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            C[vi, vj, vk, vl] = B[
                ((((vi * 32) + vj) * 8 + vk) * 8 + vl) // 128,
                ((((vi * 32) + vj) * 8 + vk) * 8 + vl) % 128,
            ]


@T.prim_func(s_tir=True)
def elementwise_reverse_affine_load_unit_iter(
    A: T.Buffer((8, 32, 1), "float32"), B: T.Buffer((1, 32), "float32"), D: T.Buffer((1, 8, 1, 32), "float32")
) -> None:
    C = T.sblock_alloc_buffer((8, 32))
    for i, j in T.grid(8, 32):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj, 0] + B[0, vj]
    for i, j, k, l in T.grid(1, 8, 1, 32):
        with T.sblock("C"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            D[vi, vj, vk, vl] = C[vj + vi, vl + vk]


@T.prim_func(s_tir=True)
def elementwise_reverse_affine_load_unit_iter_simplified(
    A: T.Buffer((1, 8, 1, 32), "float32"), D: T.Buffer((1, 8, 1, 32), "float32")
) -> None:
    C = T.sblock_alloc_buffer((8, 32))
    for i, j, k, l in T.grid(1, 8, 1, 32):
        with T.sblock("B"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            C[vj, vl] = A[vi, vj, vk, vl] * 2.0
    for i, j, k, l in T.grid(1, 8, 1, 32):
        with T.sblock("C"):
            vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
            D[vi, vj, vk, vl] = C[vj, vl]


@T.prim_func(s_tir=True)
def exp_exp_opaque_access_with_tvm_access_ptr(
    lookup_table: T.Buffer((1024,), "int8"), x: T.Buffer((16,), "float16"), compute: T.Buffer((16,), "float16")
) -> None:
    compute_1 = T.sblock_alloc_buffer([16], dtype="float16")
    for i0 in T.serial(16):
        with T.sblock("compute"):
            i0_1 = T.axis.spatial(16, i0)
            T.reads(x[i0_1])
            T.writes(compute_1[i0_1])
            compute_1[i0_1] = T.exp(x[i0_1])
    for i0 in T.serial(16):
        with T.sblock("compute_1"):
            i0_2 = T.axis.spatial(16, i0)
            T.reads(lookup_table[0:1024], compute_1[i0_2])
            T.writes(compute[i0_2])
            T.evaluate(lookup_table.access_ptr("r"))
            compute[i0_2] = T.exp(compute_1[i0_2])


@T.prim_func(s_tir=True)
def elementwise_predicate(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(B[i, j] < 10.0)
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_multi_loads(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    C = T.match_buffer(c, (128, 126))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 126):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi, vj + 1] + B[vi, vj + 2]


@T.prim_func(s_tir=True)
def access_opaque_ptr_then_elemwise(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, [1024])
    B = T.match_buffer(b, [1024])
    A_cache = T.sblock_alloc_buffer([1024])
    BB = T.sblock_alloc_buffer([1024])
    with T.sblock("opaque"):
        T.reads(A[0:512])
        T.writes(A_cache[0:512])
        T.evaluate(A.access_ptr("r", extent=512))
        T.evaluate(A_cache.access_ptr("w", extent=512))
    for i in range(512):
        with T.sblock("BB"):
            vi = T.axis.remap("S", [i])
            T.reads(A_cache[vi])
            T.writes(BB[vi])
            BB[vi] = A_cache[vi] * 2.0
    for i in range(512):
        with T.sblock("B"):
            vi = T.axis.remap("S", [i])
            T.reads(BB[vi])
            T.writes(B[vi])
            B[vi] = BB[vi] + 1.0


@T.prim_func(s_tir=True)
def elementwise_overcomputed_producer(A: T.Buffer((128, 128), "float32"), C: T.Buffer((127, 127), "float32")) -> None:
    B = T.sblock_alloc_buffer((128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(127, 127):
        with T.sblock("C"):
            cvi, cvj = T.axis.remap("SS", [i, j])
            C[cvi, cvj] = B[cvi, cvj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_overcomputed_producer_simplify_predicate(
    A: T.Buffer((128, 128), "float32"), C: T.Buffer((127, 127), "float32")
) -> None:
    B = T.sblock_alloc_buffer((128, 128))
    for i in T.grid(16384):
        with T.sblock("B"):
            vi = T.axis.spatial(128, i // 128)
            vj = T.axis.spatial(128, i % 128)
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(127, 127):
        with T.sblock("C"):
            cvi, cvj = T.axis.remap("SS", [i, j])
            C[cvi, cvj] = B[cvi, cvj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_overcomputed_producer_injective_load(
    A: T.Buffer((128, 128), "float32"), C: T.Buffer((8, 8, 16, 16), "float32")
) -> None:
    B = T.sblock_alloc_buffer((128, 128))
    for i0, j0 in T.grid(8, 8):
        for i1, j1 in T.grid(16, 16):
            with T.sblock("B"):
                vi = T.axis.spatial(128, i0 * 16 + i1)
                vj = T.axis.spatial(128, j0 * 16 + j1)
                B[vi, vj] = A[vi, vj] * 2.0
    for i0, j0, i1, j1 in T.grid(8, 8, 16, 16):
        with T.sblock("C"):
            vi0, vj0, vi1, vj1 = T.axis.remap("SSSS", [i0, j0, i1, j1])
            C[vi0, vj0, vi1, vj1] = B[vi0 * 16 + vi1, vj0 * 16 + vj1] + 1.0


@T.prim_func(s_tir=True)
def elementwise_overcomputed_producer_reverse_inlined_src(
    A: T.Buffer((128, 128), "float32"), C: T.Buffer((127, 127), "float32")
) -> None:
    B = T.sblock_alloc_buffer((128, 128))
    for i0, j0 in T.grid(8, 8):
        for i1, j1 in T.grid(16, 16):
            with T.sblock("B"):
                vi = T.axis.spatial(128, i0 * 16 + i1)
                vj = T.axis.spatial(128, j0 * 16 + j1)
                B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(127, 127):
        with T.sblock("C"):
            cvi, cvj = T.axis.remap("SS", [i, j])
            C[cvi, cvj] = B[cvi, cvj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_predicate_producer(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.sblock_alloc_buffer((127, 128))
    C = T.match_buffer(c, (127, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            T.where(i < 127)
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(127, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def where_from_buffer(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    M = T.sblock_alloc_buffer((16,), "int32")
    for i in range(16):
        with T.sblock("M"):
            vi = T.axis.spatial(16, i)
            M[vi] = vi * 2 + 1
    for i, j in T.grid(16, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j < M[i])
            C[vi, vj] = A[vi, vj] + 1.0


@on(elementwise)
def compute_inline_elementwise(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(elementwise_under_loop)
def compute_inline_under_loop(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(elementwise_standalone)
def compute_inline_as_dce(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(elementwise_multi_producer_consumer)
def compute_inline_multi_consumer(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(elementwise)
def reverse_compute_inline_elementwise(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_under_loop)
def reverse_compute_inline_under_loop(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_multi_reverse_loads)
def reverse_compute_multi_reverse_loads(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_reverse_affine_load)
def reverse_compute_inline_affine_load(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_reverse_affine_load_unit_iter)
def reverse_compute_inline_unit_iter(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_reverse_affine_load_unit_iter_simplified)
def reverse_compute_inline_unit_iter_simplified(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(exp_exp_opaque_access_with_tvm_access_ptr, builds=False)
def compute_inline_opaque_ptr(sch):
    sch.compute_inline(sch.get_sblock("compute"))


@on(elementwise_predicate)
def compute_inline_predicate(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(where_from_buffer)
def compute_inline_predicate_2(sch):
    sch.compute_inline(sch.get_sblock("M"))


@on(elementwise_multi_loads)
def compute_inline_multi_loads(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(access_opaque_ptr_then_elemwise, builds=False)
def compute_inline_with_opaque_access(sch):
    sch.compute_inline(sch.get_sblock("BB"))


@on(elementwise_overcomputed_producer)
def reverse_inline_overcomputed(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_overcomputed_producer_simplify_predicate)
def reverse_inline_overcomputed_simplify(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_overcomputed_producer_injective_load)
def reverse_inline_overcomputed_injective(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_overcomputed_producer_reverse_inlined_src)
def reverse_inline_overcomputed_tiled(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_predicate_producer)
def reverse_inline_producer_predicate_allowed(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on(elementwise_predicate_producer)
def inline_producer_predicate(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on(elementwise)
def reverse_inline_after_producer_guard(sch):
    b = sch.get_sblock("B")
    i, j = sch.get_loops(b)
    sch.split(i, [None, 5])
    sch.reverse_compute_inline(sch.get_sblock("C"))


@T.prim_func(s_tir=True)
def reverse_pred_src(p_lv26: T.Buffer((10, 64), "float32"), out: T.Buffer((1, 10, 64), "float32")):
    lv = T.sblock_alloc_buffer((12, 64))
    for i_0, i_1, j in T.grid(3, 5, 64):
        with T.sblock("P"):
            T.where(i_0 * 5 + i_1 < 12)
            vi = T.axis.spatial(12, i_0 * 5 + i_1)
            vj = T.axis.spatial(64, j)
            lv[vi, vj] = T.if_then_else(vi < 10, p_lv26[vi, vj], T.float32(0))
    for a, i, j in T.grid(1, 10, 64):
        with T.sblock("O"):
            va, vi, vj = T.axis.remap("SSS", [a, i, j])
            out[va, vi, vj] = lv[vi, vj] * T.float32(2)


@on(reverse_pred_src)
def reverse_inline_pred_both(sch):
    sch.reverse_compute_inline(sch.get_sblock("O"))


@T.prim_func(s_tir=True)
def mma_like(
    A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), D: T.Buffer((2, 2, 16, 16), "float32")
):
    C = T.sblock_alloc_buffer((32, 32))
    Cr = T.sblock_alloc_buffer((2, 2, 16, 16))
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j, k, l in T.grid(2, 2, 16, 16):
        with T.sblock("Cr"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i, j, k, l])
            Cr[v0, v1, v2, v3] = C[v0 * 16 + v2, v1 * 16 + v3]
    for i, j, k, l in T.grid(2, 2, 16, 16):
        with T.sblock("D"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i, j, k, l])
            D[v0, v1, v2, v3] = T.max(Cr[v0, v1, v2, v3], T.float32(0))


@on(mma_like)
def reverse_inline_then_at(sch):
    sch.reverse_compute_inline(sch.get_sblock("D"))
    sch.reverse_compute_at(sch.get_sblock("Cr"), sch.get_loops(sch.get_sblock("C"))[0])


@on(mma_like)
def inline_then_at(sch):
    sch.compute_inline(sch.get_sblock("Cr"))
    sch.reverse_compute_at(sch.get_sblock("D"), sch.get_loops(sch.get_sblock("C"))[1])


@T.prim_func(s_tir=True)
def matmul_bias(
    A: T.Buffer((16, 16), "int8"),
    B: T.Buffer((16, 16), "int8"),
    C: T.Buffer((16, 16), "int32"),
    D: T.Buffer((16, 16), "int32"),
):
    temp = T.sblock_alloc_buffer((16, 16), dtype="int32")
    for i, j, k in T.grid(16, 16, 16):
        with T.sblock("multiply"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                temp[vi, vj] = T.int32(0)
            temp[vi, vj] = temp[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")
    for i, j in T.grid(16, 16):
        with T.sblock("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = temp[vi, vj] + C[vi, vj]


@on(matmul_bias)
def fuse_epilogue_bias(sch):
    sch.fuse_reduction_epilogue("multiply", "add")
