"""Random programs under random schedules whose loops are then bound to random thread axes: kernels compute the same, or
binding and lowering say what is wrong."""

from __future__ import annotations

import random

import pytest
from cases import REDUCTIONS, case_of
from checking import _interpret as problem_of  # pyright: ignore[reportPrivateUsage]
from tiers import first_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind, LoopKindAttr
from weft.passes.lower_tir_to_low import lower_tir_to_low
from weft.passes.schedule.bind import Bind
from weft.support.errors import ScheduleError, WeftError

AXES = ("blockIdx.x", "threadIdx.x", "blockIdx.y", "threadIdx.y", "vthread")
SEEDS = range(48)


def bind_at_random(module: ModuleOp, rng: random.Random) -> None:
    """Bind loops of every nest, at least one where any can be."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    for top in [op for op in function.body.block.ops if isinstance(op, ForOp)]:
        bound = 0
        for loop in [op for op in top.walk() if isinstance(op, ForOp)]:
            if loop.kind.data is LoopKind.PARALLEL:
                loop.kind = LoopKindAttr(LoopKind.SERIAL)
            if bound and rng.random() < 0.4:
                continue
            for axis in rng.sample(AXES, len(AXES)):
                try:
                    Bind(loop, axis).apply()
                except ScheduleError:
                    continue
                bound += 1
                break


@pytest.mark.parametrize("first", first_tier(SEEDS[::8], 0, 8))
def test_kernels_of_random_programs(first: int) -> None:
    lowered = 0
    for seed in range(first, first + 8):
        program, fuzzer = case_of(seed, REDUCTIONS if seed % 4 == 3 else None)
        module, rng = fuzzer.sch.mod.clone(), random.Random(seed)
        bind_at_random(module, rng)
        try:
            lower_tir_to_low(Context(), module, rng.choice(("cuda", "opencl")))
        except WeftError:
            continue  # a part outside of the loops over blocks, say
        lowered += 1
        for order in ("forward", "reversed", "interleaved"):
            problem = problem_of(program, module, order, seed)
            assert problem is None, f"seed {seed}, {order}: {problem}"
    assert lowered > 0
