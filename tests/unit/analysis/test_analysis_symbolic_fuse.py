"""Loops of symbolic extents, fused and split: what the sets say against running through small extents."""

from __future__ import annotations

import itertools
import random

import pytest
from random_tir import function_of_text
from tiers import first_tier
from tir_enumeration import Run, blocks_in, crosses, loops_in, run
from xdsl.dialects.func import FuncOp

from weft.analysis.accesses import domain_of
from weft.analysis.coverage import missed_instance, repeated_instance
from weft.analysis.independence import dependent_iterations, reordered_conflict
from weft.analysis.sets import NotProved
from weft.dialects.tir import ForOp
from weft.passes.schedule.fuse import Fuse
from weft.passes.schedule.reorder import permute_chain
from weft.passes.schedule.split import Split

SIZES = list(itertools.product((-1, 0, 1, 2, 3, 4), (-1, 0, 1, 2, 3)))
CHUNKS = range(6)
PER_CHUNK = 12


def subscript(draw: random.Random, names: list[str]) -> str:
    chosen = draw.sample(names, k=draw.choice([1, 1, 1, 2]))
    offset = draw.choice(["", "", "", " + 1", " - 1"])
    return " + ".join(chosen) + offset


def nest(seed: int) -> FuncOp:
    """Two or three loops, one of them possibly static, around one or two blocks on one or two buffers."""
    draw = random.Random(seed)
    extents = draw.choice([["%n", "%m"], ["%n", "%m"], ["%n", "3", "%m"], ["%n", "%m", "2"], ["%n", "%m", "%m"]])
    names = [f"%v{at}" for at in range(len(extents))]
    iterators = ", ".join(f"{name}: spatial<{extent}>" for name, extent in zip(names, extents, strict=True))
    loops = [f"tir.for %l{at} in {extent} {{" for at, extent in enumerate(extents)]
    bindings = ", ".join(f"%l{at}" for at in range(len(extents)))
    store = ", ".join(names[:2] if draw.random() < 0.6 else [subscript(draw, names) for _ in range(2)])
    load = ", ".join(subscript(draw, names) for _ in range(2))
    target = draw.choice(["%P", "%Q", "%Q"])
    return function_of_text(
        f"""
func.func @f(%P: memref<?x?xi32>, %Q: memref<?x?xi32>, %n: index, %m: index) {{
  {" ".join(loops)}
    tir.block "B" iters({iterators}) = [{bindings}] {{
      %s0, %s1 = "test.indices"() : () -> (index, index)
      %x = memref.load %P[%s0, %s1] : memref<?x?xi32>
      memref.store %x, {target}[%s0, %s1] : memref<?x?xi32>
    }}
  {"}" * len(loops)}
  func.return
}}""".replace('%s0, %s1 = "test.indices"() : () -> (index, index)', indices(load, "r") + indices(store, "w"))
        .replace(
            "%P[%s0, %s1] : memref<?x?xi32>\n      memref.store", "%P[%r0, %r1] : memref<?x?xi32>\n      memref.store"
        )
        .replace("[%s0, %s1]", "[%w0, %w1]")
    )


def indices(text: str, prefix: str) -> str:
    """`affine.apply` ops for a list of subscripts."""
    lines: list[str] = []
    for at, expression in enumerate(text.split(", ")):
        names = sorted({part for part in expression.split() if part.startswith("%")})
        dims = {name: f"d{d}" for d, name in enumerate(names)}
        body = " ".join(dims.get(part, part) for part in expression.split())
        head = ", ".join(dims.values())
        lines.append(f"%{prefix}{at} = affine.apply affine_map<({head}) -> ({body})>({', '.join(names)})\n")
    return "".join(lines)


def changed(function: FuncOp, seed: int) -> list[ForOp]:
    """Fuse the outer loops of a nest, and split what comes out."""
    draw = random.Random(seed)
    loops = loops_in(function)
    count = draw.randint(2, len(loops))
    (fused,) = Fuse(tuple(loops[:count])).apply()
    assert isinstance(fused, ForOp)
    for _ in range(draw.choice([0, 1, 1, 2])):
        outer, _inner = Split(fused, (0, draw.choice([2, 3]))).apply()
        assert isinstance(outer, ForOp)
        fused = outer
    return loops_in(function)


def runs_of(function: FuncOp) -> list[Run]:
    return [run(function, {"n": n, "m": m}) for n, m in SIZES]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2))
