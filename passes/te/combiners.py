"""The combiners of `te.reduce` as scalar IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.dialects.te import LOCATING, Combiner, ReduceOp, combining_op, identity_of
from weft.passes.index_builders import insert_at_start, number_attribute

Append = Callable[[Operation], SSAValue]
"""Adds an op; returns its first result."""
MakeConstant = Callable[[float | int, Attribute], SSAValue]


def identity(reduce: ReduceOp, constant: MakeConstant, append: Append) -> list[SSAValue]:
    """Constants, or for `custom` a copy of its identity region."""
    if reduce.kind is Combiner.CUSTOM:
        return copy_yielded(reduce.combiner_regions[1].block, [], append)
    types = [result.type for result in reduce.results]
    numbers = identity_of(reduce.kind, types)
    return [constant(number, type) for number, type in zip(numbers, types, strict=True)]


def combine(
    reduce: ReduceOp, accumulators: Sequence[SSAValue], values: Sequence[SSAValue], append: Append
) -> list[SSAValue]:
    match reduce.kind:
        case Combiner.CUSTOM:
            return copy_yielded(reduce.combiner_regions[0].block, [*accumulators, *values], append)
        case _ if reduce.kind in LOCATING:
            better = _is_better(reduce.kind, accumulators, values, append)
            return [append(arith.SelectOp(better, new, old)) for old, new in zip(accumulators, values, strict=True)]
        case _:
            (old,), (new,) = accumulators, values
            op_class = cast("type[arith.AddiOp]", combining_op(reduce.kind, old.type))
            return [append(op_class(old, new))]


def _is_better(kind: Combiner, old: Sequence[SSAValue], new: Sequence[SSAValue], append: Append) -> SSAValue:
    """Whether `new` is better, or equal with a smaller index. NaN is best and equals itself: the order is total, the
    combiner associative.
    """
    earlier = append(arith.CmpiOp(new[1], old[1], "slt"))
    greater = kind is Combiner.ARGMAX
    if not isinstance(new[0].type, AnyFloat):
        better = append(arith.CmpiOp(new[0], old[0], LOCATING[kind]))
        equal = append(arith.CmpiOp(new[0], old[0], "eq"))
        return append(arith.OrIOp(better, append(arith.AndIOp(equal, earlier))))
    better = append(arith.CmpfOp(new[0], old[0], "ogt" if greater else "olt"))
    equal = append(arith.CmpfOp(new[0], old[0], "oeq"))
    new_nan = append(arith.CmpfOp(new[0], new[0], "uno"))
    old_nan = append(arith.CmpfOp(old[0], old[0], "uno"))
    old_number = append(arith.CmpfOp(old[0], old[0], "ord"))
    better = append(arith.OrIOp(better, append(arith.AndIOp(new_nan, old_number))))
    equal = append(arith.OrIOp(equal, append(arith.AndIOp(new_nan, old_nan))))
    return append(arith.OrIOp(better, append(arith.AndIOp(equal, earlier))))


def copy_yielded(block: Block, arguments: Sequence[SSAValue], append: Append) -> list[SSAValue]:
    mapped: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    terminator = block.last_op
    for op in block.ops:
        if op is not terminator:
            append(op.clone(mapped))
    return [] if terminator is None else [mapped.get(value, value) for value in terminator.operands]


def _key(attribute: Attribute) -> object:
    """Distinguishes 0.0 from -0.0."""
    if isinstance(attribute, FloatAttr):
        return attribute, math.copysign(1.0, attribute.value.data)
    return attribute


class ConstantPool:
    """Removes scalar constants; `place` inserts them, and new ones, at the start."""

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
        attribute = number_attribute(number, type)
        key = _key(attribute)
        if key not in self._ops:
            self._ops[key] = ConstantOp(attribute)
        return self._ops[key].result

    def place(self, block: Block) -> None:
        for op in reversed(self._ops.values()):
            if op.result.first_use is not None:
                insert_at_start(block, op)
