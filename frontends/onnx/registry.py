"""The table of converters: (domain, operator, version) -> the function that writes it as operators of graphs.

A converter takes a `Node`, and the inputs and attributes that its parameters name (`parameters.py`), and returns the
outputs: a value, or a sequence of them, with None for an output that the node does not name. None for all leaves the
node to the operators that ONNX defines it by. The converter reads all attributes and inputs that it honours: a node
with others is refused. Operators that are other names of functions of `te.ops` are converted by `spelled.py`.

    @converts("LpPool", since=18)
    def _lp_pool(node: Node, data: Value, *, p: int, ceil_mode: bool = False) -> Item:
        ...

An operator that the package `onnx` does not define is defined by the parameters of its converter (`defines`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.frontends.onnx.known import Entry
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
    "traditional",
    "training_steps",
    "transformers",
    "contrib.attention",
    "contrib.blocks",
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
"""The modules of this package that hold converters; the last one that a module registers is taken."""


@dataclass(frozen=True)
class _Entry:
    since: int
    until: int | None
    convert: Converter
    is_users: bool = False
    schema: Schema | None = None
    """The definition of an operator that the package `onnx` does not have."""


_converters: Final[dict[tuple[str, str], list[_Entry]]] = {}


def converts(
    *operators: str, since: int = 1, until: int | None = None, domain: str = ""
) -> Callable[[ConverterT], ConverterT]:
    """Let a function convert operators, from the version `since` of these to `until` (the newest)."""

    from weft.frontends.onnx.parameters import with_parameters  # needs onnx, an extra

    def enter(function: ConverterT) -> ConverterT:
        for operator in operators:
            entry = _Entry(since, until, with_parameters(function))
            _converters.setdefault((domain, operator), []).append(entry)
        return function

    return enter


def defines(
    *operators: str, since: int = 1, until: int | None = None, domain: str = "com.microsoft"
) -> Callable[[ConverterT], ConverterT]:
    """Let a function convert operators that the package `onnx` does not define, from the version `since` of `domain` to
    `until`. Its parameters are their definition: inputs by position, attributes by keyword, each optional if it has a
    default."""

    from weft.frontends.onnx.parameters import definition, with_parameters  # needs onnx, an extra

    def enter(function: ConverterT) -> ConverterT:
        for operator in operators:
            schema = definition(function, domain, operator, since)
            entry = _Entry(since, until, with_parameters(function), schema=schema)
            _converters.setdefault((domain, operator), []).append(entry)
        return function

    return enter


def definition_of(domain: str, operator: str, version: int) -> Schema | None:
    """The definition of an operator that the package `onnx` does not have; None if weft does not have it either, or a
    user registered another converter."""
    found = _found(domain, operator, version)
    return None if found is None else found.schema


def definitions() -> Mapping[tuple[str, str], Schema]:
    """Definitions by domain and operator of those that weft defines."""
    load_converters()
    found = {key: entry.schema for key, entries in _converters.items() for entry in entries}
    return {key: found[key] for key in sorted(found) if found[key] is not None}


def register(domain: str, operator: str, since: int = 1) -> Callable[[ConverterT], ConverterT]:
    """Let a function of the user convert an operator, from version `since` of its domain on; it goes before weft's own.

        @weft.onnx.register("com.acme", "Scale", since=2)
        def scale(node):
            return G.multiply(node.value(0), node.number("factor"))

    Raises `CompileError` for a version below 1.
    """
    if since < 1:
        raise CompileError(f"onnx.register {operator}: versions are counted from 1, got {since}")
    load_converters()

    def enter(function: ConverterT) -> ConverterT:
        _converters.setdefault((domain_name(domain), operator), []).append(_Entry(since, None, function, True))
        return function

    return enter


def unregister(domain: str, operator: str) -> None:
    """Forget the converter that was registered last. Raises `CompileError` when there is none."""
    entries = _converters.get((domain_name(domain), operator))
    if not entries or not entries[-1].is_users:
        raise CompileError(f"onnx.unregister: there is no converter of {operator} in domain '{domain}'")
    entries.pop()


def is_customised() -> bool:
    """Whether users registered converters."""
    return any(entry.is_users for entries in _converters.values() for entry in entries)


def is_users(domain: str, operator: str, version: int) -> bool:
    """Whether a user registered the converter of that version of an operator."""
    found = _found(domain, operator, version)
    return found is not None and found.is_users


def converter_of(domain: str, operator: str, version: int, *, is_defined: bool) -> Converter | None:
    """The converter of that version of an operator, None where there is none: weft's own are for operators that ONNX
    defines in that version."""
    found = _found(domain, operator, version)
    return None if found is None or not (is_defined or found.is_users) else found.convert


def domain_name(domain: str) -> str:
    """The name of a domain; that of ONNX's own has two spellings."""
    return "" if domain == "ai.onnx" else domain


def load_converters() -> None:
    """Import the modules that hold weft's converters."""
    for family in _FAMILIES:
        import_module(f"weft.frontends.onnx.{family}")


def _found(domain: str, operator: str, version: int) -> _Entry | None:
    load_converters()
    for entry in reversed(_converters.get((domain_name(domain), operator), ())):
        if entry.since <= version and (entry.until is None or version <= entry.until):
            return entry
    return None
