"""`stablehlo` and `chlo`: whole tensors as NumPy arrays, by the loops of the specification.

Regions of reductions, windows, scatters and sorts run on arrays, so that one run combines all elements. Source: the
StableHLO specification, "Ops".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key, partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, TensorType

from weft.dialects import chlo, stablehlo
from weft.dialects.element_types import element_name
from weft.dialects.stablehlo import KeyedAttr, numbers
from weft.dialects.stablehlo_dialects import CHLO_DIALECT, STABLEHLO
from weft.dialects.stablehlo_library import (
    FftOp,
    MapOp,
    ReducePrecisionOp,
    RngBitGeneratorOp,
    SetDimensionSizeOp,
    TorchIndexSelectOp,
)
from weft.dialects.traversal import captured_values
from weft.interp.errors import InterpreterError
from weft.interp.registered_calls import filled
from weft.interp.registry import call_rule, emit_nothing, emits, evaluates
from weft.interp.values import Array, array_of_dense, carrier_dtype, round_array
from weft.support.errors import CompileError
from weft.texpr.references import reference_of
from weft.texpr.references.arguments import array_dtype as array_dtype_of
from weft.texpr.references.convolution import convolved
from weft.texpr.stablehlo import (
    ELEMENTWISE,
    compared,
    converted,
    dot_subscripts,
    elementwise,
    reduced_precision,
)
from weft.texpr.stablehlo_complex import COMPLEX, complex_compared, complex_elementwise
from weft.texpr.stablehlo_lapack import LAPACK_CALLS, lapack_results
from weft.texpr.stablehlo_random import next_state, random_bits
from weft.texpr.stablehlo_tensors import MATRICES, PRODUCTS, TENSOR_FORMULAS, Formula, index_select_layout

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, Operation, SSAValue

    from weft.interp.emitter import Emitter


def _element(value: SSAValue) -> Attribute:
    return cast("TensorType[Attribute]", value.type).element_type


def _finished(op: Operation, array: object, position: int = 0) -> Array:
    element = _element(op.results[position])
    if carrier_dtype(element) is None:
        raise InterpreterError(op, f"the interpreter has no arrays of {element}")
    return np.asarray(round_array(np.asarray(array), element))


def _ops(*names: str) -> list[type[Operation]]:
    known = {op.name: op for dialect in (STABLEHLO, CHLO_DIALECT) for op in dialect.operations}
    return [known[name] for name in names]


def _apply(name: str, *operands: Any, **attributes: object) -> Any:
    return reference_of(name)(*operands, **attributes)


def _wide(x: Array) -> Array:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _parts(x: Array) -> Any:
    return (np.real(x), np.imag(x)) if x.dtype.kind == "c" else x


def _complex(op: Operation, name: str, *operands: Array) -> Array:
    with np.errstate(all="ignore"):
        found = complex_elementwise(_apply, name, *map(_parts, operands))
        if not isinstance(found, tuple):
            return _finished(op, found)
        real, imaginary = cast("tuple[Array, Array]", found)
        result: Any = np.empty(real.shape, carrier_dtype(_element(op.results[0])))
        result.real, result.imag = real, imaginary
        return result


@evaluates(*_ops(*dict.fromkeys((*ELEMENTWISE, *COMPLEX))))
def evaluate_elementwise(op: Operation, *operands: Array) -> Array:
    if op.name != "stablehlo.select" and _is_complex(op):
        return _complex(op, op.name, *operands)
    with np.errstate(all="ignore"):
        return _finished(op, elementwise(_apply, op.name, *map(_wide, operands)))


def _is_complex(op: Operation) -> bool:
    return any(isinstance(_element(value), ComplexType) for value in (*op.operands, *op.results))


@evaluates(*_ops("stablehlo.convert"))
def convert(op: Operation, x: Array) -> Array:
    element = _element(op.results[0])
    if _is_complex(op):
        return _finished(op, x if isinstance(element, ComplexType) else np.real(x))
    name = element_name(element)
    if name is None:
        raise InterpreterError(op, f"the interpreter does not convert to {element}")
    with np.errstate(all="ignore"):
        return _finished(op, converted(_apply, _wide(x), name))


@evaluates(stablehlo.CompareOp)
def compare(op: stablehlo.CompareOp, x: Array, y: Array) -> Array:
    kind = None if op.compare_type is None else op.compare_type.data
    if x.dtype.kind == "c":
        return np.asarray(complex_compared(_apply, op.comparison_direction.data, _parts(x), _parts(y)))
    return np.asarray(compared(_apply, op.comparison_direction.data, kind, x, y))


@evaluates(*(op for op in chlo.CHLO_OPS if issubclass(op, chlo.BroadcastingOp)))
def broadcast_elementwise(op: chlo.BroadcastingOp, *operands: Array) -> Array:
    rank = max(x.ndim for x in operands)
    dims = None if op.broadcast_dimensions is None else numbers(op.broadcast_dimensions)
    if dims is not None:
        operands = tuple(_spread(x, dims, rank) if x.ndim == len(dims) < rank else x for x in operands)
    given = np.broadcast_arrays(*operands)
    if isinstance(op, chlo.BroadcastCompareOp):
        kind = None if op.compare_type is None else op.compare_type.data
        return np.asarray(compared(_apply, op.comparison_direction.data, kind, *given))
    if op.BASE != "stablehlo.select" and _is_complex(op):
        return _complex(op, op.BASE, *given)
    with np.errstate(all="ignore"):
        return _finished(op, elementwise(_apply, op.BASE, *map(_wide, given)))


def _spread(x: Array, dims: Sequence[int], rank: int) -> Array:
    places = dict(zip(dims, x.shape, strict=True))
    return x.reshape([places.get(d, 1) for d in range(rank)])


@evaluates(ReducePrecisionOp)
def reduce_precision(op: ReducePrecisionOp, x: Array) -> Array:
    return np.asarray(reduced_precision(_apply, *op.bits, x))


@evaluates(*_ops("stablehlo.bitcast_convert"))
def bitcast_convert(op: Operation, x: Array) -> Array:
    if isinstance(_element(op.results[0]), ComplexType) and _element(op.results[0]) == _element(op.operands[0]):
        return x
    name = element_name(_element(op.results[0]))
    if name is None:
        raise InterpreterError(op, f"{op.name}: the interpreter has no arrays of {_element(op.results[0])}")
    rank = cast("TensorType[Attribute]", op.results[0].type).get_num_dims()
    if rank == x.ndim:
        return _apply("bitcast", x, dtype=name)
    dtype = np.dtype(array_dtype_of(name))
    shape = (*x.shape, x.dtype.itemsize // dtype.itemsize) if rank > x.ndim else x.shape[:-1]
    return np.ascontiguousarray(x.reshape(-1)).view(dtype).reshape(shape)


@evaluates(SetDimensionSizeOp)
def set_dimension_size(op: SetDimensionSizeOp, x: Array, size: Array) -> Array:
    (dim,) = op.keyword("dim")
    if not 0 <= int(size) <= x.shape[dim]:
        raise InterpreterError(op, f"the size of dimension {dim} is 0 to {x.shape[dim]}, got {int(size)}")
    return x[(slice(None),) * dim + (slice(int(size)),)]


@evaluates(*_ops(*TENSOR_FORMULAS))
def evaluate_tensors(op: Operation, *operands: Array) -> Any:
    if operands[0].dtype.kind == "c" and op.name not in MATRICES:
        if op.name not in PRODUCTS:
            raise InterpreterError(op, f"{op.name}: elements of complex types are not supported")
        (a, b), (c, d) = map(_parts, operands)
        product = partial(TENSOR_FORMULAS[op.name], _apply, op)
        return _finished(op, product(a, c) - product(b, d) + 1j * (product(a, d) + product(b, c)))
    return _formula_results(op, TENSOR_FORMULAS[op.name], operands)


def _formula_results(op: Operation, formula: Formula, operands: Sequence[Array]) -> Any:
    with np.errstate(all="ignore"):
        found = formula(_apply, op, *map(_wide, operands))
    if not isinstance(found, list | tuple):
        return _finished(op, found)
    return tuple(_finished(op, array, at) for at, array in enumerate(cast("Sequence[Array]", found)))


@evaluates(FftOp)
def fft(op: FftOp, x: Array) -> Array:
    lengths = numbers(op.fft_length)
    transform = getattr(np.fft, f"{op.fft_type.data.lower()}n")
    return _finished(op, transform(x, lengths, range(x.ndim - len(lengths), x.ndim)))


@evaluates(RngBitGeneratorOp)
def rng_bit_generator(op: RngBitGeneratorOp, state: Array) -> tuple[Array, Array]:
    shape, dtype = _declared(op, 1), cast("str", element_name(_element(op.results[1])))
    words, algorithm = [state[at : at + 1] for at in range(len(state))], op.rng_algorithm.data
    indices = [index.reshape(-1) for index in np.indices(shape)] if shape else []
    with np.errstate(over="ignore"):
        found = random_bits(_apply, algorithm, indices, shape, dtype, words).reshape(shape)
        following = next_state(_apply, algorithm, shape, dtype, words)
    return np.concatenate(following), found


@evaluates(TorchIndexSelectOp)
def torch_index_select(op: TorchIndexSelectOp, x: Array, indices: Array) -> Array:
    layout, kept = index_select_layout(op)
    return gathered(layout, x, indices, [extent if axis in kept else 1 for axis, extent in enumerate(x.shape)])


@evaluates(chlo.ConstantLikeOp)
def constant_like(op: chlo.ConstantLikeOp, x: Array) -> Array:
    return _finished(op, np.full(x.shape, cast("Any", op.value).value.data))


@emits(stablehlo.ConstantOp, chlo.ChloConstantOp)
def emit_constant(emitter: Emitter, op: stablehlo.DenseConstantOp) -> None:
    array = array_of_dense(op.value)
    if array is None:
        raise CompileError.at(op, f"the interpreter has no arrays of {_element(op.output)}")
    emitter.bind(op.output, emitter.constant(array, op.output.name_hint or "constant"))


def _declared(op: Operation, position: int = 0) -> tuple[int, ...]:
    shape = cast("TensorType[Attribute]", op.results[position].type).get_shape()
    if DYNAMIC_INDEX in shape:
        raise InterpreterError(op, f"{op.name}: the shape of the result is not known")
    return tuple(shape)


@evaluates(*_ops("stablehlo.iota", "stablehlo.dynamic_iota"))
def iota(op: stablehlo.TensorOp, *shape: Array) -> Array:
    extents = tuple(shape[0].tolist()) if shape else _declared(op)
    (axis,) = op.keyword("dim")
    line = np.arange(extents[axis]).reshape([-1 if d == axis else 1 for d in range(len(extents))])
    return _finished(op, np.broadcast_to(line, extents))


@evaluates(*_ops("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"))
def broadcast_in_dim(op: stablehlo.TensorOp, x: Array, *shape: Array) -> Array:
    extents = tuple(shape[0].tolist()) if shape else _declared(op)
    places = dict(zip(op.keyword("dims"), x.shape, strict=True))
    return np.broadcast_to(x.reshape([places.get(d, 1) for d in range(len(extents))]), extents)


@evaluates(*_ops("stablehlo.broadcast"))
def broadcast(op: stablehlo.TensorOp, x: Array) -> Array:
    return np.broadcast_to(x, (*op.keyword("sizes"), *x.shape))


@evaluates(*_ops("stablehlo.reshape", "stablehlo.dynamic_reshape"))
def reshape(op: Operation, x: Array, *shape: Array) -> Array:
    return x.reshape(tuple(shape[0].tolist()) if shape else _declared(op))


@evaluates(*_ops("stablehlo.get_dimension_size"))
def get_dimension_size(op: stablehlo.TensorOp, x: Array) -> Array:
    return np.asarray(x.shape[op.keyword("dim")[0]], np.int32)


@evaluates(*_ops("stablehlo.transpose"))
def transpose(op: stablehlo.TensorOp, x: Array) -> Array:
    return x.transpose(op.keyword("dims"))


@evaluates(*_ops("stablehlo.reverse"))
def reverse(op: stablehlo.TensorOp, x: Array) -> Array:
    return np.flip(x, op.keyword("dims"))


@evaluates(*_ops("stablehlo.concatenate"))
def concatenate(op: stablehlo.TensorOp, *parts: Array) -> Array:
    return np.concatenate(parts, op.keyword("dim")[0])


@evaluates(stablehlo.OptimizationBarrierOp)
def optimization_barrier(op: Operation, *values: Array) -> Any:
    return values[0] if len(values) == 1 else values


@evaluates(stablehlo.SliceOp)
def slice_(op: stablehlo.SliceOp, x: Array) -> Array:
    columns = numbers(op.start_indices), numbers(op.limit_indices), numbers(op.strides)
    return x[tuple(slice(*line) for line in zip(*columns, strict=True))]


@evaluates(*_ops("stablehlo.real_dynamic_slice"))
def real_dynamic_slice(op: Operation, x: Array, *bounds: Array) -> Array:
    return x[tuple(slice(*line) for line in zip(*(bound.tolist() for bound in bounds), strict=True))]


def _corner(starts: Sequence[Array], extents: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    firsts = [max(0, min(int(s), e - n)) for s, e, n in zip(starts, extents, sizes, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


@evaluates(*_ops("stablehlo.dynamic_slice"))
def dynamic_slice(op: stablehlo.TensorOp, x: Array, *starts: Array) -> Array:
    return x[_corner(starts, x.shape, op.keyword("sizes"))]


@evaluates(*_ops("stablehlo.dynamic_update_slice"))
def dynamic_update_slice(op: Operation, x: Array, update: Array, *starts: Array) -> Array:
    result = x.copy()
    result[_corner(starts, x.shape, update.shape)] = update
    return result


@evaluates(*_ops("stablehlo.pad"))
def pad(op: stablehlo.TensorOp, x: Array, value: Array) -> Array:
    return padded(x, value, *(op.keyword(name) for name in ("low", "high", "interior")))


@evaluates(*_ops("stablehlo.dynamic_pad"))
def dynamic_pad(op: Operation, x: Array, value: Array, *widths: Array) -> Array:
    return padded(x, value, *(width.tolist() for width in widths))


def padded(x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with `value` between and around its elements; negative padding removes elements."""
    spans = [max(0, (n - 1) * (gap + 1) + 1) for n, gap in zip(x.shape, interior, strict=True)]
    spread = np.full(spans, value, x.dtype)
    spread[tuple(slice(None, None, gap + 1) for gap in interior)] = x
    wide = np.pad(spread, [(max(b, 0), max(a, 0)) for b, a in zip(low, high, strict=True)], constant_values=value)
    cut = (slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(low, high, wide.shape, strict=True))
    return wide[tuple(cut)]


