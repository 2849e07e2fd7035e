"""`graph-check-indices`: keep out-of-bounds indices, so that accesses at them are reported."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.dialects.attribute_values import attribute_of
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.operators import OPERATOR_OF


@dataclass(frozen=True)
class GraphCheckIndicesPass(ModulePass):
    """Mark each `graph.bound_indices` as checked: it no longer clamps.

    ```mlir
    func.func @f(%i: tensor<4xi64>) -> tensor<4xi64> {
      %p = graph.bound_indices %i {shape = #graph.dims<16>} : tensor<4xi64> -> tensor<4xi64>
      func.return %p : tensor<4xi64>
    }
    // becomes
    func.func @f(%i: tensor<4xi64>) -> tensor<4xi64> {
      %p = graph.bound_indices %i {checked = true, shape = #graph.dims<16>} : tensor<4xi64> -> tensor<4xi64>
      func.return %p : tensor<4xi64>
    }
    ```
    Accesses at such indices then depend on data alone, and `tir-check-bounds` guards and logs them. `weft.build` runs
    it with `checked=True`.

    Requires: graph functions.

    Leaves: graph functions whose operators access tensors at the given indices.
    """

    name = "graph-check-indices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in graph_functions(op):
            for inner in function.walk():
                if isinstance(inner, OPERATOR_OF["bound_indices"]):
                    inner.properties["checked"] = attribute_of(True)
