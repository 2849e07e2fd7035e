"""What blocks read and write, stated in the script: `T.reads(A[vi, vk])`, `T.writes(C[vi, vj])`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses_of_instance
from weft.analysis.footprint import box_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.reductions import why_not_started
from weft.dialects.tir import AccessRegionOp, BlockOp, ReadsOp, WritesOp
from weft.dialects.traversal import ancestors, operations_in


def state_regions(module: ModuleOp) -> None:
    """State, in place, the boxes of the buffers that each block reads and writes, where it states none and they have
    static sizes. A block with an init does not read the buffers that it writes, unless it reads earlier contents."""
    blocks = [op for op in operations_in(module) if isinstance(op, BlockOp)]
    for block in blocks:
        if any(isinstance(op, AccessRegionOp) for op in block.body.block.ops):
            continue
        found = [access for access in accesses_of_instance(block) if not _is_inside(access.buffer, block)]
        written = {access.buffer for access in found if access.is_write}
        starts = any(access.in_init and access.is_write for access in found)
        own = {buffer for buffer in written if starts and why_not_started(block, buffer) is None}
        reads = [a for a in found if not a.is_write and a.buffer not in own]
        regions = _regions(ReadsOp, reads) + _regions(WritesOp, [access for access in found if access.is_write])
        first = block.body.block.first_op
        if first is not None:
            block.body.block.insert_ops_before(regions, first)


def _is_inside(buffer: SSAValue, block: BlockOp) -> bool:
    owner = buffer.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    return op is not None and block in ancestors(op)


def _regions(kind: type[AccessRegionOp], found: Sequence[Access]) -> list[AccessRegionOp]:
    groups: dict[SSAValue, list[Access]] = {}
    for access in found:
        groups.setdefault(access.buffer, []).append(access)
    regions: list[AccessRegionOp] = []
    for buffer, group in groups.items():
        type_ = buffer.type
        if not isinstance(type_, MemRefType):
            continue
        corner: list[Index] = []
        sizes: list[int] = []
        for span, extent in zip(box_of(group, None), type_.get_shape(), strict=True):
            corner.append(Index({}, 0) if span is None else span.lower)
            sizes.append(extent if span is None else span.extent)
        if all(size > 0 for size in sizes):
            regions.append(kind(buffer, *exprs_of(corner), sizes))
    return regions
