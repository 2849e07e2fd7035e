"""Helpers of the tir lowering passes: functions to lower, loop nests, small ops, ranges of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from weft.analysis.facts import assumed_range
from weft.analysis.index import Atom, Index, Quotient, RangeOf
from weft.dialects.effects import only_computes
from weft.dialects.index_map import Interval, add_intervals, scale_interval
from weft.dialects.levels import allowed_at
from weft.dialects.low import PARAMS, stride_symbols, symbols_of
from weft.dialects.low_kernel import KERNEL, ThreadIdOp
from weft.dialects.tir import ForOp, range_of_index
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.passes.index_ops import index_attribute, materialize

LOCAL = StringAttr("local")
"""Memory space of buffers that live in registers or on the stack."""
_INDEX = IndexType()
_OWN_DIALECTS = ("tir.", "low.")


def tir_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions of `module` that tir passes work on: those of `buffer_functions` that hold an op of the level, or
    are marked as `TIR_FUNCTION`. All others belong to somebody else."""
    for function in buffer_functions(module):
        if TIR_FUNCTION in function.attributes or any(map(_is_of_tir, function.body.walk())):
            yield function


def _is_of_tir(op: Operation) -> bool:
    return op.name.startswith(_OWN_DIALECTS) and allowed_at("tir", op.name)


def buffer_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions of `module` that can be at tir level: with a body, over buffers, not lowered yet, no kernels."""
    for op in module.ops:
        if (
            isinstance(op, FuncOp)
            and op.body.blocks
            and PARAMS not in op.attributes
            and KERNEL not in op.attributes
            and not any(isinstance(t, TensorType) for t in (*op.function_type.inputs, *op.function_type.outputs))
        ):
            yield op


def index_constant(value: int) -> arith.ConstantOp:
    op = arith.ConstantOp.create(result_types=[_INDEX], properties={"value": index_attribute(value)})
    op.result.name_hint = f"c{value}" if value >= 0 else f"cm{-value}"
    return op


def bool_constant(value: bool) -> arith.ConstantOp:
    return arith.ConstantOp.create(result_types=[i1], properties={"value": IntegerAttr(int(value), i1)})


def static_value(value: SSAValue) -> int | None:
    """The integer that `value` is, when an `arith.constant` defines it."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.value
        if isinstance(attribute, IntegerAttr):
            return attribute.value.data
    return None


def insert_before(anchor: Operation, ops: Sequence[Operation]) -> None:
    """Insert `ops` before `anchor`, as if written where it was written."""
    block = anchor.parent
    if block is None or not ops:
        return
    for op in ops:
        op.location = anchor.location
    block.insert_ops_before(ops, anchor)


def index_before(index: Index, anchor: Operation, hint: str | None = None) -> SSAValue:
    """The value of `index`, computed just before `anchor` where it does not exist yet."""
    value, ops = materialize(index)
    insert_before(anchor, ops)
    if ops and hint is not None:
        value.name_hint = hint
    return value


def compare_before(predicate: str, left: Index, right: Index, anchor: Operation) -> SSAValue:
    """The truth of `left predicate right` (signed), computed just before `anchor`."""
    op = arith.CmpiOp(index_before(left, anchor), index_before(right, anchor), predicate)
    insert_before(anchor, [op])
    return op.result


def conjunction_before(conditions: Sequence[SSAValue], anchor: Operation) -> SSAValue:
    """All `conditions` (at least one) at once, computed just before `anchor`."""
    result = conditions[0]
    for condition in conditions[1:]:
        op = arith.AndIOp(result, condition)
        insert_before(anchor, [op])
        result = op.result
    return result


def disjunction_before(conditions: Sequence[SSAValue], anchor: Operation) -> SSAValue:
    """Any of `conditions` (at least one), computed just before `anchor`."""
    result = conditions[0]
    for condition in conditions[1:]:
        op = arith.OrIOp(result, condition)
        insert_before(anchor, [op])
        result = op.result
    return result


def if_around(condition: SSAValue, ops: Iterable[Operation]) -> scf.IfOp:
    """A detached `scf.if` without results that holds `ops`, which are detached."""
    body = Block()
    body.add_ops(ops)
    body.add_op(scf.YieldOp())
    return scf.IfOp(condition, [], Region(body))


def detached_ops(block: Block) -> list[Operation]:
    """The operations of `block`, taken out of it."""
    ops = list(block.ops)
    for op in ops:
        op.detach()
    return ops


def loops_around(op: Operation) -> list[ForOp]:
    """The unbroken chain of loops above `op`, innermost first: up to the first parent that is no loop."""
    loops: list[ForOp] = []
    parent = op.parent_op()
    while isinstance(parent, ForOp):
        loops.append(parent)
        parent = parent.parent_op()
    return loops


def defining_block(value: SSAValue) -> Block | None:
    return (
        value.block
        if isinstance(value, BlockArgument)
        else value.owner.parent_block()
        if isinstance(value.owner, Operation)
        else None
    )


def is_defined_inside(value: SSAValue, op: Operation) -> bool:
    """Whether `value` is defined in a region of `op`."""
    block = defining_block(value)
    while block is not None:
        parent = block.parent_op()
        if parent is op:
            return True
        block = None if parent is None else parent.parent_block()
    return False


