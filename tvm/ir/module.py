"""`tvm.IRModule`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp

from weft.dialects.attribute_values import attribute_of
from weft.dialects.graph_control import branches_of
from weft.dialects.traversal import copy_of
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.module_edits import function_names, lookup, update_function
from weft.tvm.ir.scripted import Scripted, function_in
from weft.tvm.relax.expr import GlobalVar
from weft.tvm.relax.function import Function
from weft.tvm.tir.function import PrimFunc


class IRModule(Scripted):
    """Functions by name, printed as script: `IRModule({"main": func})`, `mod["main"]`, `mod.functions.items()`."""

    is_class = True

    def __init__(self, functions: Any = None, attrs: Any = None, *rest: Any) -> None:
        is_dictionary = functions is None or isinstance(functions, Mapping)
        super().__init__([] if is_dictionary else cast("Any", functions), attrs, *rest)
        for name, function in cast("Mapping[Any, Any]", functions or {}).items() if is_dictionary else ():
            self[name] = function

    @classmethod
    def from_expr(cls, expr: ModuleOp | Function) -> IRModule:
        return cls.of(expr) if isinstance(expr, ModuleOp) else cls({expr.func_op.sym_name.data: expr})

    def get_global_var(self, name: str) -> GlobalVar:
        """Raises `CompileError` for an unknown function."""
        return GlobalVar.of(lookup(self, name))

    @property
    def functions(self) -> dict[GlobalVar, PrimFunc | Function]:
        return {var: self[var] for var in map(self.get_global_var, function_names(self))}

    def __getitem__(self, name: str | GlobalVar) -> PrimFunc | Function:
        """A copy; a graph function refers to others of the module."""
        function = lookup(self, symbol_of(name))
        over_tensors = any(isinstance(type_, TensorType) for type_ in function.function_type.inputs)
        is_graph = holds_graph_ops(function) or (
            over_tensors and not any(op.name[:3] == "te." for op in function.walk())
        )
        return Function(function) if is_graph else PrimFunc([copy_of(function)])

    def __setitem__(self, name: str | GlobalVar, function: ModuleOp | FuncOp | Function) -> None:
        wanted, source = symbol_of(name), function_in(function)
        if wanted in function_names(self):
            update_function(self, wanted, source)
        else:
            self.body.block.add_op(added := copy_of(source))
            added.sym_name = StringAttr(wanted)
        while missing := {*branches_of(self)} - {*function_names(self)}:
            owner = cast("ModuleOp", source.parent_op())
            self.body.block.add_ops(copy_of(lookup(owner, name)) for name in missing)

    update_func = __setitem__

    def __contains__(self, name: str | GlobalVar) -> bool:
        return symbol_of(name) in function_names(self)

    def with_attr(self, key: str, value: Any) -> IRModule:
        copy = self.clone()
        copy.attributes[key] = attribute_of(value)
        return copy


def symbol_of(name: str | GlobalVar) -> str:
    return name.name_hint if isinstance(name, GlobalVar) else name
