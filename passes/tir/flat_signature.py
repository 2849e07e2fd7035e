"""The signature of a flat function as callers see it: full shapes, and symbols for dynamic extents and strides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.integer_ranges import Division, Product, meaning_of
from weft.analysis.structure import function_of
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import ParamAttr, params_of, preconditions_of, symbols_of
from weft.dialects.low_access import AccessAttr, AccessMode, StrideOp
from weft.dialects.strides import dynamic_extents, dynamic_strides
from weft.dialects.tir import AssumeOp, AssumeShapeOp
from weft.dialects.tir_regions import AssumeStridesOp
from weft.dialects.traversal import operations_in
from weft.passes.tir.nest import buffer_type
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
    dimension = constant_integer(op.index)
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
    access: dict[int, AccessMode] = field(default_factory=dict[int, AccessMode])
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
        facts = [fact.text for fact in preconditions_of(function)]
        symbols = list(symbols_of(function))
        return FlatSignature([p.type for p in params], labels, symbols, of_quantity, {}, [], facts=facts)

    def params(self) -> ArrayAttr[ParamAttr]:
        params: list[ParamAttr] = []
        for position, (label, type_) in enumerate(zip(self.labels, self.types, strict=True)):
            symbols = [self.of_quantity[own] for own in quantities_of(position, type_)]
            if position in self.of_scalar:
                symbols = [self.of_scalar[position]]
            access = AccessAttr(self.access.get(position, AccessMode.READ))
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
        if isinstance(op, memref.DimOp) and not own.is_stride and constant_integer(op.index) == own.dimension:
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
        if not isinstance(op, AssumeShapeOp | AssumeStridesOp):
            continue
        for own, value in stated_quantities(op):
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


def stated_quantities(op: AssumeShapeOp | AssumeStridesOp) -> Iterator[tuple[Quantity, SSAValue]]:
    """The extents or strides of a parameter that an op states, and their values; none of other buffers."""
    is_stride = isinstance(op, AssumeStridesOp)
    dimensions = dynamic_strides(op.buffer.type) if is_stride else dynamic_extents(op.buffer.type)
    if isinstance(op.buffer, BlockArgument):
        for dimension, value in zip(dimensions, op.operands[1:], strict=True):
            yield Quantity(op.buffer.index, dimension, is_stride), value


def call_facts(function: FuncOp, signature: FlatSignature) -> list[str]:
    """The facts that `tir.assume` states, and the extents and strides that are computed from others.

    Raises CompileError for what does not only depend on parameters and their extents.
    """
    facts: list[str] = []
    for op in operations_in(function):
        if isinstance(op, AssumeOp):
            texts = _Texts(signature, op)
            operands = [Index.of(value) for value in op.symbols]
            left, right = (texts.index(Index.of_expr(side, operands)) for side in (op.left, op.right))
            facts.append(f"{left} {op.kind.value} {right}")
        elif isinstance(op, AssumeShapeOp | AssumeStridesOp):
            for quantity, value in stated_quantities(op):
                if quantity_of(value) is None and not isinstance(value, BlockArgument):
                    own = signature.of_quantity[quantity]
                    facts.append(f"{own} == {_Texts(signature, op).index(Index.of(value))}")
    return list(dict.fromkeys(facts))


class _Texts:
    """Index expressions in terms of what callers pass."""

    def __init__(self, signature: FlatSignature, op: Operation) -> None:
        self._signature = signature
        self._op = op

    def index(self, index: Index) -> str:
        parts: list[str] = []
        for atom, factor in sorted(index.terms.items(), key=lambda term: term[1] < 0):
            text = self._value(atom) if isinstance(atom, SSAValue) else self._digit(atom)
            if abs(factor) != 1:
                text = f"{abs(factor)} * {_wrapped(text)}"
            parts.append(f"- {text}" if factor < 0 else f"+ {text}")
        if index.constant or not parts:
            parts.append(f"- {-index.constant}" if index.constant < 0 else f"+ {index.constant}")
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else f"0 {text}"

    def _digit(self, atom: Quotient | Remainder) -> str:
        return f"{_wrapped(self.index(atom.numerator))} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor}"

    def _value(self, value: SSAValue) -> str:
        source = quantity_of(value)
        if source is not None:
            symbol = self._signature.of_quantity.get(source)
            return symbol or str(_static_extent(self._op, source))
        if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp):
            return self._signature.of_scalar.get(value.index, self._signature.labels[value.index])
        meaning = meaning_of(value)
        if isinstance(meaning, Product):
            return f"{_wrapped(self.index(meaning.left))} * {_wrapped(self.index(meaning.right))}"
        if isinstance(meaning, Division):
            sign = "//" if meaning.is_quotient else "%"
            return f"{_wrapped(self.index(meaning.numerator))} {sign} {_wrapped(self.index(meaning.divisor))}"
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        raise CompileError.at(
            self._op,
            f"{name} must be computed from index parameters and extents of parameters, so that calls can check it",
        )


def _static_extent(op: Operation, source: Quantity) -> int:
    """A static extent of a parameter."""
    return buffer_type(function_of(op).args[source.parameter]).get_shape()[source.dimension]


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text else text
