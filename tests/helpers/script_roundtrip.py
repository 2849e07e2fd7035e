"""A module printed as a script reads back equal."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import weft
from weft.script import parse, print_script


def functions_alone(module: ModuleOp) -> ModuleOp:
    """A copy without what scripts do not hold: schedules and constants."""
    copy = module.clone()
    for op in list(copy.body.block.ops):
        if not isinstance(op, FuncOp):
            op.detach()
            op.erase(safe_erase=False)
    return copy


def check_roundtrip(module: ModuleOp) -> str:
    """The script of the functions of `module`, which reads back equal, and is printed the same from there."""
    functions = functions_alone(module)
    text = print_script(functions)
    again = parse(text)
    weft.assert_structural_equal(again, functions)
    assert print_script(again) == text
    return text
