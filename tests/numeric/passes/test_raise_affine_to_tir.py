"""`raise-affine-to-tir` on programs as users of MLIR write them (`upstream_loops/`): raised, scheduled and compiled,
they compute what the interpreter computes of the program as it was, and what MLIR's lowering of it does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_loops import random_loops
from tiers import first_tier
from upstream_tools import UpstreamLibrary, needs_mlir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import weft
from weft.autoschedule.default_schedule import DefaultSchedulePass
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.driver.programs import parse
from weft.interp.compare import outputs_equal
from weft.interp.interpreter import Interpreter
from weft.passes.convert.raise_affine_to_tir import RaiseAffineToTirPass
from weft.passes.verify_level import verify_level

PROGRAMS = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "upstream_loops").glob("*.mlir"))}
SHAPES = {
    "affine_if": ((7, 16),),
    "matmul_accumulate": ((9, 12), (12, 10), (9, 10)),
    "matmul_iter_args": ((9, 12), (12, 10), (9, 10)),
    "scf_parallel": ((7, 11), (7, 11)),
    "stencil_symbols": ((13,), (13,)),
    "strided_parameters": ((6, 9), (6, 9)),
}
"""The shapes of arguments of programs over buffers of dynamic extents."""
ALL = ("noalias", "contract", "reassoc")


def arguments_of(module: ModuleOp, name: str) -> list[Any]:
    generator = np.random.default_rng(3)
    signature = Interpreter(module).signature(name)
    found: list[Any] = []
    for at, spec in enumerate(signature.args):
        shape = SHAPES[name][at] if name in SHAPES else spec.shape
        dtype = np.dtype(spec.dtype)
        if dtype.kind == "f":
            found.append(generator.standard_normal(shape).astype(dtype))
        else:
            found.append(generator.integers(0, 50, shape).astype(dtype))
    if name == "layout_map":
        found[0] = np.asfortranarray(found[0])
    return found


def interpreted(module: ModuleOp, name: str) -> list[Any]:
    """The arguments after a call, then what it returns: in the last argument, where the function was raised."""
    arguments = arguments_of(module, name)
    result = Interpreter(module).call(name, *arguments)
    return arguments if result is None else [*arguments, np.asarray(result, np.float32)]


def compiled(module: ModuleOp, name: str) -> list[Any]:
    arguments = arguments_of(module, name)
    weft.build(module)[name](*arguments)
    return arguments


def run_passes(module: ModuleOp, *passes: ModulePass) -> ModuleOp:
    for one in passes:
        one.apply(Context(), module)
        module.verify()
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            verify_level(function, "tir")
    return module


def assert_equal(expected: list[Any], found: list[Any], what: str) -> None:
    for at, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert outputs_equal(one, other), f"{what}: argument {at} differs:\n{one}\n{other}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_raised_and_scheduled_programs_compute_the_same(name: str) -> None:
    module = parse(PROGRAMS[name], name)
    expected = interpreted(module, name)
    for promises in ((), ALL):
        raised = run_passes(module.clone(), RaiseAffineToTirPass(promises=promises, strict=True))
        assert_equal(expected, interpreted(raised, name), f"raised with {promises}")
    assert_equal(expected, compiled(run_passes(raised, DefaultSchedulePass()), name), "compiled")


def _tiled(sch: weft.Schedule, label: str, *loops: int) -> None:
    chosen = sch.get_loops(sch.get_block(label))
    halves = [sch.split(chosen[at], factors=[None, 4]) for at in loops]
    sch.reorder(*(outer for outer, _ in halves), *(inner for _, inner in halves))


def _computed_at(sch: weft.Schedule) -> None:
    sch.compute_at(sch.get_block("sum"), sch.get_loops(sch.get_block("B"))[0])


def _distributed(sch: weft.Schedule) -> None:
    sch.parallel(sch.get_loops(sch.get_block("total"))[0])
    sch.split(sch.get_loops(sch.get_block("most"))[1], factors=[None, 11])


SCHEDULES: dict[str, Callable[[weft.Schedule], None]] = {
    "jacobi": lambda sch: _tiled(sch, "B", 1, 2),
    "matmul_imperfect": lambda sch: _tiled(sch, "C", 0, 1),
    "max_and_sum": _distributed,
    "triangular": lambda sch: _tiled(sch, "x", 0, 1),
    "two_nests": _computed_at,
}
"""Schedules that name blocks of raised programs."""


@pytest.mark.parametrize("name", SCHEDULES)
def test_blocks_are_scheduled_by_name(name: str) -> None:
    module = parse(PROGRAMS[name], name)
    expected = interpreted(module, name)
    RaiseAffineToTirPass(promises=ALL).apply(Context(), module)
    sch = weft.Schedule(module)
    SCHEDULES[name](sch)
    assert_equal(expected, compiled(run_passes(sch.mod), name), name)


def test_conditions_with_two_branches_leave_nothing_between_blocks() -> None:
    raised = run_passes(parse(PROGRAMS["affine_if"], "affine_if"), RaiseAffineToTirPass(promises=ALL))
    loops = [op for op in raised.walk() if isinstance(op, ForOp)]
    assert loops and all(isinstance(op, ForOp | BlockOp) for loop in loops for op in loop.body.block.ops)


def test_products_get_the_schedule_of_contractions() -> None:
    for name in ("matmul_affine", "matmul_imperfect", "matmul_iter_args"):
        raised = run_passes(parse(PROGRAMS[name], name), RaiseAffineToTirPass(promises=ALL), DefaultSchedulePass())
        kinds = [op.kind.data for op in raised.walk() if isinstance(op, ForOp)]
        assert LoopKind.VECTORIZED in kinds and LoopKind.UNROLLED in kinds, name


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "reduce"])  # which returns a number
def test_mlir_lowers_programs_to_the_same(name: str) -> None:
    module = parse(PROGRAMS[name], name)
    expected = arguments_of(module, name)
    UpstreamLibrary(PROGRAMS[name], ("--scf-forall-to-for", "--lower-affine"))[name](*expected)
    raised = run_passes(module, RaiseAffineToTirPass(promises=ALL), DefaultSchedulePass())
    assert_equal(expected, compiled(raised, name), "compiled")


@pytest.mark.parametrize("seed", first_tier(range(40), 0, 1))
def test_random_loops_compute_the_same(seed: int) -> None:
    check_random_loops(seed)


def check_random_loops(seed: int) -> None:
    text = random_loops(seed)
    module = parse(text, f"seed {seed}")
    module.verify()
    given = arguments_of(module, "f")
    expected = [argument.copy() for argument in given]
    Interpreter(module, check_uninitialised=False).call("f", *expected)
    for promises in ((), ALL):
        raised = run_passes(module.clone(), RaiseAffineToTirPass(promises=promises, strict=True))
        for order in ("forward", "reversed"):
            found = [argument.copy() for argument in given]
            Interpreter(raised, order=order).call("f", *found)
            assert_equal(expected, found, f"seed {seed}, raised with {promises}, {order}")
    found = [argument.copy() for argument in given]
    weft.build(run_passes(raised, DefaultSchedulePass()))["f"](*found)
    assert_equal(expected, found, f"seed {seed}, compiled")
