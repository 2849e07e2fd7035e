"""Conversions between types, on scalars and on a lane of a vector.

A conversion from a floating-point value that no integer of the type comes near is undefined, as in C.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith, vector

from weft.backends.c_family import expression as c
from weft.backends.c_family.arith_ops import require_plain
from weft.backends.c_family.constants import number
from weft.dialects.low_lanes import with_lane_forms
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules
    from weft.backends.c_family.expression import Expr


def _converted(emitter: FunctionEmitter, op: Operation, operand: Expr, element: str) -> Expr:
    return c.cast(emitter.language.type(element, op), operand, element)


def _unsigned(emitter: FunctionEmitter, operand: Expr, element: str) -> Expr:
    """An integer, taken as not negative."""
    return operand if element == "i1" else c.cast(emitter.language.unsigned[element], operand, element)


def _signed(emitter: FunctionEmitter, operand: Expr, element: str) -> Expr:
    """An integer as a signed number: true is -1."""
    if element != "i1":
        return operand
    return c.unary("-", c.cast(emitter.language.types["i32"], operand, "i32"), "i32")


def emit_extend(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    signed = op.name.endswith("extsi")
    taken = _signed(emitter, operand, source) if signed else _unsigned(emitter, operand, source)
    emitter.define(op.results[0], _converted(emitter, op, taken, target), op)


def emit_truncate(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    emitter.define(op.results[0], _narrowed(emitter, op, operand, emitter.element(op.results[0].type, op)), op)


def _narrowed(emitter: FunctionEmitter, op: Operation, operand: Expr, target: str) -> Expr:
    if target == "i1":
        lowest = c.binary("&", operand, number(1, "i32"), operand.element)
        return c.binary("!=", lowest, number(0, "i32"), "i1")
    return _converted(emitter, op, operand, target)


def emit_index_cast(emitter: FunctionEmitter, op: Operation) -> None:
    """Between index and a signed integer."""
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    result = op.results[0]
    fact = emitter.range_of(op.operands[0])
    if target == "index":
        if source == "i1":
            emitter.define(result, _converted(emitter, op, _signed(emitter, operand, source), "idx32"), op)
            return
        emitter.ranges[result] = fact
        element = "idx64" if source == "i64" else "idx32"
        emitter.define(result, _relabelled(operand, element), op)
        return
    emitter.ranges[result] = fact
    if target == "i1":
        emitter.define(result, _narrowed(emitter, op, operand, target), op)
    elif (target == "i32" and operand.element == "idx32") or (target == "i64" and operand.element == "idx64"):
        emitter.define(result, _relabelled(operand, target), op)
    else:
        emitter.define(result, _converted(emitter, op, operand, target), op)
    if not fact.fits_int and target != "i64":
        del emitter.ranges[result]


def _relabelled(operand: Expr, element: str) -> Expr:
    return replace(operand, element=element)


def emit_to_float(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    require_plain(emitter, op, target)
    signed = op.name.endswith("sitofp")
    taken = _signed(emitter, operand, source) if signed else _unsigned(emitter, operand, source)
    emitter.define(op.results[0], _converted(emitter, op, taken, target), op)


def emit_to_integer(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    require_plain(emitter, op, source)
    if target == "i1":
        wide = _converted(emitter, op, operand, "i32")
        emitter.define(op.results[0], _narrowed(emitter, op, wide, "i1"), op)
        return
    if op.name.endswith("fptoui"):
        operand = c.cast(emitter.language.unsigned[target], operand, target)
    emitter.define(op.results[0], _converted(emitter, op, operand, target), op)


def emit_float_cast(emitter: FunctionEmitter, op: Operation) -> None:
    """Between floating-point types: helper functions for the 16-bit ones."""
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    if source in ("f16", "bf16"):
        wide = c.call(emitter.module.helper(f"weft_{source}_to_f32"), (operand,), "f32")
        emitter.define(op.results[0], wide if target == "f32" else _converted(emitter, op, wide, target), op)
    elif target in ("f16", "bf16"):
        helper = emitter.module.helper(f"weft_{source}_to_{target}")
        emitter.define(op.results[0], c.call(helper, (operand,), target), op)
    else:
        emitter.define(op.results[0], _converted(emitter, op, operand, target), op)


_CLASSES: Final = {"f32": "i32", "f64": "i64", "f16": "i16", "bf16": "i16"}


def emit_bitcast(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    source, target = emitter.element(op.operands[0].type, op), emitter.element(op.results[0].type, op)
    lanes = emitter.lanes(op.operands[0].type, op), emitter.lanes(op.results[0].type, op)
    if lanes[0] != lanes[1]:
        raise CompileError.at(
            op, f"{op.name} of {op.operands[0].type} to {op.results[0].type} has no form in {emitter.language.name}"
        )
    result = op.results[0]
    if source == target:
        emitter.define(result, operand, op)
    elif source in ("f16", "bf16") or target in ("f16", "bf16"):  # these are their bits
        emitter.define(result, _converted(emitter, op, operand, target), op)
    elif _CLASSES.get(source) == target or _CLASSES.get(target) == source:
        helper = emitter.module.helper(f"weft_{source}_as_{target}")
        emitter.define(result, c.call(helper, (operand,), target), op)
    else:
        raise CompileError.at(op, f"{op.name} of {source} to {target} has no form in {emitter.language.name}")


_SCALARS: Final[Rules] = {
    **dict.fromkeys((arith.ExtSIOp, arith.ExtUIOp), emit_extend),
    arith.TruncIOp: emit_truncate,
    arith.IndexCastOp: emit_index_cast,
    **dict.fromkeys((arith.SIToFPOp, arith.UIToFPOp), emit_to_float),
    **dict.fromkeys((arith.FPToSIOp, arith.FPToUIOp), emit_to_integer),
    **dict.fromkeys((arith.ExtFOp, arith.TruncFOp), emit_float_cast),
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
}
RULES: Final = with_lane_forms(_SCALARS)
