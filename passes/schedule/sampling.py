"""Sampling: integers and locations of blocks that a schedule draws, so that a search can draw them again.

A sampler has requirements and changes nothing. Its *decision* identifies the draw: factors, or a position among
candidates or loops. With a decision it draws nothing, and refuses one that it could not have drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from math import comb, isclose, prod
from random import Random
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from weft.analysis.block_scopes import consumers_of, loops_around
from weft.analysis.index import Index
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import CheckedStep, primitive_class
from weft.passes.schedule.split import always_divides
from weft.support.errors import ScheduleError, Violation

Decision: TypeAlias = int | tuple[int, ...]


class ComputeLocation(Enum):
    STAY = -1
    INLINE = -2
    """Into its readers."""


HandleValue: TypeAlias = Operation | int | ComputeLocation
"""The value of a handle that a step returns."""


class Sampler(CheckedStep):
    @abstractmethod
    def draw(self, random: Random) -> Decision:
        """Check every requirement, and draw unless there is a decision."""

    @abstractmethod
    def options(self) -> Iterator[Decision]:
        """Every possible decision once, if the requirements hold."""

    @abstractmethod
    def results(self, decision: Decision) -> Sequence[HandleValue]: ...


@cache
def divisors(number: int) -> tuple[int, ...]:
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(dict.fromkeys([*small, *(number // d for d in reversed(small))]))


@cache
def count_tilings(extent: int, n: int) -> int:
    """The product of C(a + n - 1, n - 1) over the prime powers p^a of `extent`."""
    if n == 0:
        return 1 if extent == 1 else 0
    total, prime = 1, 2
    while extent > 1:
        if prime * prime > extent:
            prime = extent
        power = 0
        while extent % prime == 0:
            extent //= prime
            power += 1
        total *= comb(power + n - 1, n - 1)
        prime += 1
    return total


def tilings(extent: int, n: int, most: int) -> Iterator[tuple[int, ...]]:
    """Tuples of n factors with product `extent`, the last at most `most`."""
    if n == 0:
        if extent == 1:
            yield ()
        return
    for last in divisors(extent) if n > 1 else (extent,):
        if last <= most:
            for outer in tilings(extent // last, n - 1, extent):
                yield (*outer, last)


def known_divisor(extent: int | SSAValue) -> int:
    """A static extent; otherwise the largest power of 2, up to 1024, that provably divides it."""
    if isinstance(extent, int):
        return extent
    known = 1
    while known < 1024 and always_divides(known * 2, Index.of(extent)):
        known *= 2
    return known


_LARGEST = 1 << 40
"""Factoring larger extents takes long."""
_MOST_FACTORS = 64
"""Factors above 1 of an extent of 64 bits."""


@dataclass(frozen=True)
class SamplePerfectTile(Sampler):
    """Draw n factors whose product is the extent of a loop, uniformly among all tilings.

    Requirements:
    1. a static extent is at least 1 and at most 2^40
    2. `n` is 1 to 64 and `max_innermost_factor` at least 1
    3. the decision is one of the tilings: n positive factors that multiply to the extent, the innermost (of several)
       not above the maximum

    If the extent is known only at run time, the first factor is 0, which `split` infers. The product of the others
    divides the largest power of 2, up to 1024, that divides the extent (`tir.assume`).
    """

    loop: ForOp
    n: int
    max_innermost_factor: int
    decision: tuple[int, ...] | None = None

    def draw(self, random: Random) -> tuple[int, ...]:
        dynamic = not isinstance(self.loop.extent, int)
        extent = known_divisor(self.loop.extent)
        if not 1 <= extent <= _LARGEST:
            self.refuse(1, Violation(f"the extent is {extent}"), self.loop)
        if not 1 <= self.n <= _MOST_FACTORS or self.max_innermost_factor < 1:
            self.refuse(2, f"n is {self.n}, the innermost factor at most {self.max_innermost_factor}", self.loop)
        if self.decision is not None:
            self.require(3, self._why_not(self.decision, extent, dynamic=dynamic), self.loop)
            return self.decision
        factors: list[int] = []
        rest = extent
        for outside in reversed(range(self.n)):
            limit = self.max_innermost_factor if outside == self.n - 1 and outside > 0 else rest
            possible = [d for d in divisors(rest) if d <= limit]
            weights = [count_tilings(rest // d, outside) for d in possible]
            (factor,) = random.choices(possible, weights)
            factors.append(factor)
            rest //= factor
        return (0, *reversed(factors[:-1])) if dynamic else tuple(reversed(factors))

    def options(self) -> Iterator[tuple[int, ...]]:
        extent = known_divisor(self.loop.extent)
        most = self.max_innermost_factor if self.n > 1 else extent
        for factors in tilings(extent, self.n, most):
            yield factors if isinstance(self.loop.extent, int) else (0, *factors[1:])

    def _why_not(self, decision: tuple[int, ...], extent: int, *, dynamic: bool) -> Violation | None:
        legal = f"{self.n} positive factors with product {extent}"
        if dynamic:
            legal = f"0 (inferred) and {self.n - 1} positive factors whose product divides {extent}"
            known = prod(decision[1:])
            if decision[:1] != (0,) or min(decision[1:], default=1) < 1 or extent % known:
                return Violation(f"the extent is only known at run time, {list(decision)} given", legal=legal)
            decision = (extent // known, *decision[1:])
        if len(decision) != self.n or min(decision) < 1 or prod(decision) != extent:
            return Violation(f"{list(decision)} multiplies to {prod(decision)}", legal=legal)
        if self.n > 1 and decision[-1] > self.max_innermost_factor:
            return Violation(f"the innermost factor {decision[-1]} is above {self.max_innermost_factor}", legal=legal)
        return None

    def results(self, decision: Decision) -> Sequence[HandleValue]:
        return decision if isinstance(decision, tuple) else (decision,)


@dataclass(frozen=True)
class SamplePartitionedTile(Sampler):
    """Draw n factors whose product is the extent of a loop, uniformly among the tilings whose factors from a position
    on multiply to a multiple of a number.

    Requirements:
    1. the extent is static and a positive multiple of the number of the second part, at most 2^40
    2. there are 1 to 64 factors, and the position is one of them
    3. the decision is one of the tilings
    """

    loop: ForOp
    n: int
    partition_pos: int = 0
    innerpart_factor: int = 1
    decision: tuple[int, ...] | None = None

    def draw(self, random: Random) -> tuple[int, ...]:
        extent = self.loop.extent
        if not 1 <= self.n <= _MOST_FACTORS or not 0 <= self.partition_pos < self.n:
            self.refuse(2, f"n is {self.n}, the second part starts at {self.partition_pos}", self.loop)
        if not isinstance(extent, int) or not 1 <= extent <= _LARGEST or not self._inner_products(extent):
            found = extent if isinstance(extent, int) else "known only at run time"
            self.refuse(1, f"the extent is {found}, the factor of the second part {self.innerpart_factor}", self.loop)
        if self.decision is not None:
            self.require(3, self._why_not(self.decision, extent), self.loop)
            return self.decision
        outer = self.partition_pos
        products = self._inner_products(extent)
        weights = [count_tilings(extent // d, outer) * count_tilings(d, self.n - outer) for d in products]
        (inner,) = random.choices(products, weights)
        return (*_tiling(extent // inner, outer, random), *_tiling(inner, self.n - outer, random))

    def _inner_products(self, extent: int) -> list[int]:
        possible = divisors(extent) if self.partition_pos else (extent,)
        return [d for d in possible if self.innerpart_factor > 0 and d % self.innerpart_factor == 0]

    def options(self) -> Iterator[tuple[int, ...]]:
        extent = known_divisor(self.loop.extent)
        return (found for found in tilings(extent, self.n, extent) if self._why_not(found, extent) is None)

    def _why_not(self, decision: tuple[int, ...], extent: int) -> Violation | None:
        inner = prod(decision[self.partition_pos :])
        if len(decision) != self.n or min(decision) < 1 or prod(decision) != extent:
            legal = f"{self.n} positive factors with product {extent}"
            return Violation(f"{list(decision)} multiplies to {prod(decision)}", legal=legal)
        if inner % self.innerpart_factor:
            return Violation(f"the second part multiplies to {inner}, no multiple of {self.innerpart_factor}")
        return None

    def results(self, decision: Decision) -> Sequence[HandleValue]:
        return decision if isinstance(decision, tuple) else (decision,)


def _tiling(extent: int, n: int, random: Random) -> tuple[int, ...]:
    factors: list[int] = []
    for outside in reversed(range(n)):
        possible = divisors(extent)
        (factor,) = random.choices(possible, [count_tilings(extent // d, outside) for d in possible])
        factors.append(factor)
        extent //= factor
    return tuple(factors)


@dataclass(frozen=True)
class SampleCategorical(Sampler):
    """Draw one of several integers, with given probabilities.

    Requirements:
    1. each candidate has a probability, and they add up to 1: not negative; there is at least one
    2. the decision is the position of a candidate
    """

    candidates: tuple[int, ...]
    probs: tuple[float, ...]
    decision: int | None = None

    def draw(self, random: Random) -> int:
        if len(self.candidates) != len(self.probs) or not self.candidates:
            self.refuse(1, f"{len(self.candidates)} candidates, {len(self.probs)} probabilities")
        if not all(p >= 0 for p in self.probs) or not isclose(sum(self.probs), 1, abs_tol=1e-6):
            self.refuse(1, f"{list(self.probs)} add up to {sum(self.probs)}")
        if self.decision is None:
            return random.choices(range(len(self.candidates)), self.probs)[0]
        if not 0 <= self.decision < len(self.candidates):
            self.refuse(2, f"there is no candidate {self.decision}: they are 0 .. {len(self.candidates) - 1}")
        return self.decision

    def options(self) -> Iterator[int]:
        return (at for at, probability in enumerate(self.probs) if probability > 0)

    def results(self, decision: Decision) -> Sequence[HandleValue]:
        return (self.candidates[decision],) if isinstance(decision, int) else ()


@dataclass(frozen=True)
class SampleComputeLocation(Sampler):
    """Draw a location for a block: a loop around all its readers, to which `compute_at` may move it (a position among
    the loops around the first reader), its present place (-1), or inside its readers (-2). All legal locations are
    equally likely.

    Requirements:
    1. the decision is one of the legal places
    """

    block: BlockOp
    decision: int | None = None

    def draw(self, random: Random) -> int:
        candidates = self._candidates()
        if self.decision is None:
            # Uniformly distributed, and few locations are checked.
            return next(at for at in random.sample(candidates, len(candidates)) if self._is_legal(at))
        if self.decision not in candidates or not self._is_legal(self.decision):
            legal = ", ".join(_place_text(at) for at in candidates if self._is_legal(at))
            detail = f"{self.decision} is not"
            self.refuse(1, Violation(detail, legal=legal))
        return self.decision

    def options(self) -> Iterator[int]:
        return (at for at in self._candidates() if self._is_legal(at))

    def results(self, decision: Decision) -> Sequence[HandleValue]:
        if decision in (ComputeLocation.STAY.value, ComputeLocation.INLINE.value):
            return (ComputeLocation(decision),)
        return (self._loops()[decision],) if isinstance(decision, int) else ()

    def _loops(self) -> list[ForOp]:
        consumers = consumers_of(self.block)
        return loops_around(consumers[0]) if consumers else []

    def _candidates(self) -> list[int]:
        consumers = consumers_of(self.block)
        loops = [
            at
            for at, loop in enumerate(self._loops())
            if all(loop.is_ancestor(consumer) for consumer in consumers) and not loop.is_ancestor(self.block)
        ]
        return [ComputeLocation.INLINE.value, ComputeLocation.STAY.value, *loops]

    def _is_legal(self, place: int) -> bool:
        if place == ComputeLocation.STAY.value:
            return True
        inline = place == ComputeLocation.INLINE.value
        arguments = {"block": self.block} if inline else {"block": self.block, "loop": self._loops()[place]}
        try:
            primitive_class("compute_inline" if inline else "compute_at")(**arguments).plan()
        except ScheduleError:
            return False
        return True


def _place_text(decision: int) -> str:
    if decision == ComputeLocation.INLINE.value:
        return "-2 (inline)"
    return "-1 (stay)" if decision == ComputeLocation.STAY.value else str(decision)


SAMPLERS: Mapping[str, type[Sampler]] = {
    "sample_perfect_tile": SamplePerfectTile,
    "sample_partitioned_tile": SamplePartitionedTile,
    "sample_categorical": SampleCategorical,
    "sample_compute_location": SampleComputeLocation,
}
