"""`weft.tune` for devices: searches of small kernels, what is refused before it is built, and kernels that crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cuda_on_cpu import ORDERS, cuda_on_cpu, needs_compiler
from xdsl.dialects.func import FuncOp

import weft
from weft import graph as G
from weft import te
from weft.backends.cuda.nvrtc import MissingCompilerError, supported_architectures
from weft.driver import tuning_loop as driver
from weft.driver.candidates import build_here
from weft.driver.search_spaces import within_device
from weft.driver.tune import default_limits
from weft.interp.arguments import argument_recipe
from weft.runtime import gpu_library
from weft.runtime.devices import DeviceError
from weft.runtime.opencl import pick_device
from weft.schedule.traces import trace_without_decisions
from weft.support.gpu_machine import GpuMachine
from weft.support.limited_calls import Failure, Limits
from weft.support.target import Target
from weft.tools.weft_cli import execute
from weft.tuning.database import Database
from weft.tuning.measuring import ArgumentSpec, Built, Measured, Repeats, measure, measure_here
from weft.tuning.records import machine_kind
from weft.tuning.runner import WorkerLimits
from weft.tuning.search import EvolutionarySearch, Ranking
from weft.tuning.space import Space

N = 32
TARGET = "opencl -opt-level=0"
"""PoCL takes long to optimise kernels with barriers."""
QUICK = WorkerLimits(repeats=Repeats(most=3, seconds=0.0, repeat_seconds=1e-6))


@cache
def matmul() -> weft.ModuleOp:
    a, b = (te.placeholder((N, N), "float32", name=letter) for letter in "AB")
    k = te.reduce_axis((0, N), name="k")
    c = te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_func([a, b, c], name="matmul")


def computes_the_product(lib: weft.Library) -> None:
    a, b = np.random.default_rng(0).random((2, N, N), dtype=np.float32)
    c = np.full_like(a, np.nan)
    lib["matmul"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


FUNCTION = next(op for op in matmul().ops if isinstance(op, FuncOp))
ARGUMENTS = ArgumentSpec(argument_recipe(FUNCTION), 0, N)


@cache
def sums() -> weft.ModuleOp:
    a, k = te.placeholder((6, 300), "float32", name="A"), te.reduce_axis((0, 300), name="k")
    return te.create_func([a, te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="S")], name="sums")


def rows(sch: weft.Schedule) -> None:
    """A thread block for 1, 8 or 32 rows."""
    i, j, _ = sch.get_loops("C")
    outer, inner = sch.split(i, [None, sch.sample_categorical([1, 8, 32], [0.25, 0.25, 0.5], decision=0)])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.y")
    sch.bind(j, "threadIdx.x")


def tiles(sch: weft.Schedule) -> None:
    """The second factor in shared memory, 4 KiB, and rows of the first, 512 bytes or 2 KiB."""
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(i, [None, sch.sample_categorical([4, 16], [0.5, 0.5], decision=0)])
    sch.reorder(outer, j, inner, k)
    sch.bind(outer, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    for factor in (0, 1):
        fetch = sch.cache_read("C", factor, "shared")
        sch.compute_at(fetch, j)
        sch.bind(sch.get_loops(fetch)[-1], "threadIdx.x")


def registers(sch: weft.Schedule) -> None:
    """A thread for 4 or 32 rows of results, which it keeps in registers."""
    i, j, k = sch.get_loops("C")
    kept = sch.cache_write("C", 0, "local")
    outer, inner = sch.split(i, [None, sch.sample_categorical([4, 32], [0.5, 0.5], decision=0)])
    sch.reorder(outer, j, k, inner)
    sch.bind(outer, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.reverse_compute_at(kept, j)
    sch.decompose_reduction("C", k)


def build(space: Callable[[weft.Schedule], None], decision: int, target: str = TARGET) -> Built:
    """The product, scheduled by a space with its only decision."""
    sch = weft.Schedule(matmul())
    space(sch)
    return build_here(str(matmul()), trace_without_decisions(sch.trace), (decision,), target)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[object]]:
    """Builds and measures in this process; the decisions of what was built."""
    built: list[Sequence[object]] = []

    def build(ir: str, trace: str, decisions: Sequence[int], target: str, limits: Limits) -> Built:
        built.append(decisions)
        return build_here(ir, trace, decisions, target)

    monkeypatch.setattr(driver, "build_candidate", build)
    monkeypatch.setattr(driver, "measure", lambda *arguments: measure_here(*arguments[:-1]))
    return built


def tune(program: weft.ModuleOp, **options: object) -> weft.Tuned:
    with ThreadPoolExecutor(1) as executor:
        return weft.tune(program, **{"target": TARGET, "limits": QUICK, "executor": executor, **options})  # pyright: ignore


@pytest.fixture
def pocl() -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    pick_device()


def make_fastest(path: Path, at: int) -> None:
    """Let a record be by far the fastest."""
    with Database(path) as database:
        database.add(replace(list(database.records())[at], times=(1e-12,), drift=1.0, origin="elsewhere"))


def test_a_search_of_default_schedules(tmp_path: Path, pocl: None, in_process: object) -> None:
    path = tmp_path / "tune.db"
    tuned = tune(sums(), trials=3, database=path)
    (task,) = tuned.tasks
    assert len(task.trials) == 3 and not [record.failure for record in task.trials if record.failure]
    # The device measured, not the processor: records of another device are not applied.
    assert {record.machine for record in (task.default, *task.trials)} == {machine_kind(TARGET)}
    assert machine_kind(TARGET).startswith("opencl ") and machine_kind(TARGET) != machine_kind()
    make_fastest(path, 2)
    lib = weft.build(sums(), TARGET, database=path)
    assert "@tuned_sums" in lib.trace
    data, found = np.random.default_rng(0).random((6, 300), dtype=np.float32), np.full(6, np.nan, np.float32)
    lib["sums"](data, found)
    np.testing.assert_allclose(found, data.sum(1), rtol=1e-5)
    assert "@tuned" not in weft.build(sums(), "opencl -opt-level=1", database=path).trace


def test_searches_begin_with_decisions_of_rules_for_kernels(
    tmp_path: Path, pocl: None, in_process: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, begun = tmp_path / "tune.db", list[object]()
    tune(sums(), trials=1, database=path)
    with Database(path) as database:
        _, trial = database.records()
        for at, target in enumerate(("cuda -arch=sm_90", "llvm", "opencl")):
            database.add(replace(trial, target=target, machine="another", decisions=(at,)))

    class Search(EvolutionarySearch):
        def __init__(self, space: Space, seed: int, *, first: Sequence[object], ranking: Ranking) -> None:
            begun.extend(first)
            super().__init__(space, seed, ranking=ranking)

    monkeypatch.setattr(driver, "EvolutionarySearch", Search)
    tune(sums(), trials=1, seed=1, database=path)
    assert set(begun) - {trial.decisions} == {(0,), (2,)}


def test_spaces_of_users(pocl: None, in_process: object) -> None:
    tuned = tune(matmul(), space=rows, trials=10)
    (task,) = tuned.tasks
    assert {record.decisions for record in task.trials} == {(0,), (1,), (2,)} and task.is_exhausted
    for record in task.trials:
        assert not record.failure
        sch = weft.Schedule(matmul())
        weft.run_trace(sch, record.trace, record.decisions)
        computes_the_product(weft.build(sch.mod, TARGET))


@pytest.mark.parametrize(
    ("space", "limits", "fitting"),
    [
        (rows, "-max-threads-per-block=256", {(0,), (1,)}),
        (tiles, "-shared-bytes=5120 -max-shared-bytes=5120", {(0,)}),
        (registers, "-registers-per-thread=8", {(0,)}),  # the default schedule takes 16
    ],
)
def test_what_has_no_room_is_not_built(
    space: Callable[[weft.Schedule], None],
    limits: str,
    fitting: set[tuple[int]],
    pocl: None,
    in_process: list[Sequence[object]],
) -> None:
    tuned = tune(matmul(), space=space, trials=10, target=f"{TARGET} {limits}")
    (task,) = tuned.tasks
    assert {tuple(decisions) for decisions in in_process if decisions} == fitting == {r.decisions for r in task.trials}
    assert task.counts.refused == 1 and not [r.failure for r in task.trials if r.failure]


def test_default_schedules_beyond_the_device(pocl: None, in_process: list[Sequence[object]]) -> None:
    message = r"the default schedule of @matmul cannot run here: .*needs 4096 bytes"
    for space in (None, rows):
        with pytest.raises(weft.CompileError, match=rf"(?s){message}"):
            tune(matmul(), space=space, target=f"{TARGET} -shared-bytes=1024 -max-shared-bytes=1024")
    assert not in_process


def test_limits_of_the_device_that_is_there() -> None:
    with cuda_on_cpu(ORDERS[0]) as device:
        device.limits = GpuMachine(max_threads_per_block=256, max_shared_bytes=16 << 10)
        narrow = within_device(Target.parse("cuda -arch=sm_80")).gpu
        assert narrow is not None
        assert (narrow.max_threads_per_block, narrow.shared_bytes, narrow.max_shared_bytes) == (256, 16384, 16384)
    cpu = Target.parse("llvm")
    assert within_device(cpu) is cpu
    seconds = [default_limits(Target.parse(kind)).run.seconds for kind in ("llvm", "cuda", "opencl")]
    assert seconds == [10, 10, 40]


@pytest.mark.parametrize(
    ("fault", "seconds", "kind", "reason"),
    [
        ("volatile int forever = 1; while (forever) ;", 1.0, "time", "it takes longer than 1 s"),
        ("*(volatile __global int *)8 = 1;", 60.0, "crash", "its process was ended by SIGSEGV"),
    ],
)
def test_kernels_end_with_the_process_that_runs_them(
    fault: str, seconds: float, kind: str, reason: str, pocl: None
) -> None:
    reference, faulty = build(rows, 0), build(rows, 1)
    assert faulty.kernels is not None
    text = faulty.kernels.text
    start = text.index("{", text.index("__kernel")) + 1
    faulty = replace(faulty, kernels=replace(faulty.kernels, text=text[:start] + fault + text[start:]))
    found = measure(faulty, reference, ARGUMENTS, QUICK.repeats, Limits(seconds))
    assert isinstance(found, Failure) and found.kind == kind and found.reason.startswith(reason)


def test_no_kernel_runs_after_a_device_failed(pocl: None) -> None:
    """The process ends, and the next candidate runs in another."""
    reference = build(rows, 0)
    assert reference.kernels is not None
    specs = [replace(spec, shared_bytes=1 << 30) for spec in reference.kernels.kernels]
    refused = replace(reference, kernels=replace(reference.kernels, kernels=tuple(specs)))
    found = measure(refused, reference, ARGUMENTS, QUICK.repeats, Limits(60))
    assert isinstance(found, Failure) and found.kind == "crash"
    assert "its process ended: kernel 'matmul_kernel' needs 1073741824 bytes of shared memory" in found.reason
    found = measure(reference, reference, ARGUMENTS, QUICK.repeats, Limits(60))
    assert isinstance(found, Measured) and found.times


def test_constants_and_models(tmp_path: Path, pocl: None, in_process: object) -> None:
    x, w = G.var("x", (16, 48), "float32"), G.var("w", (48,), "float32")
    builder = G.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(G.relu(builder.emit(G.multiply(x, w)))))
        builder.emit_func_output(result)
    rng, path = np.random.default_rng(0), tmp_path / "tune.db"
    weights, data = rng.random(48, dtype=np.float32) - 0.5, rng.random((16, 48), dtype=np.float32)
    model = G.bind_params(builder.get(), "main", {"w": weights})
    (task,) = tune(model, trials=1, database=path).tasks
    assert "tir.constant" in task.workload.ir and not task.trials[0].failure
    make_fastest(path, 1)
    lib = weft.build(model, TARGET, database=path)
    assert f"@tuned_{task.workload.name}" in lib.trace
    np.testing.assert_array_equal(lib["main"](data), np.maximum(data * weights, 0))


def test_wrong_results_of_kernels(
    tmp_path: Path, pocl: None, in_process: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def miscompiled(ir: str, trace: str, decisions: tuple[object, ...], target: str, limits: Limits) -> Built:
        wrong = ir.replace("arith.addf", "arith.subf") if decisions == (2,) else ir
        return build_here(wrong, trace, decisions, target)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(driver, "build_candidate", miscompiled)
    with pytest.raises(weft.InternalError, match=r"a schedule of @matmul changes its result: C\[\d+\]\[\d+\] is"):
        tune(matmul(), space=rows, database=tmp_path / "tune.db")
    (file,) = tmp_path.glob("weft-wrong-matmul-*.mlir")
    assert execute(["run", str(file), "--target", TARGET, "--check"]) == 0


def test_without_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: list[Sequence[object]]) -> None:
    def missing(target: Target) -> object:
        raise DeviceError(f"there is no {target.kind} device on this machine")

    monkeypatch.setattr(gpu_library, "device_for", missing)
    with pytest.raises(weft.CompileError, match="there is no opencl device on this machine"):
        tune(matmul())
    assert not in_process
    # A program can be built all the same: by default.
    with (
        Database(tmp_path / "tune.db"),
        pytest.warns(UserWarning, match="records of .* are skipped: there is no cuda"),
    ):
        lib = weft.build(matmul(), "cuda", database=tmp_path / "tune.db")
    assert "@default_matmul" in lib.trace
    with pytest.raises(weft.CompileError, match=r"records of .* cannot be taken: there is no cuda device"):
        weft.build(matmul(), "cuda", database=tmp_path / "tune.db", require_tuned=True)


def test_runners_measure_programs_for_cpus(pocl: None) -> None:
    with pytest.raises(weft.CompileError, match="target kind 'opencl' are measured on the device of this machine"):
        tune(matmul(), runner="1")


def test_devices_of_another_architecture() -> None:
    """Machine code is taken for the architecture that it was compiled for."""
    from weft.runtime import cuda

    device = object.__new__(cuda.CudaDevice)
    device.capability, device.description = 80, "NVIDIA A100 (CUDA device 0, sm_80)"
    with pytest.raises(DeviceError, match="the program is for sm_90, and the device is NVIDIA A100"):
        device.check_target(Target.parse("cuda -arch=sm_90"))
    device.check_target(Target.parse("cuda -arch=sm_75"))


@needs_compiler
def test_kernels_for_cuda() -> None:
    """Built for CUDA; as this machine may have no device, a CPU runs them."""
    target = "cuda -arch=sm_80"
    reference, other = build(rows, 0, target), build(rows, 1, target)
    assert other.kernels is not None
    try:
        supported_architectures()
    except MissingCompilerError:
        assert not other.kernels.binary
    else:
        assert other.kernels.binary.startswith(b"\x7fELF")
    with cuda_on_cpu(ORDERS[0]):
        assert machine_kind(target) == "cuda CUDA on the CPU"
        found = measure_here(other, reference, ARGUMENTS, QUICK.repeats)
    assert found.times and not found.difference
