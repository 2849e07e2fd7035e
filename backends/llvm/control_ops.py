"""Loops and conditions.

Loops are rotated (the condition is at the end), so that LLVM need not; those that may have no iterations are guarded.

    scf.for %i = 0 to %n step 1 { ... }   ->     %some = icmp slt i64 0, %n
                                                 br i1 %some, label %i.body, label %i.exit
                                               i.body:
                                                 %i = phi i64 [ 0, %entry ], [ %i.next, %i.body ]
                                                 ...
                                                 %i.next = add nsw i64 %i, 1
                                                 %i.more = icmp slt i64 %i.next, %n
                                                 br i1 %i.more, label %i.body, label %i.exit
                                               i.exit:
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import func, scf

from weft.backends.llvm.emitter import NO_UNROLL, NO_VECTORIZE, UNROLL_FULL
from weft.backends.llvm.types import I64
from weft.backends.low_modules import check_branches, check_last, check_unrolled, trip_count
from weft.dialects.integer_arith import known_number
from weft.dialects.low import UNROLL
from weft.support.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Block, Operation

    from weft.backends.llvm.emitter import FunctionEmitter, Rules
    from weft.backends.llvm.types import ValueType


def emit_for(emitter: FunctionEmitter, op: Operation) -> None:
    bounds, inits = op.operands[:3], op.operands[3:]
    body = op.regions[0].block
    type_ = emitter.type_of(bounds[0], op)
    trips = trip_count(op, *(known_number(bound) for bound in bounds))
    if UNROLL in op.attributes:
        check_unrolled(op, trips)
    lower, upper, step = (emitter.text(bound) for bound in bounds)
    initial = [emitter.text(init) for init in inits]
    if trips == 0:
        for result, text in zip(op.results, initial, strict=True):
            emitter.bind(result, text)
        return
    write_loop(emitter, op, body, type_, (lower, upper, step), initial, guarded=trips is None)


def write_loop(
    emitter: FunctionEmitter,
    op: Operation,
    body: Block,
    type_: ValueType,
    bounds: tuple[str, str, str],
    initial: Sequence[str],
    *,
    guarded: bool,
) -> None:
    """The first argument of `body` is the induction variable. `guarded`: the loop may have no iterations."""
    lower, upper, step = bounds
    counter, *carried = body.args
    hint = counter.name_hint or "i"
    names = emitter.names
    body_label, exit_label = names.fresh(f"{hint}.body"), names.fresh(f"{hint}.exit")
    before = emitter.block
    if guarded:
        some = emitter.emit(f"icmp slt {type_.text} {lower}, {upper}", f"{hint}.some")
        emitter.line(f"br i1 {some}, label %{body_label}, label %{exit_label}")
    else:
        emitter.line(f"br label %{body_label}")
    emitter.start_block(body_label)
    variable = emitter.name_of(counter, "i")
    carried_types = [emitter.type_of(argument, op) for argument in carried]
    carried_names = [emitter.name_of(argument, "carried") for argument in carried]
    phis_at = len(emitter.lines)

    outer_vectors, emitter.holds_vectors = emitter.holds_vectors, False
    emitter.block_ops(body)
    vectors, emitter.holds_vectors = emitter.holds_vectors, emitter.holds_vectors or outer_vectors
    yielded = yielded_texts(emitter, body)

    latch = emitter.block
    next_, more = _advance(emitter, type_, variable, upper, step, hint)
    unrolling = [UNROLL_FULL] if UNROLL in op.attributes else [NO_UNROLL] if vectors else []
    hints = unrolling + ([NO_VECTORIZE] if vectors else [])
    emitter.line(f"br i1 {more}, label %{body_label}, label %{exit_label}{emitter.module.metadata.loop(*hints)}")
    phis = [f"  {variable} = phi {type_.text} [ {lower}, %{before} ], [ {next_}, %{latch} ]"]
    for name, carried_type, first, last in zip(carried_names, carried_types, initial, yielded, strict=True):
        phis.append(f"  {name} = phi {carried_type.text} [ {first}, %{before} ], [ {last}, %{latch} ]")
    emitter.lines[phis_at:phis_at] = phis
    emitter.start_block(exit_label)
    for result, carried_type, first, last in zip(op.results, carried_types, initial, yielded, strict=True):
        if guarded:
            emitter.define(result, f"phi {carried_type.text} [ {first}, %{before} ], [ {last}, %{latch} ]")
        else:
            emitter.bind(result, last)


def _advance(
    emitter: FunctionEmitter, type_: ValueType, variable: str, upper: str, step: str, hint: str
) -> tuple[str, str]:
    """The next value, and the condition of the next iteration."""
    if type_ is I64:
        # No buffer has close to 2^63 elements, so the addition does not overflow.
        next_ = emitter.emit(f"add nsw i64 {variable}, {step}", f"{hint}.next")
        return next_, emitter.emit(f"icmp slt i64 {next_}, {upper}", f"{hint}.more")
    # A narrow induction variable may overflow: compare the remaining distance, which is positive, as an unsigned
    # integer.
    left = emitter.emit(f"sub {type_.text} {upper}, {variable}", f"{hint}.left")
    more = emitter.emit(f"icmp ugt {type_.text} {left}, {step}", f"{hint}.more")
    return emitter.emit(f"add {type_.text} {variable}, {step}", f"{hint}.next"), more


def emit_while(emitter: FunctionEmitter, op: Operation) -> None:
    """The first region, with the test at its end, is the loop header; the second one branches back to it."""
    test_block, body = (region.block for region in op.regions)
    names = emitter.names
    head, body_label, exit_label = (names.fresh(f"while.{part}") for part in ("test", "body", "exit"))
    before, initial = emitter.block, [emitter.text(value) for value in op.operands]
    emitter.line(f"br label %{head}")
    emitter.start_block(head)
    types = [emitter.type_of(argument, op) for argument in test_block.args]
    carried = [emitter.name_of(argument, "carried") for argument in test_block.args]
    phis_at = len(emitter.lines)
    emitter.block_ops(test_block)
    test = test_block.last_op
    if not isinstance(test, scf.ConditionOp):
        raise InternalError(f"the first region of {op.name} in @{emitter.name} ends in no scf.condition")
    condition, *given = emitter.texts(test)
    emitter.line(f"br i1 {condition}, label %{body_label}, label %{exit_label}")
    emitter.start_block(body_label)
    for argument, text in zip(body.args, given, strict=True):
        emitter.bind(argument, text)
    emitter.block_ops(body)
    yielded, latch = yielded_texts(emitter, body), emitter.block
    emitter.line(f"br label %{head}")
    emitter.lines[phis_at:phis_at] = [
        f"  {name} = phi {type_.text} [ {first}, %{before} ], [ {last}, %{latch} ]"
        for name, type_, first, last in zip(carried, types, initial, yielded, strict=True)
    ]
    emitter.start_block(exit_label)
    for result, text in zip(op.results, given, strict=True):
        emitter.bind(result, text)


def emit_if(emitter: FunctionEmitter, op: Operation) -> None:
    condition = emitter.text(op.operands[0])
    names = emitter.names
    then_label, end_label = names.fresh("then"), names.fresh("end")
    has_else = check_branches(op)
    else_label = names.fresh("else") if has_else else end_label
    emitter.line(f"br i1 {condition}, label %{then_label}, label %{else_label}")
    branches = [(then_label, op.regions[0].block)]
    if has_else:
        branches.append((else_label, op.regions[1].block))
    incoming: list[tuple[str, list[str]]] = []
    for label, block in branches:
        emitter.start_block(label)
        emitter.block_ops(block)
        incoming.append((emitter.block, yielded_texts(emitter, block)))
        emitter.line(f"br label %{end_label}")
    emitter.start_block(end_label)
    for number, result in enumerate(op.results):
        type_ = emitter.type_of(result, op)
        arms = ", ".join(f"[ {texts[number]}, %{label} ]" for label, texts in incoming)
        emitter.define(result, f"phi {type_.text} {arms}")


def yielded_texts(emitter: FunctionEmitter, block: Block) -> list[str]:
    last = block.last_op
    return emitter.texts(last) if isinstance(last, scf.YieldOp) else []


def emit_yield(emitter: FunctionEmitter, op: Operation) -> None:
    check_last(op, emitter.name)


def emit_return(emitter: FunctionEmitter, op: Operation) -> None:
    check_last(op, emitter.name)
    emitter.leave()


RULES: Final[Rules] = {
    scf.ForOp: emit_for,
    scf.IfOp: emit_if,
    scf.WhileOp: emit_while,
    scf.ConditionOp: emit_yield,
    scf.YieldOp: emit_yield,
    func.ReturnOp: emit_return,
}
