"""rfactor and decompose_reduction, in the style of TVM's tests."""

from running import Programs

from tvm.script import tirx as T

PROGRAMS = Programs()
on = PROGRAMS.on


@T.prim_func(s_tir=True)
def transformed_matmul(
    A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")
) -> None:
    for i0, i1, i2_outer, i2_inner_outer, i2_inner_inner in T.grid(32, 32, 2, 4, 4):
        with T.sblock("update"):
            vi, vj = T.axis.remap("SS", [i0, i1])
            vk = T.axis.R(32, i2_outer * 16 + i2_inner_outer * 4 + i2_inner_inner)
            T.reads([A[vi, vk], B[vj, vk]])
            T.writes([C[vi, vj]])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + (A[vi, vk] * B[vj, vk])


@T.prim_func(s_tir=True)
def square_sum(A: T.Buffer((4, 16, 16), "float32"), C: T.Buffer((4,), "float32")) -> None:
    for b0, i0, j0 in T.grid(4, 16, 16):
        with T.sblock("C"):
            b, i, j = T.axis.remap("SRR", [b0, i0, j0])
            with T.init():
                C[b] = 0.0
            C[b] = C[b] + A[b, i, j] * A[b, i, j]


@T.prim_func(s_tir=True)
def square_sum_square_root(A: T.Buffer((4, 16, 16), "float32"), D: T.Buffer((4,), "float32")) -> None:
    C = T.sblock_alloc_buffer((4,))
    for i0, i1, i2 in T.grid(4, 16, 16):
        with T.sblock("C"):
            b, i, j = T.axis.remap("SRR", [i0, i1, i2])
            with T.init():
                C[b] = 0.0
            C[b] = C[b] + A[b, i, j] * A[b, i, j]
    for i0 in T.serial(0, 4):
        with T.sblock("D"):
            b = T.axis.remap("S", [i0])
            D[b] = T.sqrt(C[b], dtype="float32")


@T.prim_func(s_tir=True)
def rowsum_blockized(B: T.Buffer((32, 4), "float32"), A: T.Buffer((32, 4, 128), "float32")) -> None:
    for i0, i2_0 in T.grid(32, 16):
        with T.sblock("blockized_B"):
            io, ko = T.axis.remap("SR", [i0, i2_0])
            with T.init():
                for i1 in T.serial(0, 4):
                    with T.sblock("B_init"):
                        ii_init = T.axis.S(4, i1)
                        B[io, ii_init] = 0.0
            for i1_1, i2_1 in T.grid(4, 8):
                with T.sblock("B"):
                    ii = T.axis.S(4, i1_1)
                    k = T.axis.R(128, ko * 8 + i2_1)
                    B[io, ii] = B[io, ii] + A[io, ii, k]


@T.prim_func(s_tir=True)
def rowsum_predicate(A: T.Buffer((16, 16)), B: T.Buffer((16,))) -> None:
    for i, k_0, k_1 in T.grid(16, 3, 6):
        with T.sblock("B"):
            T.where(k_0 * 6 + k_1 < 16)
            vi = T.axis.S(16, i)
            vk = T.axis.R(16, k_0 * 6 + k_1)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def rowsum_zero_dim(A: T.Buffer([128]), B: T.Buffer([])) -> None:
    for k0 in range(128):
        with T.sblock("B"):
            k = T.axis.R(128, k0)
            with T.init():
                B[()] = 0.0
            B[()] = B[()] + A[k]


@T.prim_func(s_tir=True)
def argmax_split(
    idx: T.Buffer((16, 32), "int32"),
    val: T.Buffer((16, 32), "float32"),
    argmax_v0: T.Buffer((16,), "int32"),
    argmax_v1: T.Buffer((16,), "float32"),
) -> None:
    for i0, i1_0, i1_1 in T.grid(16, 4, 8):
        with T.sblock("argmax"):
            i = T.axis.spatial(16, i0)
            k = T.axis.reduce(32, i1_0 * 8 + i1_1)
            T.reads(idx[i, k], val[i, k])
            T.writes(argmax_v0[i], argmax_v1[i])
            with T.init():
                argmax_v0[i] = -1
                argmax_v1[i] = T.min_value("float32")
            v_argmax_v0: T.let[T.int32] = T.Select(argmax_v1[i] >= val[i, k], argmax_v0[i], idx[i, k])
            v_argmax_v1: T.let[T.float32] = T.Select(argmax_v1[i] >= val[i, k], argmax_v1[i], val[i, k])
            argmax_v0[i] = v_argmax_v0
            argmax_v1[i] = v_argmax_v1


