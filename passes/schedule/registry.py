"""The table of schedule primitives, and how their parameters are read from `sched` steps and pass options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import get_type_hints

from xdsl.ir import Attribute

from weft.dialects.tir import BlockOp, ForOp
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
    "cache_read": "caching:CacheRead",
    "cache_write": "caching:CacheWrite",
    "cache_inplace": "caching:CacheInplace",
    "cache_index": "index_caching:CacheIndex",
    "read_at": "caching:ReadAt",
    "write_at": "caching:WriteAt",
    "set_scope": "caching:SetScope",
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


@cache
def parameters(name: str) -> tuple[tuple[str, object], ...]:
    """The fields of a primitive with their types, in order: `BlockOp`, `ForOp`, either, a tuple of loops or ints, int,
    str, a buffer of the block, an index map, or any attribute, which may be optional."""
    cls = primitive_class(name)
    hints = get_type_hints(cls)
    return tuple((field.name, hints[field.name]) for field in fields(cls))


LOOPS = tuple[ForOp, ...]
INTS = tuple[int, ...]
LOOP_OR_BLOCK = BlockOp | ForOp
LOOP_OR_BLOCKS = tuple[ForOp | BlockOp, ...]
OPTIONAL = Attribute | None


def takes_loops_of_another_block(name: str) -> bool:
    """Whether the loop parameter belongs to another block than the block parameter (`compute_at`)."""
    return name in ("compute_at", "reverse_compute_at")


def takes_loops_of_several_blocks(name: str) -> bool:
    """Whether each loop belongs to a block of its own (`merge`)."""
    return name == "merge"


def is_handle(kind: object) -> bool:
    """Whether a parameter is a loop, a block, or several of them: a handle of a schedule."""
    return kind is ForOp or kind is BlockOp or kind in (LOOPS, LOOP_OR_BLOCK, LOOP_OR_BLOCKS)
