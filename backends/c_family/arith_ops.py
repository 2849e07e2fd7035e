"""`arith` and `math` ops on scalars and lanes.

Integers wrap around: data is added and multiplied as unsigned integers, since signed overflow is undefined in C. Index
arithmetic is plain, in 32 bits if ranges allow it, otherwise 64. `low-legalize` rewrites out-of-range conversions of
floats to integers, which C leaves undefined.

Division and remainder are total: x / 0 = 0, x mod 0 = 0, and the smallest integer over -1 is itself. C's operator is
used for operands known to be in range (a constant divisor, a non-negative index), else a helper function.

Mathematical functions are precise, or fast if an op allows it (`afn`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.dialects.utils import FastMathFlag

from weft.backends.c_family import expression as c
from weft.backends.c_family import index_ranges
from weft.backends.c_family.expression import LANE, CExpr, number
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.low_modules import predicate
from weft.dialects.integer_arith import constant_number
from weft.dialects.low import DEFINED, ORDERED
from weft.dialects.low_lanes import with_lane_forms
from weft.dialects.promises import Promise
from weft.dialects.upstream.arith import RemFOp
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules

_OPERATORS: Final[dict[type[Operation], str]] = {
    **{arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*"},
    **{arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^"},
    **{arith.AddfOp: "+", arith.SubfOp: "-", arith.MulfOp: "*", arith.DivfOp: "/"},
}
_WRAPPING: Final = (arith.AddiOp, arith.SubiOp, arith.MuliOp)
_CONTRACTED: Final[dict[type[Operation], str]] = {arith.AddfOp: "add", arith.SubfOp: "sub", arith.MulfOp: "mul"}
"""Op -> name in the helpers without contraction."""
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
"""Op -> operator on `i1`."""
_FLOAT_EXTREMA: Final[dict[type[Operation], str]] = {
    arith.MaximumfOp: "weft_maximum",
    arith.MinimumfOp: "weft_minimum",
    arith.MaxnumfOp: "maxnumf",
    arith.MinnumfOp: "minnumf",
}
"""Op -> helper function (NaN if either operand is; -0 is less than +0), or the language's function that prefers numbers
to NaN."""
_INTEGER_EXTREMA: Final[dict[type[Operation], tuple[str, type[Operation]]]] = {
    arith.MinSIOp: ("<", arith.MinSIOp),
    arith.MaxSIOp: (">", arith.MaxSIOp),
    arith.MinUIOp: ("<", arith.MinSIOp),
    arith.MaxUIOp: (">", arith.MaxSIOp),
}
"""Op -> the comparison that selects its left operand, and its signed form."""
_NARROW: Final = ("i8", "i16")
"""C promotes them to `int`."""
SMALL_FLOATS: Final = ("f16", "bf16")


def emit_constant(emitter: FunctionEmitter, op: Operation) -> CExpr:
    result = op.results[0]
    element = emitter.element(result.type, op)
    value = op.properties["value"]
    if isinstance(value, IntegerAttr | FloatAttr):
        numbers = [value.value.data]
    elif isinstance(value, DenseIntOrFPElementsAttr):
        numbers = list(cast("tuple[float, ...]", tuple(value.iter_values())))
    else:
        raise CompileError.at(op, f"{emitter.language.name} has no constants of the form {value.name}")
    if element == "index":
        known = IndexRange.constant(int(numbers[0]))
        for other in numbers[1:]:
            known |= IndexRange.constant(int(other))
        emitter.ranges[result] = known
        element = emitter.index_type(known)
    lanes = emitter.lanes(result.type, op)
    if all(str(other) == str(numbers[0]) for other in numbers):
        return replace(number(numbers[0], element), lanes=lanes)
    name = emitter.names.fresh(result.name_hint or "lanes")
    texts = ", ".join(number(value, element).text for value in numbers)
    aligned = emitter.lane_alignment(element, lanes)
    emitter.line(f"{aligned}const {emitter.language.type(element, op)} {name}[{lanes}] = {{{texts}}};")
    return CExpr(f"{name}[{LANE}]", element, lanes=lanes)


def plain_element(emitter: FunctionEmitter, op: Operation, type_: Attribute) -> str:
    """Raises `CompileError` for a 16-bit float: no language has its arithmetic."""
    element = emitter.element(type_, op)
    if element in SMALL_FLOATS:
        raise CompileError.at(
            op, f"{op.name} of {element} has no form in {emitter.language.name}: run low-legalize first"
        )
    return element


def emit_binary(emitter: FunctionEmitter, op: Operation) -> CExpr:
    kind = type(op)
    element = plain_element(emitter, op, op.results[0].type)
    # repeats each operand
    twice = kind in _INTEGER_EXTREMA and element != "i1"
    lhs, rhs = (emitter.atom(operand, op) if twice else emitter.expr(operand) for operand in op.operands)
    if element == "index":
        return _index_binary(emitter, op, lhs, rhs)
    return combined(emitter, op, kind, element, lhs, rhs)


def combined(
    emitter: FunctionEmitter, op: Operation, kind: type[Operation], element: str, lhs: CExpr, rhs: CExpr
) -> CExpr:
    if element == "i1":
        is_negation = kind is arith.XOrIOp and rhs.text == "true"
        return c.unary("!", lhs, "i1") if is_negation else c.binary(_TRUTHS[kind], lhs, rhs, "i1")
    if kind in _FLOAT_EXTREMA:
        name = _FLOAT_EXTREMA[kind]
        is_helper = name.startswith("weft_")
        function = emitter.module.helper(f"{name}_{element}") if is_helper else _function(emitter, op, name, element)
        return c.call(function, (lhs, rhs), element)
    if kind in _INTEGER_EXTREMA:
        operator, signed_kind = _INTEGER_EXTREMA[kind]
        return c.conditional(_compared(emitter, operator, lhs, rhs, element, kind is signed_kind), lhs, rhs)
    if kind in _WRAPPING:
        return wrapped(emitter, op, _OPERATORS[kind], lhs, rhs, element)
    rounded = f"weft_rounded_{_CONTRACTED.get(kind)}_{element}"
    if rounded in emitter.language.helpers and not may_contract(emitter, op):
        return c.call(emitter.module.helper(rounded), (lhs, rhs), element)
    return _narrowed(emitter, op, c.binary(_OPERATORS[kind], lhs, rhs, element))


def may_contract(emitter: FunctionEmitter, op: Operation) -> bool:
    if Promise.CONTRACT in emitter.promises or ORDERED in op.attributes:
        return True
    flags = op.properties.get("fastmath")
    return isinstance(flags, arith.FastMathFlagsAttr) and FastMathFlag.ALLOW_CONTRACT in flags.data


def _narrowed(emitter: FunctionEmitter, op: Operation, expr: CExpr) -> CExpr:
    """C promotes narrow operands to `int`."""
    narrow = expr.element in _NARROW
    return c.cast(emitter.language.type(expr.element, op), expr, expr.element) if narrow else expr


def wrapped(emitter: FunctionEmitter, op: Operation, operator: str, lhs: CExpr, rhs: CExpr, element: str) -> CExpr:
    """Arithmetic modulo 2^bits."""
    type_ = emitter.language.type(element, op)
    if element in _NARROW and operator != "*":
        return c.cast(type_, c.binary(operator, lhs, rhs, element), element)
    # Promotion to int would make narrow products signed.
    unsigned = emitter.language.unsigned["i32" if element in _NARROW else element]
    left = c.cast(unsigned, lhs, element)
    right = rhs if rhs.literal and not rhs.text.startswith("(") else c.cast(unsigned, rhs, element)
    return c.cast(type_, c.binary(operator, left, right, element), element)


def _common_index(lhs: CExpr, rhs: CExpr) -> str:
    return "idx32" if lhs.element == rhs.element == "idx32" else "idx64"


def _index_binary(emitter: FunctionEmitter, op: Operation, lhs: CExpr, rhs: CExpr) -> CExpr:
    kind, result = type(op), op.results[0]
    a, b = map(emitter.range_of, op.operands)
    if kind in _INTEGER_EXTREMA:
        operator, signed_kind = _INTEGER_EXTREMA[kind]
        signed = kind is signed_kind or (a.low >= 0 and b.low >= 0)
        if signed:
            emitter.ranges[result] = IndexRange.of(signed_kind, a, b)
        condition = _compared(emitter, operator, lhs, rhs, _common_index(lhs, rhs), signed)
        return c.conditional(condition, lhs, rhs)
    operator = _OPERATORS[kind]
    if kind not in _WRAPPING:
        if kind is arith.AndIOp:
            emitter.ranges[result] = IndexRange.of(kind, a, b)
        return c.binary(operator, lhs, rhs, _common_index(lhs, rhs))
    known = IndexRange.of(kind, a, b)
    if known.is_constant:
        emitter.ranges[result] = known
        return number(known.low, emitter.index_type(known))
    for value, fact, other in ((lhs, a, rhs), (rhs, b, lhs)):
        neutral = 1 if operator == "*" else 0
        if fact.is_constant and fact.low == neutral and (value is rhs or operator != "-"):
            emitter.ranges[result] = known
            return other
    if operator == "+" and b.is_constant and b.low < 0:
        operator, rhs = "-", number(-b.low, "idx32" if rhs.element == "idx32" else "idx64")
    expr, emitter.ranges[result] = _index_arithmetic(emitter, op, operator, lhs, rhs, known)
    return expr


def _index_arithmetic(
    emitter: FunctionEmitter, op: Operation, operator: str, lhs: CExpr, rhs: CExpr, fact: IndexRange
) -> tuple[CExpr, IndexRange]:
    """`fact` is the range of the exact result; also returns that of the wrapped result."""
    if not fact.fits_long:
        return wrapped(emitter, op, operator, lhs, rhs, "idx64"), index_ranges.UNKNOWN
    if lhs.element == rhs.element == "idx32":
        if fact.fits_int:
            return c.binary(operator, lhs, rhs, "idx32"), fact
        lhs = c.cast(emitter.language.type("idx64", op), lhs, "idx64")
    return c.binary(operator, lhs, rhs, "idx64"), fact


def emit_shift(emitter: FunctionEmitter, op: Operation) -> CExpr:
    lhs, rhs = emitter.exprs(op)
    result = op.results[0]
    element = emitter.element(result.type, op)
    if element == "i1":
        raise CompileError.at(op, f"{op.name} of truth values has no form in {emitter.language.name}")
    if element == "index":
        source, amount = map(emitter.range_of, op.operands)
        if amount.is_constant and 0 <= amount.low < 62:
            power = IndexRange.constant(1 << amount.low)
            if isinstance(op, arith.ShLIOp):
                known = IndexRange.of(arith.MuliOp, source, power)
                if known.fits_long:
                    times = number(power.low, emitter.index_type(power))
                    expr, emitter.ranges[result] = _index_arithmetic(emitter, op, "*", lhs, times, known)
                    return expr
            elif isinstance(op, arith.ShRSIOp) or source.low >= 0:
                emitter.ranges[result] = IndexRange.of(arith.FloorDivSIOp, source, power)
                return c.binary(">>", lhs, rhs, lhs.element)
        element = "idx64"
    type_, unsigned = emitter.language.type(element, op), emitter.language.unsigned[element]
    if isinstance(op, arith.ShRSIOp):
        wide = c.cast(type_, lhs, element) if lhs.element != element else lhs
        return _narrowed(emitter, op, c.binary(">>", wide, rhs, element))
    operator = "<<" if isinstance(op, arith.ShLIOp) else ">>"
    return c.cast(type_, c.binary(operator, c.cast(unsigned, lhs, element), rhs, element), element)


_DIVISIONS: Final[dict[type[Operation], str]] = {
    arith.DivSIOp: "div",
    arith.DivUIOp: "udiv",
    arith.RemSIOp: "rem",
    arith.RemUIOp: "urem",
    arith.FloorDivSIOp: "floordiv",
    arith.CeilDivSIOp: "ceildiv",
    arith.CeilDivUIOp: "uceildiv",
}
_SIGNED: Final = {name: kind for kind, name in _DIVISIONS.items() if not name.startswith("u")}
_DIVISION_OPERATORS: Final = {"div": "/", "rem": "%"}


def emit_division(emitter: FunctionEmitter, op: Operation) -> CExpr:
    name = _DIVISIONS[type(op)]
    lhs, rhs = emitter.exprs(op)
    element = emitter.element(op.results[0].type, op)
    if element == "i1":
        raise CompileError.at(op, f"{op.name} of truth values has no form in {emitter.language.name}")
    if element == "index":
        return _index_division(emitter, op, name, lhs, rhs)
    divisor = constant_number(op.operands[1])
    if divisor is not None and divisor > 0 and name in _DIVISION_OPERATORS:
        return _narrowed(emitter, op, c.binary(_DIVISION_OPERATORS[name], lhs, rhs, element))
    return c.call(emitter.module.helper(f"weft_{name}_{element}"), (lhs, rhs), element)


def _index_division(emitter: FunctionEmitter, op: Operation, name: str, lhs: CExpr, rhs: CExpr) -> CExpr:
    a, b = map(emitter.range_of, op.operands)
    natural = a.low >= 0 and b.low >= 1
    if a.low >= 0 and b.low >= 0:
        name = name.removeprefix("u")  # signed and unsigned agree
    if name in _SIGNED:
        emitter.ranges[op.results[0]] = IndexRange.of(_SIGNED[name], a, b)
    element = _common_index(lhs, rhs)
    if b.low >= 1 and name in _DIVISION_OPERATORS:
        return c.binary(_DIVISION_OPERATORS[name], lhs, rhs, element)
    if natural and name == "floordiv":
        return c.binary("/", lhs, rhs, element)
    if natural and name == "ceildiv" and b.is_constant and (a + b).fits_long:
        more = IndexRange.constant(b.low - 1)
        total, _ = _index_arithmetic(emitter, op, "+", lhs, number(more.low, emitter.index_type(more)), a + more)
        return c.binary("/", total, rhs, "idx32" if total.element == "idx32" else "idx64")
    if name == "floordiv" and b.is_constant and b.low > 0 and b.low & (b.low - 1) == 0:
        shift = number(b.low.bit_length() - 1, "idx32")
        return c.binary(">>", lhs, shift, lhs.element)
    return c.call(emitter.module.helper(f"weft_{name}_idx64"), (lhs, rhs), "idx64")


def _compared(emitter: FunctionEmitter, operator: str, lhs: CExpr, rhs: CExpr, element: str, signed: bool) -> CExpr:
    if not signed:
        unsigned = emitter.language.unsigned[element]
        lhs, rhs = c.cast(unsigned, lhs, element), c.cast(unsigned, rhs, element)
    return c.binary(operator, lhs, rhs, "i1")


_COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def emit_integer_comparison(emitter: FunctionEmitter, op: Operation) -> CExpr:
    lhs, rhs = emitter.exprs(op)
    element = emitter.element(op.operands[0].type, op)
    relation = predicate(op)
    if relation in ("eq", "ne"):
        return c.binary(_COMPARISONS[relation], lhs, rhs, "i1")
    signed, operator = relation[0] == "s", _COMPARISONS[relation[1:]]
    if element == "i1":
        if signed:  # true is -1
            lhs, rhs = rhs, lhs
        left, right = (c.cast(emitter.language.types["i32"], operand, "i32") for operand in (lhs, rhs))
        return c.binary(operator, left, right, "i1")
    if element == "index":
        signed = signed or all(emitter.range_of(operand).low >= 0 for operand in op.operands)
        element = "idx64"
    return _compared(emitter, operator, lhs, rhs, element, signed)


_FLOAT_COMPARISONS: Final = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}
_OPPOSITES: Final = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}


def emit_float_comparison(emitter: FunctionEmitter, op: Operation) -> CExpr:
    relation = predicate(op)
    if relation in ("false", "true"):
        return number(relation == "true", "i1")
    plain_element(emitter, op, op.operands[0].type)
    lhs, rhs = emitter.exprs(op)
    if relation in _FLOAT_COMPARISONS:
        return c.binary(_FLOAT_COMPARISONS[relation], lhs, rhs, "i1")
    if relation in _OPPOSITES:
        return c.unary("!", c.binary(_OPPOSITES[relation], lhs, rhs, "i1"), "i1")
    lhs, rhs = (emitter.atom(operand, op) for operand in op.operands)
    if relation in ("ord", "uno"):
        operator, joined = ("==", "&&") if relation == "ord" else ("!=", "||")
        return c.binary(joined, c.binary(operator, lhs, lhs, "i1"), c.binary(operator, rhs, rhs, "i1"), "i1")
    differ = c.binary("||", c.binary("<", lhs, rhs, "i1"), c.binary(">", lhs, rhs, "i1"), "i1")
    return differ if relation == "one" else c.unary("!", differ, "i1")


def emit_select(emitter: FunctionEmitter, op: Operation) -> CExpr:
    condition, yes, no = emitter.exprs(op)
    result = op.results[0]
    if emitter.element(result.type, op) == "index":
        emitter.ranges[result] = emitter.range_of(op.operands[1]) | emitter.range_of(op.operands[2])
        if yes.element != no.element:
            yes = replace(yes, element="idx64")
    return c.conditional(condition, yes, no)


def _conversion(emitter: FunctionEmitter, op: Operation) -> tuple[CExpr, str, str]:
    source, target = (emitter.element(value.type, op) for value in (op.operands[0], op.results[0]))
    return emitter.expr(op.operands[0]), source, target


def _converted(emitter: FunctionEmitter, op: Operation, operand: CExpr, element: str) -> CExpr:
    if element != "i1":
        return c.cast(emitter.language.type(element, op), operand, element)
    lowest = c.binary("&", operand, number(1, "i32"), operand.element)
    return c.binary("!=", lowest, number(0, "i32"), "i1")


def _signed(emitter: FunctionEmitter, operand: CExpr, element: str) -> CExpr:
    """True is -1."""
    if element != "i1":
        return operand
    return c.unary("-", c.cast(emitter.language.types["i32"], operand, "i32"), "i32")


def emit_from_integer(emitter: FunctionEmitter, op: Operation) -> CExpr:
    operand, source, _ = _conversion(emitter, op)
    target = plain_element(emitter, op, op.results[0].type)
    if op.name.endswith(("extsi", "sitofp")):
        operand = _signed(emitter, operand, source)
    elif source != "i1":
        operand = c.cast(emitter.language.unsigned[source], operand, source)
    return _converted(emitter, op, operand, target)


def emit_truncate(emitter: FunctionEmitter, op: Operation) -> CExpr:
    operand, _, target = _conversion(emitter, op)
    return _converted(emitter, op, operand, target)


def emit_index_cast(emitter: FunctionEmitter, op: Operation) -> CExpr:
    operand, source, target = _conversion(emitter, op)
    known = emitter.range_of(op.operands[0])
    if target == "index":
        if source == "i1":
            return _converted(emitter, op, _signed(emitter, operand, source), "idx32")
        emitter.ranges[op.results[0]] = known
        return replace(operand, element="idx64" if source == "i64" else "idx32")
    if known.fits_int or target == "i64":
        emitter.ranges[op.results[0]] = known
    if (target, operand.element) in (("i32", "idx32"), ("i64", "idx64")):
        return replace(operand, element=target)
    return _converted(emitter, op, operand, target)


def emit_to_integer(emitter: FunctionEmitter, op: Operation) -> CExpr:
    """The float must be in range of the integer type."""
    operand, _, target = _conversion(emitter, op)
    plain_element(emitter, op, op.operands[0].type)
    if DEFINED not in op.attributes:
        raise CompileError.at(op, f"{op.name} of what may not fit has no form in C: run low-legalize first")
    if target == "i1":
        operand = _converted(emitter, op, operand, "i32")
    elif op.name.endswith("fptoui"):
        operand = c.cast(emitter.language.unsigned[target], operand, target)
    return _converted(emitter, op, operand, target)


def emit_float_cast(emitter: FunctionEmitter, op: Operation) -> CExpr:
    operand, source, target = _conversion(emitter, op)
    if source in SMALL_FLOATS:
        wide = c.call(emitter.module.helper(f"weft_{source}_to_f32"), (operand,), "f32")
        return wide if target == "f32" else _converted(emitter, op, wide, target)
    if target in SMALL_FLOATS:
        return c.call(emitter.module.helper(f"weft_{source}_to_{target}"), (operand,), target)
    return _converted(emitter, op, operand, target)


_BITS: Final = {"f32": "i32", "f64": "i64"}


def emit_bitcast(emitter: FunctionEmitter, op: Operation) -> CExpr:
    operand, source, target = _conversion(emitter, op)
    if emitter.lanes(op.operands[0].type, op) != emitter.lanes(op.results[0].type, op):
        raise CompileError.at(
            op, f"{op.name} of {op.operands[0].type} to {op.results[0].type} has no form in {emitter.language.name}"
        )
    if source == target:
        return operand
    if source in SMALL_FLOATS or target in SMALL_FLOATS:
        return _converted(emitter, op, operand, target)
    if _BITS.get(source) == target or _BITS.get(target) == source:
        return c.call(emitter.module.helper(f"weft_{source}_as_{target}"), (operand,), target)
    raise CompileError.at(op, f"{op.name} of {source} to {target} has no form in {emitter.language.name}")


def emit_negation(emitter: FunctionEmitter, op: Operation) -> CExpr:
    return c.unary("-", emitter.expr(op.operands[0]), plain_element(emitter, op, op.results[0].type))


def emit_function(emitter: FunctionEmitter, op: Operation) -> CExpr:
    element = plain_element(emitter, op, op.results[0].type)
    name = op.name.partition(".")[2]
    flags = op.properties.get("fastmath")
    is_fast = isinstance(flags, arith.FastMathFlagsAttr) and any(flag.value in ("afn", "fast") for flag in flags.data)
    fast = emitter.language.fast_functions.get(name) if element == "f32" and is_fast else None
    return c.call(fast or _function(emitter, op, name, element), tuple(emitter.exprs(op)), element)


def _function(emitter: FunctionEmitter, op: Operation, name: str, element: str) -> str:
    spelled = emitter.language.functions.get(name, ("", ""))[element == "f64"]
    if not spelled:
        raise CompileError.at(op, f"{emitter.language.name} has no function for {op.name} of {element}")
    return emitter.module.helper(spelled) if spelled in emitter.language.helpers else spelled


_BIT_COUNTS: Final[dict[type[Operation], str]] = {
    math.CountLeadingZerosOp: "weft_clz",
    math.CountTrailingZerosOp: "weft_ctz",
    math.CtPopOp: "weft_popcount",
}


def emit_integer_function(emitter: FunctionEmitter, op: Operation) -> CExpr:
    """The absolute value of the smallest integer is itself."""
    element = emitter.element(op.results[0].type, op)
    if element in ("i1", "index"):
        raise CompileError.at(op, f"{op.name} of {element} has no form in {emitter.language.name}")
    if type(op) in _BIT_COUNTS:
        helper = emitter.module.helper(f"{_BIT_COUNTS[type(op)]}_{element}")
        return c.call(helper, tuple(emitter.exprs(op)), element)
    operand = emitter.atom(op.operands[0], op)
    negative = wrapped(emitter, op, "-", number(0, "i32"), operand, element)
    return c.conditional(c.binary("<", operand, number(0, "i32"), "i1"), negative, operand)


_SCALARS: Final[Rules] = {
    arith.ConstantOp: emit_constant,
    **dict.fromkeys((*_OPERATORS, *_FLOAT_EXTREMA, *_INTEGER_EXTREMA), emit_binary),
    **dict.fromkeys((arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp), emit_shift),
    **dict.fromkeys(_DIVISIONS, emit_division),
    arith.CmpiOp: emit_integer_comparison,
    arith.CmpfOp: emit_float_comparison,
    arith.SelectOp: emit_select,
    **dict.fromkeys((arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp), emit_from_integer),
    arith.TruncIOp: emit_truncate,
    arith.IndexCastOp: emit_index_cast,
    **dict.fromkeys((arith.FPToSIOp, arith.FPToUIOp), emit_to_integer),
    **dict.fromkeys((arith.ExtFOp, arith.TruncFOp), emit_float_cast),
    **dict.fromkeys((arith.BitcastOp, vector.BitcastOp), emit_bitcast),
    arith.NegfOp: emit_negation,
    **dict.fromkeys((*math.Math.operations, vector.FMAOp, RemFOp), emit_function),
    **dict.fromkeys((*_BIT_COUNTS, math.AbsIOp), emit_integer_function),
}
RULES: Final = with_lane_forms(_SCALARS)
