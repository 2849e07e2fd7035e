"""Dependences by integer sets against running through every instance, on small random programs."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import pytest
from random_tir import SYMBOL_VALUES, RandomProgram, function_of_text
from tiers import first_tier
from tir_enumeration import Event, Run, below, conflicting, crosses, loops_in, never_crosses, run
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.dependence import Conflict, conflicting_pairs, is_accumulation, is_temporary, loops_of_element
from weft.analysis.independence import carried_conflict, dependent_iterations, is_private, reordered_conflict
from weft.dialects.tir import ForOp
from weft.passes.schedule.reorder import permute_chain, why_not_perfect
from weft.passes.schedule.tile import why_not_tileable

CHUNKS = range(10)
"""Seeds are divided into so many tests."""
PER_CHUNK = 15


@cache
def programs(chunk: int, *, perfect: bool = False) -> list[tuple[RandomProgram, FuncOp, list[Run]]]:
    """Programs with their runs for each value of the symbol; enumerated once for all tests."""
    found: list[tuple[RandomProgram, FuncOp, list[Run]]] = []
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        program = RandomProgram(seed, symbolic=seed % 5 == 1, triangular=seed % 5 == 2, perfect=perfect)
        function = function_of_text(program.text)
        runs = [run(function, {"n": n}) for n in (SYMBOL_VALUES if program.symbolic else (0,))]
        if all(starts_first(r) for r in runs):
            found.append((program, function, runs))
    return found


def starts_first(result: Run) -> bool:
    """Whether every reduction runs its init before anything else touches the element in that block: a legal program."""
    started: set[object] = set()
    for event in result.events:
        block = event.block
        if block is None or block.init is None:
            continue
        if event.in_init:
            started.add((block, event.element))
        elif event.is_write and (block, event.element) not in started:
            return False
    return True


def value_in(conflict: Conflict, role: str, value: SSAValue) -> int:
    return conflict.point.get((role, value), conflict.point.get(value, 0))


def event_of(conflict: Conflict, role: str, result: Run) -> Event | None:
    """The event that one side of a conflict speaks of, when it happens."""
    access = conflict.first if role == "first" else conflict.second
    wanted = tuple((loop, value_in(conflict, role, loop.induction_variable)) for loop in access.loops)
    return next((e for e in result.events if e.op is access.op and e.loops == wanted), None)


def run_at(function: FuncOp, conflict: Conflict) -> Run:
    """The run with the symbol that the conflict speaks of."""
    arguments = function.body.block.args
    return run(function, {"n": conflict.point.get(arguments[2], 4)} if len(arguments) > 2 else None)


def both_sides(function: FuncOp, conflict: Conflict) -> tuple[Event, Event]:
    """The two events of a conflict, which must happen and touch one element."""
    result = run_at(function, conflict)
    first, second = event_of(conflict, "first", result), event_of(conflict, "second", result)
    assert first is not None and second is not None, f"an iteration of {conflict.describe()} does not happen"
    assert conflicting(first, second), conflict.describe()
    return first, second


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2, 3))
def test_iterations_that_depend_on_each_other(chunk: int):
    for program, function, runs in programs(chunk):
        for loop in loops_in(function):
            violation = dependent_iterations(loop, "at once")
            if violation is None:
                for result in runs:
                    for buffer in {e.buffer for e in result.events}:
                        own = [e for e in result.events if e.buffer is buffer]
                        crossing = crosses(own, loop)
                        private = is_temporary(buffer) and never_crosses(buffer, own, loop)
                        assert crossing is None or private, (program.seed, loop.induction_variable, crossing)
                continue
            conflict = carried_conflict(loop)
            assert conflict is not None
            assert (violation.kind == "refuted") == conflict.exact
            if violation.kind != "refuted":
                assert "cmpi ne" in program.text or "cmpi eq" in program.text, (program.seed, violation)
                continue
            first, second = both_sides(function, conflict)
            assert first.value_of(loop) < second.value_of(loop)
            assert first.outside(loop) == second.outside(loop)
            assert violation.counterexample == {
                "first iteration": first.iteration(),
                "second iteration": second.iteration(),
            }


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2, 3))
def test_loops_that_an_element_determines(chunk: int):
    told = 0
    for program, function, runs in programs(chunk):
        for first, second in conflicting_pairs(accesses(function)):
            same = loops_of_element(first, second)
            told += len(same)
            for events in (result.events for result in runs):
                pairs = itertools.product(
                    (e for e in events if e.op is first.op), (e for e in events if e.op is second.op)
                )
                for one, other in pairs:
                    if one.element == other.element:
                        differing = [loop for loop in same if one.value_of(loop) != other.value_of(loop)]
                        assert not differing, (program.seed, one, other)
    assert told


def digits_of(subscripts: str, extents: str) -> list[str]:
    """The loops that an element `X[subscripts]` determines, in a nest over i, j and k with these extents."""
    i, j, k = extents.split()
    maps = [f"affine_map<(i, j, k)[n] -> ({subscript})>" for subscript in subscripts.split(", ")]
    text = f"""
    func.func @f(%X: memref<64x64xi64>, %n: index) {{
      %c = arith.constant 1 : i64
      tir.for %i in {i} {{ tir.for %j in {j} {{ tir.for %k in {k} {{
        %a = affine.apply {maps[0]}(%i, %j, %k)[%n]
        %b = affine.apply {maps[1]}(%i, %j, %k)[%n]
        memref.store %c, %X[%a, %b] : memref<64x64xi64>
      }} }} }}
      func.return
    }}"""
    (store,) = accesses(function_of_text(text))
    same = loops_of_element(store, store)
    return [loop.induction_variable.name_hint or "" for loop in store.loops if loop in same]


@pytest.mark.parametrize(
    ("subscripts", "extents", "determined"),
    [
        ("i, j", "4 4 4", ["i", "j"]),
        ("i * 4 + j, 0", "4 4 4", ["i", "j"]),
        ("i * 4 + j, 0", "4 5 4", []),
        ("i * 12 + j * 2 + k, 0", "4 4 4", ["i"]),
        ("i * 12 + j * 2 + k, j", "4 4 4", ["i", "j", "k"]),
        ("i * 8 - j, 0", "4 8 4", ["i", "j"]),
        ("i + n, j floordiv 2", "4 4 4", ["i"]),
        ("i * 4 + j, 0", "%n 4 4", ["i", "j"]),
        ("i * 4 + j, 0", "4 %n 4", []),
        ("i + j, j", "4 4 4", ["i", "j"]),
        ("i + j * 4, 0", "4 4 1", ["i", "j", "k"]),
        ("i * 2 + k, 0", "4 4 1", ["i", "k"]),
    ],
)
def test_digits_of_subscripts(subscripts: str, extents: str, determined: list[str]):
    assert digits_of(subscripts, extents) == determined


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2, 3))
def test_private_temporaries(chunk: int):
    for program, function, runs in programs(chunk):
        for loop, access in itertools.product(loops_in(function), {a.buffer: a for a in accesses(function)}.values()):
            if is_private(access.buffer, loop):
                assert is_temporary(access.buffer)
                for result in runs:
                    assert never_crosses(access.buffer, result.events, loop), (program.seed, loop.induction_variable)


def chains(function: FuncOp) -> list[list[ForOp]]:
    """The perfect chains of two or more loops."""
    result: list[list[ForOp]] = []
    for loop in loops_in(function):
        chain = [loop]
        while isinstance(inner := chain[-1].body.block.first_op, ForOp) and why_not_perfect(chain[-1], inner) is None:
            chain.append(inner)
        if len(chain) > 1:
            result.append(chain)
    return result


def order_of(events: list[Event]) -> dict[object, int]:
    """When each event happens; loops keep their identity when they are reordered."""
    return {(e.op, frozenset(e.loops)): at for at, e in enumerate(events)}


def turned_round(before: list[Event], after: list[Event], found: list[Access]) -> tuple[Event, Event] | None:
    """Two conflicting events, not updates of one reduction, that happen in another order afterwards."""
    place = order_of(after)
    access = {a.op: a for a in found}
    groups: dict[object, list[Event]] = {}
    for event in before:
        groups.setdefault(event.element, []).append(event)
    for group in groups.values():
        for first, second in itertools.combinations(group, 2):
            if not conflicting(first, second) or is_accumulation(access[first.op], access[second.op]):
                continue
            if place[first.op, frozenset(first.loops)] > place[second.op, frozenset(second.loops)]:
                return first, second
    return None


def is_rectangular(chain: list[ForOp]) -> bool:
    return all(isinstance(loop.extent, int) or loop.dynamic_extent is not None for loop in chain) and not any(
        "extent" in (loop.dynamic_extent.name_hint or "") for loop in chain if loop.dynamic_extent is not None
    )


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2, 3))
def test_reordered_loops(chunk: int):
    verdicts: Counter[bool] = Counter()
    for program, function, runs in programs(chunk, perfect=chunk % 2 == 0):
        for chain in chains(function):
            found = accesses(function)
            for order in itertools.islice(itertools.permutations(chain), 1, None):
                conflict = reordered_conflict(chain, order)
                permute_chain(chain, order)
                swapped = [run(function, {"n": n}) for n in SYMBOL_VALUES[: len(runs)]]
                permute_chain(order, chain)
                pairs = [turned_round(a.events, b.events, found) for a, b in zip(runs, swapped, strict=True)]
                verdicts[conflict is None] += 1
                if conflict is None:
                    assert not any(pairs), (program.seed, [loop.induction_variable for loop in order], pairs)
                elif conflict.exact:
                    assert any(pairs) or program.symbolic, (program.seed, conflict.describe())
                    first, second = both_sides(function, conflict)
                    before = run_at(function, conflict).events
                    permute_chain(chain, order)
                    after = run_at(function, conflict).events
                    permute_chain(order, chain)
                    key = [(e.op, frozenset(e.loops)) for e in (first, second)]
                    assert order_of(before)[key[0]] < order_of(before)[key[1]]
                    assert order_of(after)[key[0]] > order_of(after)[key[1]]
    assert verdicts[True] and verdicts[False]


def tiled_order(events: list[Event], chain: list[ForOp], sizes: tuple[int, ...]) -> list[Event]:
    """The order in which a tiled nest runs the events: by tile, then inside the tile, then as they stand."""

    def key(event: Event) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        values = [event.value_of(loop) for loop in chain]
        tile = tuple(v // size for v, size in zip(values, sizes, strict=True))
        return event.outside(chain[0]), tile, tuple(values)

    return sorted(events, key=key)  # stable: what stands inside keeps its order


@pytest.mark.parametrize("chunk", first_tier(CHUNKS, 0, 1, 2, 3))
def test_tiled_loops(chunk: int):
    for program, function, runs in programs(chunk, perfect=True):
        for chain in chains(function):
            found = accesses(function)
            violation = why_not_tileable(chain)
            if violation is not None or not is_rectangular(chain):
                continue
            for result, sizes in itertools.product(runs, itertools.product((1, 2, 3), repeat=len(chain))):
                inside = below(result.events, chain[0])
                pair = turned_round(inside, tiled_order(inside, chain, sizes), found)
                assert pair is None, (program.seed, sizes, pair)
