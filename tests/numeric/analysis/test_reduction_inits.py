"""Reductions whose init and updates access different elements: every target runs the init where it stands, and a
schedule step is refused or keeps the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import Schedule, ScheduleError
from weft.frontends.script.regions import state_regions
from weft.interp.compare import Reference
from weft.script import parse, script

Array = np.ndarray[Any, Any]
Place = Callable[[int], int]
BATCH, ROWS, STEPS, WIDTH = 2, 4, 3, 12
LOOPS = {
    "rows": ("tir.for %i in 4 { tir.for %k in 3 {", "%i, %k", "} }"),
    "columns": ("tir.for %k in 3 { tir.for %i in 4 {", "%i, %k", "} }"),
    "fused": ("tir.for %f in 12 {", "%f floordiv 3, %f mod 3", "}"),
}
"""Nests of a block with one spatial and one reduce iterator: text, bindings, end."""


@dataclass(frozen=True)
class Program:
    """`C[update(i)] += A[i, k]` for each batch. The init stores 0 to `C[init(i)]`, for all `inits`, if `i < limit`."""

    update: str
    inits: tuple[str, ...]
    limit: int = ROWS

    def text(self, loops: str) -> str:
        start, bindings, end = LOOPS[loops]
        stores = "".join(
            f"""
          %z{at} = affine.apply affine_map<(i) -> ({init})>(%vi)
          memref.store %zero, %C[%vb, %z{at}] : memref<2x12xi32>"""
            for at, init in enumerate(self.inits)
        )
        if self.limit < ROWS:
            stores = f"%runs = arith.cmpi slt, %vi, %limit : index\nscf.if %runs {{ {stores} }}"
        return f"""
    func.func @main(%A: memref<2x4x3xi32>, %C: memref<2x12xi32>) {{
      %zero = arith.constant 0 : i32
      %limit = arith.constant {self.limit} : index
      tir.for %b in 2 {{ {start}
        tir.block "C" iters(%vb: spatial<2>, %vi: spatial<4>, %vk: reduce<3>) = [%b, {bindings}] {{
          tir.init {{ {stores} }}
          %x = affine.apply affine_map<(i) -> ({self.update})>(%vi)
          %a = memref.load %A[%vb, %vi, %vk] : memref<2x4x3xi32>
          %c = memref.load %C[%vb, %x] : memref<2x12xi32>
          %s = arith.addi %c, %a : i32
          memref.store %s, %C[%vb, %x] : memref<2x12xi32>
        }} {end} }}
      func.return
    }}"""

    def run(self, loops: str, a: Array, c: Array) -> None:
        """What the loops of the program do to `c`."""
        update, inits = place(self.update), [place(init) for init in self.inits]
        order = [(i, k) for i in range(ROWS) for k in range(STEPS)]
        for batch in range(BATCH):
            for i, k in sorted(order, key=lambda step: step[1]) if loops == "columns" else order:
                for init in inits if k == 0 and i < self.limit else ():
                    c[batch, init(i)] = 0
                c[batch, update(i)] += a[batch, i, k]


def place(text: str) -> Place:
    return eval(f"lambda i: {text.replace('floordiv', '//').replace('mod', '%')}")


PROGRAMS = {
    "shifted": Program("i + 1", ("i",)),
    "shifted back": Program("i", ("i + 2",)),
    "reversed": Program("3 - i", ("i",)),
    "strided": Program("i * 2", ("i",)),
    "apart": Program("i + 4", ("i",)),
    "rotated": Program("(i + 1) mod 4", ("i",)),
    "under a condition": Program("i", ("i",), limit=2),
    "two stores": Program("i + 1", ("i", "i + 1")),
    "halves": Program("i floordiv 2", ("i",)),
}


CASES = list(product(LOOPS, PROGRAMS))


def module_of(name: str, loops: str) -> ModuleOp:
    return weft.parse(PROGRAMS[name].text(loops))


def arguments() -> tuple[Array, Array]:
    return (
        np.arange(1, 1 + BATCH * ROWS * STEPS, dtype="int32").reshape(BATCH, ROWS, STEPS),
        np.full((BATCH, WIDTH), 100, "int32"),
    )


def expected(name: str, loops: str) -> Array:
    a, c = arguments()
    PROGRAMS[name].run(loops, a, c)
    return c


def check(name: str, loops: str, function: Callable[..., object]) -> None:
    a, c = arguments()
    function(a, c)
    np.testing.assert_array_equal(c, expected(name, loops), f"{name}, {loops}")


@pytest.mark.parametrize("loops", LOOPS)
def test_interpreted_and_lowered(loops: str) -> None:
    for name in PROGRAMS:
        module = module_of(name, loops)
        check(name, loops, partial(weft.Interpreter(module).call, "main"))
        library = weft.build(module, target="llvm -opt-level=0", default_schedule=name == "shifted")
        check(name, loops, library["main"])


@pytest.mark.parametrize("name", first_tier(PROGRAMS, "shifted"))
def test_c(name: str) -> None:
    check(name, "fused", weft.build(module_of(name, "fused"), target="c")["main"])


@pytest.mark.parametrize("name", first_tier(PROGRAMS, "reversed"))
def test_opencl(name: str) -> None:
    pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
    sch = Schedule(module_of(name, "columns"))
    sch.bind(sch.get_loops("C")[0], "blockIdx.x")
    check(name, "columns", weft.build(sch.mod, target="opencl -opt-level=0")["main"])


def steps(sch: Schedule) -> Iterator[Callable[[Schedule], object]]:
    """Steps that move the init of a block, copy its accumulator, or run its instances in another order."""
    for at in range(len(sch.get_loops("C"))):
        yield lambda s, at=at: s.decompose_reduction("C", s.get_loops("C")[at])
        yield lambda s, at=at: s.blockize(s.get_loops("C")[at])
        yield lambda s, at=at: s.rfactor(s.get_loops("C")[at], 0)
        yield lambda s, at=at: s.write_at(s.get_loops("C")[at], "C", 0, "local")
        yield lambda s, at=at: s.parallel(s.get_loops("C")[at])
        yield lambda s, at=at: s.vectorize(s.get_loops("C")[at])
        yield lambda s, at=at: s.bind(s.get_loops("C")[at], "threadIdx.x")
        yield lambda s, at=at: s.loop_partition(s.get_loops("C")[at], [1, None])
    yield lambda s: s.cache_write("C", 0, "local")
    yield lambda s: s.reindex("C", ("write", 0))
    yield lambda s: s.fuse(*s.get_loops("C"))
    yield lambda s: s.reorder(*reversed(s.get_loops("C")))
    yield lambda s: s.transform_block_layout("C", lambda b, i, k: (i, b, k))
    yield lambda s: s.pad_einsum("C", [1, 1, 2])


@pytest.mark.parametrize("case", first_tier(CASES, ("rows", "shifted"), ("fused", "under a condition")), ids=str)
def test_steps_are_refused_or_keep_the_result(case: tuple[str, str]) -> None:
    loops, name = case
    module = module_of(name, loops)
    reference = Reference(module)
    refused = 0
    for step in steps(Schedule(module)):
        sch = Schedule(module)
        try:
            step(sch)
        except ScheduleError as error:
            assert error.violation.kind == error.violation.claim, error
            refused += 1
            continue
        found = reference.compare(sch.mod)
        assert not found, f"{sch.trace}\n{found}"
    assert refused > 5


SCRIPT = """
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, jk in T.grid(8, 64):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, jk // 8)
            vk = T.axis.reduce(8, jk % 8)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj + 1] = C[vi, vj + 1] + A[vi, vk]
