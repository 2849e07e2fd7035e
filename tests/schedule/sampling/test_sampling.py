"""Sampling: what is drawn, what may be decided, who uses it; and traces that replay with other decisions."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from random import Random

import pytest
from schedule_checks import check_schedule, refused
from schedule_programs import PROGRAMS
from xdsl.dialects.builtin import IntegerAttr

import weft
from weft import CompileError, Schedule
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import Plan
from weft.passes.schedule.sampling import SamplePartitionedTile, SamplePerfectTile, count_tilings, divisors
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.schedule.traces import decisions_of


def schedule(name: str, seed: int | None = 0) -> Schedule:
    return Schedule(weft.parse(PROGRAMS[name].text), seed=seed)


def extents(sch: Schedule, block: str) -> list[object]:
    found: list[object] = []
    for handle in sch.get_loops(block):
        loop = sch.get(handle)
        assert isinstance(loop, ForOp)
        found.append(loop.extent)
    return found


def parsed(trace: sched.FuncOp) -> sched.FuncOp:
    return next(op for op in weft.parse(str(trace)).ops if isinstance(op, sched.FuncOp))


@pytest.mark.parametrize("extent", [1, 2, 12, 13, 36, 64, 97])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_tilings_are_counted_as_enumeration_does(extent: int, n: int):
    assert divisors(extent) == tuple(d for d in range(1, extent + 1) if extent % d == 0)
    assert count_tilings(extent, n) == sum(prod(t) == extent for t in product(divisors(extent), repeat=n))


def test_every_tiling_is_as_likely():
    loop = ForOp.empty(24, "i")
    random = Random(1)
    drawn = Counter(SamplePerfectTile(loop, 3, 4).draw(random) for _ in range(6000))
    possible = {t for t in product(divisors(24), repeat=3) if prod(t) == 24 and t[-1] <= 4}
    assert set(drawn) == possible
    expected = 6000 / len(possible)
    assert all(0.7 * expected < count < 1.3 * expected for count in drawn.values())


def test_every_partitioned_tiling_is_as_likely():
    loop = ForOp.empty(24, "i")
    random = Random(1)
    drawn = Counter(SamplePartitionedTile(loop, 3, 1, 4).draw(random) for _ in range(6000))
    possible = {t for t in product(divisors(24), repeat=3) if prod(t) == 24 and prod(t[1:]) % 4 == 0}
    assert set(drawn) == possible == set(SamplePartitionedTile(loop, 3, 1, 4).options())
    expected = 6000 / len(possible)
    assert all(0.7 * expected < count < 1.3 * expected for count in drawn.values())
    assert set(SamplePartitionedTile(loop, 2).options()) == set(SamplePerfectTile(loop, 2, 24).options())


def test_partitioned_tiles_in_a_schedule():
    sch = schedule("matmul_relu")
    i, *_ = sch.get_loops("Y")
    factors = sch.sample_partitioned_tile(i, 3, partition_pos=1, innerpart_factor=2)
    drawn = [sch.get(factor) for factor in factors]
    assert prod(drawn[1:]) % 2 == 0
    sch.split(i, factors)
    assert "sched.sample_partitioned_tile" in str(sch.trace)
    check_schedule(weft.parse(PROGRAMS["matmul_relu"].text), sch)


def test_partitioned_tiles_that_do_not_fit():
    sch = schedule("matmul_relu")
    i, *_ = sch.get_loops("Y")
    refused(lambda: sch.sample_partitioned_tile(i, 2, 1, 5), 1, "the extent is 12, the factor of the second part 5")
    refused(lambda: sch.sample_partitioned_tile(i, 2, 1, 0), 1, "the factor of the second part 0")
    refused(lambda: sch.sample_partitioned_tile(i, 0), 2, "n is 0")
    refused(lambda: sch.sample_partitioned_tile(i, 2, 2), 2, "n is 2, the second part starts at 2")
    refused(lambda: sch.sample_partitioned_tile(i, 2, 1, 4, decision=[3, 5]), 3, "2 positive factors with product 12")
    refused(lambda: sch.sample_partitioned_tile(i, 2, 1, 4, decision=[6, 2]), 3, "multiplies to 2, no multiple of 4")
    dynamic = schedule("dynamic")
    n, *_ = dynamic.get_loops("C")
    refused(lambda: dynamic.sample_partitioned_tile(n, 2), 1, "the extent is known only at run time")


def test_factors_are_symbols_until_they_are_used():
    sch = schedule("matmul_relu")
    i, j, k = sch.get_loops("Y")
    t = sch.sample_perfect_tile(i, 3, max_innermost_factor=4)
    u = sch.sample_perfect_tile(k, n=2)
    assert prod(sch.get(f) for f in t) == 12 and sch.get(t[-1]) <= 4
    sch.split(i, [t[0], None, t[2]])
    sch.tile(j, k, factors=[5, u[1]])
    sch.loop_partition(sch.get_loops("C")[1], [sch.sample_categorical([2, 4], [0.5, 0.5]), None])
    v = sch.sample_categorical([16, 64, 512], [0.2, 0.3, 0.5])
    sch.annotate("Y", "unroll", v)
    block = sch.get(sch.get_block("Y"))
    assert isinstance(block, BlockOp) and isinstance(note := block.attributes["unroll"], IntegerAttr)
    assert note.value.data == sch.get(v)
    assert "sched.split %i [%t0, 0, %t2] : loop, loop, loop" in str(sch.trace)
    assert "sched.tile %j, %k [5, %t1_1]" in str(sch.trace)
    check_schedule(weft.parse(PROGRAMS["matmul_relu"].text), sch)


def test_a_seed_decides():
    def text(seed: int) -> str:
        sch = schedule("matmul_relu", seed)
        for loop in sch.get_loops("Y"):
            sch.sample_perfect_tile(loop, 2)
        sch.sample_compute_location("Y")
        sch.sample_categorical(list(range(99)), [1 / 99] * 99)
        return str(sch.trace)

    assert text(1) == text(1) != text(2)


@pytest.mark.parametrize("decision", [[3, 4], [12, 1], [1, 12]])
def test_decisions_are_kept(decision: list[int]):
    sch = schedule("matmul_relu")
    i, *_ = sch.get_loops("Y")
    factors = sch.sample_perfect_tile(i, 2, decision=decision)
    assert [sch.get(f) for f in factors] == decision
    sch.split(i, factors)
    assert extents(sch, "Y")[:2] == decision
    assert f"decision = {decision}" in str(sch.trace)
    again = schedule("matmul_relu", seed=7)
    again.replay(parsed(sch.trace))
    assert str(again.trace) == str(sch.trace)


def test_replay_with_other_decisions():
    sch = schedule("matmul_relu")
    i, _, k = sch.get_loops("Y")
    sch.split(i, sch.sample_perfect_tile(i, 2, decision=[3, 4]))
    k0, _ = sch.split(k, sch.sample_perfect_tile(k, 2, decision=[3, 3]))
    sch.annotate(k0, "n", sch.sample_categorical([5, 6], [0.5, 0.5], decision=1))
    assert decisions_of(sch.trace) == [(3, 4), (3, 3), 1]
    other = schedule("matmul_relu")
    other.replay(sch.trace, decisions=[(6, 2), (9, 1), 0])
    assert extents(other, "Y") == [6, 2, 10, 9, 1]
    assert decisions_of(other.trace) == [(6, 2), (9, 1), 0]
    check_schedule(weft.parse(PROGRAMS["matmul_relu"].text), other)
    drawn = {str(decisions_of(_drawn_again(sch.trace, seed))) for seed in range(12)}
    assert len(drawn) > 3 and all("(3, 3)" in text for text in drawn)
    with pytest.raises(CompileError, match="2 decisions for 3 sampling steps"):
        schedule("matmul_relu").replay(sch.trace, decisions=[(6, 2), (9, 1)])
    edited = str(sch.trace).replace("decision = [3, 4]", "decision = [2, 6]").replace(", decision = [3, 3]", "")
    third = schedule("matmul_relu")
    third.replay(next(op for op in weft.parse(edited).ops if isinstance(op, sched.FuncOp)))
    assert extents(third, "Y")[:2] == [2, 6]


def _drawn_again(trace: sched.FuncOp, seed: int) -> sched.FuncOp:
    sch = schedule("matmul_relu", seed)
    sch.replay(trace, decisions=[None, (3, 3), None])
    return sch.trace


def test_tiles_of_an_extent_that_is_known_at_run_time():
    text = PROGRAMS["dynamic"].text
    for assumed, divisor in (("", 1), ("tir.assume [%m mod 24] == [0]", 8)):
        given = text.replace("  %B = memref.alloc", f"  {assumed}\n  %B = memref.alloc")
        sch = weft.Schedule(weft.parse(given), seed=3)
        i, *_ = sch.get_loops("C")
        factors = sch.sample_perfect_tile(i, 3)
        drawn = [sch.get(factor) for factor in factors]
        assert drawn[0] == 0 and divisor % prod(drawn[1:]) == 0
        sch.split(i, factors)
        assert "where" not in str(sch.mod)
        check_schedule(weft.parse(given), sch, run=not assumed)


def test_decisions_that_do_not_fit():
    sch = schedule("matmul_relu")
    i, *_ = sch.get_loops("Y")
    refused(lambda: sch.sample_perfect_tile(i, 2, decision=[3, 5]), 3, "[3, 5] multiplies to 15", "product 12")
    refused(lambda: sch.sample_perfect_tile(i, 3, decision=[3, 4]), 3, "3 positive factors with product 12")
    refused(lambda: sch.sample_perfect_tile(i, 2, decision=[-3, -4]), 3)
    refused(lambda: sch.sample_perfect_tile(i, 2, 4, decision=[2, 6]), 3, "the innermost factor 6 is above 4")
    refused(lambda: sch.sample_perfect_tile(i, 0), 2, "n is 0")
    refused(lambda: sch.sample_perfect_tile(i, 2, 0), 2, "at most 0")
    dynamic = schedule("dynamic")
    n, *_ = dynamic.get_loops("C")
    refused(
        lambda: dynamic.sample_perfect_tile(n, 2, decision=[0, 4]), 3, "only known at run time", "product divides 1"
    )
    refused(lambda: sch.sample_categorical([1, 2], [1.0]), 1, "2 candidates, 1 probabilities")
    refused(lambda: sch.sample_categorical([], []), 1, "0 candidates")
    refused(lambda: sch.sample_categorical([1, 2], [0.5, 0.6]), 1, "add up to 1.1")
    refused(lambda: sch.sample_categorical([1, 2], [1.5, -0.5]), 1)
    refused(lambda: sch.sample_categorical([1, 2], [0.5, 0.5], decision=2), 2, "there is no candidate 2")
    refused(lambda: sch.sample_compute_location("Y", decision=9), 1, "9 is not", "-1 (stay), 0, 1")
    refused(lambda: sch.sample_compute_location("Y", decision=-2), 1, "-2 is not")
    assert "sample" not in str(sch.trace)


def test_compute_locations():
    module = weft.parse(PROGRAMS["chain"].text)
    seen: set[object] = set()
    for seed in range(24):
        sch = Schedule(module, seed=seed)
        place = sch.sample_compute_location("B")
        sch.compute_at("B", place)
        (decision,) = decisions_of(sch.trace)
        labels = [op.label for op in sch.mod.walk() if isinstance(op, BlockOp)]
        assert ("B" in labels) == (decision != -2)
        if decision == -1:
            assert weft.structural_equal(sch.mod, module)
        if isinstance(decision, int) and decision >= 0:
            b, c = sch.get_loops("B"), sch.get_loops("C")
            assert [sch.get(x) is sch.get(y) for x, y in zip(b, c, strict=False)].count(True) == decision + 1
        if decision not in seen:
            check_schedule(module, sch)
        seen.add(decision)
    assert seen == {-2, -1, 0, 1}


def test_places_are_asked_about_until_one_is_legal(monkeypatch: pytest.MonkeyPatch):
    asked: list[type[RecheckedPrimitive]] = []
    plan = RecheckedPrimitive.plan

    def counted(self: RecheckedPrimitive) -> Plan:
        asked.append(type(self))
        return plan(self)

    monkeypatch.setattr(RecheckedPrimitive, "plan", counted)
    for seed in range(8):
        asked.clear()
        sch = schedule("chain", seed)
        sch.sample_compute_location("B")
        assert len(asked) <= 1  # of two loops and the readers, all legal
        asked.clear()
        schedule("chain").replay(parsed(sch.trace))
        assert len(asked) <= 1


def test_a_block_that_nobody_reads_stays():
    sch = schedule("chain")
    sch.compute_at("D", sch.sample_compute_location("D"))
    assert decisions_of(sch.trace) == [-1]


def test_places_that_are_no_loops():
    sch = schedule("chain")
    place = sch.sample_compute_location("B", decision=-1)
    with pytest.raises(CompileError, match=r"handle %place is not a loop: its block is to stay where it is"):
        sch.parallel(place)
    inline = sch.sample_compute_location("B", decision=-2)
    with pytest.raises(CompileError, match="handle %place is not a loop: its block is to be inlined"):
        sch.split(inline, [None, 2])
    sch.reverse_compute_at("C", place)


def test_handles_of_the_wrong_kind():
    sch = schedule("chain")
    value = sch.sample_categorical([3], [1.0])
    i, _ = sch.get_loops("B")
    with pytest.raises(TypeError, match=r"parallel: argument 'loop' must be LoopHandle, got IntHandle\(%t0\)"):
        sch.parallel(value)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="annotate: argument 'ann_val' must be int or float or str or bool or a seq"):
        sch.annotate(i, "x", object())  # pyright: ignore[reportArgumentType]
    other = schedule("chain")
    with pytest.raises(CompileError, match="belongs to another schedule"):
        other.split(other.get_loops("B")[0], [None, value])


TRACE = """
sched.func @s {
  %b = sched.get_block "B" : block
  %i, %j = sched.get_loops %b : loop, loop
  %t0, %t1 = sched.sample_perfect_tile %i {n = 2, max_innermost_factor = 8} : int, int
  LAST
}"""


def trace(last: str) -> sched.FuncOp:
    return next(op for op in weft.parse(TRACE.replace("LAST", last), "t.mlir").ops if isinstance(op, sched.FuncOp))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (
            "%c, %d, %e = sched.sample_perfect_tile %j {n = 2, max_innermost_factor = 8} : int, int, int",
            "gives 2 handles",
        ),
        ("%c = sched.split %i [%t0, %t1] : loop", "gives 2 handles, 1 are named"),
        (
            "%c, %d = sched.split %i, %t0 {factors = [2, 0]} : loop, loop",
            "but not in its factors|type sched.int|!sched.int",
        ),
        ('sched.annotate %i {key = "x"}', "takes a value or a sampled integer"),
        ('sched.annotate %i, %t0 {key = "x", value = 3}', "takes a value or a sampled integer"),
        ('sched.annotate %t0 {key = "x", value = 3}', "sched.int"),
        ("sched.parallel %t0", "sched.int"),
        ("%c, %d = sched.split %i [%j, 2] : loop, loop", "sched.loop"),
    ],
)
def test_traces_that_do_not_fit(last: str, message: str):
    with pytest.raises(CompileError, match=message):
        trace(last)


def test_a_trace_without_decisions_draws():
    sch = schedule("chain", seed=3)
    sch.replay(trace("%c, %d = sched.split %i [%t0, %t1] : loop, loop"))
    (decision,) = decisions_of(sch.trace)
    assert isinstance(decision, tuple) and extents(sch, "B")[:2] == list(decision)
