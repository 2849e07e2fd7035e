"""Rules that replace functions from bytes to bytes by tables of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import i16
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.analysis.graph_patterns import arguments_of, array_of_constant
from weft.analysis.operator_patterns import OperatorKind
from weft.dialects.graph import ConstantOp, splat_value
from weft.dialects.graph_shapes import DimsAttr, shape_of
from weft.dialects.graph_traits import ViewLike
from weft.passes.graph.graph_fold_constants import fold_constants
from weft.passes.graph.operator_properties import pattern_of
from weft.passes.graph.operators import dtype_of, made, made_constant, name_of, properties_of, source_of, type_of
from weft.passes.graph.rewriting import Replacement, Rule
from weft.texpr.graph_operators import Operator

ENTRIES: Final = 256
_LEAST: Final = {"uint8": 0, "int8": -128}
"""The least number of each type of bytes."""
_MOST_OPERATORS: Final = 64
"""Limit of the operators that a table replaces, which bounds the search."""


def looked_up(op: Operation) -> bool:
    if not isinstance(op, Operator) or name_of(op) != "take" or arguments_of(op)["mode"] != "fast":
        return False
    table = op.operands[0]
    is_table = isinstance(table.owner, ConstantOp) and type_of(table).get_shape() == (ENTRIES,)
    return is_table and dtype_of(table) in _LEAST


def _is_number(value: SSAValue) -> bool:
    if isinstance(value.owner, ConstantOp):
        return splat_value(value.owner) is not None
    op = source_of(value, "dequantize")
    return op is not None and all(map(_is_number, op.operands))


def _sources(op: Operation) -> list[SSAValue] | None:
    """Returns what an elementwise operator reads at the index of its result, beyond tables, if other operands are
    numbers."""
    if not isinstance(op, Operator) or len(op.results) != 1:
        return None
    if looked_up(op):
        return [op.operands[1]]
    if op.has_trait(ViewLike):
        return list(op.operands)
    pattern = pattern_of(op)
    if pattern is None or pattern.kind > OperatorKind.BROADCAST:
        return None
    found = [value for value in op.operands if not _is_number(value)]
    shape = type_of(op.results[0]).get_shape()
    return found if found and all(type_of(value).get_shape() == shape for value in found) else None


def _without_views(value: SSAValue) -> SSAValue:
    while (view := source_of(value, ViewLike)) is not None and len(view.operands) == 1:
        value = view.operands[0]
    return value


def _function_of_bytes(op: Operation) -> tuple[SSAValue, list[Operator]] | None:
    """Returns the nearest bytes that determine the elements of `op`, and the operators after them."""
    block, order = op.parent_block(), dict[Operation, None]()
    pending, leaves = [op], set[SSAValue]()
    while True:
        while pending:
            current = pending.pop()
            sources = _sources(current)
            if sources is None or len(order) == _MOST_OPERATORS:
                return None
            order[current] = None
            for value in map(_without_views, sources):
                if dtype_of(value) in _LEAST:
                    leaves.add(value)
                elif not isinstance(value.owner, Operation) or value.owner.parent_block() is not block:
                    return None
                elif value.owner not in order:
                    pending.append(value.owner)
        if len(leaves) == 1:
            (leaf,) = leaves
            if not leaf.has_one_use() or not isinstance(leaf.owner, Operation) or not looked_up(leaf.owner):
                break
        # A tensor computed from bytes determines no more than they do. The last one is no source of the others.
        owners = [value.owner for value in leaves]  # a table of a table is one table
        inner = [owner for owner in owners if isinstance(owner, Operation) and owner.parent_block() is block]
        if len(inner) + 1 < len(owners):
            return None
        last = inner[0]
        for owner in inner[1:]:
            last = owner if last.is_before_in_block(owner) else last
        leaves -= set(last.results)
        pending = [last]
    ops = [cast("Operator", one) for one in cast("Block", block).ops if one in order]
    return leaves.pop(), ops


def _table_of(leaf: SSAValue, ops: Sequence[Operator]) -> Any:
    """Returns the results of the last op for all bytes, in the order of elements, which views keep."""
    import numpy as np

    least = _LEAST[dtype_of(leaf)]
    values: dict[SSAValue, SSAValue] = {}
    body: list[Operation] = []

    def constant(array: Any, like: SSAValue) -> SSAValue:
        body.append(made_constant(array, type_of(like).element_type))
        return body[-1].results[0]

    def computed(op: Operator) -> SSAValue:
        operands = [copied(value, is_table=looked_up(op) and at == 0) for at, value in enumerate(op.operands)]
        groups = op.grouped(operands, op.properties)
        body.append(made(name_of(op), groups, **properties_of(op, *(() if looked_up(op) else ("axis",)))))
        return body[-1].results[0]

    def copied(value: SSAValue, is_table: bool) -> SSAValue:
        value = _without_views(value)
        if value not in values and isinstance(value.owner, ConstantOp):
            array = array_of_constant(value.owner)
            values[value] = constant(array if is_table else array.reshape(-1)[0], value)
        elif value not in values:
            values[value] = computed(cast("Operator", value.owner))
        return values[value]

    values[leaf] = constant(np.arange(least, least + ENTRIES), leaf)
    last = computed(ops[-1])
    end = ReturnOp(last)
    fold_constants(FuncOp("table", ([], [last.type]), Region(Block([*body, end]))))
    return array_of_constant(cast("ConstantOp", end.arguments[0].owner))


def _table(op: Operation) -> Replacement:
    """Look functions of bytes up in a table, unless a few instructions compute them."""
    if dtype_of(op.results[0]) not in _LEAST or (found := _function_of_bytes(op)) is None:
        return None
    leaf, ops = found
    patterns = [pattern_of(one) for one in ops]
    is_cheap = all(pattern is not None and pattern.is_cheap for pattern in patterns)
    roundings = sum(name_of(one) == "quantize" for one in ops) + sum(map(looked_up, ops))
    if is_cheap and roundings < 2:
        return None
    least = _LEAST[dtype_of(leaf)]
    table = made_constant(_table_of(leaf, ops), type_of(op.results[0]).element_type).result
    place = leaf
    if least:
        import numpy as np

        wide = made("cast", [leaf], dtype="int16").results[0]
        place = made("subtract", [wide, made_constant(np.asarray(least), i16).result]).results[0]
    found = made("take", [table, place], axis=0, mode="fast")
    if type_of(found.results[0]) == type_of(op.results[0]):
        return found
    return made("reshape", found.results, newshape=DimsAttr(shape_of(type_of(op.results[0]))))


TABLES: Final = (Rule(frozenset(("quantize",)), _table),)
