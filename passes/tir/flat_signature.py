"""Signatures of flat functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from xdsl.dialects import memref
from xdsl.dialects.arith import FloorDivSIOp, SelectOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_scopes import function_of
from weft.analysis.coverage import read_is_covered
from weft.analysis.index import Index, Quotient, Remainder
from weft.analysis.integer_ranges import (
    Choice,
    Division,
    Product,
    floor_remainder_of,
    meaning_of,
    operands_of_minimum,
)
from weft.analysis.sets import NotProved
from weft.dialects.aliasing import add_argument_attributes
from weft.dialects.argument_attributes import argument_attributes
from weft.dialects.effects import RENAMES, callee_of
from weft.dialects.element_types import parameter_types
from weft.dialects.graph_shapes import KnownExtent, symbol
from weft.dialects.index_map import mixed_extents
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import PARAMS, SYMBOLS, ParamAttr, params_of, preconditions_of, symbols_of
from weft.dialects.low_access import AccessAttr, AccessMode, StrideOp, access_by
from weft.dialects.strides import dynamic_extents, dynamic_strides, strides_of
from weft.dialects.tir_assume import AssumeOp, AssumeSizesOp, Relation
from weft.dialects.tir_kinds import ELEMENT, PARAMETER_ACCESS
from weft.dialects.traversal import operations_in
from weft.passes.tir.tir_pass import buffer_type, tir_functions
from weft.support.errors import CompileError
from weft.support.locations import location_of
from weft.support.names import free_name, new_name


class Quantity(NamedTuple):
    parameter: int
    dimension: int
    is_stride: bool = False


def quantity_of(value: SSAValue) -> Quantity | None:
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
    types: list[Attribute]
    labels: list[str]
    symbols: list[str]
    of_quantity: dict[Quantity, str]
    """Dynamic extent or stride -> symbol. Those of one parameter are in order, extents first."""
    of_scalar: dict[int, str]
    """Index parameter that states an extent or stride -> the symbol that it must equal."""
    memrefs: list[int]
    access: dict[int, AccessMode] = field(default_factory=dict[int, AccessMode])
    facts: list[str] = field(default_factory=list[str])
    """Conditions that calls check, in addition to shapes (`call_facts`)."""

    @staticmethod
    def of(function: FuncOp) -> FlatSignature:
        elements = _elements(function)
        arguments = function.args[: len(function.args) - len(elements)]
        labels: list[str] = []
        for a in arguments:  # `%x_1` and `%x_2` are named `x`
            labels.append(free_name(a.name_hint or f"arg{a.index}", labels))
        memrefs = [a.index for a in arguments if isinstance(a.type, MemRefType)]
        types = list(parameter_types(function))[: len(arguments)]
        signature = FlatSignature(types, labels, [], {}, {}, memrefs)
        named: dict[SSAValue | Quantity, str] = {}
        for argument, (position, element) in elements.items():
            signature.of_scalar[argument] = f"{labels[position]}.{element}"
            signature.symbols.append(signature.of_scalar[argument])
            named[function.args[argument]] = signature.of_scalar[argument]
        shared = _shared_quantities(function)
        taken = {*labels, *signature.symbols}
        for position in memrefs:
            for own in quantities_of(position, arguments[position].type):
                key = shared.get(own, own)
                if key not in named:
                    hint = key.name_hint if isinstance(key, SSAValue) else _hint(arguments[key.parameter], key)
                    hint = hint or _hint(arguments[position], own)
                    wanted = hint or f"{labels[position]}_{'s' if own.is_stride else 'd'}{own.dimension}"
                    named[key] = new_name(wanted, taken, first=2)
                    signature.symbols.append(named[key])
                    if isinstance(key, BlockArgument):
                        signature.of_scalar[key.index] = named[key]
                signature.of_quantity[own] = named[key]
        return signature

    def shape_of(self, buffer: BlockArgument) -> list[KnownExtent]:
        return [
            symbol(self.of_quantity[Quantity(buffer.index, at)]) if extent == DYNAMIC_INDEX else extent
            for at, extent in enumerate(buffer_type(buffer).get_shape())
        ]

    @staticmethod
    def of_low(function: FuncOp) -> FlatSignature:
        params = params_of(function)
        of_quantity = {
            own: symbol.data
            for position, param in enumerate(params)
            if isinstance(param.type, MemRefType)
            for own, symbol in zip(quantities_of(position, param.type), param.symbols, strict=True)
        }
        labels = [p.label.data for p in params]
        facts = [fact.text for fact in preconditions_of(function)]
        symbols = list(symbols_of(function))
        return FlatSignature([p.type for p in params], labels, symbols, of_quantity, {}, [], facts=facts)

    def add_symbols(self, function: FuncOp) -> dict[str, SSAValue]:
        """Add a parameter per symbol, and the signature's attributes; return parameters by name."""
        block, given = function.body.block, len(self.labels)
        symbols: dict[str, SSAValue] = dict(zip(self.symbols, block.args[given:], strict=False))
        new = self.symbols[len(symbols) :]
        for name in new:
            symbols[name] = block.insert_arg(IndexType(), len(block.args))
            symbols[name].name_hint = name
        add_argument_attributes(function, behind=len(new))
        function.attributes[PARAMS] = self.params()
        function.attributes[SYMBOLS] = ArrayAttr([StringAttr(name) for name in symbols])
        return symbols

    def sizes_of(
        self, position: int, symbols: Mapping[str, SSAValue]
    ) -> tuple[tuple[int | SSAValue, ...], tuple[int | SSAValue, ...] | None]:
        type_ = cast("MemRefType[Attribute]", self.types[position])
        given = iter([symbols[self.of_quantity[own]] for own in quantities_of(position, type_)])
        shape, strides = mixed_extents(type_.get_shape(), given), strides_of(type_)
        return shape, None if strides is None else tuple(next(given) if s is None else s for s in strides)

    def params(self) -> ArrayAttr[ParamAttr]:
        params: list[ParamAttr] = []
        for position, (label, type_) in enumerate(zip(self.labels, self.types, strict=True)):
            symbols = [self.of_quantity[own] for own in quantities_of(position, type_)]
            if position in self.of_scalar:
                symbols = [self.of_scalar[position]]
            access = AccessAttr(self.access.get(position, AccessMode.READ))
            params.append(ParamAttr(StringAttr(label), type_, access, ArrayAttr([StringAttr(s) for s in symbols])))
        return ArrayAttr(params)


