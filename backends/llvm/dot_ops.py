"""Dot products of neighbouring integers, each one instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from weft.backends.llvm.types import lane_list
from weft.dialects.low_dots import DotOp, is_signed
from weft.support.cpu_instructions import dot_instructions
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules


def emit_dot(emitter: FunctionEmitter, op: Operation) -> None:
    """The instruction that computes it. `low-lower-dots` leaves none for which there is no such."""
    dot = cast("DotOp", op)
    target = emitter.module.target
    signs = (is_signed(dot.lhs_as), is_signed(dot.rhs_as))
    known = dot_instructions(target)
    instruction = next((i for i in known if i.takes(dot.lanes, dot.group, *signs)), None)
    if instruction is None:
        shown = f"{dot.lanes} x {dot.group} of {dot.lhs_as} and {dot.rhs_as}"
        raise CompileError.at(op, f"low.dot: {target.cpu} has no instruction for {shown}; run low-lower-dots for it")
    acc, left, right = emitter.texts(op)
    sums, lanes = emitter.type_of(dot.acc, op), emitter.type_of(dot.rhs, op)
    if dot.is_one_group:
        group = emitter.type_of(dot.lhs, op)
        places = lane_list([at % dot.group for at in range(lanes.lanes)])
        left = emitter.emit(f"shufflevector {group.text} {left}, {group.text} poison, {places}", "groups")
    if signs != (instruction.left_signed, instruction.right_signed):
        left, right = right, left
    name = f"llvm.{instruction.name}"
    operands = [(lanes.text, left), (lanes.text, right)]
    if instruction.adds:
        operands.insert(0, (sums.text, acc))
    call = f"call {sums.text} @{name}({', '.join(f'{type_} {text}' for type_, text in operands)})"
    if instruction.adds:
        emitter.define(op.results[0], call)
    else:
        emitter.define(op.results[0], f"add {sums.text} {acc}, {emitter.emit(call, 'products')}")


RULES: Final[Rules] = {DotOp: emit_dot}
