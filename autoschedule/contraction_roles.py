"""Roles of the iterators of a contraction (batch, row, column, reduction), from its accesses."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, BlockArgument

from weft.analysis.block_patterns import BlockPattern, Operand, PatternKind
from weft.analysis.structure import buffers_read
from weft.dialects.element_types import bytes_of


@dataclass(frozen=True)
class Factor:
    """One of the two things multiplied: where it is among the buffers that the block reads, the dimension that the
    row or column indexes, and whether the next row or column is the next element."""

    position: int
    dimension: int
    rank: int
    contiguous: bool
    element_bytes: int


@dataclass(frozen=True)
class Roles:
    """`out[batch, rows, row, column] += left[batch, rows, row, reduced] * right[batch, reduced, column]`, with the
    dimensions of each in any order. Iterators are positions among those of the block; extents that are known at run
    time only are None.

    The column is the iterator along which results are consecutive. The right factor is the one it indexes.
    """

    batch: tuple[int, ...]
    """Spatial iterators that choose a matrix of the right factor."""
    rows: tuple[int, ...]
    """Other spatial iterators that do not index the right factor."""
    row: int | None
    """The longest of those, if there are any."""
    column: int
    reduced: tuple[int, ...]
    left: Factor
    """Its dimension and `contiguous` speak of the row."""
    right: Factor
    extents: tuple[int | None, ...]
    element: Attribute
    """The type of the results."""
    same_buffer: bool

    @property
    def columns(self) -> int | None:
        return self.extents[self.column]

    @property
    def row_count(self) -> int | None:
        return 1 if self.row is None else self.extents[self.row]


def roles_of(pattern: BlockPattern) -> Roles | None:
    """The roles of the iterators of a contraction; None when it is none, or when its results are not consecutive along
    an iterator of just one factor."""
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
    row = max((v for v in rows if v in left.iterators), key=lambda v: _length(pattern, v), default=None)
    at = {v: place for place, v in enumerate(pattern.block.iter_vars)}
    left_factor = _factor(pattern, left, row)
    right_factor = _factor(pattern, right, column)
    if left_factor is None or right_factor is None:
        return None
    return Roles(
        batch=tuple(at[v] for v in outer if v in right.iterators),
        rows=tuple(at[v] for v in rows if v is not row),
        row=None if row is None else at[row],
        column=at[column],
        reduced=tuple(at[v] for v in pattern.reduced),
        left=left_factor,
        right=right_factor,
        extents=tuple(pattern.extent_of(v) for v in pattern.block.iter_vars),
        element=write.element_type,
        same_buffer=left.buffer is right.buffer,
    )


def _length(pattern: BlockPattern, iterator: BlockArgument) -> tuple[bool, int, int]:
    extent = pattern.extent_of(iterator)
    return extent is None, extent or 0, iterator.index


def _factor(pattern: BlockPattern, operand: Operand, iterator: BlockArgument | None) -> Factor | None:
    """What to know of a factor; None where its row or column indexes several dimensions."""
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
    )
