"""`weft.tvm.tir.Schedule`: the root block, numbers of buffers, and parameters of primitives as TVM has them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.tvm as tvm
from weft.support.errors import CompileError
from weft.tvm import tir
from weft.tvm.script import tir as T


@T.prim_func
def product(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    C = T.alloc_buffer((16, 16))
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(16, 16):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


def names(sch: tir.Schedule, blocks: list[object]) -> list[str]:
    return [sch.get(block).label for block in blocks]


def check(module: object) -> None:
    a, b = (np.random.default_rng(seed).random((16, 16)).astype("float32") for seed in (0, 1))
    d = np.zeros((16, 16), "float32")
    tvm.build(module)(a, b, d)
    np.testing.assert_allclose(d, np.maximum(a @ b, 0), rtol=1e-5)


def test_the_root_block():
    sch = tir.Schedule(product)
    root = sch.get_sblock("root", func_name="product")
    assert names(sch, sch.get_child_blocks(root)) == ["C", "D"]
    assert names(sch, sch.get_output_blocks(root)) == ["D"]
    for key, value in (("parallel", 16), ("vectorize", 16), ("unroll_explicit", 16)):
        sch.annotate(root, f"meta_schedule.{key}", value)
    assert "meta_schedule.parallel" in str(sch.mod)
    again = weft.Schedule(product)
    again.replay(sch.trace)
    assert again.mod.is_structurally_equivalent(sch.mod)
    check(sch.mod)
    sch.unannotate(root, "meta_schedule.parallel")


def test_what_the_root_block_is_not():
    sch = tir.Schedule(product)
    root = sch.get_block("root")
    with pytest.raises(CompileError, match=r"sched.add_unit_loop takes no root block"):
        sch.add_unit_loop(root)
    with pytest.raises(CompileError, match=r"sched.compute_inline takes no root block"):
        sch.compute_inline(root)
    with pytest.raises(CompileError, match=r"cache_read takes no root block|is not a block"):
        sch.cache_read(root, 0, "local")
    both = weft.merge(product, Two)
    with pytest.raises(CompileError, match=r"2 functions have a root block \(other, product\): name the function"):
        weft.Schedule(both).get_block("root")


@T.prim_func
def other(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("other"):
            vi = T.axis.spatial(4, i)
            A[vi] = 1.0


Two = other


def test_the_root_block_in_scripts():
    text = str(tir.Schedule(product).mod)
    lines = text.splitlines()
    start = next(at for at, line in enumerate(lines) if "alloc_buffer" in line)
    root = ['        with T.sblock("root"):', "            T.reads()", "            T.writes()"]
    root.append('            T.sblock_attr({"meta_schedule.parallel": 16})')
    lines[start:] = [*root, *(f"    {line}" for line in lines[start:])]
    module = tvm.script.from_source("\n".join(lines))
    assert '"meta_schedule.parallel": 16' in str(module)
    sch = tir.Schedule(module)
    assert names(sch, sch.get_child_blocks(sch.get_block("root"))) == ["C", "D"]


def test_buffers_are_counted_as_tvm_does():
    sch = tir.Schedule(product)
    block = sch.get_block("C")
    sch.decompose_reduction(block, sch.get_loops(block)[0])
    update = sch.get_block("C_update")
    sch.cache_read(update, 2, "global")  # C, A, B
    sch.transform_layout(update, ("read", 0), lambda i, j: (j, i))
    assert "B_global" in str(sch.mod)
    assert 'read_buffer_index=2, storage_scope="global")' in str(sch.trace)
    assert 'buffer=["read", 0]' in str(sch.trace)
    check(sch.mod)


@T.prim_func
def stated(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(D[vi, vj], A[vi, vk], B[vk, vj])
            T.writes(D[vi, vj])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]


def test_accumulators_count_if_the_block_states_them():
    sch = tir.Schedule(stated)
    block = sch.get_block("D")
    sch.cache_read(block, 2, "global")
    sch.read_at(sch.get_loops(block)[1], block, 1, "local")
    assert "B_global" in str(sch.mod) and "A_local" in str(sch.mod)
    with pytest.raises(weft.ScheduleError, match="there is no buffer 2"):
        sch.cache_read(block, 0, "local")


def test_parameters_of_tvm():
    sch = tir.Schedule(product)
    block = sch.get_block("C")
    fused = sch.fuse(sch.get_loops(block)[0])
    assert sch.get(fused).induction_variable.name_hint == "i_fused"
    sch.transform_layout(block, ("write", 0), lambda i, j: (i // T.int64(4), j, i % T.int64(4)))
    sch.transform_layout(block, "C", lambda i, j, k: (T.cast(j, "int32"), i, k), assume_injective_transform=True)
    sch.transform_layout(block, "C", tir.IndexMap.from_func(lambda i, j, k: (T.floordiv(i, 2), j, k, i % 2)))
    sch.annotate(block, "note", 1)
    started = sch.decompose_reduction(block, sch.get_loops(block)[2])
    assert "note" in sch.get(started).attributes
    check(sch.mod)
    with pytest.raises(CompileError, match=r"an index times an index is not affine"):
        sch.transform_layout(sch.get_block("D"), ("read", 0), lambda i, j, k, m: (T.int64(1) * i * j, j, k, m))


def test_prefetches_stay_with_the_updates():
    sch = weft.Schedule(product)
    block = sch.get_block("C")
    sch.annotate(block, "prefetch", [["read", 0, [1, 0, 0]]])
    started = sch.decompose_reduction(block, sch.get_loops(block)[0])
    assert "prefetch" not in sch.get(started).attributes
    assert "prefetch" in sch.get(block).attributes


def test_strides_of_temporaries():
    text = str(product)
    padded = text.replace('T.alloc_buffer((16, 16), "float32")', 'T.alloc_buffer((16, 16), "float32", strides=[20, 1])')
    module = tvm.script.from_source(padded)
    check(module)
    assert tvm.script.from_source(str(module)).is_structurally_equivalent(module)
    for strides in ("[8, 1]", "[1, 16]", "[16, 1, 1]", "[16, 2]"):
        with pytest.raises(CompileError, match="the strides of a temporary are numbers, row-major"):
            tvm.script.from_source(padded.replace("[20, 1]", strides))


def test_the_schedule_of_one_function():
    sch = tir.Schedule(weft.merge(product, Two))
    sch.work_on("other")
    assert names(sch, sch.get_child_blocks(sch.get_block("root"))) == ["other"]
    sch.enter_postproc()
    copy = sch.copy()
    assert copy.mod.is_structurally_equivalent(sch.mod)
    with pytest.raises(CompileError, match="unknown function 'othe'"):
        sch.work_on("othe")
