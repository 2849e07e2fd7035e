"""Counts the operations of a function statically over its loop nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, MemRefType, VectorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.memref import DimOp
from xdsl.dialects.scf import ForOp as ScfForOp
from xdsl.dialects.scf import IfOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.traits import SymbolTable

from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir import BlockOp, ForOp, InitOp

if TYPE_CHECKING:
    from xdsl.ir import Operation, Region

_FLOPS: Mapping[str, int] = {
    **{f"arith.{name}f": 1 for name in ("add", "sub", "mul", "div", "neg", "maximum", "minimum", "maxnum", "minnum")},
    "math.fma": 2,
}
"""Operations by name -> what one counts; other functions of `math` count as one."""


@dataclass(frozen=True)
class Work:
    """`operations` of any kind that run, and `flops`, those on floating-point numbers."""

    operations: int = 0
    flops: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.operations + other.operations, self.flops + other.flops)

    def times(self, count: int) -> Work:
        return Work(self.operations * count, self.flops * count)


class NotCountable(Exception):
    """An extent is not known before the program runs."""


def work_of(function: FuncOp, shapes: Mapping[str, tuple[int, ...]]) -> Work | None:
    """The work of one call with arrays of these shapes (by parameter name); None when it depends on data.

    Guards are taken to hold, of an `scf.if` the larger branch counts.
    """
    try:
        return _Counter(shapes).inside(function.body)
    except NotCountable:
        return None


class _Counter:
    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._shapes = shapes

    def inside(self, *regions: Region) -> Work:
        """The work of one run of all operations in these regions."""
        operations = (op for region in regions for block in region.blocks for op in block.ops)
        return sum(map(self.operation, operations), Work())

    def operation(self, operation: Operation) -> Work:
        match operation:
            case ForOp():
                return self.inside(*operation.regions).times(self.value(operation.extent))
            case BlockOp():
                return self.inside(*operation.regions)
            case InitOp():
                return Work()  # it runs once for all values of the reduce iterators, and has no arithmetic as a rule
            case ScfForOp():
                low, high, step = (self.value(v) for v in (operation.lb, operation.ub, operation.step))
                return self.inside(*operation.regions).times(max(0, -(-(high - low) // step)))
            case IfOp():
                return max(map(self.inside, operation.regions), key=lambda work: work.operations)
            case CallOp():
                return self.call(operation)
            case _ if operation.regions:
                raise NotCountable
            case _:
                return Work(1, _flops(operation))

    def call(self, call: CallOp) -> Work:
        """The work of a called function, with the shapes of what it is given."""
        callee = SymbolTable.lookup_symbol(call, call.callee)
        if not isinstance(callee, FuncOp):
            raise NotCountable
        if callee.is_declaration:
            return Work(1)
        shapes: dict[str, tuple[int, ...]] = {}
        for value, parameter in zip(call.arguments, callee.body.block.args, strict=True):
            shape = self.shape(value)
            if shape is not None and parameter.name_hint:
                shapes[parameter.name_hint] = shape
        return _Counter(shapes).inside(callee.body) + Work(1)

    def shape(self, value: SSAValue) -> tuple[int, ...] | None:
        """The shape of a buffer, when it is known before the program runs."""
        if isinstance(value, BlockArgument) and (known := self._shapes.get(value.name_hint or "")) is not None:
            return known
        if not isinstance(value.type, MemRefType) or DYNAMIC_INDEX in value.type.get_shape():
            return None
        return tuple(value.type.get_shape())

    def value(self, extent: int | SSAValue) -> int:
        """An extent as a number: a constant, or an extent of a parameter."""
        if isinstance(extent, int):
            return extent
        if (constant := constant_integer(extent)) is not None:
            return constant
        owner = extent.owner
        if isinstance(owner, DimOp) and isinstance(owner.source, BlockArgument):
            shape = self.shape(owner.source)
            position = self.value(owner.index)
            if shape is not None and position < len(shape):
                return shape[position]
        raise NotCountable


def _flops(operation: Operation) -> int:
    if not operation.results:
        return 0
    result = operation.results[0].type
    lanes = 1
    if isinstance(result, VectorType):
        lanes, result = prod(result.get_shape()), result.get_element_type()
    if operation.name in _FLOPS:
        return _FLOPS[operation.name] * lanes
    return lanes if operation.name.startswith("math.") and isinstance(result, AnyFloat) else 0
