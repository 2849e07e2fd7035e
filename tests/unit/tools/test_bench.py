"""`weft bench` on tiny sizes: what tables hold, what is refused, and that results are checked before they are timed.

Nothing here asserts a time.
"""

import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier, second_tier

from weft.driver.peaks import PeakMeter
from weft.runtime.aligned_arrays import ALIGNMENT, empty
from weft.support.errors import CompileError
from weft.support.target import Target
from weft.texpr.tensor import Tensor, placeholder
from weft.tools.weft_cli import execute
from weft_bench import child, ladder, ops, ops_command, peers
from weft_bench.arrays import random
from weft_bench.contender import Array, Contender, WrongResult, check
from weft_bench.ladder_report import bar
from weft_bench.ladder_steps import STEPS, Step
from weft_bench.ops_report import Row, ratio_table
from weft_bench.problem import NUMPY, ONNX, TORCH
from weft_bench.problems import problems
from weft_bench.product_rows import square
from weft_bench.rounds import Times, take_turns
from weft_bench.table import Table, duration

pytestmark = pytest.mark.usefixtures("gradients")

TINY = ["--rounds", "1", "--memory-mib", "1"]
ONE = Target("llvm", num_threads=1)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure here, so that what a test changes counts."""
    modules = {"ladder": ladder, "ops": ops}
    monkeypatch.setattr("weft_bench.ladder_command.events", lambda r: modules["ladder"].measure(r))
    monkeypatch.setattr("weft_bench.ops_command.events", lambda r: modules["ops"].measure(r))


def test_the_ladder_as_a_table_and_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ladder.md"
    assert execute(["bench", "ladder", "--size", "24", *TINY, "--save", str(file)]) == 0
    out = capsys.readouterr().out
    for column in ("time", "spread", "GFLOP/s", "of naive", "of peak", "of NumPy", "what is new"):
        assert column in out
    for name in (*(step.name for step in STEPS), "NumPy"):
        assert sum(line.startswith(f"{name} ") for line in out.splitlines()) == 2, name  # in the table, and a bar
    assert "1 thread: float32" in out
    assert "L2 (" in out and "triad" in out
    markdown = file.read_text()
    assert "| step | time | spread |" in markdown
    assert "| registers |" in markdown
    assert f"numpy {np.__version__}" in markdown


@pytest.mark.slow
def test_the_ladder_as_json(in_this_process: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "ladder", "--size", "8", "--threads", "2", *TINY, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["seconds"]) == [*(step.name for step in STEPS), "NumPy"]
    assert found["threads"] == found["peaks"]["threads"] == 2
    assert set(found["peaks"]["gflops"]) == {"float32", "float64"}


def test_a_step_is_shown_as_schedule_and_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "ladder", "--size", "64", "--show", "vectorize"]) == 0
    out = capsys.readouterr().out
    assert "sch.vectorize(" in out
    assert "T.vectorized(" in out


@pytest.mark.parametrize("size", first_tier([2, 33, 64], 33))
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_multiplies_matrices(step: Step, size: int) -> None:
    generator = np.random.default_rng(size)
    a, b, c = random(generator, (size, size)), random(generator, (size, size)), empty((size, size), "float32")
    library = ladder.build(ladder.scheduled(step, size, ONE).mod, ONE, default_schedule=False)
    library["matmul"](a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5)


def test_a_wrong_step_is_not_timed(in_this_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(step: Step, size: int, target: Target) -> ladder.Schedule:
        return ladder.Schedule(elementwise(size))

    monkeypatch.setattr(ladder, "scheduled", wrong)
    with pytest.raises(WrongResult, match="matmul 8: naive computed a wrong result: max abs error"):
        execute(["bench", "ladder", "--size", "8", *TINY])


def elementwise(size: int):
    """A program with the parameters of a matrix product that computes A * B element by element."""
    from weft import te

    a, b = te.placeholder((size, size), "float32", name="A"), te.placeholder((size, size), "float32", name="B")
    return te.create_func([a, b, te.compute((size, size), lambda i, j: a[i, j] * b[i, j], name="C")], name="matmul")


@pytest.mark.slow
def test_operators_as_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ops.md"
    words = ["bench", "ops", "--largest", "8", "--only", "matmul 8 int8,softmax", "--threads", "1,2", *TINY]
    assert execute([*words, "--save", str(file)]) == 0
    captured = capsys.readouterr()
    for column in ("work", "threads", "schedule", "spread", "rate", "of peak", NUMPY, TORCH, ONNX, "aim", "build, ms"):
        assert column in captured.out
    for row in ("matmul 8 int8 -> int32", "softmax 8x8"):
        assert sum(line.startswith(f"{row} ") for line in captured.out.splitlines()) == (
            6 if row.startswith("softmax") else 4
        ), row
    assert "1 thread: float32" in captured.out and "2 threads: float32" in captured.out
    assert "softmax 8x8, 2 threads" in captured.err
    assert "| softmax 8x8 | 2 | default |" in file.read_text()


@pytest.mark.slow
def test_every_row_computes_what_it_should(in_this_process: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "ops", "--largest", "9", "--threads", "1", *TINY, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in found["rows"]] == [row.name for row in problems((), 9)]
    assert [row["error"] for row in found["rows"]] == [None] * len(found["rows"])
    assert all("weft" in row["seconds"] for row in found["rows"])


@pytest.mark.slow
@pytest.mark.parametrize(("largest", "threads"), [second_tier(2, 1), (33, 2)])
def test_schedules_by_hand_compute_what_they_should(largest: int, threads: int) -> None:
    """At sizes that fill no tile, and that end inside of one; 9 is measured above."""
    target = Target("llvm", num_threads=threads)
    generator = np.random.default_rng(largest)
    for row in problems((), largest):
        if row.schedule is None:
            continue
        inputs = [random(generator, *spec) for spec in row.inputs]
        function = ops.weft_versions(row, target, inputs)[ops.BY_HAND]()
        check(row.name, {ops.BY_HAND: ops.weft_contender(function, inputs, row)}, row.expected(*inputs))


def test_schedules_by_hand_use_vectors_and_threads() -> None:
    rows = problems((), 64)
    by_default = [row.name for row in rows if row.schedule is None and not row.folds_constants]
    assert by_default[:1] == ["matmul 64 int8 -> int32"]
    for row in rows:
        if row.schedule is None:
            continue
        trace = str(ops.scheduled(row, ONE).trace)
        assert "sched.vectorize" in trace, row.name
        assert "sched.parallel" in trace or row.name.startswith("linear"), row.name


def test_the_table_of_the_issue() -> None:
    names = [row.name for row in problems()]
    assert names[:5] == [f"matmul {n}" for n in (128, 512, 1023, 1024, 2048)]
    assert names[5:19] == [
        *("matmul 1024 A^T", "matmul 1024 B^T", "matmul 1024 float64", "matmul 1024 int8 -> int32"),
        *("bmm 16x128^3 + relu", "linear 1x784x128 + relu", "matmul 1024, any shape"),
        *("conv2d 3->64 224x224 3x3", "conv2d 64->64 56x56 3x3", "depthwise 32 112x112 3x3"),
        *("softmax 1024x1024", "layernorm 1024x1024", "add + relu 1048576", "row sum 4096x4096"),
    ]
    for name in (
        *("conv 1024->2048 14x14 1x1/2, packed", "conv 64->64 56x56 3x3 batch 4, packed"),
        *("depthwise 144 56x56 5x5/2, packed", "product 128x768x3072, packed"),
        *("product 384x768x3072 + bias + gelu, packed", "attention 12x384x64", "NCHW -> NHWC 1x64x112x112"),
        *("sin 1048576", "softmax 12x384x384", "cumsum 1024x1024"),
    ):
        assert name in names[19:]


def test_a_wrong_row_is_an_error_and_the_others_go_on(
    in_this_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def planted(only: object, largest: object) -> list[object]:
        good = square(4)

        def program() -> list[Tensor]:
            a, b, _ = good.program()
            return [a, b, placeholder((4, 4), "float32", name="D")]

        def transposed(a: Array, b: Array) -> Array:
            return good.expected(a, b).T.copy()

        return [dataclasses.replace(good, name="bad", expected=transposed), good]

    monkeypatch.setattr(ops, "problems", planted)
    monkeypatch.setattr(ops_command, "problems", planted)
    assert execute(["bench", "ops", "--threads", "1", *TINY]) == 1
    out = capsys.readouterr().out
    assert "failed: bad, 1 threads: bad: weft computed a wrong result: max abs error" in out
    assert any(line.startswith("bad ") and "failed" in line for line in out.splitlines())
    assert any(line.startswith("matmul 4 ") and "default" in line for line in out.splitlines())


def test_a_measuring_process_that_dies_leaves_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        first, row, *_ = ops.measure(request)
        yield from (first, row)
        raise CompileError("the process that measures ended with status -11")

    monkeypatch.setattr(ops_command, "events", dies)
    assert execute(["bench", "ops", "--largest", "4", "--only", "linear,add", "--threads", "1", *TINY]) == 1
    out = capsys.readouterr().out
    assert any(line.startswith("linear 1x4x4 + relu ") for line in out.splitlines())
    assert "failed: 1 threads: the process that measures ended with status -11" in out


def test_peers_that_are_missing_are_named(
    in_this_process: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)
    assert execute(["bench", "ops", "--largest", "4", "--only", "softmax", "--threads", "1", *TINY]) == 0
    out = capsys.readouterr().out
    assert "left out: PyTorch, no package torch" in out
    assert "left out: onnxruntime, no package onnxruntime or onnx" in out
    assert "1.80 of PyTorch: not all here" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ops", "--only", "matmil"], "no row of the benchmark has 'matmil' in its name"),
        (["ladder", "--show", "vectorise"], "the ladder has no step 'vectorise', did you mean 'vectorize'"),
    ],
)
def test_unknown_names_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        execute(["bench", *words])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ladder", "--size", "0"], "argument --size: '0' is no number from 2 on"),
        (["ops", "--threads", "1,x"], "argument --threads: 'x' is no number from 1 on"),
        (["ops", "--largest", "1"], "argument --largest: '1' is no number from 2 on"),
        (["ops", "--rounds", "-3"], "argument --rounds: '-3' is no number from 1 on"),
        (["stairs"], "invalid choice: 'stairs'"),
        ([], "the following arguments are required: BENCHMARK"),
    ],
)
def test_bad_arguments(words: list[str], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        execute(["bench", *words])
    assert message in str(caught.value)


def test_pictures_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft_bench.ladder_report.find_spec", lambda name: None)
    with pytest.raises(CompileError, match=r"--plot needs matplotlib: pip install 'weft\[plot\]'"):
        execute(["bench", "ladder", "--plot", "ladder.png"])


@pytest.mark.slow
def test_a_picture(in_this_process: None, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "ladder.png"
    assert execute(["bench", "ladder", "--size", "8", *TINY, "--plot", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tells_what_it_knows(end: signal.Signals) -> None:
    words = [sys.executable, "-m", "weft.tools.weft_cli", "bench", "ops", "--largest", "64", "--rounds", "500"]
    words += ["--memory-mib", "1", "--threads", "1", "--only", "linear,softmax", "--json"]
    # Shells start what runs in the background with SIGINT ignored.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heard)
    assert process.stderr is not None and process.stdout is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if "linear" in line:
            break
    time.sleep(0.1)
    process.send_signal(end)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130, lines
    found = json.loads(out)
    assert [row["name"] for row in found["rows"]] == ["linear 1x64x64 + relu"]
    assert found["interrupted"]


def test_a_child_that_fails_says_why() -> None:
    request = {"what": "ops", "threads": 1, "only": ["nothing"], "largest": 4, "rounds": 1, "memory_bytes": 1 << 20}
    with pytest.raises(CompileError, match="no row of the benchmark has 'nothing' in its name"):
        list(child.events(request))


def test_a_child_that_dies_is_noticed() -> None:
    with pytest.raises(CompileError, match="the process that measures ended with status 1"):
        list(child.events({"what": "nothing", "threads": 1}))


def test_turns_alternate_and_long_calls_have_few() -> None:
    order: list[str] = []

    def contender(name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            order.append(name)
            time.sleep(seconds)

        return call

    calls = {"a": contender("a", 0.004), "b": contender("b", 0.004)}
    *_, times = take_turns(calls, rounds=3, threads=1)
    assert [len(each.seconds) for each in times.values()] == [3, 3]
    # One call each to find its length; then rounds in any order, with one call in each turn that is not timed.
    assert order[:2] == ["a", "b"]
    assert all(sorted(order[at : at + 4]) == [*"aabb"] for at in range(2, len(order), 4))
    assert all(first == second for first, second in zip(order[2::2], order[3::2], strict=True))
    *_, times = take_turns({"slow": contender("slow", 0.02)}, rounds=9, threads=1, budget=0.01)
    assert len(times["slow"].seconds) == 2
    with pytest.raises(ValueError, match="at least one round, got 0"):
        next(take_turns(calls, rounds=0, threads=1))


def test_times_and_their_spread() -> None:
    times = Times((2.0, 1.0, 4.0))
    assert (times.min, times.median, times.spread) == (1.0, 2.0, 2.0)


def test_aims_are_of_the_best_peer() -> None:
    (row,) = problems(["matmul 1024 A^T"])
    times = {"weft": Times((1.0,)), NUMPY: Times((3.0,)), TORCH: Times((1.5,))}
    assert Row(row, 1, times).verdicts() == ["1.00 of NumPy and PyTorch: yes, 1.50"]
    assert Row(row, 1, {**times, TORCH: Times((0.5,))}).verdicts() == ["1.00 of NumPy and PyTorch: no, 0.50"]
    assert Row(row, 4, times).verdicts() == []


def test_the_default_is_compared_with_a_schedule_by_hand() -> None:
    (row,) = problems(["softmax 1024"])
    times = {ops.DEFAULT: Times((2.0,)), ops.BY_HAND: Times((1.0,))}
    default, by_hand = ratio_table([Row(row, 1, times)], {}).rows
    assert default[-1] == "0.85 of by hand: no, 0.50"
    assert "by hand" not in by_hand[-1]
    faster = Row(row, 1, {**times, ops.DEFAULT: Times((0.8,))})
    assert ratio_table([faster], {}).rows[0][-1].endswith("0.85 of by hand: yes, 1.25")
    assert faster.as_json()["of by hand"] == 1.25
    assert Row(row, 1, {ops.DEFAULT: Times((2.0,))}).of_by_hand is None


def test_checks_see_shapes_types_and_values() -> None:
    expected = np.ones((2, 3), np.float32)

    def contender(result: Array) -> dict[str, Contender]:
        return {"it": Contender(lambda: None, lambda: result)}

    check("ones", contender(expected.copy()), expected)
    with pytest.raises(WrongResult, match=r"ones: it computed float32\[3, 2\], expected float32\[2, 3\]"):
        check("ones", contender(expected.T), expected)
    with pytest.raises(WrongResult, match="ones: it computed float64"):
        check("ones", contender(expected.astype(np.float64)), expected)
    with pytest.raises(WrongResult, match=r"got nan, expected 1\.0"):
        check("ones", contender(np.full((2, 3), np.nan, np.float32)), expected)


@pytest.mark.parametrize("threads", first_tier([1, 2], 2))
def test_peaks_are_measured_by_kernels_whose_results_are_checked(threads: int) -> None:
    meter = PeakMeter(Target("llvm", num_threads=threads), memory_bytes=1 << 20)
    meter.measure_memory(1)
    meter.measure_arithmetic(1)
    first = meter.peaks
    meter.measure_arithmetic(1)
    peaks = meter.peaks
    assert peaks.gflops.keys() == {"float32", "float64"}
    assert all(peaks.gflops[dtype] >= rate > 0 for dtype, rate in first.gflops.items())
    assert [(b.kind, b.place) for b in peaks.bandwidths] == [
        (kind, place) for place in ("memory", "L2") for kind in ("read", "copy", "triad")
    ]
    assert type(peaks).from_json(json.loads(json.dumps(peaks.as_json()))) == peaks


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "x86-64"])
def test_chains_of_the_peak_stay_in_registers(cpu: str) -> None:
    """Vector arithmetic between registers only, in the loop whose rate is called the peak."""
    from weft.backends.llvm.compile import assembly
    from weft.driver.peaks import chains_of, multiply_adds

    target = Target("llvm", cpu=cpu, triple="x86_64-unknown-linux-gnu", num_threads=1)
    library = ladder.build(multiply_adds((1, chains_of(target), target.vector_bytes // 4), 64, "float32"), target)
    text = assembly(library.get_source("ll"), target)
    loop = [line.strip() for line in text.splitlines() if "fmadd" in line or "mulps" in line]
    assert loop
    assert [line for line in loop if "(%r" in line] == []


def test_arrays_start_at_cache_lines_and_hold_no_result() -> None:
    for dtype in ("float32", "float64", "int8"):
        array = empty((3, 5), dtype)
        assert array.ctypes.data % ALIGNMENT == 0
        assert np.isnan(array).all() if dtype != "int8" else (array == -128).all()
        filled = random(np.random.default_rng(0), (64, 64), dtype)
        assert filled.ctypes.data % ALIGNMENT == 0 and filled.dtype == dtype
        assert filled.min() < 0 < filled.max()


def test_large_arrays_have_memory_of_their_own() -> None:
    arrays = [empty((1024, 600), "float32") for _ in range(3)]
    assert all(array.ctypes.data % (2 << 20) == 0 and array.flags.writeable for array in arrays)
    assert all(np.isnan(array).all() for array in arrays)
    arrays[0][:] = 1
    assert not np.may_share_memory(arrays[0], arrays[1])


def test_tables() -> None:
    table = Table(("name", "n"))
    table.add("a", "10")
    table.add("longer", "2")
    assert table.text().splitlines() == ["name     n", "------  --", "a       10", "longer   2"]
    assert table.markdown().splitlines() == ["| name | n |", "| --- | ---: |", "| a | 10 |", "| longer | 2 |"]
    assert [duration(s) for s in (2.5, 0.25, 0.00025, 2.5e-7)] == ["2.5 s", "250 ms", "250 us", "0.25 us"]
    assert (bar(0.5, 4), bar(1.0, 4), bar(0.0, 4)) == ("██", "████", "")
    assert bar(0.16, 10) == "█▋"
