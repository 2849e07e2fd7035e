"""The operators of the graph dialect, each the function of `te.ops` that defines it.

An operator is one line of `OPERATORS`: its function, its operands, its reference in NumPy, and those parameters of the
function that are properties of the op. The types of its results, the tensor expressions that it is lowered to and the
function's checks follow from the function, called on placeholders of the operand types; the interpreter calls the
reference. The docstring of the op is that of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    DenseArrayBase,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from weft.dialects import graph
from weft.dialects.attribute_values import value_of
from weft.dialects.graph import DIALECT, STRUCTURE
from weft.dialects.graph_shapes import (
    DimsAttr,
    Expression,
    ShapeError,
    lone_name,
    names_in,
    refines,
    shape_of,
    substitute,
    tensor_type,
)
from weft.dialects.graph_shapes import Extent as GraphExtent
from weft.support.errors import CompileError, InternalError
from weft.support.locations import record_places
from weft.texpr import ops
from weft.texpr.expr import Var, name_of, type_of
from weft.texpr.function import te_function
from weft.texpr.ops.arguments import compute
from weft.texpr.shapes import Extent, ExtentNames, UnknownExtent, items
from weft.texpr.tensor import ComputeOp, Tensor, placeholder

Array: TypeAlias = NDArray[Any]
Properties: TypeAlias = Mapping[str, Attribute]

INTEGERS: Final = DenseArrayBase.constr(i64)
"""A property that is a list of integers."""


class Operator(IRDLOperation):
    """An operator that a function of `te.ops` defines: no effects, and result types that follow from its operands and
    properties by `infer`.

    `of`, the parser (`-> types` may be left out), the verifier and the pass `graph-infer-types` share
    `infer`. Text: `%y = graph.name %a, %b {property = ...} : T, U -> V`.
    """

    DEFINITION: ClassVar[Callable[..., Tensor | tuple[Tensor, ...]]]
    """Tensors and properties -> the results, as tensor expressions."""
    REFERENCE: ClassVar[Callable[..., Array | tuple[Array, ...]]]
    """The same on arrays, float32 for floats of 16 bits."""

    traits = traits_def(Pure())

    @classmethod
    def of(cls, operands: Sequence[SSAValue], properties: Properties | None = None) -> Self:
        """The op on `operands`, with inferred result types. Raises `ShapeError` when it does not take them."""
        given = dict(properties or {})
        types = cls.infer([operand.type for operand in operands], given)
        return cls.create(operands=operands, result_types=types, properties=given)

    @classmethod
    def infer(cls, types: Sequence[Attribute], properties: Properties) -> tuple[graph.Tensor, ...]:
        """The result types. Raises `ShapeError` when the op does not take operands of these types."""
        expected = len(cls.get_irdl_definition().operands)
        if len(types) != expected:
            raise ShapeError(f"{cls.name} takes {expected} operands, got {len(types)}")
        for position, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                raise ShapeError(f"{cls.name}: operand {position} must be a ranked tensor, got {type_}")
        return _inferred(cls, cast("tuple[graph.Tensor, ...]", tuple(types)), frozenset(properties.items()))

    def verify_(self) -> None:
        inferred = self.infer(self.operand_types, self.properties)
        declared_types = cast("Sequence[graph.Tensor]", self.result_types)
        for position, (declared, found) in enumerate(zip(declared_types, inferred, strict=True)):
            if declared.element_type != found.element_type or not refines(shape_of(found), shape_of(declared)):
                raise VerifyException(
                    f"{self.name}: result {position} is declared {declared}, but the operands give {found}"
                )

    @classmethod
    def on_placeholders(cls, operands: Sequence[graph.Tensor], properties: Properties) -> Application:
        """The operator on placeholders of the given types. Raises `ShapeError` where it does not take them."""
        extents = _Extents([shape_of(type_) for type_ in operands])
        roles = [role for role, _ in cls.get_irdl_definition().operands]
        try:
            inputs = [
                placeholder(tuple(map(extents.of_graph, shape_of(type_))), name_of(type_.element_type), role)
                for role, type_ in zip(roles, operands, strict=True)
            ]
            name = cls.name.removeprefix(f"{DIALECT}.")
            results = [_computed(r) for r in items(cls.DEFINITION(*inputs, **_arguments(properties), name=name))]
        except CompileError as error:
            hint = " (extents that are always equal carry the same name)" if extents.are_named else ""
            label = getattr(cls.DEFINITION, "__name__", "")
            message = error.message.removeprefix(f"{label}:").removeprefix(f"{label} takes").strip()
            verb = " takes" if error.message.startswith(f"{label} takes") else ":"
            raise ShapeError(f"{cls.name}{verb} {message}{hint}") from None
        return Application(inputs, results, extents)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The properties, as the definition and the reference take them."""
        return _arguments(self.properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        at = parser.pos
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        given = parser.parse_optional_attr_dict()
        names = cls.get_irdl_definition().properties.keys()
        properties = {name: attribute for name, attribute in given.items() if name in names}
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        end = parser.pos
        results: Sequence[Attribute] | None = None
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        resolved = parser.resolve_operands(operands, types, at)
        if results is None:
            try:
                results = cls.infer(types, properties)
            except VerifyException as error:
                parser.raise_error(str(error), at, end)
        attributes = {name: attribute for name, attribute in given.items() if name not in names}
        return cls.create(operands=resolved, result_types=results, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_list(self.result_types, printer.print_attribute)


@dataclass(frozen=True)
class Application:
    """An operator applied to placeholders."""

    inputs: Sequence[Tensor]
    results: Sequence[Tensor]
    extents: _Extents

    @property
    def types(self) -> tuple[graph.Tensor, ...]:
        """The types of the results."""
        return tuple(
            tensor_type([self.extents.of_te(extent) for extent in result.shape], type_of(result.dtype))
            for result in self.results
        )

    def function(self, name: str) -> FuncOp:
        """The function of tensor expressions from the inputs to the results."""
        return te_function([*self.inputs, *self.results], name, ())


class _Extents:
    """Maps extents of graph types to extents of tensor expressions, and back.

    A name that is itself an extent of an operand becomes a variable. An expression over other names, which no extent
    binds, becomes one variable as a whole.
    """

    def __init__(self, shapes: Sequence[Sequence[GraphExtent]]) -> None:
        extents = [extent for shape in shapes for extent in shape]
        lone = {name for extent in extents if (name := lone_name(extent)) is not None}
        self._variables = {name: Var(name, "int64") for name in sorted(lone)}
        self._whole: dict[Expression, Var] = {}
        for extent in extents:
            if isinstance(extent, Expression) and not names_in(extent) <= lone:
                self._whole.setdefault(extent, Var(f"s{len(self._whole)}", "int64"))
        self.are_named = bool(self._variables or self._whole)

    def of_graph(self, extent: GraphExtent) -> Extent:
        if extent is None:
            return UnknownExtent()
        if isinstance(extent, Expression) and extent in self._whole:
            return self._whole[extent]
        return ExtentNames(self._variables).extent(extent)

    def of_te(self, extent: Extent) -> GraphExtent:
        names = ExtentNames(self._variables)
        found = names.polynomial(extent)
        whole = {names.name(variable): expression for expression, variable in self._whole.items()}
        if not names_in(found) <= self._variables.keys() | whole.keys():
            return None
        return substitute(found, whole)


@lru_cache(maxsize=4096)
def _inferred(
    cls: type[Operator], operands: tuple[graph.Tensor, ...], properties: frozenset[tuple[str, Attribute]]
) -> tuple[graph.Tensor, ...]:
    return cls.on_placeholders(operands, dict(properties)).types


def _computed(result: object) -> Tensor:
    """A computed tensor: `result`, or a copy of it where the function returned one of its operands."""
    if not isinstance(result, Tensor):
        raise InternalError(f"operators return tensors, got {result!r}")
    return result if isinstance(result.op, ComputeOp) else compute(result.shape, result, f"{result.name}_copy")


def _arguments(properties: Properties) -> dict[str, Any]:
    """Properties as arguments of a function of `te.ops`."""
    return {
        name: list(cast("DenseArrayBase[Any]", attribute).get_values())
        if isinstance(attribute, DenseArrayBase)
        else value_of(attribute)
        for name, attribute in properties.items()
    }


def _operator(
    name: str,
    definition: Callable[..., Tensor | tuple[Tensor, ...]],
    operands: str,
    reference: Callable[..., Any],
    **properties: Any,
) -> type[Operator]:
    """The op `graph.name`; `properties` are constraints of optional properties."""
    fields: dict[str, object] = {
        "__doc__": definition.__doc__,
        "__module__": __name__,
        "name": f"{DIALECT}.{name}",
        "DEFINITION": staticmethod(definition),
        "REFERENCE": staticmethod(reference),
        **{operand: operand_def(TensorType) for operand in operands.split()},
        **{label: opt_prop_def(constraint) for label, constraint in properties.items()},
        "result": result_def(TensorType),
    }
    label = "".join(word.capitalize() for word in name.split("_"))
    return irdl_op_definition(type(f"{label}Op", (Operator,), fields))


def _relu(source: Array) -> Array:
    return np.maximum(source, np.zeros((), source.dtype))


def _mish(data: Array) -> Array:
    return data * np.tanh(np.logaddexp(data, 0))


OPERATORS: Final = (
    _operator("add", ops.add, "lhs rhs", np.add),
    _operator("subtract", ops.subtract, "lhs rhs", np.subtract),
    _operator("multiply", ops.multiply, "lhs rhs", np.multiply),
    _operator("divide", ops.divide, "lhs rhs", np.divide),
    _operator("maximum", ops.maximum, "lhs rhs", np.maximum),
    _operator("minimum", ops.minimum, "lhs rhs", np.minimum),
    _operator("relu", ops.relu, "source", _relu),
    _operator("mish", ops.mish, "data", _mish),
    _operator("matmul", ops.matmul, "lhs rhs", np.matmul),
    _operator("permute_dims", ops.transpose, "source", np.transpose, axes=INTEGERS),
)

GRAPH: Final = Dialect(DIALECT, record_places([*STRUCTURE, *OPERATORS]), [DimsAttr])