def test_independent_iterations(chunk: int):
    kinds: dict[str, int] = {}
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        function = nest(seed)
        before = runs_of(function)
        loops = changed(function, seed)
        runs = runs_of(function)
        (block,) = blocks_in(function)
        for old, new in zip(before, runs, strict=True):
            assert sorted(i for i, _ in old.of(next(iter(old.instances), block))) == sorted(i for i, _ in new.of(block))
        for loop in loops:
            violation = dependent_iterations(loop, "at the same time")
            real = next((found for r in runs if (found := crosses(r.events, loop))), None)
            kind = "proved" if violation is None else violation.kind
            kinds[kind] = kinds.get(kind, 0) + 1
            if violation is None:
                assert real is None, f"seed {seed}: {real}\n{function}"
                continue
            if violation.kind != "refuted":
                continue
            point = violation.counterexample
            symbols = point.get("symbols")
            assert symbols is not None, f"seed {seed}: {violation}"
            arguments = {"n": symbols.get("n", 3), "m": symbols.get("m", 3)}
            assert crosses(run(function, arguments).events, loop), f"seed {seed}: {violation}\n{function}"
    assert kinds["proved"] >= 3 and kinds["refuted"] >= 6 and kinds.get("not proved", 0) <= 2, kinds


@pytest.mark.parametrize("chunk", range(3))
def test_reordered_loops(chunk: int):
    answers = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        function = nest(seed)
        loops = changed(function, seed)
        draw = random.Random(seed)
        new = list(loops)
        draw.shuffle(new)
        if len(loops) < 2 or any("perfect" for outer in loops[:-1] if len(list(outer.body.block.ops)) > 1):
            continue
        try:
            conflict = reordered_conflict(loops, new)
        except NotProved:
            continue
        before = runs_of(function)
        if conflict is not None:
            continue
        permute_chain(loops, new)
        answers += 1
        for old, result in zip(before, runs_of(function), strict=True):
            assert values_read(old) == values_read(result), f"seed {seed}\n{function}"
    assert answers >= 2


def values_read(result: Run) -> object:
    """What each instance reads: the instance that wrote it last; and who wrote each element last."""
    last: dict[object, object] = {}
    read: dict[object, object] = {}
    instances = iter(i for found in result.instances.values() for i, _ in found)
    current: object = None
    for event in result.events:
        if not event.is_write:
            current = next(instances)
            read[current] = last.get(event.element)
        else:
            last[event.element] = current
    return read, last


@pytest.mark.parametrize("seed", range(60))
def test_every_instance_runs_once(seed: int):
    """Digits of a fused loop by one or the other symbol, with and without guards: who covers n x m?"""
    draw = random.Random(seed)
    divisor = draw.choice(["%n", "%m"])
    split = draw.random() < 0.6
    end = draw.choice(["%p", "%p", "%p", "%less"])
    guarded = not split or draw.random() < 0.8
    extent = "%o" if split else end
    rows, columns = draw.choice([("%n", "%m"), ("%m", "%n")])
    value = "%l0 * 3 + %l1" if split else "%l0"
    inner = ("tir.for %l1 in 3 {", "}") if split else ("", "")
    sum_of = "affine_map<(d0, d1) -> (d0 * 3 + d1)>(%l0, %l1)" if split else "affine_map<(d0) -> (d0)>(%l0)"
    guard = f" where [{value}] < [{end}]" if split and guarded else ""
    function = function_of_text(f"""
func.func @f(%n: index, %m: index, %N: memref<?xi32>, %M: memref<?xi32>) {{
  tir.assume_shape %N[%n] : memref<?xi32>
  tir.assume_shape %M[%m] : memref<?xi32>
  %p = arith.muli %n, %m : index
  %less = affine.apply affine_map<(d0) -> (d0 - 1)>(%p)
  %o = affine.apply affine_map<(d0) -> ((d0 + 2) floordiv 3)>({end})
  tir.for %l0 in {extent} {{ {inner[0]}
    %f = affine.apply {sum_of}
    %q = arith.divsi %f, {divisor} : index
    %r = arith.remsi %f, {divisor} : index
    tir.block "B" iters(%vi: spatial<{rows}>, %vj: spatial<{columns}>) = [%q, %r]{guard} {{ }}
  {inner[1]} }}
  func.return
}}""")
    (block,) = blocks_in(function)
    domain = domain_of(block)
    sizes = [(n, m) for n, m in SIZES if n > 0 and m > 0]
    names = {"%n": 0, "%m": 1}
    wrong = 0
    for pair in sizes:
        instances = [i for i, _ in run(function, {"n": pair[0], "m": pair[1]}).of(block)]
        wanted = itertools.product(range(pair[names[rows]]), range(pair[names[columns]]))
        wrong += bool(set(wanted) - set(instances))
        assert len(set(instances)) == len(instances)
    try:
        covered = missed_instance(domain) is None
    except NotProved:
        covered = False
    assert not (covered and wrong), str(function)
    right = divisor == columns and end == "%p" and guarded
    assert covered or not right, f"not proved\n{function}"
    assert repeated_instance(domain, ()) is None
