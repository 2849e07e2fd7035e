"""compute_at and reverse_compute_at, in the style of TVM's tests."""

from running import Programs

from tvm.script import tirx as T

PROGRAMS = Programs()
on = PROGRAMS.on


@T.prim_func(s_tir=True)
def two_elementwise(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128), "float32")
    B = T.sblock_alloc_buffer((128, 128), "float32")
    C = T.match_buffer(c, (128, 128), "float32")
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def blockized_1(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [128, 128], "float32")
    B = T.sblock_alloc_buffer([128, 128], "float32")
    C = T.match_buffer(c, [128, 128], "float32")
    for i, j in T.grid(8, 8):
        with T.sblock("B_outer"):
            vi_o, vj_o = T.axis.remap("SS", [i, j])
            T.reads([A[vi_o * 16 : vi_o * 16 + 16, vj_o * 16 : vj_o * 16 + 16]])
            T.writes([B[vi_o * 16 : vi_o * 16 + 16, vj_o * 16 : vj_o * 16 + 16]])
            for i_i, j_i in T.grid(16, 16):
                with T.sblock("B_inner"):
                    vi = T.axis.S(128, vi_o * 16 + i_i)
                    vj = T.axis.S(128, vj_o * 16 + j_i)
                    T.reads([A[vi, vj]])
                    T.writes([B[vi, vj]])
                    B[vi, vj] = A[vi, vj] * 2.0
    for ax0_0, ax1_0, ax0_1, ax1_1 in T.grid(16, 8, 8, 16):
        with T.sblock("C"):
            vi = T.axis.S(128, ax0_0 * 8 + ax0_1)
            vj = T.axis.S(128, ax1_0 * 16 + ax1_1)
            T.reads([B[vi, vj]])
            T.writes([C[vi, vj]])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def blockized_2(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [128, 128], "float32")
    B = T.sblock_alloc_buffer([128, 128], "float32")
    C = T.match_buffer(c, [128, 128], "float32")
    for i_o, j_o in T.grid(8, 8):
        with T.sblock("B_outer"):
            vio, vjo = T.axis.remap("SS", [i_o, j_o])
            T.reads([A[vio * 16 : vio * 16 + 16, vjo * 16 : vjo * 16 + 16]])
            T.writes([B[vio * 16 : vio * 16 + 16, vjo * 16 : vjo * 16 + 16]])
            for i_i, j_i in T.grid(16, 16):
                with T.sblock("B_inner"):
                    vi = T.axis.S(128, vio * 16 + i_i)
                    vj = T.axis.S(128, vjo * 16 + j_i)
                    T.reads([A[vi, vj]])
                    T.writes([B[vi, vj]])
                    B[vi, vj] = A[vi, vj] * 2.0
    for i_o, j_o in T.grid(4, 4):
        with T.sblock("C_outer"):
            vio, vjo = T.axis.remap("SS", [i_o, j_o])
            T.reads([B[vio * 32 : vio * 32 + 32, vjo * 32 : vjo * 32 + 32]])
            T.writes([C[vio * 32 : vio * 32 + 32, vjo * 32 : vjo * 32 + 32]])
            for i_i, j_i in T.grid(32, 32):
                with T.sblock("C_inner"):
                    vi = T.axis.S(128, vio * 32 + i_i)
                    vj = T.axis.S(128, vjo * 32 + j_i)
                    T.reads([B[vi, vj]])
                    T.writes([C[vi, vj]])
                    C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def cuda_matmul_0(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [64, 64], "float32")
    B = T.match_buffer(b, [64, 64], "float32")
    C = T.match_buffer(c, [64, 64], "float32")
    A_shared = T.sblock_alloc_buffer([64, 64], "float32", scope="shared")
    B_shared = T.sblock_alloc_buffer([64, 64], "float32", scope="shared")
    A_shared_local = T.sblock_alloc_buffer([64, 64], "float32", scope="local")
    B_shared_local = T.sblock_alloc_buffer([64, 64], "float32", scope="local")
    C_local = T.sblock_alloc_buffer([64, 64], "float32", scope="local")
    for i, j in T.grid(64, 64):
        with T.sblock("A_shared"):
            v0, v1 = T.axis.remap("SS", [i, j])
            A_shared[v0, v1] = A[v0, v1]
    for i, j in T.grid(64, 64):
        with T.sblock("B_shared"):
            v0, v1 = T.axis.remap("SS", [i, j])
            B_shared[v0, v1] = B[v0, v1]
    for i, j in T.grid(64, 64):
        with T.sblock("A_shared_local"):
            v0, v1 = T.axis.remap("SS", [i, j])
            A_shared_local[v0, v1] = A_shared[v0, v1]
    for i, j in T.grid(64, 64):
        with T.sblock("B_shared_local"):
            v0, v1 = T.axis.remap("SS", [i, j])
            B_shared_local[v0, v1] = B_shared[v0, v1]
    for i, j, k in T.grid(64, 64, 64):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C_local[vi, vj] = 0.0
            C_local[vi, vj] = C_local[vi, vj] + A_shared_local[vk, vi] * B_shared_local[vk, vj]
    for by in T.thread_binding(0, 2, thread="blockIdx.y"):
        for bx in T.thread_binding(0, 2, thread="blockIdx.x"):
            for vy in T.thread_binding(0, 2, thread="vthread.y"):
                for vx in T.thread_binding(0, 2, thread="vthread.x"):
                    for ty in T.thread_binding(0, 4, thread="threadIdx.y"):
                        for tx in T.thread_binding(0, 4, thread="threadIdx.x"):
                            for i, j in T.grid(4, 4):
                                with T.sblock("C_local"):
                                    v0 = T.axis.S(64, by * 32 + vy * 16 + ty * 4 + i)
                                    v1 = T.axis.S(64, bx * 32 + vx * 16 + tx * 4 + j)
                                    C[v0, v1] = C_local[v0, v1]


