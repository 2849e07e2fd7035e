"""Kernels of a model compiled apart: results, sharing, the cache, other processes, exports."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import graph as G
from weft.driver import kernels
from weft.driver.pipeline import ModelKernel, Pipeline
from weft.driver.programs import parse
from weft.runtime import compile_cache
from weft.runtime.compile_cache import CompileCache
from weft.support.errors import CompileError
from weft.support.isolation import Worker

TIR = """
func.func @main(%x: memref<?xf32>, %y: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  tir.assume_shape %y[%n] : memref<?xf32>
  %t = memref.alloc(%n) : memref<?xf32>
  func.call @one(%x, %t) : (memref<?xf32>, memref<?xf32>) -> ()
  func.call @two(%t, %y) : (memref<?xf32>, memref<?xf32>) -> ()
  func.return
}}
{one}
{two}
"""


def elementwise(name: str, op: str = "mulf", hint: str = "i", constant: str = "3.0") -> str:
    return f"""
func.func private @{name}(%x_{hint}: memref<?xf32>, %y_{hint}: memref<?xf32>) {{
  %c0 = arith.constant 0 : index
  %n_{hint} = memref.dim %x_{hint}, %c0 : memref<?xf32>
  tir.assume_shape %y_{hint}[%n_{hint}] : memref<?xf32>
  %c = arith.constant {constant} : f32
  tir.for %{hint} in %n_{hint} {{
    tir.block "Y" iters(%v: spatial<%n_{hint}>) = [%{hint}] {{
      %a = memref.load %x_{hint}[%v] : memref<?xf32>
      %b = arith.{op} %a, %c : f32
      memref.store %b, %y_{hint}[%v] : memref<?xf32>
    }}
  }}
  func.return
}}"""


def program(one: str = elementwise("one"), two: str = elementwise("two", hint="j")) -> ModuleOp:
    return parse(TIR.format(one=one, two=two))


def check(library: weft.Library, scale: float = 9.0) -> None:
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(library["main"](x), x * np.float32(scale))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that this process compiles."""
    names: list[str] = []
    compile_unit = kernels.compile_unit

    def counted(unit: Pipeline, symbol: str) -> object:
        names.append(next(iter(unit.module.ops)).sym_name.data)  # pyright: ignore
        return compile_unit(unit, symbol)

    monkeypatch.setattr(kernels, "compile_unit", counted)
    return names


def test_equal_kernels_are_compiled_once(compiled: list[str]) -> None:
    library = weft.build(program())
    check(library)
    assert compiled == ["one"]
    assert list(library) == ["main"]
    assert [trace.sym_name.data for trace in library.traces] == ["default_one", "default_two"]
    assert 'sched.get_block "Y" in @two' in library.trace


def test_other_kernels_are_others(compiled: list[str]) -> None:
    check(weft.build(program(two=elementwise("two", "mulf", constant="2.0"))), 6.0)
    assert compiled == ["one", "two"]


def test_traces_replay_on_the_model() -> None:
    library = weft.build(program(two=elementwise("two", "addf")))
    for trace in library.traces:
        weft.Schedule(program(two=elementwise("two", "addf"))).replay(trace)


def test_a_second_build_compiles_nothing(compiled: list[str], cache: CompileCache) -> None:
    first = weft.build(program())
    check(first)
    assert compiled == ["one"] and len(cache.entries()) == 1
    second = weft.build(program())
    check(second)
    assert compiled == ["one"] and len(cache.entries()) == 1
    assert second.trace == first.trace and second.get_source("ll") == first.get_source("ll")
    # Another model that has the kernel too, under another name.
    check(weft.build(program(elementwise("one", "addf", constant="0.0"))), 3.0)
    assert compiled == ["one", "one"]


