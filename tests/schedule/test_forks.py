"""`Recorder.fork`: two schedules that go on from the same steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.ir import SSAValue

import weft
from weft.schedule.recording import IntHandle, LoopHandle
from weft.schedule.schedule import Schedule
from weft.schedule.traces import run_python
from weft.support.errors import CompileError

MM_RELU = Path(__file__).parents[2] / "examples" / "mm_relu.mlir"


def test_forks_are_independent() -> None:
    first = Schedule(weft.parse_file(MM_RELU))
    i, j, _ = first.get_loops("Y")
    i0, i1 = first.split(i, [None, 4])
    t0, t1 = first.sample_perfect_tile(j, 2)
    before, steps = str(first.mod), str(first.trace)

    handles: dict[SSAValue, SSAValue] = {}
    second = first.fork(handles)
    assert str(second.mod) == before
    assert str(second.trace) == steps
    assert second.mod is not first.mod
    second.vectorize(LoopHandle(handles[i1.value]))
    assert second.get(IntHandle(handles[t0.value])) == first.get(t0)
    second.split(LoopHandle(handles[j.value]), [IntHandle(handles[t.value]) for t in (t0, t1)])
    assert (str(first.mod), str(first.trace)) == (before, steps)
    with pytest.raises(CompileError, match="the handle belongs to another schedule"):
        second.unroll(i0)
    with pytest.raises(CompileError, match=r"expired handle %i\b"):
        second.unroll(LoopHandle(handles[i.value]))

    replayed = Schedule(first.original)
    replayed.replay(second.trace)
    assert str(replayed.mod) == str(second.mod)
    first.unroll(i1)
    assert "unrolled" in str(first.mod)
    assert "unrolled" not in str(second.mod)


def test_handles_by_path() -> None:
    schedule = Schedule(weft.parse_file(MM_RELU))
    i, j, k = schedule.get_loops("Y")
    handles: dict[str, object] = {"Y.i": i, "Y[1]": j}
    run_python(schedule, "a, b = sch.split(Y.i, [None, 2])\nsch.vectorize(Y[1])", handles=handles)
    assert set(handles) == {"Y.i", "Y[1]", "a", "b"}
    with pytest.raises(CompileError, match=r"unknown handle 'Y\.k'"):
        run_python(schedule, "sch.unroll(Y.k)", handles=handles)
    assert k.value.name_hint == "k"
