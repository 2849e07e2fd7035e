"""The dialects, passes and targets of weft, which xDSL's tools find through the `xdsl.universe` entry point.

Tables from names to "module:attribute"; objects are imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from xdsl.context import Context
from xdsl.ir import Dialect, Operation
from xdsl.universe import Universe

DIALECTS: Mapping[str, str] = {
    "chlo": "weft.dialects.stablehlo_dialects:CHLO_DIALECT",
    "graph": "weft.texpr.graph_operators:GRAPH",
    "low": "weft.dialects.low:LOW",
    "quant": "weft.dialects.quant:QUANT",
    "sched": "weft.dialects.sched:SCHED",
    "stablehlo": "weft.dialects.stablehlo_dialects:STABLEHLO",
    "te": "weft.dialects.te:TE",
    "tir": "weft.dialects.tir:TIR",
}

UPSTREAM_OPERATIONS: Mapping[str, str] = {
    "affine": "weft.dialects.upstream.affine:OPERATIONS",
    "arith": "weft.dialects.upstream.arith:OPERATIONS",
    "bufferization": "weft.dialects.upstream.bufferization:OPERATIONS",
    "gpu": "weft.dialects.upstream.gpu:OPERATIONS",
    "linalg": "weft.dialects.upstream.linalg_layouts:OPERATIONS",
    "memref": "weft.dialects.upstream.memref:OPERATIONS",
    "scf": "weft.dialects.upstream.scf:OPERATIONS",
    "tensor": "weft.dialects.upstream.tensor:OPERATIONS",
    "transform": "weft.dialects.upstream.transform:OPERATIONS",
    "vector": "weft.dialects.upstream.vector:OPERATIONS",
}
"""Maps a dialect of xDSL to operations and attributes of its MLIR namesake that weft's tools add, or that replace
xDSL's with the same name (`dialects/upstream/custom_syntax.py`)."""

_PRIMITIVES = """
    split fuse tile reorder parallel vectorize unroll bind merge loop_partition add_unit_loop reorder_block_iter_var
    annotate unannotate compute_at reverse_compute_at compute_inline reverse_compute_inline cache_read cache_write
    cache_inplace cache_index read_at write_at set_scope decompose_reduction fuse_reduction_epilogue rfactor
    blockize tensorize storage_align annotate_buffer_access reindex reindex_cache_read reindex_cache_write
    transform_layout transform_block_layout recode decompose_padding pad_einsum rolling_buffer
"""
"""The primitives of schedules (`dialects/sched.py`), each of which is a pass."""

