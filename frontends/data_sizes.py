"""Operators whose results have sizes that depend on data.

Each is an operator of `te.ops` with room for all results and their count, `graph.match_shape` of the count, and the
prefix of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from xdsl.ir import Operation

from weft.dialects.graph import MatchShapeOp
from weft.dialects.graph_shapes import EXTENTS, Extent, KnownExtent, choose, show_shape, symbol
from weft.frontends.graph_builder import BlockBuilder, Value, const, operator
from weft.support.errors import CompileError

_RESHAPE: Final = "graph.reshape"


def _op(name: str, *args: object, **options: object) -> Value:
    return cast("Value", operator(name)(*args, **options))


def _several(name: str, *args: object, **options: object) -> tuple[Value, ...]:
    return cast("tuple[Value, ...]", operator(name)(*args, **options))


def _number_of_true(tensor: Value) -> MatchShapeOp | None:
    """Binds the number of true elements of a tensor, in any shape."""
    pending = [tensor.ssa]
    while isinstance(owner := pending[0].owner, Operation) and owner.name == _RESHAPE:
        pending = [owner.operands[0]]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if op.name == _RESHAPE:
                pending.append(op.results[0])
            elif use.index == 0 and op.name in ("graph.compress", "graph.nonzero"):
                for reader in op.results[-1].uses:
                    if isinstance(reader.operation, MatchShapeOp):
                        return reader.operation
    return None


class DataSizes:
    """Creates operators that bind a new extent. `name` is that of the next one, `most` an upper bound stated by the
    user."""

    def __init__(self, builder: BlockBuilder, name: str | None = None, most: KnownExtent | None = None) -> None:
        self._builder = builder
        self._name = name
        self._most = most

    @property
    def binds(self) -> bool:
        return self._name is not None

    def extent(self, size: Value, most: Extent = None) -> KnownExtent:
        """An integer of rank 0 as an extent of at most `most`."""
        if self._most is not None:
            most = self._most if most is None else choose("min", self._most, most)
        names = [] if self._name is None else [self._name]
        wide = size if size.dtype in ("int32", "int64") else size.astype("int64")
        return self._builder.match_shape(wide, names, [most])[0]

    def bind(self, sizes: Value, names: Sequence[str], at_most: Sequence[Extent]) -> tuple[()]:
        self._builder.match_shape(sizes, names, list(at_most))
        return ()

    def first(self, count: Value, *padded: tuple[Value, int], of: Value | None = None) -> tuple[Value, ...]:
        """The first `count` elements of each tensor along its axis. `count` is the number of true elements of `of`,
        whose counts are all one extent."""
        sizes = {value.shape[axis] for value, axis in padded}
        bound = None if of is None else _number_of_true(of)
        if bound is not None and self._name is None:
            extent: KnownExtent = symbol(bound.bound_names[0])
        else:
            known = count if bound is None else Value(bound.sizes)
            extent = self.extent(known, sizes.pop() if len(sizes) == 1 else None)
        return tuple(
            _op("prefix", value, shape=[*value.shape[:axis], extent, *value.shape[axis + 1 :]])
            for value, axis in padded
        )

    def nonzero(self, x: Value) -> Value:
        """A row of coordinates for each axis. A tensor of rank 0 has one axis."""
        places, count = _several("nonzero", _op("reshape", x, newshape=[1]) if x.ndim == 0 else x)
        (found,) = self.first(count, (places, 1), of=x)
        return found

    def compress(self, condition: Value, data: Value, axis: int | None = None) -> Value:
        """The slices along an axis at which the condition, which may be shorter, is true; without an axis, elements of
        the flat data."""
        found, count = _several("compress", condition, data, axis=axis)
        (kept,) = self.first(count, (found, 0 if axis is None else axis), of=condition)
        return kept

    def masked(self, data: Value, mask: Value, axis: int = 0) -> Value:
        """The slices at the true elements of a mask over the axes from `axis` on: `data[:, mask]`."""
        last = axis + mask.ndim
        if data.ndim < last:
            raise CompileError(f"a mask of shape {show_shape(mask.shape)} has more axes than {show_shape(data.shape)}")
        length = EXTENTS.product(cast("Sequence[KnownExtent]", mask.shape))
        flat = _op("reshape", data, newshape=[*data.shape[:axis], length, *data.shape[last:]])
        return self.compress(_op("reshape", mask, newshape=[length]), flat, axis)

    def repeated(self, counts: Value) -> Value:
        """Each index, repeated by its count."""
        ends = _op("cumsum", counts.astype("int64"), axis=0)
        total = self.extent(_op("sum", counts.astype("int64"), axis=[0]))
        return _op("searchsorted", ends, _op("iota", shape=[total]), side="right")

    def numbers(self, start: Value, limit: Value, step: Value) -> Value:
        """The numbers from `start` to `limit`, exclusive, of the dtype of all three."""
        is_integer = "int" in start.dtype
        wide = "int64" if is_integer else "float64"
        first, last, gap = (value.astype(wide) for value in (start, limit, step))
        if is_integer:  # rounds up
            count = _op("negative", _op("floor_divide", _op("subtract", first, last), gap))
        else:
            count = _op("ceil", _op("divide", _op("subtract", last, first), gap)).astype("int64")
        extent = self.extent(_op("maximum", count, 0))
        places = _op("iota", shape=[extent], dtype=start.dtype)
        return _op("add", _op("multiply", places, step), start)

    def unique(
        self, data: Value, axis: int | None = None, *, is_sorted: bool = True
    ) -> tuple[Value, Value, Value, Value]:
        """Distinct elements of the flat data, or slices along an axis; their first positions; the index of each
        element's value; and the counts. Ascending if `is_sorted`, otherwise in order of the first positions."""
        along, dtype = 0 if axis is None else axis, data.dtype
        numbers = data.astype("uint8") if dtype == "bool" else data
        values, indices, inverse, counts, count = _several("unique", numbers, axis=axis)
        values, indices, counts = self.first(count, (values, along), (indices, 0), (counts, 0))
        values = values if values.dtype == dtype else values.astype(dtype)
        if not is_sorted:
            order = _op("argsort", indices, axis=0)
            values = _op("take", values, order, axis=along)
            indices, counts = (_op("take", value, order, axis=0) for value in (indices, counts))
            inverse = _op("take", _op("argsort", order, axis=0), inverse, axis=0)
        return values, indices, inverse, counts

    def rows_of_boxes(self, kept: Value, counts: Value) -> Value:
        """The boxes that `nms` keeps, as rows of batch, class and box."""
        room = _op("iota", shape=list(kept.shape), axis=kept.ndim - 1)
        places = self.nonzero(_op("less", room, _op("expand_dims", counts, axis=[kept.ndim - 1])))
        boxes = _op("gather_nd", kept, places)
        rows = [_op("take", places, const(at, "int64"), axis=0) for at in range(kept.ndim - 1)]
        return _op("stack", [*rows, boxes], axis=1)
