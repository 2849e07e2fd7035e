"""Evolutionary search: batches of candidates derived from the decisions of the fastest so far.

A batch contains, in this order of preference: the defaults of the space and the best of other machines (once),
neighbours of fast candidates (one decision changed), crossings of two (each decision from either), and random ones, so
that the whole space is reachable. Tried candidates, and those equal to another schedule, are skipped. A cost model
selects from a larger pool those predicted to be fast; the others wait.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from weft.tuning.cost_model import CostModel, Sample
from weft.tuning.records import Decision
from weft.tuning.space import Candidate, Refused, Space

_ELITE: Final = 16
"""The fastest ones that can be parents."""
_CHILDREN: Final = 32
"""Attempts to find a new candidate among children before it is drawn: draws prefer untried parts of a space."""
_TRIES: Final = 512
"""Attempts to find a new candidate before the search gives up."""


@dataclass(frozen=True)
class SearchOptions:
    batch: int = 8
    """Candidates that are built together, then measured."""
    epsilon: float = 0.1
    """Random fraction of a batch; the first batch is entirely random."""
    crossover: float = 0.2
    """Fraction of children with two parents."""


@dataclass(frozen=True)
class Ranking:
    model: CostModel
    default: tuple[float, ...]
    """Features of the default schedule."""
    default_seconds: float

    def predict(self, candidates: Sequence[Candidate]) -> list[float]:
        return self.model.predict([candidate.features for candidate in candidates], self.default)

    def tell(self, candidate: Candidate, seconds: float) -> None:
        self.model.learn([Sample(candidate.features, self.default, seconds / self.default_seconds)])


@dataclass
class SearchCounts:
    proposed: int = 0
    refused: int = 0
    duplicates: int = 0


class EvolutionarySearch:
    """Proposes candidates of a space. Deterministic in the seed and the times."""

    def __init__(
        self,
        space: Space,
        seed: int,
        options: SearchOptions | None = None,
        first: Sequence[tuple[Decision | None, ...]] = (),
        ranking: Ranking | None = None,
    ) -> None:
        """`first` are decisions of other searches to begin with. Without a `ranking` all candidates are proposed."""
        self._ranking = ranking
        self._waiting: list[Candidate] = []
        self._planned: list[Candidate] = []
        self.counts = SearchCounts()
        self._space = space
        self._random = Random(seed)
        self._options = options or SearchOptions()
        self._first = [*first]
        self._has_begun = False
        self._seen: set[bytes] = set()
        self._ranked: list[tuple[float, int, Candidate]] = []
        self._gave_up = False

    @property
    def is_exhausted(self) -> bool:
        return not self._planned and not self._waiting and self._makes_no_more

    @property
    def _makes_no_more(self) -> bool:
        return self._gave_up or self._space.is_exhausted

    def adopt(self, candidate: Candidate) -> None:
        """Mark the defaults of the space as proposed, before any proposal."""
        self._has_begun = True
        self._seen.add(candidate.digest)

    def propose(self, most: int) -> list[Candidate]:
        """Empty if the space is exhausted."""
        if not self._planned:
            self._planned = self._plan(self._options.batch)
        batch, self._planned = self._planned[:most], self._planned[most:]
        self.counts.proposed += len(batch)
        return batch

    def prepare(self) -> None:
        """Make the next pool while a batch is built. Parents have known times."""
        if not self._planned:
            self._make_choice(self._options.batch)

    def _plan(self, count: int) -> list[Candidate]:
        """Always a whole batch, so that a search with more trials continues one with fewer."""
        batch: list[Candidate] = []
        while len(batch) < count and not self._makes_no_more and (not self._has_begun or self._first):
            batch += self._made()
        self._make_choice(count - len(batch))
        return [*batch, *self._chosen(count - len(batch))]

    def _make_choice(self, count: int) -> None:
        choice = 1 if self._ranking is None else self._ranking.model.choice
        while len(self._waiting) < count * choice and not self._makes_no_more:
            self._waiting += self._made()

    def _made(self) -> list[Candidate]:
        candidate = self._next()
        self._gave_up = self._gave_up or candidate is None
        return [] if candidate is None else [candidate]

    def _chosen(self, count: int) -> list[Candidate]:
        """Some random candidates, and those predicted to be fast; the others stay."""
        pool = self._waiting
        if self._ranking is not None and len(pool) > count:
            predicted = self._ranking.predict(pool)
            order = sorted(range(len(pool)), key=predicted.__getitem__)
            drawn = sum(self._random.random() < self._options.epsilon for _ in range(count))
            places = order[: count - drawn]
            places += self._random.sample(order[count - drawn :], drawn)
        else:
            places = list(range(min(count, len(pool))))
        self._waiting = [candidate for at, candidate in enumerate(pool) if at not in places]
        return [pool[at] for at in places]

    def tell(self, candidate: Candidate, seconds: float | None) -> None:
        """None for a failed candidate, which has no children."""
        if seconds is not None:
            insort(self._ranked, (seconds, len(self._ranked), candidate), key=lambda entry: entry[:2])
            if self._ranking is not None:
                self._ranking.tell(candidate, seconds)

    def _next(self) -> Candidate | None:
        for at in range(_TRIES):
            found = self._attempt() if at < _CHILDREN else self._draw()
            if isinstance(found, Refused):
                self.counts.refused += 1
            elif found is None or found.digest in self._seen:
                self.counts.duplicates += 1
            else:
                self._seen.add(found.digest)
                return found
            if self._space.is_exhausted:
                break
        return None

    def _attempt(self) -> Candidate | Refused | None:
        if not self._has_begun:
            self._has_begun = True
            return self._space.run(self._random, takes_defaults=True)
        if self._first:
            return self._space.run(self._random, self._first.pop(0), seen=self._seen)
        if not self._ranked or self._random.random() < self._options.epsilon:
            return self._draw()
        parent = self._parent()
        partners = [
            other
            for _, _, other in self._ranked[:_ELITE]
            if len(other.choices) == len(parent.choices) and other is not parent
        ]
        if partners and self._random.random() < self._options.crossover:
            other = self._random.choice(partners)
            pairs = zip(parent.choices, other.choices, strict=False)
            return self._space.run(self._random, [self._random.choice(pair) for pair in pairs], seen=self._seen)
        if not parent.choices:
            return self._draw()
        change = self._random.randrange(len(parent.choices))
        return self._space.run(self._random, parent.choices, change, seen=self._seen)

    def _draw(self) -> Candidate | Refused | None:
        return self._space.run(self._random, seen=self._seen)

    def _parent(self) -> Candidate:
        most = min(len(self._ranked), _ELITE)
        return self._ranked[min(self._random.randrange(most), self._random.randrange(most))][2]
