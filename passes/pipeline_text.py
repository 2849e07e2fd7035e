"""Parse `pass-a,pass-b{option=value list=1,2 flag}` into passes, with errors that name the expected syntax.

The grammar is xDSL's (options are separated by blanks), except that a bare `flag` is true and floats may be integers.
Pipelines nest as in MLIR: `builtin.module(cse,func.func(canonicalize))` runs `canonicalize` on each function
(`nested.py`); `any(...)` runs on any operations.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ArgSpecConvertible, ParameterListType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError
from xdsl.utils.hints import isa, type_repr

from weft.passes.nested import ANY, NestedPasses
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


MODULE = "builtin.module"


def parse_passes(text: str, available: Mapping[str, Callable[[], type[ModulePass]]]) -> tuple[ModulePass, ...]:
    """Nested passes are `NestedPasses`; `builtin.module(...)` or `any(...)` may enclose the text. Raises
    `CompileError`.
    """
    elements = _Scanner(text).elements()
    if len(elements) == 1 and elements[0].name in (MODULE, ANY):
        elements = elements[0].nested or ()
    elif whole := next((e.name for e in elements if e.name in (MODULE, ANY)), None):
        raise CompileError(f"'{whole}(...)' stands alone at the outermost level: write {MODULE}({text})")
    return _passes(elements, available)


def _passes(
    elements: Sequence[_PipelineElement], available: Mapping[str, Callable[[], type[ModulePass]]]
) -> tuple[ModulePass, ...]:
    found: list[ModulePass] = []
    for element in elements:
        if element.nested is None:
            found.extend(_configured(element.specs, available, "pass"))
        else:
            found.append(NestedPasses(element.name, _passes(element.nested, available)))
    return tuple(found)


def parse_pipeline_text(
    text: str, available: Mapping[str, Callable[[], type[ConvertibleT]]], what: str
) -> tuple[ConvertibleT, ...]:
    """The targets, or the kind named by `what`. Raises `CompileError`."""
    return tuple(_configured(_parse_specs(text, what), available, what))


def _configured(
    specs: Sequence[ArgSpec], available: Mapping[str, Callable[[], type[ConvertibleT]]], what: str
) -> list[ConvertibleT]:
    return [configure(load(spec.name, available, what), spec, what) for spec in specs]


def load(name: str, available: Mapping[str, Callable[[], type[ConvertibleT]]], what: str) -> type[ConvertibleT]:
    """Raises `CompileError` if there is no such class, or its package fails on import."""
    if name not in available:
        raise CompileError(f"unknown {what} '{name}'{did_you_mean(name, available)}")
    try:
        return available[name]()
    except Exception as error:
        raise CompileError(f"{what} '{name}' cannot be loaded: {type(error).__name__}: {error}") from error


def pipeline_text(passes: Sequence[ModulePass]) -> str:
    """Text that `parse_passes` accepts: `builtin.module(tir-split{block="B"},func.func(cse))`."""
    return f"{MODULE}({','.join(map(_pass_text, passes))})"


def _pass_text(module_pass: ModulePass) -> str:
    if isinstance(module_pass, NestedPasses):
        return f"{module_pass.name}({','.join(map(_pass_text, module_pass.passes))})"
    options = [
        name.replace("_", "-") + (f"={','.join(map(_value_text, values))}" if values else "")
        for name, values in module_pass.spec().parameters.items()
    ]
    return module_pass.name + (f"{{{' '.join(options)}}}" if options else "")


def _value_text(value: str | float | bool) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{escaped}"'
    return _shown(value)


@dataclass(frozen=True)
class _PipelineElement:
    name: str
    specs: Sequence[ArgSpec] = ()
    nested: Sequence[_PipelineElement] | None = None


_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"[A-Za-z0-9_.-]*")
_OPTIONS = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|[^"{}])*""")
_TO_NEXT = re.compile(r"""(?:\[[^\]]*\]|[^,()\[])*""")


