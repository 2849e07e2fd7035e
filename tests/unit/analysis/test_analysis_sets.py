"""Integer-set questions against trying every point of a small box."""

from __future__ import annotations

import itertools
import random

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from weft.analysis import sets
from weft.analysis.index import Index
from weft.analysis.integer_ranges import Ranges
from weft.analysis.sets import NotProved, Point, Row, System, Variable, sample_point

VALUES: list[SSAValue] = [create_ssa_value(IndexType()) for _ in range(4)]
HIGH = 4


def random_index(draw: random.Random, values: list[SSAValue], depth: int = 2) -> Index:
    """Sums with common factors, quotients and remainders."""
    if depth and draw.random() < 0.3:
        inner = random_index(draw, values, depth - 1)
        divisor = draw.choice([2, 3, 4])
        return inner // divisor if draw.random() < 0.5 else inner % divisor
    index = Index.of(draw.randint(-3, 3))
    for value in draw.sample(values, k=draw.randint(1, 2)):
        index = index + Index.of(value) * draw.choice([-2, -1, 1, 1, 2, 3])
    return index * draw.choice([1, 1, 2, 3])


def evaluate(index: Index, point: dict[SSAValue, int]) -> int:
    return index.evaluate(point.__getitem__)


class Question:
    """Random constraints on a box, as a system and as indices to evaluate."""

    def __init__(self, seed: int, high: int | None = HIGH) -> None:
        draw = random.Random(seed)
        self.values = VALUES[: draw.randint(2, 3)]
        self.equalities = [random_index(draw, self.values) for _ in range(draw.randint(0, 2))]
        self.inequalities = [random_index(draw, self.values) for _ in range(draw.randint(1, 3))]
        self.system = System()
        for value in self.values:
            self.system.declare(value, 0, high)
        for index in self.equalities:
            self.system.equalities.append(self.system.row(index, lambda v: v))
        for index in self.inequalities:
            self.system.inequalities.append(self.system.row(index, lambda v: v))

    def holds(self, point: dict[SSAValue, int]) -> bool:
        return all(evaluate(i, point) == 0 for i in self.equalities) and all(
            evaluate(i, point) >= 0 for i in self.inequalities
        )

    def solutions(self) -> list[dict[SSAValue, int]]:
        points = itertools.product(range(HIGH + 1), repeat=len(self.values))
        return [p for p in (dict(zip(self.values, c, strict=True)) for c in points) if self.holds(p)]

    def completed(self, point: Point) -> dict[SSAValue, int]:
        """Variables that no constraint speaks of may have any value."""
        return {value: point.get(value, 0) for value in self.values}


@pytest.mark.parametrize("chunk", range(5))
def test_emptiness_and_points(chunk: int):
    empty = 0
    for seed in range(chunk * 100, (chunk + 1) * 100):
        question = Question(seed)
        solutions = question.solutions()
        empty += not solutions
        assert question.system.is_empty() == (not solutions), seed
        point = question.system.find_candidate()
        assert (point is None) == (not solutions), seed
        if point is not None:
            assert question.completed(point) in solutions, seed
    assert 10 < empty < 90


def test_points_where_values_have_no_upper_end():
    for seed in range(200):
        question = Question(seed, high=None)
        point = question.system.find_candidate()
        if point is None:
            assert not question.solutions(), seed
        else:
            assert question.holds(question.completed(point)), seed


def test_projection_is_the_shadow_of_the_points():
    import islpy as isl

    for seed in range(150):
        question = Question(seed)
        keep: list[Variable] = list(question.values[:2])
        shadow = {tuple(point[v] for v in question.values[:2]) for point in question.solutions()}
        projection = question.system.projection(keep)
        box = isl.Set(f"{{ [a, b] : 0 <= a <= {HIGH} and 0 <= b <= {HIGH} }}")
        found: set[tuple[int, ...]] = set()
        projection.intersect(box).foreach_point(
            lambda p, found=found: found.add(
                tuple(p.get_coordinate_val(isl.dim_type.set, at).to_python() for at in range(2))
            )
        )
        assert found == shadow, seed
        if shadow:
            point = sample_point(projection, keep)
            assert tuple(point[v] for v in keep) in shadow or min(point.values()) < 0 or max(point.values()) > HIGH


def test_small_values_are_preferred():
    system = System()
    for value in VALUES[:2]:
        system.declare(value, 0, None)
    system.less(Row({VALUES[0]: 1}, 3), Row({VALUES[1]: 1}, 0))
    assert system.find_candidate() == {VALUES[0]: 0, VALUES[1]: 4}


def test_rows_with_a_common_factor():
    """isl's lexmin calls this set empty unless the rows are reduced first."""
    a, q, n, b = range(4)
    system = System(bounds={variable: (0, None) for variable in range(4)})
    system.equalities.append(Row({a: -2, q: 6}, 0))
    system.inequalities += [Row({n: 1, b: -1}, -1), Row({n: 1, a: -1}, -1), Row({a: 1, q: -3}, 0)]
    system.inequalities += [Row({a: -1, q: 3}, 2), Row({a: 1, b: -1}, -1)]
    assert system.find_candidate() == {a: 3, q: 1, n: 4, b: 0}
    system.equalities.append(Row({a: 2, b: 2}, -7))  # no integers
    assert system.is_empty() and system.find_candidate() is None


def test_equal_quotients_share_a_variable():
    system = System()
    for value in VALUES[:2]:
        system.declare(value, 0, 99)
    f = Index.of(VALUES[0]) * 2 + Index.of(VALUES[1])
    rows = [system.row(index, lambda v: v) for index in (f // 7, f % 7, (f // 7) * 3)]
    assert len(system.inequalities) == 2
    assert rows[2].terms == {variable: 3 * factor for variable, factor in rows[0].terms.items()}


@pytest.mark.parametrize("kind", [arith.MuliOp, arith.MinSIOp])
def test_values_are_described_once(kind: type[arith.MuliOp | arith.MinSIOp]):
    """Each is an operand of the next one twice: along each path, the first would be described 2^10 times."""
    value, other = create_ssa_value(IndexType()), create_ssa_value(IndexType())
    for _ in range(10):
        value = kind(value, arith.AddiOp(value, other).result).results[0]
    named: list[SSAValue] = []
    system = System(ranges=Ranges(lambda _value, _ranges: (0, None)))

    def naming(value: SSAValue) -> SSAValue:
        named.append(value)
        return value

    assert system.row(Index.of(value), naming).terms
    assert len(named) < 100


def test_a_spent_budget_is_not_an_answer(monkeypatch: pytest.MonkeyPatch):
    question = next(q for q in map(Question, range(99)) if len(q.equalities) == 2 and q.solutions())
    monkeypatch.setattr(sets, "BUDGET", 1)
    with pytest.raises(NotProved, match="needs more than 1 isl operations"):
        question.system.is_empty()
    with pytest.raises(NotProved, match="needs more than 1 isl operations"):
        question.system.find_candidate()
    monkeypatch.undo()
    assert not question.system.is_empty()
