"""Copies of buffers in other memory scopes, in the style of TVM's tests: cache_read, cache_write, reindex_cache_*, and
regions that blocks state."""

from running import Programs

from tvm.script import tirx as T

PROGRAMS = Programs()
on = PROGRAMS.on


@T.prim_func(s_tir=True)
def elementwise(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    C = T.match_buffer(c, (128, 128))
    B = T.sblock_alloc_buffer((128, 128))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def elementwise_shape_int64(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (T.int64(128), T.int64(128)))
    B = T.sblock_alloc_buffer((T.int64(128), T.int64(128)))
    C = T.match_buffer(c, (T.int64(128), T.int64(128)))
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(T.int64(128), T.int64(128)):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@T.prim_func(s_tir=True)
def reduce_small(A: T.Buffer((4, 4, 4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.sblock_alloc_buffer((4, 4, 4), dtype="float32")
    for i, j, k in T.grid(4, 4, 4):
        for l in T.serial(4):
            with T.sblock("B"):
                vi, vj, vk, vl = T.axis.remap("SSSR", [i, j, k, l])
                with T.init():
                    B[vi, vj, vk] = T.float32(0)
                B[vi, vj, vk] = B[vi, vj, vk] + A[vi, vj, vk, vl]
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi, vj, vk]


@T.prim_func(s_tir=True)
def access_under_scope(b: T.handle, c: T.handle) -> None:
    A = T.sblock_alloc_buffer((128, 128))
    B = T.match_buffer(b, (128, 128))
    C = T.match_buffer(c, (128, 128))
    for i0, j0 in T.grid(8, 8):
        with T.sblock("scope"):
            i, j = T.axis.remap("SS", [i0, j0])
            for x, y in T.grid(16, 16):
                with T.sblock("A"):
                    vi = T.axis.S(128, i * 16 + x)
                    vj = T.axis.S(128, j * 16 + y)
                    A[vi, vj] = 1.0
            for x, y in T.grid(16, 16):
                with T.sblock("B"):
                    vi = T.axis.S(128, i * 16 + x)
                    vj = T.axis.S(128, j * 16 + y)
                    B[vi, vj] = A[vi, vj] + 1.0
            for x, y in T.grid(16, 16):
                with T.sblock("C"):
                    vi = T.axis.S(128, i * 16 + x)
                    vj = T.axis.S(128, j * 16 + y)
                    C[vi, vj] = A[vi, vj] * 2.0


@T.prim_func(s_tir=True)
def opaque_access(a: T.handle, b: T.handle, c: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (128, 128), dtype="float16")
    B = T.match_buffer(b, (128, 128), dtype="float16")
    C = T.match_buffer(c, (128, 128), dtype="float16")
    D = T.match_buffer(d, (128, 128), dtype="float16")
    for i, j in T.grid(128, 128):
        with T.sblock("load_store"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(D[vi, vj])
            D[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 8):
        with T.sblock("opaque"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(B[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    B.data,
                    16,
                    16,
                    16,
                    vi * 8 + vj,
                    T.tvm_access_ptr(
                        T.type_annotation(dtype="float16"), A.data, vi * 2048 + vj * 16, 128, 1, dtype="handle"
                    ),
                    128,
                    "row_major",
                    dtype="handle",
                )
            )
    for i, j in T.grid(8, 8):
        with T.sblock("match_buffer"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            T.writes(C[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16])
            A0 = T.match_buffer(
                A[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16],
                (16, 16),
                "float16",
                strides=[128, 1],
                offset_factor=1,
            )
            C0 = T.match_buffer(
                C[vi * 16 : vi * 16 + 16, vj * 16 : vj * 16 + 16],
                (16, 16),
                "float16",
                strides=[128, 1],
                offset_factor=1,
            )
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C0.data,
                    16,
                    16,
                    16,
                    vi * 8 + vj,
                    T.tvm_access_ptr(
                        T.type_annotation(dtype="float16"), A0.data, A0.elem_offset, A0.strides[0], 1, dtype="handle"
                    ),
                    128,
                    "row_major",
                    dtype="handle",
                )
            )


@T.prim_func(s_tir=True)
def func_multi_consumer(B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    A = T.sblock_alloc_buffer((128,))
    for i in T.grid(8):
        for j in T.grid(16):
            with T.sblock("A"):
                vi = T.axis.S(128, i * 16 + j)
                A[vi] = 1.0
        for j in T.grid(16):
            with T.sblock("B"):
                vi = T.axis.S(128, i * 16 + j)
                B[vi] = A[vi] + 1.0
    for i in T.grid(128):
        with T.sblock("C"):
            vi = T.axis.S(128, i)
            C[vi] = A[vi]


@T.prim_func(s_tir=True)
def func_with_block_predicate(B: T.Buffer((120,), "float32")):
    A = T.sblock_alloc_buffer((120,))
    for i, j in T.grid(16, 8):
        with T.sblock("producer"):
            T.where(i * 8 + j < 120)
            ax = T.axis.S(120, i * 8 + j)
            A[ax] = 0.0
    for i, j in T.grid(16, 8):
        with T.sblock("consumer"):
            T.where(i * 8 + j < 120)
            ax = T.axis.S(120, i * 8 + j)
            B[ax] = A[ax] + 1.0


@T.prim_func(s_tir=True)
def inplace_func(data_io: T.Buffer((64), "int32")):
    data_1d = T.sblock_alloc_buffer([64], dtype="int32")
    for i0 in T.serial(64):
        with T.sblock("copy_in"):
            v0 = T.axis.remap("S", [i0])
            data_1d[v0] = data_io[v0]
    for i0 in T.serial(1):
        with T.sblock("ext_call"):
            T.reads(data_1d[:64])
            T.writes(data_1d[:64])
            T.evaluate(T.call_extern("call_impl", data_1d.data, dtype=""))
    for i0 in T.serial(64):
        with T.sblock("copy_out"):
            v0 = T.axis.remap("S", [i0])
            data_io[v0] = data_1d[v0]


@T.prim_func(s_tir=True)
def inplace_call(data_io: T.Buffer((64), "int32")):
    for _i0 in T.serial(1):
        with T.sblock("ext_call"):
            T.reads(data_io[:64])
            T.writes(data_io[:64])
            T.evaluate(T.call_extern("call_impl", data_io.data, dtype=""))


@T.prim_func(s_tir=True)
def cache_read_nested_seq_target(B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    A = T.sblock_alloc_buffer([128, 128], dtype="float32")
    for i, j in T.grid(128, 128):
        with T.sblock("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(0)
    for i, j in T.grid(128, 128):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]


@T.prim_func(s_tir=True)
def nested_buffer_access(var_A: T.handle, var_B: T.handle, var_C: T.handle):
    A = T.match_buffer(var_A, (T.int64(7), T.int64(512)), dtype="float32")
    B = T.match_buffer(var_B, T.int64(1), dtype="int32")
    C = T.match_buffer(var_C, (T.int64(1), T.int64(512)), dtype="float32")
    for ax0, ax1 in T.grid(T.int64(1), T.int64(512)):
        with T.sblock("C"):
            v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
            T.reads(A[B[v_ax0], v_ax1], B[v_ax0])
            T.writes(C[v_ax0, v_ax1])
            C[v_ax0, v_ax1] = A[B[v_ax0], v_ax1]


@T.prim_func(s_tir=True)
def symbolic_matmul_blocked(var_A: T.handle, var_B: T.handle, var_C: T.handle, n: T.int32):
    A = T.match_buffer(var_A, ((n + 31) // 32 * 32, 4))
    B = T.match_buffer(var_B, (4, (n + 31) // 32 * 32))
    C = T.match_buffer(var_C, ((n + 31) // 32 * 32, (n + 31) // 32 * 32))
    for i0_0, i1_0 in T.grid((n + 31) // 32, (n + 31) // 32):
        with T.sblock("matmul_o"):
            v_i0_o, v_i1_o = T.axis.remap("SS", [i0_0, i1_0])
            T.reads(A[v_i0_o * 32 : v_i0_o * 32 + 32, 0:4], B[0:4, v_i1_o * 32 : v_i1_o * 32 + 32])
            T.writes(C[v_i0_o * 32 : v_i0_o * 32 + 32, v_i1_o * 32 : v_i1_o * 32 + 32])
            for i0_1, i1_1, k in T.grid(32, 32, 4):
                with T.sblock("matmul"):
                    v_i0_i, v_i1_i, v_k_i = T.axis.remap("SSR", [i0_1, i1_1, k])
                    T.reads(A[v_i0_o * 32 + v_i0_i, v_k_i], B[v_k_i, v_i1_o * 32 + v_i1_i])
                    T.writes(C[v_i0_o * 32 + v_i0_i, v_i1_o * 32 + v_i1_i])
                    with T.init():
                        C[v_i0_o * 32 + v_i0_i, v_i1_o * 32 + v_i1_i] = T.float32(0)
                    C[v_i0_o * 32 + v_i0_i, v_i1_o * 32 + v_i1_i] = (
                        C[v_i0_o * 32 + v_i0_i, v_i1_o * 32 + v_i1_i]
                        + A[v_i0_o * 32 + v_i0_i, v_k_i] * B[v_k_i, v_i1_o * 32 + v_i1_i]
                    )


@T.prim_func(s_tir=True)
def block_reindex_cache_read_reduce(A: T.Buffer((16, 16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vj, vi, vk]


@on(elementwise)
def cache_read_elementwise(sch):
    block_b = sch.get_sblock("B")
    block_c = sch.get_sblock("C")
    sch.cache_read(block_b, 0, "global")
    sch.cache_read(block_c, 0, "local")


@on(access_under_scope)
def cache_read_under_scope(sch):
    block_b = sch.get_sblock("B")
    block_c = sch.get_sblock("C")
    sch.cache_read(block_b, 0, "local")
    sch.cache_read(block_c, 0, "global")


@on(opaque_access, builds=False)
def cache_read_opaque_access(sch):
    sch.cache_read(sch.get_sblock("load_store"), 0, "global")


@on(func_multi_consumer)
def cache_read_location(sch):
    sch.cache_read(sch.get_sblock("B"), 0, "global")


@on(func_multi_consumer)
def cache_read_location_all_consumers(sch):
    b = sch.get_sblock("B")
    sch.cache_read(b, 0, "global", consumer_blocks=["B", "C"])


@on(func_multi_consumer)
def cache_read_location_c(sch):
    sch.cache_read(sch.get_sblock("C"), 0, "global", consumer_blocks=["C"])


@on(elementwise)
def cache_read_consumer(sch):
    sch.cache_read(sch.get_sblock("C"), 0, "global", consumer_blocks=[sch.get_sblock("C")])


@on(func_multi_consumer)
def continuous_cache_read(sch):
    b = sch.get_sblock("C")
    sch.cache_read(b, 0, "shared")
    sch.cache_read(b, 0, "local")


@on(func_with_block_predicate)
def cache_read_with_block_predicate(sch):
    sch.cache_read(sch.get_sblock("consumer"), 0, "shared")


@on(inplace_func, builds=False)
def cache_read_inplace(sch):
    b = sch.get_sblock("copy_in")
    sch.cache_read(b, 0, "local", [b])


@on(inplace_func, builds=False)
def cache_write_inplace(sch):
    b = sch.get_sblock("copy_out")
    sch.cache_write(b, 0, "local", [b])


@on(inplace_func, builds=False)
def cache_inplace(sch):
    sch.cache_inplace(sch.get_sblock("ext_call"), 0, "local")


@on(inplace_call, builds=False)
def cache_inplace_2(sch):
    sch.cache_inplace(sch.get_sblock("ext_call"), 0, "local")


@on(cache_read_nested_seq_target)
def cache_read_nested_seq(sch):
    sch.cache_read(sch.get_sblock("B"), 0, "global")


@on(nested_buffer_access)
def cache_read_nested_buffer_access(sch):
    sch.cache_read(sch.get_sblock("C"), 1, "global")


@on(elementwise_shape_int64)
def cache_read_shape_int64(sch):
    sch.cache_read(sch.get_sblock("C"), 0, "global")


@on(symbolic_matmul_blocked, builds=False)
def symbolic_cache_read(sch):
    b = sch.get_sblock("matmul")
    sch.cache_read(b, 0, "shared")


@on(symbolic_matmul_blocked, builds=False)
def symbolic_cache_write(sch):
    b = sch.get_sblock("matmul")
    sch.cache_write(b, 0, "shared")


@on(elementwise)
def cache_write_elementwise(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    sch.cache_write(b, 0, "local")
    sch.cache_write(c, 0, "global")


@on(access_under_scope)
def cache_write_under_scope(sch):
    a = sch.get_sblock("A")
    b = sch.get_sblock("B")
    sc = sch.get_sblock("scope")
    sch.cache_write(a, 0, "local")
    sch.cache_write(b, 0, "global")
    sch.cache_write(sc, 0, "global")


@on(access_under_scope)
def cache_write_under_scope_a(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "local")


@on(access_under_scope)
def cache_write_under_scope_b(sch):
    sch.cache_write(sch.get_sblock("B"), 0, "local")


@on(access_under_scope)
def cache_write_under_scope_scope(sch):
    sch.cache_write(sch.get_sblock("scope"), 0, "local")


@on(access_under_scope)
def cache_write_under_scope_consumers(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "local", consumer_blocks=["B"])


@on(opaque_access, builds=False)
def cache_write_opaque_access(sch):
    sch.cache_write(sch.get_sblock("load_store"), 0, "global")
    sch.cache_write(sch.get_sblock("opaque"), 0, "global")
    sch.cache_write(sch.get_sblock("match_buffer"), 0, "global")


@on(opaque_access, builds=False)
def cache_write_opaque_access_1(sch):
    sch.cache_write(sch.get_sblock("load_store"), 0, "global")


@on(opaque_access, builds=False)
def cache_write_opaque_access_2(sch):
    sch.cache_write(sch.get_sblock("opaque"), 0, "global")


@on(opaque_access, builds=False)
def cache_write_opaque_access_3(sch):
    sch.cache_write(sch.get_sblock("match_buffer"), 0, "global")


@on(func_multi_consumer)
def cache_write_location(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "global")


@on(func_multi_consumer)
def cache_write_with_consumers(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "global", consumer_blocks=[sch.get_sblock("B")])


@on(func_multi_consumer)
def cache_write_with_consumers_c(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "global", consumer_blocks=[sch.get_sblock("C")])


@on(func_multi_consumer)
def cache_write_with_consumers_both(sch):
    sch.cache_write(sch.get_sblock("A"), 0, "global", consumer_blocks=[sch.get_sblock("B"), sch.get_sblock("C")])


@on(elementwise)
def continuous_cache_write(sch):
    b = sch.get_sblock("B")
    sch.cache_write(b, 0, "shared")
    sch.cache_write(b, 0, "local")


@on(func_with_block_predicate)
def cache_write_with_block_predicate(sch):
    sch.cache_write(sch.get_sblock("producer"), 0, "shared")


@on(elementwise_shape_int64)
def cache_write_shape_int64(sch):
    sch.cache_write(sch.get_sblock("B"), 0, "global")


@on(reduce_small)
def cache_write_reduce_small_b(sch):
    sch.cache_write(sch.get_sblock("B"), 0, "local")


@on(reduce_small)
def cache_read_reduce_small_c(sch):
    sch.cache_read(sch.get_sblock("C"), 0, "local")


@on(reduce_small)
def cache_write_reduce_small_c(sch):
    sch.cache_write(sch.get_sblock("C"), 0, "local")


@on(reduce_small)
def cache_read_reduce_small_b(sch):
    sch.cache_read(sch.get_sblock("B"), 0, "local")


@on(elementwise)
def reindex_cache_read(sch):
    sch.reindex_cache_read(sch.get_sblock("C"), 0, "shared", lambda i, j: (j, i // 2, i % 2))


@on(func_multi_consumer)
def reindex_cache_read_multi_consumer(sch):
    sch.reindex_cache_read(sch.get_sblock("B"), 0, "shared", lambda i: (i // 16, i % 16))


@on(elementwise)
def reindex_cache_read_gaps(sch):
    sch.reindex_cache_read(sch.get_sblock("C"), 0, "shared", lambda i, j: (j, i * 2))


@on(elementwise)
def reindex_cache_write(sch):
    sch.reindex_cache_write(sch.get_sblock("B"), 0, "shared", lambda i, j: (j, i))


@on(reduce_small)
def reindex_cache_write_reduce_small(sch):
    sch.reindex_cache_write(sch.get_sblock("B"), 0, "shared", lambda i, j, k, l: (j, i, k))
    sch.reindex_cache_write(sch.get_sblock("C"), 0, "shared", lambda i, j, k: [j, i])


@on(reduce_small)
def reindex_cache_write_reduce_small_c(sch):
    sch.reindex_cache_write(sch.get_sblock("C"), 0, "shared", lambda i, j, k: [j, i])


@on(block_reindex_cache_read_reduce)
def reindex_cache_read_reduce(sch):
    sch.reindex_cache_read(sch.get_sblock("C"), 0, "shared", lambda i, j, k: (i, j * 16 + k))


@on(elementwise)
def reindex_cache_write_gaps(sch):
    sch.reindex_cache_write(sch.get_sblock("B"), 0, "shared", lambda i, j: (j, i * 2))


@on(access_under_scope)
def reindex_cache_read_scope(sch):
    sch.reindex_cache_read(sch.get_sblock("B"), 0, "shared", lambda i, j: (j, i))


@on(access_under_scope)
def reindex_cache_write_scope(sch):
    sch.reindex_cache_write(sch.get_sblock("A"), 0, "shared", lambda i, j: (j, i))


@T.prim_func(s_tir=True)
def resize(A: T.Buffer((1, 3, 40, 40), "float32"), B: T.Buffer((1, 3, 80, 80), "float32")):
    for i0, i1, i2, i3 in T.grid(1, 3, 80, 80):
        with T.sblock("A"):
            n, c, vi, vj = T.axis.remap("SSSS", [i0, i1, i2, i3])
            B[n, c, vi, vj] = A[n, c, vi // 4 + vj // 4, vj // 2]


@on(resize)
def inplace_cache_index(sch):
    sch.cache_index(sch.get_sblock("A"), "global", 0)


@T.prim_func(s_tir=True)
def bilinear_resize(x: T.Buffer((1, 3, 40, 40), "float16"), resize: T.Buffer((1, 3, 80, 80), "float16")):
    for i0, i1, i2, i3 in T.grid(1, 3, 80, 80):
        with T.sblock("resize"):
            i0_1, i1_1, i2_1, i3_1 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(x[i0_1, i1_1, 0:40, 0:40])
            T.writes(resize[i0_1, i1_1, i2_1, i3_1])
            resize[i0_1, i1_1, i2_1, i3_1] = T.Cast(
                "float16",
                (
                    T.Cast(
                        "float32",
                        x[
                            i0_1,
                            i1_1,
                            T.max(
                                T.min(
                                    T.Cast(
                                        "int32",
                                        T.floor(
                                            (T.Cast("float32", i2_1) + T.float32(0.5)) * T.float32(0.5)
                                            - T.float32(0.5),
                                            dtype="float32",
                                        ),
                                    ),
                                    39,
                                ),
                                0,
                            ),
                            T.max(
                                T.min(
                                    T.Cast(
                                        "int32",
                                        T.floor(
                                            (T.Cast("float32", i3_1) + T.float32(0.5)) * T.float32(0.5)
                                            - T.float32(0.5),
                                            dtype="float32",
                                        ),
                                    ),
                                    39,
                                ),
                                0,
                            ),
                        ],
                    )
                    + T.Cast(
                        "float32",
                        x[
                            i0_1,
                            i1_1,
                            T.max(
                                T.min(
                                    T.Cast(
                                        "int32",
                                        T.floor(
                                            (T.Cast("float32", i2_1) + T.float32(0.5)) * T.float32(0.5)
                                            - T.float32(0.5),
                                            dtype="float32",
                                        ),
                                    )
                                    + 1,
                                    39,
                                ),
                                0,
                            ),
                            i3_1 // 2,
                        ],
                    )
                ),
            )


@on(bilinear_resize)
def annotate_buffer_access_resize(sch):
    sch.annotate_buffer_access(
        sch.get_sblock("resize"),
        0,
        "read",
        gen_new_ranges=lambda vn, vc, vh, vw: [vn, vc, (vh // 2 - 3, vh // 2 + 3), (vw // 2 - 3, vw // 2 + 3)],
    )


@T.prim_func(s_tir=True)
def bilinear_resize_2(x: T.Buffer((1, 3, 200, 200), "float32"), resize: T.Buffer((1, 3, 100, 100), "float32")):
    for i0, i1, i2, i3 in T.grid(1, 3, 100, 100):
        with T.sblock("resize"):
            v_i0, v_i1, v_i2, v_i3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            T.reads(x[v_i0, v_i1, 0:200, 0:200])
            T.writes(resize[v_i0, v_i1, v_i2, v_i3])
            resize[v_i0, v_i1, v_i2, v_i3] = x[
                v_i0, v_i1, T.max(0, T.min(v_i2 * 2, 199)), T.max(0, T.min(v_i3 * 2 + 1, 199))
            ]


@on(bilinear_resize_2)
def annotate_buffer_access_resize_2(sch):
    sch.annotate_buffer_access(
        sch.get_sblock("resize"),
        0,
        "read",
        gen_new_ranges=lambda v_i0, v_i1, v_i2, v_i3: [
            v_i0,
            v_i1,
            (v_i2 * 2 - 3, v_i2 * 2 + 3),
            (v_i3 * 2 - 3, v_i3 * 2 + 3),
        ],
    )


@on(elementwise)
def annotate_read_buffer_access(sch):
    sch.annotate_buffer_access(
        sch.get_sblock("B"), 0, "read", lambda vi, vj: ((vi - 1, vi - 1 + 2), (vj - 1, vj - 1 + 2))
    )


@on(elementwise)
def annotate_write_buffer_access(sch):
    sch.annotate_buffer_access(sch.get_sblock("B"), 0, "write", lambda vi, vj: ((vi, vi + 2), (vj, vj + 2)))


@on(elementwise)
def annotate_both_then_compute_at(sch):
    b = sch.get_sblock("B")
    c = sch.get_sblock("C")
    sch.annotate_buffer_access(c, 0, "read", lambda vi, vj: ((vi - 1, vi + 1), (vj - 1, vj + 1)))
    fused = sch.fuse(*sch.get_loops(c)[:2])
    sch.compute_at(b, fused)


@on(elementwise)
def annotate_with_dtype(sch):
    sch.annotate_buffer_access(sch.get_sblock("B"), 0, "read", lambda vi, vj: ((vi, vi + 1), (vj, vj + 1)))
