"""Coverage, repetition, bounds and unwritten reads by integer sets against running through every instance."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache

import pytest
from random_tir import SIZE, SYMBOL_VALUES, RandomProgram, function_of_text
from tiers import first_tier
from tir_enumeration import Run, blocks_in, run
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from weft import CompileError
from weft.analysis.accesses import Domain, accesses, domain_of
from weft.analysis.bounds import Answer, Bounds
from weft.analysis.coverage import missed_instance, repeated_instance, uncovered_element
from weft.analysis.dependence import is_temporary
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IterKind

CHUNKS = range(5)
PER_CHUNK = 40


@cache
def programs(chunk: int, *, out_of_bounds: bool = False) -> list[tuple[int, FuncOp, list[Run]]]:
    """Programs with their runs for each value of the symbol; enumerated once for all tests."""
    found: list[tuple[int, FuncOp, list[Run]]] = []
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        program = RandomProgram(seed, symbolic=seed % 5 == 1, triangular=seed % 5 == 2, out_of_bounds=out_of_bounds)
        function = function_of_text(program.text)
        runs = [run(function, {"n": n}) for n in (SYMBOL_VALUES if program.symbolic else (0,))]
        found.append((seed, function, runs))
    return found


def symbol_at(function: FuncOp, symbols: Mapping[SSAValue, int]) -> dict[str, int] | None:
    """The value of the symbol of a function."""
    arguments = function.body.block.args
    return {"n": symbols.get(arguments[2], 4)} if len(arguments) > 2 else None


def instances(result: Run, block: BlockOp) -> list[tuple[int, ...]]:
    return [values for values, _ in result.of(block)]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1))
def test_missed_instances(chunk: int):
    found: Counter[bool] = Counter()
    for seed, function, runs in programs(chunk):
        for block in blocks_in(function):
            missed = missed_instance(domain_of(block))
            found[missed is None] += 1
            wanted = set(itertools.product(*[range(e) for e in block.extents if isinstance(e, int)]))
            if missed is None:
                assert all(wanted <= set(instances(r, block)) for r in runs), (seed, block.label)
            else:
                assert missed.place in wanted
                ran = instances(run(function, symbol_at(function, missed.symbols)), block)
                assert missed.place not in ran, (seed, missed.place)
    assert found[True] and found[False]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1))
def test_missed_steps_of_what_is_started(chunk: int):
    found: Counter[bool] = Counter()
    for seed, function, runs in programs(chunk):
        for block in blocks_in(function):
            along = [at for at, kind in enumerate(block.kinds) if kind is IterKind.REDUCE]
            if not along or len(runs) > 1:
                continue
            ran = set(instances(runs[0], block))
            wanted = {
                tuple(steps[along.index(at)] if at in along else value for at, value in enumerate(point))
                for point in ran
                for steps in itertools.product(*[range(block.static_extents.get_values()[at]) for at in along])
            }
            missed = missed_instance(domain_of(block), along=along)
            found[missed is None] += 1
            if missed is None:
                assert wanted <= ran, (seed, block.label)
            else:
                assert missed.place in wanted - ran, seed
    assert found[True] and found[False]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1))
def test_repeated_instances(chunk: int):
    found: Counter[bool] = Counter()
    for seed, function, runs in programs(chunk):
        for block in blocks_in(function):
            domain = domain_of(block)
            for fixed in range(len(domain.loops) + 1):
                same = domain.loops[:fixed]
                repeated = repeated_instance(domain, same)
                found[repeated is None] += 1
                if repeated is None:
                    for result in runs:
                        keys = [(values, tuple(at[loop] for loop in same)) for values, at in result.of(block)]
                        assert len(keys) == len(set(keys)), (seed, block.label, fixed)
                    continue
                first, second = (
                    {loop: repeated.value(role, loop.induction_variable) for loop in domain.loops}
                    for role in ("first", "second")
                )
                assert first != second
                assert all(first[loop] == second[loop] for loop in same)
                if not any(isinstance(loop.extent, SSAValue) for loop in domain.loops):
                    ran = {tuple(at.values()): values for values, at in runs[0].of(block)}
                    assert ran[tuple(first.values())] == ran[tuple(second.values())]
    assert found[True] and found[False]


def test_digits_are_an_answer_of_their_own():
    """What split and fuse make is decided without sets; the sets say the same."""
    for factors in itertools.product((1, 2, 3), repeat=3):
        size = factors[0] * factors[1] * factors[2]
        for extent in (size - 1, size, size + 1):
            guard = f" where [%i * {factors[1] * factors[2]} + %j * {factors[2]} + %k] < [{extent}]"
            function = function_of_text(f"""
