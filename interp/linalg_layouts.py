"""`linalg`: structured operations (`interp/linalg.py`), `softmax`, `pack` and `unpack`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, TensorType

from weft.dialects.upstream.linalg_layouts import LayoutOp, PackOp, SoftmaxOp, UnpackOp
from weft.interp.bufferization import elements_of, write_elements
from weft.interp.errors import InterpreterError
from weft.interp.linalg import emit_structured
from weft.interp.memory import place_in_view
from weft.interp.registry import emits, evaluates
from weft.interp.te import tensor_source
from weft.interp.values import Array, BufferStorage, array_of, flat_list, round_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute

    from weft.interp.emitter import BufferSource, Emitter

STRUCTURED = emit_structured
"""Importing this module registers the rule."""


def _normalized(elements: Sequence[Any], shape: Sequence[int], axis: int, type_: Attribute) -> list[Any]:
    """Softmax in the steps of its definition; each rounds, sums are in order."""

    def rounded(array: Array) -> Array:
        return round_array(np.asarray(array, np.float64), type_).astype(np.float64)

    given = array_of(elements, shape, type_).astype(np.float64)
    if not given.size:
        return []
    with np.errstate(all="ignore"):
        powers = rounded(np.exp(rounded(given - np.fmax.reduce(given, axis, keepdims=True))))
        total = np.zeros([1 if d == axis else extent for d, extent in enumerate(shape)])
        for at in range(shape[axis]):
            total = rounded(total + np.take(powers, [at], axis))
        return flat_list(round_array(powers / total, type_))


@emits(SoftmaxOp)
def emit_softmax(emitter: Emitter, op: SoftmaxOp) -> None:
    operands = (op.input, op.output)
    source, target = (
        tensor_source(emitter, value, op) if isinstance(value.type, TensorType) else emitter.buffer(value)
        for value in operands
    )
    if source.extents != target.extents:
        sizes = [f"({''.join(f'{extent}, ' for extent in one.extents)})" for one in (source, target)]
        emitter.refuse(f"{sizes[0]} != {sizes[1]}", f"'{op.name}' of {{}} into {{}}", op, *sizes)
    type_ = cast("TensorType[Attribute]", op.output.type).element_type
    shape = "".join(f"{extent}, " for extent in source.extents)
    values, results = emitter.fresh("values"), emitter.fresh("softmax")
    emitter.line(f"{values} = {_listed(emitter, source, '{0}[{1}]')}", op)
    rule, element = emitter.helper(_normalized), emitter.constant(type_, "type")
    emitter.line(f"{results} = {rule}({values}, ({shape}), {op.dimension.value.data}, {element})", op)
    if op.results:
        emitter.define_tensor(op.results[0], results, target.extents, op)
        return
    place, number = emitter.fresh("place"), emitter.fresh("number")
    places = _listed(emitter, target, "{1}")
    with emitter.store(), emitter.nested(f"for {place}, {number} in zip({places}, {results}):", op):
        emitter.line(f"{target.data}[{place}] = {number}", op)


def _listed(emitter: Emitter, source: BufferSource, form: str) -> str:
    names = [emitter.fresh(f"i{at}") for at in range(len(source.extents))]
    loops = "".join(f" for {name} in range({extent})" for name, extent in zip(names, source.extents, strict=True))
    place = emitter.flat_index(names, source.extents) if source.strides is None else place_in_view(names, source)
    return f"[{form.format(source.data, place)}{loops}]"


def _tiles(op: LayoutOp, sizes: Sequence[int]) -> list[int]:
    given = iter(sizes)
    return [next(given) if tile < 0 else tile for tile in op.tiles]


def _order(op: LayoutOp) -> list[int]:
    place: list[int] = []
    for dimension in range(op.rank):
        place.append(dimension + sum(other < dimension for other in op.tiled))
    return [*(place[d] for d in op.outer), *(place[d] + 1 for d in op.tiled)]


def _split(op: LayoutOp, shape: Sequence[int], tiles: Sequence[int]) -> list[int]:
    sizes = dict(zip(op.tiled, tiles, strict=True))
    found: list[int] = []
    for dimension, extent in enumerate(shape):
        found += [-(-extent // sizes[dimension]), sizes[dimension]] if dimension in sizes else [extent]
    return found


@evaluates(PackOp, UnpackOp)
def move(
    op: PackOp | UnpackOp, source: Array | BufferStorage, dest: Array | BufferStorage, *others: Any
) -> Array | None:
    if isinstance(source, BufferStorage):
        source = elements_of(op, source, cast("MemRefType[Attribute]", op.source.type).element_type)
    shape = tuple(dest.shape)
    found = _packed(op, source, shape, *others) if isinstance(op, PackOp) else _unpacked(op, source, shape, *others)
    if not isinstance(dest, BufferStorage):
        return found
    write_elements(dest, found)
    return None


def _packed(op: PackOp, source: Array, shape: tuple[int, ...], *others: Any) -> Array:
    has_padding = op.padding_value is not None
    tiles = _tiles(op, others[has_padding:])
    sizes = dict(zip(op.tiled, tiles, strict=True))
    padding = [(0, -extent % sizes.get(d, 1)) for d, extent in enumerate(source.shape)]
    if any(high for _, high in padding) and not has_padding:
        raise InterpreterError(op, f"'{op.name}' of {source.shape} in tiles of {tiles} needs a padding value")
    padded = np.pad(source, padding, constant_values=others[0] if has_padding else 0)
    packed = padded.reshape(_split(op, source.shape, tiles)).transpose(_order(op))
    if packed.shape != shape:
        raise InterpreterError(op, f"'{op.name}' of {source.shape} gives {packed.shape}, not {shape}")
    return np.ascontiguousarray(packed)


def _unpacked(op: UnpackOp, source: Array, shape: tuple[int, ...], *sizes: int) -> Array:
    tiles, order = _tiles(op, sizes), _order(op)
    split = _split(op, shape, tiles)
    if source.shape != tuple(split[d] for d in order):
        raise InterpreterError(op, f"'{op.name}' of {source.shape} in tiles of {tiles} does not give {shape}")
    whole = source.transpose(np.argsort(order))
    extents = dict(zip(op.tiled, tiles, strict=True))
    padded = [-(-extent // extents.get(d, 1)) * extents.get(d, 1) for d, extent in enumerate(shape)]
    return np.ascontiguousarray(whole.reshape(padded)[tuple(slice(extent) for extent in shape)])
