"""`tensor`, and `arith` and `math` on tensors: whole tensors as immutable NumPy arrays.

`tensor.empty` is zero: programs with defined behaviour do not read it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, UnrankedTensorType

from weft.dialects.upstream import tensor as upstream
from weft.dialects.upstream.arith import element_form, is_tensor
from weft.dialects.upstream.views import kept_dimensions, static_numbers
from weft.interp.errors import InterpreterError
from weft.interp.registry import emit_nothing, emits, evaluates
from weft.interp.te import emit_dim, emit_extract
from weft.interp.values import MAX_ELEMENTS, Array, array_of, carrier_dtype, flat_list

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from weft.interp.emitter import Emitter

emits(tensor.DimOp)(emit_dim)
emits(tensor.ExtractOp)(emit_extract)
emits(tensor.YieldOp, upstream.ParallelInsertSliceOp)(emit_nothing)


def _type(value: SSAValue) -> TensorType[Attribute]:
    return cast("TensorType[Attribute]", value.type)


def shape_of_result(op: Operation, sizes: Sequence[int]) -> tuple[int, ...]:
    """`sizes` are the dynamic extents. Raises `InterpreterError` for negative ones."""
    dynamic = iter(sizes)
    shape = tuple(next(dynamic) if n == DYNAMIC_INDEX else n for n in _type(op.results[0]).get_shape())
    if min(shape, default=0) < 0:
        raise InterpreterError(op, f"'{op.name}' needs extents of at least 0, got {', '.join(map(str, shape))}")
    if math.prod(shape) > MAX_ELEMENTS:
        message = f"'{op.name}' of {math.prod(shape):,} elements: the interpreter allocates at most {MAX_ELEMENTS:,}"
        raise InterpreterError(op, message)
    return shape


@evaluates(tensor.EmptyOp)
def empty(op: tensor.EmptyOp, *sizes: int) -> Array:
    return np.zeros(shape_of_result(op, sizes), carrier_dtype(op.tensor.type.element_type))


@evaluates(tensor.SplatOp)
def splat(op: tensor.SplatOp, value: Any, *sizes: int) -> Array:
    return np.full(shape_of_result(op, sizes), value, carrier_dtype(_type(op.result).element_type))


@evaluates(tensor.FromElementsOp)
def from_elements(op: tensor.FromElementsOp, *elements: Any) -> Array:
    return array_of(elements, _type(op.result).get_shape(), _type(op.result).element_type)


@evaluates(tensor.CastOp)
def cast_shape(op: tensor.CastOp, source: Array) -> Array:
    return _stated(op, source)


def _stated(op: Operation, array: Array) -> Array:
    """Raises `InterpreterError` for another shape than the result type's."""
    if isinstance(op.results[0].type, UnrankedTensorType):
        return array
    stated = _type(op.results[0]).get_shape()
    if len(stated) != array.ndim or any(
        n not in (DYNAMIC_INDEX, extent) for n, extent in zip(stated, array.shape, strict=True)
    ):
        raise InterpreterError(op, f"'{op.name}' is stated to give {op.results[0].type}, but gives {array.shape}")
    return array


@evaluates(upstream.RankOp)
def rank(op: upstream.RankOp, source: Array) -> int:
    return source.ndim


@evaluates(tensor.InsertOp)
def insert(op: tensor.InsertOp, value: Any, target: Array, *place: int) -> Array:
    if not all(0 <= at < extent for at, extent in zip(place, target.shape, strict=True)):
        raise InterpreterError(op, f"insertion out of bounds: {list(place)} of shape {target.shape}")
    changed = target.copy()
    changed[place] = value
    return changed


def part_of(op: Operation, array: Array, values: Sequence[int]) -> tuple[tuple[slice, ...], list[int]]:
    """The slice that an op accesses, and its sizes; `values` are dynamic offsets, sizes and strides. Raises
    `InterpreterError` out of bounds."""
    dynamic = iter(values)
    offsets, sizes, strides = (
        [next(dynamic) if n == DYNAMIC_INDEX else n for n in static_numbers(op, f"static_{name}")]
        for name in ("offsets", "sizes", "strides")
    )
    for offset, size, stride, extent in zip(offsets, sizes, strides, array.shape, strict=True):
        if size < 0 or stride < 1 or (size > 0 and not 0 <= offset <= offset + (size - 1) * stride < extent):
            given = f"offsets {offsets}, sizes {sizes}, strides {strides}"
            raise InterpreterError(op, f"'{op.name}' leaves a tensor of shape {array.shape}: {given}")
    parts = zip(offsets, sizes, strides, strict=True)
    return tuple(slice(offset, offset + size * stride, stride) for offset, size, stride in parts), sizes


