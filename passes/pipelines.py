"""The standard orders of passes, each step with the reason why it stands where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.low.low_expand_math import LowExpandMathPass
from weft.passes.low.low_forward_stores import ForwardStoresPass
from weft.passes.low.low_legalize import TARGETS as LEGALIZED
from weft.passes.low.low_legalize import LowLegalizePass
from weft.passes.low.low_lower_dots import LowerDotsPass
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.passes.tir.tir_assign_spaces import AssignSpacesPass
from weft.passes.tir.tir_async_copies import AsyncCopiesPass
from weft.passes.tir.tir_bind_threads import BindThreadsPass
from weft.passes.tir.tir_check_bounds import CheckBoundsPass
from weft.passes.tir.tir_check_scopes import CheckScopesPass
from weft.passes.tir.tir_collect_imports import CollectImportsPass
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_distribute_virtual_threads import DistributeVirtualThreadsPass
from weft.passes.tir.tir_factor_thread_reductions import FactorThreadReductionsPass
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_hoist_prefetches import HoistPrefetchesPass
from weft.passes.tir.tir_insert_barriers import InsertBarriersPass
from weft.passes.tir.tir_lower_atomic_reductions import LowerAtomicReductionsPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
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
from weft.passes.tir.tir_vectorize_serial import VectorizeSerialPass
from weft.support.gpu_machine import GPU_KINDS
from weft.support.target_kinds import registered_kind

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def tir_to_low(target: str = "llvm", *, bounds: bool = False) -> tuple[ModulePass, ...]:
    """From scheduled tir to low: for CPUs, with kernels (`kernels_to_low`), or for a registered kind of target, whose
    memories keep their names. With `bounds`, accesses that may leave their buffers are guarded (CPUs only)."""
    kind = target.partition(" ")[0]
    if kind in GPU_KINDS:
        return kernels_to_low(target)
    registered = registered_kind(kind)
    return (
        # First, for it asks the question that schedule primitives asked (is a temporary private to an iteration?) in
        # the form in which they asked it: with blocks, whose init is known to come first.
        PlaceBuffersPass(),
        # While loops and blocks are there, which carry code along as annotations.
        CollectImportsPass(),
        # Behind temporaries, whose uses it puts under conditions; while accesses stand in their blocks, which the log
        # names; before passes that copy accesses.
        *((CheckBoundsPass(),) if bounds else ()),
        # Before blocks go: it needs to know which iterators reduce.
        LowerReductionsPass(),
        # From here on there are loops, conditions, loads and stores only.
        LowerBlocksPass(),
        # After the blocks, so that indices speak of loops; before partition, which copies accesses.
        CompactBuffersPass(),
        # After temporaries have the size that is used; before partition, which copies accesses and no temporaries.
        *(() if registered is None else (CheckScopesPass(kind),)),
        # Before vectors: a condition that leaves the loop needs no mask.
        PartitionLoopsPass(),
        # Before vectors: with one index an access, strides are coefficients.
        FlattenPass(keep=() if registered is None else tuple(registered.scopes)),
        # After it, which tells what is consecutive. C compilers do this by themselves.
        *((VectorizeSerialPass(target),) if kind == "llvm" else ()),
        # While loops still have kinds.
        LowerVectorizedPass(),
        # After vectors, which ask for several elements at once; while loops tell which of them are unrolled.
        HoistPrefetchesPass(),
        # Last: indices are read and simplified by the ranges of tir loops up to here.
        LowerLoopsPass(),
        # Emitters print what they get.
        LowCanonicalizePass(),
        # Where types are still those of the program, which rules are asked about.
        LowerIntrinsicsPass(kind),
        # Behind the canonical form, which shares the places of what is loaded; before conversions are widened.
        LowerDotsPass(target),
        # After rules of users, who may have better functions. C compilers are left to choose.
        *((LowExpandMathPass(target),) if kind == "llvm" else ()),
        # Last, for what it widens is computed only where it was left.
        *((LowLegalizePass(kind),) if kind in LEGALIZED else ()),
        # Last, for they know the low level of the processor.
        *(() if registered is None else registered.passes),
    )


def kernels_to_low(target: str) -> tuple[ModulePass, ...]:
    """From scheduled tir to low for targets whose programs are kernels: bound loops become functions of their own."""
    return (
        # First, for it says which reductions threads do not do together.
        LowerAtomicReductionsPass(),
        # Before the others, for what it makes are blocks and temporaries as others.
        FactorThreadReductionsPass(),
        # As for CPUs: which temporaries are private is asked while loops say what the program means.
        PlaceBuffersPass(),
        # While loops and blocks are there, which carry code along as annotations.
        CollectImportsPass(),
        # After schedules asked what they ask; from here on threads run in step.
        BindThreadsPass(target),
        # After it, for a temporary may belong to a thread, but be used in several nests over the threads.
        AssignSpacesPass(),
        # After it, which gives partial results to threads; before inits go their own ways.
        LowerThreadReductionsPass(target),
        # Before blocks go: it needs to know which iterators reduce.
        LowerReductionsPass(),
        # From here on there are loops, conditions, loads and stores only.
        LowerBlocksPass(),
        # After the blocks, so that indices speak of loops; before barriers, for iterations reuse what is compacted.
        CompactBuffersPass(),
        # After temporaries have the size that one virtual thread needs.
        DistributeVirtualThreadsPass(),
        # Before loops are partitioned, so that both versions of the kernel are.
        PartitionBlocksPass(),
        # Before barriers, which must not come to stand under a condition that threads part ways at.
        PartitionLoopsPass(),
        # While accesses have an index a dimension, which integer sets like best.
        InsertBarriersPass(),
        # Where barriers stand, they tell which part of a loop fetches for the other.
        PipelineLoopsPass(target),
        # After barriers and pipelines, which ask for whole tiles; before loops and indices are those of a thread.
        LowerTilesPass(),
        # Before vectors: with one index an access, strides are coefficients.
        FlattenPass(),
        # While loops still have kinds.
        LowerVectorizedPass(),
        # After vectors, which are as wide as copies.
        AsyncCopiesPass(),
        # After vectors, which need no loop any more.
        UnrollRegistersPass(),
        # After barriers, and what runs beside the threads; before kernels are checked for the memory that they need.
        ReuseSharedPass(),
        # While loops tell which thread axis they are.
        OutlineKernelsPass(target),
        # Last: indices are read and simplified by the ranges of tir loops up to here.
        LowerLoopsPass(),
        # Emitters print what they get.
        LowCanonicalizePass(),
        # After it, which lets equal indices be one value. Compilers of kernels need not see through buffers then.
        ForwardStoresPass(),
        # Where types are still those of the program, which rules are asked about.
        LowerIntrinsicsPass(target.partition(" ")[0]),
        # Before conversions are widened.
        LowerDotsPass(target),
        # After rules of users, which may have a function for it.
        LowExpandMathPass(target),
        # Last, for what it widens is computed only where it was left.
        LowLegalizePass(target.partition(" ")[0]),
    )
