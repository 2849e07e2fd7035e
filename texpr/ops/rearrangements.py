"""Axes moved or rolled, blocks of space and channels exchanged."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.argument_types import shown
from weft.texpr import reductions as te
from weft.texpr.expr import Expr, error
from weft.texpr.ops.arguments import (
    checked_axes,
    checked_axis,
    checked_tensor,
    compute,
    integer,
    integers,
    is_one_of,
    ranked,
)
from weft.texpr.ops.convolution import checked_layout
from weft.texpr.ops.transforms import flatten, moved, reshape, transpose
from weft.texpr.shapes import Extent, agreed_quotient, items, shape_text, simplified
from weft.texpr.tensor import Tensor

__all__ = ["channel_shuffle", "depth_to_space", "diagonal", "meshgrid", "moveaxis", "roll", "space_to_depth"]
__all__ += ["swapaxes", "unstack"]


def swapaxes(data: Tensor, axis1: int, axis2: int, *, name: str = "swapaxes") -> Tensor:
    """Two axes exchanged.

    Dtypes: all.
    Equals: `np.swapaxes(data, axis1, axis2)`.
    """
    source = checked_tensor(data, "swapaxes: data")
    first, second = (checked_axis("swapaxes", axis, source.ndim) for axis in (axis1, axis2))
    order = list(range(source.ndim))
    order[first], order[second] = second, first
    return transpose(source, order, name=name)


def moveaxis(
    data: Tensor, source: int | Sequence[int], destination: int | Sequence[int], *, name: str = "moveaxis"
) -> Tensor:
    """Some axes moved; the others keep their order.

    Dtypes: all.
    Equals: `np.moveaxis(data, source, destination)`.
    """
    tensor = checked_tensor(data, "moveaxis: data")
    sources = checked_axes("moveaxis: source", items(source), tensor.ndim)
    places = checked_axes("moveaxis: destination", items(destination), tensor.ndim)
    if len(sources) != len(places):
        raise error(f"moveaxis: {len(sources)} axes to {len(places)} places")
    order = [axis for axis in range(tensor.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return transpose(tensor, order, name=name)


def roll(
    data: Tensor, shift: int | Sequence[int], axis: int | Sequence[int] | None = None, *, name: str = "roll"
) -> Tensor:
    """Elements moved circularly by `shift` along some axes; without an axis, in the flattened tensor.

    Dtypes: all.
    Equals: `np.roll(data, shift, axis)`.
    """
    source = checked_tensor(data, "roll: data")
    if axis is None:
        flat = roll(flatten(source, name=f"{name}_flat"), shift, 0, name=f"{name}_rolled")
        return reshape(flat, source.shape, name=name)
    axes = checked_axes("roll", items(axis), source.ndim)
    steps = dict(zip(axes, integers(shift, "roll: shift", len(axes)), strict=True))
    shape = source.shape

    def place(d: int, index: Expr) -> Expr:
        extent, step = shape[d], steps.get(d, 0)
        step = step % max(extent, 1) if isinstance(extent, int) else step
        return (index - step) % extent if step else index

    return moved(source, shape, place, name)


def unstack(data: Tensor, axis: int = 0, *, name: str = "unstack") -> tuple[Tensor, ...]:
    """The slices along an axis, without it, called `<name>0`, `<name>1`, ... Raises CompileError for a symbolic extent.

    Dtypes: all.
    Equals: `np.unstack(data, axis=axis)`.
    """
    source = checked_tensor(data, "unstack: data")
    along = checked_axis("unstack", axis, source.ndim)
    extent = source.shape[along]
    if not isinstance(extent, int):
        raise error(f"unstack: axis {along} of {source.name} has the symbolic extent {extent}: give it a number")
    rest = (*source.shape[:along], *source.shape[along + 1 :])

    def part(position: int) -> Tensor:
        return compute(rest, lambda *i: source(*i[:along], position, *i[along:]), f"{name}{position}")

    return tuple(map(part, range(extent)))


def diagonal(data: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str = "diagonal") -> Tensor:
    """The diagonals of matrices formed by two axes, as a last axis; `offset` 1 is the one above the main diagonal.

    Dtypes: all.
    Equals: `np.diagonal(data, offset, axis1, axis2)`.
    """
    source = checked_tensor(data, "diagonal: data")
    shift = integer(offset, "diagonal: offset")
    rows, columns = checked_axes("diagonal", (axis1, axis2), source.ndim)
    down, right = max(-shift, 0), max(shift, 0)
    length = _diagonal_length(source.shape[rows], source.shape[columns], down, right)

    def element(*indices: Expr) -> Expr:
        rest, at = iter(indices[:-1]), indices[-1]
        places = {rows: at + down if down else at, columns: at + right if right else at}
        return source(*(places[d] if d in places else next(rest) for d in range(source.ndim)))

    return compute([*(e for d, e in enumerate(source.shape) if d not in (rows, columns)), length], element, name)


def _diagonal_length(rows: Extent, columns: Extent, down: int, right: int) -> Extent:
    if isinstance(rows, int) and isinstance(columns, int):
        return max(min(rows - down, columns - right), 0)
    length = te.min(rows - down, columns - right)
    return simplified(te.max(length, 0) if down or right else length)


def meshgrid(*tensors: Tensor, indexing: str = "xy", name: str = "meshgrid") -> tuple[Tensor, ...]:
    """The coordinates of a grid: per vector a tensor over it, called `<name>0`, `<name>1`, ...

    Axes are in the order of the vectors with `indexing` "ij"; "xy" exchanges the first two.

    Dtypes: all.
    Equals: `np.meshgrid(*tensors, indexing=indexing)`.
    """
    if not is_one_of(indexing, ("xy", "ij")):
        raise error(f"meshgrid: indexing is 'xy' or 'ij', got {shown(indexing)}")
    vectors = [ranked(tensor, f"meshgrid: vector {d}", 1) for d, tensor in enumerate(tensors)]
    axes = list(range(len(vectors)))
    if indexing == "xy":
        axes[:2] = reversed(axes[:2])
    shape = [vectors[axis].shape[0] for axis in axes]

    def grid(position: int) -> Tensor:
        vector, axis = vectors[position], axes.index(position)
        return compute(shape, lambda *i: vector(i[axis]), f"{name}{position}")

    return tuple(map(grid, range(len(vectors))))


def _blocks(what: str, data: Tensor, block_size: int, mode: str, layout: str) -> tuple[Tensor, int, dict[str, Extent]]:
    source = ranked(data, f"{what}: data", 4)
    letters = checked_layout(f"{what}: layout", layout, "NCHW")
    if not is_one_of(mode, ("DCR", "CRD")):
        raise error(f"{what}: the mode is 'DCR' or 'CRD', got {shown(mode)}")
    (edge,) = integers(block_size, f"{what}: block_size", 1, least=1)
    return source, edge, dict(zip(letters, source.shape, strict=True))


def _part(what: str, source: Tensor, extent: Extent, divisor: int) -> Extent:
    found = agreed_quotient(extent, divisor)
    if found is None:
        raise error(f"{what}: {divisor} does not divide {extent} of {source.name} of shape {shape_text(source.shape)}")
    return found


def depth_to_space(
    data: Tensor, block_size: int, mode: str = "DCR", layout: str = "NCHW", *, name: str = "depth_to_space"
) -> Tensor:
    """Images (N, C, H, W) with channels rearranged into spatial blocks: (N, C / b^2, H * b, W * b).

    The channel index is (row, column, channel) with mode DCR, (channel, row, column) with CRD. Raises CompileError if
    b^2 does not divide the channels.

    Dtypes: all.
    Equals: ONNX DepthToSpace; with CRD `torch.pixel_shuffle(data, block_size)`.
    """
    what = "depth_to_space"
    source, b, extents = _blocks(what, data, block_size, mode, layout)
    depth = _part(what, source, extents["C"], b * b)
    shape = {**extents, "C": depth, "H": simplified(extents["H"] * b), "W": simplified(extents["W"] * b)}

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        offset = at["H"] % b * b + at["W"] % b
        channel = offset * depth + at["C"] if mode == "DCR" else at["C"] * (b * b) + offset
        places = {**at, "C": channel, "H": at["H"] // b, "W": at["W"] // b}
        return source(*(places[c] for c in layout))

    return compute([shape[c] for c in layout], element, name, layout.lower())


def space_to_depth(
    data: Tensor, block_size: int, mode: str = "DCR", layout: str = "NCHW", *, name: str = "space_to_depth"
) -> Tensor:
    """The inverse of `depth_to_space`: (N, C * b^2, H / b, W / b). Raises CompileError if b does not divide height and
    width.

    Dtypes: all.
    Equals: ONNX SpaceToDepth; with CRD `torch.pixel_unshuffle(data, block_size)`.
    """
    what = "space_to_depth"
    source, b, extents = _blocks(what, data, block_size, mode, layout)
    depth = extents["C"]
    shape = {**extents, "C": simplified(depth * (b * b))}
    shape |= {c: _part(what, source, extents[c], b) for c in "HW"}

    def element(*indices: Expr) -> Expr:
        at = dict(zip(layout, indices, strict=True))
        c = at["C"]
        channel, offset = (c % depth, c // depth) if mode == "DCR" else (c // (b * b), c % (b * b))
        places = {**at, "C": channel, "H": at["H"] * b + offset // b, "W": at["W"] * b + offset % b}
        return source(*(places[c] for c in layout))

    return compute([shape[c] for c in layout], element, name, layout.lower())


def channel_shuffle(data: Tensor, groups: int, axis: int = 1, *, name: str = "channel_shuffle") -> Tensor:
    """Interleave the channels of `groups` equal parts (Zhang et al. 2018). Raises CompileError if they do not divide
    the channels.

    Dtypes: all.
    Equals: `torch.nn.functional.channel_shuffle(data, groups)`.
    """
    source = checked_tensor(data, "channel_shuffle: data")
    along = checked_axis("channel_shuffle", axis, source.ndim)
    (count,) = integers(groups, "channel_shuffle: groups", 1, least=1)
    size = _part("channel_shuffle", source, source.shape[along], count)
    return moved(source, source.shape, lambda d, i: i % count * size + i // count if d == along else i, name)
