"""Roles of the iterators of products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.ir import Attribute, BlockArgument, SSAValue

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind, slides
from weft.analysis.block_scopes import buffers_read
from weft.analysis.constants import is_constant, is_dequantized
from weft.analysis.index import Index, Quotient
from weft.dialects.element_types import bytes_of
from weft.plans import fitted


@dataclass(frozen=True)
class ExtentBound:
    """An extent known at run time only, and its upper bound."""

    extent: SSAValue
    most: int


@dataclass(frozen=True)
class Factor:
    """A factor: its position among the buffers read, the dimension that the row or column indexes, and whether
    elements along it are contiguous.
    """

    position: int
    dimension: int
    rank: int
    contiguous: bool
    element_bytes: int
    constant: bool
    """Whether the factor is known at compile time, so that any layout of it is free."""
    dequantized: bool
    """Whether the factor is computed from weights that are stored as integers."""
    unindexed: tuple[int, ...] = ()
    """Dimensions whose index depends on no iterator, as of a batch of one matrix."""

    def padded(self) -> Factor:
        """The copy that `pad_einsum` makes, which lacks the dimensions in `unindexed`."""
        before = sum(at < self.dimension for at in self.unindexed)
        return replace(self, dimension=self.dimension - before, rank=self.rank - len(self.unindexed), unindexed=())


@dataclass(frozen=True)
class ContractionRoles:
    """`out[batch, rows, row, column] += left[batch, rows, row, reduced] * right[batch, reduced, column]`, dimensions in
    any order. Iterators are positions in the block; symbolic extents are None. Results are consecutive along the
    column.
    """

    batch: tuple[int, ...]
    """Spatial iterators that select a matrix of the right factor."""
    rows: tuple[int, ...]
    """Other spatial iterators that do not index the right factor."""
    row: int | None
    """The longest of those, if there are any. A symbolic extent counts as shorter than a known one that fills tiles,
    because it may be 1, as the batch of a model often is."""
    column: int
    reduced: tuple[int, ...]
    left: Factor
    """The left factor. Its dimension and `contiguous` refer to the row."""
    right: Factor
    extents: tuple[int | None, ...]
    element: Attribute
    """The type of the results."""
    most: tuple[int | None, ...]
    """Upper bounds of the extents by assumptions, or None without one."""
    same_buffer: bool

    @property
    def columns(self) -> int | None:
        return self.extents[self.column]

    @property
    def row_count(self) -> int | None:
        return 1 if self.row is None else self.extents[self.row]

    @property
    def most_rows(self) -> int | None:
        return 1 if self.row is None else self.most[self.row]


def contraction_roles(pattern: BlockPattern) -> ContractionRoles | None:
    """None for other blocks, and if results are not consecutive along an iterator of exactly one factor."""
    if pattern.kind is not PatternKind.CONTRACTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    (write,) = pattern.writes
    columns = [v for v in pattern.spatial if write.stride_of(v) == 1 and len(write.dimensions_of(v)) == 1]
    if not columns:
        return None
    column = max(columns, key=lambda v: _length(pattern, v))
    users = [factor for factor in pattern.factors if column in factor.iterators]
    if len(users) != 1:
        return None
    (right,) = users
    (left,) = (factor for factor in pattern.factors if factor is not right)
    outer = [v for v in pattern.spatial if v is not column]
    rows = [v for v in outer if v not in right.iterators]
    candidates = [v for v in rows if v in left.iterators]
    is_packed = len(candidates) > 1 and is_constant(right.buffer)
    enough = fitted.TILED_ROWS if is_packed else fitted.PACKED_ROWS
    row = max(candidates, key=lambda v: _rows(pattern, v, enough), default=None)
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}
    left_factor = _factor(pattern, left, row)
    right_factor = _factor(pattern, right, column)
    if left_factor is None or right_factor is None:
        return None
    return ContractionRoles(
        batch=tuple(at[v] for v in outer if v in right.iterators),
        rows=tuple(at[v] for v in rows if v is not row),
        row=None if row is None else at[row],
        column=at[column],
        reduced=tuple(at[v] for v in pattern.reduced),
        left=left_factor,
        right=right_factor,
        extents=tuple(pattern.extent_of(v) for v in pattern.block.iter_vars),
        element=write.element_type,
        most=tuple(pattern.most_of(v) for v in pattern.block.iter_vars),
        same_buffer=left.buffer is right.buffer,
    )


def _length(pattern: BlockPattern, iterator: BlockArgument) -> tuple[bool, int, int]:
    extent = pattern.extent_of(iterator)
    return extent is None, extent or 0, iterator.index


def _rows(pattern: BlockPattern, iterator: BlockArgument, enough: int) -> tuple[bool, bool, int, int]:
    return (pattern.extent_of(iterator) or 0) >= enough, *_length(pattern, iterator)


def _factor(pattern: BlockPattern, operand: Operand, iterator: BlockArgument | None) -> Factor | None:
    dimensions = () if iterator is None else operand.dimensions_of(iterator)
    if iterator is not None and len(dimensions) != 1:
        return None
    buffers = buffers_read(pattern.block)
    if operand.buffer not in buffers:
        return None
    return Factor(
        position=buffers.index(operand.buffer),
        dimension=dimensions[0] if dimensions else 0,
        rank=len(operand.indices),
        contiguous=iterator is not None and operand.stride_of(iterator) == 1,
        element_bytes=bytes_of(operand.element_type),
        constant=is_constant(operand.buffer),
        dequantized=is_dequantized(operand.buffer),
        unindexed=tuple(
            at for at, index in enumerate(operand.indices) if operand.iterators.isdisjoint(index.sources())
        ),
    )


@dataclass(frozen=True)
class ConvolutionRoles:
    """`out[shared, pixels, channels] += data[shared, pixels + window, inputs] * kernel[shared, channels, window,
    inputs]`, dimensions in any order. Iterators are positions in the block.
    """

    data: Operand
    kernel: Operand
    result: Operand
    kernel_is_constant: bool
    """Whether the kernel is known at compile time, so that any layout of it is free."""
    data_position: int
    """The position of the data among the buffers that the block reads."""
    column: int
    """The spatial iterator along which results are consecutive."""
    pixels: tuple[int, ...]
    """Spatial iterators of the data only, including batches."""
    channels: tuple[int, ...]
    """Spatial iterators of the kernel only."""
    shared: tuple[int, ...]
    """Spatial iterators of both operands (groups, the channels of depthwise convolutions), and of neither."""
    reduced: tuple[int, ...]
    """Window and input channels."""
    extents: tuple[int, ...]
    """The extents. Symbolic extents are 1 for batches and `fitted.SYMBOLIC_PIXELS` for rows and
    columns."""
    symbolic: frozenset[int]
    """The iterators of symbolic extent."""
    iterators: tuple[BlockArgument, ...]

    def stride(self, operand: Operand, at: int) -> int | None:
        """The distance of elements for consecutive values; None if it varies."""
        return operand.stride_of(self.iterators[at])

    def moves_evenly(self, operand: Operand, at: int) -> bool:
        """Whether that distance is constant, possibly symbolic."""
        value = self.iterators[at]
        return all(
            not (index - Index({value: index.coefficient(value)})).depends_on([value]) for index in operand.indices
        )

    def size(self, places: tuple[int, ...]) -> int:
        return prod(self.extents[at] for at in places)

    def known(self, at: int) -> int | None:
        """The extent; None if symbolic."""
        return None if at in self.symbolic else self.extents[at]

    @property
    def is_known(self) -> bool:
        """Whether only extents of pixels are symbolic."""
        return self.symbolic <= {*self.pixels}

    def data_extents(self) -> list[int]:
        """Symbolic extents count from the first element read to the last."""
        extents: list[int] = []
        for extent, index in zip(self.data.type.get_shape(), self.data.indices, strict=True):
            if extent < 0:
                places = [at for at, v in enumerate(self.iterators) if index.depends_on([v])]
                extent = 1 + sum((self.extents[at] - 1) * abs(index.coefficient(self.iterators[at])) for at in places)
            extents.append(max(extent, 1))
        return extents

    @property
    def is_grouped(self) -> bool:
        """Whether a dimension of the results is indexed by groups and channels of a group."""
        spatial = (*self.pixels, *self.channels, *self.shared)
        return any(sum(index.depends_on([self.iterators[at]]) for at in spatial) > 1 for index in self.result.indices)

    def is_windowed(self, at: int) -> bool:
        value = self.iterators[at]
        reduced = [self.iterators[r] for r in self.reduced]
        return any(index.depends_on([value]) and index.depends_on(reduced) for index in self.data.indices)

    @property
    def windowed(self) -> tuple[int, ...]:
        """Pixels, except the column, along which windows overlap."""
        return tuple(at for at in self.pixels if at != self.column and self.is_windowed(at))

    @property
    def has_symbolic_space(self) -> bool:
        """Whether the column or a `windowed` iterator has a symbolic extent."""
        return bool(self.symbolic & {self.column, *self.windowed})

    @property
    def flat_pixels(self) -> tuple[int, ...]:
        """The pixels along which results are consecutive in memory, column last."""
        run = [self.column]
        step = self.extents[self.column]
        while True:
            following = [at for at in self.pixels if at not in run and self.stride(self.result, at) == step]
            if len(following) != 1 or following[0] != run[0] - 1 or {run[0], following[0]} & self.symbolic:
                return tuple(run)
            run.insert(0, following[0])
            step *= self.extents[following[0]]

    @property
    def sums_one_window(self) -> bool:
        """Whether each result sums one window of one channel, with columns in lanes."""
        reduced = [self.iterators[at] for at in self.reduced if self.extents[at] > 1]
        pixels = [self.iterators[at] for at in self.pixels]
        sums_channels = any(index.depends_on(reduced) and not index.depends_on(pixels) for index in self.data.indices)
        return self.column in self.pixels and not sums_channels and not self.channels

    def rows_of_data(self, row: int, around: tuple[int, ...]) -> RowsOfData:
        """The data for rows of results, inside the iterators `around`."""
        value, others = self.iterators[row], [self.iterators[at] for at in around]
        size, step, span = bytes_of(self.data.element_type), 1, 1
        for extent, index in zip(self.data_extents(), self.data.indices, strict=True):
            if index.depends_on([value]):
                step = index.coefficient(value)
                span += sum((self.extents[at] - 1) * index.coefficient(self.iterators[at]) for at in self.reduced)
            elif not index.depends_on(others):
                size *= extent
        return RowsOfData(size, step, span)


@dataclass(frozen=True)
class RowsOfData:
    bytes: int
    """The bytes of a row of the data, with all channels."""
    step: int
    """Rows of the data from one row of results to the next."""
    span: int
    """Rows of the data for one row of results, from the first to the last."""

    def results(self, size: int) -> int:
        """The rows of results for which `size` bytes of data suffice."""
        return (size // self.bytes - self.span) // max(self.step, 1) + 1


def convolution_roles(pattern: BlockPattern) -> ConvolutionRoles | None:
    """None for other blocks, and if results are not consecutive along an iterator."""
    if pattern.kind is not PatternKind.CONVOLUTION or pattern.factors is None or len(pattern.writes) != 1:
        return None
    sliding = [factor for factor in pattern.factors if slides(pattern.block, factor)]
    extents = [pattern.extent_of(v) for v in pattern.block.iter_vars]
    (result,) = pattern.writes
    columns = [v for v in pattern.spatial if result.stride_of(v) == 1 and pattern.extent_of(v) != 1]
    if len(sliding) != 1 or not columns or any(f.is_gather for f in pattern.factors):
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

    column, pixels = at[columns[-1]], places(True, False)
    symbolic = frozenset(place for place, extent in enumerate(extents) if extent is None)
    slide = [index for index in data.indices if index.depends_on(pattern.reduced)]
    moving = {column, *(place for v, place in at.items() if any(index.depends_on([v]) for index in slide))}

    def counted(place: int, extent: int | None) -> int:
        return extent if extent is not None else fitted.SYMBOLIC_PIXELS if place in moving else 1

    return ConvolutionRoles(
        data=data,
        kernel=kernel,
        result=result,
        kernel_is_constant=is_constant(kernel.buffer),
        data_position=buffers.index(data.buffer),
        column=column,
        pixels=pixels,
        channels=places(False, True),
        shared=tuple(sorted((*places(True, True), *places(False, False)))),
        reduced=tuple(at[v] for v in pattern.reduced),
        extents=tuple(counted(place, extent) for place, extent in enumerate(extents)),
        symbolic=symbolic,
        iterators=tuple(pattern.block.iter_vars),
    )


def group_of(pattern: BlockPattern) -> tuple[int, int] | None:
    """An iterator whose quotient selects a group of channels, and the divisor; or None."""
    for factor in pattern.factors or ():
        for index in factor.indices:
            for atom in index.terms:
                numerator = atom.numerator.single_value if isinstance(atom, Quotient) else None
                for at, iterator in enumerate(pattern.block.iter_vars):
                    extent = pattern.extent_of(iterator)
                    if iterator is numerator and isinstance(atom, Quotient) and extent and extent % atom.divisor == 0:
                        return at, atom.divisor
    return None
