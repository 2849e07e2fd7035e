"""Transform scripts leave the results of their payloads as they are: as schedules of weft, in weft's and MLIR's
interpreters of scripts, and as schedules that become scripts again, in MLIR."""

from pathlib import Path

import numpy as np
import pytest
from transform_scripts import (
    SCRIPTS,
    by_mlir,
    payload_by_mlir,
    payload_by_weft,
    result_count,
    scheduled,
    script_of_schedule,
    unscheduled,
)
from upstream_tools import needs_mlir
from xdsl.context import Context

import weft
from weft.dialects import sched
from weft.schedule.traces import decisions_of
from weft.schedule.transform.convert_transform_to_sched import ConvertTransformToSchedPass

ALL = [pytest.param(script, id=script.stem) for script in SCRIPTS]


@pytest.mark.slow
@pytest.mark.parametrize("script", ALL)
def test_schedule(script: Path) -> None:
    text = script.read_text()
    name, arrays, expected = unscheduled(text)
    np.testing.assert_allclose(
        np.concatenate([array.ravel() for array in scheduled(text, name, arrays)]),
        np.concatenate([array.ravel() for array in expected]),
        rtol=1e-5,
        atol=1e-5,
    )


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("script", ALL)
@pytest.mark.parametrize("payload", [payload_by_weft, payload_by_mlir])
def test_payload(script: Path, payload: object) -> None:
    assert callable(payload)
    text = script.read_text()
    name, arrays, expected = unscheduled(text)
    _compare(by_mlir(payload(text), name, arrays), expected, result_count(text))


@needs_mlir
@pytest.mark.slow
@pytest.mark.parametrize("script", ALL)
def test_schedule_as_script(script: Path) -> None:
    text = script.read_text()
    written = script_of_schedule(text)
    if written is None:
        pytest.skip("a step has no form in the transform dialect")
    name, arrays, expected = unscheduled(text)
    _compare(by_mlir(payload_by_mlir(written), name, arrays), expected, result_count(text))


def test_a_search_decides_knobs() -> None:
    """The schedule of a script with a knob is a space: each option is a decision of its sampling step."""
    text = next(script for script in SCRIPTS if script.stem == "knob").read_text()
    module = weft.parse(text)
    ConvertTransformToSchedPass().apply(Context(), module)
    (trace,) = [op for op in module.body.block.ops if isinstance(op, sched.FuncOp)]
    trace.detach()
    assert decisions_of(trace) == [1]
    for decision, tiles in enumerate((6, 3, 2)):
        schedule = weft.Schedule(module)
        schedule.replay(trace, [decision])
        assert f"tir.for %n0 in {tiles} " in str(schedule.mod)


def _compare(found: list[np.ndarray], expected: list[np.ndarray], results: int) -> None:
    for one, other in zip(found[-results:], expected[-results:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
