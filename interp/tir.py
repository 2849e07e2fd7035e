"""`tir`: loops and blocks.

A block instance runs when its guards hold. Its iterators must then lie in their domain, and the init runs in the
instances where all reduce iterators are 0, or, for a reduction over nothing, in front of it (`dialects/tir_empty.py`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from weft.dialects import tir
from weft.dialects.tir_assume import AssumeOp, affine_text
from weft.dialects.tir_empty import EmptyStart, empty_start
from weft.dialects.tir_kinds import IterKind
from weft.dialects.tir_regions import AccessRegionOp, AssumeShapeOp, AssumeStridesOp, ReadsOp, WritesOp
from weft.interp.control import FREE_KINDS, assign_affine, emit_loop
from weft.interp.errors import AssumptionError, InterpreterError
from weft.interp.registry import emits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from xdsl.ir import Operation
    from xdsl.ir.affine import AffineExpr

    from weft.interp.emitter import Emitter


@emits(tir.ForOp)
def emit_for(emitter: Emitter, op: tir.ForOp) -> None:
    for start in _empty_starts(op):
        _emit_empty_start(emitter, start, op)
    free = op.kind.data in FREE_KINDS
    emit_loop(emitter, op.induction_variable, op.body.block, op.extent, op, free=free)


def _empty_starts(loop: tir.ForOp) -> list[EmptyStart]:
    """The reductions that `loop` is the outermost loop of, and that may be over nothing."""
    blocks = [op for op in loop.body.walk() if isinstance(op, tir.BlockOp) and op.extent_operands]
    return [start for block in blocks if (start := empty_start(block)) is not None and start.anchor is loop]


def _emit_empty_start(emitter: Emitter, start: EmptyStart, anchor: tir.ForOp) -> None:
    """The init for every spatial point, when an extent of the reduction is 0."""
    block, init = start.block, start.block.init
    if init is None:
        return
    condition = " or ".join(f"{emitter.written(extent, anchor)} < 1" for extent in start.extents)
    with ExitStack() as stack:
        stack.enter_context(emitter.nested(f"if {condition}:", anchor))
        for loop in start.kept:
            stack.enter_context(emitter.count(loop.induction_variable, loop.extent, loop))
        stack.enter_context(_guarded(emitter, block, start.guards))
        operands = list(block.binding_operands)
        for at, (variable, kind) in enumerate(zip(block.iter_vars, block.kinds, strict=True)):
            extent = block.extents[at]
            if kind is IterKind.REDUCE:
                emitter.bind(variable, "0", (0, 0))
            elif at in start.whole:
                stack.enter_context(emitter.count(variable, extent, block))
            else:
                assign_affine(emitter, variable, block.bindings.data.results[at], operands, block)
        emitter.region(init.body.block)


@emits(tir.BlockOp)
def emit_block(emitter: Emitter, op: tir.BlockOp) -> None:
    operands = list(op.binding_operands)
    with _guarded(emitter, op, op.guards):
        for variable, expr in zip(op.iter_vars, op.bindings.data.results, strict=True):
            assign_affine(emitter, variable, expr, operands, op)
        _check_domain(emitter, op)
        for inner in op.body.block.ops:
            if isinstance(inner, tir.InitOp):
                _emit_init(emitter, op, inner)
            else:
                emitter.operation(inner)


def _guarded(
    emitter: Emitter, block: tir.BlockOp, guards: Sequence[tuple[AffineExpr, AffineExpr]]
) -> AbstractContextManager[object]:
    """A scope that runs where the guards of a block hold."""
    operands = block.guard_operands
    sides = ((emitter.affine(left, operands), emitter.affine(right, operands)) for left, right in guards)
    return emitter.when([f"{left} < {right}" for left, right in sides], block)


def _check_domain(emitter: Emitter, op: tir.BlockOp) -> None:
    """A line that checks the iterators, where ranges do not prove that they lie in their domain."""
    checks: list[str] = []
    extents: list[str] = []
    for variable, extent in zip(op.iter_vars, op.extents, strict=True):
        name = emitter.value(variable)
        low, high = emitter.range_of(variable)
        if isinstance(extent, int):
            extents.append(str(extent))
            inside = low is not None and high is not None and low >= 0 and high < extent
            known = (0, extent - 1)
        else:
            extents.append(emitter.written(extent, op))
            inside = low is not None and low >= 0 and emitter.below_of(variable) == extents[-1]
            known = (0, None)
        if not inside:
            checks.append(f"0 <= {name} < {extents[-1]}")
            emitter.bind(variable, name, known, None if isinstance(extent, int) else extents[-1])
    if checks:
        values = ", ".join(emitter.value(variable) for variable in op.iter_vars)
        place = (f"[{values}]", f"[{', '.join(extents)}]")
        emitter.refuse(f"not ({' and '.join(checks)})", outside_domain, op, *place)


def outside_domain(op: tir.BlockOp, values: list[int], extents: list[int]) -> None:
    for position, (value, extent) in enumerate(zip(values, extents, strict=True)):
        if not 0 <= value < extent:
            variable = op.iter_vars[position].name_hint or f"#{position}"
            raise InterpreterError(
                op,
                f'block "{op.label}" runs with iterator %{variable} = {value}, but its domain is 0..{extent - 1}',
                index=values,
                shape=extents,
            )


def _emit_init(emitter: Emitter, op: tir.BlockOp, init: tir.InitOp) -> None:
    starts = [
        f"{emitter.value(variable)} == 0"
        for variable, kind in zip(op.iter_vars, op.kinds, strict=True)
        if kind is IterKind.REDUCE
    ]
    with emitter.when(starts, init):
        emitter.region(init.body.block)


@emits(ReadsOp, WritesOp)
def emit_access_region(emitter: Emitter, op: AccessRegionOp) -> None:
    """States a fact about the block; nothing runs."""


@emits(AssumeShapeOp)
def emit_assume_shape(emitter: Emitter, op: AssumeShapeOp) -> None:
    buffer = emitter.buffer(op.buffer)
    stated = emitter.extents_of(op.buffer.type, (emitter.written(e, op) for e in op.extents))  # pyright: ignore[reportArgumentType]
    refuse_other_shape(emitter, op, buffer.hint, buffer.extents, stated)
    emitter.set_buffer(op.buffer, replace(buffer, extents=stated))


def refuse_other_shape(
    emitter: Emitter, op: Operation, name: str, actual: Sequence[int | str], stated: Sequence[int | str]
) -> bool:
    """A line that compares the extents of `name` with those that the program states; whether there was any to write."""
    pairs = [(has, wanted) for has, wanted in zip(actual, stated, strict=True) if str(has) != str(wanted)]
    if pairs:
        lists = (f"[{', '.join(map(str, extents))}]" for extents in (actual, stated))
        same = " and ".join(f"{has} == {wanted}" for has, wanted in pairs)
        emitter.refuse(f"not ({same})", wrong_shape, op, repr(name), *lists)
    return bool(pairs)


@emits(AssumeStridesOp)
def emit_assume_strides(emitter: Emitter, op: AssumeStridesOp) -> None:
    """Says where the elements of a caller's array lie; the interpreter works on copies."""


@emits(AssumeOp)
def emit_assume(emitter: Emitter, op: AssumeOp) -> None:
    left, right = (emitter.affine(side, op.symbols) for side in (op.left, op.right))
    values = ", ".join(emitter.value(value) for value in op.symbols)
    emitter.refuse(f"not ({left} {op.kind.value} {right})", wrong_assumption, op, f"[{values}]")


def wrong_assumption(op: AssumeOp, values: list[int]) -> None:
    names = [value.name_hint or f"#{at}" for at, value in enumerate(op.symbols)]
    sides = (affine_text(side, names) for side in (op.left, op.right))
    got = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    raise AssumptionError(op, f"expected {f' {op.kind.value} '.join(sides)}, got {got}")


def wrong_shape(op: Operation, buffer: str, actual: list[int], wanted: list[int]) -> None:
    raise InterpreterError(
        op,
        f"the shape of {buffer} is {'x'.join(map(str, actual))}, but the program assumes {'x'.join(map(str, wanted))}",
        buffer=buffer,
        shape=actual,
    )
