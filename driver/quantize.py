"""Models with quantized weights: `weft.quantize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from weft.dialects.traversal import copy_of
from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from weft.passes.graph.graph_quantize_weights import QuantizedLayer  # start-up: 66 ms


@dataclass(frozen=True)
class Quantized:
    """A model whose weights are quantized, and how well they are."""

    mod: ModuleOp
    layers: Sequence[QuantizedLayer]

    def __str__(self) -> str:
        """A table of the layers."""
        if not self.layers:
            return "no weights were quantized: no product of matrices has constant weights in floats"
        width = max((len(layer.name) for layer in self.layers), default=0)
        header = f"{'rows x columns':>15}  {'error':>8}  {'largest':>9}  {'KiB':>9} -> KiB"
        lines = [f"{'weights':{width}}  {header}"]
        for layer in self.layers:
            shape = f"{layer.depth} x {layer.columns}"
            sizes = f"{layer.bytes_before / 1024:9.1f} -> {layer.bytes_after / 1024:.1f}"
            lines.append(f"{layer.name:{width}}  {shape:>15}  {layer.error:8.2%}  {layer.largest:9.3g}  {sizes}")
        before, after = (sum(map(attrgetter(name), self.layers)) for name in ("bytes_before", "bytes_after"))
        return "\n".join([*lines, f"{len(self.layers)} weights, {before / 1024:.1f} -> {after / 1024:.1f} KiB"])


@checked
def quantize(
    mod: ModuleOp,
    weights: str = "int4",
    group: int = 32,
    symmetric: bool = True,
    *,
    scales: str = "float32",
    skip: Sequence[str] = (),
    data: str = "float",
) -> Quantized:
    """A copy of a module of graph functions with constant weights of products rounded to integers of 4 or 8 bits.

        quantized = weft.quantize(mod, weights="int4", group=32, symmetric=True)
        print(quantized)  # the rounding errors of each layer
        lib = weft.build(quantized.mod)

    `group` consecutive weights of a column, 16 to 256, share a scale of type `scales`, and a zero point unless the
    rounding is `symmetric`; `group=0` are whole columns. Weights named in `skip` stay floats. Data stay floats, or are
    rounded in calls to integers of 8 bits in the same groups (`data="int8"`), also those of products that had quantized
    weights before. The passes are `graph-simplify`, `graph-fold-constants`, `graph-quantize-weights` and
    `graph-rewrite{rules=dequantized}`.

    Raises `CompileError`, which names the weights, for groups that do not divide their rows, for weights that are not
    finite, for scales that their type does not hold, and for a module without graph functions.
    """
    from xdsl.context import Context
    from xdsl.dialects.builtin import StringAttr

    from weft.passes.graph.functions import graph_functions  # start-up: 56 ms
    from weft.passes.graph.graph_fold_constants import GraphFoldConstantsPass  # start-up: 899 ms
    from weft.passes.graph.graph_infer_types import GraphInferTypesPass  # start-up: 2 ms
    from weft.passes.graph.graph_quantize_weights import Rounding, quantize_module  # start-up: 66 ms
    from weft.passes.graph.graph_rewrite import GraphRewritePass  # start-up: 43 ms
    from weft.passes.graph.graph_simplify import GraphSimplifyPass  # start-up: 1 ms

    if data not in ("float", "int8"):
        raise CompileError(f"data are float or int8, got '{data}'{did_you_mean(data, ('float', 'int8'))}")
    if not any(graph_functions(mod)):
        raise CompileError(
            "quantize: weights of products of graphs are quantized: the program has no function of operators"
        )
    rounding = Rounding(weights, group, symmetric, scales, tuple(skip))
    found = copy_of(mod)
    context = Context()
    for each in (GraphInferTypesPass(), GraphSimplifyPass(), GraphFoldConstantsPass()):
        each.apply(context, found)
    layers = quantize_module(found, rounding)
    GraphRewritePass(("dequantized",)).apply(context, found)
    if data == "int8":
        for op in found.walk():
            if op.name == "graph.dequantized_matmul":
                op.properties["compute_dtype"] = StringAttr(data)
    return Quantized(found, layers)
