"""Where the time of a compilation goes: which stages are named, and that they add up."""

from pathlib import Path

import pytest

import weft
from weft.support.stopwatch import Stopwatch
from weft.tools.weft_cli import execute

EXAMPLE = Path(__file__).parents[3] / "examples" / "mm_relu.mlir"


def test_stopwatches_sum_by_stage_in_order() -> None:
    watch = Stopwatch()
    watch.add("b", 0.25)
    watch.add("a", 0.5)
    watch.add("b", 0.25)
    assert list(watch.milliseconds.items()) == [("b", 500.0), ("a", 500.0)]
    assert watch.total == 1000.0
    assert str(watch).splitlines() == [
        "stage          ms   part",
        "b         500.000    50%",
        "a         500.000    50%",
        "total    1000.000",
    ]


def test_laps_leave_out_what_is_no_stage() -> None:
    watch = Stopwatch()
    lap = watch.laps()
    lap(None)
    lap("a")
    lap("a")
    assert list(watch.milliseconds) == ["a"]


def test_a_stage_that_fails_is_counted() -> None:
    watch = Stopwatch()
    with pytest.raises(ZeroDivisionError), watch.measure("a"):
        _ = 1 // 0
    assert list(watch.milliseconds) == ["a"]


def test_libraries_know_what_each_stage_took() -> None:
    stages = list(weft.build(weft.parse_file(EXAMPLE)).timing.milliseconds)
    expected = [
        *("copy", "graph and te to tir", "schedule", "check of tir", "tir-place-buffers", "tir-flatten"),
        *("tir-lower-vectorized", "low-canonicalize", "LLVM IR", "LLVM: parse", "LLVM: verify", "LLVM: optimise"),
        *("LLVM: code generation", "link", "entries for Python"),
    ]
    assert [stage for stage in stages if stage in expected] == expected
    unchecked = weft.build(weft.parse_file(EXAMPLE), verify=False).timing.milliseconds
    assert "check of tir" not in unchecked


@pytest.mark.parametrize("command", ["run", "build"])
def test_commands_show_the_table(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ["-o", str(tmp_path / "f.o")] if command == "build" else []
    assert execute([command, str(EXAMPLE), *output, "--timing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.split() == ["stage", "ms", "part"])
    names = [line.split("  ")[0] for line in lines[start + 1 :]]
    assert names[-1] == "total"
    assert {"schedule", "tir-flatten", "LLVM IR", "LLVM: optimise"} <= set(names)
