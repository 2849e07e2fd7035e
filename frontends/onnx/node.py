"""A node as converters see it: inputs, attributes checked against the operator's definition, and a record of those
read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, SparseTensorProto, TensorProto, defs

from weft.dialects.element_types import TYPES
from weft.dialects.graph_shapes import Extent, KnownExtent, Shape, is_not_negative, subtract, sum_text
from weft.frontends.graph_builder import Value
from weft.frontends.onnx.attribute_words import least_of, words_of
from weft.frontends.onnx.known_tensors import Absent, Entry, Item, KnownTensor, TensorSequence
from weft.support.argument_types import shown
from weft.support.call_preconditions import CallPrecondition
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.frontends.data_sizes import DataSizes

Schema: TypeAlias = Any
"""The definition of an operator: `onnx.defs.OpSchema`, whose stubs are incomplete."""
_MINIMUM, _MAXIMUM = -(1 << 63), (1 << 63) - 1
MOST_ELEMENTS: Final = 1 << 22
"""Maximum number of elements of tensors that attributes and known inputs describe, and that are computed at import."""
_NEWEST: Final = (1 << 31) - 1
"""The newest opset that the package `onnx` can compare with."""
_TEXTS: Final = (AttributeProto.STRING, AttributeProto.STRINGS)


class Refusal(CompileError):
    """Raised for a node that cannot be converted; values of the graph inputs `unbound` would have to be known."""

    unbound: frozenset[str] = frozenset()


def dtype_of(data_type: int) -> str:
    """Raises `Refusal` for an element type that weft lacks."""
    try:
        name = TensorProto.DataType.Name(data_type)
    except ValueError:
        raise Refusal(f"there is no element type {data_type}") from None
    dtype = "string" if name == "STRING" else None
    if name not in ("STRING", "UNDEFINED"):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(data_type).name
    if dtype not in TYPES:
        raise Refusal(f"elements of type {name.lower()} are not supported")
    return dtype


def data_type_of(dtype: str) -> int:
    return _DATA_TYPES[dtype]


def _data_types() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, number in TensorProto.DataType.items():
        if name not in ("UNDEFINED", "STRING"):
            found[onnx.helper.tensor_dtype_to_np_dtype(number).name] = number
    return found


_DATA_TYPES: Final = _data_types()


@lru_cache(maxsize=4096)
def schema_of(operator: str, opset: int, domain: str) -> Schema | None:
    try:
        return defs.get_schema(operator, min(opset, _NEWEST), domain)
    except defs.SchemaError:
        return None


class NodeScope(Protocol):
    """The graph of a node, as its converter sees it (`importer.GraphScope`)."""

    def value_of(self, item: Item) -> Value:
        """The item as a value of the function under construction."""
        ...

    def known_of(self, item: Item) -> KnownTensor | None:
        """The elements of an item, or None if they depend on data."""
        ...

    def sources_of(self, item: Item) -> frozenset[str]:
        """The inputs of the model that an item depends on."""
        ...

    def require_equal(self, left: Extent, right: Extent) -> None:
        """The import restarts if a symbol gets another extent."""
        ...

    def require(self, precondition: CallPrecondition) -> bool:
        """Returns False if extents of the precondition are unknown to a call."""
        ...

    def declared_rank(self, name: str) -> int | None:
        """The rank that the model states for a result, or None."""
        ...

    def tensor_of(self, proto: TensorProto | SparseTensorProto) -> KnownTensor: ...

    def sizes(self) -> DataSizes:
        """The creator of operators whose results have a size that depends on data."""
        ...


@dataclass
class Node:
    """A node with the entries of its inputs, None for an omitted one."""

    proto: NodeProto
    domain: str
    version: int
    """The opset that introduced this version of the operator; if ONNX does not define the operator, that of its
    domain."""
    schema: Schema | None
    inputs: Sequence[Entry | None]
    scope: NodeScope
    """The scope that contains the node, for converters of nodes with graphs."""
    folds: bool = False
    """Whether known inputs stay known tensors, so that operators on them fold."""
    _read: set[str] = field(default_factory=set[str])
    _read_inputs: set[int] = field(default_factory=set[int])

    @property
    def operator(self) -> str:
        return self.proto.op_type

    def refuse(self, message: str) -> Refusal:
        """Returns the exception for a node; the caller raises it."""
        return Refusal(message)

    # Inputs and outputs

    @property
    def count(self) -> int:
        """The number of inputs up to the last given one."""
        return len(self.inputs)

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def uses_output(self, index: int) -> bool:
        """Whether an output is named, so that it may have uses."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    def entry(self, index: int) -> Entry:
        """An input, which must be given: a tensor, a sequence, or an optional."""
        self._read_inputs.add(index)
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise self.refuse(f"input {self.input_name(index)} is missing")
        return found

    def item(self, index: int) -> Item:
        found = self.entry(index)
        if isinstance(found, TensorSequence | Absent):
            kind = "a sequence" if isinstance(found, TensorSequence) else "an optional without a value"
            raise self.refuse(f"input {self.input_name(index)} must be a tensor, got {kind}")
        return found

    def sequence(self, index: int) -> tuple[Item, ...]:
        found = self.entry(index)
        if not isinstance(found, TensorSequence):
            kind = "an optional without a value" if isinstance(found, Absent) else "a tensor"
            raise self.refuse(f"input {self.input_name(index)} must be a sequence, got {kind}")
        return found.items

    def value(self, index: int) -> Value:
        item = self.item(index)
        return cast("Value", item) if self.folds else self.scope.value_of(item)

    def optional(self, index: int) -> Value | None:
        self._read_inputs.add(index)
        return self.value(index) if self.has(index) else None

    def values(self, first: int = 0) -> list[Value]:
        return [self.value(index) for index in range(first, self.count)]

    def known(self, index: int) -> KnownTensor:
        """Raises `Refusal` for an input that depends on data."""
        item = self.item(index)
        found = self.scope.known_of(item)
        if found is None:
            refusal = self.refuse(f"input {self.input_name(index)} must be known at import, but depends on data")
            refusal.unbound = self.scope.sources_of(item)
            raise refusal
        return found

    def numbers(self, index: int) -> NDArray[Any]:
        known = self.known(index)
        if known.is_symbolic:
            shown_extents = ", ".join(map(str, known.extents()))
            refusal = self.refuse(f"input {self.input_name(index)} must be known at import, got ({shown_extents})")
            refusal.unbound = self.scope.sources_of(self.item(index))
            raise refusal
        return known.array

    def number_at(self, index: int) -> int | float | bool:
        array = self.numbers(index)
        if array.size != 1:
            raise self.refuse(f"input {self.input_name(index)} must be one number, got shape {array.shape}")
        return cast("int | float | bool", array.reshape(()).item())

    def indices(self, index: int) -> list[int]:
        array = self.numbers(index)
        if array.dtype.kind not in "iu":
            raise self.refuse(f"input {self.input_name(index)} must be integers, got {array.dtype}")
        return [int(number) for number in array.flat]

    def extents(self, index: int) -> tuple[KnownExtent, ...]:
        """The elements, possibly symbolic, of an integer input known at import."""
        return self.known(index).extents()

    def extent_at(self, index: int) -> KnownExtent:
        """The only element, possibly symbolic, of an integer input known at import."""
        known = self.known(index)
        if known.array.size != 1:
            raise self.refuse(f"input {self.input_name(index)} must be one number, got shape {known.shape}")
        return known.extents()[0]

    def shape(self, index: int) -> Shape:
        return self.item(index).shape

    def equal(self, extent: Extent, other: Extent) -> bool:
        """Whether extents may be equal; the import restarts with one extent if unknown."""
        if extent == other:
            return True
        if isinstance(extent, int) and isinstance(other, int):
            return False
        self.scope.require_equal(extent, other)
        return None not in (extent, other)

    def require(self, least: int, extent: KnownExtent, reason: str) -> None:
        """Require at least `least`, by a call precondition if necessary. Raises `Refusal` if calls cannot check it."""
        if is_not_negative(subtract(extent, least)):
            return
        if isinstance(extent, int) or not self.scope.require(
            CallPrecondition(f"{least} <= {sum_text(extent)} # {reason}")
        ):
            raise self.refuse(f"{extent} must be at least {least}: {reason}")

    def rank(self, index: int) -> int:
        return len(self.shape(index))

    def dtype(self, index: int) -> str:
        return self.item(index).dtype

    def input_name(self, index: int) -> str:
        """The name of an input in the operator's definition, quoted, or its number."""
        formal = self.schema.inputs if self.schema is not None else ()
        return f"'{formal[index].name}'" if index < len(formal) else str(index)

    # Attributes

    def attribute(self, name: str) -> Any:
        """The node's value, else the default of the definition, else None."""
        self._read.add(name)
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return _value_of(attribute)
        formal = None if self.schema is None else self.schema.attributes.get(name)
        has_default = formal is not None and formal.default_value.type != AttributeProto.UNDEFINED
        return _value_of(formal.default_value) if formal is not None and has_default else None

    def declares_attribute(self, name: str) -> bool:
        return self.schema is not None and name in self.schema.attributes

    @property
    def is_variadic(self) -> bool:
        variadic = defs.OpSchema.FormalParameterOption.Variadic
        return self.schema is not None and any(formal.option == variadic for formal in self.schema.inputs)

    def has_attribute(self, name: str) -> bool:
        """Whether the node itself has an attribute."""
        return any(attribute.name == name for attribute in self.proto.attribute)

    def integer(self, name: str, low: int = _MINIMUM, high: int = _MAXIMUM, default: int | None = None) -> int:
        found = self.attribute(name)
        if found is None:
            found = default
        if not isinstance(found, int):
            raise self._unfit(name, found, "an integer")
        if not low <= found <= high:
            raise self._unfit(name, found, f"{_bound(low)} to {_bound(high)}")
        return found

    def flag(self, name: str, default: bool | None = None) -> bool:
        return bool(self.integer(name, 0, 1, None if default is None else int(default)))

    def number(self, name: str, default: float | None = None) -> float:
        found = self.attribute(name)
        if found is None:
            found = default
        if not isinstance(found, float | int) or not np.isfinite(found):
            raise self._unfit(name, found, "a number")
        return float(found)

    def integers(self, name: str, low: int = _MINIMUM, count: int | None = None) -> list[int] | None:
        """An attribute of integers of at least `low`, or None if absent."""
        found = self.attribute(name)
        if found is None:
            return None
        numbers = cast("list[int]", found) if isinstance(found, list) else [low - 1]
        if not all(isinstance(n, int) and n >= low for n in cast("list[object]", numbers)):
            raise self._unfit(name, cast("object", found), "integers" if low == _MINIMUM else f"at least {low}")
        if count is not None and len(numbers) != count:
            raise self._unfit(name, numbers, f"{count} numbers")
        return numbers

    def word(self, name: str, *choices: str) -> str:
        found = self.attribute(name)
        if found not in choices:
            raise self._unfit(name, found, f"one of {', '.join(choices)}")
        return cast("str", found)

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """An attribute that is an axis of tensors of rank `rank`, made non-negative."""
        if rank == 0:
            raise self.refuse(f"attribute '{name}' is an axis, but the tensor has none: it is a scalar")
        found = self.integer(name, -rank, rank - 1, default)
        return found + rank if found < 0 else found

    def axes(self, numbers: Sequence[int], rank: int, name: str = "axes") -> list[int]:
        """Distinct axes of tensors of rank `rank`, made non-negative."""
        for axis in numbers:
            if not -rank <= axis < rank:
                raise self._unfit(name, list(numbers), f"axes of a tensor of rank {rank}")
        found = [axis % rank for axis in numbers]
        if len(set(found)) < len(found):
            raise self._unfit(name, list(numbers), "different axes")
        return found

    def element_type(self, name: str) -> str | None:
        """An attribute that is an element type, or None if absent."""
        found = self.attribute(name)
        if found is None:
            return None
        try:
            return dtype_of(self.integer(name))
        except Refusal as error:
            raise self.refuse(f"attribute '{name}': {error.message}") from None

    def _unfit(self, name: str, found: object, wanted: str) -> Refusal:
        if found is None:
            return self.refuse(f"attribute '{name}' is missing")
        return self.refuse(f"attribute '{name}' must be {wanted}, got {shown(found)}")

    # Checks

    def check(self) -> None:
        """Check the node against the definition of its operator. Raises `Refusal`."""
        schema = self.schema
        names = set[str]()
        for attribute in self.proto.attribute:
            if attribute.name in names:
                raise self.refuse(f"attribute '{attribute.name}' is given twice")
            names.add(attribute.name)
        if schema is None:
            return
        if schema.deprecated:
            raise self.refuse("the operator is deprecated in this opset")
        formal: Mapping[str, Any] = schema.attributes
        for attribute in self.proto.attribute:
            name = attribute.name
            if name not in formal:
                near = did_you_mean(name, formal) if formal else ""
                raise self.refuse(f"the operator has no attribute '{name}' in this opset{near}")
            wanted = formal[name].type
            if int(wanted.value) != attribute.type:
                given = _type_name(attribute.type)
                raise self.refuse(f"attribute '{name}' is of type {wanted.name.lower()}, got {given}")
            words = words_of(self.operator, name) if attribute.type in _TEXTS else None
            given = _value_of(attribute) if words is not None else None
            for word in cast("list[str]", given if isinstance(given, list) else [] if given is None else [given]):
                if word not in (words or ()):
                    raise self._unfit(name, word, f"one of {', '.join(words or ())}")
            least = least_of(self.operator, name)
            if least is not None and attribute.type in (AttributeProto.INT, AttributeProto.INTS):
                read = self.integer if attribute.type == AttributeProto.INT else self.integers
                read(name, least)
        self._read.clear()
        for name, attribute in formal.items():
            if attribute.required and name not in names:
                raise self.refuse(f"attribute '{name}' is missing")
        for kind, count, low, high in (
            ("input", len(self.proto.input), schema.min_input, schema.max_input),
            ("output", len(self.proto.output), schema.min_output, schema.max_output),
        ):
            if not low <= count <= high:
                numbers = f"{low}" if low == high else f"{low} to {_bound(high)}"
                plural = "" if high == 1 else "s"
                raise self.refuse(f"the operator has {numbers} {kind}{plural}, got {count}")
        for index, formal_input in enumerate(schema.inputs):
            if formal_input.option == defs.OpSchema.FormalParameterOption.Single and not self.has(index):
                raise self.refuse(f"input {self.input_name(index)} is missing")

    def check_room(self, *extents: int) -> None:
        """Raises `Refusal` for more elements than the limit of computations at import."""
        if prod(extents) > MOST_ELEMENTS:
            shape = ", ".join(map(str, extents))
            raise self.refuse(f"a tensor of shape ({shape}) is not computed at import: it is too large")

    def check_all_read(self, results: Sequence[Entry | None]) -> None:
        """Raises `Refusal` for unread attributes and inputs, and outputs that were not created."""
        formal: Mapping[str, Any] = {} if self.schema is None else self.schema.attributes
        for attribute in self.proto.attribute:
            name = attribute.name
            if name in self._read:
                continue
            default = formal[name].default_value if name in formal else None
            if default is None or _value_of(default) != _value_of(attribute):
                raise self.refuse(f"attribute '{name}' = {shown(_value_of(attribute))} is not supported")
        for index in range(self.count):
            if self.has(index) and index not in self._read_inputs:
                raise self.refuse(f"input {self.input_name(index)} is not supported")
        for index in range(len(self.proto.output)):
            if self.uses_output(index) and (index >= len(results) or results[index] is None):
                raise self.refuse(f"output '{self._output_name(index)}' is not supported")

    def _output_name(self, index: int) -> str:
        formal = self.schema.outputs if self.schema is not None else ()
        return formal[index].name if index < len(formal) else str(index)