def erase_if_unused(ops: Iterable[Operation]) -> None:
    """Erase those of `ops` that only compute values nobody uses, and what only they used."""
    pending = list(ops)
    while pending:
        op = pending.pop()
        if op.parent is None or not only_computes(op) or any(r.first_use is not None for r in op.results):
            continue
        pending.extend(operand.op for operand in op.operands if isinstance(operand, OpResult))
        op.detach()
        op.erase()


def buffer_type(value: SSAValue) -> MemRefType:
    """The type of a buffer value."""
    if not isinstance(value.type, MemRefType):
        raise TypeError(f"{value} is no buffer")
    return value.type


def range_of(value: SSAValue) -> Interval:
    """The range of an index value: loops and iterators by their extents, dimensions are not negative."""
    return _range_of(value, range_of)


def remembered_ranges() -> RangeOf:
    """`range_of` with a memory, for questions between which no extent of a loop changes."""
    known: dict[SSAValue, Interval] = {}

    def ranges(value: SSAValue) -> Interval:
        if value not in known:
            known[value] = _range_of(value, ranges)
        return known[value]

    return ranges


def _range_of(value: SSAValue, ranges: RangeOf) -> Interval:
    if isinstance(value, BlockArgument):
        owner = value.block.parent_op()
        if isinstance(owner, ForOp) and owner.dynamic_extent is not None:
            high = Index.of(owner.dynamic_extent).range(ranges)[1]
            return 0, None if high is None else max(high - 1, 0)
        if isinstance(owner, FuncOp):
            return _assumed(value, _range_of_parameter(owner, value))
        return range_of_index(value)
    op = value.owner
    if isinstance(op, memref.DimOp):
        return _assumed(value, (0, None))
    if isinstance(op, ThreadIdOp):
        return 0, None if op.static_extent is None else op.static_extent - 1
    if isinstance(op, arith.MinSIOp | arith.MaxSIOp) and isinstance(value.type, IndexType):
        return _range_of_choice(op, ranges)
    if isinstance(op, arith.MuliOp):
        left, right = Index.of(op.lhs).range(ranges), Index.of(op.rhs).range(ranges)
        if left[0] is not None and right[0] is not None and left[0] >= 0 and right[0] >= 0:
            high = None if left[1] is None or right[1] is None else left[1] * right[1]
            return left[0] * right[0], high
    return None, None


def _assumed(symbol: SSAValue, known: Interval) -> Interval:
    """What is known of a symbol, and what the function assumes of it."""
    lows, highs = zip(known, assumed_range(symbol), strict=True)
    return max((low for low in lows if low is not None), default=None), min(
        (high for high in highs if high is not None), default=None
    )


def _range_of_parameter(function: FuncOp, value: BlockArgument) -> Interval:
    """The extents that a flat function takes after its parameters are not negative; strides may be."""
    if KERNEL in function.attributes:
        return (0, None) if value.index >= len(function.args) - len(symbols_of(function)) else (None, None)
    params = function.attributes.get(PARAMS)
    if not isinstance(params, ArrayAttr) or value.index < len(params):
        return None, None
    strides = stride_symbols(function)
    if strides and symbols_of(function)[value.index - len(params)] in strides:
        return None, None
    return 0, None


def _range_of_choice(op: arith.MinSIOp | arith.MaxSIOp, ranges: RangeOf) -> Interval:
    sides = [Index.of(op.lhs).range(ranges), Index.of(op.rhs).range(ranges)]
    lows, highs = [s[0] for s in sides], [s[1] for s in sides]
    known_lows = [b for b in lows if b is not None]
    known_highs = [b for b in highs if b is not None]
    if isinstance(op, arith.MinSIOp):
        return (min(known_lows) if len(known_lows) == 2 else None), (min(known_highs) if known_highs else None)
    return (max(known_lows) if known_lows else None), (max(known_highs) if len(known_highs) == 2 else None)


def range_of_difference(left: Index, right: Index) -> Interval:
    """The range of `left - right`, which also knows how far quotients of neighbouring indices lie apart.

    `(x + d) floordiv c - x floordiv c` lies in `d floordiv c .. d ceildiv c`.
    """
    difference = (left - right).simplified(range_of)
    rest: dict[Atom, int] = dict(difference.terms)
    interval: Interval = (difference.constant, difference.constant)
    quotients = [(atom, f) for atom, f in rest.items() if isinstance(atom, Quotient)]
    for one, factor in quotients:
        for other, opposite in quotients:
            if factor <= 0 or opposite != -factor or other.divisor != one.divisor or not {one, other} <= rest.keys():
                continue
            distance = one.numerator - other.numerator
            if distance.is_constant:
                del rest[one], rest[other]
                reach = (distance.constant // one.divisor, -(-distance.constant // one.divisor))
                interval = add_intervals(interval, scale_interval(reach, factor))
                break
    return add_intervals(interval, Index(rest).range(range_of))


def divided_up(index: Index, divisor: int) -> Index:
    """The quotient of `index` by a positive divisor, rounded up."""
    return (index + (divisor - 1)) // divisor
