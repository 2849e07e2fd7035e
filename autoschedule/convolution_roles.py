"""Roles of the iterators of a convolution, from its accesses."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, slides
from weft.analysis.index import Quotient
from weft.analysis.structure import buffers_read


@dataclass(frozen=True)
class ConvolutionRoles:
    """`out[shared, pixels, channels] += data[shared, pixels + window, reduced] * kernel[shared, channels, reduced]`,
    with the dimensions of each in any order. Iterators are positions among those of the block.
    """

    data: Operand
    kernel: Operand
    result: Operand
    data_position: int
    """Of the data among the buffers that the block reads."""
    column: int
    """The spatial iterator along which results are consecutive."""
    pixels: tuple[int, ...]
    """Spatial iterators of the data alone, batches among them."""
    channels: tuple[int, ...]
    """Spatial iterators of the kernel alone."""
    shared: tuple[int, ...]
    """Spatial iterators of both: groups, the channels of depthwise convolutions; and those of neither."""
    reduced: tuple[int, ...]
    extents: tuple[int, ...]
    iterators: tuple[BlockArgument, ...]

    def stride(self, operand: Operand, at: int) -> int | None:
        """How many elements further the next value of an iterator is; None where that varies."""
        return operand.stride_of(self.iterators[at])

    def size(self, places: tuple[int, ...]) -> int:
        """How many instances some iterators have together."""
        return prod(self.extents[at] for at in places)

    @property
    def flat_pixels(self) -> tuple[int, ...]:
        """The pixels behind which results go on without a gap: the column last, those around it before it."""
        run = [self.column]
        step = self.extents[self.column]
        while True:
            following = [at for at in self.pixels if at not in run and self.stride(self.result, at) == step]
            if len(following) != 1 or following[0] != run[0] - 1:
                return tuple(run)
            run.insert(0, following[0])
            step *= self.extents[following[0]]


def roles_of(pattern: BlockPattern) -> ConvolutionRoles | None:
    """The roles of the iterators of a convolution of known extents; None when it is none, or when its results are not
    consecutive along any iterator."""
    if pattern.kind is not PatternKind.CONVOLUTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    sliding = [factor for factor in pattern.factors if slides(pattern.block, factor)]
    extents = [pattern.extent_of(v) for v in pattern.block.iter_vars]
    known = tuple(extent for extent in extents if extent)
    (result,) = pattern.writes
    columns = [v for v in pattern.spatial if result.stride_of(v) == 1 and pattern.extent_of(v) != 1]
    if len(sliding) != 1 or len(known) != len(extents) or not columns or any(f.is_gather for f in pattern.factors):
        return None
    (data,) = sliding
    (kernel,) = (factor for factor in pattern.factors if factor is not data)
    buffers = buffers_read(pattern.block)
    if data.buffer is kernel.buffer or data.buffer not in buffers or kernel.is_diagonal or result.is_diagonal:
        return None
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}

    def places(in_data: bool, in_kernel: bool) -> tuple[int, ...]:
        return tuple(
            at[v] for v in pattern.spatial if (v in data.iterators) is in_data and (v in kernel.iterators) is in_kernel
        )

    return ConvolutionRoles(
        data=data,
        kernel=kernel,
        result=result,
        data_position=buffers.index(data.buffer),
        column=at[columns[-1]],
        pixels=places(True, False),
        channels=places(False, True),
        shared=tuple(sorted((*places(True, True), *places(False, False)))),
        reduced=tuple(at[v] for v in pattern.reduced),
        extents=known,
        iterators=tuple(pattern.block.iter_vars),
    )


def group_of(pattern: BlockPattern) -> tuple[int, int] | None:
    """An iterator, by its position, whose quotient by a number chooses a group of channels, and that number."""
    for factor in pattern.factors or ():
        for index in factor.indices:
            for atom in index.terms:
                numerator = atom.numerator.single_value if isinstance(atom, Quotient) else None
                for at, iterator in enumerate(pattern.block.iter_vars):
                    extent = pattern.extent_of(iterator)
                    if iterator is numerator and isinstance(atom, Quotient) and extent and extent % atom.divisor == 0:
                        return at, atom.divisor
    return None