"""


def test_a_script_without_a_schedule() -> None:
    """Each init wipes out the sum before it; the last sum starts from what is there, which stated regions tell."""
    c = np.full((8, 16), 7, "float32")
    weft.build(parse(SCRIPT), target="llvm -opt-level=0")["f"](np.ones((8, 8), "float32"), c)
    np.testing.assert_array_equal(c, [[0] * 8 + [15] + [7] * 7] * 8)
    module = parse(SCRIPT)
    state_regions(module)
    assert "T.reads(A[vi, vk], C[vi, vj + 1])" in script(module)


def test_two_combiners_of_one_accumulator_do_not_commute() -> None:
    """`min(C + a, k)`, in another order of the steps, is another value."""
    text = (
        Program("i", ("i",))
        .text("rows")
        .replace(
            "memref.store %s, %C[%vb, %x] : memref<2x12xi32>",
            """memref.store %s, %C[%vb, %x] : memref<2x12xi32>
          %d = memref.load %C[%vb, %x] : memref<2x12xi32>
          %w = arith.index_cast %vk : index to i32
          %m = arith.minsi %d, %w : i32
          memref.store %m, %C[%vb, %x] : memref<2x12xi32>""",
        )
    )
    sch = Schedule(weft.parse(text))
    outer, inner = sch.split(sch.get_loops("C")[2], [None, 2])
    with pytest.raises(ScheduleError, match="requirement 3, dependences stay forward"):
        sch.reorder(inner, outer)
    with pytest.raises(ScheduleError, match="how it combines a term into its accumulators is not understood"):
        sch.rfactor(outer, 0)


@pytest.mark.parametrize("inits", [("i * 2 floordiv 2 + 1",), ("i + 1", "i + 6")])
def test_what_an_init_starts_decomposes(inits: tuple[str, ...]) -> None:
    """The same element in another form, or more than what is updated."""
    sch = Schedule(weft.parse(Program("i + 1", inits).text("rows")))
    reference = Reference(sch.mod)
    sch.decompose_reduction("C", sch.get_loops("C")[0])
    assert not reference.compare(sch.mod)