PASSES: Mapping[str, str] = {
    "apply-schedule": "weft.passes.schedule.apply_schedule:ApplySchedulePass",
    "bufferize-tensors": "weft.passes.convert.bufferize_tensors:BufferizeTensorsPass",
    "convert-from-upstream": "weft.passes.convert.convert_from_upstream:ConvertFromUpstreamPass",
    "convert-linalg-to-tir": "weft.passes.convert.convert_linalg_to_tir:ConvertLinalgToTirPass",
    "convert-low-to-upstream": "weft.passes.convert.convert_low_to_upstream:ConvertLowToUpstreamPass",
    "convert-stablehlo-to-graph": "weft.frontends.convert_stablehlo_to_graph:ConvertStablehloToGraphPass",
    "convert-stablehlo-to-te": "weft.passes.convert.convert_stablehlo_to_te:ConvertStablehloToTePass",
    "convert-tir-to-affine": "weft.passes.convert.convert_tir_to_affine:ConvertTirToAffinePass",
    "convert-tir-to-linalg": "weft.passes.convert.convert_tir_to_linalg:ConvertTirToLinalgPass",
    "convert-tir-to-scf": "weft.passes.convert.convert_tir_to_scf:ConvertTirToScfPass",
    "convert-sched-to-transform": ("weft.schedule.transform.convert_sched_to_transform:ConvertSchedToTransformPass"),
    "convert-transform-to-sched": ("weft.schedule.transform.convert_transform_to_sched:ConvertTransformToSchedPass"),
    "convert-upstream-to-low": "weft.passes.convert.convert_upstream_to_low:ConvertUpstreamToLowPass",
    "default-schedule": "weft.autoschedule.default_schedule:DefaultSchedulePass",
    "plan-memory": "weft.passes.graph.plan_memory:PlanMemoryPass",
    "raise-affine-to-tir": "weft.passes.convert.raise_affine_to_tir:RaiseAffineToTirPass",
    "graph-bind-params": "weft.passes.graph.graph_bind_params:GraphBindParamsPass",
    "graph-pack-weights": "weft.passes.graph.graph_pack_weights:GraphPackWeightsPass",
    "graph-precision": "weft.passes.graph.graph_precision:GraphPrecisionPass",
    "graph-widen-floats": "weft.passes.graph.graph_widen_floats:GraphWidenFloatsPass",
    "graph-lower-packs": "weft.passes.graph.graph_lower_packs:GraphLowerPacksPass",
    "graph-block-layouts": "weft.passes.graph.graph_block_layouts:GraphBlockLayoutsPass",
    "graph-check-indices": "weft.passes.graph.graph_check_indices:GraphCheckIndicesPass",
    "graph-fold-constants": "weft.passes.graph.graph_fold_constants:GraphFoldConstantsPass",
    "graph-fuse": "weft.passes.graph.graph_fuse:GraphFusePass",
    "graph-infer-types": "weft.passes.graph.graph_infer_types:GraphInferTypesPass",
    "graph-insert-observers": "weft.passes.graph.graph_insert_observers:GraphInsertObserversPass",
    "graph-quantize-observed": "weft.passes.graph.graph_quantize_observed:GraphQuantizeObservedPass",
    "graph-quantize-weights": "weft.passes.graph.graph_quantize_weights:GraphQuantizeWeightsPass",
    "graph-rewrite": "weft.passes.graph.graph_rewrite:GraphRewritePass",
    "graph-simplify": "weft.passes.graph.graph_simplify:GraphSimplifyPass",
    "legalize-graph-to-te": "weft.passes.graph.legalize_graph_to_te:LegalizeGraphToTePass",
    "low-canonicalize": "weft.passes.low.low_canonicalize:LowCanonicalizePass",
    "low-choose-threads": "weft.passes.low.low_choose_threads:ChooseThreadsPass",
    "low-expand-math": "weft.passes.low.low_expand_math:LowExpandMathPass",
    "low-forward-stores": "weft.passes.low.low_forward_stores:ForwardStoresPass",
    "low-legalize": "weft.passes.low.low_legalize:LowLegalizePass",
    "low-lower-dots": "weft.passes.low.low_lower_dots:LowerDotsPass",
    "low-lower-intrinsics": "weft.passes.low.low_lower_intrinsics:LowerIntrinsicsPass",
    "lower-graph": "weft.passes.lower_graph:LowerGraphPass",
    "lower-graph-to-tir": "weft.passes.graph.lower_graph_to_tir:LowerGraphToTirPass",
    "lower-te-to-tir": "weft.passes.te.lower_te_to_tir:LowerTeToTirPass",
    "lower-tir-to-low": "weft.passes.lower_tir_to_low:LowerTirToLowPass",
    "specialize-shapes": "weft.passes.specialize_shapes:SpecializeShapesPass",
    "te-split-reductions": "weft.passes.te.te_split_reductions:TeSplitReductionsPass",
    "tir-apply-annotations": "weft.passes.tir.tir_apply_annotations:ApplyAnnotationsPass",
    "tir-assign-spaces": "weft.passes.tir.tir_assign_spaces:AssignSpacesPass",
    "tir-async-copies": "weft.passes.tir.tir_async_copies:AsyncCopiesPass",
    "tir-bind-threads": "weft.passes.tir.tir_bind_threads:BindThreadsPass",
    "tir-state-preconditions": "weft.passes.tir.tir_state_preconditions:StatePreconditionsPass",
    "tir-check-bounds": "weft.passes.tir.tir_check_bounds:CheckBoundsPass",
    "tir-check-scopes": "weft.passes.tir.tir_check_scopes:CheckScopesPass",
    "tir-collapse-dimensions": "weft.passes.tir.tir_collapse_dimensions:CollapseDimensionsPass",
    "tir-collect-imports": "weft.passes.tir.tir_collect_imports:CollectImportsPass",
    "tir-compact-buffers": "weft.passes.tir.tir_compact_buffers:CompactBuffersPass",
    "tir-distribute-virtual-threads": "weft.passes.tir.tir_distribute_virtual_threads:DistributeVirtualThreadsPass",
    "tir-factor-thread-reductions": "weft.passes.tir.tir_factor_thread_reductions:FactorThreadReductionsPass",
    "tir-flatten": "weft.passes.tir.tir_flatten:FlattenPass",
    "tir-fold-constant-calls": "weft.passes.tir.tir_fold_constant_calls:FoldConstantCallsPass",
    "tir-hoist-checks": "weft.passes.tir.tir_hoist_checks:HoistChecksPass",
    "tir-hoist-prefetches": "weft.passes.tir.tir_hoist_prefetches:HoistPrefetchesPass",
    "tir-insert-barriers": "weft.passes.tir.tir_insert_barriers:InsertBarriersPass",
    "tir-lower-atomic-reductions": "weft.passes.tir.tir_lower_atomic_reductions:LowerAtomicReductionsPass",
    "tir-lower-blocks": "weft.passes.tir.tir_lower_blocks:LowerBlocksPass",
    "tir-lower-loops": "weft.passes.tir.tir_lower_loops:LowerLoopsPass",
    "tir-lower-reductions": "weft.passes.tir.tir_lower_reductions:LowerReductionsPass",
    "tir-lower-thread-reductions": "weft.passes.tir.tir_lower_thread_reductions:LowerThreadReductionsPass",
    "tir-lower-tiles": "weft.passes.tir.tir_lower_tiles:LowerTilesPass",
    "tir-lower-vectorized": "weft.passes.tir.tir_lower_vectorized:LowerVectorizedPass",
    "tir-narrow-vectors": "weft.passes.tir.tir_narrow_vectors:NarrowVectorsPass",
    "tir-outline-kernels": "weft.passes.tir.tir_outline_kernels:OutlineKernelsPass",
    "tir-partition-blocks": "weft.passes.tir.tir_partition_blocks:PartitionBlocksPass",
    "tir-partition-loops": "weft.passes.tir.tir_partition_loops:PartitionLoopsPass",
    "tir-pipeline-loops": "weft.passes.tir.tir_pipeline_loops:PipelineLoopsPass",
    "tir-place-buffers": "weft.passes.tir.tir_place_buffers:PlaceBuffersPass",
    "tir-reuse-shared": "weft.passes.tir.tir_reuse_shared:ReuseSharedPass",
    "tir-run-idle-lanes": "weft.passes.tir.tir_run_idle_lanes:RunIdleLanesPass",
    "tir-split-constant-packing": "weft.passes.tir.tir_split_constant_packing:SplitConstantPackingPass",
    "tir-unroll-registers": "weft.passes.tir.tir_unroll_registers:UnrollRegistersPass",
    "tir-transpose-tiles": "weft.passes.tir.tir_transpose_tiles:TransposeTilesPass",
    "tir-vectorize-serial": "weft.passes.tir.tir_vectorize_serial:VectorizeSerialPass",
    "weft-transform-interpreter": ("weft.schedule.transform.weft_transform_interpreter:WeftTransformInterpreterPass"),
    "verify-level": "weft.passes.verify_level:VerifyLevelPass",
    **{
        f"tir-{name.replace('_', '-')}": f"weft.passes.schedule.primitive_passes:{name.title().replace('_', '')}Pass"
        for name in _PRIMITIVES.split()
    },
}

