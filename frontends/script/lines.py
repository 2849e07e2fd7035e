"""Parts of printed functions that follow from their ops alone: which ops are statements, heads of loops, signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import ReturnOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.structural_equality import scalar_constant
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.frontends.script.attributes import attributes_text
from weft.frontends.script.text import expr_text, index_text, pointer_text
from weft.frontends.script.values import Buffer, Opaque, Pointer
from weft.support.names import string_text
from weft.texpr.expr import Expr

Operand: TypeAlias = Expr | Buffer | Pointer | Opaque
"""An argument of a call."""

LOOP_WORDS = {
    LoopKind.SERIAL: "serial",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZED: "vectorized",
    LoopKind.UNROLLED: "unroll",
    LoopKind.THREAD_BINDING: "thread_binding",
}
WIDTH = 100
"""Longer signatures are one parameter a line."""


def signature(name: str, parameters: Sequence[str], result: str = "") -> list[str]:
    """The line with `def`, or several where it is long."""
    line = f"def {name}({', '.join(parameters)}){result}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {parameter}," for parameter in parameters), f"){result}:"]


def statements(block: Block) -> list[Operation]:
    """The ops of a block that become statements or parts of them: constants stand where they are used."""
    return [
        op
        for op in block.ops
        if not isinstance(op, ReturnOp | YieldOp)
        and not (len(op.results) == 1 and scalar_constant(op.results[0]) is not None)
    ]


def only_computes(op: IfOp) -> bool:
    """Whether the branches of a condition hold nothing but ops that give one value."""
    return all(
        len(inner.results) == 1 and (not inner.regions or (isinstance(inner, IfOp) and only_computes(inner)))
        for region in op.regions
        for block in region.blocks
        for inner in block.ops
        if not isinstance(inner, YieldOp)
    )


def nest_of(op: ForOp, names: Mapping[SSAValue, object]) -> list[ForOp]:
    """Serial loops with nothing between them, whose extents are known outside: T.grid."""
    nest = [op]
    while is_bare(nest[-1]):
        ops = statements(nest[-1].body.block)
        inner = ops[0] if len(ops) == 1 else None
        if not isinstance(inner, ForOp) or not is_bare(inner):
            break
        if not isinstance(inner.extent, int) and inner.extent not in names:
            break
        nest.append(inner)
    return nest


def is_bare(op: ForOp) -> bool:
    """Whether a loop is just a range."""
    return op.kind.data is LoopKind.SERIAL and not op.attributes


def loop_text(op: ForOp, names: Sequence[str], extents: Sequence[Expr | int]) -> str:
    """The head of a loop, or of a nest of bare ones."""
    texts = [index_text(extent) if isinstance(extent, Expr) else str(extent) for extent in extents]
    if len(names) > 1:
        return f"for {', '.join(names)} in T.grid({', '.join(texts)}):"
    if is_bare(op):
        return f"for {names[0]} in range({texts[0]}):"
    thread = "" if op.thread_axis is None else f", thread={string_text(op.thread_axis.data)}"
    annotations = f", annotations={attributes_text(op.attributes)}" if op.attributes else ""
    return f"for {names[0]} in T.{LOOP_WORDS[op.kind.data]}({texts[0]}{thread}{annotations}):"


def operand_text(operand: Operand, type: Attribute) -> str:
    """An argument of a call."""
    if isinstance(operand, Buffer | Opaque):
        return operand.name
    if isinstance(operand, Pointer):
        return pointer_text(operand)
    return index_text(operand) if isinstance(type, IndexType) else expr_text(operand)
