"""The functions of a module by their names."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

_FUNCTIONS: Final[WeakKeyDictionary[ModuleOp, WeakValueDictionary[str, FuncOp]]] = WeakKeyDictionary()
"""Where functions of a module were when one was last looked for: searching a module for each call takes a time that is
quadratic in its functions. An entry counts only while the function is where it was and has its name."""


def function_around(place: Operation, name: str) -> FuncOp | None:
    """The function that is called `name` in the innermost module around `place`; None where there is none, and where
    there is no module."""
    module: Operation | None = place
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    if module is None:
        return None
    table = _FUNCTIONS.get(module)
    found = None if table is None else table.get(name)
    if found is None or found.parent_op() is not module or found.sym_name.data != name:
        functions = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
        # The first of each name, as a search would find.
        table = WeakValueDictionary({function.sym_name.data: function for function in reversed(functions)})
        _FUNCTIONS[module] = table
        found = table.get(name)
    return found
