"""Assumptions about the symbols of a function: `tir.assume`, and extents related by `tir.assume_shape`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.analysis.index import Index
from weft.dialects.index_map import Interval
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.tir_regions import AssumeShapeOp


@dataclass(frozen=True)
class Fact:
    """`index == 0`, or `index >= 0`."""

    index: Index
    is_equality: bool


def facts_about(symbol: SSAValue) -> list[Fact]:
    """The facts of the function of `symbol`, a parameter or a value at its top, in which `symbol` occurs."""
    owner = symbol.owner
    entry = owner if isinstance(owner, Block) else owner.parent
    if entry is None or not isinstance(entry.parent_op(), FuncOp):
        return []
    return [fact for fact in _facts_of(entry) if fact.index.depends_on([symbol])]


def assumed_range(symbol: SSAValue) -> Interval:
    """The interval that facts about nothing but `symbol` leave it."""
    low: int | None = None
    high: int | None = None
    for fact in facts_about(symbol):
        factor = fact.index.coefficient(symbol)
        if len(fact.index.terms) != 1 or factor not in (1, -1):
            continue
        bound = -fact.index.constant * factor
        if fact.is_equality or factor == 1:
            low = bound if low is None else max(low, bound)
        if fact.is_equality or factor == -1:
            high = bound if high is None else min(high, bound)
    return low, high


def fact_of(op: AssumeOp) -> Fact:
    """What an op states, over the values that its own are computed from."""
    operands = [Index.of(value) for value in op.symbols]
    difference = Index.of_expr(op.right, operands) - Index.of_expr(op.left, operands)
    return Fact(difference - (1 if op.kind is Relation.LESS else 0), op.kind is Relation.EQUAL)


def _facts_of(entry: Block) -> Iterator[Fact]:
    """The facts that stand at the top of a function, before its loops; an extent that is asked for twice is one."""
    extents: dict[tuple[SSAValue, int], SSAValue] = {}
    for op in _top_of(entry):
        if isinstance(op, AssumeOp):
            yield fact_of(op)
            continue
        for buffer, dimension, value in _extents_given_by(op):
            first = extents.setdefault((buffer, dimension), value)
            if first is value:
                continue  # most extents are asked for once: no index is made for them
            difference = Index.of(value) - Index.of(first)
            if difference.terms or difference.constant:
                yield Fact(difference, True)


def dynamic_extents_of(function: FuncOp) -> dict[tuple[SSAValue, int], SSAValue]:
    """Buffer and dimension -> the value of the extent, for dynamic extents that the top of a function names."""
    given = (found for op in _top_of(function.body.block) for found in _extents_given_by(op))
    return {(buffer, dimension): value for buffer, dimension, value in given}


# Ranges ask for facts thousands of times, so these read operands by place, and classes as they are.


def _top_of(entry: Block) -> Iterator[Operation]:
    """The ops before the first loop or block."""
    op: Operation | None = entry.first_op
    while op is not None and op.name not in ("tir.for", "tir.block"):
        yield op
        op = op.next_op


def _extents_given_by(op: Operation) -> Iterator[tuple[SSAValue, int, SSAValue]]:
    """Buffer, dimension and value of each dynamic extent that an op reads or states."""
    kind = type(op)
    if kind is memref.DimOp:
        buffer, dimension = op.operands
        if (constant := constant_integer(dimension)) is not None:
            yield buffer, constant, op.results[0]
    elif kind is AssumeShapeOp:
        buffer, *given = op.operands
        for dimension, extent in zip(_dynamic_dimensions(buffer), given, strict=False):
            yield buffer, dimension, extent
    elif kind is memref.AllocOp and op.operands:
        alloc = cast("memref.AllocOp", op)
        for dimension, extent in zip(_dynamic_dimensions(alloc.memref), alloc.dynamic_sizes, strict=False):
            yield alloc.memref, dimension, extent


def _dynamic_dimensions(buffer: SSAValue) -> list[int]:
    shape = buffer.type.get_shape() if isinstance(buffer.type, MemRefType) else ()
    return [dimension for dimension, extent in enumerate(shape) if extent == DYNAMIC_INDEX]


def is_parameter(value: SSAValue) -> bool:
    """Whether a value is a parameter of a function."""
    return type(value) is BlockArgument and type(value.block.parent_op()) is FuncOp
