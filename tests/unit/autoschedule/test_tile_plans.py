"""Tile plans: rules compute them without touching the program, and layouts are maps of indices."""

from __future__ import annotations

import pytest

import weft
from weft import te
from weft.analysis.block_patterns import BlockPattern, pattern_of
from weft.analysis.block_scopes import child_blocks, functions
from weft.autoschedule.contraction import contraction
from weft.autoschedule.convolution import direct_convolution
from weft.autoschedule.default_schedule import apply_default_schedule
from weft.autoschedule.dot_products import dot_products
from weft.autoschedule.executor import PlannedRule
from weft.autoschedule.kernels import tiles_in_shared_memory
from weft.autoschedule.packed_convolution import packed_convolution
from weft.autoschedule.pooling import pooling
from weft.plans.decisions import Decisions
from weft.plans.tile_plan import Layout, LoopSplit, TilePlan, index_map, moved_last, panels, split_by_residue
from weft.support.target import Target

CPU = "llvm -mcpu=cascadelake -num-threads=2 -l1-bytes=32768 -l2-bytes=1048576 -l2-ways=16 -l3-bytes=33554432"


def product(dtype: str = "float32", m: int | te.Var = 64) -> weft.ModuleOp:
    a, b = te.placeholder((m, 128), dtype, name="A"), te.placeholder((128, 96), dtype, name="B")
    k, sums = te.reduce_axis((0, 128), name="k"), "int32" if dtype == "int8" else dtype
    terms = lambda i, j: te.sum(a[i, k].astype(sums) * b[k, j].astype(sums), axis=k)  # noqa: E731
    return te.create_func([a, b, te.compute((m, 96), terms, name="C")])


def operator(function: te.Tensor, *inputs: te.Tensor) -> weft.ModuleOp:
    return te.create_func([*inputs, function])


def images(*shape: int | te.Var) -> te.Tensor:
    return te.placeholder(shape, "float32", name="X")


def last_pattern(module: weft.ModuleOp) -> BlockPattern:
    (function,) = functions(module)
    return pattern_of(child_blocks(function)[-1])


X, W = images(1, 8, 20, 33), te.placeholder((8, 1, 3, 3), "float32", name="W")
PLANS = {
    "product": (contraction, product(), CPU),
    "product of bytes": (dot_products, product("int8"), CPU),
    "product on a device": (tiles_in_shared_memory, product(), "cuda"),
    "depthwise convolution": (direct_convolution, operator(te.ops.depthwise_conv2d(X, W), X, W), CPU),
    "pooling": (pooling, operator(te.ops.max_pool2d(X, 3, 2), X), CPU),
}


def plan_of(rule: PlannedRule, module: weft.ModuleOp, target: str) -> TilePlan | None:
    return rule.plan(last_pattern(module), Target.parse(target), Decisions())


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_data_and_leaves_the_program_as_it_is(name: str) -> None:
    rule, module, target = PLANS[name]
    before = str(module)
    plan = plan_of(rule, module, target)
    assert plan is not None and plan == plan_of(rule, module, target)
    assert str(module) == before
    made = {part for split in plan.splits for part in split.parts}
    assert set(plan.order) <= made | {(at,) for at in range(20)}


def test_symbolic_extents_get_the_plan_of_known_ones() -> None:
    known, unknown = (plan_of(contraction, product(m=m), CPU) for m in (1024, te.var("m")))
    assert known is not None and unknown is not None
    assert (known.splits, known.order, known.staged) == (unknown.splits, unknown.order, unknown.staged)


@pytest.mark.parametrize(
    ("name", "target", "is_packed"),
    [
        ("windows of one element", CPU, True),
        ("windows of one element", "llvm -mcpu=haswell", True),
        ("windows of three elements", CPU, True),
        ("windows of three elements", "llvm -mcpu=haswell", False),
        ("windows of an image", CPU, False),
    ],
)
def test_windows_of_rows_of_unknown_length(name: str, target: str, is_packed: bool) -> None:
    """Those of an image are read in place, and so are rows of the assumed length that fill vectors."""
    n, h = te.var("n"), te.var("h")
    size = 1 if name == "windows of one element" else 3
    if name == "windows of an image":
        x, w = images(1, 32, h, n), te.placeholder((32, 32, 3, 3), "float32", name="W")
        module = operator(te.ops.conv2d(x, w), x, w)
    else:
        x, w = images(1, 32, n), te.placeholder((32, 32, size), "float32", name="W")
        module = operator(te.ops.conv1d(x, w), x, w)
    assert (plan_of(packed_convolution, module, target) is not None) is is_packed
    assert plan_of(direct_convolution, module, target) is not None


@pytest.mark.parametrize(("rows", "is_known"), [(65, True), (4, False)])
def test_rows_of_a_tile_are_those_of_known_extent(rows: int, is_known: bool) -> None:
    """A symbolic batch may be 1: known rows fill a tile, unless they are few."""
    a, b = te.placeholder((te.var("n"), rows, 128), name="A"), te.placeholder((128, 96), name="B")
    plan = plan_of(contraction, operator(te.ops.matmul(a, b), a, b), CPU)
    assert plan is not None
    assert [split.loop for split in plan.splits[:2]] == [(2,), (1,) if is_known else (0,)]


def test_the_packing_of_a_narrow_type_is_a_digit_of_the_layout() -> None:
    plan = plan_of(dot_products, product("int8"), CPU)
    assert plan is not None
    right = plan.staged[-1]
    assert [(digit.dimension, digit.divisor, digit.modulus) for digit in right.layout][1] == (0, 4, 0)
    assert right.layout[-1].modulus == 4


def test_decisions_of_a_search_change_the_plan() -> None:
    class Smallest(Decisions):
        def choose(self, options: list[int] | range, default: int) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
            return min(options)

    module = product()
    plan = contraction.plan(last_pattern(module), Target.parse(CPU), Smallest())
    assert plan is not None and plan != plan_of(contraction, module, CPU) and plan.staged == ()


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (panels(2, 1, 16), (3, 2, 5)),
        (panels(2, 1, 16, outermost=True), (2, 3, 5)),
        (moved_last(2, 0), (37, 3)),
        (split_by_residue(2, 2), (3, 1, 18)),
    ],
    ids=["panels", "panels first", "moved last", "split by residue"],
)
def test_layouts(layout: Layout, expected: tuple[int, ...]) -> None:
    assert index_map(layout)(3, 37) == expected


def test_parts_are_named_by_the_loops_that_they_are_split_from() -> None:
    outer, inner = LoopSplit((2,), (None, 8)).parts
    assert (outer, inner) == ((2, 0), (2, 1))
    assert LoopSplit(inner, (None, 4)).parts == ((2, 1, 0), (2, 1, 1))


def test_rules_of_plans_schedule() -> None:
    module = product()
    assert len(apply_default_schedule(module, Target.parse(CPU), [contraction])) == 1
