"""The standard orders of passes, with the reason for the position of each step."""

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
from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.low.low_choose_threads import ChooseThreadsPass
from weft.passes.low.low_expand_math import LowExpandMathPass
from weft.passes.low.low_forward_stores import ForwardStoresPass
from weft.passes.low.low_legalize import TARGETS as LEGALIZED
from weft.passes.low.low_legalize import LowLegalizePass
from weft.passes.low.low_lower_dots import LowerDotsPass
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.passes.tir.tir_apply_annotations import ApplyAnnotationsPass
from weft.passes.tir.tir_assign_spaces import AssignSpacesPass
from weft.passes.tir.tir_async_copies import AsyncCopiesPass
from weft.passes.tir.tir_bind_threads import BindThreadsPass
from weft.passes.tir.tir_check_bounds import CheckBoundsPass
from weft.passes.tir.tir_check_scopes import CheckScopesPass
from weft.passes.tir.tir_collapse_dimensions import CollapseDimensionsPass
from weft.passes.tir.tir_collect_imports import CollectImportsPass
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_distribute_virtual_threads import DistributeVirtualThreadsPass
from weft.passes.tir.tir_factor_thread_reductions import FactorThreadReductionsPass
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_hoist_checks import HoistChecksPass
from weft.passes.tir.tir_hoist_prefetches import HoistPrefetchesPass
from weft.passes.tir.tir_insert_barriers import InsertBarriersPass
from weft.passes.tir.tir_lower_atomic_reductions import LowerAtomicReductionsPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_lower_thread_reductions import LowerThreadReductionsPass
from weft.passes.tir.tir_lower_tiles import LowerTilesPass
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.tir.tir_narrow_vectors import NarrowVectorsPass
from weft.passes.tir.tir_outline_kernels import OutlineKernelsPass
from weft.passes.tir.tir_partition_blocks import PartitionBlocksPass
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass
from weft.passes.tir.tir_pipeline_loops import PipelineLoopsPass
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass
from weft.passes.tir.tir_reuse_shared import ReuseSharedPass
from weft.passes.tir.tir_transpose_tiles import TransposeTilesPass
from weft.passes.tir.tir_unroll_registers import UnrollRegistersPass
from weft.passes.tir.tir_vectorize_serial import VectorizeSerialPass
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.cpu_instructions import has_dot_product
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target import Target, registered_kind

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def graph_to_tir(
    target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS, named: tuple[str, ...] = ()
) -> tuple[ModulePass, ...]:
    """The passes from graphs, and functions of tensor expressions, to functions over buffers. `named` functions are
    lowered even if they only copy tensors."""
    kind = target.partition(" ")[0]
    on_device = kind in GPU_KINDS  # host code does not address parts of device buffers
    has_views = kind in ("llvm", "c") or on_device
    has_precision = bool(options.precision) or (options.rewrite and kind in ("llvm", "c"))
    return (
        # First, because all others read the types.
        GraphInferTypesPass(),
        # Before constants are folded, so that unused values are not evaluated.
        GraphSimplifyPass(),
        # Before constants are folded, among them dequantized weights, which are integers here.
        *((GraphRewritePass(("quantized", "dequantized")),) if options.rewrite else ()),
        # Before fusion, which would treat operators on constants as producers.
        GraphFoldConstantsPass(),
        # Before patterns are recognised, which are those of float32. Kernels for GPUs multiply f16 natively.
        *((GraphWidenFloatsPass(),) if options.rewrite and not on_device else ()),
        # After these: patterns expect equal operators once, and weights as constants. Before fusion, which groups the
        # remaining operators.
        *((GraphRewritePass(_rules_for(target, options)),) if options.rewrite else ()),
        # After it: weights are complete, and attention is one operator. Before layouts, which depend on types, and
        # before fusion, which makes casts parts of the kernels that compute their operands.
        *((GraphPrecisionPass(target, options.precision),) if has_precision else ()),
        # After it, because scales are then part of weights. Before fusion, because biases are laid out with the
        # convolutions.
        *((GraphBlockLayoutsPass(target, winograd=options.winograd),) if options.layouts else ()),
        # After constants are folded, because zero points may be computed. Before fusion, because they are operands of
        # products.
        *((GraphPackWeightsPass(target),) if options.layouts and kind in ("llvm", "c") else ()),
        # After layouts are chosen; before fusion, which makes transposes parts of groups and leaves reshapes as views.
        GraphLowerPacksPass(),
        # While there are operators, of which groups consist.
        *((GraphFusePass(target),) if options.fuse else ()),
        # Each group and each remaining operator becomes a tensor expression.
        LegalizeGraphToTePass(),
        # Callees work on buffers before the graph function allocates and passes them.
        LowerTeToTirPass(named),
        # The graph function calls the functions made by the preceding passes.
        LowerGraphToTirPass(views=has_views, parts=not on_device),
        # The calls are in order.
        *((PlanMemoryPass(arena=not on_device),) if has_views else ()),
        # Last: functions that write over an operand exist, and their callers pass views of what memory is planned for.
        *((CollapseDimensionsPass(),) if has_views else ()),
    )


