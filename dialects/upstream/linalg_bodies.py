"""Scalar functions of linalg's named ops, with MLIR's rules for casts.

Source: `RegionBuilderHelper` of MLIR 22's `LinalgOps.cpp`, and its tables of named ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerType, i1
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

_UNARY: Final[Mapping[str, type[Operation]]] = {
    "abs": math.AbsFOp,
    "ceil": math.CeilOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "floor": math.FloorOp,
    "log": math.LogOp,
    "negf": arith.NegfOp,
    "round": math.RoundOp,
    "rsqrt": math.RsqrtOp,
    "sqrt": math.SqrtOp,
    "tanh": math.TanhOp,
}
"""On floats only, like `reciprocal` and `square`."""

_BINARY: Final[Mapping[str, tuple[type[Operation] | None, type[Operation] | None, type[Operation] | None]]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.OrIOp),
    "div": (arith.DivfOp, arith.DivSIOp, None),
    "div_unsigned": (None, arith.DivUIOp, None),
    "max_signed": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxSIOp),
    "max_unsigned": (arith.MaximumfOp, arith.MaxUIOp, arith.MaxUIOp),
    "min_signed": (arith.MinimumfOp, arith.MinSIOp, arith.MinSIOp),
    "min_unsigned": (arith.MinimumfOp, arith.MinUIOp, arith.MinUIOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.AndIOp),
    "powf": (math.PowFOp, None, None),
    "sub": (arith.SubfOp, arith.SubiOp, None),
}
"""On floats, on integers, on i1."""

ELEMENTWISE: Final[Mapping[str, int]] = {
    **dict.fromkeys((*_UNARY, "reciprocal", "square"), 1),
    **dict.fromkeys(_BINARY, 2),
    "select": 3,
}
"""Functions of `linalg.elementwise`, with their number of operands."""


@dataclass(frozen=True)
class _Scalars:
    block: Block
    unsigned: bool
    """Integers are zero-extended, and converted from and to floats as unsigned."""

    def append(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def apply(self, op_class: type[Operation], values: Sequence[SSAValue]) -> SSAValue:
        return self.append(cast("Callable[..., Operation]", op_class)(*values))

    def cast(self, value: SSAValue, to: Attribute) -> SSAValue:
        """Raises an error if MLIR lacks the conversion."""
        of = value.type
        if of == to:
            return value
        if isinstance(of, AnyFloat) and isinstance(to, AnyFloat) and of.bitwidth != to.bitwidth:
            return self.append((arith.ExtFOp if of.bitwidth < to.bitwidth else arith.TruncFOp)(value, to))
        if isinstance(of, IntegerType) and isinstance(to, IntegerType):
            widened = arith.ExtUIOp if self.unsigned else arith.ExtSIOp
            return self.append((widened if of.width.data < to.width.data else arith.TruncIOp)(value, to))
        if isinstance(of, AnyFloat) and isinstance(to, IntegerType):
            return self.append((arith.FPToUIOp if self.unsigned else arith.FPToSIOp)(value, to))
        if isinstance(of, IntegerType) and isinstance(to, AnyFloat):
            return self.append((arith.UIToFPOp if self.unsigned else arith.SIToFPOp)(value, to))
        if isinstance(of, IndexType) and isinstance(to, IntegerType):
            return self.append(arith.IndexCastOp(value, to))
        raise VerifyException(f"a value of type {of} has no conversion to {to}")

    def function(self, name: str, values: Sequence[SSAValue]) -> SSAValue:
        """A function of `ELEMENTWISE`, on one type."""
        if len(values) != ELEMENTWISE[name]:
            raise VerifyException(f"{name} takes {ELEMENTWISE[name]} operands, got {len(values)}")
        if name == "select":
            return self._select(*values)
        type_ = values[0].type
        if any(value.type != type_ for value in values):
            raise VerifyException(f"{name} takes values of one type, got {', '.join(str(v.type) for v in values)}")
        if name in _BINARY:
            of_floats, of_integers, of_bools = _BINARY[name]
            of_integers = of_bools if type_ == i1 else of_integers if isinstance(type_, IntegerType) else None
            op_class = of_floats if isinstance(type_, AnyFloat) else of_integers
            if op_class is None:
                raise VerifyException(f"{name} is not defined on {type_}")
            return self.apply(op_class, values)
        if not isinstance(type_, AnyFloat):
            raise VerifyException(f"{name} is defined on floats, not on {type_}")
        (value,) = values
        if name == "reciprocal":
            return self.append(arith.DivfOp(self.append(arith.ConstantOp(FloatAttr(1.0, type_))), value))
        if name == "square":
            return self.append(arith.MulfOp(value, value))
        return self.apply(_UNARY[name], values)

    def _select(self, condition: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
        if condition.type != i1 or left.type != right.type:
            raise VerifyException(
                f"select takes an i1 and two values of one type, got {condition.type}, {left.type} and {right.type}"
            )
        return self.append(arith.SelectOp(condition, left, right))


# Elements of the inputs and the old element of the output -> the new one.
_Body = Callable[[_Scalars, Sequence[SSAValue], SSAValue], SSAValue]


def _copy(scalars: _Scalars, inputs: Sequence[SSAValue], old: SSAValue) -> SSAValue:
    return scalars.cast(inputs[0], old.type)


def _product(scalars: _Scalars, inputs: Sequence[SSAValue], old: SSAValue) -> SSAValue:
    left, right = (scalars.cast(value, old.type) for value in inputs)
    return scalars.function("add", [old, scalars.function("mul", [left, right])])


def _quantized(scalars: _Scalars, inputs: Sequence[SSAValue], old: SSAValue) -> SSAValue:
    left, right, left_zero, right_zero = inputs
    factors = [
        scalars.function("sub", [scalars.cast(value, old.type), scalars.cast(zero, old.type)])
        for value, zero in ((left, left_zero), (right, right_zero))
    ]
    return scalars.function("add", [old, scalars.function("mul", factors)])


def _window(function: str) -> _Body:
    """Combine a window's elements with the second input's extents."""
    return lambda scalars, inputs, old: scalars.function(function, [old, scalars.cast(inputs[0], old.type)])


_BODIES: Final[Mapping[str, tuple[int, _Body]]] = {
    "copy": (1, _copy),
    "product": (2, _product),
    "quantized product": (4, _quantized),
    **{f"window {f}": (2, _window(f)) for f in ("add", "max_signed", "max_unsigned", "min_signed", "min_unsigned")},
}
"""With the number of inputs."""


def body_of(name: str, types: Sequence[Attribute], unsigned: bool) -> Region:
    """Compute `name` (`copy`, `product`, ... or one of `ELEMENTWISE`) on elements, the output's last.

    Raises `VerifyException` for types on which it is undefined.
    """
    block = Block(arg_types=types)
    scalars = _Scalars(block, unsigned or name.endswith("_unsigned"))
    *inputs, old = block.args
    if name in _BODIES:
        count, body = _BODIES[name]
        if len(inputs) != count:
            raise VerifyException(f"takes {count} inputs, got {len(inputs)}")
        value = body(scalars, inputs, old)
    else:
        value = scalars.function(name, inputs)
    if value.type != old.type:
        raise VerifyException(f"{name} of {types[0]} gives {value.type}, and the output holds {old.type}")
    block.add_op(YieldOp(value))
    return Region(block)
