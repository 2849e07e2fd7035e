"""Every requirement of every schedule primitive, broken: the message, the counterexample, and IR left as it was."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from atomic_refusals import ATOMICS
from block_refusals import BLOCKS
from loop_refusals import LOOPS, PLAIN
from loop_shape_refusals import LOOP_SHAPES
from refusal import Refusal

import weft
from weft import Schedule, ScheduleError
from weft.passes.schedule.primitive import primitive_class

REFUSALS = [*LOOPS, *LOOP_SHAPES, *BLOCKS, *ATOMICS]
NO_PROGRAM_BREAKS = {("reverse_compute_inline", 8)}
"""The consumer of a temporary writes one element where its producer wrote one: loops stay as independent as before."""


@pytest.mark.parametrize("refusal", REFUSALS, ids=[f"{r}-{n}" for n, r in enumerate(REFUSALS)])
def test_refusal(refusal: Refusal):
    sch = Schedule(weft.parse(refusal.program, "program.mlir"))
    refusal.prepare(sch)
    before, trace = sch.mod.clone(), str(sch.trace)
    with pytest.raises(ScheduleError) as caught:
        refusal.steps(sch)
    error = caught.value
    text = str(error)
    summary = primitive_class(refusal.primitive).requirements()[refusal.requirement - 1]
    assert error.primitive.startswith(f"{refusal.primitive}(")
    assert error.requirement == refusal.requirement, text
    assert f"requirement {refusal.requirement}, {summary}" in text
    assert re.search(refusal.message, text), text
    assert error.violation.kind == ("refuted" if refusal.proved else "not proved")
    assert ("not proved: " in text) == (not refusal.proved)
    if refusal.counterexample is ...:
        assert error.violation.counterexample
    else:
        assert error.violation.counterexample == (refusal.counterexample or {})
    assert error.location is not None and "program.mlir:" in text
    weft.assert_structural_equal(sch.mod, before)
    assert str(sch.mod) == str(before)
    added = str(sch.trace).removeprefix(trace.removesuffix("}"))
    assert not any(f"sched.{refusal.primitive} " in line for line in added.splitlines())


@pytest.mark.parametrize("name", sorted({refusal.primitive for refusal in REFUSALS}))
def test_every_requirement_is_stated_and_tested(name: str):
    primitive = primitive_class(name)
    numbers = range(1, len(primitive.requirements()) + 1)
    tested = Counter(refusal.requirement for refusal in REFUSALS if refusal.primitive == name)
    untested = {number for number in numbers if not tested[number]}
    assert {(name, number) for number in untested} == {pair for pair in NO_PROGRAM_BREAKS if pair[0] == name}


def test_a_program_whose_loops_miss_an_instance_is_no_input():
    """127 iterations over an axis of 128, and twice over one place that accumulates."""
    text = PLAIN.replace("tir.for %i in 8", "tir.for %i in 7")
    with pytest.raises(weft.CompileError, match=r"iterator %vi: spatial<8> is bound to values in 0..6"):
        weft.parse(text)
    holes = PLAIN.replace("[%i, %j]", "[%i floordiv 2 * 2, %j]")
    with pytest.raises(weft.CompileError, match=r"the loops do not cover the domain|do not cover it"):
        weft.parse(holes)


def test_the_loop_is_underlined_and_what_is_legal_is_said():
    sch = Schedule(weft.parse(PLAIN, "plain.mlir"))
    with pytest.raises(ScheduleError) as caught:
        sch.split(sch.get_loops("X")[1], [2, 3])
    assert str(caught.value) == (
        "error: split(%j, [2, 3]): requirement 3, the factors cover the extent [split.3]\n"
        "  factors [2, 3] have product 6, but the loop runs 8 times: iteration 6 would be lost\n"
        "  at plain.mlir:4:21: tir.for %i in 8 { tir.for %j in 8 {\n"
        "                                        ^^^^^^^\n"
        "  legal: factors whose product is at least 8, or one of them inferred (None; 0 in IR)"
    )
