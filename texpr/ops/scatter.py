"""Updates at given indices, in order."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import BinaryKind, Expr, ExprLike, binary, error
from weft.texpr.extern import Result, Statements, Written, extern
from weft.texpr.ops.arguments import (
    broadcast_shape,
    check_nonempty,
    checked_axis,
    checked_tensor,
    counts,
    integral,
    one_dtype,
    ranked,
    shaped,
    sum_dtype,
)
from weft.texpr.ops.elementwise import cast as converted
from weft.texpr.ops.indexing import bounded, check_within, checked_mode
from weft.texpr.ops.transforms import broadcast_to
from weft.texpr.shapes import Extent, agree, is_empty, is_same, product, shape_text
from weft.texpr.tensor import Tensor

__all__ = ["max_unpool", "put_along_axis", "scatter_elements", "scatter_nd"]

_REDUCTIONS = {"add": BinaryKind.ADD, "mul": BinaryKind.MUL, "max": BinaryKind.MAX, "min": BinaryKind.MIN}


class _Updates:
    def __init__(self, what: str, data: object, updates: object, reduction: str, mode: str, name: str) -> None:
        checked_mode(what, mode)
        if reduction != "none" and reduction not in _REDUCTIONS:
            raise error(f"{what}: the reduction is 'none' or one of {', '.join(_REDUCTIONS)}, got {shown(reduction)}")
        self.data, self.updates = checked_tensor(data, f"{what}: data"), checked_tensor(updates, f"{what}: updates")
        self.reduction = _REDUCTIONS.get(reduction)
        self.name = name
        dtype = one_dtype(what, self.data, self.updates)
        if self.reduction is not None and dtype == "bool":
            raise error(f"{what}: bools are not combined by {reduction}: use te.ops.cast")
        self.wide = sum_dtype(dtype) if reduction in ("add", "mul") else dtype

    def copy(self, code: Statements, outer: Sequence[Expr], result: Written) -> None:
        inner = self.data.shape[len(outer) :]
        with code.loops(inner, [f"d{d}" for d in range(len(inner))]) as at:
            result.store(self.data(*outer, *at).astype(self.wide), *outer, *at)

    def put(self, result: Written, update: Expr, at: Sequence[ExprLike]) -> None:
        value = update.astype(self.wide)
        result.store(value if self.reduction is None else binary(self.reduction, result.load(*at), value), *at)

    def finish(self, made: Tensor) -> Tensor:
        dtype = self.data.dtype
        return made if made.dtype == dtype else converted(made, dtype, name=self.name)

    @property
    def result(self) -> Result:
        label = self.name if self.wide == self.data.dtype else f"{self.name}_sums"
        return Result(self.data.shape, self.wide, label)


def scatter_elements(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    reduction: str = "none",
    mode: str = "clip",
    *,
    name: str = "scatter_elements",
) -> Tensor:
    """The tensor with each element of `updates` stored at its index along an axis, and the same other indices.

    The last of several updates is stored; a `reduction` (add, mul, max, min) combines them with the data in order.
    Indices have the shape of the updates, whose other extents are at most those of the data. Modes as in `take`: with
    `wrap`, -1 is the last.

    Dtypes: all, numbers with a reduction; indices are integers.
    Equals: `torch.scatter(data, axis, indices, updates)`; ONNX ScatterElements.
    """
    what = "scatter_elements"
    given, places = _Updates(what, data, updates, reduction, mode, name), integral(indices, f"{what}: indices")
    source, changes = given.data, shaped(updates, f"{what}: updates", places.shape)
    along = checked_axis(what, axis, source.ndim)
    check_within(what, source, places, along)
    if not is_empty(places.shape):
        check_nonempty(what, source, [along])
    names = [f"u{d}" for d in range(source.ndim)]
    # Along shorter axes of the data, loops over updates would store out of bounds.
    short = [d for d in range(along) if not is_same(places.shape[d], source.shape[d])]
    unknown = [d for d in short if not isinstance(places.shape[d], int) or not isinstance(source.shape[d], int)]
    depth = min(unknown, default=along)
    short = [d for d in short if d < depth]

    def update(code: Statements, outer: Sequence[Expr], result: Written) -> None:
        with code.loops(places.shape[depth:], names[depth:]) as inner:
            at = (*outer, *inner)
            place = bounded(what, mode, places(*at), source.shape[along])
            given.put(result, changes(*at), [*at[:along], place, *at[along + 1 :]])

    def write(code: Statements, outer: Sequence[Expr], result: Written) -> None:
        given.copy(code, outer, result)
        if not short:
            update(code, outer, result)
            return
        inside = outer[short[0]] < places.shape[short[0]]
        for d in short[1:]:
            inside = inside & (outer[d] < places.shape[d])
        with code.when(inside):
            update(code, outer, result)

    return given.finish(extern(source.shape[:depth], [given.result], [source, places, changes], write, name)[0])


def put_along_axis(
    data: Tensor, indices: Tensor, values: Tensor, axis: int = -1, mode: str = "wrap", *, name: str = "put_along_axis"
) -> Tensor:
    """The tensor with `values`, broadcast to the indices' shape, stored at the indices along an axis.

    See `scatter_elements`. Unlike NumPy's, does not modify the data.

    Dtypes: all; indices are integers.
    Equals: `np.put_along_axis(data, indices, values, axis)`.
    """
    what = "put_along_axis"
    source, places, changes = (
        checked_tensor(data, f"{what}: data"),
        integral(indices, f"{what}: indices"),
        checked_tensor(values, f"{what}: values"),
    )
    common = broadcast_shape(what, places.shape, changes.shape)
    if len(common) != places.ndim or not all(map(agree, common, places.shape)):
        raise error(
            f"{what}: the values of shape {shape_text(changes.shape)} are larger than the indices of shape "
            f"{shape_text(places.shape)}"
        )
    if not all(map(is_same, common, changes.shape)) or len(common) != changes.ndim:
        changes = broadcast_to(changes, common, name=f"{name}_values")
    along = checked_axis(what, axis, source.ndim)
    return scatter_elements(source, places, changes, along, "none", mode, name=name)


def scatter_nd(
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    reduction: str = "none",
    mode: str = "clip",
    *,
    name: str = "scatter_nd",
) -> Tensor:
    """The tensor with slices stored at coordinates, as `gather_nd` reads: `indices[0]` is the index along the first
    axis, and so on.

    Updates have the shape of the indices without their first axis, then that of the slices. Reductions as in
    `scatter_elements`, modes as in `take`.

    Dtypes: all, numbers with a reduction; indices are integers.
    Equals: `data[tuple(indices)] = updates`; ONNX ScatterND, whose coordinates are the last axis.
    """
    what = "scatter_nd"
    given, places = _Updates(what, data, updates, reduction, mode, name), integral(indices, f"{what}: indices")
    source = given.data
    if places.ndim == 0 or not isinstance(places.shape[0], int) or places.shape[0] > source.ndim:
        raise error(
            f"{what}: the first extent of the indices is a number up to the rank of the data: {source.name} has "
            f"{shape_text(source.shape)}, {places.name} has {shape_text(places.shape)}"
        )
    count = places.shape[0]
    changes = shaped(updates, f"{what}: updates", (*places.shape[1:], *source.shape[count:]))
    if not is_empty(changes.shape):
        check_nonempty(what, source, range(count))
    names = [f"u{d}" for d in range(changes.ndim)]
    batch = places.ndim - 1

    def write(code: Statements, outer: Sequence[Expr], result: Written) -> None:
        given.copy(code, outer, result)
        with code.loops(changes.shape, names) as at:
            coordinates = [bounded(what, mode, places(axis, *at[:batch]), source.shape[axis]) for axis in range(count)]
            given.put(result, changes(*at), [*coordinates, *at[batch:]])

    return given.finish(extern((), [given.result], [source, places, changes], write, name)[0])


def max_unpool(
    data: Tensor, indices: Tensor, output_size: Extent | Sequence[Extent], *, name: str = "max_unpool"
) -> Tensor:
    """Data (N, C, ...) stored at row-major indices in planes of `output_size`, zeros elsewhere: the inverse of
    `max_pool_with_indices`. Out-of-range indices are clamped. Of equal indices the last is stored.

    Dtypes: all; indices are integers.
    Equals: `torch.nn.functional.max_unpool2d(data, indices, ..., output_size=output_size)` and its like.
    """
    what = "max_unpool"
    source = ranked(data, f"{what}: data", 3, 4, 5)
    places = integral(shaped(indices, f"{what}: indices", source.shape), f"{what}: indices")
    sizes = counts(output_size, f"{what}: output_size", source.ndim - 2)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise error(f"{what}: output_size must be at least 1, got {shown(output_size)}")
    names = [f"d{d}" for d in range(len(sizes))]

    def write(code: Statements, outer: Sequence[Expr], result: Written) -> None:
        with code.loops(sizes, names) as at:
            result.store(False if source.dtype == "bool" else 0, *outer, *at)
        with code.loops(source.shape[2:], names) as at:
            place = places(*outer, *at).astype("int64")
            place = te.max(te.min(place, product(sizes) - 1), 0)
            coordinates: list[Expr] = []
            for size in reversed(sizes):
                coordinates.insert(0, place % size)
                place = place // size
            result.store(source(*outer, *at), *outer, *coordinates)

    shape: tuple[Extent, ...] = (*source.shape[:2], *sizes)
    return extern(source.shape[:2], [Result(shape, source.dtype, name)], [source, places], write, name)[0]