@T.prim_func(s_tir=True)
def argmax_topi(data: T.Buffer((8, 32), "float32"), out: T.Buffer((8,), "int64")):
    v0 = T.sblock_alloc_buffer((8,), "int64")
    v1 = T.sblock_alloc_buffer((8,))
    for i0, i1 in T.grid(8, 32):
        with T.sblock("A_red_temp"):
            ax0, k1 = T.axis.remap("SR", [i0, i1])
            T.reads(data[ax0, k1])
            T.writes(v0[ax0], v1[ax0])
            with T.init():
                v0[ax0] = T.int64(-1)
                v1[ax0] = T.min_value("float32")
            a: T.let[T.int64] = T.Select(
                v1[ax0] > data[ax0, k1] or (v1[ax0] == data[ax0, k1] and v0[ax0] < T.Cast("int64", k1)),
                v0[ax0],
                T.Cast("int64", k1),
            )
            b: T.let[T.float32] = T.Select(v1[ax0] > data[ax0, k1], v1[ax0], data[ax0, k1])
            v0[ax0] = a
            v1[ax0] = b
    for i0 in range(8):
        with T.sblock("A_red"):
            ax0 = T.axis.spatial(8, i0)
            out[ax0] = v0[ax0]


@T.prim_func(s_tir=True)
def argmin_topi(data: T.Buffer((8, 32), "float32"), out: T.Buffer((8,), "int32")):
    v0 = T.sblock_alloc_buffer((8,), "int32")
    v1 = T.sblock_alloc_buffer((8,))
    for i0, i1 in T.grid(8, 32):
        with T.sblock("A_red_temp"):
            ax0, k1 = T.axis.remap("SR", [i0, i1])
            T.reads(data[ax0, k1])
            T.writes(v0[ax0], v1[ax0])
            with T.init():
                v0[ax0] = -1
                v1[ax0] = T.max_value("float32")
            a: T.let[T.int32] = T.Select(
                v1[ax0] < data[ax0, k1] or (v1[ax0] == data[ax0, k1] and v0[ax0] < T.Cast("int32", k1)),
                v0[ax0],
                T.Cast("int32", k1),
            )
            b: T.let[T.float32] = T.Select(v1[ax0] < data[ax0, k1], v1[ax0], data[ax0, k1])
            v0[ax0] = a
            v1[ax0] = b
    for i0 in range(8):
        with T.sblock("A_red"):
            ax0 = T.axis.spatial(8, i0)
            out[ax0] = v0[ax0]


@T.prim_func(s_tir=True)
def gemv_multi_out(x: T.Buffer((32,), "float32"), m: T.Buffer((1,), "float32"), s: T.Buffer((1,), "float32")):
    for k in range(32):
        with T.sblock("pair"):
            vk = T.axis.reduce(32, k)
            T.reads(x[vk])
            T.writes(m[0], s[0])
            with T.init():
                m[0] = T.float32(0)
                s[0] = T.float32(0)
            a: T.let[T.float32] = m[0] + x[vk]
            b: T.let[T.float32] = s[0] + x[vk] * x[vk]
            m[0] = a
            s[0] = b


@on(transformed_matmul)
def rfactor_matmul(sch):
    u = sch.get_sblock("update")
    _, _, _, _, kii = sch.get_loops(u)
    sch.rfactor(kii, 0)


@on(transformed_matmul)
def rfactor_matmul_ko(sch):
    u = sch.get_sblock("update")
    sch.rfactor(sch.get_loops(u)[2], 1)


@on(transformed_matmul)
def rfactor_matmul_ki(sch):
    u = sch.get_sblock("update")
    sch.rfactor(sch.get_loops(u)[3], 2)


@on(square_sum)
def rfactor_square_sum(sch):
    sch.rfactor(sch.get_loops(sch.get_sblock("C"))[2], 0)


@on(square_sum_square_root)
def rfactor_square_root(sch):
    c = sch.get_sblock("C")
    _, _, j = sch.get_loops(c)
    f = sch.fuse(*sch.get_loops(c)[1:])
    _, fi = sch.split(f, [None, 4])
    sch.rfactor(fi, 0)


@on(rowsum_zero_dim)
def rfactor_zero_dim(sch):
    sch.rfactor(sch.get_loops(sch.get_sblock("B"))[0], 0)


@on(rowsum_predicate)
def rfactor_predicate(sch):
    sch.rfactor(sch.get_loops(sch.get_sblock("B"))[1], 1)


@on(rowsum_predicate)
def rfactor_predicate_inner(sch):
    sch.rfactor(sch.get_loops(sch.get_sblock("B"))[2], 1)


@on(argmax_topi)
def rfactor_topi_argmax(sch):
    a = sch.get_sblock("A_red_temp")
    _, k = sch.get_loops(a)
    ko, ki = sch.split(k, [None, 8])
    sch.rfactor(ki, 1)


@on(argmin_topi)
def rfactor_topi_argmin(sch):
    a = sch.get_sblock("A_red_temp")
    _, k = sch.get_loops(a)
    ko, ki = sch.split(k, [4, None])
    sch.rfactor(ki, 1)


@on(argmin_topi)
def rfactor_topi_argmin_ko(sch):
    a = sch.get_sblock("A_red_temp")
    _, k = sch.get_loops(a)
    ko, ki = sch.split(k, [4, None])
    sch.rfactor(ko, 1)


@on(gemv_multi_out)
def rfactor_two_sums(sch):
    a = sch.get_sblock("pair")
    (k,) = sch.get_loops(a)
    ko, ki = sch.split(k, [None, 8])
    sch.rfactor(ki, 0)


