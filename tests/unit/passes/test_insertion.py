"""Passes of users at named points of the lowering: where they run, and what is said when that cannot be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

import weft
from weft import te
from weft.passes.insertion import with_insertions
from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.pass_sequence import points_of
from weft.passes.pipelines import tir_to_low

PAGE = Path(__file__).parents[3] / "docs" / "inserting-passes.md"


@dataclass(frozen=True)
class WatchPass(ModulePass):
    """Notes which ops it meets."""

    name = "watch"

    seen: list[set[str]] = field(default_factory=list)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.seen.append({inner.name for inner in op.walk()})


@dataclass(frozen=True)
class AddToMulPass(ModulePass):
    """A pass that shows: sums become products."""

    name = "add-to-mul"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for add in [inner for inner in op.walk() if isinstance(inner, arith.AddfOp)]:
            Rewriter.replace_op(add, arith.MulfOp(add.lhs, add.rhs))


@dataclass(frozen=True)
class BreakPass(ModulePass):
    """Leaves a value out of its scope."""

    name = "break-it"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        store = next(inner for inner in op.walk() if isinstance(inner, memref.StoreOp))
        store.detach()
        function = next(iter(op.ops))
        block = function.regions[0].block
        block.insert_op_before(store, block.first_op)


def program(vector: bool = True) -> ModuleOp:
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 3.0, name="B")
    sch = weft.Schedule(te.create_func([a, b], name="f"))
    if vector:
        sch.vectorize(sch.split(sch.get_loops("B")[0], [None, 8])[1])
    return sch.mod


def run(library: weft.Library) -> np.ndarray:
    x = np.arange(16, dtype=np.float32)
    out = np.empty_like(x)
    library["f"](x, out)
    return out


def test_a_pass_runs_where_it_is_put() -> None:
    watch = WatchPass()
    library = weft.build(
        program(), passes={"before:vectorize": watch, "after:vectorize": [watch], "before:place-buffers": watch}
    )
    np.testing.assert_array_equal(run(library), np.arange(16) + 3)
    first, before, after = watch.seen
    assert "tir.block" in first and "tir.block" not in before
    assert "memref.load" in before and "vector.load" not in before
    assert "vector.load" in after


def test_what_it_does_is_compiled() -> None:
    library = weft.build(program(), passes={"before:vectorize": [AddToMulPass(), "cse"]})
    np.testing.assert_array_equal(run(library), np.arange(16) * 3)


def test_stage_schedules_take_passes() -> None:
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 3.0, name="B")
    library = weft.build(te.create_schedule(b.op), [a, b], name="f", passes={"after:flatten": AddToMulPass()})
    np.testing.assert_array_equal(run(library), np.arange(16) * 3)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        (
            {"before:vectorise": "cse"},
            r"no step is called 'vectorise', did you mean 'vectorize'.*in order: place-buffers",
        ),
        ({"vectorize": "cse"}, "passes are inserted at before:POINT or after:POINT, got 'vectorize'"),
        ({"at:vectorize": "cse"}, "got 'at:vectorize'"),
        ({"before:vectorize": "csee"}, "unknown pass 'csee', did you mean 'cse'"),
        ({"before:vectorize": 3}, "expected a pass, its name or a list of them, got 3"),
        ({"before:vectorize": BreakPass()}, "pass 'break-it' left IR that does not verify"),
    ],
)
def test_misuse(passes: dict[str, object], message: str) -> None:
    with pytest.raises(weft.CompileError, match=message):
        weft.build(program(), passes=passes)


def test_points_have_names_of_their_own() -> None:
    twice = [LowCanonicalizePass(), LowCanonicalizePass()]
    assert points_of(twice) == ["canonicalize", "canonicalize-2"]
    watch = WatchPass()
    steps = with_insertions(twice, {"before:canonicalize-2": watch})
    assert [step.run.name for step in steps] == ["low-canonicalize", "watch", "low-canonicalize"]
    assert [step.point for step in steps] == ["canonicalize", None, "canonicalize-2"]


@pytest.mark.parametrize("target", ["llvm", "cuda"])
def test_the_page_lists_every_point(target: str) -> None:
    table = PAGE.read_text().partition(f"<!-- points: {target} -->")[2].strip().partition("\n\n")[0]
    listed = [tuple(cell.strip(" `") for cell in row.split("|")[1:3]) for row in table.splitlines()[2:]]
    passes = tir_to_low(target)
    assert listed == list(zip(points_of(passes), [module_pass.name for module_pass in passes], strict=True))
