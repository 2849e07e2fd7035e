"""Arguments of public calls are checked by one decorator: messages name argument, expectation and value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import te
from weft.support.argument_types import checked


def schedule() -> weft.Schedule:
    a = te.placeholder((16, 16), name="A")
    b = te.compute((16, 16), lambda i, j: a[i, j] + 1.0, name="B")
    return weft.Schedule(te.create_func([a, b], name="f"))


def deep(depth: int) -> list[Any]:
    return [deep(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda s, i: s.split(i, [None, 3.5]), TypeError, r"split: argument 'factors' must be .*, got \[None, 3.5\]"),
        (lambda s, i: s.split(i, [None, 2**64]), ValueError, "'factors' takes integers of at most 64 bits, got"),
        (lambda s, i: s.split(i, factorz=[1]), TypeError, "split: unknown keyword 'factorz', did you mean 'factors'"),
        (lambda s, i: s.split(i), TypeError, "split: missing a required argument: 'factors'; it takes"),
        (lambda s, i: s.reorder(i, 3), TypeError, "reorder: argument 'loops' must be LoopHandle, got 3 of type int"),
        (lambda s, i: s.get(5), TypeError, "get: argument 'handle' must be BlockHandle or LoopHandle or IntHandle"),
        (lambda s, i: s.replay(3), TypeError, "replay: argument 'trace' must be FuncOp, got 3"),
        (lambda s, i: s.set_scope(3, 0, "local"), TypeError, "set_scope: argument 'block' must be BlockHandle or str"),
        (lambda s, i: s.rfactor("B", 0), TypeError, "rfactor: argument 'loop' must be LoopHandle, got 'B'"),
        (lambda s, i: s.annotate(i, "x", [[2**70]]), ValueError, "'ann_val' takes integers of at most 64 bits, got"),
        (lambda s, i: s.annotate(i, "x", {"k": [2**70]}), ValueError, "'ann_val' takes integers of at most 64 bits"),
        (lambda s, i: s.annotate(i, "x", deep(99)), TypeError, "annotate: argument 'ann_val' must be"),
        (lambda s, i: s.transform_block_layout("B", 1), TypeError, "'index_map' must be a function or AffineMap"),
        (
            lambda s, i: s.transform_layout("B", ("write", 0), lambda *, k: k),
            weft.CompileError,
            "takes indices only, but needs the keyword k=",
        ),
        (
            lambda s, i: s.transform_layout("B", ("write", 0), lambda a, b, c: a),
            weft.CompileError,
            "the index map takes 3 indices, there are 2",
        ),
        (lambda s, i: s.sample_perfect_tile(i, 2**40), weft.ScheduleError, "`n` is 1 to 64"),
    ],
)
def test_methods_of_schedules(call: Callable[..., object], kind: type[Exception], message: str) -> None:
    sch = schedule()
    i, _ = sch.get_loops("B")
    before = str(sch.mod), str(sch.trace)
    with pytest.raises(kind, match=message):
        call(sch, i)
    assert (str(sch.mod), str(sch.trace)) == before


def test_numbers_of_numpy_are_numbers() -> None:
    sch = schedule()
    _, inner = sch.split(sch.get_loops("B")[0], [None, np.int64(4)])
    sch.annotate(inner, "weight", np.float32(0.5))
    assert "factors = [0, 4]" in str(sch.trace) and "weight = 5.000000e-01" in str(sch.mod)


def test_what_build_takes(tmp_path: Path) -> None:
    text = "func.func @f(%a: memref<4xf32>) { func.return }"
    file = tmp_path / "f.mlir"
    file.write_text(text)
    for program in (text, file):
        assert list(weft.build(program)) == ["f"]
    module = weft.parse(text)
    for program, given in ((None, "None"), (5, "5"), ([module], r"\[<ModuleOp")):
        with pytest.raises(TypeError, match=f"build: argument 'program' must be a module, .*, got {given}"):
            weft.build(program)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="build: argument 'target' must be Target or str, got 7"):
        weft.build(module, target=7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(weft.CompileError, match=r"a target is written kind -option=value .*: No closing quotation"):
        weft.build(module, target="llvm 'x")
    for file in ("x.mlir", "x.onnx"):
        with pytest.raises(ValueError, match=rf"MLIR text; a file is given as pathlib.Path\('{file}'\)"):
            weft.build(file)


def test_shapes_have_limits() -> None:
    with pytest.raises(weft.CompileError, match=r"at most 2\^59 elements, got an integer of 71 bits"):
        te.placeholder((2**70,), name="A")
    with pytest.raises(weft.CompileError, match="at most 64 dimensions, got 300"):
        te.placeholder((1,) * 300, name="A")


def test_targets_read_options() -> None:
    host = weft.Target()
    assert weft.Target("llvm -mcpu=native") == host == weft.Target(cpu="native")
    assert weft.Target("llvm -mcpu=haswell", num_threads=3) == weft.Target.parse("llvm -mcpu=haswell -num-threads=3")
    with pytest.raises(weft.CompileError, match="target option num-threads is given twice"):
        weft.Target("llvm -num-threads=3", num_threads=2)
    with pytest.raises(weft.CompileError, match="-mcpu=native is the CPU of this machine"):
        weft.Target("llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=native")
    with pytest.raises(TypeError, match="Target: argument 'opt_level' must be int, got 'x' of type str"):
        weft.Target(opt_level="x")  # pyright: ignore[reportArgumentType]


def test_generic_classes_are_checked() -> None:
    """`os.PathLike[str]` is no class, and was not checked."""
    with pytest.raises(TypeError, match=r"tune: argument 'program' must be ModuleOp or str or PathLike, got \(1,\)"):
        weft.tune((1,))  # pyright: ignore[reportArgumentType]


def test_keyword_of_a_positional_only_parameter() -> None:
    @checked
    def scaled(value: int, /, by: int = 2, **others: int) -> int:
        return value * by + len(others)

    assert scaled(3, value=1) == 7
    with pytest.raises(TypeError, match=r"scaled: .*positional.only.*it takes \(value: int"):
        scaled(value=3)  # pyright: ignore[reportCallIssue]