@evaluates(tensor.ExtractSliceOp)
def extract_slice(op: tensor.ExtractSliceOp, source: Array, *values: int) -> Array:
    place, sizes = part_of(op, source, values)
    kept = kept_dimensions([*static_numbers(op, "static_sizes")], _type(op.result).get_shape())
    return _stated(op, source[place].reshape([sizes[at] for at in kept]))


@evaluates(tensor.InsertSliceOp, upstream.ParallelInsertSliceOp)
def insert_slice(op: Operation, source: Array, target: Array, *values: int) -> Array:
    place, sizes = part_of(op, target, values)
    if source.size != math.prod(sizes):
        raise InterpreterError(op, f"'{op.name}' inserts {source.shape} into a slice of sizes {sizes}")
    changed = target.copy()
    changed[place] = source.reshape(sizes)
    return changed


@evaluates(tensor.CollapseShapeOp)
def collapse_shape(op: tensor.CollapseShapeOp, source: Array) -> Array:
    groups = [[d.value.data for d in group] for group in op.reassociation]
    return _stated(op, source.reshape([math.prod(source.shape[d] for d in group) for group in groups]))


@evaluates(tensor.ExpandShapeOp)
def expand_shape(op: tensor.ExpandShapeOp, source: Array, *sizes: int) -> Array:
    dynamic = iter(sizes)
    shape = [next(dynamic) if n == DYNAMIC_INDEX else n for n in static_numbers(op, "static_output_shape")]
    for extent, group in zip(source.shape, op.reassociation, strict=True):
        if math.prod(shape[d.value.data] for d in group) != extent:
            raise InterpreterError(op, f"'{op.name}' of shape {source.shape} to {tuple(shape)}")
    return _stated(op, source.reshape(shape))


@evaluates(upstream.ReshapeOp)
def reshape(op: upstream.ReshapeOp, source: Array, shape: Array) -> Array:
    extents = [int(extent) for extent in shape]
    if math.prod(extents) != source.size or min(extents, default=0) < 0:
        raise InterpreterError(op, f"'{op.name}' of shape {source.shape} to {tuple(extents)}")
    return _stated(op, source.reshape(extents))


@evaluates(tensor.ConcatOp)
def concat(op: tensor.ConcatOp, *sources: Array) -> Array:
    try:
        return _stated(op, np.concatenate(sources, op.dim.value.data))
    except ValueError:
        shapes = ", ".join(str(source.shape) for source in sources)
        raise InterpreterError(op, f"'{op.name}' of shapes {shapes} along dimension {op.dim.value.data}") from None


@evaluates(upstream.GatherOp)
def gather(op: upstream.GatherOp, source: Array, indices: Array) -> Array:
    dims = op.gather_dims.get_values()
    parts, chosen = _parts(op, source, dims, indices)
    found = parts[chosen]
    if found.ndim == len(_type(op.result).get_shape()):
        return _stated(op, found)
    return _stated(op, np.expand_dims(found, [indices.ndim - 1 + dimension for dimension in dims]))


@evaluates(upstream.ScatterOp)
def scatter(op: upstream.ScatterOp, source: Array, dest: Array, indices: Array) -> Array:
    result, batch = dest.copy(), indices.shape[:-1]
    parts, chosen = _parts(op, result, op.scatter_dims.get_values(), indices)
    if len({tuple(map(int, indices[place])) for place in np.ndindex(batch)}) != math.prod(batch):
        raise InterpreterError(op, f"'{op.name}' has two parts at one place, but is unique")
    parts[chosen] = source.reshape(parts[chosen].shape)
    return result


def _parts(op: Operation, array: Array, dims: Sequence[int], indices: Array) -> tuple[Array, tuple[Array, ...]]:
    """A view of an array with `dims` first, after an axis of one element, and the index of its parts at `indices`."""
    for at, dimension in enumerate(dims):
        places = indices[..., at]
        if places.size and not 0 <= int(places.min()) <= int(places.max()) < array.shape[dimension]:
            raise InterpreterError(op, f"'{op.name}' leaves dimension {dimension} of a tensor of shape {array.shape}")
    parts = np.moveaxis(array, dims, range(len(dims)))[np.newaxis]
    return parts, (np.zeros(indices.shape[:-1], np.int64), *np.moveaxis(indices, -1, 0))


