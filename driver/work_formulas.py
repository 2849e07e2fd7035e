"""The work of kernels: numbers, or formulas in the symbols of the calling function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Final, TypeAlias, cast

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from weft.analysis.extents import ExtentNames
from weft.dialects.element_types import bytes_of
from weft.dialects.graph_shapes import (
    KnownExtent,
    ShapeError,
    add,
    choose,
    divide,
    evaluate,
    is_not_negative,
    multiply,
    names_in,
    substitute,
    subtract,
    symbol,
)
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.traversal import operations_in
from weft.interp.arguments import flops_of
from weft.passes.tir.flat_signature import FlatSignature, quantity_of

ShapeOf: TypeAlias = "tuple[KnownExtent, ...] | KnownExtent | None"
"""The extents of a buffer, or the value of an index; None for other values."""


@dataclass
class SymbolicFunction:
    function: FuncOp
    shapes: Sequence[ShapeOf]
    _names: ExtentNames = field(init=False)

    def __post_init__(self) -> None:
        known: dict[SSAValue, KnownExtent] = {}
        for argument, extent in zip(self.function.args, self.shapes, strict=True):
            if isinstance(argument.type, IndexType) and extent is not None and not isinstance(extent, tuple):
                known[argument] = extent
        for op in operations_in(self.function):
            if isinstance(op, memref.DimOp) and (own := quantity_of(op.result)) is not None:
                shape = self.shapes[own.parameter]
                if isinstance(shape, tuple):
                    known[op.result] = shape[own.dimension]
        self._names = ExtentNames(known)

    @staticmethod
    def of_entry(function: FuncOp, given: Mapping[str, Sequence[int] | int] | None = None) -> SymbolicFunction:
        """Parameters have the `given` shapes and values by name; other symbols keep their external names."""
        signature = FlatSignature.of(function)
        shapes: list[ShapeOf] = []
        for argument in function.args:
            known = None if given is None else given.get(argument.name_hint or "")
            if isinstance(argument.type, MemRefType):
                shapes.append(tuple(signature.shape_of(argument)) if known is None else tuple(cast("list[int]", known)))
            elif isinstance(argument.type, IndexType):
                label = signature.of_scalar.get(argument.index) or signature.labels[argument.index]
                shapes.append(symbol(label) if known is None else cast("int", known))
            else:
                shapes.append(None)
        return SymbolicFunction(function, shapes)

    @cached_property
    def is_counted(self) -> bool:
        """Whether all work of a call is in loops and branches of the function itself."""
        return not any(
            isinstance(op, CallOp) or (op.regions and not isinstance(op, _COUNTED))
            for op in operations_in(self.function.body)
        )

    def extent(self, value: SSAValue) -> KnownExtent:
        return self._names.extent(value)

    def calls(self, find: Callable[[str], FuncOp | None]) -> Iterator[tuple[CallOp, SymbolicFunction, KnownExtent]]:
        """Calls of functions that `find` returns, with arguments and numbers of executions."""
        yield from self._calls(self.function.body, find, 1)

    def _calls(
        self, region: Region, find: Callable[[str], FuncOp | None], times: KnownExtent
    ) -> Iterator[tuple[CallOp, SymbolicFunction, KnownExtent]]:
        for op in (op for block in region.blocks for op in block.ops):
            if isinstance(op, CallOp) and (callee := find(op.callee.string_value())) is not None:
                yield op, SymbolicFunction(callee, [self._passed(value) for value in op.arguments]), times
            for inner in op.regions:
                yield from self._calls(inner, find, multiply(times, self._iterations(op)))

    def _passed(self, value: SSAValue) -> ShapeOf:
        try:
            return self.shape(value) if isinstance(value.type, MemRefType) else self._number(value)
        except ShapeError:
            return None

    def _number(self, value: SSAValue) -> KnownExtent | None:
        return self._names.extent(value) if isinstance(value.type, IndexType) else None

    def shape(self, buffer: SSAValue) -> tuple[KnownExtent, ...] | None:
        op = buffer.owner
        if not isinstance(op, Operation):
            found = self.shapes[self.function.args.index(buffer)] if buffer in self.function.args else None
            return found if isinstance(found, tuple) else None
        extents = cast("MemRefType[Attribute]", buffer.type).get_shape()
        match op:
            case memref.CastOp():
                source = self.shape(op.source)
                return source and tuple(s if e == DYNAMIC_INDEX else e for e, s in zip(extents, source, strict=True))
            case memref.AllocOp():
                sizes = iter(op.dynamic_sizes)
            case memref.ViewOp() | memref.ReinterpretCastOp():
                sizes = iter(op.sizes)
            case _:
                return None if DYNAMIC_INDEX in extents else tuple(extents)
        return tuple(self._names.extent(next(sizes)) if e == DYNAMIC_INDEX else e for e in extents)

    def _iterations(self, op: Operation) -> KnownExtent:
        if isinstance(op, ForOp):
            return op.extent if isinstance(op.extent, int) else self._names.extent(op.extent)
        if isinstance(op, scf.ForOp):
            distance, step = subtract(self._names.extent(op.ub), self._names.extent(op.lb)), self._names.extent(op.step)
            return distance if step == 1 else divide("floordiv", subtract(add(distance, step), 1), step)
        return 1

    def flops(self) -> KnownExtent | None:
        """Floating-point operations of a call, with the larger of two branches; None if unknown."""
        return self._flops(self.function.body) if self.is_counted else None

    def _flops(self, region: Region) -> KnownExtent:
        total: KnownExtent = 0
        for op in (op for block in region.blocks for op in block.ops):
            if not op.regions:
                total = add(total, flops_of(op))
            elif not isinstance(op, InitOp):
                parts = [self._flops(inner) for inner in op.regions]
                inner = reduce(_larger, parts) if isinstance(op, scf.IfOp) else reduce(add, parts)
                total = add(total, multiply(inner, self._iterations(op)))
        return total

    def moved_bytes(self, is_read: set[int]) -> KnownExtent | None:
        """A lower bound of the bytes of parameters that a call moves, or None: of each its loaded and stored elements,
        at most all. Loads of parameters not in `is_read` do not count: they read values that the function wrote."""
        if not self.is_counted:
            return None
        moved: dict[tuple[int, bool], KnownExtent] = {}
        places: dict[SSAValue, int] = {argument: argument.index for argument in self.function.args}
        self._count(self.function.body, places, 1, moved)
        total: KnownExtent = 0
        for (at, is_store), accesses in moved.items():
            if not is_store and at not in is_read:
                continue
            shape, type_ = self.shapes[at], cast("MemRefType[Attribute]", self.function.args[at].type)
            if not isinstance(shape, tuple):
                return None
            elements = reduce(multiply, shape, cast("KnownExtent", 1))
            total = add(total, multiply(_smaller(elements, accesses), bytes_of(type_.element_type)))
        return total

    def _count(
        self,
        region: Region,
        places: Mapping[SSAValue, int],
        times: KnownExtent,
        moved: dict[tuple[int, bool], KnownExtent],
    ) -> None:
        for op in (op for block in region.blocks for op in block.ops):
            if isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref in places:
                key = places[op.memref], isinstance(op, memref.StoreOp)
                moved[key] = add(moved.get(key, 0), times)
            for inner in op.regions:
                self._count(inner, places, multiply(times, self._iterations(op)), moved)


_COUNTED = (ForOp, BlockOp, InitOp, scf.ForOp, scf.IfOp)
_UNKNOWN: Final = 8


def number_of(extent: KnownExtent) -> int:
    """Evaluates an extent, with 8 for unknown numbers."""
    return evaluate(extent, dict.fromkeys(names_in(extent), _UNKNOWN))


def _larger(one: KnownExtent, other: KnownExtent) -> KnownExtent:
    return one if _is_at_least(one, other) else other if _is_at_least(other, one) else choose("max", one, other)


def _smaller(one: KnownExtent, other: KnownExtent) -> KnownExtent:
    return other if _is_at_least(one, other) else one if _is_at_least(other, one) else choose("min", one, other)


def _is_at_least(one: KnownExtent, other: KnownExtent) -> bool:
    difference = subtract(one, other)
    return is_not_negative(substitute(difference, {name: add(symbol(name), 1) for name in names_in(difference)}))
