"""Integer division and remainder, defined for all operands.

x / 0 = 0, x mod 0 = 0, and the smallest number over -1 wraps to itself, as the LLVM backend has it; C leaves both
undefined. Where the operands are known to be harmless (a constant divisor, an index that is not negative) the plain
operator is written, which C rounds towards zero; otherwise a helper function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import arith

from weft.backends.c_family import expression as c
from weft.backends.c_family.constants import number
from weft.backends.c_family.index_ranges import IndexRange
from weft.dialects.integer_arith import constant_number
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.c_family.emitter import FunctionEmitter, Rules
    from weft.backends.c_family.expression import Expr

_NAMES: Final[dict[type[Operation], str]] = {
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
    name = _NAMES[type(op)]
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


def _emit_index(emitter: FunctionEmitter, op: Operation, name: str, lhs: Expr, rhs: Expr) -> None:
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
        from weft.backends.c_family.arith_ops import index_binary

        more = IndexRange.constant(b.low - 1)
        total, _ = index_binary(emitter, op, "+", lhs, number(more.low, emitter.index_type(more)), a + more)
        emitter.define(result, c.binary("/", total, rhs, "idx32" if total.element == "idx32" else "idx64"), op)
    elif name == "floordiv" and b.is_constant and b.low > 0 and b.low & (b.low - 1) == 0:
        shift = number(b.low.bit_length() - 1, "idx32")
        emitter.define(result, c.binary(">>", lhs, shift, lhs.element), op)
    else:
        helper = emitter.module.helper(f"weft_{name}_idx64")
        emitter.define(result, c.call(helper, (lhs, rhs), "idx64"), op)


RULES: Final[Rules] = dict.fromkeys(_NAMES, emit_division)
