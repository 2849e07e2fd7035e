"""What every test of a schedule primitive asks: the same meaning, everywhere, and a trace that replays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.analysis.structural_equality import first_difference
from weft.dialects import sched
from weft.interp.arguments import random_arguments
from weft.interp.compare import compare_modules, outputs_equal
from weft.passes.verify_level import verify_level


def check_schedule(before: ModuleOp, sch: weft.Schedule, *, run: bool = True) -> None:
    """The scheduled module means what `before` does, interpreted and compiled; its text and its trace read back."""
    verify_level(sch.mod, "tir")
    difference = compare_modules(before, sch.mod)
    assert difference is None, f"{difference}\n{sch.mod}"
    again = weft.parse(str(sch.mod), "scheduled.mlir")
    assert (found := first_difference(sch.mod, again)) is None, found
    replayed = weft.Schedule(before)
    trace = weft.parse(str(sch.trace), "trace.mlir")
    replayed.replay(next(op for op in trace.ops if isinstance(op, sched.FuncOp)))
    assert (found := first_difference(sch.mod, replayed.mod)) is None, found
    if run:
        check_compiled(before, sch.mod)


def check_compiled(before: ModuleOp, after: ModuleOp) -> None:
    """Native code of `after` computes what the interpreter says `before` does."""
    library = weft.build(after, default_schedule=False)
    for function in [op for op in before.ops if isinstance(op, FuncOp) and not op.is_declaration]:
        name = function.sym_name.data
        arguments = random_arguments(function, 0)
        expected = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        weft.Interpreter(before).call(name, *expected)
        library[name](*arguments)
        for at, (want, got) in enumerate(zip(expected, arguments, strict=True)):
            if isinstance(want, np.ndarray):
                assert outputs_equal(want, got), f"parameter {at} of @{name}: {want} against {got}"


def refused(step: Callable[[], object], requirement: int, *texts: str, kind: str = "refuted") -> weft.ScheduleError:
    """The step is refused for that requirement, in a message that has the texts, and changes nothing."""
    with pytest.raises(weft.ScheduleError) as caught:
        step()
    message = str(caught.value)
    assert caught.value.requirement == requirement, message
    assert f"requirement {requirement}, " in message
    for text in texts:
        assert text in message, message
    assert caught.value.violation.kind == kind, message
    assert ("not proved: " in message) == (kind == "not proved"), message
    return caught.value
