"""Transform scripts leave the results of their payloads as they are: as schedules of weft, in weft's and MLIR's
interpreters of scripts, and as schedules that become scripts again, in MLIR."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from transform_scripts import (
    SCRIPTS,
    by_interpreter,
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
from weft.driver.traces import parse_trace
from weft.schedule.traces import decisions_of
from weft.schedule.transform.convert_transform_to_sched import ConvertTransformToSchedPass
from weft.schedule.transform.scripts import ScriptProgram
from weft.tuning.space import Candidate, Refused, Space

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


SEARCHED = """module attributes {transform.with_named_sequence} {
  func.func @matmul(%A: tensor<16x32xf32>, %B: tensor<32x24xf32>) -> tensor<16x24xf32> {
    %e = tensor.empty() : tensor<16x24xf32>
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
    %C = linalg.matmul ins(%A, %B : tensor<16x32xf32>, tensor<32x24xf32>) outs(%f : tensor<16x24xf32>)
      -> tensor<16x24xf32>
    return %C : tensor<16x24xf32>
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %mm = transform.structured.match ops{["linalg.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %p = transform.tune.knob<"size"> options = [4, 8, 12] -> !transform.param<i64>
    transform.tune.alternatives<"way"> {
      %t, %l:2 = transform.structured.tile_using_for %mm tile_sizes [4, %p] :
        (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    }, {
      %t, %l = transform.structured.tile_using_forall %mm tile_sizes [0, %p] :
        (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    }, {
      %t, %l = transform.structured.tile_using_forall %mm tile_sizes [0, 0, %p] :
        (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    }
    transform.yield
  }
}"""


def test_a_search_decides_knobs_and_alternatives() -> None:
    """All combinations are schedules of the script, except those of the parallel reduction, which are refused."""
    program = ScriptProgram(weft.parse(SEARCHED))
    payload = program.payload()
    space, random = Space(payload, program, "script"), Random(0)
    found = []
    while not space.is_exhausted:
        found.append(space.run(random))
    candidates = [one for one in found if isinstance(one, Candidate)]
    refused = [one for one in found if isinstance(one, Refused)]
    assert sorted(one.choices for one in candidates) == [(knob, way) for knob in range(3) for way in range(2)]
    assert len(refused) == 3
    assert all("the iterations are independent" in str(one.reason) for one in refused)
    name, arrays, expected = unscheduled(SEARCHED)
    for one in candidates:
        schedule = weft.Schedule(payload)
        schedule.replay(parse_trace(one.trace), one.decisions)
        _compare(by_interpreter(schedule.mod, name, arrays), expected, 1)


def test_open_choices_are_failures_without_a_search() -> None:
    with pytest.raises(weft.CompileError, match="no region of 'way' is selected: give selected_region"):
        ConvertTransformToSchedPass().apply(Context(), weft.parse(SEARCHED))


@pytest.mark.slow
def test_tune_searches_scripts(tmp_path: Path) -> None:
    """The database has all schedules of the script; a build takes the fastest, or without it the one of the script."""
    path = tmp_path / "tune.db"
    tuned = weft.tune(SEARCHED, trials=16, database=path, target="llvm -num-threads=1")
    assert tuned.tasks[0].is_exhausted
    a, b = np.random.default_rng(0).random((16, 32), "f4"), np.random.default_rng(1).random((32, 24), "f4")
    script = next(script for script in SCRIPTS if script.stem == "knob").read_text()
    for text, options in ((SEARCHED, {"database": path, "require_tuned": True}), (script, {})):
        c = np.zeros((16, 24), "f4")
        weft.build(text, target="llvm -num-threads=1", **options)["matmul"](a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def _compare(found: list[np.ndarray], expected: list[np.ndarray], results: int) -> None:
    for one, other in zip(found[-results:], expected[-results:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
