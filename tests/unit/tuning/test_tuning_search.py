"""Spaces and the search over them: every schedule once, neighbours that are legal, and the same again under a seed."""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import product
from random import Random

import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.dialects import sched
from weft.dialects.tir import ForOp
from weft.passes.schedule.sampling import SampleCategorical, SampleComputeLocation, SamplePerfectTile, Sampler
from weft.tuning.cost_model import Sample
from weft.tuning.decision_tree import DecisionTree
from weft.tuning.records import Decision
from weft.tuning.search import EvolutionarySearch, Ranking, SearchOptions
from weft.tuning.space import Candidate, Refused, Space, mutated

MODULE = weft.parse("""
func.func @twice(%A: memref<12x8xf32>, %B: memref<12x8xf32>) {
  tir.for %i in 12 { tir.for %j in 8 {
    tir.block "B" iters(%vi: spatial<12>, %vj: spatial<8>) = [%i, %j] {
      %x = memref.load %A[%vi, %vj] : memref<12x8xf32>
      %y = arith.addf %x, %x : f32
      memref.store %y, %B[%vi, %vj] : memref<12x8xf32>
    }
  } }
  func.return
}
""")


def rows(sch: weft.Schedule) -> None:
    """12 = 1 x 12 = 2 x 6 = ...: six schedules."""
    i, _ = sch.get_loops("B")
    sch.split(i, sch.sample_perfect_tile(i, n=2))


def ragged(sch: weft.Schedule) -> None:
    """Other steps after other decisions: 4 tilings of j; else 3 of the 6 of i, for inner loops of 4 are refused."""
    i, j = sch.get_loops("B")
    if sch.get(sch.sample_categorical([0, 1], [0.9, 0.1])):
        _, inner = sch.split(i, sch.sample_perfect_tile(i, n=2))
        if sch.get(inner).extent % 4 == 0:
            sch.compute_inline("B")
    else:
        sch.split(j, sch.sample_perfect_tile(j, n=2))


def tiles(sch: weft.Schedule) -> None:
    i, j = sch.get_loops("B")
    i0, i1 = sch.split(i, sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, sch.sample_perfect_tile(j, n=2))
    if sch.get(sch.sample_categorical([0, 1], [0.5, 0.5])):
        sch.reorder(i0, j0, i1, j1)


def everything(space: Space, seed: int = 0) -> list[Candidate | Refused]:
    random, found = Random(seed), list[Candidate | Refused]()
    while not space.is_exhausted:
        outcome = space.run(random)
        assert outcome is not None
        found.append(outcome)
    return found


