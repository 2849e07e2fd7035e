"""Calls that only copy: the result is a contiguous part of an operand, or a concatenation of operands.

The loops of the callee decide, so that any operator qualifies: reshape, a slice or split along the first axis,
stack.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, NoneAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from weft.analysis.block_scopes import child_blocks, is_plain
from weft.analysis.extents import ExtentNames
from weft.dialects.effects import is_pure
from weft.dialects.graph import CallTirOp, callee_of
from weft.dialects.graph_shapes import (
    EXTENTS,
    Expression,
    ExtentOperation,
    KnownExtent,
    ShapeError,
    add,
    choose,
    divide,
    is_not_negative,
    multiply,
    names_in,
    shape_of,
    subtract,
    symbol,
)
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL
from weft.dialects.traversal import operations_in


@dataclass(frozen=True)
class Copied:
    """An operand, and the number of its elements before those of the result: at most 0 if the operand is a part of
    it."""

    operand: int
    offset: KnownExtent


class ContiguousCopies:
    """Calls that only copy. Each callee is analysed once."""

    def __init__(self) -> None:
        self._nests: dict[FuncOp, Sequence[_CopyNest]] = {}

    def functions(self) -> list[FuncOp]:
        return [function for function, nests in self._nests.items() if nests]

    def of(self, call: CallTirOp) -> Sequence[Sequence[Copied]]:
        """Returns the sources of each result: the operand that contains it, or those that it concatenates; empty unless
        proved for all results."""
        callee = callee_of(call)
        if callee not in self._nests:
            self._nests[callee] = _copy_nests(callee)
        nests = self._nests[callee]
        if len(nests) != len(call.results):
            return ()
        # The parameters are operands, passed extents and results.
        passed = dict(enumerate(call.passed_extents, len(call.operands)))
        results = enumerate(call.results, len(call.operands) + len(passed))
        given = {at: known_shape(value) for at, value in (*enumerate(call.operands), *results)}
        shapes = {at: shape for at, shape in given.items() if shape is not None}
        if len(shapes) < len(given):
            return ()
        extents = _extents_in(callee, shapes, {callee.args[at]: extent for at, extent in passed.items()})
        found = [] if extents is None else [nest.copied(shapes, extents) for nest in nests]
        return found if all(found) else ()


_Shapes: TypeAlias = Mapping[int, Sequence[KnownExtent]]
"""The shapes of the buffers that a function takes, by the index of the parameter."""


def _extents_in(
    function: FuncOp, shapes: _Shapes, passed: Mapping[SSAValue, KnownExtent]
) -> Mapping[SSAValue, KnownExtent] | None:
    """The extents in a function that gets the extents `passed`. Returns None for shapes that the function does not
    accept."""
    extents = {**passed}
    for op in operations_in(function):
        if isinstance(op, memref.DimOp):
            dimension = constant_integer(op.index)
            if not isinstance(op.source, BlockArgument) or dimension is None:
                return None
            extents[op.result] = shapes[op.source.index][dimension]
        elif isinstance(op, AssumeShapeOp) and not _is_met(op, shapes, extents):
            return None
    return extents


def _is_met(stated: AssumeShapeOp, shapes: _Shapes, extents: Mapping[SSAValue, KnownExtent]) -> bool:
    if not isinstance(stated.buffer, BlockArgument):
        return False
    shape, values = shapes[stated.buffer.index], ExtentNames(extents)
    pairs = zip(stated.dimensions, stated.values, strict=True)
    return all(shape[dimension] == values.extent(value) for dimension, value in pairs)


_Condition: TypeAlias = tuple[SSAValue, bool]


@dataclass(frozen=True)
class _CopyNest:
    block: BlockOp
    store: memref.StoreOp
    loads: Sequence[tuple[memref.LoadOp, Sequence[_Condition]]]
    """The loads, one of which gives the stored value, and the conditions under which each runs."""

    def copied(self, shapes: _Shapes, extents: Mapping[SSAValue, KnownExtent]) -> Sequence[Copied]:
        result = shapes[cast("BlockArgument", self.store.memref).index]
        found: list[Copied] = []
        for load, conditions in self.loads:
            operand = cast("BlockArgument", load.memref).index
            values = ExtentNames({**extents, **self._iterators(conditions, extents)})
            read, written = (
                EXTENTS.place(map(values.extent, access.indices), EXTENTS.row_major(shape), 0)
                for access, shape in ((load, shapes[operand]), (self.store, result))
            )
            offset = without_remainders(subtract(read, written))
            if values.values or any(name.startswith(_ITERATOR) for name in names_in(offset)):
                return ()
            found.append(Copied(operand, offset))
        if len(found) == 1:
            return found if is_not_negative(found[0].offset) else ()
        return found if _tile_result(found, shapes, EXTENTS.product(result)) else ()

    def _iterators(
        self, conditions: Sequence[_Condition], extents: Mapping[SSAValue, KnownExtent]
    ) -> dict[SSAValue, KnownExtent]:
        """Returns symbols, or numbers that the conditions determine."""
        found: dict[SSAValue, KnownExtent] = {}
        for position, (variable, extent) in enumerate(zip(self.block.iter_vars, self.block.extents, strict=True)):
            most = ExtentNames(extents).extent(extent) if isinstance(extent, SSAValue) else extent
            found[variable] = symbol(f"{_ITERATOR}{position}")
            if isinstance(most, int) and most <= _MOST_PARTS:
                left = set(range(most))
                for condition, holds in conditions:
                    left = _restricted(left, variable, condition, holds)
                if len(left) == 1:
                    found[variable] = left.pop()
        return found


_ITERATOR: Final = "%"
"""Prefix of the names of iterators, which no other name has."""
_MOST_PARTS: Final = 64
"""Limit of the tensors that a call stacks: for larger extents, conditions on the iterator are ignored."""


def _restricted(numbers: set[int], variable: SSAValue, condition: SSAValue, holds: bool) -> set[int]:
    op = condition.owner
    if isinstance(op, arith.CmpiOp) and op.lhs is variable and (number := constant_integer(op.rhs)) is not None:
        kept = _RELATIONS.get(op.predicate.value.data)
        return numbers if kept is None else {n for n in numbers if kept(n, number) is holds}
    return numbers


_RELATIONS: Final[Mapping[int, Callable[[int, int], bool]]] = {
    0: operator.eq,
    1: operator.ne,
    2: operator.lt,
    3: operator.le,
}
"""Maps the number of the predicate of a comparison to the comparison."""


def without_remainders(extent: KnownExtent) -> KnownExtent:
    """Returns an equal number without remainders and nested quotients, so that equal positions compare equal."""
    if isinstance(extent, int):
        return extent
    total: KnownExtent = 0
    for monomial, factor in extent.terms:
        term: KnownExtent = factor
        for atom in monomial:
            term = multiply(term, symbol(atom) if isinstance(atom, str) else _by_quotient(atom))
        total = add(total, term)
    return total


def _by_quotient(atom: ExtentOperation) -> KnownExtent:
    left, right = without_remainders(atom.left), without_remainders(atom.right)
    if atom.kind == "min" or atom.kind == "max":
        return choose(atom.kind, left, right)
    quotient = divide("floordiv", left, right)
    match left:
        case Expression(terms=(((ExtentOperation(kind="floordiv", left=inner, right=by),), 1),)) if (
            is_not_negative(by) and is_not_negative(right)  # no loop runs if an extent is 0
        ):
            quotient = divide("floordiv", inner, multiply(by, right))
        case _:
            pass
    return quotient if atom.kind == "floordiv" else subtract(left, multiply(quotient, right))


def _tile_result(parts: Sequence[Copied], shapes: _Shapes, size: KnownExtent) -> bool:
    """Each element of the result is in one part, because the loads of the others would be out of bounds."""
    end: KnownExtent = 0
    for part in parts:
        if add(part.offset, end) != 0:
            return False
        end = add(end, EXTENTS.product(shapes[part.operand]))
    return end == size


def known_shape(value: SSAValue) -> Sequence[KnownExtent] | None:
    """Returns the extents, or None if one is unknown."""
    try:
        shape = shape_of(cast("TensorType[Attribute]", value.type))
    except ShapeError:
        return None
    return None if None in shape else cast("Sequence[KnownExtent]", shape)


# Reading a function


def _copy_nests(function: FuncOp) -> Sequence[_CopyNest]:
    """Returns one copy per result, or nothing if the function does anything else."""
    if len(function.body.blocks) != 1 or function.function_type.outputs.data:
        return ()
    if not all(map(_is_contiguous, function.function_type.inputs)):
        return ()
    accesses = 0
    for op in operations_in(function):
        if isinstance(op, memref.LoadOp | memref.StoreOp):
            accesses += 1
        elif not isinstance(op, _HARMLESS) and not is_pure(op):
            return ()
    blocks = child_blocks(function)
    operands, results = function.args[: -len(blocks) or None], function.args[-len(blocks) or None :]
    found = [nest for block in blocks if (nest := _copy_nest(block, operands)) is not None]
    if len(found) < len(blocks) or accesses != sum(1 + len(nest.loads) for nest in found):
        return ()
    by_result = {nest.store.memref: nest for nest in found}
    return [by_result[result] for result in results] if by_result.keys() == set(results) else ()


def _is_contiguous(parameter: Attribute) -> bool:
    """Whether a parameter is an extent or a buffer without gaps."""
    return isinstance(parameter, IndexType) or (
        isinstance(parameter, MemRefType) and isinstance(parameter.layout, NoneAttr)
    )


def _copy_nest(block: BlockOp, operands: Sequence[SSAValue]) -> _CopyNest | None:
    stores = [op for op in block.body.block.ops if isinstance(op, memref.StoreOp)]
    if not is_plain(block) or any(kind != SPATIAL for kind in block.iter_kinds) or len(stores) != 1:
        return None
    loads = [(load, where) for load, where in _loads(stores[0].value, ()) if load is not None]
    whole = len(loads) == len(list(_loads(stores[0].value, ())))
    return _CopyNest(block, stores[0], loads) if whole and all(load.memref in operands for load, _ in loads) else None


_HARMLESS = (AssumeShapeOp, BlockOp, ForOp, FuncOp, ReturnOp, scf.IfOp, scf.YieldOp)
"""Ops that contain others or state assumptions, except assumptions that calls check."""


def _loads(
    value: SSAValue, conditions: tuple[_Condition, ...]
) -> Iterator[tuple[memref.LoadOp | None, tuple[_Condition, ...]]]:
    op = value.owner
    if isinstance(value, OpResult) and isinstance(op, scf.IfOp):
        position = value.index
        for region, holds in ((op.true_region, True), (op.false_region, False)):
            end = region.block.last_op
            if end is not None:
                yield from _loads(end.operands[position], (*conditions, (op.cond, holds)))
    else:
        yield op if isinstance(op, memref.LoadOp) else None, conditions
