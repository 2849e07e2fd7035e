"""`tvm.IRModule`: a module of xDSL that is a dictionary of functions, and shows itself as script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from weft.dialects.attribute_values import attribute_of
from weft.dialects.traversal import copy_of
from weft.frontends.script.show import Script, show_text
from weft.graph import Module
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.module_functions import function_names, lookup, set_function_attribute, update_function
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from weft.tvm.relax.function import Function
    from weft.tvm.tir.function import PrimFunc


@dataclass(frozen=True)
class GlobalVar:
    """The name of a function of a module, with the types of its results where these are known."""

    name_hint: str
    result_types: Sequence[Attribute] = field(default=(), compare=False)

    def __call__(self, *args: Any) -> object:
        """The call of the function in a graph."""
        from weft.tvm.relax.expr import Call

        return Call(cast("Any", self), args)

    def __repr__(self) -> str:
        return f'I.GlobalVar("{self.name_hint}")'


class Shown:
    """What shows itself as script, as TVM does. Styles and options of TVM's printer change nothing."""

    script: Callable[..., Script]

    def show(self, *styles: object, color: bool | None = None, file: TextIO | None = None, **options: object) -> None:
        """Show the script, in colours where the output has them."""
        show_text(self.script(), color=color, file=file)

    def astext(self, show_meta_data: bool = True) -> str:
        """The script."""
        return str(self.script())

    __str__ = astext

    def _repr_html_(self) -> str:
        return self.script()._repr_html_()  # pyright: ignore[reportPrivateUsage]


class Scripted(Shown, Module):
    """A module that shows itself as TVM does."""

    def script(self, **options: object) -> Script:
        """The functions as script, which `tvm.script.from_source` reads."""
        from weft.tvm.script.printer import print_module

        return Script(print_module(self))


class IRModule(Scripted):
    """Functions by name: `IRModule({"main": func})`, `mod["main"]`, `mod.functions.items()`."""

    def __init__(self, functions: Any = None, attrs: Any = None, *rest: Any) -> None:
        is_dictionary = functions is None or isinstance(functions, Mapping)
        super().__init__([] if is_dictionary else cast("Any", functions), attrs, *rest)
        for name, function in cast("Mapping[Any, Any]", functions or {}).items() if is_dictionary else ():
            self[name] = function

    @classmethod
    def from_expr(cls, expr: ModuleOp) -> IRModule:
        """The module of one function, under its global symbol."""
        return cls.of(expr)

    def get_global_var(self, name: str) -> GlobalVar:
        """The name of a function. Raises `CompileError` when there is none."""
        return GlobalVar(name, lookup(self, name).function_type.outputs.data)

    @property
    def functions(self) -> dict[GlobalVar, PrimFunc | Function]:
        """The functions by name."""
        return {var: self[var] for var in map(self.get_global_var, function_names(self))}

    def __getitem__(self, name: str | GlobalVar) -> PrimFunc | Function:
        """A copy of a function; one of a graph sees the module's other functions."""
        from weft.tvm.relax.function import Function
        from weft.tvm.tir.function import PrimFunc

        function = lookup(self, symbol_of(name))
        return Function(function) if holds_graph_ops(function) else PrimFunc([copy_of(function)])

    def __setitem__(self, name: str | GlobalVar, function: ModuleOp | FuncOp | Function) -> None:
        wanted, source = symbol_of(name), function_in(function)
        if wanted in function_names(self):
            update_function(self, wanted, source)
        else:
            self.body.block.add_op(added := copy_of(source))
            added.sym_name = StringAttr(wanted)

    update_func = __setitem__

    def __contains__(self, name: str | GlobalVar) -> bool:
        return symbol_of(name) in function_names(self)

    def with_attr(self, key: str, value: Any) -> IRModule:
        """A copy with an attribute."""
        copy = self.clone()
        copy.attributes[key] = attribute_of(value)
        return copy


def plain(module: ModuleOp) -> ModuleOp:
    """A copy of a module that is one of xDSL alone."""
    copy = copy_of(module)
    return ModuleOp(copy.detach_region(copy.body), dict(copy.attributes), copy.sym_name)


def symbol_of(name: str | GlobalVar) -> str:
    """The name of a function, given as text or variable."""
    return name.name_hint if isinstance(name, GlobalVar) else name


def function_in(function: object) -> FuncOp:
    """The function that is given as such, as a module of one, or as a function of a graph."""
    found = getattr(function, "func_op", function)
    if isinstance(found, ModuleOp) and len(names := function_names(found)) == 1:
        found = lookup(found, names[0])
    if not isinstance(found, FuncOp):
        raise CompileError(f"expected a function, got {type(function).__name__}")
    return found


def with_attributes(module: ModuleOp, given: Any, value: Any) -> None:
    """Set attributes of the function of `module`: a key and its value, or a dictionary. `global_symbol` names it."""
    attributes = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {given: value}
    for key, setting in attributes.items():
        function = function_in(module)
        if key == "global_symbol":
            function.sym_name = StringAttr(setting)
        elif key != "tir.noalias" or setting is not True:
            set_function_attribute(module, function.sym_name.data, key, setting)
