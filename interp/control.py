"""Functions, structured control flow and index arithmetic: `func`, `scf`, `affine.apply`."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import affine, func, memref, scf
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import REASSOCIATE, IterKind, LoopKind
from weft.interp.emitter import INTERLEAVED
from weft.interp.errors import InterpreterError
from weft.interp.registry import emits

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

    from weft.dialects.intervals import Interval
    from weft.interp.emitter import Emitter


FREE_KINDS = (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)
"""Kinds of loops whose iterations may run in any order."""


@emits(func.ReturnOp)
def emit_return(emitter: Emitter, op: func.ReturnOp) -> None:
    values = "".join(f"{emitter.value(value)}, " for value in op.arguments)
    emitter.line(f"return ({values})", op)


@emits(func.CallOp)
def emit_call(emitter: Emitter, op: func.CallOp) -> None:
    arguments = ", ".join(emitter.argument(value) for value in op.arguments)
    call = f"{emitter.callee(op.callee.string_value())}({arguments})"
    results = "".join(f"{emitter.define(result)}, " for result in op.res)
    emitter.line(f"{results}= {call}" if results else call, op)


@emits(affine.ApplyOp)
def emit_apply(emitter: Emitter, op: affine.ApplyOp) -> None:
    expr = op.map.data.results[0]
    dims = list(op.mapOperands)
    if op.map.data.num_symbols:
        # Symbols are values as dimensions are: read them as further dimensions.
        count = op.map.data.num_dims
        expr = expr.replace_dims_and_symbols(
            [AffineExpr.dimension(d) for d in range(count)],
            [AffineExpr.dimension(count + s) for s in range(op.map.data.num_symbols)],
        )
    assign_affine(emitter, op.result, expr, dims, op)


def assign_affine(emitter: Emitter, result: SSAValue, expr: Any, operands: list[SSAValue], op: Operation) -> None:
    """Bind `result` to an affine expression: to its text when that is a name or a number, else to a new local."""
    if isinstance(expr, AffineDimExpr):
        emitter.alias(result, operands[expr.position])
        return
    interval = emitter.affine_range(expr, operands)
    text = emitter.affine(expr, operands)
    if isinstance(expr, AffineConstantExpr):
        emitter.bind(result, text, interval)
        return
    name = emitter.define(result, interval)
    emitter.line(f"{name} = {text}", op)


@emits(scf.YieldOp)
def emit_yield(emitter: Emitter, op: scf.YieldOp) -> None:
    """Written by the op that holds the region."""


@emits(scf.IfOp)
def emit_if(emitter: Emitter, op: scf.IfOp) -> None:
    condition = emitter.written(op.cond, op)
    results = [emitter.define(result) for result in op.results]
    with emitter.nested(f"if {condition}:", op):
        _branch(emitter, op, op.true_region.block if op.true_region.blocks else None, results)
    if op.false_region.blocks:
        with emitter.nested("else:", op):
            _branch(emitter, op, op.false_region.block, results)


def _branch(emitter: Emitter, op: scf.IfOp, block: Block | None, results: list[str]) -> None:
    if block is None:
        return
    emitter.region(block)
    last = block.last_op
    if not results or not isinstance(last, scf.YieldOp):
        return
    emitter.line(f"{', '.join(results)} = {', '.join(emitter.value(v) for v in last.operands)}", last)
    for result, value in zip(op.results, last.operands, strict=True):
        if emitter.maybe_unwritten(value):
            emitter.mark_unwritten(result)


@emits(scf.ForOp)
def emit_for(emitter: Emitter, op: scf.ForOp) -> None:
    block = op.body.block
    carried: list[str] = []
    for argument_, initial in zip(block.args[1:], op.iter_args, strict=True):
        name = emitter.define(argument_, maybe_unwritten=True)
        emitter.line(f"{name} = {emitter.value(initial)}", op)
        carried.append(name)
    low, high, step = (emitter.written(v, op) for v in (op.lb, op.ub, op.step))
    if emitter.range_of(op.step)[0] is None or cast(int, emitter.range_of(op.step)[0]) < 1:
        emitter.refuse(f"{step} < 1", bad_step, op, step)
    bounds = f"range({low}, {high})" if step == "1" else f"range({low}, {high}, {step})"
    with emitter.loop(block.args[0], bounds, op, carried) as variable:
        first, last = emitter.range_of(op.lb)[0], emitter.range_of(op.ub)[1]
        emitter.bind(block.args[0], variable, (first, None if last is None else last - 1))
        emitter.region(block)
        end = block.last_op
        if carried and isinstance(end, scf.YieldOp):
            emitter.line(f"{', '.join(carried)} = {', '.join(emitter.value(v) for v in end.operands)}", end)
    for result, name in zip(op.results, carried, strict=True):
        emitter.bind(result, name)
        emitter.mark_unwritten(result)


def bad_step(op: Operation, step: int) -> None:
    raise InterpreterError(op, f"'{op.name}' needs a positive step, got {step}")


def emit_loop(
    emitter: Emitter, variable: SSAValue, body: Block, extent: int | SSAValue, op: Operation, *, free: bool
) -> None:
    """A loop from 0 to `extent`; `free` when its iterations may run in any order.

    Threads and lanes that reduce together run one after the other: how they combine what they have is the business of
    lowering.
    """
    free = free and not combines_iterations(op)
    count, interval, below = emitter.iterations(extent, op)
    order = emitter.options.order
    if free and order in INTERLEAVED:
        _emit_interleaved(emitter, variable, body, count, interval, below, op)
        return
    iterable = f"range({count})"
    if free and order == "reversed":
        iterable = f"range({count} - 1, -1, -1)"
    elif free and order == "shuffled":
        iterable = f"{emitter.constant(shuffler(emitter.options.seed), 'shuffled')}({count})"
    with emitter.loop(variable, iterable, op) as name:
        emitter.bind(variable, name, interval, below)
        emitter.region(body)


def combines_iterations(loop: Operation) -> bool:
    """Whether a loop over threads, or over lanes that may reduce, is one of the steps of a reduction: a reduce iterator
    is bound to it, or where no block tells, its lanes update one element."""
    if not isinstance(loop, ForOp) or loop.kind.data not in (LoopKind.VECTORIZED, LoopKind.THREAD_BINDING):
        return False
    in_lanes = loop.kind.data is LoopKind.VECTORIZED
    values: list[SSAValue] = [loop.induction_variable]
    has_blocks = False
    for value in values:
        for use in value.uses:
            user = use.operation
            if not isinstance(user, BlockOp):
                values.extend(result for result in user.results if result not in values)
                continue
            has_blocks = True
            for expr, kind in zip(user.bindings.data.results, user.kinds, strict=True):
                used = (user.binding_operands[dimension] for dimension in expr.used_dims())
                if kind is IterKind.REDUCE and value in used:
                    return not in_lanes or REASSOCIATE in loop.attributes
    if has_blocks or not in_lanes:
        return False
    updated = {
        op.memref for op in loop.body.walk() if isinstance(op, memref.StoreOp) and not set(op.indices) & set(values)
    }
    return any(isinstance(op, memref.LoadOp) and op.memref in updated for op in loop.body.walk())


def _emit_interleaved(
    emitter: Emitter,
    variable: SSAValue,
    body: Block,
    count: str,
    interval: Interval,
    below: str | None,
    op: Operation,
) -> None:
    """All iterations as generators that advance in turn, from one store to the next.

    A temporary that only this loop uses is private to each iteration, as lowering gives each its own.
    """
    lane = emitter.fresh("iteration")
    name = emitter.define(variable)
    outside = emitter.interleaved
    emitter.interleaved = [*outside, name]
    with emitter.nested(f"def {lane}({name}):", op) as scope:
        scope.loops = 0
        emitter.bind(variable, name, interval, below)
        emitter.line("if False: yield")
        private = emitter.private_in(op, repeats)
        shared = [(value, emitter.make_private(value, ", ".join(emitter.interleaved))) for value in private]
        emitter.region(body)
    for value, buffer in shared:
        emitter.set_buffer(value, buffer)
    emitter.interleaved = outside
    if outside:
        emitter.line(f"yield from {emitter.helper(interleaved)}({lane}, {count})", op)
    else:
        emitter.line(f"for _ in {emitter.helper(interleaved)}({lane}, {count}): pass", op)


def repeats(op: Operation) -> bool:
    """Whether `op` is a loop that runs its body again and again on the same buffers."""
    return isinstance(op, scf.ForOp) or (isinstance(op, ForOp) and op.kind.data not in FREE_KINDS)


def interleaved(iteration: Callable[[int], Generator[None, None, None]], count: int) -> Generator[None, None, None]:
    """Advance `count` iterations in turn until all have ended."""
    running = [iteration(number) for number in range(count)]
    while running:
        yield
        running = [one for one in running if next(one, 0) is None]


def shuffler(seed: int) -> Callable[[int], list[int]]:
    """A source of permutations that is the same for the same seed."""
    generator = random.Random(seed)

    def shuffled(count: int) -> list[int]:
        order = list(range(count))
        generator.shuffle(order)
        return order

    return shuffled
