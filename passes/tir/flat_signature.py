"""The signature of a flat function as callers see it: full shapes, and symbols for dynamic extents and strides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from weft.dialects.low import ParamAttr, facts_of, params_of, symbols_of
from weft.dialects.low_access import Access, AccessAttr, StrideOp
from weft.dialects.strides import dynamic_extents, dynamic_strides
from weft.dialects.tir import AssumeShapeOp
from weft.dialects.tir_regions import AssumeStridesOp
from weft.dialects.traversal import operations_in
from weft.passes.tir.nest import static_value
from weft.support.errors import CompileError
from weft.support.names import free_name


class Quantity(NamedTuple):
    """A number that the arrays of a call decide: an extent or a stride of a parameter."""

    parameter: int
    dimension: int
    is_stride: bool = False


def quantity_of(value: SSAValue) -> Quantity | None:
    """The extent or stride of a parameter that `value` is, through `memref.dim` or `low.stride`."""
    op = value.owner
    if isinstance(op, StrideOp) and isinstance(op.buffer, BlockArgument):
        dimension = op.dimension.value.data
        return Quantity(op.buffer.index, dimension, True) if dimension in dynamic_strides(op.buffer.type) else None
    if not isinstance(op, memref.DimOp):
        return None
    dimension = static_value(op.index)
    if dimension is None:
        raise CompileError.at(op, "the dimension of memref.dim must be a constant")
    return Quantity(op.source.index, dimension) if isinstance(op.source, BlockArgument) else None


@dataclass
class FlatSignature:
    """The parameters of a function as callers see them, and the symbols that are added."""

    types: list[Attribute]
    labels: list[str]
    symbols: list[str]
    of_quantity: dict[Quantity, str]
    """Dynamic extent or stride of a parameter -> symbol. Those of one parameter stand in order, extents first."""
    of_scalar: dict[int, str]
    """Index parameter -> the symbol that it must equal, for those that state extents or strides."""
    memrefs: list[int]
    access: dict[int, Access] = field(default_factory=dict[int, Access])
    facts: list[str] = field(default_factory=list[str])
    """What calls check besides shapes (`call_facts`)."""

    @staticmethod
    def of(function: FuncOp) -> FlatSignature:
        """The signature that the body of a tir function asks for."""
        arguments = function.args
        labels = [a.name_hint or f"arg{a.index}" for a in arguments]
        memrefs = [a.index for a in arguments if isinstance(a.type, MemRefType)]
        signature = FlatSignature([a.type for a in arguments], labels, [], {}, {}, memrefs)
        shared = _shared_quantities(function)
        taken = set(labels)
        named: dict[SSAValue | Quantity, str] = {}
        for position in memrefs:
            for own in quantities_of(position, arguments[position].type):
                key = shared.get(own, own)
                if key not in named:
                    hint = key.name_hint if isinstance(key, SSAValue) else _hint(arguments[key.parameter], key)
                    hint = hint or _hint(arguments[position], own)
                    wanted = hint or f"{labels[position]}_{'s' if own.is_stride else 'd'}{own.dimension}"
                    named[key] = free_name(wanted, taken, first=2)
                    taken.add(named[key])
                    signature.symbols.append(named[key])
                    if isinstance(key, SSAValue) and isinstance(key, BlockArgument):
                        signature.of_scalar[key.index] = named[key]
                signature.of_quantity[own] = named[key]
        return signature

    @staticmethod
    def of_low(function: FuncOp) -> FlatSignature:
        """The signature of a function that is at low level already."""
        params = params_of(function)
        of_quantity: dict[Quantity, str] = {}
        for position, param in enumerate(params):
            if isinstance(param.type, MemRefType):
                of_quantity.update(
                    zip(quantities_of(position, param.type), (n.data for n in param.symbols), strict=True)
                )
        labels = [p.label.data for p in params]
        facts = [fact.text for fact in facts_of(function)]
        symbols = list(symbols_of(function))
        return FlatSignature([p.type for p in params], labels, symbols, of_quantity, {}, [], facts=facts)

    def params(self) -> ArrayAttr[ParamAttr]:
        params: list[ParamAttr] = []
        for position, (label, type_) in enumerate(zip(self.labels, self.types, strict=True)):
            symbols = [self.of_quantity[own] for own in quantities_of(position, type_)]
            if position in self.of_scalar:
                symbols = [self.of_scalar[position]]
            access = AccessAttr(self.access.get(position, Access.READ))
            params.append(ParamAttr(StringAttr(label), type_, access, ArrayAttr([StringAttr(s) for s in symbols])))
        return ArrayAttr(params)


def quantities_of(position: int, type_: Attribute) -> list[Quantity]:
    """What arrays of a type decide, in the order of `low.param`: dynamic extents, then dynamic strides."""
    extents = [Quantity(position, dimension) for dimension in dynamic_extents(type_)]
    return extents + [Quantity(position, dimension, True) for dimension in dynamic_strides(type_)]


def _hint(argument: BlockArgument, own: Quantity) -> str | None:
    """The name under which the function reads this extent or stride, if it does."""
    for use in argument.uses:
        op = use.operation
        if isinstance(op, StrideOp) and own.is_stride and op.dimension.value.data == own.dimension:
            return op.stride.name_hint
        if isinstance(op, memref.DimOp) and not own.is_stride and static_value(op.index) == own.dimension:
            return op.result.name_hint
    return None


def _shared_quantities(function: FuncOp) -> dict[Quantity, SSAValue | Quantity]:
    """Extent or stride -> what `tir.assume_shape` and `tir.assume_strides` say it is: another one, or an index
    parameter."""
    shared: dict[Quantity, SSAValue | Quantity] = {}

    def resolve(key: Quantity) -> SSAValue | Quantity:
        found: SSAValue | Quantity = key
        while isinstance(found, Quantity) and found in shared:
            found = shared[found]
        return found

    for op in operations_in(function):
        if not isinstance(op, AssumeShapeOp | AssumeStridesOp) or not isinstance(op.buffer, BlockArgument):
            continue
        for own, value in stated_quantities(op, op.buffer):
            source = quantity_of(value)
            if source is not None:
                same: SSAValue | Quantity = resolve(source)
            elif isinstance(value, BlockArgument):
                same = value
            else:
                continue  # computed from others: a symbol of its own, and a fact (`call_facts`)
            mine = resolve(own)
            if mine != same and isinstance(mine, Quantity):
                shared[mine] = same
    return {key: resolve(key) for key in list(shared)}


def stated_quantities(
    op: AssumeShapeOp | AssumeStridesOp, buffer: BlockArgument
) -> Iterator[tuple[Quantity, SSAValue]]:
    """The extents or strides that an op states, and their values."""
    is_stride = isinstance(op, AssumeStridesOp)
    dimensions = dynamic_strides(buffer.type) if is_stride else dynamic_extents(buffer.type)
    for dimension, value in zip(dimensions, op.operands[1:], strict=True):
        yield Quantity(buffer.index, dimension, is_stride), value
