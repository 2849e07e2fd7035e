"""`linalg` on memrefs and tensors: the loops of a structured op around its region.

Operands must agree on the extent of each loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, TensorType
from xdsl.dialects.linalg.ops import IndexOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from weft.dialects.traversal import operations_in
from weft.dialects.upstream.linalg import OPERATIONS
from weft.dialects.upstream.linalg_forms import is_structured, structure_of
from weft.interp.control import assign_affine
from weft.interp.emitter import BufferSource
from weft.interp.registry import emit_nothing, emits
from weft.interp.te import tensor_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.dialects.upstream.linalg_forms import Structure
    from weft.interp.emitter import Emitter

emits(YieldOp, IndexOp)(emit_nothing)


@emits(*(op for op in OPERATIONS if issubclass(op, Operation) and is_structured(cast("Operation", op))))
def emit_structured(emitter: Emitter, op: Operation) -> None:
    structure = structure_of(op)
    sources = [_source(emitter, value, op) for value in structure.operands]
    for at in range(len(structure.inputs), len(sources)):
        source = sources[at]
        if isinstance(structure.operands[at].type, TensorType) and source is not None:
            name = emitter.fresh(f"{source.hint}_result")
            emitter.line(f"{name} = list({source.data})", op)
            sources[at] = BufferSource(name, source.extents, source.hint)
    extents = _extents(emitter, op, structure, sources)
    loops = Block(arg_types=[IndexType()] * len(extents)).args
    for loop, hint in zip(loops, structure.loop_names, strict=True):
        loop.name_hint = hint
    with emitter.count(loops, extents, op):
        _emit_element(emitter, op, structure, sources, loops)
    for result, source in zip(op.results, sources[len(structure.inputs) :], strict=False):
        if source is not None:
            emitter.define_tensor(result, source.data, source.extents, op)


def _emit_element(
    emitter: Emitter,
    op: Operation,
    structure: Structure,
    sources: Sequence[BufferSource | None],
    loops: Sequence[SSAValue],
) -> None:
    for inner in operations_in(op):
        if inner.name == "linalg.index":
            emitter.alias(inner.results[0], loops[cast("IntegerAttr", inner.properties["dim"]).value.data])
    outputs: list[tuple[BufferSource, str]] = []
    operands = zip(structure.operands, structure.maps, structure.body.args, sources, strict=True)
    for at, (operand, map_, element, source) in enumerate(operands):
        if source is None:
            emitter.alias(element, operand)
            continue
        place = emitter.element(source, _indices(emitter, map_, loops, op), op)
        if at >= len(structure.inputs):
            outputs.append((source, place))
        if element.first_use is not None:
            emitter.line(f"{emitter.define(element, maybe_unwritten=True)} = {source.data}[{place}]", op)
    emitter.region(structure.body)
    for (source, place), value in zip(outputs, structure.yielded, strict=True):
        with emitter.store():
            emitter.line(f"{source.data}[{place}] = {emitter.value(value)}", op)


def _indices(emitter: Emitter, map_: AffineMap, loops: Sequence[SSAValue], op: Operation) -> Sequence[SSAValue]:
    indices = Block(arg_types=[IndexType()] * len(map_.results)).args
    for index, expr in zip(indices, map_.results, strict=True):
        assign_affine(emitter, index, expr, list(loops), op)
    return indices


def _source(emitter: Emitter, value: SSAValue, op: Operation) -> BufferSource | None:
    if isinstance(value.type, TensorType):
        return tensor_source(emitter, value, op)
    return emitter.buffer(value) if isinstance(value.type, MemRefType) else None


def _extents(
    emitter: Emitter, op: Operation, structure: Structure, sources: Sequence[BufferSource | None]
) -> list[int | str]:
    found: dict[int, int | str] = {}
    for map_, source in zip(structure.maps, sources, strict=True):
        for expr, extent in zip(map_.results, () if source is None else source.extents, strict=True):
            if not isinstance(expr, AffineDimExpr):
                continue
            known = found.setdefault(expr.position, extent)
            if known != extent:
                loop = structure.loop_names[expr.position]
                message = f"{op.name}: the extent of loop {loop} is {{}} by one operand and {{}} by another"
                emitter.refuse(f"{known} != {extent}", message, op, known, extent)
    return [found[loop] for loop in range(len(structure.loop_names))]
