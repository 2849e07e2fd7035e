"""Requires a loop whose body is an only child: one block, without other effects."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.dialects.effects import only_computes
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.primitive import Primitive


def lone_block(primitive: Primitive, loop: ForOp | BlockOp) -> BlockOp:
    """The only thing with an effect below a loop, through the loops in it; a block itself. Refuses, as requirement 1 of
    `primitive`, when there is more or it is no block."""
    inner: Operation = loop
    while isinstance(inner, ForOp):
        effects = [op for op in inner.body.block.ops if not only_computes(op)]
        if len(effects) != 1:
            names = ", ".join(f'block "{op.label}"' if isinstance(op, BlockOp) else op.name for op in effects)
            hint = inner.induction_variable.name_hint or "?"
            primitive.refuse(1, f"the body of loop %{hint} holds {names or 'nothing'}", inner)
        (inner,) = effects
    if not isinstance(inner, BlockOp):
        primitive.refuse(1, f"it holds {inner.name}, not a block", inner)
    return inner
