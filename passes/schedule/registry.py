"""The table of schedule primitives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from weft.passes.schedule.primitive import Primitive
from weft.support.errors import InternalError

PRIMITIVES: Mapping[str, str] = {
    "split": "loop_structure:Split",
    "fuse": "loop_structure:Fuse",
    "tile": "loop_structure:Tile",
    "reorder": "reorder:Reorder",
    "parallel": "loop_kinds:Parallel",
    "vectorize": "loop_kinds:Vectorize",
    "unroll": "loop_kinds:Unroll",
    "bind": "thread_binding:Bind",
    "merge": "merging:Merge",
    "loop_partition": "partition:LoopPartition",
    "add_unit_loop": "iterators:AddUnitLoop",
    "reorder_block_iter_var": "iterators:ReorderBlockIterVar",
    "annotate": "annotations:Annotate",
    "unannotate": "annotations:Unannotate",
    "compute_at": "compute_location:ComputeAt",
    "reverse_compute_at": "compute_location:ReverseComputeAt",
    "compute_inline": "inlining:ComputeInline",
    "reverse_compute_inline": "inlining:ReverseComputeInline",
    "cache_read": "cache_read:CacheRead",
    "cache_write": "cache_write:CacheWrite",
    "cache_inplace": "cache_inplace:CacheInplace",
    "cache_index": "cache_index:CacheIndex",
    "read_at": "read_at:ReadAt",
    "write_at": "write_at:WriteAt",
    "set_scope": "set_scope:SetScope",
    "decompose_reduction": "reduction:DecomposeReduction",
    "fuse_reduction_epilogue": "epilogues:FuseReductionEpilogue",
    "rfactor": "factoring:Rfactor",
    "blockize": "blockizing:Blockize",
    "tensorize": "tensorizing:Tensorize",
    "storage_align": "alignment:StorageAlign",
    "annotate_buffer_access": "access_regions:AnnotateBufferAccess",
    "reindex": "layouts_reindex:Reindex",
    "reindex_cache_read": "layouts_reindex:ReindexCacheRead",
    "reindex_cache_write": "layouts_reindex:ReindexCacheWrite",
    "transform_layout": "layouts:TransformLayout",
    "transform_block_layout": "layouts_blocks:TransformBlockLayout",
    "recode": "recoding:Recode",
    "decompose_padding": "padding:DecomposePadding",
    "pad_einsum": "padding_einsum:PadEinsum",
    "rolling_buffer": "rolling:RollingBuffer",
}
"""Name -> module in this folder and class. The step is `sched.<name>`, the pass `tir-<name with dashes>`."""


@cache
def primitive_class(name: str) -> type[Primitive]:
    """The class of a primitive; `InternalError` for a name that is not in the table."""
    if name not in PRIMITIVES:
        raise InternalError(f"no schedule primitive is called {name!r}")
    module, _, attribute = PRIMITIVES[name].partition(":")
    found: type[Primitive] = getattr(import_module(f"weft.passes.schedule.{module}"), attribute)
    return found