REPLACED_PASSES: Mapping[str, str] = {
    "apply-pdl": "weft.driver.apply_pdl:ApplyPdlPass",
}
"""Maps a pass of xDSL to the pass that `weft-opt` runs under its name, with the same options."""

TARGETS: Mapping[str, str] = {
    "asm": "weft.backends.llvm.targets:AsmTarget",
    "c": "weft.backends.c_family.targets:CTarget",
    "cuda": "weft.backends.c_family.targets:CudaTarget",
    "dot": "weft.backends.picture.dot:DotTarget",
    "header": "weft.runtime.export.program:HeaderTarget",
    "llvm-ir": "weft.backends.llvm.targets:LLVMIRTarget",
    "metal": "weft.backends.c_family.targets:MetalTarget",
    "object": "weft.runtime.export.program:ObjectTarget",
    "opencl": "weft.backends.c_family.targets:OpenCLTarget",
    "ptx": "weft.backends.c_family.targets:PtxTarget",
    "svg": "weft.backends.picture.svg:SvgTarget",
    "upstream": "weft.backends.upstream:UpstreamTarget",
}


def load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def register_dialects(ctx: Context, *universes: Universe) -> None:
    for universe in universes:
        for name, factory in universe.all_dialects.items():
            ctx.register_dialect(name, partial(_extended, name, factory) if name in UPSTREAM_OPERATIONS else factory)


def _extended(name: str, factory: Callable[[], Dialect]) -> Dialect:
    dialect, added = factory(), load(UPSTREAM_OPERATIONS[name])
    replaced = {definition.name for definition in added}
    # `issubclass` queries all subclasses of a class with an ABC as its metaclass.
    operations = [definition for definition in added if Operation in definition.__mro__]
    attributes = [definition for definition in added if Operation not in definition.__mro__]
    return Dialect(
        name,
        [*(definition for definition in dialect.operations if definition.name not in replaced), *operations],
        [*(definition for definition in dialect.attributes if definition.name not in replaced), *attributes],
    )


def _factories(table: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    return {name: partial(load, place) for name, place in sorted(table.items())}


WEFT_UNIVERSE = Universe(
    all_dialects=_factories(DIALECTS),
    all_passes=_factories(PASSES),
    all_targets=_factories(TARGETS),
)


def pass_factories(universe: Universe) -> dict[str, Callable[[], Any]]:
    """The passes of a universe by name, with weft's replacements for those of xDSL."""
    replaced = {name: partial(load, place) for name, place in REPLACED_PASSES.items()}
    return {**universe.all_passes, **replaced}