def _vectors(layout: KeyedAttr, indices: Array, names: Sequence[int]) -> tuple[Array, list[dict[int, int]]]:
    """The indices with vectors along the last axis, and the starts in batch order."""
    vector = layout.number("index_vector_dim")
    moved = np.moveaxis(indices, vector, -1) if vector < indices.ndim else indices[..., None]
    return moved, [dict(zip(names, map(int, moved[place]), strict=True)) for place in np.ndindex(moved.shape[:-1])]


@evaluates(stablehlo.GatherOp, stablehlo.DynamicGatherOp)
def gather(op: stablehlo.GatherOp, x: Array, indices: Array, *sizes: Array) -> Array:
    return gathered(op.dimension_numbers, x, indices, sizes[0].tolist() if sizes else numbers(op.slice_sizes))


def gathered(layout: KeyedAttr, x: Array, indices: Array, extents: Sequence[int]) -> Array:
    collapsed, batching = layout.dims("collapsed_slice_dims"), layout.dims("operand_batching_dims")
    kept = [axis for axis in range(x.ndim) if axis not in collapsed and axis not in batching]
    moved, starts = _vectors(layout, indices, layout.dims("start_index_map"))
    batch = moved.shape[:-1]
    vector = layout.number("index_vector_dim")
    batch_axes = [axis - (axis > vector) for axis in layout.dims("start_indices_batching_dims")]
    found = np.empty((*batch, *(extents[axis] for axis in kept)), x.dtype)
    for place, start in zip(np.ndindex(batch), starts, strict=True):
        first = dict(start) | {axis: place[at] for axis, at in zip(batching, batch_axes, strict=True)}
        corner = _corner([np.asarray(first.get(axis, 0)) for axis in range(x.ndim)], x.shape, extents)
        found[place] = x[corner].reshape([extents[axis] for axis in kept])
    offsets = layout.dims("offset_dims")
    rest = [axis for axis in range(found.ndim) if axis not in offsets]
    return np.moveaxis(found, range(found.ndim), [*rest, *offsets])


