"""read_at, write_at, decompose_padding, sampling, and steps beside fragments and external code, in the style of TVM's
tests."""

from running import Programs

from tvm.script import tirx as T

PROGRAMS = Programs()
on = PROGRAMS.on


@T.prim_func(s_tir=True)
def cuda_matmul(
    A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")
) -> None:
    for by in T.thread_binding(0, 2, thread="blockIdx.y"):
        for bx in T.thread_binding(0, 2, thread="blockIdx.x"):
            for vy in T.thread_binding(0, 2, thread="vthread.y"):
                for vx in T.thread_binding(0, 2, thread="vthread.x"):
                    for ty in T.thread_binding(0, 4, thread="threadIdx.y"):
                        for tx in T.thread_binding(0, 4, thread="threadIdx.x"):
                            for k0 in T.serial(0, 8):
                                for k1 in T.unroll(0, 2):
                                    for k2, i, j in T.grid(4, 4, 4):
                                        with T.sblock("C"):
                                            vi = T.axis.S(64, by * 32 + vy * 16 + ty * 4 + i)
                                            vj = T.axis.S(64, bx * 32 + vx * 16 + tx * 4 + j)
                                            vk = T.axis.R(64, k0 * 8 + k1 * 4 + k2)
                                            T.reads([C[vi, vj], A[vi, vk], B[vk, vj]])
                                            T.writes([C[vi, vj]])
                                            with T.init():
                                                C[vi, vj] = 0.0
                                            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@on(cuda_matmul, builds=False)
def read_at_global_to_shared_a(sch):
    b = sch.get_sblock("C")
    _by, _bx, _vy, _vx, _ty, _tx, k0, *_ = sch.get_loops(b)
    sch.read_at(k0, b, 1, "shared")


@on(cuda_matmul, builds=False)
def read_at_global_to_shared_ab(sch):
    b = sch.get_sblock("C")
    _by, _bx, _vy, _vx, _ty, _tx, k0, *_ = sch.get_loops(b)
    sch.read_at(k0, b, 1, "shared")
    sch.read_at(k0, b, 2, "shared")


@on(cuda_matmul, builds=False)
def read_at_local(sch):
    b = sch.get_sblock("C")
    _by, _bx, _vy, _vx, _ty, _tx, k0, k1, *_ = sch.get_loops(b)
    sch.read_at(k0, b, 1, "shared")
    sch.read_at(k0, b, 2, "shared")
    sch.read_at(k1, b, 1, "local")
    sch.read_at(k1, b, 2, "local")


@on(cuda_matmul, builds=False)
def read_at_read_write_at(sch):
    b = sch.get_sblock("C")
    _by, _bx, _vy, _vx, _ty, tx, k0, k1, *_ = sch.get_loops(b)
    sch.read_at(k0, b, 1, "shared")
    sch.read_at(k0, b, 2, "shared")
    sch.write_at(tx, b, 0, "local")


@T.prim_func(s_tir=True)
def pad1(x: T.Buffer(128, "int32"), y: T.Buffer(140, "int32")):
    for i in range(140):
        with T.sblock("block"):
            vi = T.axis.remap("S", [i])
            y[vi] = T.if_then_else(vi >= 6 and vi < 134, x[vi - 6], 0, dtype="int32")


@on(pad1)
def decompose_padding_1(sch):
    b = sch.get_sblock("block")
    axis = sch.get_loops(b)[0]
    sch.decompose_padding(b, axis)


@T.prim_func(s_tir=True)
def hwc_pad(x: T.Buffer((1, 14, 14, 8), "int8"), y: T.Buffer((1, 16, 16, 8), "int32")):
    for i0, i1, i2, i3 in T.grid(1, 16, 16, 8):
        with T.sblock("block"):
            n, h, w, c = T.axis.remap("SSSS", [i0, i1, i2, i3])
            y[n, h, w, c] = T.if_then_else(
                h >= 1 and h < 15 and w >= 1 and w < 15, T.cast(x[n, h - 1, w - 1, c], "int32"), 0, dtype="int32"
            )


@on(hwc_pad)
def decompose_hw_padding_0(sch):
    b = sch.get_sblock("block")
    sch.decompose_padding(b, sch.get_loops(b)[0])


@on(hwc_pad)
def decompose_hw_padding_1(sch):
    b = sch.get_sblock("block")
    sch.decompose_padding(b, sch.get_loops(b)[1])


@on(hwc_pad)
def decompose_hw_padding_2(sch):
    b = sch.get_sblock("block")
    sch.decompose_padding(b, sch.get_loops(b)[2])


