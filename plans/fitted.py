"""Constants of cost estimates, fitted to records of schedules by `benchmarks/fit_costs.py`.

Unlike the facts of `support.processors`, they hold for all processors. Unless stated otherwise, a cost is in
multiply-adds of vectors at the peak rate, independent of the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# Nests; costs are in cycles of a core (docs/decisions/0088-what-the-cost-model-learns.md).

FUNCTION: Final = 8
"""Cycles per division or elementary function of a vector."""
LOOP_ENTRY: Final = 40.0
"""Cycles per execution of an innermost loop: its last branch is mispredicted, its first loads wait."""
OVERLAP: Final = 0.5
"""Fraction of the sum of a core's bounds that remains after overlap."""

ACCUMULATORS: Final = 4
"""Vectors of results, or partial results, that a nest accumulates at once."""
FUNCTION_REGISTERS: Final = 8
"""Registers per vector of results if chains of function evaluations are interleaved."""
SWEPT_STEPS: Final = 64
"""Minimum reduction steps for which memory is read in order, while results are loaded and stored repeatedly."""
SWEPT_ROWS: Final = 4
"""Rows added to results per load and store of the results."""
UNROLLED_PERIOD: Final = 8
"""Iterations of the longest unrolled period of indices. Resizing by 8 took 4 % (cubic) and 17 % (linear) of the time of
the loop that is not unrolled; longer periods were not measured.
"""
ROWS_AT_A_TIME: Final = 4
"""Limit of rows that a nest computes before the next nest reads them."""
VECTORS_OF_SHORT_ROWS: Final = 4
"""Vectors of a row of symbolic length up to which it is one masked step. Softmax of 10 to 50 elements took 0.6 to 0.8
of the time of a loop over vectors with a remainder."""
ROWS_OF_UNKNOWN_LENGTH: Final = 2
"""`ROWS_AT_A_TIME` for rows of symbolic length. Softmax took 0.84 to 0.94 of the time of one row up to 2,048 elements
and 1.05 from 4,096 on; layer norm 0.84 to 0.96, and 1.02 to 1.07."""
PADDED_STEPS: Final = 4
"""Minimum steps of a separately padded piece of an image: pieces share rows of windows."""
UNROLLED_WINDOW: Final = 16
"""Limit of elements of a window whose loops are unrolled."""
UNROLLED_POOL: Final = 64
"""`UNROLLED_WINDOW` for pools, whose sums or maxima are one tile of vectors."""
UNROLLED_PRODUCTS: Final = 160
"""Limit of multiply-adds of a register tile in one unrolled body."""
UNROLLED_SHARED_ROWS: Final = 200
"""`UNROLLED_PRODUCTS` for tiles whose rows share data, which only unrolled windows exploit."""
SHORT_STREAM: Final = 16 << 10
"""Maximum bytes of a stream without prefetches."""
FAR_CACHES: Final = 8
"""Minimum bytes of arrays, per byte of L2, read at the bandwidth of memory."""
SHORT_ROW: Final = 448
"""Maximum bytes of an image row that the prefetchers treat as one stream with its neighbours."""
LONG_ROW: Final = 32
"""Minimum pixels of a row with a negligible remainder."""

SYMBOLIC_PIXELS: Final = 56
"""Assumed pixels along an image axis of symbolic extent."""
MASKED_CHANNELS: Final = 8
"""Limit of channels for which a tile's masks are computed once. More channels of 33 x 33 pixels do not fit in L1."""

# Threads.

THREADS_PAY: Final = 8
"""Minimum cycles of work on one core, per cycle of waking other threads, for which waking pays."""
INSTRUCTIONS_PAY: Final = 4
"""Minimum instructions per cycle of waking other threads for which waking pays, at about two instructions per cycle."""
ELEMENT: Final = 16
"""Scalar multiply-adds in the time of an operation on an element in memory: 8 bytes at 6 bytes per cycle, against 16
multiply-adds per cycle with vectors of 32 bytes.
"""
DOT_PRODUCTS: Final = 4
"""Products of narrow integers in the time of a scalar multiply-add."""
TILE_PRODUCTS: Final = 16
"""Products in tile registers in the time of a scalar multiply-add."""
BUSY_PANELS: Final = 0.8
"""Minimum fraction of busy threads for which threads share panels, not rows."""
BUSY_STRIPS: Final = 0.9
"""Minimum fraction of busy threads for which threads share strips of rows, not filters."""

