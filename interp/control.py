"""Functions, structured control flow, loops and blocks: `func`, `scf`, `tir`.

The iterators of a block instance must be in their domain if its guards hold. The init runs when all reduce iterators
are 0, or before an empty reduction (`dialects/tir_empty.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects import affine, cf, func, memref, scf
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from weft.dialects.tir import AssumeShapeOp, AssumeStridesOp, BlockOp, ForOp, InitOp, ReadsOp, WritesOp
from weft.dialects.tir_assume import AssumeOp, CheckSizeOp, affine_text
from weft.dialects.tir_empty import EmptyStart, empty_start
from weft.dialects.tir_kinds import REASSOCIATE, IterKind, LoopKind
from weft.dialects.traversal import operations_in
from weft.dialects.upstream.scf_forall import ForallOp, InParallelOp
from weft.dialects.upstream.tensor import ParallelInsertSliceOp
from weft.interp.emitter import INTERLEAVED
from weft.interp.errors import AssumptionError, InterpreterError
from weft.interp.registry import call_rule, emit_nothing, emits
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from xdsl.ir import Block, Operation, SSAValue

    from weft.dialects.intervals import Interval
    from weft.interp.emitter import Emitter


FREE_KINDS = (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)
"""Their iterations may run in any order."""


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


def assign_affine(emitter: Emitter, result: SSAValue, expr: Any, operands: list[SSAValue], op: Operation) -> None:
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


emits(scf.YieldOp, ReadsOp, WritesOp, AssumeStridesOp)(emit_nothing)


@emits(scf.IfOp)
def emit_if(emitter: Emitter, op: scf.IfOp) -> None:
    condition = emitter.written(op.cond, op)
    results = [emitter.define(result) for result in op.results]
    with emitter.nested(f"if {condition}:", op):
        branch(emitter, op, op.true_region.block if op.true_region.blocks else None, results)
    if op.false_region.blocks:
        with emitter.nested("else:", op):
            branch(emitter, op, op.false_region.block, results)


def branch(emitter: Emitter, op: Operation, block: Block | None, results: list[str]) -> None:
    if block is None:
        return
    emitter.region(block)
    last = block.last_op
    if not results or not isinstance(last, scf.YieldOp | affine.YieldOp):
        return
    emitter.assign(results, last.operands, last)
    for result, value in zip(op.results, last.operands, strict=True):
        if emitter.maybe_unwritten(value):
            emitter.mark_unwritten(result)


@emits(scf.IndexSwitchOp)
def emit_switch(emitter: Emitter, op: scf.IndexSwitchOp) -> None:
    value = emitter.written(op.arg, op)
    results = [emitter.define(result) for result in op.results]
    default, *regions = op.regions
    for at, (case, region) in enumerate(zip(op.cases.get_values(), regions, strict=True)):
        with emitter.nested(f"{'elif' if at else 'if'} {value} == {case}:", op):
            branch(emitter, op, region.block, results)
    with emitter.nested("else:" if regions else "if True:", op):
        branch(emitter, op, default.block, results)


@emits(scf.ExecuteRegionOp)
def emit_region(emitter: Emitter, op: scf.ExecuteRegionOp) -> None:
    if len(op.region.blocks) != 1:
        raise CompileError.at(op, f"'{op.name}' has {len(op.region.blocks)} blocks: branches between them do not run")
    results = [emitter.define(result) for result in op.results]
    branch(emitter, op, op.region.block, results)


@emits(scf.ForOp)
def emit_for(emitter: Emitter, op: scf.ForOp) -> None:
    low, high, step = (emitter.written(v, op) for v in (op.lb, op.ub, op.step))
    if emitter.range_of(op.step)[0] is None or cast(int, emitter.range_of(op.step)[0]) < 1:
        emitter.refuse(f"{step} < 1", f"'{op.name}' needs a positive step, got {{}}", op, step)
    bounds = f"range({low}, {high})" if step == "1" else f"range({low}, {high}, {step})"
    first, last = emitter.range_of(op.lb)[0], emitter.range_of(op.ub)[1]
    loop_with_values(emitter, op, bounds, op.iter_args, (first, None if last is None else last - 1))


def loop_with_values(
    emitter: Emitter,
    op: scf.ForOp | affine.ForOp,
    iterable: str,
    starts: Sequence[SSAValue],
    interval: Interval | None = None,
) -> None:
    block = op.body.block
    carried = [emitter.define(argument, maybe_unwritten=True) for argument in block.args[1:]]
    emitter.assign(carried, starts, op)
    with emitter.loop(block.args[0], iterable, op, carried) as variable:
        emitter.bind(block.args[0], variable, interval)
        emitter.region(block)
        end = block.last_op
        if isinstance(end, scf.YieldOp | affine.YieldOp):
            emitter.assign(carried, end.operands, end)
    for result, name in zip(op.results, carried, strict=True):
        emitter.bind(result, name)
        emitter.mark_unwritten(result)


emits(scf.ConditionOp, InParallelOp)(emit_nothing)


@emits(scf.WhileOp)
def emit_while(emitter: Emitter, op: scf.WhileOp) -> None:
    regions = (op.before_region, op.after_region)
    if any(len(region.blocks) != 1 for region in regions):
        raise CompileError.at(op, f"'{op.name}' has regions of one block each")
    before, after = (region.block for region in regions)
    carried = [emitter.define(argument) for argument in before.args]
    emitter.assign(carried, op.arguments, op)
    results = [emitter.define(result) for result in op.res]
    with emitter.endless_loop(op):
        emitter.region(before)
        test = before.last_op
        if not isinstance(test, scf.ConditionOp):
            raise CompileError.at(op, f"the first region of '{op.name}' ends in scf.condition")
        emitter.assign(results, test.args, test)
        emitter.line(f"if not {emitter.written(test.condition, test)}: break", test)
        for argument, name in zip(after.args, results, strict=True):
            emitter.bind(argument, name)
        emitter.region(after)
        last = after.last_op
        if isinstance(last, scf.YieldOp):
            emitter.assign(carried, last.operands, last)


@emits(scf.ParallelOp)
def emit_parallel(emitter: Emitter, op: scf.ParallelOp) -> None:
    names = [emitter.define(result) for result in op.res]
    emitter.assign(names, op.initVals, op)
    body = op.body.block
    bounds = zip(op.lowerBound, op.upperBound, op.step, strict=True)
    ranges = [f"range({', '.join(emitter.written(value, op) for value in bound)})" for bound in bounds]
    with emitter.nest(body.args, ranges, op, names):
        emitter.region(body)
        reduce = body.last_op
        regions = reduce.reductions if isinstance(reduce, scf.ReduceOp) else ()
        for name, value, region in zip(names, () if reduce is None else reduce.operands, regions, strict=True):
            left, right = region.block.args
            emitter.bind(left, name)
            emitter.bind(right, emitter.value(value))
            emitter.region(region.block)
            last = region.block.last_op
            if last is not None:
                emitter.line(f"{name} = {emitter.value(last.operands[0])}", last)


emits(scf.ReduceOp, scf.ReduceReturnOp)(emit_nothing)


@emits(ForallOp)
def emit_forall(emitter: Emitter, op: ForallOp) -> None:
    """Sequential; iterations read the initial shared tensors, and insert into the results."""
    body = op.body.block
    rank = len(op.lower)
    names = [emitter.define(result) for result in op.results]
    for name, argument, start in zip(names, body.args[rank:], op.outputs, strict=True):
        emitter.alias(argument, start)
        emitter.line(f"{name} = {emitter.value(start)}", op)
    targets: dict[SSAValue, str] = dict(zip(body.args[rank:], names, strict=True))
    ranges: list[str] = []
    for bound in zip(op.lower, op.upper, op.step, strict=True):
        values = (str(value) if isinstance(value, int) else emitter.written(value, op) for value in bound)
        ranges.append(f"range({', '.join(values)})")
    with emitter.nest(body.args[:rank], ranges, op, names):
        emitter.region(body)
        for insert in operations_in(body):
            if isinstance(insert, ParallelInsertSliceOp):
                target = targets[insert.dest]
                place = [emitter.written(value, insert) for value in insert.operands[2:]]
                call = emitter.call(call_rule(insert.name), insert, emitter.value(insert.source), target, *place)
                emitter.line(f"{target} = {call}", insert)


def emit_loop(
    emitter: Emitter, variable: SSAValue, body: Block, extent: int | SSAValue, op: Operation, *, free: bool
) -> None:
    """A loop from 0 to `extent`; `free` if iterations may run in any order, except threads and lanes of a reduction,
    which lowering combines."""
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
    """Whether a reduce iterator is bound to threads or lanes, or, without blocks, lanes update one element."""
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
    """Iterations are generators that advance in turn, from store to store. Temporaries used only here are private."""
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
    return isinstance(op, scf.ForOp) or (isinstance(op, ForOp) and op.kind.data not in FREE_KINDS)


def interleaved(iteration: Callable[[int], Generator[None, None, None]], count: int) -> Generator[None, None, None]:
    running = [iteration(number) for number in range(count)]
    while running:
        yield
        running = [one for one in running if next(one, 0) is None]


def shuffler(seed: int) -> Callable[[int], list[int]]:
    generator = random.Random(seed)

    def shuffled(count: int) -> list[int]:
        order = list(range(count))
        generator.shuffle(order)
        return order

    return shuffled


@emits(ForOp)
def emit_tir_for(emitter: Emitter, op: ForOp) -> None:
    for start in _empty_starts(op):
        _emit_empty_start(emitter, start, op)
    free = op.kind.data in FREE_KINDS
    emit_loop(emitter, op.induction_variable, op.body.block, op.extent, op, free=free)


def _empty_starts(loop: ForOp) -> list[EmptyStart]:
    blocks = [op for op in loop.body.walk() if isinstance(op, BlockOp) and op.extent_operands]
    return [start for block in blocks if (start := empty_start(block)) is not None and start.anchor is loop]


def _emit_empty_start(emitter: Emitter, start: EmptyStart, anchor: ForOp) -> None:
    block, init = start.block, start.block.init
    if init is None:
        return
    condition = " or ".join(f"{emitter.written(extent, anchor)} < 1" for extent in start.extents)
    with ExitStack() as stack:
        stack.enter_context(emitter.nested(f"if {condition}:", anchor))
        for loop in start.kept:
            stack.enter_context(emitter.count([loop.induction_variable], [loop.extent], loop))
        stack.enter_context(_guarded(emitter, block, start.guards))
        operands = list(block.binding_operands)
        for at, (variable, kind) in enumerate(zip(block.iter_vars, block.kinds, strict=True)):
            extent = block.extents[at]
            if kind is IterKind.REDUCE:
                emitter.bind(variable, "0", (0, 0))
            elif at in start.whole:
                stack.enter_context(emitter.count([variable], [extent], block))
            else:
                assign_affine(emitter, variable, block.bindings.data.results[at], operands, block)
        emitter.region(init.body.block)


@emits(BlockOp)
def emit_block(emitter: Emitter, op: BlockOp) -> None:
    operands = list(op.binding_operands)
    with _guarded(emitter, op, op.guards):
        for variable, expr in zip(op.iter_vars, op.bindings.data.results, strict=True):
            assign_affine(emitter, variable, expr, operands, op)
        _check_domain(emitter, op)
        for inner in op.body.block.ops:
            if isinstance(inner, InitOp):
                _emit_init(emitter, op, inner)
            else:
                emitter.operation(inner)


def _guarded(
    emitter: Emitter, block: BlockOp, guards: Sequence[tuple[AffineExpr, AffineExpr]]
) -> AbstractContextManager[object]:
    operands = block.guard_operands
    sides = ((emitter.affine(left, operands), emitter.affine(right, operands)) for left, right in guards)
    return emitter.when([f"{left} < {right}" for left, right in sides], block)


def _check_domain(emitter: Emitter, op: BlockOp) -> None:
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


def outside_domain(op: BlockOp, values: list[int], extents: list[int]) -> None:
    for position, (value, extent) in enumerate(zip(values, extents, strict=True)):
        if not 0 <= value < extent:
            variable = op.iter_vars[position].name_hint or f"#{position}"
            raise InterpreterError(
                op,
                f'block "{op.label}" runs with iterator %{variable} = {value}, but its domain is 0..{extent - 1}',
                index=values,
                shape=extents,
            )


def _emit_init(emitter: Emitter, op: BlockOp, init: InitOp) -> None:
    starts = [
        f"{emitter.value(variable)} == 0"
        for variable, kind in zip(op.iter_vars, op.kinds, strict=True)
        if kind is IterKind.REDUCE
    ]
    with emitter.when(starts, init):
        emitter.region(init.body.block)


@emits(AssumeShapeOp)
def emit_assume_shape(emitter: Emitter, op: AssumeShapeOp) -> None:
    buffer = emitter.buffer(op.buffer)
    stated = emitter.extents_of(op.buffer.type, (emitter.written(e, op) for e in op.values))  # pyright: ignore[reportArgumentType]
    refuse_other_shape(emitter, op, buffer.hint, buffer.extents, stated)
    emitter.set_buffer(op.buffer, replace(buffer, extents=stated))


def refuse_other_shape(
    emitter: Emitter, op: Operation, name: str, actual: Sequence[int | str], stated: Sequence[int | str]
) -> bool:
    """Returns False if extents are statically equal."""
    pairs = [(has, wanted) for has, wanted in zip(actual, stated, strict=True) if str(has) != str(wanted)]
    if pairs:
        lists = (f"[{', '.join(map(str, extents))}]" for extents in (actual, stated))
        same = " and ".join(f"{has} == {wanted}" for has, wanted in pairs)
        emitter.refuse(f"not ({same})", wrong_shape, op, repr(name), *lists)
    return bool(pairs)


@emits(AssumeOp)
def emit_assume(emitter: Emitter, op: AssumeOp) -> None:
    left, right = (emitter.affine(side, op.symbols) for side in (op.left, op.right))
    values = ", ".join(emitter.value(value) for value in op.symbols)
    emitter.refuse(f"not ({left} {op.kind.value} {right})", wrong_assumption, op, f"[{values}]")


@emits(CheckSizeOp)
def emit_check_size(emitter: Emitter, op: CheckSizeOp) -> None:
    size, most = emitter.value(op.size), emitter.value(op.most)
    emitter.refuse(
        f"not 0 <= {size} <= {most}", "extent " + repr(op.label.data) + " is {}, outside of 0 .. {}", op, size, most
    )


@emits(cf.AssertOp)
def emit_assert(emitter: Emitter, op: cf.AssertOp) -> None:
    emitter.refuse(f"not {emitter.value(op.arg)}", wrong_assertion, op)


def wrong_assertion(op: cf.AssertOp) -> None:
    raise AssumptionError(op, f"an assertion does not hold: {op.msg.data}")


def wrong_assumption(op: AssumeOp, values: list[int]) -> None:
    names = [value.name_hint or f"v{at}" for at, value in enumerate(op.symbols)]
    left, right = (affine_text(side, names) for side in (op.left, op.right))
    reason = f" # {op.reason.data}" if op.reason is not None else ""
    fact = CallPrecondition(f"{left} {op.kind.value} {right}{reason}")
    raise AssumptionError(op, fact.problem(dict(zip(names, values, strict=True))) or fact.relation)


def wrong_shape(op: Operation, buffer: str, actual: list[int], wanted: list[int]) -> None:
    raise InterpreterError(
        op,
        f"the shape of {buffer} is {'x'.join(map(str, actual))}, but the program assumes {'x'.join(map(str, wanted))}",
        buffer=buffer,
        shape=actual,
    )
