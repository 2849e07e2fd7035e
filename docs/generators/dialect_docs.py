"""The pages of the dialects, from the definitions of their operations and attributes.

    python docs/generators/dialect_docs.py          # writes docs/dialects/*.md

A test compares the pages with the output. The docstring of an operation is its description. A paragraph that begins
with `Syntax:` states the syntax of an operation that has no assembly format. Fenced MLIR in a docstring is an example,
which a test parses and verifies: values that it does not define are parameters of a function around it. Constraints,
traits and effects are those of the definition, the errors of the verifier are the exceptions that its source raises.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import ArrayOfConstraint, SymbolNameConstraint
from xdsl.dialects.ptr import PtrType
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import (
    AllOf,
    AnyAttr,
    AnyOf,
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    MessageConstraint,
    OptionalDef,
    ParamAttrConstraint,
    RangeLengthConstraint,
    RangeOf,
    VarConstraint,
    VariadicDef,
    irdl_to_attr_constraint,
)
from xdsl.traits import (
    HasParent,
    IsTerminator,
    MemoryEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    NoTerminator,
    OpTrait,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))
import operator_forms

from weft.dialects.effects import PointerEffects, StatesFact, Synchronizes
from weft.dialects.low_kernel import InKernel
from weft.dialects.low_lanes import MASK
from weft.dialects.sched_parameters import FuncOp as SchedFuncOp
from weft.dialects.sched_parameters import StepOp
from weft.dialects.type_rule import TypeByRule
from weft.driver.universe import DIALECTS, load
from weft.texpr.graph_operators import Operator

PAGES = Path(__file__).parents[2] / "docs" / "dialects"
LEVELS = ("graph", "te", "tir", "low", "sched")
FENCE = re.compile(r"^```mlir\n(.*?)^```$", re.DOTALL | re.MULTILINE)

_SYNTAX = re.compile(r"^Syntax: (.*?)(?=\n\n|\n```|\Z)", re.DOTALL | re.MULTILINE)
_EFFECTS: Sequence[tuple[type[OpTrait], str]] = (
    (StatesFact, "none; kept all the same, because it states a fact or gives a hint"),
    (Synchronizes, "waits for other threads or exchanges values with them: neither erased nor moved"),
    (PointerEffects, "reads and writes the memory that its pointers give access to"),
    (RecursiveMemoryEffect, "those of the operations in its regions"),
    (NoMemoryEffect, "none"),
    (MemoryReadEffect, "reads its buffers"),
    (MemoryWriteEffect, "writes its buffers"),
)
_TRAITS: Sequence[tuple[type[OpTrait], str]] = (
    (IsTerminator, "ends a block"),
    (NoTerminator, "its blocks need no terminator"),
    (SymbolOpInterface, "defines a symbol"),
    (InKernel, "in kernels only"),
)
_WORDS: Mapping[Any, str] = {
    builtin.AffineMapAttr: "affine map",
    builtin.ArrayAttr: "array",
    builtin.BFloat16Type: "`bf16`",
    builtin.DenseArrayBase: "dense array",
    builtin.DenseIntOrFPElementsAttr: "`dense<...>`",
    builtin.DenseResourceAttr: "`dense_resource<...>`",
    builtin.DictionaryAttr: "dictionary",
    builtin.FloatAttr: "float",
    builtin.IndexType: "`index`",
    builtin.IntegerAttr: "integer",
    builtin.IntegerType: "integer",
    builtin.MemRefType: "memref",
    builtin.StringAttr: "string",
    builtin.SymbolRefAttr: "symbol reference",
    builtin.TensorType: "tensor",
    builtin.TupleType: "tuple",
    builtin.UnitAttr: "unit",
    builtin.VectorType: "vector",
    PtrType: "`!ptr_xdsl.ptr`",
}
"""Attributes that are called by a word of prose."""


def pages() -> dict[Path, str]:
    """Path -> text of each page."""
    return {PAGES / "README.md": _contents(), **{PAGES / f"{name}.md": page(name) for name in LEVELS}}


def dialect(name: str) -> Dialect:
    """A dialect of weft by its name."""
    return load(DIALECTS[name])


def page(name: str) -> str:
    """The page of a dialect: the docstring of its module, its operations, its attributes and types."""
    operations, attributes = list(dialect(name).operations), list(dialect(name).attributes)
    lines = [
        f"# Dialect {name}",
        "",
        "Generated from the definitions in `dialects/` by `python docs/generators/dialect_docs.py`.",
        "",
        _module_text(name),
        "",
        f"Operations: {', '.join(_link(op.name) for op in operations)}",
        "",
        f"Attributes and types: {', '.join(_link(attribute.name) for attribute in attributes)}",
    ]
    lines += ["\n" + _operation_text(op) for op in operations]
    lines += ["\n" + _attribute_text(attribute) for attribute in attributes]
    return "\n".join(lines) + "\n"


def _contents() -> str:
    lines = ["# Dialects", "", "| dialect | holds | operations |", "|---|---|---|"]
    for name in LEVELS:
        holds = _module_text(name).partition(".")[0].partition(": ")[2].replace("\n", " ")
        lines.append(f"| [{name}]({name}.md) | {holds} | {len(list(dialect(name).operations))} |")
    lines += [
        "",
        "`dialects/levels.py` states which operations each level allows; pass `verify-level` checks it.",
    ]
    return "\n".join(lines) + "\n"


def _module_text(name: str) -> str:
    return inspect.getdoc(import_module(f"weft.dialects.{name}")) or ""


def _link(name: str) -> str:
    return f"[{name}](#{name.replace('.', '')})"


_OPERATOR_SYNTAX = (
    "`graph.{name} %operand, ... [{{property = ...}}] : type, ... [-> type, ...]`: result types are optional; "
    "`none` is an omitted operand that precedes others."
)


def documentation(of: type[Operation] | type[Attribute]) -> str:
    """The docstring of an operation or attribute, its own; with an example of an operator of graphs."""
    text = inspect.cleandoc(of.__dict__.get("__doc__") or "")
    if issubclass(of, Operator):
        label = of.name.removeprefix("graph.")
        example = f"```mlir\n{operator_forms.example(label)}\n```"
        return f"{text}\n\n{example}\nSyntax: {_OPERATOR_SYNTAX.format(name=label)}"
    return text


def syntax(op: type[Operation]) -> str | None:
    """The assembly format of an operation, or what its docstring states; None for neither."""
    written = op.get_irdl_definition().assembly_format if issubclass(op, IRDLOperation) else None
    if written is not None:
        return f"`{op.name} {' '.join(_placeholders(written).split())}`"
    stated = _SYNTAX.search(documentation(op))
    return None if stated is None else " ".join(stated[1].split())


def _placeholders(assembly_format: str) -> str:
    """An assembly format without the quotes that separate its literals."""
    return re.sub(r"`([^`]*)`", r" \1 ", re.sub(r"custom<\w+>\((.*?)\)", r"\1", assembly_format))


def _operation_text(op: type[Operation]) -> str:
    definition = op.get_irdl_definition() if issubclass(op, IRDLOperation) else None
    lines = [f"### {op.name}", "", _SYNTAX.sub("", documentation(op)).strip(), "", f"- syntax: {syntax(op)}"]
    if definition is not None:
        properties = {
            name: of
            for name, of in definition.properties.items()
            if name not in ("operandSegmentSizes", "resultSegmentSizes")
        }
        for what, fields in (
            ("operands", definition.operands),
            ("properties", [*properties.items()]),
            ("attributes", [*definition.attributes.items()]),
            ("results", definition.results),
        ):
            if fields:
                listed = [f"`{name}`{_count(of)}: {_field_words(op, name, of.constr)}" for name, of in fields]
                lines.append(f"- {what}: {'; '.join(listed)}")
        if definition.regions:
            lines.append(f"- regions: {', '.join(f'`{name}`{_count(of)}' for name, of in definition.regions)}")
    if traits := _trait_words(op):
        lines.append(f"- traits: {'; '.join(traits)}")
    lines.append(f"- effects: {_effect_words(op)}")
    if not issubclass(op, Operator):  # those of operators are the errors of the functions of `te.ops`
        lines += _messages_text(op)
    return "\n".join(lines)


def _field_words(op: type[Operation], name: str, constraint: object) -> str:
    """The constraint of a field; the annotation of the function's parameter for a property of an operator."""
    if issubclass(op, Operator) and isinstance(constraint, AnyAttr):
        return f"`{op.SIGNATURE.parameters[name].annotation}`"
    return words(constraint)