def _elements(emitter: Emitter, op: Operation, block: Block, extents: Sequence[int | str], interior: str = "") -> str:
    elements = emitter.fresh("elements")
    emitter.line(f"{elements} = []", op)
    with emitter.count(block.args, extents, op):
        if interior:
            places = "".join(f"{emitter.value(argument)}, " for argument in block.args)
            emitter.line(f"if {emitter.helper(_is_inside)}(({places}), {interior}): {elements}.append(0); continue", op)
        emitter.region(block)
        last = cast("Operation", block.last_op)
        emitter.line(f"{elements}.append({emitter.written(last.operands[0], last)})", op)
    return elements


def _is_inside(place: tuple[int, ...], part: tuple[slice, ...]) -> bool:
    return all(along.start <= at < along.stop for at, along in zip(place, part, strict=True))


@emits(upstream.GenerateOp)
def emit_generate(emitter: Emitter, op: upstream.GenerateOp) -> None:
    sizes = ", ".join(emitter.written(extent, op) for extent in op.dynamic_extents)
    shape = emitter.fresh("shape")
    emitter.line(f"{shape} = {emitter.call(shape_of_result, op, f'[{sizes}]')}", op)
    extents = emitter.read_extents(op.result, shape, op)
    emitter.define_tensor(op.result, _elements(emitter, op, op.body.block, extents), extents, op)


@emits(tensor.PadOp)
def emit_pad(emitter: Emitter, op: tensor.PadOp) -> None:
    """The region defines the elements outside of the source."""
    source = emitter.value(op.source)
    amounts = ", ".join(emitter.written(value, op) for value in (*op.low, *op.high))
    shape, interior = emitter.fresh("shape"), emitter.fresh("interior")
    emitter.line(f"{shape}, {interior} = {emitter.call(padded_shape, op, f'{source}.shape', f'[{amounts}]')}", op)
    extents = emitter.read_extents(op.result, shape, op)
    emitter.define_tensor(op.result, _elements(emitter, op, op.region.block, extents, interior), extents, op)
    emitter.line(f"{emitter.value(op.result)}[{interior}] = {source}", op)
    emitter.tensors.pop(op.result, None)  # the list lacks the interior


def padded_shape(
    op: tensor.PadOp, source: tuple[int, ...], amounts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[slice, ...]]:
    dynamic = iter(amounts)
    low, high = (
        [next(dynamic) if n == DYNAMIC_INDEX else n for n in numbers.get_values()]
        for numbers in (op.static_low, op.static_high)
    )
    if min((*low, *high), default=0) < 0:
        raise InterpreterError(op, f"'{op.name}' needs amounts of at least 0, got {low} and {high}")
    shape = tuple(map(sum, zip(low, source, high, strict=True)))
    return shape, tuple(slice(at, at + extent) for at, extent in zip(low, source, strict=True))


def emit_elementwise(emitter: Emitter, op: Operation) -> None:
    """Scalar semantics for each element, in order."""
    sources = [emitter.value(value) for value in op.operands if is_tensor(value)]
    for source in sources[1:]:
        message = f"'{op.name}' of tensors of shapes {{}} and {{}}"
        emitter.refuse(f"{source}.shape != {sources[0]}.shape", message, op, f"{sources[0]}.shape", f"{source}.shape")
    block = element_form(op)
    names = [emitter.define(argument) for argument in block.args]
    elements = emitter.fresh("elements")
    emitter.line(f"{elements} = []", op)
    lists = ", ".join(f"{emitter.helper(flat_list)}({source})" for source in sources)
    with emitter.nested(f"for {', '.join(names)}, in zip({lists}):", op, loop=True):
        emitter.region(block)
        value = cast("Operation", block.last_op).results[0]
        emitter.line(f"{elements}.append({emitter.value(value)})", op)
    element = emitter.constant(_type(op.results[0]).element_type, "type")
    array = f"{emitter.helper(array_of)}({elements}, {sources[0]}.shape, {element})"
    emitter.line(f"{emitter.define(op.results[0])} = {array}", op)
