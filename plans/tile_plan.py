"""Tile plans: schedules of nests as data, which rules compute and `autoschedule.executor` executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

Loop: TypeAlias = tuple[int, ...]
"""A loop of a plan: the position of an iterator of the block, then for each split the position of a part, outermost 0.
`(2,)` is the loop of the third iterator; a split makes it `(2, 0)` and `(2, 1)`.
"""

Factors: TypeAlias = tuple[int | None, ...]
"""Iterations of the parts of a loop, outermost first. One may be None, which follows from the others and the extent."""


@dataclass(frozen=True)
class LoopSplit:
    loop: Loop
    factors: Factors

    @property
    def parts(self) -> tuple[Loop, ...]:
        return tuple((*self.loop, at) for at in range(len(self.factors)))


@dataclass(frozen=True)
class Digit:
    """One dimension of a packed layout: `index // divisor % modulus` of an unpacked dimension; no remainder if
    `modulus` is 0.
    """

    dimension: int
    divisor: int = 1
    modulus: int = 0


Layout: TypeAlias = tuple[Digit, ...]
"""The dimensions of a packed buffer. `(Digit(1, 16), Digit(0), Digit(1, 1, 16))` are panels of 16 columns of a
matrix.
"""


def digits_of(dimensions: Sequence[int]) -> Layout:
    """A layout that permutes the dimensions."""
    return tuple(Digit(dimension) for dimension in dimensions)


def panels(rank: int, at: int, width: int, *, outermost: bool = False) -> Layout:
    """Panels of `width` elements of dimension `at`: the panel number replaces it, or precedes all others; the position
    in the panel is last.
    """
    rest = digits_of([dimension for dimension in range(rank) if dimension != at])
    panel = 0 if outermost else at
    return (*rest[:panel], Digit(at, width), *rest[panel:], Digit(at, 1, width))


def moved_last(rank: int, at: int) -> Layout:
    return digits_of([*(dimension for dimension in range(rank) if dimension != at), at])


def split_by_residue(rank: int, step: int) -> Layout:
    """The last dimension split by residue modulo `step`: elements `step` apart become consecutive."""
    return (*digits_of(range(rank - 1)), Digit(rank - 1, 1, step), Digit(rank - 1, step))


def index_map(layout: Layout) -> Callable[..., tuple[int, ...]]:
    def mapped(*indices: int) -> tuple[int, ...]:
        result: list[int] = []
        for digit in layout:
            index = indices[digit.dimension]
            index = index // digit.divisor if digit.divisor > 1 else index
            result.append(index % digit.modulus if digit.modulus else index)
        return tuple(result)

    return mapped


def packed_shifts(shifts: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Distances in a layout that correspond to distances `shifts` before packing."""
    return tuple(
        shifts[digit.dimension] // digit.divisor % digit.modulus
        if digit.modulus
        else shifts[digit.dimension] // digit.divisor
        for digit in layout
    )


ALL: Final = 1 << 10
"""A number greater than that of the loops of any nest."""


@dataclass(frozen=True)
class CopyLoops:
    """Splits of a copy's own loops: those that are not around the block that uses it.

    The loop of one dimension is split into `factors`, each part outside `inside` loops of the other dimensions, the
    innermost of which may be split first. The innermost loop of all is vectorized or unrolled. Without factors the nest
    is unchanged.
    """

    factors: Factors = ()
    dimension: int | None = None
    """The dimension whose loop is split; None for the innermost loop. A dimension of extent 1 has no loop: the nest is
    unchanged.
    """
    inside: tuple[int, ...] | None = None
    """Loops of other dimensions inside each part; None keeps the order."""
    steps: int = 0
    """Iterations of a piece of the innermost loop of the others; 0 does not split it."""
    divides: bool = False
    """Whether a divisor of the extent replaces `steps`, if not much smaller."""
    vector: bool = True
    """Whether the innermost loop is vectorized, else unrolled."""
    unrolled: int = 0
    """Loops around the innermost one that are unrolled."""
    exact: tuple[int, ...] = ()
    """Lanes, the first of which that divides the extent replaces the last factor. Without one the nest is unchanged."""
    stepped: int | None = None
    """The dimension whose loop is split into `steps`, if not the innermost of the others."""
    intrinsic: str = ""
    """The tensor intrinsic that computes the innermost two loops."""
    threads: int = 0
    """Threads of a kernel's block that share all loops of the copy, which are fused. Factors are then ignored."""
    thread_bytes: int = 0
    """Limit of bytes that a thread moves at once, if rows of known length are aligned."""
    fused: int = 1
    """Innermost loops that are fused first."""


@dataclass(frozen=True)
class Prefetch:
    """A prefetch of accessed buffers, at a distance along iterators."""

    write: bool
    shifts: tuple[int, ...]
    position: int | None = None
    """Position among the buffers read, or written; None for all that are read."""
    block: str = ""
    """The label of the block that accesses the buffers, if another."""


