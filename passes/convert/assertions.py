"""Assertions about sizes as assumptions that calls check.

%n = memref.dim %A, %c0 : memref<?xf32>
%t = arith.cmpi eq, %n, %m : index           ->       %n = memref.dim %A, %c0 : memref<?xf32>
cf.assert %t, "..."                                   tir.assume [%n] == [%m]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from xdsl.dialects import affine, arith, cf, memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import Rewriter

from weft.analysis.index import Index
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.passes.index_builders import erase_dead

_RELATIONS: Final = {
    "eq": (Relation.EQUAL, False),
    "slt": (Relation.LESS, False),
    "sle": (Relation.AT_MOST, False),
    "sgt": (Relation.LESS, True),
    "sge": (Relation.AT_MOST, True),
}
"""Maps a predicate to the relation, and to whether its sides are exchanged."""
_PREDICATES: Final = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def is_known_at_calls(value: SSAValue) -> bool:
    """Whether an index is a sum or product of numbers and of index parameters and extents."""
    if not isinstance(value.type, IndexType):
        return False
    op = value.owner
    if isinstance(value, BlockArgument):
        return isinstance(value.block.parent_op(), FuncOp)
    if isinstance(op, memref.DimOp):
        source = op.source
        is_parameter = isinstance(source, BlockArgument) and isinstance(source.block.parent_op(), FuncOp)
        return is_parameter and isinstance(op.index.owner, arith.ConstantOp)
    if isinstance(op, arith.ConstantOp):
        return True
    is_sum = isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp | affine.ApplyOp)
    return is_sum and all(map(is_known_at_calls, op.operands))


def state_assertions(function: FuncOp) -> None:
    """Turn top-level assertions that calls can check into assumptions."""
    block = function.body.block
    assertions = [op for op in block.ops if isinstance(op, cf.AssertOp)]
    if not assertions:
        return
    anchor, moved = block.first_op, set[Operation]()
    for op in assertions:
        comparisons = _comparisons(op.arg)
        if anchor is None or comparisons is None:
            continue
        for comparison in comparisons:
            relation, is_exchanged = _RELATIONS[_predicate(comparison)]
            left, right = comparison.operands[::-1] if is_exchanged else comparison.operands
            if relation is Relation.EQUAL and Index.of(left) == Index.of(right):
                continue
            fact = AssumeOp(AffineExpr.dimension(0), relation, AffineExpr.dimension(1), [left, right])
            fact.location = op.location
            for needed in (*_computed_by(left), *_computed_by(right), fact):
                if needed in moved:
                    continue
                moved.add(needed)
                if needed is anchor:
                    anchor = cast("Operation", needed.next_op)
                    continue
                if needed.parent is not None:
                    needed.detach()
                block.insert_op_before(needed, anchor)
        Rewriter.erase_op(op)
    erase_dead(block)


def _predicate(comparison: Operation) -> str:
    return _PREDICATES[cast("IntegerAttr", comparison.properties["predicate"]).value.data]


def _comparisons(condition: SSAValue) -> list[Operation] | None:
    """The comparisons of a conjunction, or None if calls cannot check one."""
    op = condition.owner
    if not isinstance(op, Operation):
        return None
    if isinstance(op, arith.AndIOp):
        found = [_comparisons(operand) for operand in op.operands]
        return None if None in found else [one for some in found for one in some or ()]
    is_known = op.name == "arith.cmpi" and all(map(is_known_at_calls, op.operands))
    return [op] if is_known and _predicate(op) in _RELATIONS else None


def _computed_by(value: SSAValue) -> Iterator[Operation]:
    if isinstance(value.owner, Operation):
        for operand in value.owner.operands:
            yield from _computed_by(operand)
        yield value.owner