def scatter(op: stablehlo.ScatterOp, operands: Sequence[Array], region: Region) -> list[Array]:
    layout = op.scatter_dimension_numbers
    count = len(operands) // 2
    results = [x.copy() for x in operands[:count]]
    indices, updates = operands[count], operands[count + 1 :]
    windows, inserted = layout.dims("update_window_dims"), layout.dims("inserted_window_dims")
    batching = layout.dims("input_batching_dims")
    kept = [axis for axis in range(results[0].ndim) if axis not in inserted and axis not in batching]
    moved, starts = _vectors(layout, indices, layout.dims("scatter_dims_to_operand_dims"))
    vector = layout.number("index_vector_dim")
    batch_axes = [axis - (axis > vector) for axis in layout.dims("scatter_indices_batching_dims")]
    outer = [axis for axis in range(updates[0].ndim) if axis not in windows]
    by_place = [update.transpose([*outer, *windows]) for update in updates]
    for place, start in zip(np.ndindex(moved.shape[:-1]), starts, strict=True):
        first = dict(start) | {axis: place[at] for axis, at in zip(batching, batch_axes, strict=True)}
        sizes = dict(zip(kept, by_place[0].shape[len(outer) :], strict=True))
        ranges = [(first.get(axis, 0), sizes.get(axis, 1)) for axis in range(results[0].ndim)]
        if any(f < 0 or f + n > e for (f, n), e in zip(ranges, results[0].shape, strict=True)):
            continue
        corner = tuple(slice(f, f + n) for f, n in ranges)
        new = [update[place].reshape(results[0][corner].shape) for update in by_place]
        for result, value in zip(results, region([*(result[corner] for result in results), *new]), strict=True):
            result[corner] = value
    return results


