"""Bytes and pages that a loop nest moves between levels of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, gcd, prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.support.processors import Processor
    from weft.support.target import Target


@dataclass(frozen=True)
class Operand:
    """The accesses of a nest with one index of a buffer, such as `A[i, k + 1]`."""

    shape: tuple[int, ...]
    element_bytes: int
    boxes: Sequence[tuple[int, ...]]
    """`boxes[depth]`: elements per dimension that the loops from `depth` on access; one more entry than loops."""


@dataclass(frozen=True)
class LoopNest:
    """Loops, outermost first (vectorized and unrolled ones innermost), and operands of the body."""

    loops: Sequence[int] = ()
    """Extents."""
    operands: Sequence[Operand] = ()


@dataclass(frozen=True)
class Cache:
    """Sizes of a cache and of a way: lines at that distance share a set."""

    bytes: int
    way_bytes: int


def caches(target: Target) -> tuple[Cache, Cache, Cache]:
    """L1, L2 and L3 of a core; L2 replaces an L3 that is not larger."""
    second = Cache(target.l2_bytes, target.l2_bytes // max(target.l2_ways, 1))
    third = Cache(target.l3_bytes, target.l3_bytes) if target.l3_bytes > target.l2_bytes else second
    # L1 is indexed by the offset in a page.
    return Cache(target.l1_bytes, min(target.processor.page_bytes, target.l1_bytes)), second, third


def bytes_from_beyond(nest: LoopNest, cache: Cache, processor: Processor) -> list[float]:
    """Bytes per operand, in whole lines, that a nest moves from beyond a cache.

    The largest inner part whose operands fit moves them once. It runs once per iteration of the loops around it, but
    iterations of the innermost of these share elements. Lines at distances that are multiples of a large power of two
    compete for few sets and occupy more of the cache.
    """
    line = processor.line_bytes

    def room(box: _Box) -> float:
        return max(box.bytes(line), box.room(cache.way_bytes))

    return _moved(nest, cache.bytes, lambda box: box.bytes(line), room)


def pages_from_beyond(nest: LoopNest, processor: Processor) -> float:
    """The number of pages that the first-level TLB lacks."""

    def pages(box: _Box) -> float:
        return box.pages(processor.page_bytes)

    return sum(_moved(nest, processor.l1_tlb_pages, pages, pages))


def _moved(
    nest: LoopNest, capacity: float, amount: Callable[[_Box], float], room: Callable[[_Box], float]
) -> list[float]:
    def touched(depth: int) -> list[_Box]:
        return [_Box(operand.boxes[depth], operand.shape, operand.element_bytes) for operand in nest.operands]

    depth, boxes = 0, touched(0)
    while depth < len(nest.loops) and sum(map(room, boxes)) > capacity:
        depth += 1
        boxes = touched(depth)
    if depth:  # the runs of one loop around that part share moves; loops further out repeat them
        depth -= 1
        boxes = touched(depth)
    runs = float(prod(nest.loops[:depth]))
    return [amount(box) * runs for box in boxes]


@dataclass(frozen=True)
class _Box:
    extents: tuple[int, ...]
    shape: tuple[int, ...]
    element_bytes: int

    def _runs(self) -> tuple[float, int]:
        """The number of contiguous runs, and the bytes of one."""
        run = self.element_bytes
        for extent, whole in zip(reversed(self.extents), reversed(self.shape), strict=True):
            run *= extent
            if extent != whole:
                break
        return prod(self.extents) * self.element_bytes / max(run, 1), run

    def bytes(self, line: int) -> float:
        runs, run_bytes = self._runs()
        whole = float(prod(self.shape) * self.element_bytes)
        return min(runs * ceil(run_bytes / line) * line, max(whole, line))

    def pages(self, page: int) -> float:
        runs, run_bytes = self._runs()
        strides, last = self._strides(), self.element_bytes
        span = last + sum((extent - 1) * stride for extent, stride in zip(self.extents, strides, strict=True))
        return min(runs * ceil(run_bytes / page), span // page + 1)

    def room(self, way: int) -> float:
        """The bytes of a cache that the lines occupy, given conflicts in sets."""
        ways = 1
        for extent, stride in zip(self.extents, self._strides(), strict=True):
            ways *= ceil(extent * gcd(stride, way) / way)
        return float(ways * way) if ways > 1 else 0.0

    def _strides(self) -> list[int]:
        return [self.element_bytes * prod(self.shape[at + 1 :]) for at in range(len(self.shape))]
