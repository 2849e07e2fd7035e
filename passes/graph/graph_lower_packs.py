"""`graph-lower-packs`: lower packed layouts to reshapes and transposes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.passes.graph.functions import graph_functions
from weft.passes.graph.packing import as_views
from weft.passes.graph.rewriting import Rule, rewrite
from weft.texpr.graph_operators import Operator

_RULES: Final = (Rule(frozenset(("pack", "unpack")), lambda op: as_views(cast("Operator", op))),)


@dataclass(frozen=True)
class GraphLowerPacksPass(ModulePass):
    """Replace `graph.pack` and `graph.unpack` of full tiles by reshapes and at most one transpose.

    Reshapes are views, and transposes are fused into neighbouring kernels. Images of one pixel, and others whose
    elements keep their order, are only reshaped.

    Requires: graph functions whose types are known (`graph-infer-types`).
    Leaves: packs and unpacks of partial tiles, which read or write fewer elements than they have, and of unknown
    extents.

    ```mlir
    func.func @f(%x: tensor<1x32x7x7xf32>) -> tensor<1x2x7x7x16xf32> {
      %y = graph.pack %x {inner_dims_pos = 1, inner_tiles = 16} : tensor<1x32x7x7xf32>
      func.return %y : tensor<1x2x7x7x16xf32>
    }
    // becomes
    func.func @f(%x: tensor<1x32x7x7xf32>) -> tensor<1x2x7x7x16xf32> {
      %r = graph.reshape %x {newshape = #graph.dims<1, 2, 16, 7, 7>} : tensor<1x32x7x7xf32>
      %y = graph.transpose %r {axes = [0, 1, 3, 4, 2]} : tensor<1x2x16x7x7xf32>
      func.return %y : tensor<1x2x7x7x16xf32>
    }
    ```
    """

    name = "graph-lower-packs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(graph_functions(op)):
            rewrite(function, _RULES)
