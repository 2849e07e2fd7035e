"""A module printed as a script reads back equal."""

from xdsl.dialects.builtin import ModuleOp

import weft
from weft.script import parse, print_script


def check_roundtrip(module: ModuleOp) -> str:
    """The script of `module`, which reads back equal, and is printed the same from there."""
    text = print_script(module)
    again = parse(text)
    weft.assert_structural_equal(again, module)
    assert print_script(again) == text
    return text
