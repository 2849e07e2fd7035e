"""Writes that fill a box around what is read: told from the indices, and never where an element is left out."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from tiers import first_tier

import weft
from weft.analysis.accesses import accesses
from weft.analysis.coverage import fills_box_around
from weft.analysis.footprint import hull, span_of
from weft.analysis.independence import is_private
from weft.analysis.index import Index
from weft.dialects.tir import ForOp
from weft.passes.schedule.nest_builders import domain_from_span, new_loop

PROGRAM = """
func.func @f(%A: memref<64x64xf32>, %C: memref<64x64xf32>, %n: index) {
  tir.assume [%n] <= [64]
  %T = memref.alloc() : memref<64x64xf32>
  %zero = arith.constant 0.0 : f32
  tir.for %o in 4 {
    tir.for %a in EXTENT_A { tir.for %b in EXTENT_B {
      %w0 = affine.apply affine_map<(o, a, b) -> (WRITE0)> (%o, %a, %b)
      %w1 = affine.apply affine_map<(o, a, b) -> (WRITE1)> (%o, %a, %b)
      memref.store %zero, %T[%w0, %w1] : memref<64x64xf32>
    } }
    tir.for %c in 4 { tir.for %d in 3 {
      %r0 = affine.apply affine_map<(o, c, d) -> (READ0)> (%o, %c, %d)
      %r1 = affine.apply affine_map<(o, c, d) -> (READ1)> (%o, %c, %d)
      %t = memref.load %T[%r0, %r1] : memref<64x64xf32>
      memref.store %t, %C[%c, %d] : memref<64x64xf32>
    } }
  }
  func.return
}
"""


def facts(writes: tuple[str, str], reads: tuple[str, str], extents: tuple[str, str]) -> tuple[bool, bool]:
    """Whether the box is seen to be filled, and whether the temporary is private to the outer loop."""
    text = PROGRAM.replace("WRITE0", writes[0]).replace("WRITE1", writes[1])
    text = text.replace("READ0", reads[0]).replace("READ1", reads[1])
    module = weft.parse(text.replace("EXTENT_A", extents[0]).replace("EXTENT_B", extents[1]))
    loop = next(op for op in module.walk() if isinstance(op, ForOp))
    found = accesses(loop)
    write, read = (next(a for a in found if a.buffer.name_hint == "T" and a.is_write is kind) for kind in (True, False))
    return fills_box_around(write, read), is_private(read.buffer, loop, found)


@pytest.mark.parametrize(
    ("writes", "reads", "extents"),
    [
        (("a", "b"), ("c", "d"), ("4", "3")),
        (("a", "b"), ("d", "c"), ("4", "4")),
        (("o * 4 + a", "b + 5"), ("o * 4 + c", "d + 6"), ("4", "4")),
        (("a * 3 + b", "7"), ("c + d", "7"), ("4", "3")),  # digits of one dimension
        (("o floordiv 2 + a", "b"), ("o floordiv 2 + c", "d"), ("4", "3")),
        (("b", "0"), ("d", "0"), ("1", "3")),
    ],
)
def test_filled(writes: tuple[str, str], reads: tuple[str, str], extents: tuple[str, str]) -> None:
    assert facts(writes, reads, extents) == (True, True)


@pytest.mark.parametrize(
    ("writes", "reads", "extents"),
    [
        (("a", "b"), ("c", "d"), ("3", "3")),  # too small
        (("a", "a"), ("c", "d"), ("4", "3")),  # the diagonal
        (("a * 2", "b"), ("c", "d"), ("4", "3")),  # every second
        (("a", "b"), ("c", "d + 1"), ("4", "3")),  # one further
        (("a * 4 + b", "7"), ("c + d", "7"), ("4", "3")),  # digits with a gap
        (("o + a", "b"), ("c", "d"), ("4", "3")),  # another place in each iteration
        (("a floordiv 2", "b"), ("c", "d"), ("4", "3")),
        (("a", "b"), ("c", "d"), ("%n", "3")),
    ],
)
def test_not_filled(writes: tuple[str, str], reads: tuple[str, str], extents: tuple[str, str]) -> None:
    assert facts(writes, reads, extents)[0] is False


SIDES = ("a", "b", "a + o", "a * 3 + b", "2 * a", "b + 1")
WANTED = ("c", "d", "c + o", "d + 1", "2 * d")


@pytest.mark.slow
@pytest.mark.parametrize("sides", first_tier([SIDES[:4], SIDES], SIDES[:4]), ids=len)
@pytest.mark.parametrize("extents", first_tier([(4, 3), (5, 4)], (4, 3)))
def test_against_enumeration(extents: tuple[int, int], sides: tuple[str, ...]) -> None:
    """What is said to be filled is: in every iteration of the loop around both, each element read was written."""
    seen = 0
    for writes in itertools.product(sides, sides):
        for reads in itertools.product(WANTED, ("d", "c + o", "7")):
            if not facts(writes, reads, (str(extents[0]), str(extents[1])))[0]:
                continue
            seen += 1
            for o in range(4):
                written = {
                    tuple(eval(side, {"o": o, "a": a, "b": b}) for side in writes)
                    for a in range(extents[0])
                    for b in range(extents[1])
                }
                for c, d in itertools.product(range(4), range(3)):
                    assert tuple(eval(side, {"o": o, "c": c, "d": d}) for side in reads) in written
    assert seen > 3


@pytest.mark.parametrize("seed", range(25))
def test_spans_hold_all_that_is_read(seed: int) -> None:
    """Spans, with their steps and runs, of random sums of loop values: no value is left out, and none is twice."""
    random = Random(seed)
    sums = [
        [random.choice([0, 1, 1, 2, 3, 4, 6, -4, 8, -9]) for _ in range(3)] for _ in range(random.choice([1, 1, 2]))
    ]
    start = [100 + random.choice([0, 1, 4, 9]) for _ in sums]
    extents = [random.choice([1, 2, 3, 4]) for _ in range(3)]
    loops = [new_loop(extent, "i", weft.parse("")) for extent in extents]
    values = [loop.induction_variable for loop in loops]
    indices = [
        Index(dict(zip(values, factors, strict=True)), first) for factors, first in zip(sums, start, strict=True)
    ]
    span = hull([span_of(index, ()) for index in indices])
    assert span is not None
    domain = domain_from_span(span, 1000)
    counter = new_loop(span.count, "ax0", loops[0])
    index = domain.at(counter.induction_variable)
    found = [index.evaluate({counter.induction_variable: at}.__getitem__) for at in range(span.count)]
    assert len(set(found)) == len(found)
    assert all(span.lower.constant <= value < span.lower.constant + span.extent for value in found)
    for point in itertools.product(*map(range, extents)):
        assert {i.evaluate(dict(zip(values, point, strict=True)).__getitem__) for i in indices} <= set(found)
