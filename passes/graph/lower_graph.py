"""`lower-graph`: from a graph to functions over buffers, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class LowerGraphPass(ModulePass):
    """`graph-infer-types`, `legalize-graph-to-te`, `lower-te-to-tir`, `lower-graph-to-tir`, in this order:

    extents must be known before an operator can be defined over them; every callee must work on buffers before the
    graph function allocates and passes them. The module then holds a function of block loops for each different
    operator, and in the place of the graph function one that calls them. `func` names functions that are lowered too,
    though they only copy tensors.

    Requires: graph functions.

    Leaves: functions of block loops, and functions over buffers that call them.
    """

    name = "lower-graph"

    func: tuple[str, ...] = ()
    """Functions that are lowered too, though they only copy tensors."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from weft.passes.graph.graph_infer_types import GraphInferTypesPass
        from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
        from weft.passes.graph.lower_graph_to_tir import LowerGraphToTirPass
        from weft.passes.te.lower_te_to_tir import LowerTeToTirPass

        for step in (
            GraphInferTypesPass(),
            LegalizeGraphToTePass(),
            LowerTeToTirPass(self.func),
            LowerGraphToTirPass(),
        ):
            step.apply(ctx, op)
