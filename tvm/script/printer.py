"""Modules as script."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from weft.dialects.traversal import copy_of
from weft.frontends.script.printer import print_script
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.te.lower_te_to_tir import lower_te_function
from weft.tvm.script.regions import state_regions


def print_module(module: ModuleOp) -> str:
    """The script of a module: graph functions as `R.function`, others as `T.prim_func`; a lone function without the
    class around it."""
    from weft.tvm.ir.module import IRModule

    copy = copy_of(module)
    rest = ModuleOp(copy.detach_region(copy.body), dict(copy.attributes))
    graphs: list[FuncOp] = []
    for op in list(rest.body.block.ops):
        if isinstance(op, FuncOp) and holds_graph_ops(op):
            graphs.append(op)
        elif isinstance(op, FuncOp) and any(isinstance(type_, TensorType) for type_ in op.function_type.outputs):
            lower_te_function(op)
    lines: list[str] = []
    if graphs:
        from weft.tvm.script.graph_printer import graph_lines

        lines = [line for graph in graphs for line in ["", *graph_lines(graph)]]
        for graph in graphs:
            graph.detach()
    CommonSubexpressionElimination().apply(Context(), rest)  # scripts show an index where it is used
    state_regions(rest)
    text = print_script(rest).splitlines()
    start = next(at for at, line in enumerate(text) if line.startswith("@I.ir_module"))
    body = text[start:]
    if graphs and body[-1].strip() == "pass":
        body, lines = body[:-1], lines[1:]
    words = ("ir as I", "tir as T", *(("relax as R",) if graphs else ()))
    used = [f"# from weft.tvm.script import {word}" for word in words]
    body += [f"    {line}" if line else "" for line in lines]
    if isinstance(module, IRModule):
        return "\n".join((*used, "", *body)) + "\n"
    return "\n".join((used[1], "", *(line.removeprefix("    ") for line in body[2:]))) + "\n"
