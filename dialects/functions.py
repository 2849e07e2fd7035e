"""Functions of a module by name."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from weft.dialects.traversal import ancestors

_FUNCTIONS: Final[WeakKeyDictionary[ModuleOp, WeakValueDictionary[str, FuncOp]]] = WeakKeyDictionary()
"""Searching a module for each call takes time quadratic in its functions. An entry is valid while the function is in
that module under that name."""


def function_around(place: Operation, name: str) -> FuncOp | None:
    """Searches the innermost module around `place`."""
    module: Operation | None = place
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    if module is None:
        return None
    table = _FUNCTIONS.get(module)
    found = None if table is None else table.get(name)
    if found is None or found.parent_op() is not module or _name_of(found) != name:
        functions = [op for block in module.body.blocks for op in block.ops if isinstance(op, FuncOp)]
        # The first of each name, as a search would find it.
        names = [(_name_of(function), function) for function in reversed(functions)]
        table = WeakValueDictionary({known: function for known, function in names if known is not None})
        _FUNCTIONS[module] = table
        found = table.get(name)
    return found


def _name_of(function: FuncOp) -> str | None:
    """Returns None without a name, which does not verify."""
    name = function.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def why_misplaced(op: Operation) -> str | None:
    """A reason for functions, schedules and modules in invalid places."""
    if op.name not in ("func.func", "sched.func", "builtin.module"):
        return None
    around = next((parent for parent in ancestors(op) if parent.name in ("func.func", "sched.func")), None)
    return None if around is None else f"'{op.name}' must not be in '{around.name}'"


def is_weft(op: Operation) -> bool:
    return type(op).__module__.startswith("weft.")
