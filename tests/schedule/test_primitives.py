"""Each schedule primitive on a set of programs: what it makes verifies, means the same, replays, and compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from schedule_programs import PROGRAMS
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import Schedule
from weft.dialects import sched
from weft.driver.verify import verify_module
from weft.interp.compare import Reference
from weft.passes.verify_level import verify_level

ORDERS = ("forward", "reversed", "shuffled", "interleaved")
Steps = Callable[[Schedule], object]
CASES: list[tuple[str, str, Steps]] = []


def case(*names: str) -> Callable[[Steps], Steps]:
    """Registers steps for the named programs."""

    def register(steps: Steps) -> Steps:
        CASES.extend((name, steps.__name__.strip("_"), steps) for name in names)
        return steps

    return register


def first_of(s: Schedule, *names: str) -> str:
    """The first of these blocks that the program has."""
    return next(name for name in names if f'block "{name}" ' in str(s.mod))


@cache
def module_of(name: str) -> ModuleOp:
    return weft.parse(PROGRAMS[name].text)


@cache
def reference_of(name: str) -> Reference:
    reference = Reference(module_of(name))
    assert not reference.skipped
    return reference


def trace_in(module: ModuleOp) -> sched.FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, sched.FuncOp))


def check(name: str, sch: Schedule) -> None:
    """Everything that must hold of a scheduled program."""
    program = PROGRAMS[name]
    sch.mod.verify()
    verify_module(sch.mod)
    verify_level(sch.mod, "tir")
    difference = reference_of(name).compare(sch.mod, orders=ORDERS)
    assert difference is None, f"{difference}\n{sch.mod}"
    again = Schedule(module_of(name))
    again.replay(trace_in(weft.parse(str(sch.trace))))
    weft.assert_structural_equal(sch.mod, again.mod)
    weft.assert_structural_equal(sch.mod, weft.parse(str(sch.mod)))
    inputs = program.inputs()
    expected = program.expected(inputs)
    outputs = [np.full_like(array, np.nan) for array in expected]
    weft.build(sch.mod)["f"](*inputs, *outputs)
    for found, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@case("chain", "matmul_relu", "bmm", "conv", "row_sum", "transpose", "gather", "dynamic")
def _split_evenly_or_not(s: Schedule) -> None:
    block = first_of(s, "C", "Y")
    for loop in s.get_loops(block):
        s.split(loop, [None, 4])


@case("chain", "matmul_relu", "conv", "row_sum", "transpose", "window", "two_consumers")
def _split_in_three_and_again(s: Schedule) -> None:
    block = first_of(s, "C", "Y")
    first = s.get_loops(block)[0]
    a, b, _ = s.split(first, [2, None, 3])
    b0, _ = s.split(b, [None, 2])
    s.split(b0, [None, 2])
    s.split(a, [2, 1])


@case("chain", "transpose", "dynamic", "bmm")
def _fuse_all_but_reductions(s: Schedule) -> None:
    loops = s.get_loops("C")
    fused = s.fuse(*loops[: 3 if len(loops) > 3 else 2])
    s.split(fused, [None, 5])


@case("matmul_relu", "dynamic", "bmm")
def _fuse_everything(s: Schedule) -> None:
    block = s.get_block(first_of(s, "Y", "C"))
    s.fuse(*s.get_loops(block))


@case("matmul_relu", "dynamic", "bmm", "chain", "row_sum", "transpose")
def _tile(s: Schedule) -> None:
    loops = s.get_loops(first_of(s, "Y", "C"))
    s.tile(*loops[-2:], factors=[4, 3])


@case("matmul_relu", "dynamic", "conv", "bmm")
def _reorder_reduction_outside(s: Schedule) -> None:
    loops = s.get_loops(first_of(s, "Y", "C"))
    s.reorder(*reversed(loops))


@case("matmul_relu", "dynamic")
def _split_and_reorder(s: Schedule) -> None:
    i, j, k = s.get_loops("Y")
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 4])
    k0, k1 = s.split(k, [None, 2])
    s.reorder(j0, i0, k0, k1, j1, i1)


@case("chain", "matmul_relu", "conv", "row_sum", "transpose", "gather", "window", "dynamic", "two_consumers", "bmm")
def _parallel_outermost(s: Schedule) -> None:
    for block in ("B", "C", "D", "P", "Y", "S"):
        if f'block "{block}"' in str(s.mod):
            s.parallel(s.get_loops(block)[0])


@case("chain", "transpose", "two_consumers", "gather", "matmul_relu", "dynamic")
def _vectorize_innermost(s: Schedule) -> None:
    loop = s.get_loops("C")[-1]
    _, inner = s.split(loop, [None, 4])
    s.vectorize(inner)


@case("matmul_relu", "conv", "bmm", "dynamic")
def _vectorize_under_a_reduction(s: Schedule) -> None:
    block = first_of(s, "Y", "C")
    loops = s.get_loops(block)
    columns = len(loops) - (2 if len(loops) == 3 or block == "C" else 3)
    _, inner = s.split(loops[columns], [None, 4])
    rest = [loop for loop in s.get_loops(block) if s.get(loop) is not s.get(inner)]
    s.reorder(*rest, inner)
    s.vectorize(inner)
    s.parallel(s.get_loops(block)[0])


@case("matmul_relu", "window", "conv")
def _unroll(s: Schedule) -> None:
    s.unroll(s.get_loops(first_of(s, "C", "Y"))[-1])


@case("chain", "transpose", "window", "conv", "gather")
def _compute_at_inner_loop(s: Schedule) -> None:
    producer, consumer = first_of(s, "P", "B"), first_of(s, "Y", "C")
    s.compute_at(producer, s.get_loops(consumer)[0])


@case("chain", "transpose", "window", "conv")
def _compute_at_tile(s: Schedule) -> None:
    producer, consumer = first_of(s, "P", "B"), first_of(s, "Y", "C")
    loops = s.get_loops(consumer)
    outer, _ = s.split(loops[0], [None, 4])
    s.compute_at(producer, outer)
    s.vectorize(s.get_loops(producer)[-1])


@case("conv", "window")
def _compute_at_tile_in_parallel(s: Schedule) -> None:
    """Neighbouring tiles overlap: each thread has its own copy."""
    producer, consumer = first_of(s, "P", "B"), first_of(s, "Y", "C")
    outer, _ = s.split(s.get_loops(consumer)[0], [None, 4])
    s.compute_at(producer, outer)
    s.parallel(outer)


@case("conv")
def _compute_at_twice(s: Schedule) -> None:
    i, j, _, _ = s.get_loops("Y")
    i0, j0, _, _ = s.tile(i, j, factors=[4, 4])
    s.compute_at("P", i0)
    s.compute_at("P", j0)


@case("row_sum", "dynamic", "matmul_relu")
def _compute_reduction_at(s: Schedule) -> None:
    producer = first_of(s, "S", "Y")
    outer, _ = s.split(s.get_loops("C")[0], [None, 4])
    s.compute_at(producer, outer)


@case("matmul_relu", "dynamic", "chain", "transpose", "row_sum")
def _reverse_compute_at_outer(s: Schedule) -> None:
    producer = first_of(s, "Y", "S", "B")
    s.reverse_compute_at("C", s.get_loops(producer)[0])


@case("matmul_relu", "dynamic", "chain", "transpose")
def _reverse_compute_at_tile(s: Schedule) -> None:
    producer = first_of(s, "Y", "B")
    i, j, *rest = s.get_loops(producer)
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 3])
    s.reorder(i0, j0, *rest, i1, j1)
    s.reverse_compute_at("C", j0)
    s.parallel(i0)


@case("chain", "transpose", "window", "gather", "conv", "two_consumers")
def _compute_inline(s: Schedule) -> None:
    s.compute_inline(first_of(s, "P", "B"))


@case("chain")
def _inline_all(s: Schedule) -> None:
    s.compute_inline("B")
    s.compute_inline("C")


@case("chain")
def _reverse_inline(s: Schedule) -> None:
    s.reverse_compute_inline("D")
    s.reverse_compute_inline("C")


@case("transpose")
def _reverse_inline_transposed(s: Schedule) -> None:
    s.reverse_compute_inline("C")


@case("transpose", "chain")
def _reverse_inline_after_split(s: Schedule) -> None:
    for loop in s.get_loops("B"):
        s.split(loop, [None, 4])
    s.reverse_compute_inline("C")


@case("matmul_relu", "dynamic", "bmm")
def _cache_reads(s: Schedule) -> None:
    block = first_of(s, "Y", "C")
    outer, _ = s.split(s.get_loops(block)[0], [None, 4])
    a = s.cache_read(block, "A", "local")
    s.cache_read(block, 1, "global.B_packed")
    s.compute_at(a, outer)


@case("chain", "gather", "two_consumers", "row_sum")
def _cache_read_of_a_temporary(s: Schedule) -> None:
    s.cache_read("C", first_of(s, "S", "B"), "shared")


@case("matmul_relu", "dynamic", "conv", "bmm", "chain")
def _cache_write(s: Schedule) -> None:
    block = first_of(s, "Y", "C")
    copy = s.cache_write(block, 0, "local")
    outer, _ = s.split(s.get_loops(block)[0], [None, 4])
    s.reverse_compute_at(copy, outer)


@case("matmul_relu", "conv", "bmm")
def _read_and_write_at_tiles(s: Schedule) -> None:
    block = first_of(s, "Y", "C")
    outer, _ = s.split(s.get_loops(block)[0], [None, 4])
    s.vectorize(s.get_loops(s.read_at(outer, block, 1, "local"))[-1])
    s.write_at(outer, block, 0, "local")
    s.parallel(outer)


@case("two_consumers")
def _read_at_leaves_other_readers(s: Schedule) -> None:
    outer, _ = s.split(s.get_loops("D")[0], [None, 4])
    s.read_at(outer, "D", 0, "shared")


@case("chain", "row_sum", "matmul_relu")
def _set_scope(s: Schedule) -> None:
    block = first_of(s, "Y", "S", "B")
    s.set_scope(block, 0, "local")


@case("matmul_relu", "dynamic", "conv", "row_sum", "bmm", "window")
def _decompose_at_each_loop(s: Schedule) -> None:
    block = first_of(s, "Y", "S", "C")
    s.decompose_reduction(block, s.get_loops(block)[0])


@case("matmul_relu", "dynamic", "bmm")
def _decompose_between(s: Schedule) -> None:
    block = s.get_block(first_of(s, "Y", "C"))
    loops = s.get_loops(block)
    j, k = loops[-2:]
    j0, j1 = s.split(j, [None, 4])
    k0, k1 = s.split(k, [None, 2])
    s.reorder(j0, k0, k1, j1)
    init = s.decompose_reduction(block, k0)
    s.vectorize(j1)
    s.vectorize(s.get_loops(init)[-1])


@case("matmul_relu")
def _the_whole_schedule(s: Schedule) -> None:
    y = s.get_block("Y")
    i, j, k = s.get_loops(y)
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 4])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i0, j0, k0, k1, i1, j1)
    s.reverse_compute_at("C", j0)
    s.decompose_reduction(y, k0)
    s.compute_at(s.cache_read(y, "A", "local"), k0)
    s.unroll(i1)
    s.vectorize(j1)
    s.parallel(i0)


@pytest.mark.parametrize(("name", "label", "steps"), CASES, ids=[f"{label}-{name}" for name, label, _ in CASES])
def test_primitive(name: str, label: str, steps: Steps):
    sch = Schedule(module_of(name))
    steps(sch)
    assert not weft.structural_equal(sch.mod, module_of(name))
    check(name, sch)
