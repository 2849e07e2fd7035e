"""Arithmetic, comparisons, selection, conversions and constants, the same for scalars and for a lane of a vector.

Integers wrap around: signed overflow is undefined in C, so sums and products of data are taken of unsigned numbers.
Index arithmetic is written plainly, in 32 bits where the ranges of its operands allow it and in 64 otherwise. A
conversion from a floating-point value that no integer of the type comes near is undefined, as in C.

Division and remainder are defined for all operands: x / 0 = 0, x mod 0 = 0, and the smallest number over -1 wraps to
itself. Where the operands are known to be harmless (a constant divisor, an index that is not negative) the plain
operator is written, which C rounds towards zero; otherwise a helper function is called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr

from weft.backends.c_family import expression as c
from weft.backends.c_family import index_ranges
from weft.backends.c_family.expression import LANE, CExpr, number
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.low_modules import predicate
from weft.dialects.integer_arith import constant_number
from weft.dialects.low_lanes import with_lane_forms
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules
    from weft.backends.c_family.expression import CExpr

_PLAIN: Final[dict[type[Operation], str]] = {arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*"}
_BITWISE: Final[dict[type[Operation], str]] = {arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^"}
_TRUTHS: Final[dict[type[Operation], str]] = {
    arith.AndIOp: "&&",
    arith.OrIOp: "||",
    arith.XOrIOp: "!=",
    arith.AddiOp: "!=",
    arith.SubiOp: "!=",
    arith.MuliOp: "&&",
    arith.MinSIOp: "||",  # true is -1
    arith.MaxSIOp: "&&",
    arith.MinUIOp: "&&",
    arith.MaxUIOp: "||",
}
_FLOAT: Final[dict[type[Operation], str]] = {
    arith.AddfOp: "+",
    arith.SubfOp: "-",
    arith.MulfOp: "*",
    arith.DivfOp: "/",
}
_FLOAT_HELPERS: Final[dict[type[Operation], str]] = {
    arith.MaximumfOp: "weft_maximum",
    arith.MinimumfOp: "weft_minimum",
}
_FLOAT_FUNCTIONS: Final[dict[type[Operation], str]] = {arith.MaxnumfOp: "maxnumf", arith.MinnumfOp: "minnumf"}
_MINIMA: Final[dict[type[Operation], tuple[str, type[Operation]]]] = {
    arith.MinSIOp: ("<", arith.MinSIOp),
    arith.MaxSIOp: (">", arith.MaxSIOp),
    arith.MinUIOp: ("<", arith.MinSIOp),
    arith.MaxUIOp: (">", arith.MaxSIOp),
}


def emit_constant(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    kind = emitter.element(result.type, op)
    value = op.properties["value"]
    if isinstance(value, IntegerAttr | FloatAttr):
        numbers = [value.value.data]
    elif isinstance(value, DenseIntOrFPElementsAttr):
        numbers = list(cast("tuple[float, ...]", tuple(value.iter_values())))
    else:
        raise CompileError.at(op, f"{emitter.language.name} has no constants of the form {value.name}")
    element = kind
    if kind == "index":
        known = IndexRange.constant(int(numbers[0]))
        for other in numbers[1:]:
            known |= IndexRange.constant(int(other))
        emitter.ranges[result] = known
        element = emitter.index_type(known)
    lanes = emitter.lanes(result.type, op)
    if all(str(other) == str(numbers[0]) for other in numbers):
        emitter.values[result] = _with_lanes(number(numbers[0], element), lanes)
        return
    name = emitter.names.fresh(result.name_hint or "lanes")
    texts = ", ".join(number(value, element).text for value in numbers)
    aligned = emitter.lane_alignment(element, lanes)
    emitter.line(f"{aligned}const {emitter.language.type(element, op)} {name}[{lanes}] = {{{texts}}};")
    emitter.values[result] = CExpr(f"{name}[{LANE}]", element, lanes=lanes)


def _with_lanes(expr: CExpr, lanes: int) -> CExpr:
    return CExpr(expr.text, expr.element, expr.level, lanes=lanes, literal=True)


def wrapped(emitter: FunctionEmitter, op: Operation, operator: str, lhs: CExpr, rhs: CExpr, element: str) -> CExpr:
    """Arithmetic modulo 2^bits."""
    unsigned = emitter.language.unsigned[element]
    type_ = emitter.language.type(element, op)
    if element in ("i8", "i16") and operator != "*":
        return c.cast(type_, c.binary(operator, lhs, rhs, element), element)
    # Numbers that are narrower than int would be multiplied as signed numbers again.
    unsigned = emitter.language.unsigned["i32"] if element in ("i8", "i16") else unsigned
    left = c.cast(unsigned, lhs, element)
    right = rhs if rhs.literal and not rhs.text.startswith("(") else c.cast(unsigned, rhs, element)
    return c.cast(type_, c.binary(operator, left, right, element), element)


def index_binary(
    emitter: FunctionEmitter, op: Operation, operator: str, lhs: CExpr, rhs: CExpr, fact: IndexRange
) -> tuple[CExpr, IndexRange]:
    """Index arithmetic whose result lies within `fact`, and what is known of it after wrapping around."""
    if not fact.fits_long:
        return wrapped(emitter, op, operator, lhs, rhs, "idx64"), index_ranges.UNKNOWN
    if lhs.element == rhs.element == "idx32":
        if fact.fits_int:
            return c.binary(operator, lhs, rhs, "idx32"), fact
        lhs = c.cast(emitter.language.type("idx64", op), lhs, "idx64")
    return c.binary(operator, lhs, rhs, "idx64"), fact


def emit_plain(emitter: FunctionEmitter, op: Operation) -> None:
    """Sum, difference, product of integers."""
    operator = _PLAIN[type(op)]
    lhs, rhs = emitter.exprs(op)
    result = op.results[0]
    kind = emitter.element(result.type, op)
    if kind == "i1":
        emitter.define(result, c.binary(_TRUTHS[type(op)], lhs, rhs, "i1"), op)
        return
    if kind != "index":
        emitter.define(result, wrapped(emitter, op, operator, lhs, rhs, kind), op)
        return
    a, b = emitter.range_of(op.operands[0]), emitter.range_of(op.operands[1])
    known = IndexRange.of(type(op), a, b)
    if known.is_constant:
        emitter.ranges[result] = known
        emitter.define(result, number(known.low, emitter.index_type(known)), op)
        return
    for value, fact, other in ((lhs, a, rhs), (rhs, b, lhs)):
        neutral = 1 if operator == "*" else 0
        if fact.is_constant and fact.low == neutral and (value is rhs or operator != "-"):
            emitter.ranges[result] = known
            emitter.define(result, other, op)
            return
    if operator == "+" and b.is_constant and b.low < 0:
        operator, rhs = "-", number(-b.low, "idx32" if rhs.element == "idx32" else "idx64")
    expr, emitter.ranges[result] = index_binary(emitter, op, operator, lhs, rhs, known)
    emitter.define(result, expr, op)


def emit_bitwise(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.exprs(op)
    result = op.results[0]
    kind = emitter.element(result.type, op)
    if kind == "i1":
        if isinstance(op, arith.XOrIOp) and rhs.text == "true":
            emitter.define(result, c.unary("!", lhs, "i1"), op)
        else:
            emitter.define(result, c.binary(_TRUTHS[type(op)], lhs, rhs, "i1"), op)
        return
    operator = _BITWISE[type(op)]
    if kind == "index":
        if operator == "&":
            emitter.ranges[result] = IndexRange.of(arith.AndIOp, *map(emitter.range_of, op.operands))
        element = "idx32" if lhs.element == rhs.element == "idx32" else "idx64"
        emitter.define(result, c.binary(operator, lhs, rhs, element), op)
        return
    expr = c.binary(operator, lhs, rhs, kind)
    narrow = kind in ("i8", "i16")
    emitter.define(result, c.cast(emitter.language.type(kind, op), expr, kind) if narrow else expr, op)


def emit_shift(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.exprs(op)
    result = op.results[0]
    kind = emitter.element(result.type, op)
    if kind == "i1":
        raise CompileError.at(op, f"{op.name} of truth values has no form in {emitter.language.name}")
    element = kind
    if kind == "index":
        amount = emitter.range_of(op.operands[1])
        source = emitter.range_of(op.operands[0])
        if amount.is_constant and 0 <= amount.low < 62:
            power = IndexRange.constant(1 << amount.low)
            if isinstance(op, arith.ShLIOp):
                known = IndexRange.of(arith.MuliOp, source, power)
                if known.fits_long:
                    times = number(power.low, emitter.index_type(power))
                    expr, emitter.ranges[result] = index_binary(emitter, op, "*", lhs, times, known)
                    emitter.define(result, expr, op)
                    return
            elif isinstance(op, arith.ShRSIOp) or source.low >= 0:
                emitter.ranges[result] = IndexRange.of(arith.FloorDivSIOp, source, power)
                emitter.define(result, c.binary(">>", lhs, rhs, lhs.element), op)
                return
        element = "idx64"
    type_, unsigned = emitter.language.type(element, op), emitter.language.unsigned[element]
    if isinstance(op, arith.ShRSIOp):
        wide = c.cast(type_, lhs, element) if lhs.element != element else lhs
        shifted = c.binary(">>", wide, rhs, element)
        emitter.define(result, c.cast(type_, shifted, kind) if kind in ("i8", "i16") else shifted, op)
        return
    operator = "<<" if isinstance(op, arith.ShLIOp) else ">>"
    emitter.define(result, c.cast(type_, c.binary(operator, c.cast(unsigned, lhs, element), rhs, element), element), op)


def emit_minimum(emitter: FunctionEmitter, op: Operation) -> None:
    """The lesser or the greater of two integers."""
    operator, signed_op = _MINIMA[type(op)]
    signed = type(op) is signed_op
    result = op.results[0]
    kind = emitter.element(result.type, op)
    if kind == "i1":
        lhs, rhs = emitter.exprs(op)
        emitter.define(result, c.binary(_TRUTHS[type(op)], lhs, rhs, "i1"), op)
        return
    lhs, rhs = (emitter.atom(operand, op) for operand in op.operands)
    element = kind
    if kind == "index":
        a, b = emitter.range_of(op.operands[0]), emitter.range_of(op.operands[1])
        signed = signed or (a.low >= 0 and b.low >= 0)
        if signed:
            emitter.ranges[result] = IndexRange.of(signed_op, a, b)
        element = "idx32" if lhs.element == rhs.element == "idx32" else "idx64"
    emitter.define(result, c.conditional(compared(emitter, operator, lhs, rhs, element, signed), lhs, rhs), op)


def compared(emitter: FunctionEmitter, operator: str, lhs: CExpr, rhs: CExpr, element: str, signed: bool) -> CExpr:
    """A comparison of integers."""
    if not signed:
        unsigned = emitter.language.unsigned[element]
        lhs, rhs = c.cast(unsigned, lhs, element), c.cast(unsigned, rhs, element)
    return c.binary(operator, lhs, rhs, "i1")


_COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def emit_integer_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.exprs(op)
    kind = emitter.element(op.operands[0].type, op)
    relation = predicate(op)
    if relation in ("eq", "ne"):
        emitter.define(op.results[0], c.binary(_COMPARISONS[relation], lhs, rhs, "i1"), op)
        return
    signed, operator = relation[0] == "s", _COMPARISONS[relation[1:]]
    if kind == "i1":
        if signed:  # true is -1, less than false
            lhs, rhs = rhs, lhs
        left, right = (c.cast(emitter.language.types["i32"], operand, "i32") for operand in (lhs, rhs))
        emitter.define(op.results[0], c.binary(operator, left, right, "i1"), op)
        return
    element = kind
    if kind == "index":
        signed = signed or all(emitter.range_of(operand).low >= 0 for operand in op.operands)
        element = "idx64"
    emitter.define(op.results[0], compared(emitter, operator, lhs, rhs, element, signed), op)


_FLOAT_COMPARISONS: Final = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}
_OPPOSITES: Final = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}


def emit_float_comparison(emitter: FunctionEmitter, op: Operation) -> None:
    relation = predicate(op)
    result = op.results[0]
    if relation in ("false", "true"):
        emitter.define(result, number(relation == "true", "i1"), op)
        return
    plain_float(emitter, op, op.operands[0].type)
    lhs, rhs = emitter.exprs(op)
    if relation in _FLOAT_COMPARISONS:
        emitter.define(result, c.binary(_FLOAT_COMPARISONS[relation], lhs, rhs, "i1"), op)
        return
    if relation in _OPPOSITES:
        emitter.define(result, c.unary("!", c.binary(_OPPOSITES[relation], lhs, rhs, "i1"), "i1"), op)
        return
    lhs, rhs = (emitter.atom(operand, op) for operand in op.operands)
    if relation in ("ord", "uno"):
        operator, joined = ("==", "&&") if relation == "ord" else ("!=", "||")
        both = c.binary(joined, c.binary(operator, lhs, lhs, "i1"), c.binary(operator, rhs, rhs, "i1"), "i1")
        emitter.define(result, both, op)
        return
    differ = c.binary("||", c.binary("<", lhs, rhs, "i1"), c.binary(">", lhs, rhs, "i1"), "i1")
    emitter.define(result, differ if relation == "one" else c.unary("!", differ, "i1"), op)


def plain_float(emitter: FunctionEmitter, op: Operation, type_: Attribute | None = None) -> str:
    """The element type of the floating-point values of `op`. Small ones are legalised away before."""
    element = emitter.element(op.results[0].type if type_ is None else type_, op)
    require_plain(emitter, op, element)
    return element


def require_plain(emitter: FunctionEmitter, op: Operation, element: str) -> None:
    """Raises `CompileError` for a 16-bit float."""
    if element in ("f16", "bf16"):
        raise CompileError.at(
            op, f"{op.name} of {element} has no form in {emitter.language.name}: run low-legalize first"
        )


def emit_float(emitter: FunctionEmitter, op: Operation) -> None:
    lhs, rhs = emitter.exprs(op)
    element = plain_float(emitter, op)
    emitter.define(op.results[0], c.binary(_FLOAT[type(op)], lhs, rhs, element), op)


def emit_float_helper(emitter: FunctionEmitter, op: Operation) -> None:
    """The greater or the lesser, NaN when either is; -0 is less than +0."""
    name = emitter.module.helper(f"{_FLOAT_HELPERS[type(op)]}_{plain_float(emitter, op)}")
    emitter.define(op.results[0], c.call(name, tuple(emitter.exprs(op)), plain_float(emitter, op)), op)


def emit_float_function(emitter: FunctionEmitter, op: Operation) -> None:
    """The greater or the lesser, a number when either is one."""
    element = plain_float(emitter, op)
    name = emitter.language.functions[_FLOAT_FUNCTIONS[type(op)]][element == "f64"]
    emitter.define(op.results[0], c.call(name, tuple(emitter.exprs(op)), element), op)


def emit_negation(emitter: FunctionEmitter, op: Operation) -> None:
    (operand,) = emitter.exprs(op)
    emitter.define(op.results[0], c.unary("-", operand, plain_float(emitter, op)), op)


def emit_select(emitter: FunctionEmitter, op: Operation) -> None:
    condition, yes, no = emitter.exprs(op)
    result = op.results[0]
    if emitter.element(result.type, op) == "index":
        emitter.ranges[result] = emitter.range_of(op.operands[1]) | emitter.range_of(op.operands[2])
        if yes.element != no.element:
            yes = CExpr(yes.text, "idx64", yes.level, yes.reads, yes.size, yes.calls, yes.lanes)
    emitter.define(result, c.conditional(condition, yes, no), op)


_DIVISIONS: Final[dict[type[Operation], str]] = {
    arith.DivSIOp: "div",
    arith.DivUIOp: "udiv",
    arith.RemSIOp: "rem",
    arith.RemUIOp: "urem",
    arith.FloorDivSIOp: "floordiv",
    arith.CeilDivSIOp: "ceildiv",
    arith.CeilDivUIOp: "uceildiv",
}


_SIGNED: Final[dict[str, type[Operation]]] = {
    "div": arith.DivSIOp,
    "rem": arith.RemSIOp,
    "floordiv": arith.FloorDivSIOp,
    "ceildiv": arith.CeilDivSIOp,
}


def emit_division(emitter: FunctionEmitter, op: Operation) -> None:
    name = _DIVISIONS[type(op)]
    lhs, rhs = emitter.exprs(op)
    kind = emitter.element(op.results[0].type, op)
    if kind == "i1":
        raise CompileError.at(op, f"{op.name} of truth values has no form in {emitter.language.name}")
    if kind == "index":
        _emit_index(emitter, op, name, lhs, rhs)
        return
    divisor = constant_number(op.operands[1])
    if divisor is not None and divisor > 0 and name in ("div", "rem"):
        expr = c.binary("/" if name == "div" else "%", lhs, rhs, kind)
        narrow = kind in ("i8", "i16")
        emitter.define(op.results[0], c.cast(emitter.language.type(kind, op), expr, kind) if narrow else expr, op)
        return
    emitter.define(op.results[0], c.call(emitter.module.helper(f"weft_{name}_{kind}"), (lhs, rhs), kind), op)


def _emit_index(emitter: FunctionEmitter, op: Operation, name: str, lhs: CExpr, rhs: CExpr) -> None:
    a, b = emitter.range_of(op.operands[0]), emitter.range_of(op.operands[1])
    result = op.results[0]
    natural = a.low >= 0 and b.low >= 1
    if a.low >= 0 and b.low >= 0:  # then signs do not matter
        name = name.removeprefix("u")
    if name in _SIGNED:
        emitter.ranges[result] = IndexRange.of(_SIGNED[name], a, b)
    element = "idx32" if lhs.element == rhs.element == "idx32" else "idx64"
    if (natural or b.low >= 1) and name in ("div", "rem"):
        emitter.define(result, c.binary("/" if name == "div" else "%", lhs, rhs, element), op)
    elif natural and name == "floordiv":
        emitter.define(result, c.binary("/", lhs, rhs, element), op)
    elif natural and name == "ceildiv" and b.is_constant and (a + b).fits_long:
        more = IndexRange.constant(b.low - 1)
        total, _ = index_binary(emitter, op, "+", lhs, number(more.low, emitter.index_type(more)), a + more)
        emitter.define(result, c.binary("/", total, rhs, "idx32" if total.element == "idx32" else "idx64"), op)
    elif name == "floordiv" and b.is_constant and b.low > 0 and b.low & (b.low - 1) == 0:
        shift = number(b.low.bit_length() - 1, "idx32")
        emitter.define(result, c.binary(">>", lhs, shift, lhs.element), op)
    else:
        helper = emitter.module.helper(f"weft_{name}_idx64")
        emitter.define(result, c.call(helper, (lhs, rhs), "idx64"), op)


def _converted(emitter: FunctionEmitter, op: Operation, operand: CExpr, element: str) -> CExpr:
    return c.cast(emitter.language.type(element, op), operand, element)


def _unsigned(emitter: FunctionEmitter, operand: CExpr, element: str) -> CExpr:
    """An integer, taken as not negative."""
    return operand if element == "i1" else c.cast(emitter.language.unsigned[element], operand, element)


def _signed(emitter: FunctionEmitter, operand: CExpr, element: str) -> CExpr:
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


def _narrowed(emitter: FunctionEmitter, op: Operation, operand: CExpr, target: str) -> CExpr:
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


def _relabelled(operand: CExpr, element: str) -> CExpr:
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
    arith.ConstantOp: emit_constant,
    **dict.fromkeys(_PLAIN, emit_plain),
    **dict.fromkeys(_BITWISE, emit_bitwise),
    **dict.fromkeys((arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp), emit_shift),
    **dict.fromkeys(_MINIMA, emit_minimum),
    **dict.fromkeys(_FLOAT, emit_float),
    **dict.fromkeys(_FLOAT_HELPERS, emit_float_helper),
    **dict.fromkeys(_FLOAT_FUNCTIONS, emit_float_function),
    arith.NegfOp: emit_negation,
    arith.CmpiOp: emit_integer_comparison,
    arith.CmpfOp: emit_float_comparison,
    arith.SelectOp: emit_select,
    **dict.fromkeys(_DIVISIONS, emit_division),
    **dict.fromkeys((arith.ExtSIOp, arith.ExtUIOp), emit_extend),
    arith.TruncIOp: emit_truncate,
    arith.IndexCastOp: emit_index_cast,
    **dict.fromkeys((arith.SIToFPOp, arith.UIToFPOp), emit_to_float),
    **dict.fromkeys((arith.FPToSIOp, arith.FPToUIOp), emit_to_integer),
    **dict.fromkeys((arith.ExtFOp, arith.TruncFOp), emit_float_cast),
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
}
RULES: Final = with_lane_forms(_SCALARS)
