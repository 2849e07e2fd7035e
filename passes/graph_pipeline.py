"""The passes from graphs to tir, with the reason for each position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.graph.graph_block_layouts import GraphBlockLayoutsPass
from weft.passes.graph.graph_fold_constants import GraphFoldConstantsPass
from weft.passes.graph.graph_fuse import GraphFusePass
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.graph_lower_packs import GraphLowerPacksPass
from weft.passes.graph.graph_pack_weights import GraphPackWeightsPass
from weft.passes.graph.graph_precision import GraphPrecisionPass
from weft.passes.graph.graph_rewrite import DEFAULT_RULES, GraphRewritePass
from weft.passes.graph.graph_simplify import GraphSimplifyPass
from weft.passes.graph.graph_widen_floats import GraphWidenFloatsPass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.graph.lower_graph_to_tir import LowerGraphToTirPass
from weft.passes.graph.plan_memory import PlanMemoryPass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.passes.tir.tir_collapse_dimensions import CollapseDimensionsPass
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.cpu_instructions import BYTE, SIGNED_BYTE, has_dot_product, has_table_lookup
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def graph_to_tir(
    target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS, named: tuple[str, ...] = ()
) -> tuple[ModulePass, ...]:
    """From graphs and functions of tensor expressions to functions over buffers. `named` functions are lowered even if
    they only copy tensors.
    """
    kind = target.partition(" ")[0]
    on_device = kind in GPU_KINDS  # host code does not address parts of device buffers
    has_views = kind in ("llvm", "c") or on_device
    parsed = Target.parse(target) if kind == "llvm" else None
    tables = ("tables",) if parsed is not None and has_table_lookup(parsed) else ()
    has_precision = bool(options.precision) or (options.rewrite and kind in ("llvm", "c"))
    return (
        # First: all others read the types.
        GraphInferTypesPass(),
        # Before constants are folded: unused values are not evaluated.
        GraphSimplifyPass(),
        # Before constants are folded: dequantized weights are integers here.
        *((GraphRewritePass((*tables, "quantized", "dequantized")),) if options.rewrite else ()),
        # Before fusion, which would treat operators on constants as producers.
        GraphFoldConstantsPass(),
        # Before patterns, which are those of float32. Kernels for GPUs multiply f16 natively.
        *((GraphWidenFloatsPass(),) if options.rewrite and not on_device else ()),
        # Patterns expect equal operators once, and weights as constants. Before fusion groups the rest.
        *((GraphRewritePass(_rules_for(target, options)),) if options.rewrite else ()),
        # After rules: weights are complete, attention is one operator. Before layouts, which depend on types, and
        # fusion, which includes casts in kernels.
        *((GraphPrecisionPass(target, options.precision),) if has_precision else ()),
        # Scales are parts of weights now. Before fusion: biases are laid out with convolutions.
        *((GraphBlockLayoutsPass(target, winograd=options.winograd),) if options.layouts else ()),
        # After constants are folded: zero points may be computed. Before fusion: they are operands of products.
        *((GraphPackWeightsPass(target),) if options.layouts and kind in ("llvm", "c") else ()),
        # Before fusion, which makes transposes parts of groups and leaves reshapes as views.
        GraphLowerPacksPass(),
        # While there are operators.
        *((GraphFusePass(target),) if options.fuse else ()),
        # Groups and remaining operators become tensor expressions.
        LegalizeGraphToTePass(),
        # Callees work on buffers before the graph function allocates and passes them.
        LowerTeToTirPass(named),
        # Calls the preceding passes' functions.
        LowerGraphToTirPass(views=has_views, parts=not on_device),
        # Calls are in order.
        *((PlanMemoryPass(arena=not on_device),) if has_views else ()),
        # Last: callers pass views of planned memory.
        *((CollapseDimensionsPass(),) if has_views else ()),
    )


def _rules_for(target: str, options: BuildOptions) -> tuple[str, ...]:
    """Includes products of bytes, for layouts in blocks of channels, on targets with them."""
    return (
        (*DEFAULT_RULES, "bytes")
        if options.layouts and has_dot_product(Target.parse(target), BYTE, SIGNED_BYTE)
        else DEFAULT_RULES
    )
