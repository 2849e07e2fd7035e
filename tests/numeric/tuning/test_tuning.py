"""`weft.tune`: real searches of small programs, and the schedules that builds then take."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from inspect import getsource
from pathlib import Path
from random import Random

import numpy as np
import pytest

import weft
from weft import graph as G
from weft import te
from weft.driver import tuning_loop as driver
from weft.driver.candidates import build_here
from weft.support.limited_calls import Limits, limited_call
from weft.support.user_functions import unregister_intrinsic
from weft.tools.weft_cli import execute
from weft.tuning.database import Database
from weft.tuning.evaluation import DEFAULT
from weft.tuning.measuring import Built, Repeats, measure_here
from weft.tuning.records import Record
from weft.tuning.runner import WorkerLimits

TARGET = "llvm -num-threads=1"
QUICK = WorkerLimits(repeats=Repeats(most=3, seconds=0.0, repeat_seconds=1e-4))


@cache
def matmul(n: int = 16, name: str = "matmul") -> weft.ModuleOp:
    a, b = (te.placeholder((n, n), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name=name)


def columns(sch: weft.Schedule) -> None:
    """That of examples/random_search.py: 16 columns in five ways."""
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i, j0, k, j1)
    sch.decompose_reduction(block, k)


def tiles(sch: weft.Schedule) -> None:
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(*([i0, j0, k, i1, j1] if sch.get(sch.sample_categorical([0, 1], [0.5, 0.5])) else [i0, i1, k, j0, j1]))


def computes_the_product(lib: weft.Library, name: str = "matmul", n: int = 16) -> None:
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    c = np.empty_like(a)
    lib[name](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


class Inline(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future[object] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds and measures in this process: two children need seconds to import weft."""
    monkeypatch.setattr(driver, "build_candidate", lambda *arguments: build_here(*arguments[:-1]))
    monkeypatch.setattr(driver, "measure", lambda *arguments: measure_here(*arguments[:-1]))


def tune(program: weft.ModuleOp, **options: object) -> weft.Tuned:
    return weft.tune(program, **{"target": TARGET, "limits": QUICK, "executor": Inline(), **options})  # pyright: ignore


def make_fastest(path: Path, at: int, **changes: object) -> None:
    """Let a trial that was measured be by far the fastest."""
    with Database(path) as database:
        trials = [record for record in database.records() if record.origin != DEFAULT]
        database.add(replace(trials[at], **{"times": (1e-12,), "failure": "", "drift": 1.0, **changes}))