class MadeBy(Enum):
    COPY = auto()
    """A copy of the buffer that is read."""
    PRODUCER = auto()
    """The elementwise producer, if the operand has one and no other consumer, else a copy."""
    ONLY_PRODUCER = auto()
    """The elementwise producer; without one the operand is read in place."""
    INLINED_PRODUCER = auto()
    """The elementwise producer, inlined into the block; without one the operand is read in place."""
    PADDING = auto()
    """The block that pads the operand (`TilePlan.padding`)."""
    NONE = auto()
    """The operand is recoded and read in place."""

    @property
    def is_producer(self) -> bool:
        return self in (MadeBy.PRODUCER, MadeBy.ONLY_PRODUCER, MadeBy.INLINED_PRODUCER)


@dataclass(frozen=True)
class Staged:
    """An operand computed or copied before the block reads it."""

    operand: int
    """Position among the buffers that the block reads."""
    at: Loop | None = None
    """The loop whose iterations copy the part that they read; None copies all before the nest."""
    made_by: MadeBy = MadeBy.COPY
    reindexed: tuple[int, ...] = ()
    """Iterators of the block, each a dimension of the copy."""
    recoded: str = ""
    """The encoding to which the operand is first recoded."""
    source: CopyLoops | None = None
    """The loops of the block that recodes or pads the operand, per piece of the copy."""
    scope: str = "global"
    fuses_producer: bool = False
    """Whether the elementwise producer is computed while it is copied."""
    layout: Layout = ()
    align: int = 0
    """Elements to whose multiples rows of the copy are aligned."""
    loops: CopyLoops = CopyLoops()
    prefetches: tuple[Prefetch, ...] = ()
    """Prefetches of buffers that the copy accesses, along its dimensions."""
    parallel: bool = False
    """Whether threads share the outermost loop of the copy."""
    shared: bool = False
    """Whether threads share the copy if profitable; otherwise each copies the elements that it reads, or one copies
    all.
    """


@dataclass(frozen=True)
class ResultCopy:
    """The copy of results from their accumulator, with elementwise consumers."""

    at: Loop
    """The loop whose iterations copy results."""
    scope: str = "local"
    padded: bool = False
    """Whether the block that omits padding is the copy."""
    reindexed: bool = False
    """Whether the accumulator has a dimension per iterator of the block."""
    align: int = 0
    layout: Layout = ()
    """The layout of the accumulator."""
    kept: int | None = None
    """Innermost loops of the copy kept in registers; None for all inside `at`."""
    loops: CopyLoops | None = None
    """The loops of the copy, if not in registers and the copy computes something."""
    prefetch: Prefetch | None = None
    is_first: bool = False
    """Whether the copy of results precedes those of operands, which determines the order of allocations."""


@dataclass(frozen=True)
class Parts:
    """A reduction in parts, whose sums are added to the results in turn."""

    steps: int
    """Iterations of the first reduced iterator in a part: its loop is `(at, 0)` over parts and `(at, 1)` in a part."""
    at: Loop
    """The loop whose iterations add a part's sums to the results."""
    dimensions: tuple[int, ...] = ()
    """Iterators of the dimensions of the results, if sums are added in place."""


@dataclass(frozen=True)
class TilePlan:
    order: tuple[Loop, ...] = ()
    """Loops after all splits, outermost first; others keep their positions."""
    outermost: tuple[Loop, ...] = ()
    """The order of loops before the splits."""
    fused: tuple[tuple[Loop, ...], ...] = ()
    """Adjacent loops fused before the splits; the result has the name of the first."""
    splits: tuple[LoopSplit, ...] = ()
    joined: tuple[tuple[Loop, ...], ...] = ()
    """Adjacent loops fused after all loops are reordered."""
    flat: tuple[int, ...] = ()
    """Adjacent iterators fused in the block, in its accumulator, and in reindexed copies."""
    padding: tuple[int, ...] = ()
    """Per iterator, after `flat` ones are fused, the divisor of its zero-padded extent."""
    staged: tuple[Staged, ...] = ()
    result: ResultCopy | None = None
    parts: Parts | None = None
    start: Loop | None = None
    """The loop before which accumulators are initialised."""
    registers: int = 1
    """Innermost loops in registers: the last is vectorized, the others are unrolled."""
    lanes: int = 0
    """Lanes of the vector axis; 0 for all iterations of its loop."""
    intrinsic: str = ""
    """The intrinsic that computes the innermost `intrinsic_loops` loops."""
    intrinsic_loops: int = 2
    """2 for dot products (lanes, and the group that each lane sums), and all loops of the sums for tiles."""
    reassociated: bool = False
    """Whether the vector axis is that of the reduction: lanes are combined at its end."""
    prefetches: tuple[Prefetch, ...] = ()
    """Prefetches of the buffers that the block accesses."""
    nontemporal: tuple[int, ...] = ()
    """Positions of written buffers with non-temporal stores."""
    unrolled: tuple[Loop, ...] = ()
    """Other loops that are unrolled."""
    interior: Loop | None = None
    """The loop around a tile with versions for interior and border of a domain of symbolic extents."""
    bound: tuple[tuple[Loop, str], ...] = ()
    """Loops bound to threads, or blocks, of a kernel along an axis."""
    unit: str = ""
    """The axis of a single thread, or block, around the nest."""
    threads: tuple[Loop, ...] | None = None
    """Adjacent loops that threads share; None for the outermost ones, if profitable."""
    most_shared: int | None = None
    """Maximum loops that threads share."""