def _elements(function: FuncOp) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for position, entry in enumerate(argument_attributes(function)):
        place = entry.data.get(ELEMENT)
        if isinstance(place, ArrayAttr):
            parameter, element = (number.value.data for number in cast("ArrayAttr[IntegerAttr]", place))
            found[position] = parameter, element
    return found


def quantities_of(position: int, type_: Attribute) -> list[Quantity]:
    """Dynamic extents, then dynamic strides: the order of `low.param`."""
    extents = [Quantity(position, dimension) for dimension in dynamic_extents(type_)]
    return extents + [Quantity(position, dimension, True) for dimension in dynamic_strides(type_)]


def _hint(argument: BlockArgument, own: Quantity) -> str | None:
    for use in argument.uses:
        op = use.operation
        if isinstance(op, StrideOp) and own.is_stride and op.dimension.value.data == own.dimension:
            return op.stride.name_hint
        if isinstance(op, memref.DimOp) and not own.is_stride and constant_integer(op.index) == own.dimension:
            return op.result.name_hint
    return None


def _shared_quantities(function: FuncOp) -> dict[Quantity, SSAValue | Quantity]:
    """Quantity -> the equal one, or parameter, by `tir.assume_shape` and `tir.assume_strides`."""
    shared: dict[Quantity, SSAValue | Quantity] = {}

    def resolve(key: Quantity) -> SSAValue | Quantity:
        found: SSAValue | Quantity = key
        while isinstance(found, Quantity) and found in shared:
            found = shared[found]
        return found

    for op in operations_in(function):
        if not isinstance(op, AssumeSizesOp):
            continue
        for own, value in stated_quantities(op):
            source = quantity_of(value)
            if source is not None:
                same: SSAValue | Quantity = resolve(source)
            elif isinstance(value, BlockArgument):
                same = value
            else:
                continue  # a computed one is a symbol, and a fact
            mine = resolve(own)
            if mine != same and isinstance(mine, Quantity):
                shared[mine] = same
    return {key: resolve(key) for key in list(shared)}


