"""Print modules as script."""

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from weft.dialects.graph_control import branches_of
from weft.dialects.traversal import copy_of
from weft.frontends.script.printer import print_script
from weft.frontends.script.regions import state_regions
from weft.passes.graph.functions import holds_graph_ops
from weft.passes.te.lower_te_to_tir import lower_te_function
from weft.tvm.script.graph_printer import graph_lines


def print_module(module: ModuleOp, *, in_class: bool) -> str:
    """Print as `R.function` or `T.prim_func`; a single function without class, unless `in_class`."""
    rest = plain(module)
    functions = [op for op in rest.body.block.ops if isinstance(op, FuncOp)]
    branches = set(branches_of(rest))
    graphs = [function for function in functions if holds_graph_ops(function) or function.sym_name.data in branches]
    for function in functions:
        if function not in graphs and any(isinstance(type_, TensorType) for type_ in function.function_type.outputs):
            lower_te_function(function)
    shown = [graph for graph in graphs if graph.sym_name.data not in branches]
    lines = [line for graph in shown for line in ["", *graph_lines(graph)]]
    for graph in graphs:
        graph.detach()
    CommonSubexpressionElimination().apply(Context(), rest)  # scripts show an index at its uses
    state_regions(rest)
    text = print_script(rest).splitlines()
    body = text[next(at for at, line in enumerate(text) if line.startswith("@I.ir_module")) :]
    if not in_class:
        return "\n".join(("# from weft.tvm.script import tir as T", "", *(line[4:] for line in body[2:]))) + "\n"
    if graphs and body[-1].strip() == "pass":
        body, lines = body[:-1], lines[1:]
    words = ("ir as I", "tir as T", "relax as R") if graphs else ("ir as I", "tir as T")
    head = [f"# from weft.tvm.script import {word}" for word in words]
    return "\n".join((*head, "", *body, *(f"    {line}" if line else "" for line in lines))) + "\n"


def plain(module: ModuleOp) -> ModuleOp:
    copy = copy_of(module)
    return ModuleOp(copy.detach_region(copy.body), dict(copy.attributes), copy.sym_name)
