"""Kinds of target that are registered: names, what a backend gives, and what stays weft's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.dialects.low_signature import signature_of
from weft.runtime.library import CallableLibrary
from weft.support.target import TargetKind, register_target_kind, unregister_target_kind

PROGRAM = """
func.func @zero(%A: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %A, %c0 : memref<?x4xf32>
  tir.for %i in %n { tir.for %j in 4 {
    tir.block "A" iters(%vi: spatial<%n>, %vj: spatial<4>) = [%i, %j] {
      memref.store %zero, %A[%vi, %vj] : memref<?x4xf32> }
  } }
  func.return
}"""
SEEN: list[str] = []


def load(module: ModuleOp, target: weft.Target) -> CallableLibrary:
    """A processor that zeroes arrays, whatever the program says."""

    def run(values: object) -> None:
        array, rows = values  # pyright: ignore[reportGeneralTypeIssues]
        SEEN.append(f"{array.size} elements in {rows} rows")
        array[...] = 0

    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    return CallableLibrary({signature_of(f): run for f in functions}, {"text": str(module)}, target)


@pytest.fixture(name="kind")
def _kind() -> Iterator[TargetKind]:
    kind = register_target_kind(TargetKind("npu", load, {"global.scratch": 64}))
    yield kind
    unregister_target_kind("npu")


def test_programs_reach_the_backend(kind: TargetKind) -> None:
    lib = weft.build(weft.parse(PROGRAM), target="npu")
    array = np.ones((3, 4), np.float32)
    lib["zero"](array)
    assert not array.any()
    assert SEEN[-1] == "12 elements in 3 rows"
    assert "low.params" in lib.get_source() and list(lib) == ["zero"] and "zero" in lib
    assert str(weft.Target("npu")).startswith("npu ") and not weft.Target("npu").has_kernels
    with pytest.raises(ValueError, match="'A'"):
        lib["zero"](np.ones((3, 5), np.float32))


def test_parts_of_arrays(kind: TargetKind) -> None:
    lib = weft.build(weft.parse(PROGRAM), target="npu")
    whole = np.ones((6, 4), np.float32)
    lib["zero"](A=whole[:3])
    assert not whole[:3].any() and whole[3:].all()


def test_names(kind: TargetKind) -> None:
    with pytest.raises(weft.CompileError, match="a target kind 'npu' is registered already; override=True replaces it"):
        register_target_kind(kind)
    register_target_kind(kind, override=True)
    with pytest.raises(weft.CompileError, match="target kind 'llvm' is weft's own"):
        register_target_kind(TargetKind("llvm", load))
    with pytest.raises(weft.CompileError, match=r"named by letters, digits and _, got 'my npu'"):
        TargetKind("my npu", load)
    with pytest.raises(weft.CompileError, match=r"scope 'global.s' must have at least 1 byte, got 0"):
        TargetKind("npu", load, {"global.s": 0})
    with pytest.raises(weft.CompileError, match=r"unknown target kind 'npux'.*npu"):
        weft.Target("npux")
    with pytest.raises(weft.CompileError, match="no target kind 'other' is registered"):
        unregister_target_kind("other")


def test_a_backend_gives_a_library() -> None:
    register_target_kind(TargetKind("broken", lambda module, target: "text"))
    try:
        with pytest.raises(weft.CompileError, match="target kind 'broken' must load a weft Library, got str"):
            weft.build(weft.parse(PROGRAM), target="broken")
    finally:
        unregister_target_kind("broken")


def test_intrinsics_have_rules_for_registered_kinds(kind: TargetKind) -> None:
    @weft.register_lowering("npu_only", target="npu")
    def rule(call: object) -> str:
        return "npu_function"

    assert rule(None) == "npu_function"
    with pytest.raises(weft.CompileError, match="unknown target kind 'npux' for the lowering of 'f'"):
        weft.register_lowering("f", target="npux")


def test_constructors_check_the_contents_of_mappings() -> None:
    with pytest.raises(TypeError, match="TargetKind: argument 'scopes' must be a mapping from str to int, got"):
        weft.TargetKind("npu", print, scopes={"global.A": "big"})  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="Library: argument 'sources' must be a mapping from str to str, got"):
        weft.Library({"ll": 5}, [], weft.Target("llvm"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="Library: argument 'target' must be Target, got 'llvm' of type str"):
        weft.Library({"ll": ""}, [], "llvm")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"signatures": 5}, "'signatures' must be a sequence of Signature, got 5 of type int"),
        ({"signatures": [5]}, r"'signatures' must be a sequence of Signature, got \[5\] of type list"),
        ({"signatures": [], "options": 3}, "'options' must be CodegenOptions or None, got 3 of type int"),
    ],
)
def test_libraries_check_what_they_take(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"Library: argument {message}"):
        weft.Library({"ll": ""}, target=weft.Target("llvm"), **keywords)


@pytest.mark.parametrize(("passes", "given"), [(5, "5 of type int"), (("cse",), r"\('cse',\) of type tuple")])
def test_target_kinds_check_their_passes(passes: Any, given: str) -> None:
    with pytest.raises(TypeError, match=f"TargetKind: argument 'passes' must be a sequence of ModulePass, got {given}"):
        weft.TargetKind("npu", print, passes=passes)


def test_libraries_take_signatures_of_any_iterable() -> None:
    assert list(weft.Library({"ll": ""}, iter(()), weft.Target("llvm"))) == []