@T.prim_func(s_tir=True)
def tiled(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [128, 128], "float32")
    B = T.sblock_alloc_buffer([128, 128], "float32")
    C = T.match_buffer(c, [128, 128], "float32")
    for i_0, j_0, i_1, j_1 in T.grid(8, 8, 16, 16):
        with T.sblock("B"):
            vi = T.axis.S(128, i_0 * 16 + i_1)
            vj = T.axis.S(128, j_0 * 16 + j_1)
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def tiled_trivial_binding(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [1, 128, 128], "float32")
    B = T.sblock_alloc_buffer([1, 128, 128], "float32")
    C = T.match_buffer(c, [1, 128, 128], "float32")
    for i_0, j_0, i_1, j_1 in T.grid(8, 8, 16, 16):
        with T.sblock("B"):
            vi = T.axis.S(128, i_0 * 16 + i_1)
            vj = T.axis.S(128, j_0 * 16 + j_1)
            B[0, vi, vj] = A[0, vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vr = T.axis.S(1, 0)
            vi, vj = T.axis.remap("SS", [i, j])
            C[vr, vi, vj] = B[vr, vi, vj] + 1.0


@T.prim_func(s_tir=True)
def factorized(A: T.Buffer((16, 16, 16), "float32"), B: T.Buffer((16,), "float32")):
    B_rf_local = T.sblock_alloc_buffer([16, 16], "float32", scope="local")
    for j in T.thread_binding(0, 16, thread="blockIdx.x"):
        for i_o in T.thread_binding(0, 4, thread="threadIdx.x"):
            for i_i, k in T.grid(4, 16):
                with T.sblock("B_rf"):
                    vi = T.axis.S(16, i_o * 4 + i_i)
                    vj, vk = T.axis.remap("SR", [j, k])
                    with T.init():
                        B_rf_local[vi, vj] = 0.0
                    B_rf_local[vi, vj] = B_rf_local[vi, vj] + A[vj, vi, vk]
    for i, k in T.grid(16, 16):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + B_rf_local[vk, vi]


@T.prim_func(s_tir=True)
def not_all_compact_data_flow(a: T.handle, c: T.handle):
    A = T.match_buffer(a, (128, 128), "float32")
    B = T.sblock_alloc_buffer((128, 128), "float32")
    C = T.match_buffer(c, (128, 128), "float32")
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(128, 64):
        with T.sblock("C_1"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj * 2] = B[vi, vj * 2] + 1.0
        with T.sblock("C_2"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj * 2 + 1] = B[vi, vj * 2 + 1] * 2.0


@T.prim_func(s_tir=True)
def read_out_of_bound(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [16], "float32")
    B = T.sblock_alloc_buffer([16], "float32")
    C = T.match_buffer(c, [16], "float32")
    for i in T.serial(0, 16):
        with T.sblock("B"):
            v = T.axis.S(16, i)
            B[v] = A[v]
    for j in T.serial(0, 16):
        with T.sblock("C"):
            v = T.axis.S(16, j)
            T.reads(B[v : v + 2])
            C[v] = T.if_then_else(v < 15, T.max(B[v], B[v + 1]), B[v], dtype="float32")


@T.prim_func(s_tir=True)
def multi_reduction(A: T.Buffer((16, 16), "float32"), C: T.Buffer((1,), "float32")):
    B = T.sblock_alloc_buffer((16,), dtype="float32")
    for i, k in T.grid(16, 16):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for k in T.grid(16):
        with T.sblock("C"):
            vk = T.axis.remap("R", [k])
            with T.init():
                C[0] = 0.0
            C[0] = C[0] + B[vk]


@T.prim_func(s_tir=True)
def tiled_pooling_read_cache(X: T.Buffer((224, 224), "float32"), Y: T.Buffer((224, 224), "float32")):
    cache = T.sblock_alloc_buffer([224, 224], dtype="float32")
    for hh, ww in T.grid(224, 224):
        with T.sblock("cache"):
            h, w = T.axis.remap("SS", [hh, ww])
            cache[h, w] = X[h, w]
    for hh_0, ww_0, hh_1, ww_1, khh, kww in T.grid(28, 28, 8, 8, 3, 3):
        with T.sblock("compute"):
            h = T.axis.spatial(224, hh_0 * 8 + hh_1)
            w = T.axis.spatial(224, ww_0 * 8 + ww_1)
            kh, kw = T.axis.remap("RR", [khh, kww])
            with T.init():
                Y[h, w] = 0.0
            Y[h, w] = T.max(
                Y[h, w],
                T.if_then_else(
                    T.likely(h + kh >= 1, dtype="bool")
                    and T.likely(h + kh < 225, dtype="bool")
                    and T.likely(w + kw >= 1, dtype="bool")
                    and T.likely(w + kw < 225, dtype="bool"),
                    cache[h + kh - 1, w + kw - 1],
                    0.0,
                    dtype="float32",
                ),
            )


@T.prim_func(s_tir=True)
def non_uniform_tiled_conv(
    x: T.Buffer((1, 3, 100, 100), "float32"),
    w: T.Buffer((16, 3, 3, 3), "float32"),
    T_conv: T.Buffer((1, 16, 98, 98), "float32"),
):
    x_global = T.sblock_alloc_buffer([1, 3, 100, 100], dtype="float32")
    for ax0, ax1, ax2, ax3 in T.grid(1, 3, 100, 100):
        with T.sblock("cache"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
            x_global[v0, v1, v2, v3] = x[v0, v1, v2, v3]
    for h_o, w_o, _n, c_o, h_i, w_i, c_i, h_k, w_k in T.grid(7, 7, 1, 16, 15, 15, 3, 3, 3):
        with T.sblock("compute"):
            nn = T.axis.spatial(1, 0)
            cc = T.axis.spatial(16, c_o)
            hh = T.axis.spatial(98, h_o * 15 + h_i)
            ww = T.axis.spatial(98, w_o * 15 + w_i)
            rc, rh, rw = T.axis.remap("RRR", [c_i, h_k, w_k])
            T.where(h_o * 15 + h_i < 98 and w_o * 15 + w_i < 98)
            with T.init():
                T_conv[nn, cc, hh, ww] = T.float32(0)
            T_conv[nn, cc, hh, ww] = (
                T_conv[nn, cc, hh, ww] + x_global[nn, cc // 16 * 3 + rc, hh + rh, ww + rw] * w[cc, rc, rh, rw]
            )


@T.prim_func(s_tir=True)
def concat_two_elemwise(
    x: T.Buffer((16,), "float32"), y: T.Buffer((8,), "float32"), T_concat: T.Buffer((24,), "float32")
):
    T_add_1 = T.sblock_alloc_buffer([16], dtype="float32")
    T_add_2 = T.sblock_alloc_buffer([8], dtype="float32")
    for i in T.serial(16):
        with T.sblock("T_add_1"):
            ax = T.axis.spatial(16, i)
            T_add_1[ax] = x[ax] + T.float32(1)
    for i in T.serial(8):
        with T.sblock("T_add_2"):
            ax = T.axis.spatial(8, i)
            T_add_2[ax] = y[ax] + T.float32(2)
    for i in T.serial(24):
        with T.sblock("T_concat"):
            ax = T.axis.spatial(24, i)
            T_concat[ax] = T.if_then_else(ax >= 16, T_add_2[ax - 16], T_add_1[ax], dtype="float32")


@T.prim_func(s_tir=True)
def floordiv_and_floormod_indices(a: T.handle, b: T.handle) -> None:
    X = T.match_buffer(a, [16, 16])
    Y = T.match_buffer(b, [256])
    temp = T.sblock_alloc_buffer([16, 16])
    for i, j in T.grid(16, 16):
        with T.sblock("A"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            temp[v_i, v_j] = X[v_j, v_i] + 1.0
    for i in T.serial(0, 256):
        with T.sblock("B"):
            v_i = T.axis.remap("S", [i])
            Y[v_i] = temp[v_i // 16, v_i % 16]


@T.prim_func(s_tir=True)
def floordiv_floormod_indices_partial(p0: T.Buffer((8, 16), "float32"), out: T.Buffer((4, 32), "float32")):
    t = T.sblock_alloc_buffer((8, 16))
    for i, j in T.grid(8, 16):
        with T.sblock("t"):
            vi, vj = T.axis.remap("SS", [i, j])
            t[vi, vj] = p0[vi, vj] * 3.0
    for i, j in T.grid(4, 32):
        with T.sblock("o"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = t[(vi * 32 + vj) // 16, (vi * 32 + vj) % 16]


@T.prim_func(s_tir=True)
def tiled_after_reverse_compute_at_src(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, [128, 128], "float32")
    B = T.sblock_alloc_buffer([128, 128], "float32")
    C = T.match_buffer(c, [128, 128], "float32")
    for i_0, j_0, i_1, j_1 in T.grid(8, 8, 16, 16):
        with T.sblock("B"):
            vi = T.axis.S(128, i_0 * 16 + i_1)
            vj = T.axis.S(128, j_0 * 16 + j_1)
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def symbolic_fused(x: T.handle, y: T.handle, n: T.int32):
    X = T.match_buffer(x, (8, n, 32))
    Y = T.match_buffer(y, (8, n, 32))
    for i, k in T.grid(8, n * 32):
        with T.sblock("Y"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(n, k // 32)
            vk = T.axis.spatial(32, k % 32)
            Y[vi, vj, vk] = X[vi, vj, vk]


@T.prim_func(s_tir=True)
def reverse_symbolic(A: T.handle, C: T.handle, n: T.int32):
    X = T.match_buffer(A, (n, 32), "float32")
    Z = T.match_buffer(C, (n, 32), "float32")
    Y = T.sblock_alloc_buffer((n, 32), "float32")
    for i, j in T.grid(n, 32):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * 2.0
    for i, j in T.grid(n, 32):
        with T.sblock("Z"):
            vi, vj = T.axis.remap("SS", [i, j])
            Z[vi, vj] = Y[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def matmul_relu_padding(
    A: T.Buffer((127, 127), "float16"), B: T.Buffer((127, 127), "float16"), compute: T.Buffer((127, 127), "float32")
) -> None:
    C = T.sblock_alloc_buffer([127, 127], dtype="float32")
    A_reindex = T.sblock_alloc_buffer([128, 128], dtype="float16")
    B_reindex = T.sblock_alloc_buffer([128, 128], dtype="float16")
    C_reindex_shared = T.sblock_alloc_buffer([128, 128], dtype="float32", scope="shared")
    C_reindex_shared_wmma_accumulator = T.sblock_alloc_buffer([128, 128], dtype="float32", scope="wmma.accumulator")
    for ax0, ax1, ax2 in T.grid(128, 1, 128):
        with T.sblock("A_reindex"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            A_reindex[v0, v2] = T.if_then_else(v0 < 127 and v2 < 127, A[v0, v2], T.float16(0), dtype="float16")
    for ax0, ax1, ax2 in T.grid(1, 128, 128):
        with T.sblock("B_reindex"):
            v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
            B_reindex[v2, v1] = T.if_then_else(v2 < 127 and v1 < 127, B[v2, v1], T.float16(0), dtype="float16")
    for ax0_0_0_ax1_0_0_fused in T.thread_binding(2, thread="blockIdx.y"):
        for _ax0_0_1_ax1_0_1_fused in T.thread_binding(1, thread="blockIdx.x"):
            for ax0_0_2_ax1_0_2_fused in T.thread_binding(16, thread="threadIdx.y"):
                for ax2_0_0, ax2_0_1, ax0_0_3, ax1_0_3, ax2_0_2, ax0_0_4, ax1_0_4 in T.grid(2, 2, 1, 2, 2, 1, 1):
                    with T.sblock("C_o"):
                        v0_o = T.axis.spatial(8, ax0_0_2_ax1_0_2_fused // 2 + ax0_0_3 + ax0_0_4)
                        v1_o = T.axis.spatial(
                            8, ax1_0_4 + ax0_0_0_ax1_0_0_fused * 4 + ax0_0_2_ax1_0_2_fused % 2 * 2 + ax1_0_3
                        )
                        v2_o = T.axis.reduce(8, ax2_0_0 * 4 + ax2_0_1 * 2 + ax2_0_2)
                        with T.init():
                            for ax0_1, ax1_1 in T.grid(16, 16):
                                with T.sblock("C_init"):
                                    v0_i_init, v1_i_init = T.axis.remap("SS", [ax0_1, ax1_1])
                                    C_reindex_shared_wmma_accumulator[v0_o * 16 + v0_i_init, v1_o * 16 + v1_i_init] = (
                                        T.float32(0)
                                    )
                        for ax0_1, ax1_1, ax2_1 in T.grid(16, 16, 16):
                            with T.sblock("C"):
                                v0_i, v1_i, v2_i = T.axis.remap("SSR", [ax0_1, ax1_1, ax2_1])
                                C_reindex_shared_wmma_accumulator[v0_o * 16 + v0_i, v1_o * 16 + v1_i] = (
                                    C_reindex_shared_wmma_accumulator[v0_o * 16 + v0_i, v1_o * 16 + v1_i]
                                    + T.cast(A_reindex[v0_o * 16 + v0_i, v2_o * 16 + v2_i], "float32")
                                    * T.cast(B_reindex[v2_o * 16 + v2_i, v1_o * 16 + v1_i], "float32")
                                )
                for ax0, ax1 in T.grid(16, 32):
                    with T.sblock("C_reindex_shared_wmma.accumulator"):
                        v0 = T.axis.spatial(128, ax0_0_2_ax1_0_2_fused // 2 * 16 + ax0)
                        v1 = T.axis.spatial(128, ax0_0_0_ax1_0_0_fused * 64 + ax0_0_2_ax1_0_2_fused % 2 * 32 + ax1)
                        C_reindex_shared[v0, v1] = C_reindex_shared_wmma_accumulator[v0, v1]
        for ax0, ax1 in T.grid(128, 64):
            with T.sblock("C_reindex_shared"):
                v0 = T.axis.spatial(128, ax0)
                v1 = T.axis.spatial(128, ax0_0_0_ax1_0_0_fused * 64 + ax1)
                T.where(ax0 < 127 and ax0_0_0_ax1_0_0_fused * 64 + ax1 < 127)
                C[v0, v1] = C_reindex_shared[v0, v1]
    for i0, i1 in T.grid(127, 127):
        with T.sblock("compute"):
            i0_1, i1_1 = T.axis.remap("SS", [i0, i1])
            compute[i0_1, i1_1] = T.max(C[i0_1, i1_1], T.float32(0))


@T.prim_func(s_tir=True)
def grouped_channel_bias(X: T.Buffer((720, 8, 8), "float32"), Y: T.Buffer((720, 8, 8), "float32")):
    B = T.sblock_alloc_buffer([45], dtype="float32", scope="")
    for i in T.grid(45):
        with T.sblock("init"):
            vi = T.axis.remap("S", [i])
            B[vi] = T.Cast("float32", vi)
    for c_o, h, w, c_i in T.grid(2, 8, 8, 360):
        with T.sblock("compute"):
            hh, ww = T.axis.remap("SS", [h, w])
            cc = T.axis.spatial(720, c_o * 360 + c_i)
            Y[cc, hh, ww] = X[cc, hh, ww] + B[cc // 16]


@on(two_elementwise)
def compute_at_two_elementwise(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    loop, _ = sch.get_loops(c)
    sch.compute_at(b, loop, preserve_unit_loops=True)


@on(blockized_1)
def compute_at_blockized_1(sch):
    b = sch.get_sblock("B_outer")
    c = sch.get_sblock("C")
    _, loop, _, _ = sch.get_loops(c)
    sch.compute_at(b, loop, preserve_unit_loops=True)


@on(blockized_2)
def compute_at_blockized_2(sch):
    b = sch.get_sblock("B_outer")
    c = sch.get_sblock("C_outer")
    _, loop = sch.get_loops(c)
    sch.compute_at(b, loop, preserve_unit_loops=True)


@on(cuda_matmul_0, builds=False)
def compute_at_cuda_matmul_0(sch):
    c = sch.get_sblock("C")
    cl = sch.get_sblock("C_local")
    _, _, _, _, _, tx, _, _ = sch.get_loops(cl)
    sch.compute_at(c, tx, preserve_unit_loops=True)
    i, j, k = sch.get_loops(c)[-3:]
    k0, k1, k2 = sch.split(k, [None, 4, 1])
    sch.reorder(k0, k1, k2, i, j)
    al = sch.get_sblock("A_shared_local")
    sch.compute_at(al, k1, preserve_unit_loops=True)
    sch.compute_at(sch.get_sblock("B_shared_local"), k1, preserve_unit_loops=True)
    sch.compute_at(sch.get_sblock("A_shared"), k0, preserve_unit_loops=True)
    sch.compute_at(sch.get_sblock("B_shared"), k0, preserve_unit_loops=True)


@on(tiled)
def reverse_compute_at_tiled(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    _, _, loop, _ = sch.get_loops(b)
    sch.reverse_compute_at(c, loop, preserve_unit_loops=False)


@on(tiled_trivial_binding)
def reverse_compute_at_tiled_trivial_binding(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    _, _, loop, _ = sch.get_loops(b)
    sch.reverse_compute_at(c, loop, preserve_unit_loops=False)


@on(factorized, builds=False)
def reverse_compute_at_factorized(sch):
    rf = sch.get_sblock("B_rf")
    b = sch.get_sblock("B")
    _, loop, _, _ = sch.get_loops(rf)
    sch.reverse_compute_at(b, loop, preserve_unit_loops=False)


@on(not_all_compact_data_flow)
def compute_at_not_all_compact(sch):
    b = sch.get_sblock("B")
    c2 = sch.get_sblock("C_2")
    loop = sch.get_loops(c2)[0]
    sch.compute_at(b, loop)


@on(not_all_compact_data_flow)
def compute_at_not_all_compact_inner(sch):
    b = sch.get_sblock("B")
    c2 = sch.get_sblock("C_2")
    loop = sch.get_loops(c2)[1]
    sch.compute_at(b, loop)


@on(read_out_of_bound)
def compute_at_read_out_of_bound(sch):
    sch.compute_at(sch.get_sblock("B"), sch.get_loops(sch.get_sblock("C"))[0])


@on(multi_reduction)
def compute_at_multi_reduction(sch):
    sch.compute_at(sch.get_sblock("B"), sch.get_loops(sch.get_sblock("C"))[0])


@on(multi_reduction)
def reverse_compute_at_multi_reduction(sch):
    sch.reverse_compute_at(sch.get_sblock("C"), sch.get_loops(sch.get_sblock("B"))[0])


@on(tiled_pooling_read_cache)
def compute_at_tiled_pooling(sch):
    sch.compute_at(sch.get_sblock("cache"), sch.get_loops(sch.get_sblock("compute"))[1])


@on(non_uniform_tiled_conv)
def compute_at_non_uniform_conv(sch):
    sch.compute_at(sch.get_sblock("cache"), sch.get_loops(sch.get_sblock("compute"))[1])


@on(concat_two_elemwise)
def compute_at_concat(sch):
    o = sch.get_sblock("T_concat")
    sch.compute_at(sch.get_sblock("T_add_1"), sch.get_loops(o)[0])
    sch.compute_at(sch.get_sblock("T_add_2"), sch.get_loops(o)[0])


@on(floordiv_and_floormod_indices)
def reverse_compute_at_floordiv(sch):
    sch.reverse_compute_at(sch.get_sblock("B"), sch.get_loops(sch.get_sblock("A"))[0])


@on(floordiv_and_floormod_indices)
def compute_at_floordiv(sch):
    sch.compute_at(sch.get_sblock("A"), sch.get_loops(sch.get_sblock("B"))[0])


@on(floordiv_floormod_indices_partial)
def reverse_at_floordiv_2(sch):
    sch.reverse_compute_at(sch.get_sblock("o"), sch.get_loops(sch.get_sblock("t"))[0])


@on(floordiv_floormod_indices_partial)
def compute_at_floordiv_2(sch):
    sch.compute_at(sch.get_sblock("t"), sch.get_loops(sch.get_sblock("o"))[0])


@on(tiled_after_reverse_compute_at_src)
def compute_at_to_index_min(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    sch.reverse_compute_at(c, sch.get_loops(b)[1], preserve_unit_loops=True, index=-1)


@on(two_elementwise)
def compute_at_to_index(sch):
    sch.compute_at(sch.get_sblock("B"), sch.get_loops(sch.get_sblock("C"))[0], index=-2)


@on(symbolic_fused, builds=False)
def reverse_compute_at_symbolic_fused(sch):
    y = sch.get_sblock("Y")
    w = sch.cache_write(y, 0, "local")
    loop = sch.get_loops(y)[1]
    sch.reverse_compute_at(w, loop)


@on(symbolic_fused, builds=False)
def compute_at_symbolic_fused(sch):
    y = sch.get_sblock("Y")
    r = sch.cache_read(y, 0, "local")
    sch.compute_at(r, sch.get_loops(y)[1])


@on(symbolic_fused, builds=False)
def reverse_compute_at_symbolic_fused_0(sch):
    y = sch.get_sblock("Y")
    w = sch.cache_write(y, 0, "local")
    sch.reverse_compute_at(w, sch.get_loops(y)[0])


@on(reverse_symbolic, builds=False)
def reverse_compute_at_fused_then(sch):
    y = sch.get_sblock("Y")
    f = sch.fuse(*sch.get_loops(y))
    a, b = sch.split(f, [None, 16])
    sch.reverse_compute_at(sch.get_sblock("Z"), a)


@on(reverse_symbolic, builds=False)
def reverse_compute_at_fused_1(sch):
    y = sch.get_sblock("Y")
    f = sch.fuse(*sch.get_loops(y))
    sch.reverse_compute_at(sch.get_sblock("Z"), f)


@on(reverse_symbolic, builds=False)
def compute_at_fused_2(sch):
    z = sch.get_sblock("Z")
    f = sch.fuse(*sch.get_loops(z))
    a, b = sch.split(f, [None, 64])
    sch.compute_at(sch.get_sblock("Y"), a)


@on(reverse_symbolic, builds=False)
def compute_at_split_64(sch):
    z = sch.get_sblock("Z")
    a, b = sch.split(sch.get_loops(z)[0], [None, 64])
    sch.compute_at(sch.get_sblock("Y"), a)


@on(reverse_symbolic, builds=False)
def reverse_compute_at_split_64(sch):
    z = sch.get_sblock("Y")
    a, b = sch.split(sch.get_loops(z)[0], [None, 64])
    sch.reverse_compute_at(sch.get_sblock("Z"), a)


@on(matmul_relu_padding, builds=False)
def reverse_compute_at_padding(sch):
    sch.reverse_compute_at(sch.get_sblock("compute"), sch.get_loops(sch.get_sblock("C_reindex_shared"))[0])


@on(matmul_relu_padding, builds=False)
def compute_inline_padding(sch):
    sch.reverse_compute_inline(sch.get_sblock("compute"))


@on(grouped_channel_bias)
def compute_at_grouped_bias(sch):
    sch.compute_at(sch.get_sblock("init"), sch.get_loops(sch.get_sblock("compute"))[0])


@T.prim_func(s_tir=True)
def layout_shift(B: T.Buffer((8, 16), "float32"), D: T.Buffer((8, 16), "float32")):
    C = T.sblock_alloc_buffer((8, 16))
    for i, j in T.grid(8, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * 2.0
    for i, j in T.grid(8, 15):
        with T.sblock("D"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(15, j)
            D[vi, vj + 1] = C[vi, vj + 1] + C[vi, vj]


@on(layout_shift)
def compute_at_shift(sch):
    sch.compute_at(sch.get_sblock("C"), sch.get_loops(sch.get_sblock("D"))[1])


@T.prim_func(s_tir=True)
def symbolic_predicate(x: T.handle, y: T.handle, n: T.int64):
    X = T.match_buffer(x, (T.int64(8), n * 32), "float32")
    Y = T.match_buffer(y, (T.int64(8), n * 32), "float32")
    for i, k in T.grid(T.int64(8), n * 32):
        with T.sblock("Y"):
            vi, vk = T.axis.remap("SS", [i, k])
            Y[vi, vk] = X[vi, vk]


@on(symbolic_predicate, builds=False)
def compute_at_simplify_symbolic_predicate(sch):
    y = sch.get_sblock("Y")
    i, k = sch.get_loops(y)
    ko, ki = sch.split(k, [None, 32])
    x = sch.cache_read(y, 0, "global")
    sch.compute_at(x, ko)


@on(symbolic_predicate, builds=False)
def compute_at_simplify_symbolic_predicate_b(sch):
    y = sch.get_sblock("Y")
    i, k = sch.get_loops(y)
    ko, ki = sch.split(k, [None, 32])
    x = sch.cache_write(y, 0, "global")
    sch.reverse_compute_at(x, ko)


@T.prim_func(s_tir=True)
def dyn_norm(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, T.int64(4), T.int64(64)), "float32")
    Y = T.match_buffer(y, (n, T.int64(4), T.int64(64)), "float32")
    S = T.sblock_alloc_buffer((n, T.int64(4)))
    for i, h, k in T.grid(n, T.int64(4), T.int64(64)):
        with T.sblock("S"):
            vi, vh, vk = T.axis.remap("SSR", [i, h, k])
            with T.init():
                S[vi, vh] = T.float32(0)
            S[vi, vh] = S[vi, vh] + X[vi, vh, vk] * X[vi, vh, vk]
    for i, h, k in T.grid(n, T.int64(4), T.int64(64)):
        with T.sblock("N"):
            vi, vh, vk = T.axis.remap("SSS", [i, h, k])
            Y[vi, vh, vk] = X[vi, vh, vk] * S[vi, vh]


@on(dyn_norm, builds=False)
def reverse_at_symbolic_fused_dlight(sch):
    s = sch.get_sblock("S")
    i, h, k = sch.get_loops(s)
    bx = sch.fuse(i, h)
    sch.reverse_compute_at(sch.get_sblock("N"), bx)


@on(dyn_norm, builds=False)
def reverse_at_symbolic_fused_dlight_split(sch):
    s = sch.get_sblock("S")
    i, h, k = sch.get_loops(s)
    bx, tx = sch.split(sch.fuse(i, h), [None, 16])
    sch.reverse_compute_at(sch.get_sblock("N"), bx)


@on(dyn_norm, builds=False)
def compute_at_symbolic_fused_dlight(sch):
    n = sch.get_sblock("N")
    i, h, k = sch.get_loops(n)
    bx = sch.fuse(i, h)
    sch.compute_at(sch.get_sblock("S"), bx)


@on(dyn_norm, builds=False)
def compute_at_symbolic_fused_dlight_split(sch):
    n = sch.get_sblock("N")
    i, h, k = sch.get_loops(n)
    bx, tx = sch.split(sch.fuse(i, h), [None, 16])
    sch.compute_at(sch.get_sblock("S"), bx)


@on(dyn_norm, builds=False)
def compute_at_symbolic_fused_dlight_tx(sch):
    n = sch.get_sblock("N")
    i, h, k = sch.get_loops(n)
    bx, tx = sch.split(sch.fuse(i, h), [None, 16])
    sch.compute_at(sch.get_sblock("S"), tx)
