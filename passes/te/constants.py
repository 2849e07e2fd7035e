"""The scalar constants of a function: at its top, each once."""

from __future__ import annotations

import math

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from weft.support.errors import InternalError


def _key(attribute: Attribute) -> object:
    """Equal for equal numbers; 0.0 and -0.0, which Python takes for equal, differ."""
    if isinstance(attribute, FloatAttr):
        return attribute, math.copysign(1.0, attribute.value.data)
    return attribute


class ConstantPool:
    """Takes the scalar constants out of a function; `place` puts them, and those made since, at its top."""

    def __init__(self, function: FuncOp) -> None:
        self._ops: dict[object, ConstantOp] = {}
        for op in [op for op in function.body.walk() if isinstance(op, ConstantOp)]:
            if not isinstance(op.value, IntegerAttr | FloatAttr):
                continue
            op.detach()
            known = self._ops.setdefault(_key(op.value), op)
            if known is not op:
                op.result.replace_all_uses_with(known.result)
                op.erase()

    def get(self, number: float | int, type: Attribute) -> SSAValue:
        """A float, integer or index constant."""
        if isinstance(type, AnyFloat):
            attribute = FloatAttr(number, type)
        elif isinstance(type, IntegerType | IndexType):
            attribute = IntegerAttr(int(number), type)
        else:
            raise InternalError(f"no scalar constant of type {type}")
        key = _key(attribute)
        if key not in self._ops:
            self._ops[key] = ConstantOp(attribute)
        return self._ops[key].result

    def place(self, block: Block) -> None:
        """Put the constants that are used at the top of `block`."""
        used = [op for op in self._ops.values() if op.result.first_use is not None]
        if block.first_op is None:
            block.add_ops(used)
        else:
            block.insert_ops_before(used, block.first_op)