@pytest.mark.parametrize(
    "change", ["target", "default_schedule", "threads", "another weft", "no cache", "switched off"]
)
def test_what_an_entry_is_not_taken_for(
    change: str, compiled: list[str], cache: CompileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    weft.build(program())
    options: dict[str, object] = {}
    match change:
        case "target":
            options["target"] = "llvm -opt-level=1"
        case "threads":
            options["target"] = f"llvm -num-threads={weft.Target('llvm').num_threads + 1}"
        case "default_schedule":
            options["default_schedule"] = False
        case "another weft":
            monkeypatch.setattr(compile_cache, "compiler_fingerprint", lambda: "another")
        case "no cache":
            options["cache"] = False
        case _:
            monkeypatch.setenv("WEFT_CACHE", "0")
    check(weft.build(program(), **options))  # pyright: ignore
    assert compiled == ["one", "one"]
    assert len(cache.entries()) == (1 if "cache" in change or "off" in change else 2)


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed"])
def test_a_damaged_entry_is_compiled_again(damage: str, compiled: list[str], cache: CompileCache) -> None:
    weft.build(program())
    (entry,) = cache.entries()
    data = entry.path.read_bytes()
    entry.path.write_bytes({"truncated": data[:100], "empty": b"", "changed": data[:-9] + b"corrupted"}[damage])
    check(weft.build(program()))
    assert compiled == ["one", "one"]
    check(weft.build(program()))
    assert compiled == ["one", "one"]


def test_the_entry_of_another_kernel_is_compiled_again(compiled: list[str], cache: CompileCache) -> None:
    weft.build(program(two=elementwise("two", "addf")))
    first, second = (entry.path for entry in cache.entries())
    first.write_bytes(second.read_bytes())
    second.unlink()
    check(weft.build(program(two=elementwise("two", "mulf", constant="1.0"))), 3.0)
    assert compiled.count("one") == 2


def test_a_folder_that_cannot_be_written(
    compiled: list[str], tmp_path: Path, cache: CompileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match=" is off: .* is no folder"):
        check(weft.build(program()))
    check(weft.build(program()))
    assert compiled == ["one", "one"]


def test_a_small_limit_keeps_the_latest(cache: CompileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "1")
    check(weft.build(program()))
    assert not cache.entries()


def test_registered_rules_are_not_cached(
    compiled: list[str], cache: CompileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "names_with_rules", lambda: frozenset(("exp",)))
    check(weft.build(program()))
    assert compiled == ["one"] and not cache.entries()


def test_an_error_shows_the_place_in_the_model() -> None:
    wrong = elementwise("two").replace("= [%i]", "= [%i * 2]")
    with pytest.raises(CompileError, match="do not cover the domain") as caught:
        weft.build(program(two=wrong))
    assert caught.value.location is not None and caught.value.location.line == 33


@pytest.mark.slow
def test_other_processes_compile_too(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # Intrinsics and rules that other tests have registered would keep all work in this process.
    monkeypatch.setattr(kernels, "intrinsics", dict)
    monkeypatch.setattr(kernels, "names_with_rules", tuple)
    monkeypatch.setattr(kernels, "WORTH_A_PROCESS", 1e-9)
    monkeypatch.setattr(kernels, "host_cores", lambda: 2)
    # This process waits for the other one.
    compile_here, helped = kernels._Compilation._compile, []

    def waiting(self: kernels._Compilation, kernel: ModelKernel) -> None:
        compile_here(self, kernel)
        if len(compiled) == 1:
            self._get_help(1.0)
            for thread in self._threads:
                thread.join()
            helped.append(kernel.symbol)

    call = Worker.call
    replies: list[object] = []

    def recorded(worker: Worker, *request: object) -> object:
        try:
            replies.append(call(worker, *request))
        except Exception as error:
            replies.append(error)
            raise
        return replies[-1]

    monkeypatch.setattr(kernels._Compilation, "_compile", waiting)
    monkeypatch.setattr(Worker, "call", recorded)
    alone = weft.build(program(two=elementwise("two", "addf")), cache=False)
    assert compiled == ["one"] and len(helped) == 1, replies
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(alone["main"](x), x * 3 + 3)
    assert [trace.sym_name.data for trace in alone.traces] == ["default_one", "default_two"]


@pytest.mark.slow
def test_a_process_starts_before_a_graph_is_lowered(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "intrinsics", dict)
    monkeypatch.setattr(kernels, "names_with_rules", tuple)
    monkeypatch.setattr(kernels, "host_cores", lambda: 2)
    monkeypatch.setattr(kernels, "WORTH_A_PROCESS", 0.1)  # seconds; the model has five operators of 0.05
    compile_here = kernels._Compilation._compile

    def waiting(self: kernels._Compilation, kernel: ModelKernel) -> None:
        for thread in self._threads:
            thread.join()
        compile_here(self, kernel)

    monkeypatch.setattr(kernels._Compilation, "_compile", waiting)
    library = weft.build(model(96), cache=False)
    assert len(compiled) == 1  # the other process has compiled softmax
    x = np.random.default_rng(1).standard_normal((5, 96), np.float32)
    alone = weft.build(model(96), cache=False)
    np.testing.assert_array_equal(library["main"](x), alone["main"](x))


@pytest.mark.slow
def test_a_process_that_ends_is_made_up_for(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "WORTH_A_PROCESS", 1e-9)
    monkeypatch.setattr(kernels, "host_cores", lambda: 2)
    monkeypatch.setattr(kernels, "compile_text", sys.exit)
    check(weft.build(program()))
    check(weft.build(program(two=elementwise("two", "mulf", constant="1.0"))), 3.0)


@pytest.mark.slow
def test_two_processes_at_once(cache: CompileCache, tmp_path: Path) -> None:
    script = tmp_path / "build.py"
    script.write_text(
        "import sys, numpy as np, weft\n"
        "x = np.arange(7, dtype=np.float32)\n"
        "library = weft.build(sys.stdin.read())\n"
        "assert (library['main'](x) == x * 9).all()\n"
    )
    running = [subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE) for _ in range(2)]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(str(program()).encode())
        process.stdin.close()
    assert [process.wait() for process in running] == [0, 0]
    assert len(cache.entries()) == 1
    check(weft.build(program()))


def model(n: int = 24) -> ModuleOp:
    """Two dense layers; some kernels are parallel and some use memory."""
    rng = np.random.default_rng(0)
    bb = G.BlockBuilder()
    x = G.var("x", ("n", n), "float32")
    with bb.function("main", [x]):
        with bb.dataflow():
            h = x
            for _ in range(2):
                h = bb.emit(G.relu(G.matmul(h, G.const(rng.standard_normal((n, n), np.float32)))))
            out = bb.emit_output(bb.emit(G.softmax(h)))
        bb.emit_func_output(out)
    return bb.get()


def test_constants_are_packed_for_kernels_from_the_cache(compiled: list[str], cache: CompileCache) -> None:
    x = np.random.default_rng(1).standard_normal((5, 96), np.float32)
    first = weft.build(model(96))
    names = list(compiled)
    second = weft.build(model(96))
    assert compiled == names and len(names) == 2  # relu(x @ w), once, and softmax
    for library in (first, second):
        assert library.get_source("ll").count("_packed = private unnamed_addr constant") == 2
        assert not re.search(r"call void @kernel_\w+_packing0", library.get_source("ll"))
    np.testing.assert_array_equal(first["main"](x), second["main"](x))
    assert [trace.sym_name.data for trace in second.traces] == [trace.sym_name.data for trace in first.traces]
    assert len(first.report().rows) == 2 and first.report().rows[0].calls == 2


def test_exports_hold_the_kernels(tmp_path: Path) -> None:
    library = weft.build(program(two=elementwise("two", "addf")))
    x = np.arange(7, dtype=np.float32)
    loaded = weft.load(library.export(tmp_path / "libmodel.so"))
    np.testing.assert_array_equal(loaded["main"](x), x * 3 + 3)
    text = library.get_source("ll")
    assert text.count("define void @kernel_") == 2 and "define void @weft_function_main(" in text


@pytest.mark.slow
def test_exports_of_every_kind(tmp_path: Path) -> None:
    library = weft.build(model())
    x = np.random.default_rng(1).standard_normal((5, 24), np.float32)
    expected = library["main"](x)
    for suffix in ("o", "a", "ll", "s"):
        library.export(tmp_path / f"model.{suffix}")
    loaded = weft.load(library.export(tmp_path / "libmodel.so"))
    np.testing.assert_array_equal(loaded["main"](x), expected)
    assert "kernel_" in library.get_source("asm")
    whole = weft.build(model(), checked=True)  # compiled as one module
    np.testing.assert_allclose(whole["main"](x), expected, rtol=1e-5, atol=1e-6)
    assert list(library) == ["main"]


def test_user_schedules_stay_in_the_module(compiled: list[str]) -> None:
    schedule = 'sched.func @s {\n %b = sched.get_block "Y" in @one : block\n %i = sched.get_loops %b : loop\n }'
    library = weft.build(TIR.format(one=elementwise("one"), two=elementwise("two")) + schedule)
    check(library)
    assert compiled == ["two"]