def stated_quantities(op: AssumeSizesOp) -> Iterator[tuple[Quantity, SSAValue]]:
    if isinstance(op.buffer, BlockArgument):
        for dimension, value in zip(op.dimensions, op.values, strict=True):
            yield Quantity(op.buffer.index, dimension, op.is_of_strides), value


def call_facts(function: FuncOp, signature: FlatSignature) -> list[str]:
    """Facts of `tir.assume`, and computed extents and strides.

    Raises `CompileError` unless a fact depends only on parameters and their extents.
    """
    facts: list[str] = []
    for op in operations_in(function):
        if isinstance(op, AssumeOp):
            texts = _Texts(signature, op)
            operands = [Index.of(value) for value in op.symbols]
            left, right = (Index.of_expr(side, operands) for side in (op.left, op.right))
            alternatives = operands_of_minimum(left) if op.kind is Relation.LESS and right == Index({}) else [left]
            if len(alternatives) > 1:
                # The extent precedes empty loops.
                alternatives.sort(key=lambda index: -len(index.terms))
                fact = " or ".join(map(texts.negative, alternatives))
            else:
                fact = f"{texts.index(left)} {op.kind.value} {texts.index(right)}"
            if op.reason is not None:
                place = location_of(op)
                fact += f" # {op.reason.data}" + ("" if place is None else f", at {place}")
            facts.append(fact)
        elif isinstance(op, AssumeSizesOp):
            for quantity, value in stated_quantities(op):
                if quantity_of(value) is None and not isinstance(value, BlockArgument):
                    own = signature.of_quantity[quantity]
                    facts.append(f"{own} == {_Texts(signature, op).index(Index.of(value))}")
    return list(dict.fromkeys(facts))


class _Texts:
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

    def negative(self, index: Index) -> str:
        above, relation = index + 1, "<="
        meaning = None if above.single_value is None else meaning_of(above.single_value)
        if isinstance(meaning, Choice) and meaning.larger and meaning.left == meaning.right * -1:
            above, relation = max(meaning.left, meaning.right, key=lambda side: sum(side.terms.values())), "=="
        left = Index({atom: factor for atom, factor in above.terms.items() if factor > 0}, max(above.constant, 0))
        return f"{self.index(left)} {relation} {self.index(left - above)}"

    def _digit(self, atom: Quotient | Remainder) -> str:
        return f"{_wrapped(self.index(atom.numerator))} {'//' if isinstance(atom, Quotient) else '%'} {atom.divisor}"

    def _value(self, value: SSAValue) -> str:
        source = quantity_of(value)
        if source is not None:
            shape = buffer_type(function_of(self._op).args[source.parameter]).get_shape()
            return self._signature.of_quantity.get(source) or str(shape[source.dimension])
        if isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), FuncOp):
            return self._signature.of_scalar.get(value.index) or self._signature.labels[value.index]
        meaning = meaning_of(value)
        if isinstance(meaning, Choice):
            return f"{'max' if meaning.larger else 'min'}({self.index(meaning.left)}, {self.index(meaning.right)})"
        if isinstance(meaning, Product):
            return f"{_wrapped(self.index(meaning.left))} * {_wrapped(self.index(meaning.right))}"
        if isinstance(meaning, Division):
            sign = "//" if meaning.is_quotient else "%"
            return f"{_wrapped(self.index(meaning.numerator))} {sign} {_wrapped(self.index(meaning.divisor))}"
        owner = value.owner
        division = floor_remainder_of(owner) if isinstance(owner, SelectOp) else None
        division = owner if isinstance(owner, FloorDivSIOp) else division
        if division is not None:  # of any signs
            numerator, divisor = (_wrapped(self.index(Index.of(side))) for side in division.operands)
            return f"{numerator} {'//' if division is owner else '%'} {divisor}"
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        raise CompileError.at(
            self._op,
            f"{name} must be computed from index parameters and extents of parameters, so that calls can check it",
        )


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text else text


