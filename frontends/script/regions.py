"""The regions that blocks access: `T.reads(A[vi, vk])`, `T.writes(C[vi, vj])`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.analysis.accesses import Access, accesses_of_instance
from weft.analysis.block_scopes import buffers_read, buffers_written
from weft.analysis.footprint import box_of
from weft.analysis.index import Index, exprs_of
from weft.analysis.reductions import why_not_started
from weft.dialects.tir import AccessRegionOp, BlockOp, ReadsOp, WritesOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import ancestors, operations_in, operations_of


def state_regions(module: ModuleOp) -> None:
    """State the boxes that each block accesses, in place, unless stated or not static. A block with an init does not
    read the buffers that it writes, unless it reads their earlier contents."""
    blocks = operations_of(module, BlockOp)
    for block in blocks:
        if any(isinstance(op, AccessRegionOp) for op in block.body.block.ops):
            continue
        found = [access for access in accesses_of_instance(block) if not _is_inside(access.buffer, block)]
        written = {access.buffer for access in found if access.is_write}
        starts = any(access.in_init and access.is_write for access in found)
        own = {buffer for buffer in written if starts and why_not_started(block, buffer) is None}
        order = {buffer: at for at, buffer in enumerate(buffers_in_text_order(block))}
        reads = [a for a in found if not a.is_write and a.buffer not in own]
        reads.sort(key=lambda access: order.get(access.buffer, len(order)))
        regions = _regions(ReadsOp, reads) + _regions(WritesOp, [access for access in found if access.is_write])
        first = block.body.block.first_op
        if first is not None:
            block.body.block.insert_ops_before(regions, first)


def buffers_in_text_order(block: BlockOp) -> list[SSAValue]:
    """The order is that of scripts and TVM: those of `tir.reads`, accumulators of a reduction initialised elsewhere,
    then others in the order of the text. Loads have another order: an operand of an accumulation precedes the load of
    the accumulator."""
    order: dict[SSAValue, None] = {}
    reduces = block.init is None and any(kind is IterKind.REDUCE for kind in block.kinds)
    seen = set[SSAValue]()

    def visit(value: SSAValue) -> None:
        op = value.owner
        if value in seen or not isinstance(op, Operation) or not block.is_ancestor(op):
            return
        seen.add(value)
        if isinstance(op, memref.LoadOp):
            order.setdefault(op.memref)
        for operand in op.operands:
            visit(operand)

    stated = [op.buffer for op in block.body.block.ops if isinstance(op, ReadsOp)]
    read = buffers_read(block)
    own = [buffer for buffer in buffers_written(block) if buffer in read] if reduces else []
    order.update(dict.fromkeys((*stated, *own)))
    for op in operations_in(block):
        if isinstance(op, BlockOp) and op is not block:
            order.update((buffer, None) for buffer in buffers_in_text_order(op) if buffer not in order)
        elif isinstance(op, memref.StoreOp):
            for operand in (op.value, *op.indices):
                visit(operand)
        elif op.regions:
            for operand in op.operands:
                visit(operand)
    return sorted(read, key=[*order, *read].index)


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
