"""Bases of modules and functions that print as script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from weft.frontends.script.show import Script, show_text
from weft.graph import Module
from weft.passes.module_edits import function_names, lookup, set_function_attribute
from weft.support.errors import CompileError
from weft.tvm.script.printer import print_module


class Shown:
    script: Callable[..., Script]

    def show(self, *styles: object, color: bool | None = None, file: TextIO | None = None, **options: object) -> None:
        """Show the script, coloured if possible."""
        show_text(self.script(), color=color, file=file)

    def astext(self, show_meta_data: bool = True) -> str:
        return str(self.script())

    __str__ = astext

    def _repr_html_(self) -> str:
        return self.script()._repr_html_()  # pyright: ignore[reportPrivateUsage]


class Scripted(Shown, Module):
    is_class = False

    def script(self, **options: object) -> Script:
        """Script for `tvm.script.from_source`."""
        return Script(print_module(self, in_class=self.is_class))


def function_in(function: object) -> FuncOp:
    """The function of a function, a module of one, or a graph function."""
    found = getattr(function, "func_op", function)
    if isinstance(found, ModuleOp) and len(names := function_names(found)) == 1:
        found = lookup(found, names[0])
    if not isinstance(found, FuncOp):
        raise CompileError(f"expected a function, got {type(function).__name__}")
    return found


def with_attributes(module: ModuleOp, given: Any, value: Any) -> None:
    """Set attributes by key and value or mapping. `global_symbol` renames."""
    attributes = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {given: value}
    for key, setting in attributes.items():
        function = function_in(module)
        if key == "global_symbol":
            function.sym_name = StringAttr(setting)
        elif key != "tir.noalias" or setting is not True:
            set_function_attribute(module, function.sym_name.data, key, setting)
