"""What is refused with a counterexample, done all the same, gives something else: the counterexamples are no theory."""

from __future__ import annotations

import pytest
from block_refusals import BLOCKS
from loop_refusals import LOOPS
from loop_shape_refusals import LOOP_SHAPES
from refusal import Refusal
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import weft
from weft import Schedule
from weft.interp.compare import compare_modules
from weft.passes.schedule.primitive import CheckedStep
from weft.passes.verify_level import verify_level
from weft.support.errors import Violation

ORDERS = ("forward", "reversed", "shuffled", "interleaved", "privatised")
SAME = {
    "instances (v=0) and (v=1) store to the same element": "the element is never read",
    "instances (vi=0, v=0) and (vi=1, v=0) store to the same element": "all of them store the same value",
    "it never writes B[1]": "the element is copied, and its copy not read",
    "its loops or guards leave out instance": "what is left out, and would run, is not read",
    "the copy would hold": "the element is copied, and its copy not read",
    "is outside, in dimension": "regions that are stated change no meaning",
    "writes C[0] at the same time": "both write one value",
    "iteration k=0 would read an element of Y": "the last iteration does it again, with the final value",
}
"""Where what was claimed happens and no output shows it: part of the message, and why."""


PLANNED_FROM = {("compute_inline", 3), ("reverse_compute_at", 4), ("reverse_compute_inline", 4)}
"""Primitives and requirements whose plan is made of what was refuted, the inverse of an access: it cannot be overruled.
Their counterexamples are tried out in `tests/unit/api/test_validation.py`."""


def forced(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleOp, ModuleOp, str]:
    """The program, what becomes of it when refutations are overruled, and the last of these."""
    refuse = CheckedStep.refuse
    overruled: list[str] = []

    def lenient(
        self: CheckedStep,
        requirement: int,
        violation: Violation | str,
        operation: Operation | None = None,
        subject: str = "",
    ) -> None:
        if isinstance(violation, str) or violation.validate is None:
            refuse(self, requirement, violation, operation, subject)
        overruled.append(violation.detail)
        return None

    sch = Schedule(weft.parse(refusal.program, "program.mlir"))
    refusal.prepare(sch)
    before = sch.mod.clone()
    monkeypatch.setattr(CheckedStep, "refuse", lenient)
    refusal.steps(sch)
    monkeypatch.undo()
    return before, sch.mod, overruled[0]


REFUTED = [
    refusal
    for refusal in (*LOOPS, *LOOP_SHAPES, *BLOCKS)
    if refusal.counterexample is not None
    and refusal.primitive != "split"
    and (refusal.primitive, refusal.requirement) not in PLANNED_FROM
]


@pytest.mark.parametrize("refusal", REFUTED, ids=[f"{r}-{n}" for n, r in enumerate(REFUTED)])
def test_what_is_refuted_goes_wrong(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, claim = forced(refusal, monkeypatch)
    try:
        verify_level(after, "tir")
    except weft.CompileError:
        return  # no program: instances are missed or run twice, or loops that run in parallel are not independent
    same = any(text in claim for text in SAME)
    assert (compare_modules(before, after, orders=ORDERS) is None) == same, claim


def test_most_of_them_give_other_results(monkeypatch: pytest.MonkeyPatch) -> None:
    differ = 0
    for refusal in REFUTED:
        before, after, _ = forced(refusal, monkeypatch)
        differ += compare_modules(before, after, orders=ORDERS) is not None
    assert differ >= 20
