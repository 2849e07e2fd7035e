"""The passes from tir to low for CPUs, with the reason for each position."""

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
from weft.passes.tir.tir_run_idle_lanes import RunIdleLanesPass
from weft.passes.tir.tir_transpose_tiles import TransposeTilesPass
from weft.passes.tir.tir_vectorize_serial import VectorizeSerialPass
from weft.support.build_options import DEFAULT_OPTIONS, BuildOptions
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target import Target, registered_kind

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def tir_to_low(target: str = "llvm", options: BuildOptions = DEFAULT_OPTIONS) -> tuple[ModulePass, ...]:
    """From scheduled tir to low for CPUs, GPUs (`kernels_to_low`), or a registered kind of target, whose memory spaces
    are kept. `checked` guards accesses that are not proved in bounds (CPUs only).
    """
    kind = target.partition(" ")[0]
    if kind in GPU_KINDS:
        from weft.passes.gpu_pipeline import kernels_to_low  # start-up: 40 ms

        return kernels_to_low(target)
    registered = registered_kind(kind)
    return (
        # First: privatization is decided on blocks, as by schedule primitives; inits are known to run before updates.
        PlaceBuffersPass(),
        # Applies schedule primitives, which need blocks; temporaries of iterations are private by now.
        ApplyAnnotationsPass(),
        # While there are loops and blocks, to which imported code is attached.
        CollectImportsPass(),
        # After temporaries are placed, because it puts uses under conditions; in blocks, whose names the bounds log
        # has; before accesses are duplicated.
        *((CheckBoundsPass(),) if options.checked else ()),
        # Before blocks, whose iterators it reads, are lowered.
        LowerReductionsPass(),
        # Leaves only loops, conditions, loads and stores.
        LowerBlocksPass(),
        # After blocks: indices are functions of loop variables. Before partitioning duplicates accesses.
        CompactBuffersPass(),
        # After temporaries are compacted; before partitioning duplicates accesses.
        *(() if registered is None else (CheckScopesPass(kind),)),
        # Before vectorization: hoisted conditions need no mask.
        PartitionLoopsPass(),
        # After partitioning, which leaves conditions in remainders, and before they become masks. C compilers choose
        # widths.
        *((NarrowVectorsPass(Target.parse(target).vector_bytes),) if kind == "llvm" else ()),
        # After the choice of narrower vectors, which looks for conditions around all accesses; before flattening, which
        # hides the dimension of the lanes.
        *((RunIdleLanesPass(),) if kind == "llvm" else ()),
        # After partitioning removes conditions around checks; before vectorization: lanes do not log.
        *((HoistChecksPass(),) if options.checked else ()),
        # Before vectorization: strides are coefficients of flat indices.
        FlattenPass(keep=() if registered is None else tuple(registered.scopes)),
        # After flattening, which shows contiguous accesses. C compilers vectorize.
        *((VectorizeSerialPass(target),) if kind == "llvm" else ()),
        # Before vectorization would gather columns. Lanes of C are elements of arrays.
        *((TransposeTilesPass(),) if kind == "llvm" else ()),
        # While loops have kinds. Registered targets may lack shuffles.
        LowerVectorizedPass(shuffles=registered is None),
        # After vectorization merges prefetches of lanes; while unrolled loops are marked.
        HoistPrefetchesPass(),
        *loops_to_low(target),
        # Last: a registered target's passes are written for its low level.
        *(() if registered is None else registered.passes),
    )
