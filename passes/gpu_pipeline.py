"""The passes from tir to low for GPUs, with the reason for each position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low_pipeline import loops_to_low
from weft.passes.tir.tir_apply_annotations import ApplyAnnotationsPass
from weft.passes.tir.tir_assign_spaces import AssignSpacesPass
from weft.passes.tir.tir_async_copies import AsyncCopiesPass
from weft.passes.tir.tir_bind_threads import BindThreadsPass
from weft.passes.tir.tir_collect_imports import CollectImportsPass
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_distribute_virtual_threads import DistributeVirtualThreadsPass
from weft.passes.tir.tir_factor_thread_reductions import FactorThreadReductionsPass
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_insert_barriers import InsertBarriersPass
from weft.passes.tir.tir_lower_atomic_reductions import LowerAtomicReductionsPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_lower_thread_reductions import LowerThreadReductionsPass
from weft.passes.tir.tir_lower_tiles import LowerTilesPass
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.tir.tir_outline_kernels import OutlineKernelsPass
from weft.passes.tir.tir_partition_blocks import PartitionBlocksPass
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass
from weft.passes.tir.tir_pipeline_loops import PipelineLoopsPass
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass
from weft.passes.tir.tir_reuse_shared import ReuseSharedPass
from weft.passes.tir.tir_unroll_registers import UnrollRegistersPass

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def kernels_to_low(target: str) -> tuple[ModulePass, ...]:
    """Outlines nests of bound loops of scheduled tir as kernels."""
    return (
        # First: marks the reductions that are combined across blocks.
        LowerAtomicReductionsPass(),
        # Applies schedule primitives, which need blocks.
        ApplyAnnotationsPass(on_device=True),
        # Before buffers are placed: creates blocks and temporaries.
        FactorThreadReductionsPass(),
        # Privatization is decided on the sequential program.
        PlaceBuffersPass(),
        # While there are loops and blocks, to which imported code is attached.
        CollectImportsPass(),
        # After privatization; the program is SIMT from here on.
        BindThreadsPass(target),
        # After loops of one axis are merged: they may share a thread-private temporary.
        AssignSpacesPass(),
        # After spaces: partial results are thread-private. Before inits are split off.
        LowerThreadReductionsPass(target),
        # Before blocks, whose iterators it reads, are lowered.
        LowerReductionsPass(),
        # Leaves only loops, conditions, loads and stores.
        LowerBlocksPass(),
        # After blocks: indices are functions of loop variables. Before barriers: iterations share a compacted buffer.
        CompactBuffersPass(),
        # After temporaries have the size for one virtual thread.
        DistributeVirtualThreadsPass(),
        # Before loops are partitioned: both versions of the kernel are.
        PartitionBlocksPass(),
        # Before barriers, which must not be under a divergent condition.
        PartitionLoopsPass(),
        # Before flattening: dependence tests are more exact with one index per dimension.
        InsertBarriersPass(),
        # After barriers, which separate fetching from computing.
        PipelineLoopsPass(target),
        # After barriers and pipelining, which analyse whole tiles; before indices are those of a thread.
        LowerTilesPass(),
        # Before vectorization: strides are coefficients of flat indices.
        FlattenPass(),
        # While loops have kinds. Threads read whole vectors only where elements are consecutive.
        LowerVectorizedPass(shuffles=False),
        # After vectorization: vector width is the size of an asynchronous copy.
        AsyncCopiesPass(),
        # After vectorization, which removes loops.
        UnrollRegistersPass(),
        # After barriers and asynchronous copies, which delimit live ranges; before shared memory is checked to fit.
        ReuseSharedPass(),
        # While loops carry their thread axis.
        OutlineKernelsPass(target),
        *loops_to_low(target),
    )
