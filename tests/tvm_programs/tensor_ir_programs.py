"""Functions of block loops and their schedules, in the style of TVM's tests."""

import numpy as np
from running import check, data, run
from tvm.s_tir import Schedule

from tvm.script import tirx as T

PROGRAMS = {}
A, B = data(32, 32), data(32, 32, seed=1)
RELU = np.maximum(A @ B, 0)


@T.prim_func(s_tir=True)
def matmul_relu(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), D: T.Buffer((32, 32), "float32")):
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    C = T.sblock_alloc_buffer((32, 32))
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(32, 32):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func(s_tir=True)
def elementwise(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    B = T.sblock_alloc_buffer((32, 32))
    for i, j in T.grid(32, 32):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(32, 32):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func(s_tir=True)
def row_sum(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32,), "float32")):
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for i, k in T.grid(32, 32):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


def of(function, expected, *arrays):
    """A decorator: the schedule that a function applies, run and compared."""

    def register(apply):
        def case():
            sch = Schedule(function)
            apply(sch)
            return check(run(sch.mod, *arrays, np.zeros(expected.shape, "float32")), expected)

        PROGRAMS[apply.__name__] = case
        return apply

    return register


on_matmul, on_chain, on_sum = of(matmul_relu, RELU, A, B), of(elementwise, A * 2 + 1, A), of(row_sum, A.sum(1), A)


@on_matmul
def tiled(sch):
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, 8])
    j0, j1 = sch.split(j, factors=[4, None])
    sch.reorder(i0, j0, k, i1, j1)
    sch.vectorize(j1)
    sch.decompose_reduction(block, k)


@on_matmul
def parallel_and_unrolled(sch):
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    sch.parallel(i)
    k0, k1 = sch.split(k, factors=[None, 4])
    sch.unroll(k1)
    sch.reverse_compute_at(sch.get_sblock("D"), i)


@on_matmul
def fused_and_split(sch):
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    fused = sch.fuse(i, j)
    sch.split(fused, factors=[None, 4, 16], preserve_unit_iters=True)
    sch.fuse(k)


@on_matmul
def cached(sch):
    block = sch.get_sblock("C")
    copy = sch.cache_read(block, 1, "global")
    written = sch.cache_write(block, 0, "global")
    i, j, k = sch.get_loops(block)
    sch.compute_at(copy, i)
    sch.reverse_compute_at(written, j)


@on_matmul
def reduction_epilogue(sch):
    sch.reverse_compute_at(sch.get_sblock("D"), sch.get_loops(sch.get_sblock("C"))[0])
    root = sch.get_sblock("root")
    assert len(sch.get_child_blocks(root)) == 2
    assert len(sch.get_output_blocks(root)) == 1


@on_matmul
def layouts(sch):
    block = sch.get_sblock("C")
    sch.transform_layout(block, ("write", 0), lambda i, j: (j, i))
    sch.transform_layout(sch.get_sblock("D"), ("read", 0), lambda j, i: (i, j), assume_injective_transform=True)


@on_matmul
def decomposed_and_counted(sch):
    block = sch.get_sblock("C")
    sch.annotate(block, "note", 1)
    init = sch.decompose_reduction(block, sch.get_loops(block)[1])
    assert "note" in str(sch.mod)
    sch.vectorize(sch.get_loops(init)[-1])
    sch.cache_read(sch.get_sblock("C_update"), 2, "global")


@on_matmul
def factored(sch):
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    k0, k1 = sch.split(k, factors=[None, 8])
    sch.rfactor(k1, 0)


@on_matmul
def blockized(sch):
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    i0, i1 = sch.split(i, factors=[None, 8])
    j0, j1 = sch.split(j, factors=[None, 8])
    k0, k1 = sch.split(k, factors=[None, 8])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    sch.blockize(i1)


@on_matmul
def reindexed(sch):
    sch.reindex(sch.get_sblock("C"), ("read", 0))


@on_matmul
def sampled(sch):
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    factors = sch.sample_perfect_tile(i, n=2, max_innermost_factor=16, decision=[4, 8])
    sch.split(i, factors=factors)
    value = sch.sample_categorical([0, 16], [0.5, 0.5], decision=1)
    sch.annotate(sch.get_sblock("root"), "meta_schedule.unroll_explicit", value)


@on_chain
def inlined(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on_chain
def inlined_backwards(sch):
    sch.reverse_compute_inline(sch.get_sblock("C"))


@on_chain
def computed_at(sch):
    i, j = sch.get_loops(sch.get_sblock("C"))
    sch.compute_at(sch.get_sblock("B"), i, preserve_unit_loops=True)
    sch.set_scope(sch.get_sblock("B"), 0, "global")


@on_chain
def aligned(sch):
    sch.storage_align(sch.get_sblock("B"), 0, axis=-2, factor=32, offset=4)


@on_chain
def guarded(sch):
    i, j = sch.get_loops(sch.get_sblock("C"))
    sch.split(j, factors=[None, 5])
    sch.add_unit_loop(sch.get_sblock("B"))


@on_chain
def merged(sch):
    i0, _ = sch.get_loops(sch.get_sblock("B"))
    i1, _ = sch.get_loops(sch.get_sblock("C"))
    sch.get_producers(sch.get_sblock("C"))
    sch.reverse_compute_at(sch.get_sblock("C"), i0)


@on_sum
def partitioned(sch):
    i, k = sch.get_loops(sch.get_sblock("B"))
    sch.loop_partition(i, [8, 16])


@on_sum
def two_steps(sch):
    i, k = sch.get_loops(sch.get_sblock("B"))
    outer, inner = sch.split(k, factors=[4, None])
    block = sch.rfactor(outer, 0)
    sch.parallel(sch.get_loops(block)[0])


def text_of_tvm():
    """What TVM prints is read, and printed again."""
    import tvm

    sch = Schedule(matmul_relu)
    sch.annotate(sch.get_sblock("root"), "meta_schedule.parallel", 16)
    again = tvm.script.from_source(sch.mod.script())
    return check(run(again, A, B, np.zeros((32, 32), "float32")), RELU)


PROGRAMS["text"] = text_of_tvm