@on(hwc_pad)
def decompose_hw_padding_3(sch):
    b = sch.get_sblock("block")
    sch.decompose_padding(b, sch.get_loops(b)[3])


@on(hwc_pad)
def decompose_hw_padding_split(sch):
    b = sch.get_sblock("block")
    loops = sch.get_loops(b)
    h0, h1 = sch.split(loops[1], [None, 4])
    sch.decompose_padding(b, h1)


@on(hwc_pad)
def decompose_hw_padding_fuse(sch):
    b = sch.get_sblock("block")
    loops = sch.get_loops(b)
    f = sch.fuse(*loops[:2])
    sch.decompose_padding(b, f)


@T.prim_func(s_tir=True)
def small_pool(x: T.Buffer((1, 2, 9, 9), "int32"), tensor: T.Buffer((1, 2, 9, 9), "int32")):
    pad_temp = T.sblock_alloc_buffer([1, 2, 15, 15], dtype="int32")
    for i0, i1, i2, i3 in T.grid(1, 2, 15, 15):
        with T.sblock("pad_temp"):
            ax0, ax1, ax2, ax3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            pad_temp[ax0, ax1, ax2, ax3] = T.if_then_else(
                ax2 >= 3 and ax2 < 12 and ax3 >= 3 and ax3 < 12, x[ax0, ax1, ax2 - 3, ax3 - 3], 0, dtype="int32"
            )
    for i0, i1, i2, i3, i4, i5 in T.grid(1, 2, 9, 9, 7, 7):
        with T.sblock("tensor"):
            ax0, ax1, ax2, ax3, rv0, rv1 = T.axis.remap("SSSSRR", [i0, i1, i2, i3, i4, i5])
            with T.init():
                tensor[ax0, ax1, ax2, ax3] = 0
            tensor[ax0, ax1, ax2, ax3] = tensor[ax0, ax1, ax2, ax3] + pad_temp[ax0, ax1, ax2 + rv0, ax3 + rv1]


def _tiling(sch, ho, wo, hi, wi):
    b = sch.get_sblock("tensor")
    pad = sch.get_sblock("pad_temp")
    n, c, h, w, kh, kw = sch.get_loops(b)
    ho_, hi_ = sch.split(h, [ho, hi])
    wo_, wi_ = sch.split(w, [wo, wi])
    sch.reorder(ho_, wo_, hi_, wi_)
    sch.compute_at(pad, wo_)
    return b, pad


@on(small_pool)
def decompose_after_compute_at(sch):
    b, pad = _tiling(sch, 3, 3, 3, 3)
    sch.decompose_padding(pad, sch.get_loops(pad)[-2])


@on(small_pool)
def decompose_after_compute_at_1(sch):
    b, pad = _tiling(sch, 3, 3, 3, 3)
    sch.decompose_padding(pad, sch.get_loops(pad)[-1])


@on(small_pool)
def decompose_at_outer_tile(sch):
    b, pad = _tiling(sch, 3, 3, 3, 3)
    sch.decompose_padding(pad, sch.get_loops(pad)[-3])


@on(small_pool)
def decompose_at_outer_tile_2(sch):
    b, pad = _tiling(sch, 3, 3, 3, 3)
    sch.decompose_padding(pad, sch.get_loops(pad)[0])


@on(small_pool)
def decompose_lift(sch):
    b, pad = _tiling(sch, 3, 3, 3, 3)
    sch.decompose_padding(pad, sch.get_loops(pad)[2])


@on(small_pool)
def decompose_lift_row(sch):
    b = sch.get_sblock("tensor")
    pad = sch.get_sblock("pad_temp")
    n, c, h, w, kh, kw = sch.get_loops(b)
    sch.compute_at(pad, h)
    sch.decompose_padding(pad, sch.get_loops(pad)[-1])


@on(small_pool)
def decompose_lift_row_2(sch):
    b = sch.get_sblock("tensor")
    pad = sch.get_sblock("pad_temp")
    n, c, h, w, kh, kw = sch.get_loops(b)
    sch.compute_at(pad, h)
    sch.decompose_padding(pad, sch.get_loops(pad)[2])


@on(small_pool)
def decompose_rolling(sch):
    b = sch.get_sblock("tensor")
    pad = sch.get_sblock("pad_temp")
    n, c, h, w, kh, kw = sch.get_loops(b)
    ho, hi = sch.split(h, [3, 3])
    wo, wi = sch.split(w, [3, 3])
    sch.reorder(ho, wo, hi, wi)
    sch.compute_at(pad, wo)
    sch.decompose_padding(pad, sch.get_loops(pad)[3] if len(sch.get_loops(pad)) > 3 else sch.get_loops(pad)[-1])