def _attribute_text(attribute: type[Attribute]) -> str:
    lines = [f"### {attribute.name}", "", documentation(attribute)]
    if issubclass(attribute, EnumAttribute):
        lines += ["", f"- one of: {', '.join(f'`{word}`' for word in attribute.enum_type)}"]
    elif issubclass(attribute, ParametrizedAttribute):
        parameters = attribute.get_irdl_definition().parameters
        if parameters:
            lines += ["", f"- parameters: {'; '.join(f'`{name}`: {words(of.constr)}' for name, of in parameters)}"]
    messages = _messages_text(attribute)
    return "\n".join([*lines, *([""] if messages and not lines[-1].startswith("- ") else []), *messages])


def _count(of: object) -> str:
    """Returns " (optional)" or " (any number)" for a field that does not occur exactly once."""
    if isinstance(of, OptionalDef):
        return " (optional)"
    return " (any number)" if isinstance(of, VariadicDef) else ""


def words(constraint: object) -> str:
    """A constraint as prose."""
    match constraint:
        case RangeLengthConstraint(constraint=of) | MessageConstraint(constr=of):
            return words(of)
        case RangeOf(constr=of):
            return words(of)
        case AnyAttr():
            return "any"
        case _ if constraint == irdl_to_attr_constraint(builtin.BoolAttr):
            return "`true` or `false`"
        case VarConstraint(name="T", constraint=of):
            return f"{words(of)}, the same everywhere (`T`)"
        case VarConstraint(constraint=of):
            return words(of)
        case TypeByRule():
            return "vector of `i1`, as long as the others" if constraint == MASK else "vector, as long as the others"
        case EqAttrConstraint(attr=attribute):
            return (
                _WORDS.get(type(attribute)) if isinstance(attribute, builtin.IndexType | PtrType) else f"`{attribute}`"
            )
        case BaseAttr(attr=of):
            return _class_words(of)
        case AnyOf(attr_constrs=several):
            return " or ".join(map(words, several))
        case AllOf(attr_constrs=several):
            return " and ".join(map(words, several))
        case ArrayOfConstraint(elem_range_constraint=of):
            return f"array, of each: {words(of)}"
        case ParamAttrConstraint(base_attr=of, param_constrs=parameters):
            shown = [words(p) for p in parameters if not isinstance(p, AnyAttr) and not _is_plain(p)]
            return f"{_class_words(of)}{' of ' + ' and '.join(shown) if shown else ''}"
        case SymbolNameConstraint():
            return "symbol name"
        case _:
            return f"`{constraint}`"


