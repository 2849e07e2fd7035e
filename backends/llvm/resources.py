"""The LLVM IR of weft's `.ll` files, with parameters `$name`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template
from typing import Final


def ir_text(file: Path, **parameters: object) -> str:
    """Raises `KeyError` if a parameter is missing."""
    return _template(file).substitute(parameters)


@cache
def _template(file: Path) -> Template:
    return Template(file.read_text(encoding="utf-8"))


HELPERS: Final = frozenset(
    {
        *("__truncsfhf2", "__truncdfhf2", "__truncsfbf2", "__truncdfbf2", "__extendhfsf2"),
        *("__gnu_f2h_ieee", "__gnu_h2f_ieee", "__gnu_d2h_ieee"),
    }
)

"""Conversions of half and bfloat that LLVM calls if the CPU lacks an instruction. They are part of libgcc and
compiler-rt, which a Python process need not have loaded, so code linked into this process uses those of
`HELPERS_FILE`."""
HELPERS_FILE: Final = Path(__file__).with_name("float_helpers.ll")
