"""Index arithmetic and conditions as IR, and small rewrites for several levels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from typing import TypeAlias, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free

from weft.analysis.index import Index, Quotient, RangeOf, Remainder
from weft.dialects.effects import only_computes
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_access import AccessPtrOp, PrefetchOp, StrideOp
from weft.dialects.low_kernel import AtomicOp
from weft.dialects.strides import Arithmetic
from weft.dialects.tir import AssumeShapeOp, ForOp
from weft.dialects.traversal import operations_in
from weft.dialects.upstream.views import extent_of
from weft.support.errors import CompileError, InternalError

BufferAccess: TypeAlias = "memref.LoadOp | memref.StoreOp | AtomicOp | AccessPtrOp | PrefetchOp"
"""Ops whose last operands are a buffer and an index for each of its dimensions."""
_INDEX = IndexType()
_NO_FLAGS = (
    (arith.SignlessIntegerBinaryOperationWithOverflow, "overflowFlags", arith.IntegerOverflowAttr("none")),
    (arith.FloatingPointLikeBinaryOperation, "fastmath", arith.FastMathFlagsAttr("none")),
)


@lru_cache(maxsize=4096)
def index_attribute(value: int) -> IntegerAttr[IndexType]:
    """An index attribute, modulo 2^64; cached, because few values are frequent."""
    return IntegerAttr((value + (1 << 63)) % (1 << 64) - (1 << 63), _INDEX)


def number_attribute(number: float | int, type_: Attribute) -> FloatAttr | IntegerAttr:
    if isinstance(type_, AnyFloat):
        return FloatAttr(number, type_)
    if isinstance(type_, IntegerType | IndexType):
        return IntegerAttr(int(number), type_)
    raise InternalError(f"no number of type {type_}")


def index_op(index: Index) -> Operation:
    """A detached `arith.constant` or `affine.apply`."""
    if index.is_constant:
        return ConstantOp.create(result_types=[_INDEX], properties={"value": index_attribute(index.constant)})
    expr, operands = index.to_expr()
    return ApplyOp.create(
        operands=operands,
        result_types=[_INDEX],
        properties={"map": AffineMapAttr(AffineMap(len(operands), 0, (expr,)))},
    )


def arith_op(op_class: type[Operation], left: SSAValue, right: SSAValue) -> Operation:
    """A detached `arith` op on numbers or vectors, without flags."""
    properties: dict[str, Attribute] = {name: none for base, name, none in _NO_FLAGS if issubclass(op_class, base)}
    return op_class.create(operands=[left, right], result_types=[left.type], properties=properties)


def divided(
    atom: Quotient | Remainder,
    numerator: SSAValue,
    divisor: SSAValue,
    ranges: RangeOf,
    binary: Callable[[type[Operation], SSAValue, SSAValue], SSAValue],
) -> SSAValue:
    """A quotient or remainder by ops of `binary`; unsigned if the numerator is non-negative."""
    low, _ = atom.numerator.range(ranges)
    unsigned = low is not None and low >= 0
    if isinstance(atom, Quotient):
        return binary(arith.DivUIOp if unsigned else arith.FloorDivSIOp, numerator, divisor)
    if unsigned:
        return binary(arith.RemUIOp, numerator, divisor)
    quotient = binary(arith.FloorDivSIOp, numerator, divisor)
    return binary(arith.SubiOp, numerator, binary(arith.MuliOp, quotient, divisor))


def materialize(index: Index) -> tuple[SSAValue, list[Operation]]:
    value = index.single_value
    if value is not None:
        return value, []
    op = index_op(index)
    return op.results[0], [op]


def index_constant(value: int) -> arith.ConstantOp:
    op = arith.ConstantOp.create(result_types=[_INDEX], properties={"value": index_attribute(value)})
    op.result.name_hint = f"c{value}" if value >= 0 else f"cm{-value}"
    return op


def bool_constant(value: bool) -> arith.ConstantOp:
    return arith.ConstantOp.create(result_types=[i1], properties={"value": IntegerAttr(int(value), i1)})


def insert_before(anchor: Operation, ops: Sequence[Operation]) -> None:
    block = anchor.parent
    if block is None or not ops:
        return
    for op in ops:
        op.location = anchor.location
    block.insert_ops_before(ops, anchor)


def result_before(op: Operation, anchor: Operation) -> SSAValue:
    """Insert a detached `op`; returns its first result."""
    insert_before(anchor, [op])
    return op.results[0]


def constant_before(value: int, anchor: Operation) -> SSAValue:
    return result_before(index_constant(value), anchor)


def extent_before(extent: int | SSAValue, anchor: Operation) -> SSAValue:
    return extent if isinstance(extent, SSAValue) else constant_before(extent, anchor)


def index_before(index: Index, anchor: Operation, hint: str | None = None) -> SSAValue:
    """An existing value, or one computed before `anchor`."""
    value, ops = materialize(index)
    insert_before(anchor, ops)
    if ops and hint is not None:
        value.name_hint = hint
    return value


def product_before(left: Index, right: Index, anchor: Operation) -> Index:
    if right.is_constant:
        return left * right.constant
    if left.is_constant:
        return right * left.constant
    product = arith.MuliOp(index_before(left, anchor), index_before(right, anchor))
    return Index({result_before(product, anchor): 1})


def dim_before(buffer: SSAValue, dimension: int, anchor: Operation) -> SSAValue:
    extent = cast("MemRefType[Attribute]", buffer.type).get_shape()[dimension]
    number = constant_before(dimension if extent == DYNAMIC_INDEX else extent, anchor)
    return number if extent != DYNAMIC_INDEX else result_before(memref.DimOp(buffer, number), anchor)


def extents_before(buffer: SSAValue, anchor: Operation) -> tuple[int | SSAValue, ...]:
    """Unknown extents are computed before `anchor`."""
    type_ = buffer.type
    if not isinstance(type_, MemRefType):
        raise CompileError.at(anchor, f"expected a buffer, got {type_}")

    def product(extents: Sequence[int | SSAValue]) -> SSAValue:
        count = Index({}, 1)
        for extent in extents:
            count = product_before(count, Index.of(extent), anchor)
        return index_before(count, anchor)

    def read(buffer: SSAValue, dimension: int) -> SSAValue:
        """Reuses a `memref.dim` or `tir.assume_shape` in the block that defines the buffer."""
        for op in (use.operation for use in buffer.uses):
            if op.parent is None or op.parent.parent_op() is not buffer.owner.parent_op():
                continue
            if isinstance(op, memref.DimOp) and constant_integer(op.index) == dimension:
                return op.result
            if isinstance(op, AssumeShapeOp):
                return op.values[op.dimensions.index(dimension)]
        return dim_before(buffer, dimension, anchor)

    return tuple(extent_of(buffer, dimension, product, read) for dimension in range(type_.get_num_dims()))


def add_at_end(block: Block, op: Operation) -> None:
    last = block.last_op
    if last is not None and last.has_trait(IsTerminator):
        block.insert_op_before(op, last)
    else:
        block.add_op(op)


def index_arithmetic(anchor: Operation) -> Arithmetic[Index]:
    """Products of varying indices are computed before `anchor`."""
    return Arithmetic(Index.of, Index.__add__, lambda left, right: product_before(left, right, anchor))


def compare_before(predicate: str, left: Index, right: Index, anchor: Operation) -> SSAValue:
    """The truth of `left predicate right`, signed."""
    return result_before(arith.CmpiOp(index_before(left, anchor), index_before(right, anchor), predicate), anchor)


def conjunction_before(conditions: Sequence[SSAValue], anchor: Operation) -> SSAValue:
    return reduce(lambda left, right: result_before(arith.AndIOp(left, right), anchor), conditions)


def disjunction_before(conditions: Sequence[SSAValue], anchor: Operation) -> SSAValue:
    return reduce(lambda left, right: result_before(arith.OrIOp(left, right), anchor), conditions)


def insert_at_start(block: Block, op: Operation) -> None:
    if op.parent is not None:
        op.detach()
    Rewriter.insert_op(op, InsertPoint.at_start(block))


@contextmanager
def end_of(block: Block) -> Generator[Operation]:
    anchor = scf.YieldOp()
    block.add_op(anchor)
    yield anchor
    Rewriter.erase_op(anchor)


@contextmanager
def branch_before(condition: SSAValue | None, anchor: Operation) -> Generator[Operation]:
    """The end of an `scf.if` before `anchor`, or `anchor` itself without condition."""
    if condition is None:
        yield anchor
        return
    end = scf.YieldOp()
    end.location = anchor.location
    insert_before(anchor, [scf.IfOp(condition, [], Region(Block([end])))])
    yield end


def if_around(condition: SSAValue, ops: Iterable[Operation], others: Iterable[Operation] | None = None) -> scf.IfOp:
    """A detached `scf.if` without results around detached ops."""
    return scf.IfOp(condition, [], [*ops, scf.YieldOp()], None if others is None else [*others, scf.YieldOp()])


def insert_where(conditions: Sequence[SSAValue], ops: Sequence[Operation], anchor: Operation) -> None:
    if conditions:
        ops = [if_around(conjunction_before(conditions, anchor), ops)]
        ops[0].location = anchor.location
    Rewriter.insert_op(ops, InsertPoint.before(anchor))


def detached_ops(block: Block) -> list[Operation]:
    ops = list(block.ops)
    for op in ops:
        op.detach()
    return ops


def dissolve(loop: ForOp, variable: SSAValue) -> None:
    Rewriter.inline_block(loop.body.block, InsertPoint.before(loop), [variable])
    Rewriter.erase_op(loop)


def erase_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if op.results and all(result.first_use is None for result in op.results) and is_side_effect_free(op):
            Rewriter.erase_op(op)


def replace_operands(ops: Iterable[Operation], mapping: Mapping[SSAValue, SSAValue]) -> None:
    for op in [inner for root in ops for inner in operations_in(root)]:
        for position, operand in enumerate(op.operands):
            if operand in mapping:
                op.operands[position] = mapping[operand]


def defining_block(value: SSAValue) -> Block | None:
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner


def erase_if_unused(unused: Iterable[Operation | SSAValue]) -> None:
    """Erase pure ops and values without uses, then their operands, recursively."""
    pending = list(unused)
    while pending:
        item = pending.pop()
        op = item.owner if isinstance(item, SSAValue) else item
        if isinstance(op, Block) or op.parent is None or not only_computes(op):
            continue
        if all(result.first_use is None for result in op.results):
            pending.extend(op.operands)
            Rewriter.erase_op(op)


def erase_unused_pointers(values: Iterable[SSAValue]) -> None:
    """Erase unused pointers and strides."""
    for value in dict.fromkeys(values):
        op = value.owner
        if value.first_use is None and isinstance(op, AccessPtrOp | StrideOp):
            indices = list(op.operands[1:])
            Rewriter.erase_op(op)
            erase_if_unused(indices)


def set_access(op: BufferAccess, buffer: SSAValue, indices: Iterable[SSAValue]) -> None:
    """Redirect an access, and erase what only the old indices used."""
    old = list(op.indices)
    op.operands = [*op.operands[: len(op.operands) - len(old) - 1], buffer, *indices]
    erase_if_unused(old)


def divided_up(index: Index, divisor: int) -> Index:
    """Ceiling division by a positive divisor."""
    return (index + (divisor - 1)) // divisor