class _Scanner:
    """Finds parentheses; xDSL's parser reads what is between them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[tuple[str, int]] = []
        """The operations of open pipelines, and the positions where they begin."""

    def elements(self) -> list[_PipelineElement]:
        found: list[_PipelineElement] = []
        while True:
            self._skip(_BLANKS)
            if self._text[self._at : self._at + 1] in (",", "("):
                self._fail("expected a pass here", self._at)
            if self._at < len(self._text) and self._text[self._at] != ")":
                found.append(self._element())
                self._skip(_BLANKS)
            if self._at == len(self._text):
                if self._open:
                    name, start = self._open[-1]
                    self._fail(f"the '(' of '{name}' is not closed", start, len(name))
                return found
            if self._text[self._at] == ")":
                if not self._open:
                    self._fail("this ')' closes nothing", self._at)
                return found
            if self._text[self._at] != ",":
                self._fail("expected a comma here", self._at)
            self._at += 1

    def _element(self) -> _PipelineElement:
        start = self._at
        self._skip(_NAME)
        name = self._text[start : self._at]
        if self._text.startswith("(", self._at) and name:
            self._open.append((name, start))
            self._at += 1
            nested = self.elements()
            self._at += 1
            self._open.pop()
            return _PipelineElement(name, nested=nested)
        if self._text.startswith("{", self._at):
            self._skip_options()
        self._skip(_TO_NEXT)
        text = self._text[start : self._at].rstrip()
        return _PipelineElement(name, _parse_specs(text, "pass", self._text, start))

    def _skip_options(self) -> None:
        depth = 0
        while True:
            depth += {"{": 1, "}": -1}.get(self._text[self._at], 0)
            self._at += 1
            if depth == 0:
                return
            self._skip(_OPTIONS)
            if self._at == len(self._text) or self._text[self._at] == '"':
                self._at = len(self._text)  # xDSL's parser reports the error
                return

    def _skip(self, pattern: re.Pattern[str]) -> None:
        if (match := pattern.match(self._text, self._at)) is not None:
            self._at = match.end()

    def _fail(self, message: str, start: int, length: int = 1) -> NoReturn:
        remember_text("<pass option>", self._text)
        raise CompileError(message, location=SourceLocation("<pass option>", 1, start + 1, length))


def _parse_specs(text: str, what: str, whole: str | None = None, offset: int = 0) -> list[ArgSpec]:
    """Parse `text`, which is at `offset` in `whole`."""
    try:
        return list(parse_pipeline(text))
    except ArgSpecParseError as error:
        message, location = _syntax_error(str(error), text, what)
        if location is not None and whole is not None:
            remember_text(location.file, whole)
            location = replace(location, column=location.column + offset)
        raise CompileError(message, location=location) from None


def _syntax_error(rendered: str, text: str, what: str) -> tuple[str, SourceLocation | None]:
    """Message and place from the text of an `ArgSpecParseError`: a headline, `file:line:column`, source line, carets,
    message.
    """
    lines = rendered.rstrip("\n").split("\n")
    name = f"<{what} option>"
    remember_text(name, text)
    try:
        _, line, column = lines[1].rsplit(":", 2)
        return lines[4].strip(), SourceLocation(name, int(line), int(column), lines[3].count("^"))
    except (IndexError, ValueError):
        return f"{what} specification '{text}' cannot be parsed", None


def configure(kind: type[ConvertibleT], spec: ArgSpec, what: str) -> ConvertibleT:
    """An instance with options of `spec`. Raises `CompileError` for an invalid one."""
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
        # xDSL checks the text of an annotation, and requires `int | None` without default
        if NoneType in get_args(types[name]):
            given = {**given, name: ()}
        elif name in fields:
            raise CompileError(f"{subject} needs option '{name.replace('_', '-')}', {type_in_words(types[name])}")
    parameters = {name: _converted(values, types[name], name, subject) for name, values in given.items()}
    try:
        return kind.from_spec(ArgSpec(spec.name, parameters))
    except ValueError as error:
        raise CompileError(f"{subject}: {error}") from error


def alternatives(expected: Any) -> tuple[Any, ...]:
    if get_origin(expected) in (Union, UnionType):
        return tuple(t for t in get_args(expected) if t is not NoneType)
    return (expected,)


def _converted(values: ParameterListType, expected: Any, name: str, subject: str) -> ParameterListType:
    types = alternatives(expected)
    if not values:
        if bool in types:
            return (True,)
        if NoneType in get_args(expected):
            return ()
    numbers = tuple(float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values)
    for candidate in (values, numbers):
        if any(_fits(candidate, alternative) for alternative in types):
            return candidate
    shown = ",".join(_shown(v) for v in values) if values else "nothing"
    option = name.replace("_", "-")
    raise CompileError(f"{subject}: option '{option}' expects {type_in_words(expected)}, got {shown}")


def _fits(values: ParameterListType, expected: Any) -> bool:
    """Whether xDSL accepts `values`, except that `true` is not an integer."""
    if any(isinstance(v, bool) for v in values) and expected is not bool and bool not in get_args(expected):
        return False
    return isa(values, expected) or (len(values) == 1 and isa(values[0], expected))


def _shown(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def type_in_words(expected: Any) -> str:
    """ "an integer", "'static' or 'dynamic'"."""
    words = [
        " or ".join(map(_shown, get_args(t))) if get_origin(t) is Literal else _TYPE_WORDS.get(t, type_repr(t))
        for t in alternatives(expected)
    ]
    return " or ".join(words)