func.func @f(%A: memref<64xi64>) {{
  %one = arith.constant 1 : i64
  tir.for %i in {factors[0]} {{ tir.for %j in {factors[1]} {{ tir.for %k in {factors[2]} {{
    tir.block "A" iters(%v: spatial<{extent}>) = [%i * {factors[1] * factors[2]} + %j * {factors[2]} + %k]
        {guard if extent < size else ""} {{
      memref.store %one, %A[%v] : memref<64xi64>
    }} }} }} }}
  func.return
}}""")
            (block,) = blocks_in(function)
            missed = missed_instance(domain_of(block))
            if extent > size:
                assert missed is not None and missed.place == (extent - 1,)
            else:
                assert missed is None
                assert repeated_instance(domain_of(block), ()) is None
                assert sorted(instances(run(function), block)) == [(v,) for v in range(extent)]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1))
def test_accesses_out_of_bounds(chunk: int):
    found: Counter[bool] = Counter()
    for seed, function, runs in programs(chunk, out_of_bounds=True):
        bounds = Bounds(function)
        for access in accesses(function):
            outside = [
                e for r in runs for e in r.events if e.op is access.op and not all(0 <= i < SIZE for i in e.place)
            ]
            try:
                answers = [bounds.decide(access, *beyond) for beyond in bounds.outside(access)]
            except CompileError as error:
                found[True] += 1
                text = re.search(r"in iteration \((.*)\) index (\d+) is (-?\d+)", error.message)
                assert text is not None, error.message
                values = {name: int(v) for name, v in re.findall(r"(\w+)=(\d+)", text[1])}
                if len(runs) == 1:
                    event = next(e for e in outside if e.iteration() == values)
                    assert event.place[int(text[2])] == int(text[3]), error.message
            else:
                found[False] += 1
                # Otherwise there is a condition, or data decide.
                assert not outside or any(answer is not Answer.PROVED for answer in answers), (seed, outside[:1])
    assert found[True] and found[False]


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1))
def test_reads_of_what_nothing_writes(chunk: int):
    """Loops of symbolic extent count as run once at least, so only programs without are compared."""
    found: Counter[bool] = Counter()
    for seed, function, runs in programs(chunk):
        if len(runs) > 1:
            continue
        everything = accesses(function)
        for access in everything:
            if access.is_write or not is_temporary(access.buffer):
                continue
            writes = [a for a in everything if a.is_write and a.buffer is access.buffer]
            exact = all(a.conditions.exact for a in (access, *writes))
            point = uncovered_element(access, writes)
            written = {e.place for e in runs[0].events if e.is_write and e.buffer is access.buffer}
            read = {e.place for e in runs[0].events if e.op is access.op}
            found[point is None] += 1
            if point is not None:
                assert exact and point.place in read - written, (seed, point.place)
            elif exact:
                assert read <= written, (seed, read - written)
    assert found[True] and found[False]


def test_free_loops_of_a_plan():
    """Loops that do not exist yet take part in the question."""
    function = function_of_text("""
func.func @f(%A: memref<12xi64>) {
  %one = arith.constant 1 : i64
  tir.for %i in 3 {
    tir.block "A" iters(%v: spatial<3>) = [%i] { memref.store %one, %A[%v] : memref<12xi64> }
  }
  func.return
}""")
    (block,) = blocks_in(function)
    domain = domain_of(block)
    extra = function.body.block.args[0]
    (index,) = domain.bindings
    from weft.analysis.index import Index

    for free, extent, missing in ((4, 12, set()), (3, 12, {3, 7, 11}), (5, 12, set())):
        planned = Domain(
            domain.loops, (index * 4 + Index.of(extra),), (Index.of(extent),), domain.conditions, ((extra, free),)
        )
        missed = missed_instance(planned)
        assert missed is None if not missing else missed is not None and missed.place[0] in missing
