"""The passes from tir to low for CPUs, in order, each with the reason for its position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low_pipeline import loops_to_low
from weft.passes.tir.tir_apply_annotations import ApplyAnnotationsPass
from weft.passes.tir.tir_check_bounds import CheckBoundsPass
from weft.passes.tir.tir_check_scopes import CheckScopesPass
from weft.passes.tir.tir_collect_imports import CollectImportsPass
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_hoist_checks import HoistChecksPass
from weft.passes.tir.tir_hoist_prefetches import HoistPrefetchesPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.tir.tir_narrow_vectors import NarrowVectorsPass
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass
from weft.passes.tir.tir_transpose_tiles import TransposeTilesPass
from weft.passes.tir.tir_vectorize_serial import VectorizeSerialPass
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target import Target, registered_kind

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def tir_to_low(target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS) -> tuple[ModulePass, ...]:
    """The passes from scheduled tir to low: for CPUs, for GPUs (`kernels_to_low`), or for a registered kind of target,
    whose memory spaces are kept. With `checked`, accesses that are not proved in bounds are guarded (CPUs only)."""
    kind = target.partition(" ")[0]
    if kind in GPU_KINDS:
        from weft.passes.gpu_pipeline import kernels_to_low  # start-up: 40 ms

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
        *loops_to_low(target),
        # Last: passes of a registered target are written for its low level.
        *(() if registered is None else registered.passes),
    )
