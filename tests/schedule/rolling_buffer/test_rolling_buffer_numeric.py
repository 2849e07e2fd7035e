"""Rolling buffers: the same values from fewer computed elements, counted in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from index_map_programs import chain, stage
from schedule_checks import check_schedule
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ArrayAttr, FunctionType, IndexType, IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.dialects.func import FuncOp

import weft
from weft import te
from weft.dialects.tir import BlockOp
from weft.interp.arguments import random_arguments


def runs(module: ModuleOp, label: str) -> int:
    """How often instances of a block, and of the parts of it that roll, run: a counter is added to their bodies."""
    counted = module.clone()
    function = next(op for op in counted.ops if isinstance(op, FuncOp))
    type_ = MemRefType(i64, [1])
    counter = function.body.block.insert_arg(type_, len(function.body.block.args))
    function.properties["function_type"] = FunctionType.from_lists([*function.function_type.inputs, type_], [])
    if function.arg_attrs is not None:
        function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs, *function.arg_attrs.data[:1]])
    blocks = [op for op in function.walk() if isinstance(op, BlockOp) and op.label.partition("_first")[0] == label]
    assert blocks
    for block in blocks:
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        one = arith.ConstantOp(IntegerAttr(1, i64))
        load = memref.LoadOp.get(counter, [zero.result])
        total = arith.AddiOp(load.res, one.result)
        store = memref.StoreOp.get(total.result, counter, [zero.result])
        block.body.block.add_ops([zero, one, load, total, store])
    count = np.zeros(1, np.int64)
    weft.Interpreter(counted).call(function.sym_name.data, *random_arguments(function, 0)[:-1], count)
    return int(count[0])


def stencils(n: Any = 10, m: Any = 9, stages: int = 2, size: int = 3, stride: int = 1) -> ModuleOp:
    """Maxima over windows, one after the other: B of A, C of B, and so on."""
    extents = [(n, m)]
    for _ in range(stages):
        extents.append(tuple((e - 1) * stride + size for e in extents[-1]))
    before = A = te.placeholder(extents[-1], "float32", name="A")
    for name, shape in zip("BCDE", reversed(extents[:-1]), strict=False):
        y, x = te.reduce_axis((0, size), name="y"), te.reduce_axis((0, size), name="x")

        def element(i: te.Expr, j: te.Expr, source: te.Tensor = before, y: Any = y, x: Any = x) -> te.Expr:
            return te.max(source[i * stride + y, j * stride + x], axis=[y, x])

        before = te.compute(shape, element, name=name)
    return te.create_func([A, before])


@pytest.mark.parametrize(
    ("read", "window", "computed"),
    [
        ("d0 floordiv 2 + d1", 2, 17),
        ("d0 * 2 floordiv 3 + d1", 4, 24),
        ("d0 + d0 floordiv 9 + d1", 3, 37),
        ("(d0 + 1) floordiv 2 + d1", 2, 33),  # the iteration before the first has its window: rows are computed again
    ],
)
@pytest.mark.parametrize("tile", [None, 8])
def test_windows_that_move_by_a_quotient(read: str, window: int, computed: int, tile: int | None) -> None:
    stages = [
        stage("B", [40], ("A", [40]), ["d0"], ("B", [40]), ["d0"]),
        stage("C", [32, window], ("B", [40]), [read], ("C", [32, window]), ["d0", "d1"]),
    ]
    module = weft.parse(chain(stages, [("A", [40]), ("C", [32, window])], [("B", [40])]))
    sch = weft.Schedule(module)
    rows = sch.get_loops("C")[0]
    if tile is not None:
        _, rows = sch.split(rows, [None, tile])
    sch.compute_at("B", rows)
    sch.rolling_buffer("B", 0)
    check_schedule(module, sch, run=tile is None)
    if tile is None:
        assert runs(sch.mod, "B") == computed


def test_two_stages_row_by_row() -> None:
    module = stencils()
    sch = weft.Schedule(module)
    sch.compute_at("B", sch.get_loops("C")[0])
    assert runs(sch.mod, "B") == 10 * 3 * 11 * 9  # three rows for each row of C
    sch.rolling_buffer("B", 0)
    assert runs(sch.mod, "B") == runs(module, "B") == 12 * 11 * 9  # each row once
    assert "alloc() : memref<3x11xf32>" in str(sch.mod)
    check_schedule(module, sch)


def test_tiles_in_both_dimensions() -> None:
    module = stencils(10, 9)
    sch = weft.Schedule(module)
    _, j0, _, _ = sch.tile(*sch.get_loops("C")[:2], factors=[4, 4])
    sch.compute_at("B", j0)
    before = runs(sch.mod, "B")
    sch.rolling_buffer("B", "B")
    assert before > runs(sch.mod, "B") == runs(module, "B")
    assert "alloc() : memref<6x11xf32>" in str(sch.mod)
    check_schedule(module, sch)


@pytest.mark.parametrize("order", ["CB", "CDB"])
def test_a_chain_of_stages(order: str) -> None:
    stages = len(order) + 1
    module = stencils(9, 8, stages)
    last = "BCDE"[stages - 1]
    sch = weft.Schedule(module)
    row = sch.get_loops(last)[0]
    for name in "DCB" if stages == 4 else "CB":
        sch.compute_at(name, row)
    for name in sorted(order, reverse=True):
        sch.rolling_buffer(name, 0)
    for name in order:
        assert runs(sch.mod, name) == runs(module, name)
    check_schedule(module, sch)


@pytest.mark.parametrize(("size", "stride"), [(3, 2), (5, 2), (2, 1), (4, 3)])
def test_strides(size: int, stride: int) -> None:
    module = stencils(6, 5, 2, size, stride)
    sch = weft.Schedule(module)
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    assert runs(sch.mod, "B") == runs(module, "B")
    check_schedule(module, sch)


def test_dynamic_extents() -> None:
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    P = te.compute((n + 2, m), lambda i, j: te.if_then_else(i < n, A[i, j], 1.0), name="B")
    C = te.compute((n, m), lambda i, j: te.sum(P[i + k, j], axis=k), name="C")
    module = te.create_func([A, C])
    sch = weft.Schedule(module)
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    assert "alloc(%m) : memref<3x?xf32>" in str(sch.mod)
    check_schedule(module, sch)


def tiled_rows(sch: weft.Schedule) -> None:
    outer, _ = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", outer)
    sch.rolling_buffer("B", 0)


def with_parallel_columns(sch: weft.Schedule) -> None:
    """Rows one after the other, the columns of each in parallel."""
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    sch.parallel(sch.get_loops("C")[1])
    sch.parallel(sch.get_loops("B")[2])


def under_parallel_columns(sch: weft.Schedule) -> None:
    """Tiles of columns in parallel, each thread with a circular buffer of its own."""
    i, j = sch.get_loops("C")[:2]
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(j0, i, j1)
    sch.parallel(j0)
    sch.compute_at("B", i)
    sch.rolling_buffer("B", 0)


def vectorized_columns(sch: weft.Schedule) -> None:
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    for label in ("B", "B_first"):
        _, columns, y, x = sch.get_loops(label)[-4:]
        sch.reorder(y, x, columns)
        sch.vectorize(columns)


def then_split_and_copied(sch: weft.Schedule) -> None:
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    sch.set_scope("B", 0, "local")
    sch.split(sch.get_loops("B_first")[2], [None, 4])
    sch.compute_at(sch.cache_read("B", 0, "local"), sch.get_loops("B")[0])


@pytest.mark.parametrize(
    "steps", [tiled_rows, with_parallel_columns, under_parallel_columns, vectorized_columns, then_split_and_copied]
)
def test_with_other_steps(steps: Callable[[weft.Schedule], None]) -> None:
    module = stencils(10, 9)
    sch = weft.Schedule(module)
    steps(sch)
    assert runs(sch.mod, "B") < runs(module, "B") * 2
    check_schedule(module, sch)


def test_convolutions_with_padding() -> None:
    """conv, then conv: the rows of the first one roll under the second."""
    X = te.placeholder((2, 9, 8), name="X")
    W, V = te.placeholder((3, 2, 3, 3), name="W"), te.placeholder((2, 3, 3, 3), name="V")

    def conv(source: te.Tensor, weights: te.Tensor, shape: tuple[int, int, int], name: str) -> te.Tensor:
        c = te.reduce_axis((0, weights.shape[1]), name="c")
        y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 3), name="x")
        return te.compute(
            shape, lambda f, i, j: te.sum(source[c, i + y, j + x] * weights[f, c, y, x], axis=[c, y, x]), name=name
        )

    P = te.compute(
        (2, 11, 10),
        lambda c, i, j: te.if_then_else(te.all(i >= 1, i < 10, j >= 1, j < 9), X[c, i - 1, j - 1], 0.0),
        name="P",
    )
    B = conv(P, W, (3, 9, 8), "B")
    C = conv(B, V, (2, 7, 6), "C")
    module = te.create_func([X, W, V, C])
    sch = weft.Schedule(module)
    f, i = sch.get_loops("C")[:2]
    sch.reorder(i, f)
    sch.compute_at("B", i)
    sch.compute_at("P", i)
    for name in ("B", "P"):
        sch.rolling_buffer(name, 0)
        assert runs(sch.mod, name) == runs(module, name)
    check_schedule(module, sch)