def _rules_for(target: str, options: BuildOptions) -> tuple[str, ...]:
    """The rules for a target, including products of bytes, which layouts in blocks of channels use, if it has them."""
    return (
        (*DEFAULT_RULES, "bytes")
        if options.layouts and has_dot_product(Target.parse(target), 4, False, True)
        else DEFAULT_RULES
    )


def tir_to_low(target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS) -> tuple[ModulePass, ...]:
    """The passes from scheduled tir to low: for CPUs, for GPUs (`kernels_to_low`), or for a registered kind of target,
    whose memory spaces are kept. With `checked`, accesses that are not proved in bounds are guarded (CPUs only)."""
    kind = target.partition(" ")[0]
    if kind in GPU_KINDS:
        return kernels_to_low(target)
    registered = registered_kind(kind)
    return (
        # First: privatization of temporaries is decided on blocks, as schedule primitives decided it; a block's init is
        # known to run before its updates.
        PlaceBuffersPass(),
        # It applies schedule primitives, which are for blocks; temporaries of iterations are private by now.
        ApplyAnnotationsPass(),
        # While there are loops and blocks: imported code is attached to them as annotations.
        CollectImportsPass(),
        # After temporaries are placed, because it puts their uses under conditions; while accesses are in blocks, whose
        # names the bounds log records; before passes that duplicate accesses.
        *((CheckBoundsPass(),) if options.checked else ()),
        # Before blocks are lowered: it reads which iterators reduce.
        LowerReductionsPass(),
        # Only loops, conditions, loads and stores remain after this pass.
        LowerBlocksPass(),
        # After blocks, so that indices are functions of loop variables; before partitioning, which duplicates accesses.
        CompactBuffersPass(),
        # After temporaries are compacted; before partitioning, which duplicates accesses but no temporaries.
        *(() if registered is None else (CheckScopesPass(kind),)),
        # Before vectorization: a condition that is hoisted out of the loop needs no mask.
        PartitionLoopsPass(),
        # After partitioning, which leaves conditions in remainders; before vectorization, which makes masks of them. C
        # compilers choose widths by themselves.
        *((NarrowVectorsPass(Target.parse(target).vector_bytes),) if kind == "llvm" else ()),
        # After partitioning, which removes conditions around the checks; before vectorization: lanes do not log.
        *((HoistChecksPass(),) if options.checked else ()),
        # Before vectorization: the stride of an access along a loop is a coefficient of its flat index.
        FlattenPass(keep=() if registered is None else tuple(registered.scopes)),
        # After flattening, which shows which accesses are contiguous. C compilers vectorize by themselves.
        *((VectorizeSerialPass(target),) if kind == "llvm" else ()),
        # Before vectorization, which would gather columns. Lanes of C are elements of arrays.
        *((TransposeTilesPass(),) if kind == "llvm" else ()),
        # While loops still have kinds. Registered targets may have no shuffles.
        LowerVectorizedPass(shuffles=registered is None),
        # After vectorization, which merges the prefetches of lanes; while unrolled loops are marked.
        HoistPrefetchesPass(),
        *_loops_to_low(target),
        # Last: passes of a registered target are written for its low level.
        *(() if registered is None else registered.passes),
    )