def test_a_search_of_five_candidates_ends_after_five_trials(tmp_path: Path, in_process: None) -> None:
    path = tmp_path / "tune.db"
    tuned = tune(matmul(), space=columns, trials=20, database=path)
    (task,) = tuned.tasks
    assert {r.decisions for r in task.trials} == {((16 // n, n),) for n in (1, 2, 4, 8, 16)} and task.is_exhausted
    assert not [r.failure for r in task.trials if r.failure]
    assert task.default.origin == DEFAULT and task.seconds == min(
        r.seconds for r in (*task.trials, task.default) if r.seconds is not None
    )
    header, row, total = tuned.table().splitlines()
    assert header.split()[:4] == ["ID", "name", "weight", "GFLOP/s"] and row.split()[:3] == ["0", "matmul", "1"]
    assert row.endswith("100%  5, all") and len(row) <= 80 and total.startswith("5 trials, ")
    computes_the_product(weft.build(matmul(), TARGET, database=path))

    make_fastest(path, 2)
    lib = weft.build(matmul(), TARGET, database=path)
    assert f"decision = {list(task.trials[2].decisions[0])}" in lib.trace and "@tuned_matmul" in lib.trace
    computes_the_product(lib)
    # A schedule is of the workload, whatever the function is called.
    lib = weft.build(matmul(name="product"), TARGET, database=path)
    assert "@tuned_product" in lib.trace and "in @product" in lib.trace
    computes_the_product(lib, "product")
    # Other programs and targets have none; users' own schedules and `default_schedule=False` go before.
    assert "@tuned" not in weft.build(matmul(), "llvm -num-threads=2", database=path).trace
    assert not weft.build(matmul(), TARGET, database=path, default_schedule=False).trace
    sch = weft.Schedule(matmul())
    sch.parallel(sch.get_loops("C")[0])
    assert not weft.build(sch.mod, TARGET, database=path).trace


@pytest.mark.slow
def test_a_search_is_resumed_by_running_it_again(
    tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tune.db"

    def search(trials: int, seed: int = 3) -> weft.Tuned:
        return tune(matmul(), space=tiles, trials=trials, seed=seed, database=path)

    reported: list[int] = []
    report = lambda tuned: reported.append(tuned.num_trials)  # noqa: E731
    first = tune(matmul(), space=tiles, trials=9, seed=3, database=path, progress=report)
    assert reported == [8, 9] and first.tasks[0].known == 0
    more = search(12)
    assert more.tasks[0].trials[:9] == first.tasks[0].trials and more.tasks[0].known == 9
    # All is known: nothing is built.
    with monkeypatch.context() as patch:
        patch.setattr(driver, "build_candidate", None)
        again = search(12)
    assert again.tasks[0].trials == more.tasks[0].trials and again.tasks[0].known == 12
    assert again.tasks[0].best == more.tasks[0].best
    other = search(8, seed=4)
    assert other.tasks[0].trials != more.tasks[0].trials[:8]


class LastFirst(Executor):
    """Three threads that begin with what was submitted last."""

    def __init__(self) -> None:
        self._pool, self._waiting = ThreadPoolExecutor(3), list[tuple[Future[object], Callable[[], object]]]()

    def submit(self, fn, /, *args, **kwargs):
        future: Future[object] = Future()
        self._waiting.append((future, partial(fn, *args, **kwargs)))
        self._pool.submit(self._run)
        return future

    def _run(self) -> None:
        future, call = self._waiting.pop()
        if future.set_running_or_notify_cancel():
            future.set_result(call())


@pytest.mark.slow
def test_a_search_by_runners_is_resumed(tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tune.db"

    def search(trials: int, window: int) -> weft.Tuned:
        runner = LastFirst()
        return tune(matmul(), space=tiles, trials=trials, database=path, runner=runner, window=window)

    first = search(12, 5)
    recorded = _records(path)[1:]
    assert recorded == first.tasks[0].trials and len(recorded) == 12
    # The window is that of the first time.
    more = search(16, 3)
    assert more.tasks[0].trials[:12] == recorded and more.tasks[0].known == 12
    with monkeypatch.context() as patch:
        patch.setattr(driver, "build_candidate", None)
        assert search(16, 9).tasks[0].trials == more.tasks[0].trials


def test_records_that_cannot_be_replayed_are_left_out(tmp_path: Path, in_process: None) -> None:
    path = tmp_path / "tune.db"
    tune(matmul(), space=columns, trials=2, database=path)
    make_fastest(path, 0, times=(2e-12,))
    make_fastest(path, 1, trace="sched.func @trace { sched.frobnicate }", decisions=(), versions="weft 9.9")
    make_fastest(path, 1, decisions=((5, 3),))
    make_fastest(path, 1, machine="x86_64 cray1", times=(1e-15,))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lib = weft.build(matmul(), TARGET, database=path)
    texts = [str(warning.message) for warning in told]
    assert len(texts) == 2 and "a record of weft 9.9 is skipped" in texts[0] and "multiplies to 15" in texts[1]
    assert "@tuned_matmul" in lib.trace
    computes_the_product(lib)


@pytest.mark.slow
def test_kernels_of_models_take_schedules(tmp_path: Path, in_process: None) -> None:
    """One has constant weights, which its schedule packs when the model is built."""
    x, w = G.var("x", (16, 16), "float32"), G.var("w", (16, 48), "float32")
    builder = G.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(G.softmax(builder.emit(G.relu(G.matmul(x, w))))))
        builder.emit_func_output(result)
    rng, path = np.random.default_rng(0), tmp_path / "tune.db"
    weights, data = rng.random((16, 48), dtype=np.float32), rng.random((16, 16), dtype=np.float32)
    model = G.bind_params(builder.get(), "main", {"w": weights})
    tuned = tune(model, trials=1, database=path)
    assert {task.workload.name: task.calls for task in tuned.tasks} == {"fused_matmul_relu": 1, "softmax": 1}
    assert "tir.constant" in tuned.tasks[0].workload.ir
    with Database(path) as database:
        for record in list(database.records()):
            database.add(replace(record, times=(1e-12,), origin="elsewhere"))
    hidden = np.maximum(data @ weights, 0)
    powers = np.exp(hidden - hidden.max(-1, keepdims=True))
    for _ in range(2):  # compiled, and from the cache
        lib = weft.build(model, TARGET, database=path)
        assert "@tuned_fused_matmul_relu" in lib.trace and "@tuned_softmax" in lib.trace
        np.testing.assert_allclose(lib["main"](data), powers / powers.sum(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    assert "@tuned" not in weft.build(model, TARGET).trace


def _body(text: str) -> str:
    """The operations of a module as text."""
    return text[text.index("func.func") : text.rindex("}")]


def test_a_wrong_result_is_shown_by_a_file(tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def miscompiled(ir: str, trace: str, decisions: tuple[object, ...], target: str, limits: Limits) -> Built:
        wrong = ir.replace("arith.addf", "arith.subf") if decisions == ((4, 4),) else ir
        return build_here(wrong, trace, decisions, target)

    monkeypatch.setattr(driver, "build_candidate", miscompiled)
    path = tmp_path / "tune.db"
    with pytest.raises(weft.InternalError, match=r"a schedule of @matmul changes its result: C\[\d+\]\[\d+\] is"):
        tune(matmul(), space=columns, database=path)
    (file,) = tmp_path.glob("weft-wrong-matmul-*.mlir")
    assert "decision = [4, 4]" in file.read_text()
    # Here it was the builder: the file runs and is right.
    assert execute(["run", str(file), "--check"]) == 0


def test_default_schedules_are_spaces(tmp_path: Path, in_process: None) -> None:
    tuned = tune(matmul(), trials=6, database=tmp_path / "tune.db")
    (task,) = tuned.tasks
    assert len(task.trials) == 6 and not [record.failure for record in task.trials if record.failure]
    # Each measured candidate computed what the default does, by other steps.
    assert len({record.trace for record in task.trials}) > 1 and task.default not in task.trials
    assert "sched.sample_categorical" in task.trials[0].trace
    make_fastest(tmp_path / "tune.db", 0)
    lib = weft.build(matmul(), TARGET, database=tmp_path / "tune.db")
    assert "sched.sample_categorical" in lib.trace
    computes_the_product(lib)
    # One schedule, whatever is chosen: the default alone.
    x = te.placeholder((4,), "float32", name="X")
    alone = tune(te.create_func([x, te.compute((4,), lambda i: x[i] + x[i], name="Y")], name="twice"))
    assert alone.num_trials == 0 and alone.tasks[0].is_exhausted and alone.tasks[0].seconds > 0


def test_sched_ir_is_a_space(in_process: None) -> None:
    sch = weft.Schedule(matmul())
    columns(sch)
    for space in (sch.trace, str(sch.trace)):
        tuned = tune(matmul(), space=space, trials=2)
        # Its decisions are the first.
        assert list(tuned.tasks[0].trials[0].decisions) == weft.decisions_of(sch.trace)
        assert len(tuned.tasks[0].trials) == 2


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        (matmul, {"target": "metal"}, "programs for target kind llvm, opencl, cuda are measured, got 'metal'"),
        (matmul, {"trials": 0}, "trials must be at least 1, got 0"),
        (matmul, {"window": 0}, "window must be at least 1, got 0"),
        (matmul, {"executor": "dusk:1"}, "executor is a number of processes, dask:ADDRESS"),
        (matmul, {"runner": "none"}, "runner is a number of processes, dask:ADDRESS"),
        (matmul, {"func": "matmol"}, "there is no function 'matmol' with blocks, did you mean 'matmul'"),
        (lambda: weft.parse("func.func @f() { func.return }"), {}, "there is no function to tune, none holds blocks"),
        (
            lambda: weft.parse(str(matmul()).replace("16x16x", "?x16x")),
            {},
            "@matmul: parameter 'A' has extents that calls decide",
        ),
        (
            lambda: weft.parse(_body(str(matmul())) + 'sched.func @s { %c = sched.get_block "C" : block }'),
            {},
            "@matmul: a schedule of the program works on it",
        ),
    ],
    ids=["target", "trials", "window", "executor", "runner", "func", "empty", "dynamic", "scheduled"],
)
def test_what_cannot_be_tuned(program: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(weft.CompileError, match=message):
        weft.tune(program(), **{"space": columns, **options})  # pyright: ignore


def test_programs_that_use_what_users_registered_are_left_out(in_process: None) -> None:
    x = te.placeholder((8, 8), "float32", name="X")
    power = te.create_func([x, te.compute((8, 8), lambda i, j: te.exp(x[i, j]), name="Y")], name="power")
    weft.register_lowering("exp", target="opencl")(lambda call: "native_exp")
    weft.register_intrinsic("mine", meaning=np.log)
    try:
        assert tune(matmul(), space=columns, trials=1).num_trials == 1
        assert tune(power, trials=1).tasks
        y = te.compute((8, 8), lambda i, j: te.call_intrin("float32", "mine", x[i, j]), name="Y")
        with pytest.raises(
            weft.CompileError,
            match="it calls 'mine': builders are other processes, which lack the functions that you registered",
        ):
            tune(te.create_func([x, y], name="logarithm"))
        weft.register_lowering("exp")(lambda call: "expf")
        assert tune(weft.merge(matmul(), power), trials=1).skipped.keys() == {"power"}
    finally:
        unregister_intrinsic("exp"), unregister_intrinsic("mine")


def test_functions_that_a_space_is_not_for_are_left_out(in_process: None) -> None:
    x = te.placeholder((8, 8), "float32", name="X")
    double = te.create_func([x, te.compute((8, 8), lambda i, j: x[i, j] + x[i, j], name="Y")], name="double")
    tuned = tune(weft.merge(matmul(), double, matmul(name="again")), space=columns, trials=3)
    # Equal functions are one task.
    assert [(task.workload.name, task.calls) for task in tuned.tasks] == [("matmul", 2)] and tuned.num_trials == 3
    assert tuned.skipped == {"double": "unknown block 'C' (known: 'Y')"}


@pytest.mark.slow
def test_a_picture_of_a_search(in_process: None, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    tuned = tune(matmul(), space=columns, trials=3)
    tuned.plot(tmp_path / "convergence.svg")
    assert "trials; 0 is the default" in (tmp_path / "convergence.svg").read_text()


@pytest.mark.parametrize("installed", [True, False])
def test_pictures_are_checked_before_a_search(installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if installed:
        pytest.importorskip("matplotlib")
        message, file = r"plot: matplotlib writes .*png.*, got '.*best\.tiny'", "best.tiny"
    else:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        message, file = r"plot: pictures are drawn by matplotlib: pip install 'weft\[plot\]'", "best.png"
    monkeypatch.setattr("weft.tools.tune_command.tune", lambda *args, **keywords: pytest.fail("it searches"))
    (tmp_path / "matmul.mlir").write_text(str(matmul()))
    with pytest.raises(weft.CompileError, match=message):
        execute(["tune", str(tmp_path / "matmul.mlir"), "--plot", str(tmp_path / file)])


def test_a_build_needs_its_database(tmp_path: Path) -> None:
    with pytest.raises(weft.CompileError, match="there is no database"):
        weft.build(matmul(), TARGET, database=tmp_path / "none.db")


def test_a_search_in_child_processes(tmp_path: Path) -> None:
    tuned = tune(matmul(), space=tiles, trials=20, executor=ThreadPoolExecutor(1))
    (task,) = tuned.tasks
    assert len(task.trials) == 20 and all(record.times for record in task.trials)
    sch = weft.Schedule(matmul())
    weft.run_trace(sch, tuned.trace)
    computes_the_product(weft.build(sch.mod, TARGET))


def test_the_command(tmp_path: Path, in_process: None, capsys: pytest.CaptureFixture[str]) -> None:
    (program := tmp_path / "matmul.mlir").write_text(str(matmul()))
    (space := tmp_path / "my_space.py").write_text(getsource(columns).replace("sch: weft.Schedule", "sch"))
    path = tmp_path / "tune.db"
    words = ["tune", program, "--database", path, "--target", TARGET, "--trials", 3, "--executor", 1, "--timeout", 300]
    assert execute([str(word) for word in (*words, "--space", f"{space}:columns")]) == 0
    told = capsys.readouterr()
    assert "matmul" in told.out and f"saved     {path}" in told.out
    assert told.err.startswith("3/3 trials, ") and "s left: matmul" in told.err
    make_fastest(path, 0)
    assert execute(["run", str(program), "--database", str(path), "--target", TARGET, "--check"]) == 0
    assert "@tuned_matmul by default" in capsys.readouterr().out
    build = ["build", str(program), "-o", str(tmp_path / "matmul.o"), "--database", str(path), "--require-tuned"]
    assert execute([*build, "--target", TARGET]) == 0
    with pytest.raises(weft.CompileError, match=r"has no schedules for target 'llvm .*-num-threads=2.*: @matmul"):
        execute([*build, "--target", "llvm -num-threads=2"])
    with pytest.raises(weft.CompileError, match="build: require_tuned is about the schedules of a database"):
        weft.build(program, require_tuned=True)
    with pytest.raises(weft.CompileError, match="--require-tuned is about the schedules of a --database"):
        execute(["run", str(program), "--require-tuned"])
    for name, message in (
        (f"{space}:column", "has no function 'column', did you mean 'columns'"),
        (f"{tmp_path}/none.py:space", "there is no file"),
        ("space", "is FILE.py:FUNCTION or FILE.mlir"),
    ):
        with pytest.raises(weft.CompileError, match=message):
            execute([*map(str, words), "--space", name])


def test_a_full_disk_loses_the_batch_under_way_and_the_search_goes_on(
    tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tune.db"
    prepare = Database._prepare

    def prepare_small(database: Database) -> None:
        prepare(database)
        pages = database._pragma("page_count") + 8
        database._connection.execute(f"PRAGMA max_page_count = {pages}")

    with monkeypatch.context() as patch:
        patch.setattr(Database, "_prepare", prepare_small)
        patch.setattr(driver.TrialEvaluator, "_record_of", _padded(driver.TrialEvaluator._record_of))
        with pytest.raises(weft.CompileError, match=r"database '\S+tune\.db': database or disk is full"):
            tune(matmul(), space=tiles, trials=12, database=path)
    kept = _records(path)
    assert 2 < len(kept) < 13
    (task,) = tune(matmul(), space=tiles, trials=12, database=path).tasks
    assert task.known == len(kept) - 1 and _records(path)[: len(kept)] == kept and len(_records(path)) == 13


def _padded(record_of: Callable[..., Record]) -> Callable[..., Record]:
    """Records that fill a page."""
    return lambda *arguments: replace(record_of(*arguments), versions="x" * 4000)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, signals")
@pytest.mark.parametrize("role", ["build_candidate", "measure"])
def test_workers_that_crash_hang_exit_or_fill_the_memory_are_failed_trials(
    tmp_path: Path, in_process: None, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    faults = {
        "its process was ended by SIGABRT": (os.abort,),
        "its process was ended by SIGSEGV": (ctypes.string_at, 8),
        "its process ended: its process ended with status 3": (os._exit, 3),
        "it takes longer than 0.5 s": (exec, "while True: pass"),
        "it needs more than 0.0625 GiB": (bytearray, 1 << 34),
    }
    left, limits = list(faults.values()), Limits(0.5, 64 << 20)
    works = getattr(driver, role)
    calls = 0

    def breaks(*arguments: object) -> object:
        nonlocal calls
        calls += 1  # the default is built once and measured twice
        return limited_call(limits, *left.pop(0)) if calls > 3 and left else works(*arguments)

    monkeypatch.setattr(driver, role, breaks)
    path = tmp_path / "tune.db"
    (task,) = tune(matmul(), space=tiles, trials=14, database=path).tasks
    failures = [record.failure for record in task.trials if record.failure]
    assert len(task.trials) == 14 and len(failures) >= len(faults) - 1
    assert all(any(failure.startswith(reason) for reason in faults) for failure in failures)
    # One may have been the incumbent's, which is measured again: then it tells nothing of a trial.
    assert len({failure[:24] for failure in failures}) >= len(faults) - 1
    assert _records(path)[1:] == task.trials


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a limit of the size of files")
def test_a_search_whose_file_may_not_grow_says_so_and_goes_on(tmp_path: Path) -> None:
    (program := tmp_path / "matmul.mlir").write_text(str(matmul(32)))
    (space := tmp_path / "my_space.py").write_text(getsource(tiles).replace("sch: weft.Schedule", "sch"))
    path = tmp_path / "tune.db"
    words = ["tune", program, "--space", f"{space}:tiles", "--trials", 40, "--database", path]
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000));"
        "from weft.tools.weft_cli import main; main()"
    )
    first = subprocess.run(
        [sys.executable, "-c", limited, *map(str, words)], check=False, capture_output=True, text=True
    )
    assert first.returncode == 1 and "Traceback" not in first.stderr
    reason = first.stderr.partition(f"error: database '{path}': ")[2].strip()
    assert reason in ("disk I/O error", "database or disk is full")
    kept = _records(path)
    assert 1 < len(kept) < 41
    assert execute([str(word) for word in words]) == 0
    assert _records(path)[: len(kept)] == kept and len(_records(path)) == 41


@pytest.mark.slow
def test_a_search_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """Killed ten times while it measures, and resumed: the trials are those of a search that nobody killed."""
    (program := tmp_path / "matmul.mlir").write_text(str(matmul(32)))
    (space := tmp_path / "my_space.py").write_text(getsource(tiles).replace("sch: weft.Schedule", "sch"))
    path = tmp_path / "tune.db"
    weft_command = Path(sys.executable).parent / "weft"
    trials, random = 40, Random(0)
    command = [weft_command, "tune", program, "--space", f"{space}:tiles", "--trials", str(trials), "--database", path]
    seen: list[object] = []
    kills = 0
    while kills < 10 and len(seen) <= trials:
        process = subprocess.Popen(
            [str(word) for word in command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        end, more = time.monotonic() + 600, random.randint(1, 3)
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
            if path.exists() and len(_records(path)) >= len(seen) + more:
                break
        time.sleep(random.uniform(0, 0.3))  # at any point of the next trial
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        records = _records(path)
        assert records[: len(seen)] == seen and len(records) > len(seen)
        seen = records
    assert kills
    assert subprocess.run([str(word) for word in command], check=False, capture_output=True).returncode == 0
    records = _records(path)
    assert records[: len(seen)] == seen and len(records) == trials + 1
    candidates = [(record.trace, record.decisions) for record in records]
    assert len(candidates) == len(set(candidates))


def _records(path: Path) -> list[object]:
    try:
        with Database(path, must_exist=True) as database:
            return list(database.records())
    except weft.CompileError:
        return []
