"""Converters whose parameters are the inputs and attributes of a node.

    @converts("LpPool", since=2)
    def _lp_pool(node: Node, data: Value, *, kernel_shape: list[int], p: int, ceil_mode: bool = False) -> Item: ...

Positional parameters are inputs, read by their annotations; keyword-only parameters are attributes of the same names,
or of the names of the fields if the annotation is a dataclass. A default applies to an input or attribute that is
absent, or that the operator lacks in an opset.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, TypeAlias

from onnx import defs, helper

from weft.frontends.onnx.node import Node, Schema

Index: TypeAlias = int
"""The annotation of an attribute that is an axis of another tensor than the first input."""

_INPUTS: Final[Mapping[str, Callable[[Node, int], Any]]] = {
    "Value": Node.value,
    "Value | None": Node.optional,
    **dict.fromkeys(("Item", "Item | None"), Node.item),
    "KnownTensor": Node.known,
    "NDArray[Any]": Node.numbers,
    "list[int]": Node.indices,
    "list[int] | None": Node.indices,
    **dict.fromkeys(("KnownExtent", "KnownExtent | None"), Node.extent_at),
    **dict.fromkeys(("Sequence[KnownExtent]", "Sequence[KnownExtent] | None"), Node.extents),
    **dict.fromkeys(("int", "int | None"), lambda node, index: int(node.number_at(index))),
    **dict.fromkeys(("float", "float | None"), lambda node, index: float(node.number_at(index))),
}
"""Maps the annotation of an input to its reader."""
_ATTRIBUTES: Final[Mapping[str, Callable[[Node, str], Any]]] = {
    **dict.fromkeys(("bool", "bool | None"), Node.flag),
    "float": Node.number,
    "float | None": Node.number,
    "Index": Node.integer,
    "int": Node.integer,
    "int | None": Node.integer,
    "list[int]": Node.integers,
    "list[int] | None": Node.integers,
    "list[float]": Node.attribute,
    "list[float] | None": Node.attribute,
    "list[str]": Node.attribute,
    "list[str] | None": Node.attribute,
    "str": Node.attribute,
    "str | None": Node.attribute,
}
"""Maps the annotation of an attribute to its reader."""
_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bool", "int", "Index"), "INT"),
    **{"float": "FLOAT", "str": "STRING", "list[int]": "INTS", "list[float]": "FLOATS", "list[str]": "STRINGS"},
}
"""Maps the annotation of an attribute to its type in ONNX."""


def attribute(node: Node, name: str, annotation: str) -> Any:
    """An axis of the first input is made non-negative."""
    if name == "axis" and annotation != "Index":
        return node.axis(name, node.rank(0))
    return _ATTRIBUTES.get(annotation, Node.attribute)(node, name)


def _group(function: Callable[..., Any], parameter: inspect.Parameter) -> Callable[..., Any] | None:
    """The dataclass of attributes that a parameter stands for."""
    found = getattr(function, "__globals__", {}).get(str(parameter.annotation))
    is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    return found if is_keyword and isinstance(found, type) and is_dataclass(found) else None


def _attribute_of(node: Node, parameter: inspect.Parameter) -> Any:
    name, default = parameter.name, parameter.default
    has_default = default is not inspect.Parameter.empty
    is_given = node.declares_attribute(name) and (node.attribute(name) is not None or not has_default)
    return attribute(node, name, str(parameter.annotation)) if is_given else default


def with_parameters(function: Callable[..., Any]) -> Callable[[Node], Any]:
    _, *parameters = inspect.signature(function).parameters.values()
    if not parameters:
        return function
    positional = (p for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    readers = {parameter.name: _INPUTS[str(parameter.annotation)] for parameter in positional}
    groups = {p.name: group for p in parameters if (group := _group(function, p)) is not None}

    def convert(node: Node) -> Any:
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for index, parameter in enumerate(parameters):
            name, default = parameter.name, parameter.default
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                inputs += node.values(index)
            elif name in groups:
                fields = inspect.signature(groups[name]).parameters
                attributes[name] = groups[name](**{key: _attribute_of(node, field) for key, field in fields.items()})
            elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                attributes[name] = _attribute_of(node, parameter)
            else:
                is_given = node.has(index) or default is inspect.Parameter.empty
                inputs.append(readers[name](node, index) if is_given else default)
        return function(node, *inputs, **attributes)

    return convert


def definition(function: Callable[..., Any], domain: str, operator: str, since: int) -> Schema:
    schema: Any = defs.OpSchema
    option = schema.FormalParameterOption
    inputs, attributes = list[Any](), list[Any]()
    _, *declared = inspect.signature(function).parameters.values()
    parameters: list[inspect.Parameter] = []
    for parameter in declared:
        group = _group(function, parameter)
        fields = [parameter] if group is None else inspect.signature(group).parameters.values()
        parameters += [p if group is None else p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in fields]
    for parameter in parameters:
        name, default = parameter.name, parameter.default
        has_default = default is not inspect.Parameter.empty
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            is_variadic = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            is_optional = has_default or str(parameter.annotation).endswith(" | None")
            kind = option.Variadic if is_variadic else option.Optional if is_optional else option.Single
            inputs.append(schema.FormalParameter(name, "T", param_option=kind, is_homogeneous=False))
        elif has_default and default is not None:
            given = int(default) if isinstance(default, bool) else default
            attributes.append(schema.Attribute(name, helper.make_attribute(name, given)))
        else:
            kind = schema.AttrType[_KINDS[str(parameter.annotation).removesuffix(" | None")]]
            attributes.append(schema.Attribute(name, kind, required=not has_default))
    options = {"param_option": option.Variadic, "is_homogeneous": False, "min_arity": 0}
    outputs = [schema.FormalParameter("outputs", "T", **options)]  # converters determine the number
    types = [("T", ["tensor(float)"], "")]  # graph operators check element types
    return schema(
        operator, domain, since, inputs=inputs, outputs=outputs, type_constraints=types, attributes=attributes
    )