def _is_plain(constraint: object) -> bool:
    """Whether a constraint on a parameter says nothing: the number of an integer, the nesting of a symbol."""
    return type(constraint).__name__ == "EmptyArrayAttrConstraint" or constraint == BaseAttr(builtin.IntAttr)


def _class_words(attribute: type[Attribute]) -> str:
    if attribute in _WORDS:
        return _WORDS[attribute]
    if hasattr(attribute, "name"):
        sigil = "!" if issubclass(attribute, builtin.TypeAttribute) else "#"
        return f"`{sigil}{attribute.name}`"
    return f"`{attribute.__name__}`"


def _trait_words(op: type[Operation]) -> list[str]:
    found = [text for trait, text in _TRAITS if op.get_traits_of_type(trait)]
    for parents in op.get_traits_of_type(HasParent):
        found.append(f"in {' or '.join(f'`{parent.name}`' for parent in parents.op_types)}")
    return found


def _effect_words(op: type[Operation]) -> str:
    """Returns the effects that the `MemoryEffect` traits of an operation state, as text."""
    if issubclass(op, StepOp | SchedFuncOp):
        return "none when the program runs; a step transforms the program"
    traits = op.get_traits_of_type(MemoryEffect)
    if not traits:
        return "unknown: it may do anything"
    found = [text for kind, text in _EFFECTS if any(isinstance(trait, kind) for trait in traits)]
    own = [t for t in traits if not any(isinstance(t, kind) for kind, _ in _EFFECTS)]
    found += [_first_sentence(inspect.getdoc(type(trait)) or "") for trait in own]
    return "; ".join(dict.fromkeys(found))


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split("\n\n")[0].split()).removesuffix(".")
    return sentence[:1].lower() + sentence[1:]


