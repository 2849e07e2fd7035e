"""Builds leave nothing behind: no Python objects, no entries of caches without a bound, none of LLVM's objects."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from functools import _lru_cache_wrapper
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite.binding.newpassmanagers import NewPassManager

import weft
from weft.backends.llvm import compile, jit
from weft.backends.llvm.pass_selection import PassSelection
from weft.support.target import Target

BUILDS = 20

PROGRAM = """
func.func @f{number}(%A: memref<16x{n}xf32>, %B: memref<16x{n}xf32>) {{
  %cst = arith.constant 2.0 : f32
  tir.for %i in 16 {{ tir.for %j in {n} {{
    tir.block "B" iters(%vi: spatial<16>, %vj: spatial<{n}>) = [%i, %j] {{
      %a = memref.load %A[%vi, %vj] : memref<16x{n}xf32>
      %0 = arith.mulf %a, %cst : f32
      memref.store %0, %B[%vi, %vj] : memref<16x{n}xf32>
    }} }} }}
  func.return
}}"""


def build(numbers: range) -> None:
    """Programs of other names; shapes repeat, since caches with a bound hold attributes of shapes."""
    for number in numbers:
        library = weft.build(PROGRAM.format(number=number, n=8 + number % 4), target="llvm -num-threads=1")
        assert library[f"f{number}"].signature.name == f"f{number}"


def objects() -> Counter[str]:
    gc.collect()
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects())


def caches_without_bound() -> dict[str, int]:
    """The sizes of the caches of weft's functions and methods."""
    found: dict[str, int] = {}
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "weft"]
    for module in modules:
        owners: list[Any] = [module, *(value for value in vars(module).values() if isinstance(value, type))]
        for value in (value for owner in owners for value in vars(owner).values()):
            function = getattr(value, "__func__", value)
            if isinstance(function, _lru_cache_wrapper) and function.cache_info().maxsize is None:
                found[f"{function.__module__}.{function.__qualname__}"] = function.cache_info().currsize
    return found


@pytest.mark.slow
def test_builds_leave_nothing_behind() -> None:
    build(range(8))
    cached, before = caches_without_bound(), objects()
    assert len(cached) > 20
    build(range(8, 8 + BUILDS))
    after = objects()
    assert caches_without_bound() == cached
    grown = {kind: count - before[kind] for kind, count in after.items()}
    assert not {kind: count for kind, count in grown.items() if count >= BUILDS}


SQUARE = """define void @square(ptr %p) {
  %x = load float, ptr %p
  %y = fmul float %x, %x
  store float %y, ptr %p
  ret void
}"""


def code() -> jit.JitModule:
    return jit.jit(SQUARE, Target.of_process(1), {})


def test_linkers_are_closed_when_their_libraries_are_freed() -> None:
    gc.collect()
    before = set(jit.linkers)
    kept = code()
    first = next(linker for linker in jit.linkers if linker.live and linker.links < jit._LINKS)
    for _ in range(3 * jit._LINKS):
        assert code().address("square")
    assert first in jit.linkers and first.links == jit._LINKS and kept.address("square")
    assert len(jit.linkers - before) <= 2
    alive = first.live
    del kept
    gc.collect()
    assert first.live == alive - 1
    assert (first in jit.linkers) == bool(first.live)


def test_linkers_stay_open_while_they_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage collection during the last link of a linker frees its other libraries."""
    gc.collect()
    kept = [code()]
    linker = next(linker for linker in jit.linkers if linker.live and linker.links < jit._LINKS)
    while linker.links < jit._LINKS - 1:
        kept.append(code())
    link = llvm.JITLibraryBuilder.link

    def collecting(builder: llvm.JITLibraryBuilder, engine: llvm.LLJIT, name: str) -> llvm.ResourceTracker:
        if engine is linker.engine:
            kept.clear()
        return link(builder, engine, name)

    monkeypatch.setattr(llvm.JITLibraryBuilder, "link", collecting)
    last = code()
    assert not kept and linker in jit.linkers and last.address("square")
    del last
    gc.collect()
    assert linker not in jit.linkers


def test_pass_managers_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[str] = []
    dispose = NewPassManager._dispose
    monkeypatch.setattr(NewPassManager, "_dispose", lambda self: (freed.append(type(self).__name__), dispose(self)))
    for selection in PassSelection:
        monkeypatch.setattr(compile, "pass_selection_of", lambda text, selection=selection: selection)
        code()
    assert sorted(freed) == sorted(
        "FunctionPassManager" if selection is PassSelection.INVARIANTS else "ModulePassManager"
        for selection in PassSelection
    )
