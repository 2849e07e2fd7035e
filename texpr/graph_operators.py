"""The operators of the graph dialect: functions of `te.ops`, with their docstrings and NumPy references (`references`).

Tensor parameters are operands (optional, or one variadic), others are properties. Result types, lowering and checks
follow from the function called on placeholders.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, TypeAlias, cast

from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, TensorType, UnitAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects import graph
from weft.dialects.attribute_values import value_of
from weft.dialects.graph import DIALECT, STRUCTURE
from weft.dialects.graph_control import CONTROL
from weft.dialects.graph_shapes import (
    DimsAttr,
    Shape,
    ShapeError,
    extents_in,
    lone_name,
    names_in,
    refines,
    shape_of,
    tensor_type,
)
from weft.dialects.graph_shapes import Extent as GraphExtent
from weft.dialects.graph_traits import traits_of
from weft.support.argument_types import shown
from weft.support.errors import CompileError
from weft.support.locations import record_places
from weft.texpr import ops
from weft.texpr.expr import Predicate, Var, name_of, type_of
from weft.texpr.function import computations_behind, te_function
from weft.texpr.ops.arguments import compute
from weft.texpr.references import reference_of
from weft.texpr.shapes import Extent, ExtentVariables, UnknownExtent, items
from weft.texpr.tensor import ComputeOp, InlinedOp, Tensor, placeholder

Array: TypeAlias = NDArray[Any]
Properties: TypeAlias = Mapping[str, Attribute]

SHAPES: Final = ("shape", "newshape")
"""An extent in another property is a single number."""
SEGMENTS: Final = AttrSizedOperandSegments.attribute_name


@dataclass(frozen=True)
class Role:
    name: str
    is_optional: bool = False
    is_variadic: bool = False


class Operator(IRDLOperation):
    """An operator defined by a function of `te.ops`, without effects; `infer` computes result types for the parser (`->
    types` is optional), the verifier and `graph-infer-types`.

    Text: `%y = graph.name %a, %b {property = ...} : T, U -> V`; `none` is an omitted operand that precedes others.
    """

    DEFINITION: ClassVar[Callable[..., Tensor | tuple[Tensor, ...]]]
    """Tensors and properties -> results."""
    REFERENCE: ClassVar[Callable[..., Array | tuple[Array, ...]]]
    """`DEFINITION` on arrays, float32 for 16-bit floats."""
    SIGNATURE: ClassVar[inspect.Signature]
    ROLES: ClassVar[tuple[Role, ...]]
    """Tensor parameters of `DEFINITION`."""

    traits = traits_def(Pure())

    @classmethod
    def of(
        cls,
        operands: Sequence[SSAValue | Sequence[SSAValue] | None],
        properties: Properties | None = None,
    ) -> Self:
        """The op on one operand per role: a sequence if variadic, None if omitted. Raises `ShapeError`."""
        if len(operands) > len(cls.ROLES):
            raise ShapeError(f"{cls.name} takes {len(cls.ROLES)} operands, got {len(operands)}")
        padded = [*operands, *[None] * (len(cls.ROLES) - len(operands))]
        groups = [() if g is None else (g,) if isinstance(g, SSAValue) else tuple(g) for g in padded]
        flat = [value for group in groups for value in group]
        given = {**(properties or {}), **cls.segments(list(map(len, groups)))}
        types = cls.infer([operand.type for operand in flat], given)
        return cls.create(operands=flat, result_types=types, properties=given)

    @classmethod
    def segments(cls, sizes: Sequence[int]) -> dict[str, Attribute]:
        is_plain = not any(role.is_optional for role in cls.ROLES)
        return {} if is_plain else {SEGMENTS: DenseArrayBase.from_list(i32, sizes)}

    @classmethod
    def grouped(cls, values: Sequence[Any], properties: Properties) -> list[Any]:
        """One of `values` per role: a list if variadic, None if omitted. Raises `ShapeError` for a wrong number."""
        roles, sizes = cls.ROLES, properties.get(SEGMENTS)
        if isinstance(sizes, DenseArrayBase):
            counts = list(cast("DenseArrayBase[Any]", sizes).get_values())
        else:
            spare = len(values) - len(roles)
            counts = [1 + spare if role.is_variadic else 1 for role in roles]
        if len(counts) != len(roles) or sum(counts) != len(values):
            raise ShapeError(f"{cls.name} takes {len(roles)} operands, got {len(values)}")
        found: list[Any] = []
        at = 0
        for role, count in zip(roles, counts, strict=True):
            if not role.is_variadic and count != 1 and not (role.is_optional and count == 0):
                raise ShapeError(f"{cls.name}: operand {role.name} is given {count} times")
            group = list(values[at : at + count])
            found.append(group if role.is_variadic else group[0] if group else None)
            at += count
        return found

    @property
    def operand_names(self) -> list[str]:
        return self.names_of(len(self.operands), self.properties)

    @classmethod
    def names_of(cls, count: int, properties: Properties) -> list[str]:
        names: list[str] = []
        for role, group in zip(cls.ROLES, cls.grouped(range(count), properties), strict=True):
            if role.is_variadic:
                names += [f"{role.name}{at}" for at in range(len(group))]
            elif group is not None:
                names.append(role.name)
        return names

    @classmethod
    def infer(cls, types: Sequence[Attribute], properties: Properties) -> tuple[graph.Tensor, ...]:
        for position, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                raise ShapeError(f"{cls.name}: operand {position} must be a ranked tensor, got {type_}")
        return _inferred(cls, cast("tuple[graph.Tensor, ...]", tuple(types)), frozenset(properties.items()))[0]

    @property
    def assumed(self) -> Sequence[tuple[GraphExtent, GraphExtent]]:
        """Extents that calls check to be equal."""
        types = cast("tuple[graph.Tensor, ...]", tuple(self.operand_types))
        return _inferred(type(self), types, frozenset(self.properties.items()))[1]

    def verify_(self) -> None:
        inferred = self.infer(self.operand_types, self.properties)
        if len(inferred) != len(self.results):
            raise VerifyException(f"{self.name} gives {len(inferred)} results, {len(self.results)} are declared")
        declared_types = cast("Sequence[graph.Tensor]", self.result_types)
        for position, (declared, found) in enumerate(zip(declared_types, inferred, strict=True)):
            if declared.element_type != found.element_type or not refines(shape_of(found), shape_of(declared)):
                raise VerifyException(
                    f"{self.name}: result {position} is declared {declared}, but the operands give {found}"
                )

    @classmethod
    def on_placeholders(cls, operands: Sequence[graph.Tensor], properties: Properties) -> Application:
        names = cls.names_of(len(operands), properties)
        inputs = Placeholders(operands, cls.shapes_in(properties))
        with cls._refusals(inputs.extents):
            tensors = [inputs.tensor(type_, name) for type_, name in zip(operands, names, strict=True)]
            return inputs.application(cls._applied(tensors, properties, inputs.extents))

    @classmethod
    def on_tensors(cls, operands: Sequence[Tensor], properties: Properties, extents: Extents) -> tuple[Tensor, ...]:
        """Extents of `operands` are variables in `extents`. Raises `ShapeError`."""
        with cls._refusals(extents):
            return cast("tuple[Tensor, ...]", items(cls._applied(operands, properties, extents)))

    @classmethod
    def _applied(cls, operands: Sequence[Tensor], properties: Properties, extents: Extents) -> object:
        arguments = _arguments(cls, properties, lambda shape: tuple(map(extents.of_graph, shape)))
        name = cls.name.removeprefix(f"{DIALECT}.")
        return cls.called(cls.DEFINITION, cls.grouped(operands, properties), {**arguments, "name": name})

    @classmethod
    @contextmanager
    def _refusals(cls, extents: Extents) -> Generator[None]:
        try:
            yield
        except CompileError as error:
            hint = " (extents that are always equal carry the same name)" if extents.are_named else ""
            label = getattr(cls.DEFINITION, "__name__", "")
            message = error.message.removeprefix(f"{label}:").removeprefix(f"{label} takes").strip()
            verb = " takes" if error.message.startswith(f"{label} takes") else ":"
            raise ShapeError(f"{cls.name}{verb} {message}{hint}") from None
        except TypeError as error:
            raise ShapeError(f"{cls.name}: {error}") from None

    @classmethod
    def called(cls, function: Callable[..., Any], groups: Sequence[Any], arguments: Mapping[str, Any]) -> Any:
        tensors = {role.name: group for role, group in zip(cls.ROLES, groups, strict=True)}
        given = {**tensors, **arguments}
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for position, parameter in enumerate(cls.SIGNATURE.parameters.values()):
            value = given.get(parameter.name, parameter.default)
            is_needed = parameter.default is inspect.Parameter.empty
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional += value
            elif parameter.name in given and (value is not None or is_needed):
                # By position if possible: NumPy's parameter names differ.
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY or len(positional) < position:
                    named[parameter.name] = value
                else:
                    positional.append(value)
        return function(*positional, **named)

    def arguments(self, extent: Callable[[Shape], object]) -> Mapping[str, Any]:
        """The arguments of definition and reference; `extent` converts a shape."""
        return _arguments(type(self), self.properties, extent)

    @property
    def shapes(self) -> list[Shape]:
        return self.shapes_in(self.properties)

    @staticmethod
    def shapes_in(properties: Properties) -> list[Shape]:
        return [tuple(found) for attribute in properties.values() if (found := extents_in(attribute))]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        operands: list[Any] = []
        needs_operands = any(not role.is_optional for role in cls.ROLES)
        first = _parse_operand(parser) if needs_operands else _parse_optional_operand(parser)
        if first is not _NOTHING:
            operands.append(first)
            while parser.parse_optional_punctuation(",") is not None:
                operands.append(_parse_operand(parser))
        given = parser.parse_optional_attr_dict()
        names = cls.get_irdl_definition().properties.keys()
        properties = {name: attribute for name, attribute in given.items() if name in names}
        if any(role.is_optional for role in cls.ROLES) and len(operands) <= len(cls.ROLES):
            counts = [int(operand is not None) for operand in operands]
            properties |= cls.segments(counts + [0] * (len(cls.ROLES) - len(counts)))
        present = [operand for operand in operands if operand is not None]
        types: Sequence[Attribute] = ()
        results: Sequence[Attribute] | None = None
        end = parser.pos
        if operands:
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            end = parser.pos
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        resolved = parser.resolve_operands(present, types, at)
        if results is None:
            try:
                results = cls.infer(types, properties)
            except VerifyException as error:
                parser.raise_error(str(error), at, end)
        attributes = {name: attribute for name, attribute in given.items() if name not in names}
        return cls.create(operands=resolved, result_types=results, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        groups = self.grouped(self.operands, self.properties)
        while groups and groups[-1] is None:
            groups.pop()
        flat: list[SSAValue | None] = []
        for group in groups:
            flat += cast("list[SSAValue]", group) if isinstance(group, list) else [group]
        printer.print_string(" " if flat else "")

        def print_operand(value: SSAValue | None) -> None:
            if value is None:
                printer.print_string("none")
            else:
                printer.print_ssa_value(value)

        printer.print_list(flat, print_operand)
        properties = {name: attribute for name, attribute in self.properties.items() if name != SEGMENTS}
        printer.print_op_attributes({**properties, **self.attributes})
        if flat:
            printer.print_string(" : ")
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_list(self.result_types, printer.print_attribute)


_NOTHING: Final = object()


def _parse_optional_operand(parser: Parser) -> Any:
    if parser.parse_optional_keyword("none") is not None:
        return None
    operand = parser.parse_optional_unresolved_operand()
    return _NOTHING if operand is None else operand


def _parse_operand(parser: Parser) -> Any:
    return None if parser.parse_optional_keyword("none") is not None else parser.parse_unresolved_operand()


@dataclass(frozen=True)
class Application:
    inputs: Sequence[Tensor]
    results: Sequence[Tensor]
    extents: Extents

    @property
    def types(self) -> tuple[graph.Tensor, ...]:
        return tuple(
            tensor_type([self.extents.of_te(extent) for extent in result.shape], type_of(result.dtype))
            for result in self.results
        )

    @property
    def assumed(self) -> list[tuple[GraphExtent, GraphExtent]]:
        tensors = (*self.inputs, *self.results)
        ops = {tensor.op: None for tensor in tensors} | dict.fromkeys(
            computations_behind([tensor.op for tensor in self.results])
        )
        equal = [found for op in ops for found in op.assumed if found.predicate is Predicate.EQ]
        return list(dict.fromkeys((self.extents.of_te(e.left), self.extents.of_te(e.right)) for e in equal))

    @property
    def passed(self) -> list[str]:
        """Further arguments: names that are no extents of inputs by themselves."""
        return self.extents.unbound

    def function(self, name: str) -> FuncOp:
        passed = [self.extents.variable(name) for name in self.passed]
        return te_function([*self.inputs, *passed, *self.results], name, ())


class Placeholders:
    def __init__(self, types: Sequence[graph.Tensor], others: Sequence[Shape] = ()) -> None:
        self.extents = Extents([shape_of(type_) for type_ in types], others)
        self.tensors: list[Tensor] = []

    def tensor(self, type_: graph.Tensor, name: str) -> Tensor:
        shape = tuple(map(self.extents.of_graph, shape_of(type_)))
        self.tensors.append(placeholder(shape, name_of(type_.element_type), name))
        return self.tensors[-1]

    def application(self, results: object) -> Application:
        return Application(self.tensors, [_computed(result) for result in items(results)], self.extents)


class Extents:
    """A variable for each name in extents of graph types."""

    def __init__(self, shapes: Sequence[Shape], others: Sequence[Shape] = ()) -> None:
        """`shapes` of operands bind the names that are extents by themselves."""
        extents = [extent for shape in shapes for extent in shape]
        bound = {name for extent in extents if (name := lone_name(extent)) is not None}
        extents += [extent for shape in others for extent in shape]
        names = sorted({name for extent in extents for name in names_in(extent)})
        self._variables = {name: Var(name, "int64") for name in names}
        self.unbound = [name for name in names if name not in bound]
        self.are_named = bool(names)

    def variable(self, name: str) -> Var:
        return self._variables[name]

    def of_graph(self, extent: GraphExtent) -> Extent:
        return UnknownExtent() if extent is None else ExtentVariables(self._variables).extent(extent)

    def of_te(self, extent: Extent) -> GraphExtent:
        found = ExtentVariables(self._variables).polynomial(extent)
        return found if names_in(found) <= self._variables.keys() else None


@lru_cache(maxsize=1 << 16)
def _inferred(
    cls: type[Operator], operands: tuple[graph.Tensor, ...], properties: frozenset[tuple[str, Attribute]]
) -> tuple[tuple[graph.Tensor, ...], Sequence[tuple[GraphExtent, GraphExtent]]]:
    applied = cls.on_placeholders(operands, dict(properties))
    return applied.types, applied.assumed


def _computed(result: object) -> Tensor:
    if not isinstance(result, Tensor):
        raise CompileError(f"a function of tensors returns tensors, got {shown(result)}")
    return (
        result if isinstance(result.op, ComputeOp | InlinedOp) else compute(result.shape, result, f"{result.name}_copy")
    )


def _arguments(cls: type[Operator], properties: Properties, shape: Callable[[Shape], object]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, attribute in properties.items():
        if isinstance(attribute, DimsAttr) and name in SHAPES:
            found[name] = shape(attribute.data)
        elif isinstance(attribute, DenseArrayBase):
            found[name] = list(cast("DenseArrayBase[Any]", attribute).get_values())
        else:
            found[name] = _argument(attribute, shape)
        if isinstance(found[name], Attribute):
            raise CompileError(f"{cls.name}: property '{name}' has no value of Python, got {attribute}")
    found.pop(SEGMENTS, None)
    return found


def _argument(attribute: Attribute, shape: Callable[[Shape], Any]) -> object:
    match attribute:
        case DimsAttr(data=(extent,)):
            return shape((extent,))[0]
        case ArrayAttr():
            return [_argument(item, shape) for item in attribute]
        case UnitAttr():
            return None
        case _:
            return value_of(attribute)


_TENSORS: Final = (
    *("Tensor", "Operand", "Tensor | float", "Tensor | int", "Sequence[Tensor]"),
    *("Tensor | None", "Tensor | float | None", "Tensor | int | None"),
)
"""Annotations of parameters that are operands."""


def _operator(definition: Callable[..., Tensor | tuple[Tensor, ...]], reference: Callable[..., Any]) -> type[Operator]:
    signature, label = inspect.signature(definition), definition.__name__
    fields: dict[str, object] = {
        "__doc__": definition.__doc__,
        "__module__": __name__,
        "name": f"{DIALECT}.{label}",
        "DEFINITION": staticmethod(definition),
        "REFERENCE": staticmethod(reference),
        "traits": traits_def(Pure(), *traits_of(definition)),
    }
    roles: list[Role] = []
    for parameter in signature.parameters.values():
        is_needed = parameter.default is inspect.Parameter.empty
        is_rest = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if is_rest or parameter.annotation in _TENSORS:
            several = is_rest or parameter.annotation == "Sequence[Tensor]"
            optional = "None" in parameter.annotation or not (is_needed or several)
            roles.append(Role(parameter.name, optional, several))
            kind = var_operand_def if several else opt_operand_def if optional else operand_def
            fields[parameter.name] = kind(TensorType)
        elif parameter.name != "name":
            fields[parameter.name] = prop_def(Attribute) if is_needed else opt_prop_def(Attribute)
    if any(role.is_optional for role in roles):
        fields["irdl_options"] = (AttrSizedOperandSegments(as_property=True),)
    if signature.return_annotation == "Tensor":
        fields["result"] = result_def(TensorType)
    else:
        fields["outputs"] = var_result_def(TensorType)
    title = "".join(word.capitalize() for word in label.split("_"))
    operator = irdl_op_definition(type(f"{title}Op", (Operator,), fields))
    operator.SIGNATURE, operator.ROLES = signature, tuple(roles)
    return operator


OPERATORS: Final = tuple(_operator(getattr(ops, name), reference_of(name)) for name in sorted(ops.__all__))

GRAPH: Final = Dialect(DIALECT, record_places([*STRUCTURE, *CONTROL, *OPERATORS]), [DimsAttr])
