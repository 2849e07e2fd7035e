"""`relax.transform`: passes on graphs, which are weft's."""

from collections.abc import Mapping
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from weft.dialects.graph import FUSED
from weft.graph import bind_params
from weft.passes.graph.functions import inline_dataflow
from weft.passes.graph.graph_fuse import GraphFusePass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.ir.transform import Pass, Sequential, module_pass


def _passes(name: str, *passes: ModulePass) -> Pass:
    def run(mod: IRModule, _: object) -> IRModule:
        mark_groups(copy := mod.clone())
        for step in passes:
            step.apply(Context(), copy)
        return copy

    return Pass(run, name)


def mark_groups(module: ModuleOp) -> None:
    """Make functions with the attribute `Primitive`, which become one kernel, groups of weft, in place."""
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and function.attributes.pop("Primitive", None) is not None:
            inline_dataflow(function)
            function.attributes[FUSED], function.sym_visibility = UnitAttr(), StringAttr("private")


def BindParams(func_name: str, params: Mapping[str, Any]) -> Pass:
    """Parameters of a function become constants."""
    return Pass(lambda mod, _: bind_params(mod, func_name, params), "BindParams")


def LegalizeOps() -> Pass:
    """Operators become calls of functions of block loops."""
    return _passes("LegalizeOps", LegalizeGraphToTePass(), LowerTeToTirPass())


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Move operators that one kernel computes into functions of their own. `fuse_opt_level` has no effect: there is
    one."""
    return _passes("FuseOps", GraphFusePass("llvm"))


def FuseTIR() -> Pass:
    """Functions with the attribute `Primitive`, and those of `FuseOps`, become one function of block loops each."""
    return _passes("FuseTIR", LegalizeGraphToTePass(), LowerTeToTirPass())


__all__ = ["BindParams", "FuseOps", "FuseTIR", "LegalizeOps", "Pass", "Sequential", "module_pass"]
__getattr__ = refuses(__name__)
