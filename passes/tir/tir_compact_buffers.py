"""tir-compact-buffers: shrink temporaries to the accessed region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import ancestors
from weft.analysis.footprint import Span, hull, span_of
from weft.analysis.index import Index, RangeOf
from weft.analysis.threads import is_shared, runs_over_threads
from weft.dialects.index_map import mixed_extents
from weft.dialects.low_access import AccessPtrOp, StrideOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import VIRTUAL_THREADS, LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import defining_block, index_before, insert_before, set_access
from weft.passes.tir.guards import comparisons
from weft.passes.tir.tir_pass import TirPass, allocate_before, buffer_type, range_of, remembered_ranges

_DIVISIONS: Final = (arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp)
_Use: TypeAlias = "memref.LoadOp | memref.StoreOp | AccessPtrOp"


@dataclass(frozen=True)
class CompactBuffersPass(TirPass):
    """Shrink every temporary to the box of elements that are accessed in the scope that allocates it.

    ```mlir
    tir.for %i in 32 {
      %t = memref.alloc() : memref<128x64xf32>
      tir.for %r in 4 { tir.for %j in 64 { ACCESS %t[%i * 4 + %r, %j] } }
    // becomes
    tir.for %i in 32 {
      %t = memref.alloc() : memref<4x64xf32>
      tir.for %r in 4 { tir.for %j in 64 { ACCESS %t[%r, %j] } }
    ```
    A dimension shrinks if all its indices are one value fixed in the scope plus a part of constant range, given the
    loops and conditions around. The rank stays. The box of a "shared" buffer contains the accesses of its whole thread
    block. Buffers of dynamic size are allocated before the serial loops in which it is invariant.

    Requires: loops without blocks (`tir-lower-blocks`).

    Leaves: the same, with temporaries of the size that is used.
    """

    name = "tir-compact-buffers"

    def rewrite(self, function: FuncOp) -> None:
        for alloc in [op for op in operations_in(function) if isinstance(op, memref.AllocOp)]:
            compact(alloc)
        for alloc in [op for op in operations_in(function) if isinstance(op, memref.AllocOp)]:
            _hoist(alloc)


def _hoist(alloc: memref.AllocOp) -> None:
    if not alloc.dynamic_sizes:
        return
    loop = alloc.parent_op()
    while isinstance(loop, ForOp) and loop.kind.data is LoopKind.SERIAL:
        if any(loop.is_ancestor(size.owner) for size in alloc.dynamic_sizes):
            return
        alloc.detach()
        insert_before(loop, [alloc])
        loop = alloc.parent_op()


def compact(alloc: memref.AllocOp) -> None:
    """Shrink a temporary without unknown uses."""
    uses: list[_Use] = []
    for use in alloc.memref.uses:
        op = use.operation
        if isinstance(op, StrideOp):
            continue
        if isinstance(op, AccessPtrOp):
            if op.box_sizes is None:
                return
        elif not isinstance(op, memref.LoadOp | memref.StoreOp) or op.memref is not alloc.memref:
            return
        uses.append(op)
    scope = alloc.parent
    if not uses or scope is None:
        return
    fixed = _FixedIn(scope, for_all_threads=is_shared(alloc.memref))
    ranges = remembered_ranges()
    indices = [[Index.of(i).simplified(ranges) for i in op.indices] for op in uses]
    old = buffer_type(alloc.memref)
    boxes = [
        hull(
            [
                _touched(op, d, index[d], span_of(index[d], fixed, ranges), ranges)
                for op, index in zip(uses, indices, strict=True)
            ]
        )
        for d in range(old.get_num_dims())
    ]
    boxes = [
        None if box is None or (extent != DYNAMIC_INDEX and box.extent >= extent) else box
        for box, extent in zip(boxes, old.get_shape(), strict=True)
    ]
    if all(box is None for box in boxes):
        return
    new = _shrink(alloc, old, boxes)
    for op, index in zip(uses, indices, strict=True):
        places = [
            place if box is None else index_before((at - box.lower).simplified(range_of), op)
            for place, at, box in zip(op.indices, index, boxes, strict=True)
        ]
        set_access(op, new, places)


def _touched(op: _Use, dimension: int, index: Index, box: Span | None, ranges: RangeOf) -> Span | None:
    if box is None:
        return None
    if isinstance(op, AccessPtrOp):
        return box if op.box_sizes is None else replace(box, extent=box.extent + op.box_sizes[dimension] - 1, runs=None)
    part = index - box.lower
    low, high = 0, box.extent - 1
    for constraint in _conditions_around(op, ranges):
        _, most = (constraint + part).simplified(ranges).range(ranges)
        _, least = (constraint - part).simplified(ranges).range(ranges)
        high = high if most is None else min(high, most)
        low = low if least is None else max(low, -least)
    return Span(box.lower + low, high - low + 1, tight=False) if low <= high else box


def _conditions_around(op: Operation, ranges: RangeOf) -> list[Index]:
    around = [parent for parent in ancestors(op) if isinstance(parent, scf.IfOp) and parent.true_region.is_ancestor(op)]
    found = [constraint for parent in around for _, constraint in comparisons(parent.cond, ranges)]
    return [constraint.index for constraint in found if not constraint.equality]


@dataclass(frozen=True)
class _FixedIn:
    """Values fixed in a scope; for shared buffers, thread indices vary."""

    scope: Block
    for_all_threads: bool = False

    def __call__(self, value: SSAValue) -> bool:
        home = defining_block(value)
        if self.for_all_threads and home is not None:
            owner = home.parent_op()
            if isinstance(owner, ForOp) and (runs_over_threads(owner) or VIRTUAL_THREADS in owner.attributes):
                return False
        if home is self.scope:
            return not isinstance(value, OpResult) or isinstance(value.op, _DIVISIONS)
        return home is not None and home.is_ancestor(self.scope)


def _shrink(alloc: memref.AllocOp, old: MemRefType, boxes: Sequence[Span | None]) -> SSAValue:
    extents = mixed_extents(old.get_shape(), alloc.dynamic_sizes)
    kept = [extent for extent, box in zip(extents, boxes, strict=True) if box is None and isinstance(extent, SSAValue)]
    shape = [extent if box is None else box.extent for extent, box in zip(old.get_shape(), boxes, strict=True)]
    type_ = MemRefType(old.element_type, shape, old.layout, old.memory_space)
    new = allocate_before(alloc, memref.AllocOp, type_, alloc.memref.name_hint, alloc.alignment, kept)
    new.attributes.update(alloc.attributes)
    alloc.memref.replace_all_uses_with(new.memref)
    Rewriter.erase_op(alloc)
    return new.memref
