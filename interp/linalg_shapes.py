"""Constraints of linalg operations on extents of parameters: extents of a loop agree, windows are in bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from weft.dialects.integer_arith import constant_integer
from weft.dialects.traversal import operations_in
from weft.dialects.upstream.linalg_forms import Structure, is_structured, output_count, structure_of

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute

_Extent: TypeAlias = "int | tuple[SSAValue, int] | SSAValue"
"""A number, an extent of a value, or a value of type index."""


class LinalgShapes:
    def __init__(self, function: FuncOp, known: Mapping[SSAValue, int]) -> None:
        """`known`: numbers of index parameters."""
        self._function = function
        self._numbers: dict[_Extent, int] = {**known}
        self._same: dict[_Extent, _Extent] = {}
        self._windows: list[tuple[SSAValue, int, AffineExpr, dict[int, _Extent]]] = []
        """Parameter, dimension, subscript and loop extents, for subscripts that are not a single loop."""
        for op in operations_in(function):
            if is_structured(op):
                self._add(structure_of(op))

    def complete(self, shapes: Sequence[list[int] | None], choose: Callable[[], int]) -> None:
        """Set unknown extents (`DYNAMIC_INDEX`) to numbers that agree, or from `choose`."""
        dims = [(argument, shape, d) for argument, shape in self._parameters(shapes) for d in range(len(shape))]
        for argument, shape, d in dims:
            if shape[d] != DYNAMIC_INDEX:
                self._numbers[self._first((argument, d))] = shape[d]
        sliding = {(argument, d) for argument, d, _, _ in self._windows}
        for argument, shape, d in dims:
            if shape[d] == DYNAMIC_INDEX and (argument, d) not in sliding:
                shape[d] = self._number((argument, d), choose)
        for argument, shape, d in dims:
            if shape[d] == DYNAMIC_INDEX:
                reaches = [
                    self._reach(expr, loops, choose) for a, at, expr, loops in self._windows if (a, at) == (argument, d)
                ]
                shape[d] = max([self._numbers.get(self._first((argument, d)), 1), *reaches])

    def _parameters(self, shapes: Sequence[list[int] | None]) -> Iterator[tuple[SSAValue, list[int]]]:
        for argument, shape in zip(self._function.args, shapes, strict=True):
            if shape is not None:
                yield argument, shape

    def _number(self, extent: _Extent, choose: Callable[[], int]) -> int:
        first = self._first(extent)
        if isinstance(first, int):
            return first
        if first not in self._numbers:
            self._numbers[first] = choose()
        return self._numbers[first]

    def _reach(self, expr: AffineExpr, loops: Mapping[int, _Extent], choose: Callable[[], int]) -> int:
        last = [self._number(loops[loop], choose) - 1 if loop in loops else 0 for loop in range(max(loops) + 1)]
        return expr.eval(last, []) + 1

    def _add(self, structure: Structure) -> None:
        loops: dict[int, _Extent] = {}
        for operand, map_ in zip(structure.operands, structure.maps, strict=True):
            for d, (expr, extent) in enumerate(zip(map_.results, self._extents(operand), strict=True)):
                if isinstance(expr, AffineDimExpr):
                    self._unite(loops.setdefault(expr.position, extent), extent)
                elif isinstance(operand, BlockArgument):
                    self._windows.append((operand, d, expr, loops))

    def _unite(self, one: _Extent, other: _Extent) -> None:
        one, other = self._first(one), self._first(other)
        if isinstance(one, int):
            one, other = other, one
        if one != other and not isinstance(one, int):
            self._same[one] = other

    def _first(self, extent: _Extent) -> _Extent:
        while extent in self._same:
            extent = self._same[extent]
        return extent

    def _extents(self, value: SSAValue) -> list[_Extent]:
        type_ = value.type
        if not isinstance(type_, MemRefType | TensorType):
            return []
        shape = cast("MemRefType[Attribute]", type_).get_shape()
        if isinstance(value, OpResult) and is_structured(value.op):
            return self._extents(value.op.operands[value.index - output_count(value.op)])
        if isinstance(value, OpResult) and value.op.name in ("tensor.empty", "memref.alloc"):
            sizes = iter(value.op.operands)
            return [self._of_index(next(sizes)) if extent == DYNAMIC_INDEX else extent for extent in shape]
        return [(value, d) if extent == DYNAMIC_INDEX else extent for d, extent in enumerate(shape)]

    def _of_index(self, value: SSAValue) -> _Extent:
        number = constant_integer(value)
        if number is None and isinstance(value, OpResult) and value.op.name in ("tensor.dim", "memref.dim"):
            d = constant_integer(value.op.operands[1])
            extents = self._extents(value.op.operands[0])
            return value if d is None or d >= len(extents) else extents[d]
        return value if number is None else number
