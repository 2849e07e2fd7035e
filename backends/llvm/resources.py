"""LLVM IR that weft brings along as `.ll` files, with parameters written `$name`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template


def ir_text(file: Path, **parameters: object) -> str:
    """The text of a `.ll` file with a value for each of its parameters. Raises `KeyError` when one is missing."""
    return _template(file).substitute(parameters)


@cache
def _template(file: Path) -> Template:
    return Template(file.read_text(encoding="utf-8"))