# Shares of caches. `L2_PER_STRIP` = 4 means that one strip occupies at most a quarter of L2.

L2_PER_STRIP: Final = 4
"""A strip of data in blocks of channels, with halo, while weights are streamed."""
L2_PER_TILES: Final = 2
"""A strip of register tiles that continue from row to row."""
L2_PER_LEFT: Final = 4
"""A left factor that is kept while panels of the right one are streamed."""
L2_PER_PADDED_ROWS: Final = 8
"""A strip of rows with halo; the first-level TLB lacks pages of a larger one."""
L2_PER_TRANSFORMED: Final = 2
"""A strip's data transformed by Winograd."""
L1_PER_PADDED_ROWS: Final = 4
"""Padded rows of a pool; source and results are in L1 as well."""
L1_OF_ROWS: Final = 0.3
"""Fraction of L1 for rows that a nest computes before the next nest reads them; the next rows are prefetched there."""
L1_OF_ROWS_AHEAD: Final = 0.8
"""`L1_OF_ROWS` if the processor prefetches across pages."""
STREAMED_WEIGHT: Final = 2
"""Bytes of data read in the time of a byte of weights, which are farther away."""

# Packing.

PACKED_ROWS: Final = 12
"""Minimum rows of a product for which panels of its right factor are packed."""
TILED_ROWS: Final = 3
"""Minimum known rows, of which there are a symbolic number of groups, whose tile is as fast as one of six rows if the
right factor is a constant. Two rows of 3,072 columns took 1.3 times as long."""
PACKED_ROWS_TRANSPOSED: Final = 8
"""Minimum rows for which panels are packed that would otherwise be read by columns, or in groups by dot products."""
PACKED_PRODUCTS: Final = 1 << 12
"""Minimum products of narrow integers for which packing pays."""
LOADED_ELEMENT: Final = 4
"""Rows of a product whose multiply-adds take the time of loading a packed element from beyond L2."""
LAID_OUT_RESULTS: Final = 16
"""Minimum results per window for which windows are packed."""
FULL_LANES: Final = 0.9
"""Minimum fraction of full lanes for which windows are read in place."""
ROWS_IN_TURN: Final = 16
"""Rows of a factor that are packed together, so that their lines stay in L1."""
SYMBOLIC_TILE: Final = 16
"""Maximum vectors of a register tile with symbolic columns: remainders have separate kernels, and more vectors are
hardly faster.
"""
FEW_ROWS: Final = (2, 8)
"""Rows of a symbolic number up to which a product has a version with wide register tiles, which hide the latency of
multiply-adds."""
BUSY_LANES: Final = 0.95
"""Fraction of the lanes that a tile for few rows fills with columns. Six rows of 128 columns took 1.5 times as long in
tiles of 48 columns as in tiles of 64."""
PIECE_STEPS: Final = 64
"""Steps of a panel packed for all columns before the next ones."""
PACKED_STEPS_AHEAD: Final = 8
"""Prefetch distance in the source of packed panels, in steps of the reduction."""
PANEL_STEPS_AHEAD: Final = 16
"""Prefetch distance in a packed panel, in steps: about 200 cycles, the latency of L3, from which the first tile of rows
reads the panel.
"""
WEIGHT_STEPS_AHEAD: Final = 32
"""`PANEL_STEPS_AHEAD` for weights of a convolution in NCHWc, which few pixels each read again."""
ELEMENTS_AHEAD: Final = 64
"""Prefetch distance in the source of packed panels, in elements along its rows."""
WINDOW_VECTOR: Final = 16
"""Cost per vector of packed windows."""
GATHERED_WINDOW_VECTOR: Final = 200
"""Cost per vector of packed windows if neighbours are not consecutive."""
PACKED_WEIGHT: Final = 10
"""Cost per packed weight; a tile's weights are in distant lines."""
TRANSPOSED_RESULT: Final = 3
"""Cost per result transposed when stored."""
TRANSPOSED_RESULT_STEPS: Final = 10
"""Minimum steps of a sum, per `TRANSPOSED_RESULT`, for which the cost of transposing is negligible."""
TRANSPOSED_RESULT_STEPS_OF_ANY: Final = 4
"""`TRANSPOSED_RESULT_STEPS` for rows of unknown length, whose last vector would often have idle lanes."""

# Products of tiles of 16 x 16 sums, in cycles.