def _messages_text(of: type[Operation] | type[Attribute]) -> list[str]:
    messages = verifier_messages(of)
    return ["- errors of the verifier:", *(f"  - {message}" for message in messages)] if messages else []


def verifier_messages(of: type[Operation] | type[Attribute]) -> list[str]:
    """The messages of the exceptions that the verifier of an operation or attribute raises, from its source.

    Follows functions, methods and properties of weft's dialects; what a message holds of values is `…`.
    """
    roots: list[FunctionType] = []
    method = getattr(of, "verify_" if issubclass(of, Operation) else "verify", None)
    if isinstance(method, FunctionType):
        roots.append(_own(method))
    if issubclass(of, Operation):
        verifiers = [type(trait).__dict__.get("verify") for trait in sorted(of.traits.traits, key=repr)]
        roots += [verify for verify in verifiers if isinstance(verify, FunctionType)]
    found: dict[str, None] = {}
    seen: set[FunctionType] = set()
    while roots:
        function = roots.pop(0)
        if function in seen or not _is_ours(function):
            continue
        seen.add(function)
        found.update((text.replace("SELF", of.name), None) for text in _raised(function))
        roots += _called(function, of)
    return list(found)


def _own(method: FunctionType) -> FunctionType:
    """Returns the method as it was written, without the wrapper that xDSL puts around `verify_`."""
    cells = [cell.cell_contents for cell in method.__closure__ or ()]
    return method if _is_ours(method) else next((of for of in cells if isinstance(of, FunctionType)), method)


def _is_ours(function: FunctionType) -> bool:
    return function.__module__.startswith(("weft.dialects.", "weft.texpr.graph_operators"))


def _called(function: FunctionType, of: type) -> Iterator[FunctionType]:
    """The functions that a function names: globals, and methods and properties of the class."""
    for name in _names(function.__code__):
        for candidate in (function.__globals__.get(name), getattr(of, name, None), *_overridden(of, name)):
            inner = (
                candidate.fget if isinstance(candidate, property) else inspect.unwrap(candidate) if candidate else None
            )
            inner = getattr(inner, "__func__", inner)
            if isinstance(inner, FunctionType) and inner.__name__ not in ("parse", "print", "__init__"):
                yield _own(inner)


def _overridden(of: type, name: str) -> list[Any]:
    """Definitions of a method in all base classes, which `super()` reaches."""
    return [base.__dict__[name] for base in of.__mro__ if name in base.__dict__] if name.startswith("verify") else []


def _names(code: CodeType) -> list[str]:
    inner = [name for constant in code.co_consts if isinstance(constant, CodeType) for name in _names(constant)]
    return [*code.co_names, *inner]


@cache
def _raised(function: FunctionType) -> tuple[str, ...]:
    """The messages of the `VerifyException`s in the source of a function."""
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # a lambda within an expression
        return ()
    own = function.__code__.co_varnames[:1]
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[message, *_])):
                raised = function.__globals__.get(name)
                if isinstance(raised, type) and issubclass(raised, VerifyException):
                    found.append(_message(message, own).removeprefix("…").removeprefix(":").strip())
            case _:
                pass
    return tuple(text for text in found if text.strip("… "))


def _message(node: ast.expr, own: Sequence[str]) -> str:
    """The text of a message; `SELF` stands for the name of the operation, which is called `own` there, `…` for other
    values."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return re.sub("…+", "…", "".join(_message(part, own) for part in parts))
        case ast.FormattedValue(value=ast.Attribute(value=ast.Name(id=name), attr="name")) if name in own:
            return "SELF"
        case _:
            return "…"


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