@T.prim_func(s_tir=True)
def dyn_loop(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 64), "float32")
    B = T.match_buffer(b, (n, 64), "float32")
    for i, j in T.grid(n, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0


@on(dyn_loop, builds=False)
def sample_perfect_tile_dynamic(sch):
    i, j = sch.get_loops(sch.get_sblock("B"))
    sch.sample_perfect_tile(i, n=4)


@on(dyn_loop, builds=False)
def sample_perfect_tile_dynamic_split(sch):
    i, j = sch.get_loops(sch.get_sblock("B"))
    tiles = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16)
    sch.split(i, factors=[None, *tiles[1:]])


@on(dyn_loop, builds=False)
def sample_perfect_tile_dynamic_split_all(sch):
    i, j = sch.get_loops(sch.get_sblock("B"))
    tiles = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16)
    sch.split(i, factors=tiles)


@on(dyn_loop, builds=False)
def sample_perfect_tile_static(sch):
    i, j = sch.get_loops(sch.get_sblock("B"))
    tiles = sch.sample_perfect_tile(j, n=2, max_innermost_factor=16, decision=[4, 16])
    sch.split(j, factors=tiles)


@on(dyn_loop, builds=False)
def sample_categorical(sch):
    v = sch.sample_categorical([1, 2, 4], [0.2, 0.3, 0.5], decision=1)
    i, j = sch.get_loops(sch.get_sblock("B"))
    sch.split(j, [None, v])


@on(dyn_loop, builds=False)
def sample_compute_location(sch):
    b = sch.get_sblock("B")
    r = sch.cache_read(b, 0, "global")
    location = sch.sample_compute_location(r)
    sch.compute_at(r, location)


