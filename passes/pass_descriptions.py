"""The description of a pass from its definition, for `docs/passes.md` and `weft-opt --help-pass`.

- The docstring of the class, whose first sentence is the summary. Paragraphs `Requires:` and `Leaves:` state the form
  of input and output.
- MLIR with a line `// becomes`: the IR before and after the pass, run by a test, which takes the module in
  `docs/generators/pass_examples/` if the block is a sketch.
- An option is a field, its meaning the string below, or `metadata["meaning"]` if generated.

Works for any pass or target of xDSL; missing parts are empty.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from xdsl.utils.arg_spec import ArgSpecConvertible

from weft.passes.pipeline_text import type_in_words

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!\.)[.:](?=\s|$)(?![^()]*\))")
"""A full stop or colon that is neither the end of an ellipsis nor in parentheses."""


@dataclass(frozen=True)
class PassOption:
    name: str
    """With dashes, as in `only-trace`."""
    type: str
    """In words: `names separated by commas`."""
    default: str | None
    """As text, `none` for an option that is absent by default; None for a required option."""
    meaning: str
    """One or more sentences; empty if the definition has none."""


@dataclass(frozen=True)
class PassDescription:
    name: str
    summary: str
    """The first sentence, on one line, without its full stop."""
    text: str
    """The docstring without the paragraphs of `requires` and `leaves`; Markdown."""
    requires: str
    leaves: str
    options: tuple[PassOption, ...]

    @property
    def usage(self) -> str:
        """The syntax of `-p`: `tir-split{block= loop= factors= [func=]}`."""
        shown = [f"{o.name}=" if o.default is None else f"[{o.name}=]" for o in self.options]
        return f"{self.name}{{{' '.join(shown)}}}" if shown else self.name


def describe_pass(pass_class: type[ArgSpecConvertible]) -> PassDescription:
    doc = _docstring(pass_class)
    text, requires = _take_paragraph(doc, "Requires:")
    text, leaves = _take_paragraph(text, "Leaves:")
    return PassDescription(
        pass_class.name,
        _summary(text),
        re.sub(r"\n{3,}", "\n\n", text).strip(),
        requires,
        leaves,
        _options(pass_class),
    )


def summary_of(pass_class: type[ArgSpecConvertible]) -> str:
    """The summary, without reading the source."""
    return _summary(_docstring(pass_class))


def _docstring(pass_class: type[ArgSpecConvertible]) -> str:
    """The docstring of the class itself, not a base's or `dataclass`'s signature."""
    doc = pass_class.__dict__.get("__doc__") or ""
    return "" if doc.startswith(f"{pass_class.__name__}(") else inspect.cleandoc(doc)


def _summary(text: str) -> str:
    first = " ".join(_FENCE.sub("", text).strip().split("\n\n")[0].split())
    end = _SENTENCE_END.search(first)
    return first[: end.start()] if end else first


def _take_paragraph(text: str, heading: str) -> tuple[str, str]:
    """The text without the paragraph of `heading`, and that paragraph on one line."""
    found = re.search(rf"^{heading}(.*?)(?=\n\n|\n```|\n\w+:|\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return text, ""
    return text[: found.start()] + text[found.end() :], " ".join(found[1].split())


def _options(pass_class: type[ArgSpecConvertible]) -> tuple[PassOption, ...]:
    types, stated = get_type_hints(pass_class), _field_docstrings(pass_class)
    return tuple(
        PassOption(
            field.name.replace("_", "-"),
            type_in_words(types[field.name]),
            _default(field, types[field.name]),
            str(field.metadata.get("meaning", "")) or stated.get(field.name, ""),
        )
        for field in dataclasses.fields(pass_class)
        if field.init and field.name != "name"
    )


def _default(field: dataclasses.Field[Any], type_: Any) -> str | None:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if default is dataclasses.MISSING:
        return "none" if NoneType in get_args(type_) else None
    if default is None or default == "" or default == ():
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)  # pyright: ignore[reportUnknownArgumentType]


def _field_docstrings(pass_class: type[ArgSpecConvertible]) -> dict[str, str]:
    """String literals below fields, also of bases."""
    found: dict[str, str] = {}
    for cls in pass_class.__mro__:
        if not dataclasses.is_dataclass(cls) or not issubclass(cls, ArgSpecConvertible):
            continue
        definition = _class_definitions(cls.__module__).get(cls.__name__)
        if definition is None:  # a generated class, or one typed at a prompt
            continue
        for field, below in zip(definition.body, definition.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(name, " ".join(text.split()))
                case _:
                    pass
    return found


@cache
def _class_definitions(module: str) -> Mapping[str, ast.ClassDef]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):
        return {}
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
