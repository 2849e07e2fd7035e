"""Methods of schedules have the names and parameters that users know; traces that TVM printed run."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from block_refusals import BEHIND
from schedule_checks import check_schedule

import weft
from weft import te

KNOWN = {
    "get_block": "name func_name",
    "get_loops": "block",
    "get_producers": "block",
    "get_consumers": "block",
    "get_child_blocks": "block_or_loop",
    "sample_categorical": "candidates probs decision",
    "sample_perfect_tile": "loop n max_innermost_factor decision",
    "sample_partitioned_tile": "loop n partition_pos innerpart_factor decision",
    "sample_compute_location": "block decision",
    "split": "loop factors disable_predication preserve_unit_iters",
    "loop_partition": "loop factors preserve_unit_iters",
    "fuse": "*loops preserve_unit_iters",
    "merge": "*loops",
    "reorder": "*loops",
    "reorder_block_iter_var": "block new_order",
    "add_unit_loop": "block_or_loop",
    "parallel": "loop",
    "vectorize": "loop",
    "unroll": "loop",
    "bind": "loop thread_axis",
    "cache_read": "block read_buffer_index storage_scope consumer_blocks",
    "cache_write": "block write_buffer_index storage_scope consumer_blocks",
    "cache_index": "block storage_scope cse_thresh",
    "annotate_buffer_access": "block buffer_index buf_type gen_new_ranges",
    "cache_inplace": "block read_buffer_index storage_scope",
    "read_at": "loop block read_buffer_index storage_scope",
    "write_at": "loop block write_buffer_index storage_scope",
    "compute_at": "block loop preserve_unit_loops index",
    "reverse_compute_at": "block loop preserve_unit_loops index",
    "compute_inline": "block",
    "reverse_compute_inline": "block",
    "decompose_reduction": "block loop",
    "rfactor": "loop factor_axis",
    "fuse_reduction_epilogue": "reduction_block epilogue_block",
    "storage_align": "block buffer_index axis factor offset",
    "set_scope": "block buffer_index storage_scope",
    "blockize": "target preserve_unit_iters",
    "tensorize": "block_or_loop tensor_intrin preserve_unit_iters",
    "annotate": "block_or_loop ann_key ann_val",
    "unannotate": "block_or_loop ann_key",
    "transform_layout": "block buffer index_map pad_value assume_injective_transform",
    "transform_block_layout": "block index_map",
    "reindex": "block buffer",
    "reindex_cache_read": "block read_buffer_index storage_scope index_map",
    "reindex_cache_write": "block write_buffer_index storage_scope index_map",
    "recode": "block read_buffer_index encoding",
    "rolling_buffer": "block write_buffer_index",
    "pad_einsum": "block padding",
    "decompose_padding": "block loop",
    "can_decompose_padding": "block loop",
    "unsafe_set_dtype": "block buffer_index dtype",
}

TVM_TRACE = """
# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
    b0 = sch.get_block(name="C", func_name="main")
    l1, l2, l3 = sch.get_loops(block=b0)
    v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[4, 8])
    l6, l7 = sch.split(loop=l2, factors=[v4, v5], preserve_unit_iters=True, disable_predication=False)
    sch.reorder(l1, l6, l3, l7)
    b8 = sch.decompose_reduction(block=b0, loop=l3)
"""


def matmul():
    a, b = (te.placeholder((32, 32), name=name) for name in "AB")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name="main")


@pytest.mark.parametrize("name", KNOWN)
def test_names(name: str) -> None:
    method = getattr(weft.Schedule, name)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    shown = ["*" * (p.kind is p.VAR_POSITIONAL) + p.name for p in parameters]
    assert " ".join(shown) == KNOWN[name]


def test_a_trace_that_tvm_printed() -> None:
    sch = weft.Schedule(matmul())
    weft.run_trace(sch, TVM_TRACE)
    assert weft.decisions_of(sch.trace) == [(4, 8)]
    x, y = np.random.default_rng(0).random((2, 32, 32), dtype=np.float32)
    out = np.empty_like(x)
    weft.build(sch.mod)["main"](x, y, out)
    np.testing.assert_allclose(out, x @ y, rtol=1e-5)


def single_columns() -> weft.Schedule:
    A = te.placeholder((4, 1, 1), name="A")
    B = te.compute((4, 1, 1), lambda i, j, k: A[i, j, k] + 1, name="B")
    return weft.Schedule(te.create_func([A, te.compute((4, 1, 1), lambda i, j, k: B[i, j, k] * 2, name="C")]))


@pytest.mark.parametrize(("kept", "count"), [(False, 1), (True, 4)])
def test_unit_loops_are_preserved_on_request(kept: bool, count: int) -> None:
    sch = single_columns()
    sch.compute_at("B", sch.get_loops("C")[0], preserve_unit_loops=kept)
    assert len(sch.get_loops("B")) == count
    assert ("preserve_unit_loops=True" in weft.trace_as_python(sch.trace)) == kept
    again = single_columns()
    weft.run_trace(again, sch.trace)
    weft.assert_structural_equal(again.mod, sch.mod)


@pytest.mark.parametrize(
    ("name", "index", "order"),
    [
        *(("B", -1, "XBC"), ("B", 1, "XBC"), ("B", 0, "BXC"), ("B", -2, "BXC")),
        *(("D", -1, "XCD"), ("D", 2, "XCD"), ("D", 1, "XDC"), ("D", -2, "XDC")),
    ],
)
def test_index_is_the_place_in_the_loop(name: str, index: int, order: str) -> None:
    module = weft.parse(BEHIND)
    sch = weft.Schedule(module)
    loop = sch.get_loops("X")[0]
    (sch.compute_at if name == "B" else sch.reverse_compute_at)(name, loop, index=index)
    assert [sch.get(child).label for child in sch.get_child_blocks(loop)] == list(order)
    assert (f"index={index}" in weft.trace_as_python(sch.trace)) == (index != -1)
    check_schedule(module, sch)


def test_options_with_another_meaning_are_refused() -> None:
    sch = weft.Schedule(matmul())
    i, _, _ = sch.get_loops("C")
    with pytest.raises(weft.CompileError, match=r"unsafe_set_dtype.*would change what the program computes"):
        sch.unsafe_set_dtype("C", 0, "float16")
    with pytest.raises(TypeError, match="preserve_units"):
        sch.split(i, [None, 4], preserve_units=True)
    assert len(sch.split(i, [None, 4], preserve_unit_iters=False)) == 2
