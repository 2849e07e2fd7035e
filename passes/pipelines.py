"""The standard orders of passes, each step with the reason why it stands where it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.tir.tir_collect_imports import CollectImportsPass
from weft.passes.tir.tir_compact_buffers import CompactBuffersPass
from weft.passes.tir.tir_flatten import FlattenPass
from weft.passes.tir.tir_lower_blocks import LowerBlocksPass
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
from weft.passes.tir.tir_lower_reductions import LowerReductionsPass
from weft.passes.tir.tir_lower_vectorized import LowerVectorizedPass
from weft.passes.tir.tir_partition_loops import PartitionLoopsPass
from weft.passes.tir.tir_place_buffers import PlaceBuffersPass

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def tir_to_low(target: str = "llvm") -> tuple[ModulePass, ...]:
    """From scheduled tir to low. The order is the same for every target so far; what a target lacks it refuses."""
    return (
        # First, for it asks the question that schedule primitives asked (is a temporary private to an iteration?) in
        # the form in which they asked it: with blocks, whose init is known to come first.
        PlaceBuffersPass(),
        # While loops and blocks are there, which carry code along as annotations.
        CollectImportsPass(),
        # Before blocks go: it needs to know which iterators reduce.
        LowerReductionsPass(),
        # From here on there are loops, conditions, loads and stores only.
        LowerBlocksPass(),
        # After the blocks, so that indices speak of loops; before partition, which copies accesses.
        CompactBuffersPass(),
        # Before vectors: a condition that leaves the loop needs no mask.
        PartitionLoopsPass(),
        # Before vectors: with one index an access, strides are coefficients.
        FlattenPass(),
        # While loops still have kinds.
        LowerVectorizedPass(),
        # Last: indices are read and simplified by the ranges of tir loops up to here.
        LowerLoopsPass(),
        # Emitters print what they get.
        LowCanonicalizePass(),
    )
