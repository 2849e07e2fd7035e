"""Constants of cost estimates that are fitted to measurements.

Unlike the facts of `support.processors` they belong to no family of processors: they state how instructions overlap,
and how fast the code is that weft and LLVM generate. `benchmarks/fit_costs.py` fits them to records of schedules.
Unless a line says otherwise, a cost is in multiply-adds of vectors at the peak rate, so that it holds at any clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Nests: cycles of a core (docs/decisions/0088-what-the-cost-model-learns.md).

FUNCTION: Final = 8.0
"""Cycles per division or elementary function of a vector."""
LOOP_ENTRY: Final = 40.0
"""Cycles per execution of an innermost loop: its last branch is mispredicted, and its first loads wait."""
OVERLAP: Final = 0.5
"""Share of the sum of the bounds of a core's parts that remains when they overlap."""

# Threads.

THREADS_PAY: Final = 8.0
"""Cycles of work on one core, per cycle of waking other threads, from which waking them pays."""
ELEMENT: Final = 16.0
"""Scalar multiply-adds that take as long as an operation on an element that comes from memory: 8 bytes at 6 bytes per
cycle, against 16 multiply-adds per cycle with vectors of 32 bytes."""

# Steps of a reduction over a register tile.


@dataclass(frozen=True)
class TileCosts:
    """Costs of one step of a reduction over a register tile."""

    vector: float
    """Per load of a vector."""
    element: float
    """Per load of an element into all lanes."""
    product: float = 1.0
    """Per multiply-add."""
    remainder: float = 1.0
    """Factor if the last tile of an extent is smaller, or has masked lanes, besides those."""
    loads_wait: bool = False
    """Whether loads take as much longer as multiply-adds while too few of these are in flight."""


PRODUCTS: Final = TileCosts(vector=1.0, element=1.0, product=0.0, loads_wait=True)
"""Matrix products: bound by their loads."""
WINDOWS: Final = TileCosts(vector=0.5, element=0.5, remainder=1 / 0.96)
"""Convolutions whose lanes are pixels: one load starts per multiply-add, and L2 answers some of them late."""
FILTERS: Final = TileCosts(vector=1.5, element=0.75)
"""Convolutions whose lanes are filters: vectors of weights come from L2, elements of the data from anywhere in L1."""
BLOCKS: Final = TileCosts(vector=0.25, element=0.25, remainder=1.05)
"""Convolutions in blocks of channels: data and weights are read in the order in which they are stored."""
FLAT_ROWS: Final = 1.03
"""Factor of `BLOCKS` if a tile continues from row to row, so that its pixels are not one stride apart."""

# Layouts of images (docs/decisions/0086-minimal-filtering.md).

PLAIN_WINDOWS: Final = 1 / 24
"""Multiply-adds lost, per multiply-add of a convolution, if channels are not in blocks."""
PLAIN_POINTS: Final = 1 / 6
"""The same for windows of one element."""
PLAIN_STRIDED_CHANNELS: Final = 4.0
"""The same for depthwise convolutions with a stride, whose lanes are gathered."""
PLAIN_INTEGERS: Final = 1.0
"""The same for integers with dot-product instructions, whose lanes are extended otherwise."""
PLAIN_DATA: Final = 1 / 10
"""Multiply-adds lost, per multiply-add of a convolution in blocks, if its data are not."""
FEW_CHANNELS: Final = 4
"""Channels of data up to which `PLAIN_DATA` is 0."""
CONVERSION: Final = 22.0
"""Multiply-adds per element of an image whose layout is changed."""
TRANSFORM: Final = 6.0
"""Multiply-adds per element of a transformed tile and channel, of data or results, of minimal filtering."""
KERNEL_ELEMENT: Final = 8.0
"""Multiply-adds per element of a kernel, which comes from memory."""
FILTERING_PAYS: Final = 0.9
"""Largest share of the direct convolution that minimal filtering may take."""
