"""Lowering of upstream dialects and tensors to functions over buffers."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp

from weft.passes.convert.convert_from_upstream import convert_from_upstream
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_check_indices import GraphCheckIndicesPass
from weft.passes.lower_graph import lower_graph
from weft.passes.module_edits import functions_of
from weft.passes.pass_sequence import RunStep, run_step
from weft.passes.tir.tir_state_preconditions import state_preconditions
from weft.passes.verify_level import verify_level
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.errors import CompileError


def lower_to_tir(
    module: ModuleOp, target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS, run: RunStep = run_step
) -> None:
    """Convert functions to functions over buffers, in place; `run` runs each pass on graphs. Raises `CompileError`."""
    # An unconverted function is an error unless inserted passes may lower it.
    convert_from_upstream(Context(), module, strict=not options.passes)
    if options.precision and not any(graph_functions(module)):
        raise CompileError(
            f"precision {options.precision} is that of products of graphs: the program has no function of operators"
        )
    over_tensors = [name for name, function in functions_of(module).items() if is_over_tensors(function)]
    if over_tensors:
        if options.checked:
            GraphCheckIndicesPass().apply(Context(), module)
        lower_graph(Context(), module, target, options, run, over_tensors)
        _check_lowered([function for name, function in functions_of(module).items() if name in over_tensors])
    state_preconditions(module, is_checked=options.checked)


def is_over_tensors(function: FuncOp) -> bool:
    signature = function.function_type
    return any(isinstance(type_, TensorType) for type_ in (*signature.inputs, *signature.outputs))


def _check_lowered(functions: list[FuncOp]) -> None:
    for function in filter(is_over_tensors, functions):
        verify_level(function, "te")
        raise CompileError.at(function, f"@{function.sym_name.data} has no form over buffers")
