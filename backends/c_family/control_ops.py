"""Loops and conditions.

    scf.for %i = 0 to %n step 1 iter_args(%sum = %zero) {      ->     float sum = 0.0f;
      ...                                                             for (int64_t i = 0; i < n; ++i) {
      scf.yield %next                                                   sum = sum + A[i];
    }                                                                 }

A condition with single expressions as branches becomes `c ? a : b`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Final

from xdsl.dialects import func, scf, vector
from xdsl.dialects.builtin import IndexType, VectorType

from weft.backends.c_family import expression as c
from weft.backends.c_family.expression import CExpr
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.low_modules import check_branches, check_last, check_unrolled, trip_count
from weft.dialects import low
from weft.dialects.integer_arith import known_iterations
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xdsl.ir import Block, Operation, SSAValue

    from weft.backends.c_family.emitter import FunctionEmitter, Rules


MOST_BRANCHES: Final = 256
"""Lanes of loads and stores under masks, each a branch, in the copies of a loop that C compilers unroll. GCC 12 takes
seconds for some hundreds, and minutes for some thousands in a function."""

_MASKED: Final = (vector.MaskedLoadOp, vector.MaskedStoreOp, low.GatherOp, low.ScatterOp)


def emit_for(emitter: FunctionEmitter, op: Operation) -> None:
    bounds, inits = op.operands[:3], op.operands[3:]
    body = op.regions[0].block
    carried = [_declared(emitter, op, argument, init) for argument, init in zip(body.args[1:], inits, strict=True)]
    lower, upper, step = (emitter.expr(bound) for bound in bounds)
    known = [emitter.range_of(bound) for bound in bounds]
    trips = trip_count(op, *(bound.low if bound.is_constant else None for bound in known))
    if low.UNROLL in op.attributes:
        copies = check_unrolled(op, trips)
        if copies == 1 or copies * _masked_lanes(body) <= MOST_BRANCHES or emitter.language.lanes is None:
            emitter.line(emitter.language.unroll(copies))
    counter = body.args[0]
    narrow = None
    if not isinstance(counter.type, IndexType):
        narrow = emitter.element(counter.type, op)
    with _loop(emitter, op, (lower, upper, step), known, narrow):
        if narrow is not None and narrow != "i64":
            wide = emitter.values[counter]
            emitter.values[counter] = emitter.variable(
                counter.name_hint or "i", c.cast(emitter.language.type(narrow, op), wide, narrow), op
            )
        emitter.block_ops(body)
        assign_yielded(emitter, op, body, carried)
    for result, expr in zip(op.results, carried, strict=True):
        emitter.values[result] = expr


def _masked_lanes(block: Block) -> int:
    """Returns the lanes of loads and stores under masks, with all copies in loops that are marked to be unrolled."""
    lanes = 0
    for op in block.ops:
        if isinstance(op, _MASKED):
            lanes += prod(op.mask.type.get_shape()) if op.mask and isinstance(op.mask.type, VectorType) else 0
        elif op.regions:
            inside = sum(_masked_lanes(inner) for region in op.regions for inner in region.blocks)
            copies = known_iterations(op) if isinstance(op, scf.ForOp) and low.UNROLL in op.attributes else 1
            lanes += inside * (copies or 1)
    return lanes


@contextmanager
def _loop(
    emitter: FunctionEmitter,
    op: Operation,
    bounds: tuple[CExpr, CExpr, CExpr],
    known: Sequence[IndexRange],
    narrow: str | None = None,
) -> Generator[None]:
    lower, upper, step = bounds
    counter = op.regions[0].block.args[0]
    below, above, stride = known
    divisor = (below + IndexRange(0, 0, stride.divisor)).divisor
    fact = IndexRange(below.low, max(above.high - 1, below.low), divisor, below.soft and above.soft)
    ends = fact + stride  # including the value in the last test
    plain = narrow is None and lower.element != "idx64" != upper.element
    element = "idx32" if plain and ends.fits_int else "idx64"
    emitter.ranges[counter] = fact
    emitter.names.enter()
    name = emitter.names.fresh((counter.name_hint or "i") + ("_wide" if narrow not in (None, "i64") else ""))
    emitter.values[counter] = CExpr(name, "i64" if narrow == "i64" else element)
    advance = f"++{name}" if step.text == "1" else f"{name} += {step.text}"
    type_ = emitter.language.type(element, op)
    with emitter.block(f"for ({type_} {name} = {lower.text}; {name} < {upper.at(c.SHIFT)}; {advance}) {{"):
        yield
    emitter.names.leave()


def _declared(emitter: FunctionEmitter, op: Operation, argument: SSAValue, init: SSAValue | None) -> CExpr:
    """Initialised unless `init` is None."""
    start = None if init is None else emitter.expr(init)
    element = emitter.wide_element(argument.type, op)
    name = emitter.names.fresh(argument.name_hint or "carried")
    lanes = emitter.lanes(argument.type, op)
    if lanes:
        variable = emitter.lane_variable(name, element, lanes, op)
        if start is not None:
            emitter.lane_line(lanes, f"{variable.text} = {start.text};")
    else:
        first = "" if start is None else f" = {start.text}"
        emitter.line(f"{emitter.language.type(element, op)} {name}{first};")
        variable = CExpr(name, element)
    emitter.values[argument] = variable
    return variable


def assign_yielded(emitter: FunctionEmitter, op: Operation, body: Block, variables: Sequence[CExpr]) -> None:
    last = body.last_op
    if not variables:
        return
    if not isinstance(last, scf.YieldOp):
        raise InternalError(f"{op.name} in @{emitter.name} yields nothing for its results")
    values = [emitter.expr(value) for value in last.operands]
    for number, value in enumerate(values):
        earlier = [_name(variable) for variable in variables[:number]]
        if any(re.search(rf"\b{name}\b", value.text) for name in earlier):
            values[number] = emitter.variable(f"{_name(variables[number])}_next", value, op)
    for variable, value in zip(variables, values, strict=True):
        if variable.text == value.text:
            continue
        assign(emitter, variable.text, value.text, variable.lanes)


def _name(variable: CExpr) -> str:
    return variable.text.partition("[")[0]


def assign(emitter: FunctionEmitter, target: str, value: str, lanes: int, *, update: bool = True) -> None:
    """`update`: `target += b;` for `target + b`."""
    text = f"{target} = {value};"
    if update and value.startswith(f"{target} + ") and _is_operand(rest := value[len(target) + 3 :]):
        text = f"{target} += {rest};"
    if lanes:
        emitter.lane_line(lanes, text)
    else:
        emitter.line(text)


def _is_operand(text: str) -> bool:
    """Whether `text` is entirely the right operand of a preceding `+`."""
    depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if not depth and character in "-+<>=?&|!":
            return False
    return True


def emit_while(emitter: FunctionEmitter, op: Operation) -> None:
    """An endless loop that exits at the test; forwarded values are in outer variables."""
    test_block, body = (region.block for region in op.regions)
    carried = [
        _declared(emitter, op, argument, init) for argument, init in zip(test_block.args, op.operands, strict=True)
    ]
    results = [_declared(emitter, op, result, None) for result in op.results]
    with emitter.block("for (;;) {"):
        emitter.block_ops(test_block)
        test = test_block.last_op
        if not isinstance(test, scf.ConditionOp):
            raise InternalError(f"the first region of {op.name} in @{emitter.name} ends in no scf.condition")
        for variable, value in zip(results, test.args, strict=True):
            assign(emitter, variable.text, emitter.expr(value).text, variable.lanes)
        emitter.line(f"if (!({emitter.expr(test.condition).text})) break;")
        for argument, variable in zip(body.args, results, strict=True):
            emitter.values[argument] = variable
        emitter.block_ops(body)
        assign_yielded(emitter, op, body, carried)


def emit_if(emitter: FunctionEmitter, op: Operation) -> CExpr | None:
    condition = emitter.expr(op.operands[0])
    has_else = check_branches(op)
    if len(op.results) == 1 and (chosen := _as_expression(emitter, op, condition)) is not None:
        _set_range(emitter, op)
        return chosen
    variables = [_declared(emitter, op, result, None) for result in op.results]
    branches = [(f"if ({condition.text}) {{", op.regions[0].block, "} else {" if has_else else "}")]
    if has_else:
        branches.append(("", op.regions[1].block, "}"))
    for head, block, tail in branches:
        with emitter.block(head, tail):
            emitter.block_ops(block)
            assign_yielded(emitter, op, block, variables)
    return None


def _set_range(emitter: FunctionEmitter, op: Operation) -> None:
    ends = [region.block.last_op for region in op.regions]
    if isinstance(op.results[0].type, IndexType) and all(isinstance(end, scf.YieldOp) for end in ends):
        first, second = (emitter.range_of(end.operands[0]) for end in ends if end is not None)
        emitter.ranges[op.results[0]] = first | second


def _as_expression(emitter: FunctionEmitter, op: Operation, condition: CExpr) -> CExpr | None:
    """None, with nothing emitted, unless both branches are single expressions."""
    arms: list[CExpr] = []
    for region in op.regions:
        block = region.block
        last = block.last_op
        if not isinstance(last, scf.YieldOp) or not all(_is_expression(inner) for inner in block.ops):
            return None
        if emitter.captured(block):
            return None
        arms.append(emitter.expr(last.operands[0]))
    yes, no = arms
    if yes.element != no.element or len(yes.text) + len(no.text) > 120:
        return None
    return c.conditional(condition, yes, no)


_EXPRESSIONS: Final = (
    "arith.",
    "math.",
    "memref.load",
    "vector.load",
    "vector.broadcast",
    "low.cmp",
    "low.select",
    "scf.yield",
)


def _is_expression(op: Operation) -> bool:
    return op.name.startswith(_EXPRESSIONS) and not op.regions


def emit_end(emitter: FunctionEmitter, op: Operation) -> None:
    check_last(op, emitter.name)


def emit_parallel_for(emitter: FunctionEmitter, op: Operation) -> None:
    upper = emitter.expr(op.operands[0])
    if emitter.language.kind != "c":
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}: bind the loop to threads")
    pragma = ["#pragma omp parallel for"]
    if len(op.operands) > 1:
        condition = emitter.expr(op.operands[1]).text
        pragma = [f"{pragma[0]} if({condition})", "#else", f"(void)({condition});"]
    for line in ("#ifdef _OPENMP", *pragma, "#endif"):
        emitter.lines.append(line)
    known = (IndexRange.constant(0), emitter.range_of(op.operands[0]), IndexRange.constant(1))
    with _loop(emitter, op, (CExpr("0", "idx32"), upper, CExpr("1", "idx32")), known):
        emitter.block_ops(op.regions[0].block)


RULES: Final[Rules] = {
    scf.ForOp: emit_for,
    scf.IfOp: emit_if,
    scf.WhileOp: emit_while,
    **dict.fromkeys((scf.ConditionOp, scf.YieldOp, func.ReturnOp), emit_end),
    low.ParallelForOp: emit_parallel_for,
}
