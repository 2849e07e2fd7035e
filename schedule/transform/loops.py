"""Operations on loops."""

from __future__ import annotations

from typing import Final

from xdsl.ir import Operation

from weft.analysis.block_scopes import guards_of
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_of
from weft.schedule.recording import LoopHandle
from weft.schedule.transform.interpreter import (
    Associated,
    Interpreter,
    Results,
    each,
    handles,
    handles_each,
    has_flag,
    integer_of,
)
from weft.schedule.transform.payload import PayloadItem, PayloadLoops
from weft.schedule.transform.structured import extent_of
from weft.support.errors import CompileError

_SERIAL: Final = ("affine.for", "scf.for")


def _serial(target: PayloadItem) -> PayloadLoops | None:
    return target if isinstance(target, PayloadLoops) and len(target.loops) == 1 and target.name in _SERIAL else None


@handles("loop.unroll")
def unroll(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    factor = integer_of(op, "factor")
    if factor < 1:
        raise CompileError.at(op, f"{op_name(op)}: the factor is at least 1, got {factor}")

    def run(target: PayloadItem) -> None:
        loop = _serial(target)
        if loop is None or factor == 1:
            return
        schedule, extent = interpreter.payload.schedule, extent_of(interpreter, loop.loops[0])
        interpreter.payload.remove(loop)
        if extent is not None and factor >= extent:
            schedule.unroll(loop.loops[0])
            return
        outer, inner = schedule.split(loop.loops[0], [None, factor])
        schedule.unroll(inner)
        interpreter.payload.add_loop("scf.for", [outer], target)

    return each(interpreter, op, run)


@handles_each("loop.peel")
def peel(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    """Separate the first, or the last, partial iteration."""
    loop, payload = _serial(target), interpreter.payload
    if loop is None:
        return [[], []]
    extent = extent_of(interpreter, loop.loops[0])
    if extent is None:
        raise interpreter.failure(op, "the number of iterations is known at run time only", target)
    if extent < 2 or not (has_flag(op, "peel_front") or _is_partial(payload.loop(loop.loops[0]))):
        if has_flag(op, "fail_if_already_divisible"):
            raise interpreter.failure(op, "failed to peel: the step divides the range", target)
        return [[loop], []]
    inner = payload.structured_inside(loop)
    parts = payload.schedule.loop_partition(loop.loops[0], [1, None] if has_flag(op, "peel_front") else [None, 1])
    first, last = (payload.add_loop("scf.for", [part], target) for part in parts)
    payload.rediscover(parts, inner)
    return [[last], [first]] if has_flag(op, "peel_front") else [[first], [last]]


def _is_partial(loop: ForOp) -> bool:
    variable = [loop.induction_variable]
    blocks = operations_of(loop, BlockOp)
    return any(left.depends_on(variable) or right.depends_on(variable) for b in blocks for left, right in guards_of(b))


@handles_each("loop.pipeline")
def pipeline(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    """Ignored: code generators or processors overlap iterations."""
    if _serial(target) is None:
        raise interpreter.failure(op, "a loop is pipelined, scf.for", target)
    return [[target]]


@handles_each("loop.outline")
def outline(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    """Keep the loop instead of a call: both handles are the loop's."""
    if not isinstance(target, PayloadLoops):
        raise interpreter.failure(op, "a loop is outlined", target)
    return [[target], [target]]


@handles_each("loop.coalesce")
def coalesce(interpreter: Interpreter, op: Operation, target: PayloadItem) -> Results:
    if not isinstance(target, PayloadLoops):
        return [[target]]
    payload = interpreter.payload
    payload.inside(target)  # discovers all loops
    known = {payload.loop(one.loops[0]): one for one in payload.known if isinstance(one, PayloadLoops)}
    chain: list[LoopHandle] = list(target.loops)
    merged: list[PayloadItem] = [target]
    while (only := _only(payload.loop(chain[-1]))) is not None and (inner := known.get(only)) is not None:
        chain += inner.loops
        merged.append(inner)
    if len(chain) < 2:
        return [[target]]
    for one in merged:
        payload.remove(one)
    return [[payload.add_loop("scf.for", [payload.schedule.fuse(*chain)], target)]]


def _only(loop: ForOp) -> ForOp | None:
    inner = loop.body.block.first_op
    return inner if isinstance(inner, ForOp) and inner.next_op is None else None


@handles("loop.fuse_sibling")
def fuse_sibling(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    target, source = interpreter.single(op), interpreter.single(op, 1)
    if not isinstance(target, PayloadLoops) or not isinstance(source, PayloadLoops):
        raise interpreter.failure(op, "loops are fused", source if isinstance(target, PayloadLoops) else target)
    if len(target.loops) != len(source.loops) or target.name != source.name:
        counts = f"{target.name} of {len(target.loops)} dimensions, {source.name} of {len(source.loops)}"
        raise interpreter.failure(op, f"the loops differ: {counts}", target)
    payload = interpreter.payload
    interpreter.consume(op)
    interpreter.consume(op, 1)
    with interpreter.payload.undone_on_error():
        order = (
            [target, source]
            if _precedes(payload.loop(target.loops[0]), payload.loop(source.loops[0]))
            else [source, target]
        )
        is_parallel = payload.loop(target.loops[0]).kind.data is LoopKind.PARALLEL
        if is_parallel:
            raise interpreter.failure(op, "parallel loops are not merged; fuse the producers into one of them", target)
        merged = [payload.schedule.merge(*(one.loops[0] for one in order))]
        for one in order:
            payload.remove(one)
        return [[payload.add_loop(target.name, merged, target)]]


def _precedes(first: ForOp, second: ForOp) -> bool:
    op = first.next_op
    while op is not None and op is not second:
        op = op.next_op
    return op is second


@handles("loop.forall_to_for", "loop.forall_to_parallel")
def forall_to_loops(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Replace a forall by serial loops, or one `scf.parallel`."""
    name = "scf.for" if op_name(op).endswith("_for") else "scf.parallel"
    targets = interpreter.ops(op)
    interpreter.consume(op)
    found: list[list[PayloadItem]] = []
    for target in targets:
        if not isinstance(target, PayloadLoops) or target.name != "scf.forall":
            raise interpreter.failure(op, "expected scf.forall operation target", target)
        interpreter.payload.remove(target)
        if name == "scf.parallel":
            found.append([interpreter.payload.add_loop(name, target.loops, target)])
        else:
            serial = [interpreter.payload.schedule.fuse(loop) for loop in target.loops]
            found.append([interpreter.payload.add_loop(name, [loop], target) for loop in serial])
    if name == "scf.parallel":
        return [[one for made in found for one in made]]
    return [[made[at] for made in found if at < len(made)] for at in range(len(op.results))]