def kernels_to_low(target: str) -> tuple[ModulePass, ...]:
    """The passes from scheduled tir to low for GPUs: nests of bound loops are outlined as kernels."""
    return (
        # First: marks the reductions that are combined across blocks.
        LowerAtomicReductionsPass(),
        # It applies schedule primitives, which are for blocks.
        ApplyAnnotationsPass(on_device=True),
        # Before buffers are placed: it creates blocks and temporaries, which the passes below lower like all others.
        FactorThreadReductionsPass(),
        # As for CPUs: privatization of temporaries is decided on the sequential program.
        PlaceBuffersPass(),
        # While there are loops and blocks: imported code is attached to them as annotations.
        CollectImportsPass(),
        # After privatization; the program is SIMT from here on.
        BindThreadsPass(target),
        # After loops of one axis are merged: a thread-private temporary may be used in several of them.
        AssignSpacesPass(),
        # After spaces are assigned: partial results are thread-private. Before inits are split off.
        LowerThreadReductionsPass(target),
        # Before blocks are lowered: it reads which iterators reduce.
        LowerReductionsPass(),
        # Only loops, conditions, loads and stores remain after this pass.
        LowerBlocksPass(),
        # After blocks, so that indices are functions of loop variables; before barriers, because iterations share the
        # storage of a compacted buffer.
        CompactBuffersPass(),
        # After temporaries have the size that one virtual thread needs.
        DistributeVirtualThreadsPass(),
        # Before loops are partitioned, so that both versions of the kernel are.
        PartitionBlocksPass(),
        # Before barriers, which must not be placed under a divergent condition.
        PartitionLoopsPass(),
        # Before flattening: dependence tests are cheaper and more exact with one index per dimension.
        InsertBarriersPass(),
        # After barriers, which separate the part of a loop that fetches from the part that computes.
        PipelineLoopsPass(target),
        # After barriers and pipelining, which analyse accesses to whole tiles; before indices are those of a thread.
        LowerTilesPass(),
        # Before vectorization: the stride of an access along a loop is a coefficient of its flat index.
        FlattenPass(),
        # While loops still have kinds. Threads read single elements, whole vectors only where these are consecutive.
        LowerVectorizedPass(shuffles=False),
        # After vectorization: the width of a vector is the size of an asynchronous copy.
        AsyncCopiesPass(),
        # After vectorization, which removes loops.
        UnrollRegistersPass(),
        # After barriers and asynchronous copies, which delimit live ranges; before shared memory is checked to fit.
        ReuseSharedPass(),
        # While loops carry their thread axis.
        OutlineKernelsPass(target),
        *_loops_to_low(target),
    )


def _loops_to_low(target: str) -> tuple[ModulePass, ...]:
    """The passes from loops of tir over flat buffers to low, as the target takes it."""
    kind = target.partition(" ")[0]
    return (
        # First: the passes before simplify indices by the ranges of tir loops.
        LowerLoopsPass(),
        # Emitters print the module as it is.
        LowCanonicalizePass(),
        # After CSE, which makes equal indices one value. Kernel compilers do not have to promote buffers then.
        *((ForwardStoresPass(),) if kind in GPU_KINDS else ()),
        # Before legalisation: lowering rules are selected by the types of the program.
        LowerIntrinsicsPass(kind),
        # After CSE, which makes equal addresses one value; before conversions are widened.
        LowerDotsPass(target),
        # After rules registered by users, which take precedence. C compilers expand functions themselves.
        *((LowExpandMathPass(target),) if kind in ("llvm", *GPU_KINDS) else ()),
        # It rewrites what the passes before have left or inserted.
        *((LowLegalizePass(target),) if kind in LEGALIZED else ()),
        # Last: functions are expanded to the instructions that it counts.
        *((ChooseThreadsPass(target),) if kind in ("llvm", "c") else ()),
    )
