"""Traces for Perfetto: valid trace events, whose intervals nest, of builds and of runs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft import te
from weft.driver import kernels
from weft.driver.pipeline import ModelKernel
from weft.support.stopwatch import Span, Stopwatch
from weft.tools.weft_cli import execute

EXAMPLES = Path(__file__).parents[3] / "examples"


def events_of(file: Path) -> list[dict[str, Any]]:
    """The events of a file, checked against the trace-event format: complete events nest on each thread."""
    trace = json.loads(file.read_text())
    open_until: dict[tuple[int, int], list[float]] = defaultdict(list)
    named = {event["pid"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "tid", "name"} <= event.keys() and event["pid"] in named
        if event["ph"] == "M":
            assert event["args"]["name"]
            continue
        assert event["ph"] == "X" and event["ts"] >= 0.0 and event["dur"] >= 0.0 and event["cat"]
        around = open_until[event["pid"], event["tid"]]
        end = event["ts"] + event["dur"]
        while around and around[-1] <= event["ts"]:
            around.pop()
        assert not around or end <= around[-1] + 0.01, event  # times are rounded to nanoseconds
        around.append(end)
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def model() -> weft.Library:
    bb = G.BlockBuilder()
    x, w = G.var("x", (64, 64)), G.const(np.ones((64, 64), np.float32))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(G.softmax(G.matmul(x, w), axis=1))
        bb.emit_func_output(out)
    return weft.build(bb.get(), cache=False)


def test_a_model(tmp_path: Path) -> None:
    library, x = model(), np.ones((64, 64), np.float32)
    library.write_trace(tmp_path / "trace.json", "main", x, runs=2)
    events = events_of(tmp_path / "trace.json")
    build = [event["name"] for event in events if event["pid"] == 1]
    assert {"graph and te to tir", "graph-fuse", "LLVM: optimise", "tir-lower-blocks"} <= set(build)
    titles = {row.title for row in library.report().rows}
    assert titles <= set(build)  # the compilation of each kernel, with its passes
    calls = [event for event in events if event["cat"] == "call"]
    assert [event["name"] for event in calls] == ["@main", "@main"]
    ran = [event for event in events if event["cat"] == "kernel"]
    assert [event["name"] for event in ran] == 2 * [row.title for row in library.report().rows]
    assert all(event["args"]["operators"] for event in ran)


def test_parallel_loops_are_traced_by_thread(tmp_path: Path) -> None:
    """Each chunk belongs to a kernel or call on the calling thread, and their number is that of the threads."""
    A = te.placeholder((64, 1024), "float32", name="A")
    module = te.create_func([A, te.compute((64, 1024), lambda i, j: te.exp(A[i, j]), name="B")])
    sch = weft.Schedule(module)
    sch.parallel(sch.get_loops("B")[0])
    library = weft.build(sch.mod, target="llvm -num-threads=3")
    a = np.ones((64, 1024), np.float32)
    library.write_trace(tmp_path / "trace.json", "main", a, np.empty_like(a), runs=4)
    events = events_of(tmp_path / "trace.json")
    calls = [event for event in events if event["cat"] == "call"]
    chunks = [event for event in events if event["cat"] == "chunk"]
    assert len(calls) == 4 and {event["name"] for event in chunks} == {"@main"}
    for call in calls:
        inside = [c for c in chunks if call["ts"] <= c["ts"] and c["ts"] + c["dur"] <= call["ts"] + call["dur"] + 0.01]
        assert len(inside) == 3


@pytest.mark.slow
def test_helper_processes_are_threads_of_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernels, "intrinsics", dict)  # other tests register them
    monkeypatch.setattr(kernels, "names_with_rules", tuple)
    monkeypatch.setattr(kernels, "WORTH_A_PROCESS", 1e-9)
    monkeypatch.setattr(kernels, "host_cores", lambda: 2)
    compile_here = kernels._Compilation._compile

    def waiting(self: kernels._Compilation, kernel: ModelKernel) -> None:
        """Compile the first kernel, then wait for the other process."""
        compile_here(self, kernel)
        self._get_help(1.0)
        for thread in self._threads:
            thread.join()

    monkeypatch.setattr(kernels._Compilation, "_compile", waiting)
    library = model()
    library.write_trace(tmp_path / "trace.json", "main", np.ones((64, 64), np.float32), runs=1)
    helped = [event for event in events_of(tmp_path / "trace.json") if event["pid"] == 1 and event["tid"] == 1]
    assert helped and helped[0]["name"] in {row.title for row in library.report().rows}
    assert any(event["name"] == "tir-lower-blocks" for event in helped)


def test_programs_in_c_are_traced_as_a_whole(tmp_path: Path) -> None:
    A = te.placeholder((8,), "float32", name="A")
    library = weft.build(te.create_func([A, te.compute((8,), lambda i: A[i] + 1.0, name="B")]), target="c")
    a = np.ones(8, np.float32)
    library.write_trace(tmp_path / "trace.json", "main", a, np.empty_like(a), runs=2)
    assert [event["name"] for event in events_of(tmp_path / "trace.json") if event["pid"] == 2] == ["@main", "@main"]


def test_spans_and_stages() -> None:
    watch = Stopwatch()
    with watch.measure("stage"), watch.span("pass"):
        pass
    assert [span.name for span in watch.spans] == ["pass", "stage"] and list(watch.milliseconds) == ["stage"]
    watch.add_spans([Span("kernel", 1.0, 2.0)], 3)
    assert watch.spans[-1] == Span("kernel", 1.0, 2.0, 3)


def test_weft_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program without kernels is measured as one, and traced."""
    file = tmp_path / "trace.json"
    report = tmp_path / "report.json"
    words = ["profile", str(EXAMPLES / "mm_relu.mlir"), "--time", "--trace", str(file), "--json", str(report)]
    assert execute(words) == 0
    shown = capsys.readouterr().out
    assert "@mm_relu: 1 kernel" in shown and f"trace     {file}, for https://ui.perfetto.dev" in shown
    assert any(event["name"] == "@mm_relu" for event in events_of(file))
    found = json.loads(report.read_text())
    assert {"median", "p90", "p99", "min", "calls_per_second"} <= found["time"].keys()
    assert found["time"]["min"] <= found["time"]["median"] <= found["time"]["p90"] <= found["time"]["p99"]
    assert found["kernels"][0]["flops"] == 2 * 128**3 + 128 * 128
    for line in shown.splitlines():
        assert len(line) <= 80 or line.startswith(("mm_relu(", "trace "))


def test_what_is_refused(tmp_path: Path) -> None:
    library = model()
    with pytest.raises(ValueError, match="write_trace: runs: expected at least 1, got 0"):
        library.write_trace(tmp_path / "t.json", "main", np.ones((64, 64), np.float32), runs=0)
    with pytest.raises(weft.CompileError, match="no function 'mian', did you mean 'main'"):
        library.write_trace(tmp_path / "t.json", "mian")
    with pytest.raises(weft.CompileError, match=r"no/t\.json"):
        execute(["profile", str(EXAMPLES / "mm_relu.mlir"), "--trace", str(tmp_path / "no" / "t.json")])
