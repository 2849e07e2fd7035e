"""Read `pass-a,pass-b{option=value list=1,2 flag}` into passes, with errors that say what was expected.

The grammar is xDSL's (options are separated by blanks). More lenient than xDSL: a bare `flag` is true, and an integer
is a number where a float is expected.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa, type_repr

from weft.support.errors import CompileError, did_you_mean
from weft.support.locations import SourceLocation, remember_text

ConvertibleT = TypeVar("ConvertibleT", bound=ArgSpecConvertible)

_TYPE_WORDS: Mapping[Any, str] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a name or string",
    tuple[int, ...]: "integers separated by commas",
    tuple[float, ...]: "numbers separated by commas",
    tuple[str, ...]: "names separated by commas",
    tuple[bool, ...]: "true or false, separated by commas",
}


def parse_pipeline_text(
    text: str, available: Mapping[str, Callable[[], type[ConvertibleT]]], what: str
) -> tuple[ConvertibleT, ...]:
    """The passes (or targets: `what` names the kind) that `text` lists. Raises `CompileError`."""
    found: list[ConvertibleT] = []
    for spec in _parse_specs(text, what):
        if spec.name not in available:
            raise CompileError(f"unknown {what} '{spec.name}'{did_you_mean(spec.name, available)}")
        found.append(configure(available[spec.name](), spec, what))
    return tuple(found)


def _parse_specs(text: str, what: str) -> list[ArgSpec]:
    try:
        return list(parse_pipeline(text))
    except ArgSpecParseError as error:
        message, location = _syntax_error(str(error), text, what)
        raise CompileError(message, location=location) from None


def _syntax_error(rendered: str, text: str, what: str) -> tuple[str, SourceLocation | None]:
    """Message and place of an `ArgSpecParseError`, which keeps them only inside its text:
    a headline, `file:line:column`, the source line, carets, the message."""
    lines = rendered.rstrip("\n").split("\n")
    name = f"<{what} option>"
    remember_text(name, text)
    try:
        _, line, column = lines[1].rsplit(":", 2)
        return lines[4].strip(), SourceLocation(name, int(line), int(column), lines[3].count("^"))
    except (IndexError, ValueError):
        return f"{what} specification '{text}' cannot be parsed", None


def configure(kind: type[ConvertibleT], spec: ArgSpec, what: str) -> ConvertibleT:
    """An instance of `kind` with the options of `spec`. Raises `CompileError` naming the option that is wrong."""
    subject = f"{what} '{spec.name}'"
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init and f.name != "name"}
    types = get_type_hints(kind)
    given = spec.normalize_parameter_names().parameters
    options = {name.replace("_", "-") for name in fields}
    for name in given:
        if name not in fields:
            hint = did_you_mean(name.replace("_", "-"), options) if options else ": it has no options"
            raise CompileError(f"{subject} has no option '{name.replace('_', '-')}'{hint}")
    for name in sorted(kind.required_fields() - given.keys()):
        # xDSL looks at the text of an annotation, and takes `int | None` without default for required
        if NoneType in get_args(types[name]):
            given = {**given, name: ()}
        elif name in fields:
            raise CompileError(f"{subject} needs option '{name.replace('_', '-')}', {type_in_words(types[name])}")
    parameters = {name: _converted(values, types[name], name, subject) for name, values in given.items()}
    try:
        return kind.from_spec(ArgSpec(spec.name, parameters))
    except ValueError as error:
        raise CompileError(f"{subject}: {error}") from error


def _alternatives(expected: Any) -> tuple[Any, ...]:
    if get_origin(expected) in (Union, UnionType):
        return tuple(t for t in get_args(expected) if t is not NoneType)
    return (expected,)


def _converted(values: ParameterListType, expected: Any, name: str, subject: str) -> ParameterListType:
    """`values` as xDSL accepts them for a field of type `expected`."""
    alternatives = _alternatives(expected)
    if not values:
        if bool in alternatives:
            return (True,)
        if NoneType in get_args(expected):
            return ()
    numbers = tuple(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values)
    for candidate in (values, numbers):
        if any(_fits(candidate, alternative) for alternative in alternatives):
            return candidate
    shown = ",".join(_shown(v) for v in values) if values else "nothing"
    option = name.replace("_", "-")
    raise CompileError(f"{subject}: option '{option}' expects {type_in_words(expected)}, got {shown}")


def _fits(values: ParameterListType, expected: Any) -> bool:
    """Whether xDSL takes `values` for `expected`; `true` is an integer to Python, not to users."""
    if any(isinstance(v, bool) for v in values) and expected is not bool and bool not in get_args(expected):
        return False
    return isa(values, expected) or (len(values) == 1 and isa(values[0], expected))


def _shown(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def type_in_words(expected: Any) -> str:
    """What may be typed for an option of a type: `integers separated by commas`."""
    return " or ".join(_TYPE_WORDS.get(t, type_repr(t)) for t in _alternatives(expected))