def test_a_space_holds_each_schedule_once() -> None:
    found = everything(Space(MODULE, rows, "rows"))
    decisions = {c.decisions for c in found if isinstance(c, Candidate)}
    assert decisions == {((12 // n, n),) for n in (1, 2, 3, 4, 6, 12)} and len(found) == 6
    assert len({c.trace for c in found if isinstance(c, Candidate)}) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_space_may_take_other_steps_after_other_decisions(seed: int) -> None:
    found = everything(Space(MODULE, ragged, "ragged"), seed)
    assert Counter(type(outcome) for outcome in found) == {Candidate: 4 + 4, Refused: 2}
    assert len({c.trace for c in found if isinstance(c, Candidate)}) == 2


def _replay(sch: weft.Schedule, trace: sched.FuncOp) -> None:
    sch.replay(trace)


def test_a_candidate_replays() -> None:
    space = Space(MODULE, tiles, "tiles")
    for _ in range(3):
        candidate = space.run(Random(0))
        assert isinstance(candidate, Candidate) and "decision" not in candidate.trace
        sch = weft.Schedule(MODULE)
        weft.run_trace(sch, candidate.trace, candidate.decisions)
        again = Space(MODULE, partial(_replay, trace=sch.trace), "again").run(Random(1), takes_defaults=True)
        assert isinstance(again, Candidate) and again.digest == candidate.digest


def test_wanted_decisions_are_taken_where_they_are_legal() -> None:
    space = Space(MODULE, tiles, "tiles")
    found = space.run(Random(0), ((3, 4), (5, 5), 1))
    assert isinstance(found, Candidate)
    assert found.decisions[0] == (3, 4) and found.decisions[1] != (5, 5) and found.decisions[2] == 1
    assert space.run(Random(1), found.decisions) is None
    changed = space.run(Random(0), found.decisions, 0)
    assert isinstance(changed, Candidate)
    assert changed.decisions[0] != (3, 4) and changed.decisions[1:] == found.decisions[1:]


def test_what_was_tried_is_not_scheduled_again() -> None:
    started: list[int] = []
    ended: list[int] = []

    def counted(sch: weft.Schedule) -> None:
        started.append(1)
        rows(sch)
        ended.append(1)

    space = Space(MODULE, counted, "counted")
    found = space.run(Random(0), ((3, 4),))
    assert isinstance(found, Candidate) and len(started) == 1
    # Crossings are known before the program runs.
    assert space.run(Random(0), found.choices) is None and len(started) == 1
    # Neighbours are new ones, three from here: a factor 3, 2 or 4 moves.
    others = [space.run(Random(seed), found.choices, 0) for seed in range(3)]
    assert {other.decisions[0] for other in others if isinstance(other, Candidate)} == {(1, 12), (6, 2), (12, 1)}
    # All are tried: the program ends at the decision.
    del ended[:]
    assert space.run(Random(0), found.choices, 0) is None and not ended
    # A program that was seen is no candidate, whatever its decisions.
    assert space.run(Random(0), ((2, 6),), seen={_digest((2, 6))}) is None and ended


def _digest(decision: tuple[int, int]) -> bytes:
    found = Space(MODULE, rows, "rows").run(Random(0), (decision,))
    assert isinstance(found, Candidate)
    return found.digest


def test_decisions_that_a_space_gives_are_its_defaults() -> None:
    def given(sch: weft.Schedule) -> None:
        i, _ = sch.get_loops("B")
        sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[3, 4]))

    space = Space(MODULE, given, "given")
    found = space.run(Random(0), takes_defaults=True)
    assert isinstance(found, Candidate) and found.decisions == ((3, 4),)
    assert len(everything(space)) == 5


def _samplers() -> list[tuple[Sampler, set[object]]]:
    a = te.placeholder((12, 8), name="A")
    b = te.compute((12, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((12, 8), lambda i, j: b[i, j] * 2.0, name="C")
    sch = weft.Schedule(te.create_func([a, c]))
    loop, block = sch.get(sch.get_loops("C")[0]), sch.get(sch.get_block("B"))
    assert isinstance(loop, ForOp)
    threes = {t for t in product((1, 2, 3, 4, 6, 12), repeat=3) if t[0] * t[1] * t[2] == 12 and t[2] <= 4}
    return [
        (SamplePerfectTile(loop, 3, 4), {*threes}),
        (SamplePerfectTile(loop, 1, 4), {(12,)}),
        (SampleCategorical((7, 8, 9), (0.5, 0.0, 0.5)), {0, 2}),
        (SampleComputeLocation(block), {-2, -1, 0, 1}),  # pyright: ignore[reportArgumentType]
    ]


def test_options_are_what_can_be_drawn() -> None:
    for sampler, expected in _samplers():
        options = list(sampler.options())
        assert len(options) == len(set(options)) and set(options) == expected
        assert {sampler.draw(Random(seed)) for seed in range(100)} == expected


def test_neighbours_are_other_options() -> None:
    random = Random(0)
    for sampler, expected in _samplers():
        for option in sampler.options():
            near = {mutated(sampler, option, random) for _ in range(8)}
            assert near == {None} if len(expected) == 1 else near <= expected - {option} and near


def test_a_tree_prefers_what_is_left() -> None:
    tree = DecisionTree()
    for left in range(5, 0, -1):
        path = tree.path()
        path.reach(lambda: iter(range(5)))
        # Draws always give 0, so that later ones are picked among those that are left.
        path.take(path.choose(lambda: 0, lambda options: options[-1]))
        assert path.end() and tree.is_complete == (left == 1)
    path = tree.path()
    path.reach(lambda: iter(range(5)))
    path.take(path.choose(lambda: 3, lambda options: options[-1]))
    assert not path.end()


def test_a_tree_gives_up_on_huge_steps() -> None:
    tree = DecisionTree()
    path = tree.path()
    path.reach(lambda: iter(range(1 << 40)))
    path.take(5)
    assert path.end() and not tree.is_complete


def search(space: Callable[[weft.Schedule], None], seed: int = 0, **options: float) -> EvolutionarySearch:
    return EvolutionarySearch(Space(MODULE, space, "space"), seed, SearchOptions(batch=4, **options))


def seconds_of(candidate: Candidate) -> float:
    (_, i1), (_, j1), _ = candidate.decisions
    return 1.0 + abs(i1 - 4) + abs(j1 - 2)


def run(found: EvolutionarySearch, most: int) -> list[Candidate]:
    tried: list[Candidate] = []
    while batch := found.propose(most - len(tried)):
        for candidate in batch:
            found.tell(candidate, seconds_of(candidate))
        tried += batch
    return tried


def test_a_search_ends_when_the_space_is_exhausted() -> None:
    found = search(rows)
    sizes: list[int] = []
    while batch := found.propose(100):
        sizes.append(len(batch))
    assert sizes == [4, 2] and found.is_exhausted and found.counts.proposed == 6


def test_refused_and_equal_schedules_are_no_trials() -> None:
    found = search(ragged)
    tried = [c for _ in range(4) for c in found.propose(100)]
    # A loop of one iteration between those of i and j is that of i, 12 x 1, or of j, 1 x 8.
    assert len(tried) == 7 and found.counts.refused == 2 and found.counts.duplicates == 1
    twice = search(lambda sch: (sch.sample_categorical([1, 2, 3], [0.2, 0.3, 0.5]), None)[1])
    assert len(twice.propose(4)) == 1 and twice.counts.duplicates == 2 and twice.is_exhausted


def test_the_same_seed_and_times_give_the_same_candidates() -> None:
    first, again, other = (run(search(tiles, seed), 12) for seed in (5, 5, 6))
    assert first == again != other
    assert len({c.digest for c in first}) == 12


class Digits(Space):
    """100,000 candidates of five decisions, without IR."""

    def __init__(self) -> None:
        super().__init__(MODULE, rows, "digits")

    def run(
        self,
        random: Random,
        wanted: Sequence[Decision | None] = (),
        change: int | None = None,
        *,
        takes_defaults: bool = False,
        seen: Container[bytes] = (),
    ) -> Candidate:
        drawn = [random.randrange(10) if at == change or not wanted else wanted[at] for at in range(5)]
        return Candidate("", tuple(drawn), str(drawn).encode(), tuple(drawn))


def test_children_are_better_than_draws() -> None:
    def best(seed: int, epsilon: float) -> float:
        found = EvolutionarySearch(Digits(), seed, SearchOptions(epsilon=epsilon))
        scores: list[int] = []
        for _ in range(16):
            for candidate in found.propose(8):
                scores.append(1 + sum(abs(digit - 7) for digit in candidate.decisions if isinstance(digit, int)))
                found.tell(candidate, float(scores[-1]))
        return min(scores)

    evolved, drawn = (sum(best(seed, epsilon) for seed in range(10)) for epsilon in (0.1, 1.0))
    assert evolved < 0.7 * drawn


def test_failures_have_no_children_and_first_decisions_come_first() -> None:
    space = Space(MODULE, tiles, "tiles")
    found = EvolutionarySearch(space, 0, SearchOptions(batch=4), first=[((6, 2), (8, 1), 0)])
    batch = found.propose(4)
    assert batch[1].decisions == ((6, 2), (8, 1), 0)
    for candidate in batch:
        found.tell(candidate, None)
    assert len(found.propose(4)) == 4


def test_errors_of_a_space_reach_its_author() -> None:
    with pytest.raises(weft.CompileError, match="did you mean 'B'"):
        search(lambda sch: (sch.get_block("Bb"), None)[1]).propose(1)


class Told:
    """A cost model that says what it is given: the second feature is the time."""

    name, choice = "told", 4

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def learn(self, samples: Sequence[Sample]) -> None:
        self.samples += samples

    def predict(self, candidates: Sequence[Sequence[float]], default: Sequence[float]) -> list[float]:
        return [features[0] for features in candidates]


def test_candidates_are_made_before_they_are_chosen() -> None:
    search = EvolutionarySearch(
        Space(MODULE, tiles, "tiles", lambda _: (0.0,)), 0, SearchOptions(batch=3), ranking=Ranking(Told(), (0.0,), 1.0)
    )
    first = search.propose(3)
    search.prepare()
    made = [candidate.digest for candidate in search._waiting]
    assert len(made) == 3 * Told.choice
    for candidate in first:
        search.tell(candidate, 1.0)
    assert {candidate.digest for candidate in search.propose(3)} <= set(made)
    # What was planned beyond what is proposed needs no others.
    cut = EvolutionarySearch(Space(MODULE, tiles, "tiles"), 0, SearchOptions(batch=3))
    cut.propose(2)
    cut.prepare()
    assert not cut._waiting


def test_a_cost_model_chooses_and_nothing_is_lost() -> None:
    def extent_of_rows(module: ModuleOp) -> tuple[float, ...]:
        loops = [op for op in module.walk() if isinstance(op, ForOp)]
        return (float(loops[1].extent if isinstance(loops[1].extent, int) else 0),)

    model = Told()
    space = Space(MODULE, tiles, "tiles", extent_of_rows)
    options = SearchOptions(batch=3, epsilon=0.0)
    search = EvolutionarySearch(space, 0, options, ranking=Ranking(model, (1.0,), 2.0))
    proposed: list[Candidate] = []
    batches: list[list[float]] = []
    while batch := search.propose(100):
        proposed += batch
        batches.append([candidate.features[0] for candidate in batch])
        for candidate in batch:
            search.tell(candidate, 1.0 + candidate.features[0])
    assert search.is_exhausted and not search._waiting
    assert len({candidate.digest for candidate in proposed}) == len(proposed) > 20
    # The fastest of those that wait are first.
    assert batches[1] == sorted(batches[1]) and max(batches[1]) <= 3
    assert [sample.ratio for sample in model.samples] == [(1.0 + c.features[0]) / 2.0 for c in proposed]
    # Without one they come as they are made, and they are the same.
    plain = EvolutionarySearch(Space(MODULE, tiles, "tiles"), 0, options)
    without: set[bytes] = set()
    while batch := plain.propose(100):
        without |= {candidate.digest for candidate in batch}
    assert without == {candidate.digest for candidate in proposed}
