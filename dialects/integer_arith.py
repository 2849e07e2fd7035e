"""Numbers of `arith` constants, and integer `arith` on Python numbers.

Numbers do not wrap. Division by zero raises `ZeroDivisionError`, an unsigned op on a negative number `ArithmeticError`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from xdsl.dialects import affine, arith, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, i64
from xdsl.ir import Operation, SSAValue


def constant_number(value: SSAValue) -> int | float | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr | FloatAttr):
        return op.value.value.data
    return None


def constant_integer(value: SSAValue) -> int | None:
    number = constant_number(value)
    return number if isinstance(number, int) else None


def known_number(value: SSAValue) -> float | None:
    """Supports constants, splat vectors, and constant casts between index and `i64`."""
    owner = value.owner
    if isinstance(owner, vector.BroadcastOp):
        return known_number(owner.source)
    if isinstance(owner, arith.IndexCastOp) and i64 in (owner.input.type, owner.result.type):
        return known_number(owner.input)
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
        number, *others = owner.value.get_values()
        # As text, because zeros with different signs are equal.
        same = all(repr(other) == repr(number) for other in others)
        return number if same and isinstance(number, int | float) else None
    return constant_number(value)


def known_iterations(loop: scf.ForOp) -> int | None:
    """Requires constant bounds and a positive step."""
    lower, upper, step = map(constant_integer, (loop.lb, loop.ub, loop.step))
    if lower is None or upper is None or step is None or step < 1:
        return None
    return max(0, -((lower - upper) // step))


def divide_truncating(a: int, b: int) -> int:
    return a // b if (a >= 0) == (b > 0) else -(-a // b)


def remainder_truncating(a: int, b: int) -> int:
    """The result has the sign of `a`, as in `arith.remsi`."""
    return a % b if (a >= 0) == (b > 0) else a + (-a // b) * b


def _unsigned(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(left: int, right: int) -> int:
        if left < 0 or right < 0:
            raise ArithmeticError("a negative number as an unsigned one")
        return function(left, right)

    return checked


DIVISIONS: Final = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
"""Undefined for a divisor of 0; signed ones also for the least number over -1."""
SHIFTS: Final = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
"""Undefined for a shift by the width or more."""

INTEGER_OPS: Final[Mapping[type[Operation], Callable[[int, int], int]]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: divide_truncating,
    arith.RemSIOp: remainder_truncating,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    arith.DivUIOp: _unsigned(lambda a, b: a // b),
    arith.RemUIOp: _unsigned(lambda a, b: a % b),
    arith.CeilDivUIOp: _unsigned(lambda a, b: -(-a // b)),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
}


def evaluated(op: Operation, numbers: Sequence[int | None]) -> int | None:
    """Returns None if an operand is unknown, and for other ops."""
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    if isinstance(op, affine.ApplyOp):
        map_ = op.map.data
        return map_.eval(known[: map_.num_dims], known[map_.num_dims :])[0]
    combine = INTEGER_OPS.get(type(op))
    try:
        return None if combine is None else combine(*known)
    except ArithmeticError:
        return None


SIGNED_PREDICATES: Final[Mapping[int, Callable[[float, float], bool]]] = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
    4: operator.gt,
    5: operator.ge,
}
"""The predicates of `arith.cmpi` except the unsigned ones."""
