"""What reports hold: stages, schedules step by step, buffers, kernels, and the trials of searches."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from shown_programs import FUNCTION, GRAPH, SCHEDULE, TARGET, make_database, report_of, split_by

import weft
from weft.runtime.kernel_report import KernelRow, MachinePeaks
from weft.support.build_options import BuildOptions
from weft.support.target import Target
from weft.tools.show.lowering import program_report
from weft.tools.show.programs import read_program, with_schedule
from weft.tools.show.report import ProgramReport, Roofline
from weft.tools.show.roofline import measured
from weft.tools.show.searches import search_report
from weft.tools.show.tables import attainable, intensity, kernel_table, stage_table, task_table, time_text


@pytest.fixture(scope="module")
def scheduled() -> ProgramReport:
    return report_of(FUNCTION + SCHEDULE)


@pytest.fixture(scope="module")
def graph() -> ProgramReport:
    return report_of(GRAPH)


def test_the_ir_after_each_pass(scheduled: ProgramReport) -> None:
    names = [stage.name for stage in scheduled.stages]
    assert names[:3] == ["input", "schedule", "tir-place-buffers"] and names[-1] == "LLVM IR"
    assert names.index("tir-lower-blocks") < names.index("tir-flatten") < names.index("low-canonicalize")
    first, after = scheduled.stages[0], scheduled.stages[names.index("tir-lower-blocks")]
    assert [name for name, _ in first.parts] == ["@add_relu", "@schedule"]
    assert "tir.block" in first.parts[0][1]
    ((name, text),) = after.parts
    assert name == "@add_relu" and "tir.block" not in text
    assert after.summary == "Replace every `tir.block` by its body"
    assert "define" in scheduled.stages[-1].parts[0][1]
    assert scheduled.failure == ""


def test_a_schedule_step_by_step(scheduled: ProgramReport) -> None:
    (schedule,) = scheduled.schedules
    assert (schedule.title, schedule.origin) == ("@add_relu", "in the file")
    assert [position.name for position in schedule.positions] == ["as written", "split", "compute_at", "vectorize"]
    assert schedule.positions[1].calls == (
        'b = sch.get_block("B", func_name="add_relu")',
        "i, j = sch.get_loops(b)",
        "j0, j1 = sch.split(j, factors=[None, 8])",
    )
    (written,), (done,) = schedule.positions[0].trees, schedule.positions[-1].trees
    assert "loop j in 32" in str(written) and "loop j1 in 8  vectorized" in str(done)
    assert [tree for tree in scheduled.trees if tree.kind == "function"] == [done]
    assert "sch.vectorize(j1)" in schedule.python and "sched.vectorize" in schedule.ir


def test_buffers_of_each_step(scheduled: ProgramReport) -> None:
    written, *_, done = scheduled.schedules[0].positions
    a, b, y = written.buffers
    size = 64 * 32 * 4
    assert (a.name, a.type, a.place, a.size, a.loaded, a.stored) == ("A", "f32[64, 32]", "argument", size, size, 0)
    assert (b.name, b.loaded, b.stored) == ("B", 0, size)
    assert (y.name, y.place, y.loaded, y.stored) == ("Y", "temporary", size, size)
    assert a.from_caches == (size, size, size)
    assert [row.name for row in done.buffers] == ["A", "B", "Y"]


def test_an_init_stores_once() -> None:
    text = """
    func.func @sum(%A: memref<4x8xf32>, %S: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      tir.for %i in 4 { tir.for %k in 8 {
        tir.block "S" iters(%vi: spatial<4>, %vk: reduce<8>) = [%i, %k] {
          tir.init { memref.store %zero, %S[%vi] : memref<4xf32> }
          %s = memref.load %S[%vi] : memref<4xf32>
          %a = memref.load %A[%vi, %vk] : memref<4x8xf32>
          %t = arith.addf %s, %a : f32
          memref.store %t, %S[%vi] : memref<4xf32>
        }
      } }
      func.return
    }
    """
    schedule = 'sched.func @s { %b = sched.get_block "S" : block %i, %k = sched.get_loops %b : loop, loop\n'
    report = report_of(f"{text}{schedule} sched.unroll %k }}")
    _, sums = report.schedules[0].positions[0].buffers
    assert (sums.loaded, sums.stored) == (4 * 8 * 4, 4 * 8 * 4 + 4 * 4)


def test_memory_of_the_lowered_program(scheduled: ProgramReport) -> None:
    (row,) = scheduled.memory
    assert (row.function, row.buffer.name, row.buffer.type) == ("add_relu", "Y", "f32[8]")
    assert row.buffer.place == "registers or stack, in i > j0" and row.buffer.size == 32


def test_a_graph_before_and_after_fusion(graph: ProgramReport) -> None:
    (before,) = graph.before_fusion
    assert before.name == "main" and before.svg.startswith("<svg") and "y = relu h" in str(before.tree)
    assert [picture.name for picture in graph.after_fusion] == ["main", "fused_matmul_relu"]
    assert "call_tir @fused_matmul_relu" in str(graph.after_fusion[0].tree)
    names = [stage.name for stage in graph.stages]
    assert names.index("graph-fuse") < names.index("legalize-graph-to-te") < names.index("schedule")
    (schedule,) = graph.schedules
    assert (schedule.title, schedule.origin) == ("@fused_matmul_relu", "default")


def test_kernels(graph: ProgramReport, scheduled: ProgramReport) -> None:
    (row,) = graph.roofline.rows
    assert row.names == ("fused_matmul_relu",) and row.flops == 2 * 2 * 8 * 4 + 2 * 4
    assert row.moved_bytes == (2 * 8 + 8 * 4 + 2 * 4) * 4
    (row,) = scheduled.roofline.rows
    assert (row.names, row.holds, row.flops) == (("add_relu",), ("Y", "B"), 2 * 64 * 32)
    assert graph.roofline.peaks is None


def test_limits_of_kernels() -> None:
    row = KernelRow("k", ("k",), (), 2, 0, 4000, 2000, 1e-6)
    roofline = Roofline((row, replace(row, flops=None)), MachinePeaks(100.0, 10.0, 20.0, 1 << 20), "")
    assert intensity(row) == 2.0 and attainable(roofline, row) == pytest.approx(40.0)  # the cache: 20 GB/s
    assert kernel_table(roofline).rows[0][-1] == "10%"
    assert kernel_table(roofline).rows[1][3] == "-"
    assert intensity(replace(row, moved_bytes=0)) is None


def test_kernels_are_measured() -> None:
    module, target = weft.parse(FUNCTION), Target.parse(TARGET)
    report = program_report(module, "f", target, BuildOptions())
    (row,) = measured(report.roofline, module, target, BuildOptions(), None).rows
    assert row.seconds is not None and 0 < row.seconds < inf
    with pytest.raises(weft.CompileError, match=r"--time measures programs for this CPU, got the target 'cuda"):
        measured(report.roofline, module, Target.parse("cuda"), BuildOptions(), None)


def test_the_table_of_passes(scheduled: ProgramReport) -> None:
    rows = stage_table(scheduled.stages).rows
    assert rows[0][2] == "-" and dict((row[0], row[2]) for row in rows)["tir-collect-imports"] == "0"
    assert rows[1][2] == "2"  # the function changed, the schedule is gone


def test_large_constants_are_left_out() -> None:
    text = GRAPH.replace("%h =", f"%c = graph.constant dense<{list(range(40))}> : tensor<40xf32>\n  %h =")
    report = report_of(text)
    assert "dense_resource<__elided__>" in report.stages[0].parts[0][1]


def test_kernels_of_gpus() -> None:
    report = report_of(FUNCTION, "cuda")
    assert report.failure == ""
    assert report.stages[-1].name == "cuda" and "__global__" in report.stages[-1].parts[0][1]
    assert all(row.from_caches is None for row in report.schedules[0].positions[-1].buffers)
    assert report.roofline.note.endswith("The limits of the target are not known.")


def test_a_refused_step_ends_the_report() -> None:
    wrong = SCHEDULE.replace("sched.vectorize %j1", "sched.reorder %j1, %i")
    report = report_of(FUNCTION + wrong)
    (schedule,) = report.schedules
    assert [position.name for position in schedule.positions] == ["as written", "split", "compute_at"]
    assert schedule.failure.startswith("sch.reorder(j1, i)\nerror: reorder(") and "requirement" in schedule.failure
    assert "requirement" in report.failure
    assert [stage.name for stage in report.stages] == ["input"]
    assert report_of(FUNCTION + SCHEDULE.replace('"Y"', '"Z"')).failure.count("unknown block 'Z'") == 1


def test_schedules_are_programs() -> None:
    module = with_schedule(split_by(8))
    report = program_report(module, "s", Target.parse(TARGET), BuildOptions())
    assert [position.name for position in report.schedules[0].positions] == ["as written", "split", "vectorize"]
    assert "[4, 8]" in report.schedules[0].python


def test_the_tasks_of_a_database(tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db")
    report = search_report(str(tmp_path / "tune.db"))
    (task,) = report.tasks
    assert (task.name, task.flops, len(task.trials), task.calls) == ("add_relu", 4096, 4, None)
    assert (task.seconds, task.default_seconds) == (1e-6, 3e-6)
    assert task.failures() == {"it <crashed>": 1}
    assert task.best is not None and task.best.origin == "my_space" and "decision=[4, 8]" in task.best.python
    assert [position.name for position in task.best.positions] == ["as written", "split", "vectorize"]
    assert [row.seconds for row in report.roofline.rows] == [1e-6, 3e-6]
    assert "The limits of the machine that measured are not known." in report.roofline.note
    ((name, _, _, calls, weight, trials, failed, default, best, gain, rate),) = task_table(report).rows
    assert (name, calls, weight, trials, failed) == ("add_relu", "-", "100%", "4", "1")
    assert (default, best, gain, rate) == ("3 us", "1 us", "3.00", "4.096")


def test_the_tasks_of_a_program(tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db")
    caller = FUNCTION.replace("func.func @add_relu", "func.func private @add_relu") + (
        "func.func @main(%A: memref<64x32xf32>, %B: memref<64x32xf32>) {\n"
        + "func.call @add_relu(%A, %B) : (memref<64x32xf32>, memref<64x32xf32>) -> ()\n" * 3
        + "func.return\n}"
    )
    (task,) = search_report(str(tmp_path / "tune.db"), weft.parse(caller)).tasks
    assert task.calls == 3 and task.weight == pytest.approx(3e-6)
    assert search_report(str(tmp_path / "tune.db"), weft.parse(GRAPH)).tasks == ()


def test_a_schedule_that_cannot_be_replayed(tmp_path: Path) -> None:
    make_database(tmp_path / "tune.db", trace="no IR")
    (task,) = search_report(str(tmp_path / "tune.db")).tasks
    assert task.best is None and task.problem.startswith("This weft cannot replay the fastest schedule: ")
    with pytest.raises(weft.CompileError, match=r"has no records of a task 'matmul'; it has: add_relu"):
        search_report(str(tmp_path / "tune.db"), func="matmul")
    with pytest.raises(weft.CompileError, match=r"there is no database '.*none\.db'"):
        search_report(str(tmp_path / "none.db"))


def test_programs_in_python(tmp_path: Path) -> None:
    (file := tmp_path / "my.py").write_text(
        f"import weft\nmodule = weft.parse('''{FUNCTION}''')\n"
        "def scheduled():\n    sch = weft.Schedule(module)\n    sch.parallel(sch.get_loops('B')[0])\n    return sch\n"
        "def wrong():\n    return 1\ndef broken():\n    raise KeyError('x')\n"
    )
    assert "add_relu" in str(read_program(str(file)))
    assert "sched.parallel" in str(read_program(f"{file}:scheduled"))
    for name, message in (
        (f"{file}:wrong", r"my.py:wrong is a module or a schedule, got int"),
        (f"{file}:broken", r"my.py:broken\(\) failed: KeyError: 'x'"),
        (f"{file}:schedule", r"has no name 'schedule', did you mean 'scheduled'"),
        (f"{tmp_path}/none.py", r"there is no file '.*none.py'"),
    ):
        with pytest.raises(weft.CompileError, match=message):
            read_program(name)
    file.write_text("import weft\na = weft.parse('')\nb = weft.parse('')\n")
    with pytest.raises(weft.CompileError, match=r"my.py' has several programs \(a, b\): name one"):
        read_program(str(file))
    file.write_text("x = 1")
    with pytest.raises(weft.CompileError, match=r"my.py' has no module and no schedule among its names"):
        read_program(str(file))
    file.write_text("1 / 0")
    with pytest.raises(weft.CompileError, match=r"my.py' failed: ZeroDivisionError: division by zero"):
        read_program(str(file))


def test_times_as_text() -> None:
    assert [time_text(t) for t in (None, 2.0, 1.5e-3, 2e-6, 3e-9)] == ["-", "2 s", "1.5 ms", "2 us", "3 ns"]


@pytest.mark.slow
def test_open_extents_of_models(tmp_path: Path) -> None:
    """Models of ONNX name the extent of their batch, which is 1 as in `weft run`."""
    pytest.importorskip("onnx")
    from onnx_models import perceptron

    (file := tmp_path / "model.onnx").write_bytes(perceptron().SerializeToString())
    module, target = read_program(str(file)), Target.parse(TARGET)
    for extent, known in ((None, False), (1, True)):
        report = program_report(module, "model.onnx", target, BuildOptions(), extent=extent)
        assert report.before_fusion and all((row.moved_bytes is not None) == known for row in report.roofline.rows)