TILE_PRODUCT: Final = 16.0
"""Cycles per product of two tiles."""
TILE_LATENCY: Final = 52.0
"""Cycles between dependent products. (Intel Optimization Reference Manual, "TMUL throughput and latency")"""
TILE_ROW_PACKED: Final = 4.0
"""Cycles per row of a tile that is packed before."""
TILE_LOAD: Final = 24.0
"""Cycles per load of a tile from L2."""
TILE_RESULT: Final = 64.0
"""Cycles per tile of sums, stored and copied."""
TILES_REREAD: Final = 8
"""Minimum panels of the right factor for which copying the left one to consecutive tiles pays."""
TILE_CALL: Final = 60.0
"""Cycles per product of small matrices."""

# Steps of a reduction over a register tile.


@dataclass(frozen=True)
class TileCosts:
    vector: float
    """Cost per load of a vector."""
    element: float
    """Cost per load of an element into all lanes."""
    product: float = 1.0
    """Cost per multiply-add."""
    remainder: float = 1.0
    """Factor if the last tile of an extent is smaller or masked, in addition to its time."""
    loads_wait: bool = False
    """Whether too few multiply-adds in flight slow down loads, too."""


PRODUCTS: Final = TileCosts(vector=1.0, element=1.0, product=0.0, loads_wait=True)
"""Matrix products: bound by their loads."""
WINDOWS: Final = TileCosts(vector=0.5, element=0.5, remainder=1 / 0.96)
"""Convolutions with pixels in lanes: one load per multiply-add, some missing L1."""
FILTERS: Final = TileCosts(vector=1.5, element=0.75)
"""Convolutions with filters in lanes: weights are in L2, data anywhere in L1."""
BLOCKS: Final = TileCosts(vector=0.25, element=0.25, remainder=1.05)
"""Convolutions in NCHWc: data and weights are read in stored order."""
FLAT_ROWS: Final = 1.03
"""Factor of `BLOCKS` if a tile continues from row to row: its pixels are not one stride apart."""

# Layouts of images, in scalar multiply-adds (docs/decisions/0086-minimal-filtering.md).

BLOCK_VECTORS: Final = (2, 3, 5, 1)
"""Vectors of channels in a block, in order of preference: with two or three, loads keep up with multiply-adds, and
enough sums are in registers.
"""
BLOCK_LANES: Final = 8
"""Minimum lanes of a vector of channels if not all channels fill vectors of the machine."""
BLOCK_HALF_VECTORS: Final = (5, 7, 9, 3, 11, 13, 1)
"""`BLOCK_VECTORS` for vectors of `BLOCK_LANES` if two of them are one of the machine: 5 of them reach 82 % of the peak
of a Zen 5, 7 and 9 reach 84 %, 3 reach 73 %, and 11 and 13 reach 88 %, but are large for small images."""
PLAIN_WINDOWS: Final = 1 / 24
"""Multiply-adds lost, per multiply-add of a convolution, if channels are not in blocks."""
PLAIN_POINTS: Final = 1 / 6
"""`PLAIN_WINDOWS` for windows of one element."""
PLAIN_STRIDED_CHANNELS: Final = 4.0
"""`PLAIN_WINDOWS` for depthwise convolutions with a stride, whose lanes are gathered."""
PLAIN_GROUPS: Final = 1 / 3
"""`PLAIN_WINDOWS` for groups of channels."""
PLAIN_STRIDED_GROUPS: Final = 1.5
"""`PLAIN_GROUPS` for convolutions with a stride."""
PLAIN_INTEGERS: Final = 1.0
"""`PLAIN_WINDOWS` for integers with dot-product instructions; lanes are extended otherwise."""
PLAIN_DATA: Final = 1 / 10
"""Multiply-adds lost, per multiply-add of a convolution in blocks, if its data are not."""
FEW_CHANNELS: Final = 4
"""Maximum channels of data without `PLAIN_DATA`."""
CONVERSION: Final = 22.0
"""Multiply-adds per element of an image whose layout is changed."""
TRANSFORM: Final = 6.0
"""Multiply-adds per element of a tile and channel that Winograd transforms."""
KERNEL_ELEMENT: Final = 8.0
"""Multiply-adds per element of a kernel, which is in memory."""
FILTERING_PAYS: Final = 0.9
"""Maximum fraction of the direct convolution's cost at which Winograd is used."""