@on(square_sum)
def rfactor_spatial_only(sch):
    loops = sch.get_loops(sch.get_sblock("C"))
    sch.reorder(loops[1], loops[0])
    sch.rfactor(loops[1], 0)


@on(rowsum_blockized)
def decompose_blockized(sch):
    b = sch.get_sblock("blockized_B")
    sch.decompose_reduction(b, sch.get_loops(b)[0])


@on(rowsum_blockized)
def decompose_blockized_1(sch):
    b = sch.get_sblock("blockized_B")
    sch.decompose_reduction(b, sch.get_loops(b)[1])


@on(transformed_matmul)
def decompose_0(sch):
    b = sch.get_sblock("update")
    sch.decompose_reduction(b, sch.get_loops(b)[0])


@on(transformed_matmul)
def decompose_1(sch):
    b = sch.get_sblock("update")
    loops = sch.get_loops(b)
    sch.reorder(loops[2], loops[1])
    sch.decompose_reduction(b, loops[2])


@on(argmax_split)
def decompose_argmax(sch):
    b = sch.get_sblock("argmax")
    sch.decompose_reduction(b, sch.get_loops(b)[1])


@on(rowsum_predicate)
def decompose_predicate(sch):
    b = sch.get_sblock("B")
    sch.decompose_reduction(b, sch.get_loops(b)[1])


@T.prim_func(s_tir=True)
def colsum_decompose(A: T.Buffer((16, 16)), b: T.Buffer((16,))) -> None:
    for i in T.serial(16):
        for k in T.serial(16):
            with T.sblock("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    b[vi] = 0.0
                b[vi] = b[vi] + A[vk, vi]


@on(colsum_decompose)
def decompose_colsum_reorder(sch):
    b = sch.get_sblock("B")
    i, k = sch.get_loops(b)
    sch.reorder(k, i)
    sch.decompose_reduction(b, k)


@T.prim_func(s_tir=True)
def matmul_vectorized_inner(
    A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")
):
    for i0, j0, k0 in T.grid(2, 2, 2):
        with T.sblock("C_o"):
            vio, vjo, vko = T.axis.remap("SSR", [i0, j0, k0])
            with T.init():
                for i1, j1 in T.grid(16, 16):
                    with T.sblock("C_init"):
                        vii, vji = T.axis.remap("SS", [i1, j1])
                        C[vio * 16 + vii, vjo * 16 + vji] = T.float32(0)
            for i1, j1 in T.grid(16, 16):
                for k1 in range(16):
                    with T.sblock("C"):
                        vii, vji, vki = T.axis.remap("SSR", [i1, j1, k1])
                        C[vio * 16 + vii, vjo * 16 + vji] = (
                            C[vio * 16 + vii, vjo * 16 + vji]
                            + A[vio * 16 + vii, vko * 16 + vki] * B[vko * 16 + vki, vjo * 16 + vji]
                        )


@on(matmul_vectorized_inner)
def decompose_with_inner_blocks(sch):
    b = sch.get_sblock("C_o")
    sch.decompose_reduction(b, sch.get_loops(b)[2])


@on(matmul_vectorized_inner)
def decompose_with_inner_blocks_0(sch):
    b = sch.get_sblock("C_o")
    sch.decompose_reduction(b, sch.get_loops(b)[0])


@T.prim_func(s_tir=True)
def plain_matmul(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@on(plain_matmul)
def blockize_then_decompose(sch):
    b = sch.get_sblock("C")
    i, j, k = sch.get_loops(b)
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 16])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    o = sch.blockize(i1)
    sch.decompose_reduction(o, k0)


@on(plain_matmul)
def blockize_k1_then_decompose(sch):
    b = sch.get_sblock("C")
    i, j, k = sch.get_loops(b)
    k0, k1 = sch.split(k, [None, 16])
    o = sch.blockize(k1)
    sch.decompose_reduction(o, k0)


@on(plain_matmul)
def blockize_twice_then_decompose(sch):
    b = sch.get_sblock("C")
    i, j, k = sch.get_loops(b)
    i0, i1 = sch.split(i, [None, 16])
    k0, k1, k2 = sch.split(k, [None, 4, 4])
    sch.reorder(i0, k0, k1, i1, j, k2)
    sch.blockize(i1)
    oo = sch.blockize(k1)
    sch.decompose_reduction(oo, k0)


@on(plain_matmul)
def blockize_then_decompose_inner(sch):
    b = sch.get_sblock("C")
    i, j, k = sch.get_loops(b)
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 16])
    k0, k1 = sch.split(k, [None, 16])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    o = sch.blockize(k1)
    sch.decompose_reduction(o, k0)


@on(plain_matmul)
def blockize_rfactor(sch):
    b = sch.get_sblock("C")
    i, j, k = sch.get_loops(b)
    k0, k1 = sch.split(k, [None, 8])
    rf = sch.rfactor(k0, 0)
    sch.decompose_reduction(rf, sch.get_loops(rf)[-1])
