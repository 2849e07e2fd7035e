"""`lower-graph-to-tir`: a graph function becomes a function over buffers that calls tensor functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from weft.dialects.graph import CallDpsOp, CallTirOp, ConstantOp, DataflowOp, MakeTupleOp, TupleGetOp
from weft.dialects.graph_ops import GraphOp
from weft.passes.graph.functions import graph_functions, symbol_names
from weft.passes.graph.host_function import HostFunction
from weft.support.errors import CompileError


def lower_graph_function(module: ModuleOp, function: FuncOp, taken: set[str]) -> None:
    """Give a graph function buffers: parameters and results become `memref` parameters (results last, under their own
    names), intermediates `memref.alloc`, constants `memref.global`; `graph.call_tir` becomes `func.call`.

    `taken` are the symbols of the module, extended by those of new constants. Requires that every operator was
    legalised, every callee lowered to buffers, and every extent known. Raises `CompileError`.

    ```mlir
    func.func @f(%x: tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>> {
      %h = graph.call_tir @relu(%x) : ...
      %y = graph.call_tir @relu(%h) : ...
      func.return %y
    // becomes
    func.func @f(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
      %n = memref.dim %x, %c0 : memref<?x4xf32>
      tir.assume_shape %y[%n] : memref<?x4xf32>
      %h = memref.alloc(%n) : memref<?x4xf32>
      func.call @relu(%x, %h) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      func.call @relu(%h, %y) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      func.return
    }
    ```
    """
    inline_dataflow(function)
    tuples = fold_tuples(function)
    erase_dead(function)
    host = HostFunction(module, function, _returned(function, tuples), taken)
    for op in list(function.body.block.ops):
        _lower_op(host, op)
    host.finish()


def inline_dataflow(function: FuncOp) -> None:
    """Move what dataflow regions hold to where they stand: order is fixed from here on."""
    for op in list(function.body.block.ops):
        if isinstance(op, DataflowOp):
            output = op.output
            values = list(output.values)
            output.detach()
            output.erase()
            Rewriter.inline_block(op.body.block, InsertPoint.before(op))
            Rewriter.replace_op(op, [], values)


def erase_dead(function: FuncOp) -> None:
    """Erase ops without effects whose results nothing uses."""
    for op in reversed(list(function.body.block.ops)):
        if op.results and all(result.first_use is None for result in op.results) and is_side_effect_free(op):
            Rewriter.erase_op(op)


def fold_tuples(function: FuncOp) -> dict[SSAValue, Sequence[SSAValue]]:
    """Let users of a tuple's values use the values; tuples and what is in them."""
    tuples: dict[SSAValue, Sequence[SSAValue]] = {}
    for op in function.body.block.ops:
        if isinstance(op, MakeTupleOp):
            tuples[op.result] = list(op.values)
        elif isinstance(op, TupleGetOp) and op.source in tuples:
            op.result.replace_all_uses_with(tuples[op.source][op.index])
    return tuples


def _returned(function: FuncOp, tuples: dict[SSAValue, Sequence[SSAValue]]) -> list[SSAValue]:
    """The returned values, those in tuples one by one."""
    returned = function.get_return_op()
    leaves: list[SSAValue] = []

    def visit(value: SSAValue) -> None:
        if not isinstance(value.type, TupleType):
            leaves.append(value)
            return
        if value not in tuples:
            raise CompileError.at(function, f"@{function.sym_name.data}: a tuple must be made in the function")
        for inner in tuples[value]:
            visit(inner)

    for value in () if returned is None else returned.arguments:
        visit(value)
    return leaves


def _lower_op(host: HostFunction, op: Operation) -> None:
    match op:
        case ConstantOp():
            host.constant(op)
        case CallTirOp():
            host.call(op)
        case MakeTupleOp() | TupleGetOp() | ReturnOp():
            pass
        case CallDpsOp():
            raise CompileError.at(
                op,
                f'graph.call_dps "{op.callee.data}": functions registered in Python cannot be called from compiled '
                "code; use graph.call_tir, or run the graph function in the interpreter",
            )
        case GraphOp():
            raise CompileError.at(op, f"{op.name} must be legalised first (pass legalize-graph-to-te)")
        case _:
            host.keep(op)


@dataclass(frozen=True)
class LowerGraphToTirPass(ModulePass):
    """Give graph functions buffers and calls; see `lower_graph_function`."""

    name = "lower-graph-to-tir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        taken = symbol_names(op)
        for function in graph_functions(op):
            lower_graph_function(op, function, taken)