def _bound(number: int) -> str:
    return "any number" if number >= 2**31 - 1 else str(number)


def _type_name(number: int) -> str:
    try:
        return AttributeProto.AttributeType.Name(number).lower()
    except ValueError:
        return str(number)


_FIELDS: Final[Mapping[int, Callable[[AttributeProto], Any]]] = {
    AttributeProto.FLOAT: lambda a: a.f,
    AttributeProto.INT: lambda a: a.i,
    AttributeProto.STRING: lambda a: a.s.decode(),
    AttributeProto.TENSOR: lambda a: a.t,
    AttributeProto.GRAPH: lambda a: a.g,
    AttributeProto.SPARSE_TENSOR: lambda a: a.sparse_tensor,
    AttributeProto.FLOATS: lambda a: list(a.floats),
    AttributeProto.INTS: lambda a: list(a.ints),
    AttributeProto.STRINGS: lambda a: [s.decode() for s in a.strings],
    AttributeProto.TENSORS: lambda a: list(a.tensors),
    AttributeProto.GRAPHS: lambda a: list(a.graphs),
    AttributeProto.TYPE_PROTO: lambda a: a.tp,
}


def _value_of(attribute: AttributeProto) -> Any:
    read = _FIELDS.get(attribute.type)
    if read is None:
        raise Refusal(f"attribute '{attribute.name}' is of type {_type_name(attribute.type)}, which is not supported")
    return read(attribute)


def given_attributes(proto: NodeProto) -> str:
    """The attributes of a node that are numbers, as `'axis' = 1, 'pads' = [0, 1]`."""
    kinds = {"float", "int", "floats", "ints"}
    given = (one for one in proto.attribute if _type_name(one.type) in kinds)
    return ", ".join(f"'{one.name}' = {shown(_value_of(one))}" for one in islice(given, 12))