def state_parameter_accesses(module: ModuleOp) -> None:
    """Annotate parameters of tir functions with their accesses.

    Precedes schedules and lowering, which may remove loads, stores and empty loops.
    """
    parameters = ParameterAccesses()
    for function in tir_functions(module):
        found = [AccessAttr(parameters.of(function, argument.index)) for argument in function.args]
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(found)


@dataclass
class ParameterAccesses:
    """Accesses to buffer parameters, from annotations or bodies, through calls.

    A parameter is `write` if all elements read were provably written before in the call, else `readwrite`.
    """

    _known: dict[tuple[str, int], AccessMode] = field(default_factory=dict[tuple[str, int], AccessMode])
    _inside: dict[str, dict[SSAValue, list[Access]]] = field(default_factory=dict[str, dict[SSAValue, list[Access]]])

    def of(self, function: FuncOp, position: int) -> AccessMode:
        if PARAMS in function.attributes:
            return params_of(function)[position].access.data
        if not isinstance(function.args[position].type, MemRefType):
            return AccessMode.READ
        attribute = function.attributes.get(PARAMETER_ACCESS)
        noted = attribute.data if isinstance(attribute, ArrayAttr) else ()
        # Passes of users may add parameters, or writes to read-only buffers.
        entry = noted[position] if len(noted) == len(function.args) else None
        if isinstance(entry, AccessAttr) and entry.data is not AccessMode.READ:
            return entry.data
        key = (function.sym_name.data, position)
        if key not in self._known:
            self._known[key] = AccessMode.READWRITE  # for recursive calls
            found = self._of_value(function.args[position])
            if found is AccessMode.READWRITE and self._is_written_first(function, function.args[position]):
                found = AccessMode.WRITE
            self._known[key] = found
        return self._known[key]

    def _is_written_first(self, function: FuncOp, buffer: SSAValue) -> bool:
        if any(type(use.operation) in RENAMES for use in buffer.uses):
            return False  # accesses of aliases are not listed
        found = self._accesses_in(function).get(buffer, [])
        reads = [a for a in found if not a.is_write and self._may_read(a.op, buffer)]
        try:
            return all(read_is_covered(read, found, None) for read in reads)
        except NotProved:
            return False

    def _accesses_in(self, function: FuncOp) -> dict[SSAValue, list[Access]]:
        name = function.sym_name.data
        if name not in self._inside:
            by_buffer: dict[SSAValue, list[Access]] = defaultdict(list)
            for access in accesses(function):
                by_buffer[access.buffer].append(access)
            self._inside[name] = by_buffer
        return self._inside[name]

    def _may_read(self, op: Operation, buffer: SSAValue) -> bool:
        uses = (self._of_use(op, position) for position, operand in enumerate(op.operands) if operand is buffer)
        return any(access in (AccessMode.READ, AccessMode.READWRITE) for access in uses)

    def _of_value(self, buffer: SSAValue) -> AccessMode:
        return joined(self._of_use(use.operation, use.index) for use in buffer.uses)

    def _of_use(self, op: Operation, position: int) -> AccessMode | None:
        match op:
            case _ if type(op) in RENAMES:
                return self._of_value(op.results[0])
            case CallOp():
                return self._of_callee(callee_of(op), position)
            case _:
                return access_by(op, op.operands[position])

    def _of_callee(self, callee: FuncOp | None, position: int) -> AccessMode:
        if callee is None or not (callee.body.blocks or PARAMS in callee.attributes):
            return AccessMode.READWRITE
        return self.of(callee, position)


def joined(accesses: Iterable[AccessMode | None]) -> AccessMode:
    """None is no access."""
    found = set(accesses) - {None}
    if found <= {AccessMode.READ}:
        return AccessMode.READ
    return AccessMode.WRITE if found == {AccessMode.WRITE} else AccessMode.READWRITE
