"""Passes that are wrong on edge values alone: `--validate` must catch each. Programs to run them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

Rewrite = Callable[[Operation], "SSAValue | None"]
"""From an operation to the value that replaces its result; None leaves the operation."""


def constant_of(value: SSAValue) -> float | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr | IntegerAttr):
        return owner.value.value.data
    return None


def constant(op: Operation, number: float) -> SSAValue:
    type_ = op.results[0].type
    attribute = FloatAttr(number, type_) if isinstance(type_, AnyFloat) else IntegerAttr(int(number), type_)  # pyright: ignore
    made = arith.ConstantOp(attribute)
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.result


def inserted(op: Operation, made: Operation) -> SSAValue:
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.results[0]


def relu6_to_relu(op: Operation) -> SSAValue | None:
    is_bound = isinstance(op, arith.MinimumfOp) and constant_of(op.rhs) == 6.0
    return op.operands[0] if is_bound else None


def max_to_maxnum(op: Operation) -> SSAValue | None:
    return inserted(op, arith.MaxnumfOp(op.lhs, op.rhs)) if isinstance(op, arith.MaximumfOp) else None


def times_zero(op: Operation) -> SSAValue | None:
    return op.rhs if isinstance(op, arith.MulfOp) and constant_of(op.rhs) == 0.0 else None


def minus_itself(op: Operation) -> SSAValue | None:
    return constant(op, 0.0) if isinstance(op, arith.SubfOp) and op.lhs is op.rhs else None


def over_itself(op: Operation) -> SSAValue | None:
    return constant(op, 1.0) if isinstance(op, arith.DivfOp) and op.lhs is op.rhs else None


def plus_zero(op: Operation) -> SSAValue | None:
    return op.lhs if isinstance(op, arith.AddfOp) and constant_of(op.rhs) == 0.0 else None


def not_less(op: Operation) -> SSAValue | None:
    """`select(a < b, x, y)` -> `select(a >= b, y, x)`."""
    if not isinstance(op, arith.SelectOp) or not isinstance(op.cond.owner, arith.CmpfOp):
        return None
    compared = op.cond.owner
    if compared.predicate.value.data != 4:  # olt
        return None
    turned = inserted(op, arith.CmpfOp(compared.lhs, compared.rhs, 3))  # oge
    return inserted(op, arith.SelectOp(turned, op.rhs, op.lhs))


def no_overflow(op: Operation) -> SSAValue | None:
    """`a + 1 > a` -> true, for integers that wrap."""
    if not isinstance(op, arith.CmpiOp) or not isinstance(op.lhs.owner, arith.AddiOp):
        return None
    return constant(op, 1) if op.lhs.owner.lhs is op.rhs else None


def half_of_sum(op: Operation) -> SSAValue | None:
    """`(2 * a) / 2` -> `a`, for integers that wrap."""
    if not isinstance(op, arith.DivSIOp) or not isinstance(op.lhs.owner, arith.MuliOp):
        return None
    return op.lhs.owner.lhs


def absolute_by_square(op: Operation) -> SSAValue | None:
    """`abs(x)` -> `sqrt(x * x)`, which overflows and underflows."""
    if not isinstance(op, math.AbsFOp):
        return None
    return inserted(op, math.SqrtOp(inserted(op, arith.MulfOp(op.operand, op.operand))))


def flush(op: Operation) -> SSAValue | None:
    """`abs(x)` -> 0 for subnormal numbers."""
    if not isinstance(op, math.AbsFOp):
        return None
    smallest = constant(op, {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[op.result.type.bitwidth])  # pyright: ignore
    kept = inserted(op, math.AbsFOp(op.operand))
    return inserted(op, arith.SelectOp(inserted(op, arith.CmpfOp(kept, smallest, 4)), constant(op, 0.0), kept))


REWRITES = {
    rewrite.__name__: rewrite
    for rewrite in (
        *(relu6_to_relu, max_to_maxnum, times_zero, minus_itself, over_itself, plus_zero, not_less, no_overflow),
        *(half_of_sum, absolute_by_square, flush),
    )
}


@dataclass(frozen=True)
class WrongPass(ModulePass):
    """Apply one of the rewrites everywhere."""

    name: ClassVar[str] = "wrong"
    rewrite: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            value = REWRITES[self.rewrite](inner) if inner.results else None
            if value is not None:
                inner.results[0].replace_all_uses_with(value)
                Rewriter.erase_op(inner)


@dataclass(frozen=True)
class WrongLoopPass(ModulePass):
    """Make loops wrong for some extents: `one` (one iteration less for an extent of 1), `empty` (an iteration of an
    empty loop), `tail` (no last iteration where the extent is odd)."""

    name: ClassVar[str] = "wrong-loop"
    how: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, scf.ForOp)]:
            point = InsertPoint.before(loop)
            bound = loop.ub
            made: list[Operation] = [arith.ConstantOp(IntegerAttr.from_index_int_value(n)) for n in (0, 1, 2)]
            zero, one, two = (op.results[0] for op in made)
            if self.how == "one":
                is_one = arith.CmpiOp(bound, one, "eq")
                made += [is_one, arith.SelectOp(is_one.result, zero, bound)]
            elif self.how == "empty":
                made += [arith.MaxSIOp(bound, one)]
            else:
                half = arith.DivUIOp(bound, two)
                made += [half, arith.MuliOp(half.result, two)]
            Rewriter.insert_op(made, point)
            loop.operands[1] = made[-1].results[0]