@T.prim_func(s_tir=True)
def fragments(
    A: T.Buffer((64, 64), "float16"),
    B: T.Buffer((64, 64), "float16"),
    C: T.Buffer((64, 64), "float32"),
    D: T.Buffer((64, 64), "float32"),
):
    Af = T.sblock_alloc_buffer((64, 64), "float16", scope="wmma.matrix_a")
    Bf = T.sblock_alloc_buffer((64, 64), "float16", scope="wmma.matrix_b")
    Cf = T.sblock_alloc_buffer((64, 64), "float32", scope="wmma.accumulator")
    As = T.sblock_alloc_buffer((64, 64), "float16")
    for i, j in T.grid(64, 64):
        with T.sblock("As"):
            vi, vj = T.axis.remap("SS", [i, j])
            As[vi, vj] = A[vi, vj]
    for i, k in T.grid(4, 4):
        with T.sblock("Af"):
            vi, vk = T.axis.remap("SS", [i, k])
            T.reads(As[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16])
            T.writes(Af[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16])
            A0 = T.match_buffer(
                As[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16],
                (16, 16),
                "float16",
                strides=["s1", "s0"],
                offset_factor=16,
            )
            A1 = T.match_buffer(
                Af[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16],
                (16, 16),
                "float16",
                strides=["t1", "t0"],
                scope="wmma.matrix_a",
                offset_factor=16,
            )
            T.evaluate(
                T.tvm_load_matrix_sync(
                    A1.data,
                    16,
                    16,
                    16,
                    A1.elem_offset // 256 + A1.elem_offset % 256 // 16,
                    T.tvm_access_ptr(
                        T.type_annotation("float16"), A0.data, A0.elem_offset, A0.strides[0] * 16, 1, dtype="handle"
                    ),
                    A0.strides[0],
                    "row_major",
                    dtype="handle",
                )
            )
    for i, k in T.grid(4, 4):
        with T.sblock("Bf"):
            vi, vk = T.axis.remap("SS", [i, k])
            T.reads(B[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16])
            T.writes(Bf[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    Bf.data,
                    16,
                    16,
                    16,
                    vi * 4 + vk,
                    T.tvm_access_ptr(T.type_annotation("float16"), B.data, vi * 1024 + vk * 16, 1024, 1),
                    64,
                    "row_major",
                )
            )
    for i, j, k in T.grid(4, 4, 4):
        with T.sblock("Cf"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(
                Cf[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16],
                Af[vi * 16 : vi * 16 + 16, vk * 16 : vk * 16 + 16],
                Bf[vk * 16 : vk * 16 + 16, vj * 16 : vj * 16 + 16],
            )
            T.writes(Cf[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            with T.init():
                with T.sblock("Cf_init"):
                    T.reads()
                    T.writes(Cf[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
                    T.evaluate(T.tvm_fill_fragment(Cf.data, 16, 16, 16, vi * 4 + vj, T.float32(0)))
            T.evaluate(
                T.tvm_mma_sync(Cf.data, vi * 4 + vj, Af.data, vi * 4 + vk, Bf.data, vk * 4 + vj, Cf.data, vi * 4 + vj)
            )
    for i, j in T.grid(4, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(Cf[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(C[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    Cf.data,
                    16,
                    16,
                    16,
                    vi * 4 + vj,
                    T.tvm_access_ptr(T.type_annotation("float32"), C.data, vi * 1024 + vj * 16, 1024, 2),
                    64,
                    "row_major",
                )
            )
    for i, j in T.grid(64, 64):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + T.float32(1)


@on(fragments, builds=False)
def frag_split(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Cf"))
    sch.split(i, [2, 2])
    sch.split(k, [2, 2])


@on(fragments, builds=False)
def frag_fuse_reorder(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Cf"))
    sch.reorder(k, i)


@on(fragments, builds=False)
def frag_fuse_bind(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Cf"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.y")


@on(fragments, builds=False)
def frag_compute_at(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Cf"))
    sch.compute_at(sch.get_sblock("Af"), k)
    sch.compute_at(sch.get_sblock("Bf"), k)


@on(fragments, builds=False)
def frag_reverse_compute_at(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Cf"))
    sch.reverse_compute_at(sch.get_sblock("C"), j)


@on(fragments, builds=False)
def frag_decompose(sch):
    b = sch.get_sblock("Cf")
    i, j, k = sch.get_loops(b)
    sch.decompose_reduction(b, k)


@on(fragments, builds=False)
def frag_inline_beside(sch):
    sch.compute_inline(sch.get_sblock("As")) if False else sch.cache_read(sch.get_sblock("As"), 0, "shared")


@on(fragments, builds=False)
def frag_epilogue(sch):
    sch.cache_write(sch.get_sblock("D"), 0, "shared")
    d = sch.get_sblock("D")
    f = sch.fuse(*sch.get_loops(d))
    sch.parallel(f)


@on(fragments, builds=False)
def frag_as_at(sch):
    i, k = sch.get_loops(sch.get_sblock("Af"))
    sch.compute_at(sch.get_sblock("As"), i)


@on(fragments, builds=False)
def frag_d_at(sch):
    i, k = sch.get_loops(sch.get_sblock("C"))
    sch.reverse_compute_at(sch.get_sblock("D"), i)


@on(fragments, builds=False)
def frag_annotate(sch):
    b = sch.get_sblock("Cf")
    sch.annotate(b, "k", 1)
    sch.annotate(sch.get_loops(b)[0], "pragma", 1)
    sch.unroll(sch.get_loops(b)[2])


@on(fragments, builds=False)
def frag_parallel(sch):
    b = sch.get_sblock("Cf")
    sch.parallel(sch.get_loops(b)[0])


@on(fragments, builds=False)
def frag_vectorize_other(sch):
    b = sch.get_sblock("As")
    sch.vectorize(sch.get_loops(b)[1])
    sch.set_scope(b, 0, "shared")


@on(fragments, builds=False)
def frag_storage_align(sch):
    b = sch.get_sblock("As")
    sch.storage_align(b, 0, 0, 16, 8)


@T.prim_func(s_tir=True)
def with_extern(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.sblock_alloc_buffer((16, 16))
    E = T.sblock_alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i in range(16):
        with T.sblock("E"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi, 0:16])
            T.writes(E[vi, 0:16])
            T.evaluate(T.call_extern("f", E.data, B.data, vi, dtype="int32"))
    for i, j in T.grid(16, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = E[vi, vj] + 1.0


@on(with_extern, builds=False)
def extern_cache_read_c(sch):
    sch.cache_read(sch.get_sblock("C"), 0, "local")


@on(with_extern, builds=False)
def extern_cache_read_e(sch):
    sch.cache_read(sch.get_sblock("E"), 0, "local")


@on(with_extern, builds=False)
def extern_cache_write_e(sch):
    sch.cache_write(sch.get_sblock("E"), 0, "local")


@on(with_extern, builds=False)
def extern_compute_at(sch):
    sch.compute_at(sch.get_sblock("B"), sch.get_loops(sch.get_sblock("E"))[0])


@on(with_extern, builds=False)
def extern_reverse_compute_at(sch):
    sch.reverse_compute_at(sch.get_sblock("C"), sch.get_loops(sch.get_sblock("E"))[0])


@on(with_extern, builds=False)
def extern_split_parallel(sch):
    (i,) = sch.get_loops(sch.get_sblock("E"))
    a, b = sch.split(i, [4, 4])
    sch.parallel(a)
