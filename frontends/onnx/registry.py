"""The table of converters: domain, operator and version to the function that rewrites a node to graph operators.

A converter takes a `Node`, and the inputs and attributes that its parameters name (`parameters.py`). It returns the
outputs: a value, or a sequence of values, with None for an output that the node does not name. A result of None leaves
the node to its definition by other operators. The converter must read each attribute and input that it honours: a node
with others is refused.

    @converts("LpPool", since=18)
    def _lp_pool(node: Node, data: Value, *, p: int, ceil_mode: bool = False) -> Item:
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.frontends.onnx.known_tensors import Entry
    from weft.frontends.onnx.node import Node, Schema

Converter: TypeAlias = "Callable[[Node], Entry | Sequence[Entry | None] | None]"
ConverterT = TypeVar("ConverterT", bound="Callable[..., Entry | Sequence[Entry | None] | None]")

_FAMILIES: Final = (
    "spelled",
    "control_flow",
    "dequantized_products",
    "elementwise",
    "images",
    "indexing",
    "neural",
    "ngrams",
    "products",
    "quantization",
    "recurrent",
    "reductions",
    "sequences",
    "shapes",
    "spectral",
    "ml_domain",
    "training_steps",
    "transformers",
    "contrib.attention",
    "contrib.nchwc",
    "contrib.convolutions",
    "contrib.elementwise",
    "contrib.experts",
    "contrib.grouped_attention",
    "contrib.images",
    "contrib.normalization",
    "contrib.products",
    "contrib.quantization",
    "contrib.shapes",
)
"""The modules of this package that contain converters; the last registration wins."""


@dataclass(frozen=True)
class _Registration:
    since: int
    until: int | None
    convert: Converter
    is_by_user: bool = False
    schema: Schema | None = None
    """The definition of an operator that the package `onnx` lacks."""


_converters: Final[dict[tuple[str, str], list[_Registration]]] = {}


def converts(
    *operators: str, since: int = 1, until: int | None = None, domain: str = ""
) -> Callable[[ConverterT], ConverterT]:
    """Register a converter for the versions `since` to `until` (by default, the newest)."""

    from weft.frontends.onnx.parameters import with_parameters  # needs onnx, an extra

    def enter(function: ConverterT) -> ConverterT:
        for operator in operators:
            entry = _Registration(since, until, with_parameters(function))
            _converters.setdefault((domain, operator), []).append(entry)
        return function

    return enter


def defines(
    *operators: str, since: int = 1, until: int | None = None, domain: str = "com.microsoft"
) -> Callable[[ConverterT], ConverterT]:
    """Register a converter of operators that the package `onnx` does not define, for the versions `since` to `until` of
    `domain`. Its parameters define them: inputs by position, attributes by keyword, optional with a default."""

    from weft.frontends.onnx.parameters import definition, with_parameters  # needs onnx, an extra

    def enter(function: ConverterT) -> ConverterT:
        for operator in operators:
            schema = definition(function, domain, operator, since)
            entry = _Registration(since, until, with_parameters(function), schema=schema)
            _converters.setdefault((domain, operator), []).append(entry)
        return function

    return enter


def definition_of(domain: str, operator: str, version: int) -> Schema | None:
    """The definition of an operator that `onnx` lacks, or None if weft lacks it too or a user registered another
    converter."""
    found = _found(domain, operator, version)
    return None if found is None else found.schema


def definitions() -> Mapping[tuple[str, str], Schema]:
    load_converters()
    found = {key: entry.schema for key, entries in _converters.items() for entry in entries}
    return {key: found[key] for key in sorted(found) if found[key] is not None}


def register(domain: str, operator: str, since: int = 1) -> Callable[[ConverterT], ConverterT]:
    """Register a user's converter of an operator, from version `since` of its domain on. It overrides weft's.

        @weft.onnx.register("com.acme", "Scale", since=2)
        def scale(node):
            return G.multiply(node.value(0), node.number("factor"))

    Raises `CompileError` for a version below 1, or a function with other parameters than the node.
    """
    if since < 1:
        raise CompileError(f"onnx.register {operator}: versions are counted from 1, got {since}")
    load_converters()

    def enter(function: ConverterT) -> ConverterT:
        if len(signature(function).parameters) != 1:
            raise CompileError(
                f"onnx.register {operator}: a converter has one parameter, the node, got {signature(function)}"
            )
        _converters.setdefault((domain_name(domain), operator), []).append(_Registration(since, None, function, True))
        return function

    return enter


def unregister(domain: str, operator: str) -> None:
    """Remove the converter that was registered last. Raises `CompileError` if there is none."""
    entries = _converters.get((domain_name(domain), operator))
    if not entries or not entries[-1].is_by_user:
        raise CompileError(f"onnx.unregister: there is no converter of {operator} in domain '{domain}'")
    entries.pop()


def is_customised() -> bool:
    return any(entry.is_by_user for entries in _converters.values() for entry in entries)


def is_registered_by_user(domain: str, operator: str, version: int) -> bool:
    found = _found(domain, operator, version)
    return found is not None and found.is_by_user


def converter_of(domain: str, operator: str, version: int, *, is_defined: bool) -> Converter | None:
    """weft's own converters apply only to operators that ONNX defines in that version."""
    found = _found(domain, operator, version)
    return None if found is None or not (is_defined or found.is_by_user) else found.convert


def domain_name(domain: str) -> str:
    """ONNX's domain has two spellings."""
    return "" if domain == "ai.onnx" else domain


@cache
def load_converters() -> None:
    for family in _FAMILIES:
        import_module(f"weft.frontends.onnx.{family}")


def _found(domain: str, operator: str, version: int) -> _Registration | None:
    load_converters()
    for entry in reversed(_converters.get((domain_name(domain), operator), ())):
        if entry.since <= version and (entry.until is None or version <= entry.until):
            return entry
    return None
