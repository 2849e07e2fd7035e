"""`te` and the reads of `tensor`: tensors computed element by element, in row-major order.

Element regions read NumPy arrays as flat lists, created at the first read. Reductions start with the identity and
combine in the order of their axes, the last one fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IntegerType

from weft.dialects import te
from weft.dialects.te import UNSIGNED, Combiner
from weft.dialects.te_extern import ExternOp
from weft.interp.control import refuse_other_shape
from weft.interp.emitter import BufferSource
from weft.interp.memory import bind_extent, refuse_negative_extents
from weft.interp.registry import emit_nothing, emits
from weft.interp.scalar import combined, literal
from weft.interp.values import finisher, flat_list

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from weft.interp.emitter import Emitter


def tensor_source(emitter: Emitter, value: SSAValue, op: Operation) -> BufferSource:
    """The flat list of a tensor, created if necessary."""
    known = emitter.tensors.get(value)
    if known is not None and known.data:
        return known
    data = emitter.fresh(f"{value.name_hint or 'tensor'}_elements")
    emitter.line(f"{data} = {emitter.helper(flat_list)}({emitter.value(value)})", op)
    source = BufferSource(data, _extents(emitter, value, op), value.name_hint or "a tensor")
    if emitter.scope is emitter.root:
        emitter.tensors[value] = source
    return source


def _extents(emitter: Emitter, value: SSAValue, op: Operation) -> tuple[int | str, ...]:
    known = emitter.tensors.get(value)
    if known is not None:
        return known.extents
    extents = emitter.read_extents(value, f"{emitter.value(value)}.shape", op)
    if emitter.scope is emitter.root:
        # the list is created at the first read
        hint = value.name_hint or "a tensor"
        emitter.tensors[value] = BufferSource("", tuple(extents), hint)
    return tuple(extents)


@emits(tensor.ExtractOp)
def emit_extract(emitter: Emitter, op: tensor.ExtractOp) -> None:
    source = tensor_source(emitter, op.tensor, op)
    index = emitter.element(source, op.indices, op)
    name = emitter.define(op.result)
    emitter.line(f"{name} = {source.data}[{index}]", op)


@emits(tensor.DimOp)
def emit_dim(emitter: Emitter, op: tensor.DimOp) -> None:
    bind_extent(emitter, op, _extents(emitter, op.source, op))


@emits(te.AssumeShapeOp)
def emit_assume_shape(emitter: Emitter, op: te.AssumeShapeOp) -> None:
    actual = _extents(emitter, op.buffer, op)
    dynamic = iter([emitter.written(extent, op) for extent in op.values])
    stated = [extent if isinstance(extent, int) else next(dynamic) for extent in actual]
    hint = op.buffer.name_hint or "a tensor"
    if refuse_other_shape(emitter, op, hint, actual, stated) and emitter.scope is emitter.root:
        # From here on the extents have the stated names: indices known to be less are in bounds.
        data = emitter.tensors[op.buffer].data
        emitter.tensors[op.buffer] = BufferSource(data, tuple(stated), hint)


emits(te.YieldOp)(emit_nothing)


def _prepare_reads(emitter: Emitter, op: Operation) -> None:
    for inner in op.walk():
        if isinstance(inner, tensor.ExtractOp):
            tensor_source(emitter, inner.tensor, inner)
        elif isinstance(inner, tensor.DimOp):
            _extents(emitter, inner.source, inner)


@emits(te.ComputeOp)
def emit_compute(emitter: Emitter, op: te.ComputeOp) -> None:
    _prepare_reads(emitter, op)
    extents = _written_extents(emitter, op, op.extents)
    lists = [emitter.fresh(f"{result.name_hint or op.label}_elements") for result in op.results]
    for name in lists:
        emitter.line(f"{name} = []", op)
    with emitter.count(op.body.block.args, op.extents, op):
        emitter.region(op.body.block)
        for name, value in zip(lists, op.yielded.values, strict=True):
            emitter.line(f"{name}.append({emitter.written(value, op.yielded)})", op.yielded)
    for name, result in zip(lists, op.results, strict=True):
        emitter.define_tensor(result, name, extents, op, op.label)


def _written_extents(emitter: Emitter, op: Operation, extents: Sequence[te.Extent]) -> list[int | str]:
    texts = [extent if isinstance(extent, int) else emitter.written(extent, op) for extent in extents]
    unsure = [
        str(text)
        for text, extent in zip(texts, extents, strict=True)
        if not isinstance(extent, int) and (emitter.range_of(extent)[0] or -1) < 0
    ]
    if unsure:
        refuse_negative_extents(emitter, op, unsure)
    return texts


@emits(ExternOp)
def emit_extern(emitter: Emitter, op: ExternOp) -> None:
    _prepare_reads(emitter, op)
    _written_extents(emitter, op, op.domain)
    for result, buffer in zip(op.results, op.buffers, strict=True):
        extents = _written_extents(emitter, op, op.extents_of(result))
        name = emitter.fresh(f"{result.name_hint or op.label}_elements")
        emitter.line(f"{name} = [None] * ({' * '.join(map(str, extents)) or 1})", op)
        emitter.bind_buffer(buffer, name, extents)
    with emitter.count(op.indices, op.domain, op):
        emitter.region(op.body.block)
    for result, argument in zip(op.results, op.buffers, strict=True):
        if result.first_use is None:
            continue
        buffer = emitter.buffer(argument)
        unwritten = f"te.extern did not write all of {result.name_hint or op.label}"
        emitter.refuse(f"None in {buffer.data}", unwritten, op)
        emitter.define_tensor(result, buffer.data, buffer.extents, op, op.label)


@emits(te.ReduceOp)
def emit_reduce(emitter: Emitter, op: te.ReduceOp) -> None:
    accumulators = [emitter.define(result) for result in op.results]
    _written_extents(emitter, op, op.extents)
    identity = _identity(emitter, op)
    emitter.line(f"{', '.join(accumulators)} = {', '.join(identity)}", op)
    with emitter.count(op.body.block.args, op.extents, op, accumulators):
        emitter.region(op.body.block)
        values = [emitter.written(value, op.yielded) for value in op.yielded.values]
        combined = _combined(emitter, op, accumulators, values)
        emitter.line(f"{', '.join(accumulators)} = {', '.join(combined)}", op)


def _identity(emitter: Emitter, op: te.ReduceOp) -> list[str]:
    if op.kind is Combiner.CUSTOM and op.identity is not None:
        block = op.identity.block
        emitter.region(block)
        return [emitter.written(value, op) for value in cast("te.YieldOp", block.last_op).values]
    types = [result.type for result in op.results]
    numbers = [finisher(type_)(n) for n, type_ in zip(te.identity_of(op.kind, types), types, strict=True)]
    return [literal(number) or emitter.constant(number, "number") for number in numbers]


def _combined(emitter: Emitter, op: te.ReduceOp, old: Sequence[str], new: Sequence[str]) -> list[str]:
    match op.kind:
        case Combiner.CUSTOM if op.combine is not None:
            block = op.combine.block
            for argument, name in zip(block.args, (*old, *new), strict=True):
                emitter.bind(argument, name)
            emitter.region(block)
            return [emitter.written(value, op) for value in cast("te.YieldOp", block.last_op).values]
        case _ if op.kind in te.LOCATING:
            sign = -1 if op.kind in (Combiner.ARGMAX, Combiner.ARGMAXU) else 1
            mask = None
            if op.kind in UNSIGNED.values():
                mask = (1 << cast("IntegerType", op.results[0].type).width.data) - 1
            return [f"{emitter.helper(least_of)}({sign}, {mask}, {old[0]}, {old[1]}, {new[0]}, {new[1]})"]
        case _:
            return [combined(emitter, op, te.combining_op(op.kind, op.results[0].type), old[0], new[0])]


def least_of(
    sign: int, mask: int | None, value: float, index: int, other: float, other_index: int
) -> tuple[float, int]:
    """The pair with the least value times `sign`, NaN first, then the lesser index. With a mask, values are unsigned
    integers."""

    def rank(pair: tuple[float, int]) -> tuple[bool, float, int]:
        return (*_rank(sign * (pair[0] if mask is None else cast("int", pair[0]) & mask)), pair[1])

    return min((value, index), (other, other_index), key=rank)


def _rank(value: float) -> tuple[bool, float]:
    return (True, value) if value == value else (False, 0.0)