@evaluates(stablehlo.DotGeneralOp)
def dot_general(op: stablehlo.DotGeneralOp, x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return _finished(op, np.einsum(dot_subscripts(op), x, y))
    wide = "float64" if x.dtype.kind == "f" else "int64"
    with np.errstate(all="ignore"):
        return _finished(op, _apply("einsum", dot_subscripts(op), x, y, out_dtype=wide))


@evaluates(stablehlo.ConvolutionOp, stablehlo.DynamicConvOp)
def convolution(
    op: stablehlo.ConvolutionOp | stablehlo.DynamicConvOp, x: Array, kernel: Array, padding: Array | None = None
) -> Array:
    if x.dtype.kind == "c":
        (a, b), (c, d) = _parts(x), _parts(kernel)
        real = _convolved(op, a, c, padding) - _convolved(op, b, d, padding)
        return _finished(op, real + 1j * (_convolved(op, a, d, padding) + _convolved(op, b, c, padding)))
    return _finished(op, _convolved(op, x, kernel, padding))


def _convolved(
    op: stablehlo.ConvolutionOp | stablehlo.DynamicConvOp, x: Array, kernel: Array, padding: Array | None
) -> Array:
    left, right, output = op.dimension_numbers.data
    rank = len(output) - 2
    letters = [str(d) for d in range(rank)]
    data = x.transpose([left.index(letter) for letter in ("b", "f", *letters)]).astype(np.float64)
    weight = kernel.transpose([right.index(letter) for letter in ("o", "i", *letters)]).astype(np.float64)
    ones, stated = (1,) * rank, op.padding if isinstance(op, stablehlo.ConvolutionOp) else None
    flat = [int(pad) for pad in padding.flat] if padding is not None else numbers(stated) or (0,) * (2 * rank)
    strides, inner, gaps = (numbers(p) or ones for p in (op.window_strides, op.lhs_dilation, op.rhs_dilation))
    mirrored = numbers(op.window_reversal) or (0,) * rank
    weight = np.flip(weight, tuple(2 + d for d in range(rank) if mirrored[d]))
    data = padded(data, np.asarray(0.0), (0, 0, *flat[::2]), (0, 0, *flat[1::2]), (0, 0, *(step - 1 for step in inner)))
    features, batches = (cast("Any", group).value.data for group in (op.feature_group_count, op.batch_group_count))
    groups = zip(np.split(data, batches, 0), np.split(weight, batches, 0), strict=True)
    parts = [convolved(source, part, strides, 0, gaps, features) for source, part in groups]
    found = np.concatenate(parts, 1)
    return found.transpose([("b", "f", *letters).index(letter) for letter in output])


Region: TypeAlias = Callable[[Sequence[Array]], list[Array]]


def reduce(op: stablehlo.ReduceOp, operands: Sequence[Array], region: Region) -> list[Array]:
    sources, totals = operands[: op.operand_count], list(operands[op.operand_count :])
    dims = numbers(op.dimensions)
    rest = [axis for axis in range(sources[0].ndim) if axis not in dims]
    shape = tuple(sources[0].shape[axis] for axis in rest)
    totals = [np.broadcast_to(total, shape) for total in totals]
    count = prod(sources[0].shape[axis] for axis in dims)
    lines = [source.transpose([*dims, *rest]).reshape(count, *shape) for source in sources]
    for values in zip(*lines, strict=True):
        totals = region([*totals, *values])
    return totals


def reduce_window(op: stablehlo.ReduceWindowOp, operands: Sequence[Array], region: Region) -> list[Array]:
    sources, initial = operands[: op.operand_count], operands[op.operand_count :]
    sizes = numbers(op.window_dimensions)
    ones = (1,) * len(sizes)
    steps, inner, gaps = (numbers(p) or ones for p in (op.window_strides, op.base_dilations, op.window_dilations))
    flat = numbers(op.padding) or (0,) * (2 * len(sizes))
    between = [step - 1 for step in inner]
    wide = [padded(x, i, flat[::2], flat[1::2], between) for x, i in zip(sources, initial, strict=True)]
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)]
    counts = [(n - span) // step + 1 for n, span, step in zip(wide[0].shape, spans, steps, strict=True)]
    totals = [np.broadcast_to(start, counts) for start in initial]
    for offset in np.ndindex(*sizes):
        firsts = [place * gap for place, gap in zip(offset, gaps, strict=True)]
        cut = tuple(slice(f, f + (c - 1) * s + 1, s) for f, c, s in zip(firsts, counts, steps, strict=True))
        totals = region([*totals, *(x[cut] for x in wide)])
    return totals


def sort(op: stablehlo.SortOp, operands: Sequence[Array], region: Region) -> list[Array]:
    axis = -1 if op.dimension is None else op.dimension.value.data
    moved = [np.moveaxis(x, axis, -1) for x in operands]
    results = [x.copy() for x in moved]
    for place in np.ndindex(moved[0].shape[:-1]):
        lines = [x[place] for x in moved]

        def order(a: int, b: int, lines: Sequence[Array] = lines) -> int:
            def is_before(i: int, j: int) -> bool:
                return bool(region([line[k] for line in lines for k in (i, j)])[0])

            return -1 if is_before(a, b) else 1 if is_before(b, a) else 0

        positions = sorted(range(len(lines[0])), key=cmp_to_key(order))
        for result, line in zip(results, lines, strict=True):
            result[place] = line[positions]
    return [np.moveaxis(x, -1, axis) for x in results]


def select_and_scatter(op: stablehlo.SelectAndScatterOp, operands: Sequence[Array], *regions: Region) -> list[Array]:
    operand, source, initial = operands
    select, combine = regions
    ones = (1,) * operand.ndim
    sizes, steps = (numbers(p) or ones for p in (op.window_dimensions, op.window_strides))
    low = (numbers(op.padding) or (0,) * (2 * operand.ndim))[::2]
    result = np.full(operand.shape, initial, operand.dtype)
    for place in np.ndindex(*source.shape):
        chosen: tuple[int, ...] | None = None
        for offset in np.ndindex(*sizes):
            at = tuple(p * s + o - b for p, s, o, b in zip(place, steps, offset, low, strict=True))
            if any(not 0 <= a < extent for a, extent in zip(at, operand.shape, strict=True)):
                continue
            if chosen is None or not select([operand[chosen], operand[at]])[0]:
                chosen = at
        if chosen is not None:
            result[chosen] = combine([result[chosen], source[place]])[0]
    return [result]


def map_elements(op: MapOp, operands: Sequence[Array], region: Region) -> list[Array]:
    return [np.broadcast_to(array, operands[0].shape) for array in region(operands)]


_COMBINING: Mapping[type[Operation], Callable[..., list[Array]]] = {
    MapOp: map_elements,
    stablehlo.ReduceOp: reduce,
    stablehlo.ReduceWindowOp: reduce_window,
    stablehlo.ScatterOp: scatter,
    stablehlo.SelectAndScatterOp: select_and_scatter,
    stablehlo.SortOp: sort,
}


@emits(*_COMBINING)
def emit_combining(emitter: Emitter, op: stablehlo.RegionOp) -> None:
    outside = captured_values(op)
    captured = emitter.constant(tuple(outside), "captured")
    values = "".join(f"{emitter.value(value)}, " for value in outside)
    operands = "".join(f"{emitter.value(operand)}, " for operand in op.operands)
    results = "".join(f"{emitter.define(result)}, " for result in op.results)
    emitter.line(f"{results}= {emitter.call(run_combining, op, f'({operands})', captured, f'({values})')}", op)


def run_combining(
    op: stablehlo.RegionOp, operands: Sequence[Array], captured: Sequence[SSAValue], values: Sequence[Array]
) -> list[Array]:
    outside = dict(zip(captured, values, strict=True))
    found = _COMBINING[type(op)](op, operands, *(partial(_run, region.block, outside) for region in op.regions))
    return [np.asarray(_finished(op, array, position)) for position, array in enumerate(found)]


def _run(block: Block, outside: Mapping[SSAValue, Array], arguments: Sequence[Array]) -> list[Array]:
    op = cast("Operation", block.parent_op())
    known = {**outside, **dict(zip(block.args, arguments, strict=True))}
    for inner in block.ops:
        operands = [known[operand] for operand in inner.operands]
        if isinstance(inner, stablehlo.ReturnOp):
            return operands
        if isinstance(inner, stablehlo.DenseConstantOp):
            known[inner.output] = cast("Array", array_of_dense(inner.value))
            continue
        rule = call_rule(inner.name)
        if rule is None:
            raise InterpreterError(inner, f"the interpreter does not run {inner.name} in a region of {op.name}")
        known[inner.results[0]] = rule(inner, *operands)
    raise InterpreterError(op, f"the region of {op.name} returns nothing")


emits(stablehlo.ReturnOp)(emit_nothing)


@emits(stablehlo.CaseOp, stablehlo.IfOp)
def emit_branches(emitter: Emitter, op: stablehlo.CaseOp | stablehlo.IfOp) -> None:
    index = emitter.value(op.operands[0])
    results = [emitter.define(result) for result in op.results]
    last = len(op.regions) - 1
    for number, region in enumerate(op.regions):
        test = f"{index}" if isinstance(op, stablehlo.IfOp) else f"{index} == {number}"
        header = "else:" if number == last and last else f"{'if' if number == 0 else 'elif'} {test if last else True}:"
        with emitter.nested(header, op):
            emitter.region(region.block)
            end = cast("Operation", region.block.last_op)
            emitter.line(f"{', '.join(results)} = {', '.join(map(emitter.value, end.operands))}", end)


@emits(stablehlo.CompositeOp)
def emit_composite(emitter: Emitter, op: stablehlo.CompositeOp) -> None:
    arguments = ", ".join(map(emitter.value, op.operands))
    results = "".join(f"{emitter.define(result)}, " for result in op.results)
    emitter.line(f"{results}= {emitter.callee(op.decomposition.string_value())}({arguments})", op)


@emits(stablehlo.WhileOp)
def emit_while(emitter: Emitter, op: stablehlo.WhileOp) -> None:
    names = [emitter.define(result) for result in op.results]
    for name, value in zip(names, op.inputs, strict=True):
        emitter.line(f"{name} = {emitter.value(value)}", op)
    with emitter.endless_loop(op):
        for block in (op.cond.block, op.body.block):
            for argument, name in zip(block.args, names, strict=True):
                emitter.bind(argument, name)
            emitter.region(block)
            end = cast("Operation", block.last_op)
            values = ", ".join(map(emitter.value, end.operands))
            emitter.line(f"if not {values}: break" if block is op.cond.block else f"{', '.join(names)} = {values}", end)


@emits(chlo.ScanOp)
def emit_scan(emitter: Emitter, op: chlo.ScanOp) -> None:
    """The region is emitted once, in a loop over the slices."""
    names = [emitter.define(result) for result in op.results]
    outputs = names[: len(op.outputs)]
    carried = names[len(outputs) :]
    for name in outputs:
        emitter.line(f"{name} = []", op)
    for name, value in zip(carried, op.inits, strict=True):
        emitter.line(f"{name} = {emitter.value(value)}", op)
    axis = op.dimension.value.data
    is_reverse = op.is_reverse is not None and bool(op.is_reverse.value.data)
    length = cast("TensorType[Attribute]", op.operand_types[0]).get_shape()[axis]
    block = op.body.block
    arguments = [emitter.define(argument) for argument in block.args]
    order = f"reversed(range({length}))" if is_reverse else f"range({length})"
    with emitter.nested(f"for scan_place in {order}:", op):
        for name, source in zip(arguments, op.inputs, strict=False):
            emitter.line(f"{name} = {emitter.value(source)}.take(scan_place, {axis})", op)
        for name, value in zip(arguments[len(op.inputs) :], carried, strict=True):
            emitter.line(f"{name} = {value}", op)
        emitter.region(block)
        end = cast("Operation", block.last_op)
        found = [emitter.value(value) for value in end.operands]
        for name, value in zip(outputs, found, strict=False):
            emitter.line(f"{name}.append({value})", op)
        if carried:
            emitter.line(f"{', '.join(carried)} = {', '.join(found[len(outputs) :])}", op)
    stack = emitter.constant(partial(_stacked, axis=axis, is_reverse=is_reverse), "stack")
    for name in outputs:
        emitter.line(f"{name} = {stack}({name})", op)


def _stacked(slices: list[Array], axis: int, is_reverse: bool) -> Array:
    return np.stack(slices[::-1] if is_reverse else slices, axis)


@evaluates(stablehlo.CustomCallOp)
def custom_call(op: stablehlo.CustomCallOp, *operands: Array) -> Any:
    target = op.call_target_name.data
    if target == "shape_assertion":
        if not operands[0]:
            raise InterpreterError(op, "a shape assertion does not hold")
        return None
    if target == "Sharding":
        return operands[0]
    if target in LAPACK_CALLS:
        return _formula_results(op, lapack_results, operands)
    types = [_element(operand) for operand in op.operands]
    shapes = [(_declared(op, at), _element(result)) for at, result in enumerate(op.results)]
    found = filled(op, target, operands, types, shapes)
    return found[0] if len(found) == 1 else found
