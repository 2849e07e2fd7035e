"""Inits of reductions from fills."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import bindings_of, buffers_loaded, buffers_written, child_blocks, loops_around
from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap
from weft.dialects.effects import is_opaque, touches_memory
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import INIT_ORIGIN, ORIGIN, IterKind
from weft.dialects.traversal import operations_in, operations_of
from weft.passes.index_builders import insert_at_start


def merge_inits(function: FuncOp, *, starts: bool = False) -> None:
    """Make a block that fills the accumulators of a reduction its `tir.init`.

    ```mlir
    tir.for %i in 8 { tir.block "C" ... { memref.store %zero, %C[%vi] } }
    tir.for %i in 8 { tir.for %k in 9 { tir.block "C_1" iters(%vi: spatial<8>, %vk: reduce<9>) ... } }
    // becomes
    tir.for %i in 8 { tir.for %k in 9 { tir.block "C" ... { tir.init { memref.store %zero, %C[%vi] } ... } } }
    ```
    The fill writes exactly the updated elements, no op accesses these in between, and no buffer that the reduction
    reads overlaps them. With `starts`, a block that computes each element, such as a copy or a bias, becomes an init,
    too, unless its inputs are written in between. The reduction keeps its name, and the other block's origin as
    `tir.init_origin`.
    """
    for block in child_blocks(function):
        if block.parent is None or block.init is not None:
            continue
        fill = _fill_of(block, starts=starts)
        if fill is not None:
            label = block.block_name
            _merge(fill, block)
            if starts:
                block.block_name = label
                if ORIGIN in fill.attributes:
                    block.attributes[INIT_ORIGIN] = fill.attributes[ORIGIN]


def _fill_of(block: BlockOp, *, starts: bool) -> BlockOp | None:
    """The fill before a reduction; with `starts` the block that computes the updated elements."""
    if IterKind.REDUCE not in block.kinds or block.guards:
        return None
    if any(extent == 0 for extent, kind in zip(block.extents, block.kinds, strict=True) if kind is IterKind.REDUCE):
        return None  # because its init would never run
    stores = operations_of(block, memref.StoreOp)
    if len(stores) != 1 or any(is_opaque(op) or isinstance(op, ForOp) for op in operations_in(block)):
        return None
    buffer = stores[0].memref
    place = [Index.of(i) for i in stores[0].indices]
    loads = operations_of(block, memref.LoadOp)
    if any(load.memref is buffer and [Index.of(i) for i in load.indices] != place for load in loads):
        return None
    nest: Operation = block
    between: list[Operation] = [block]
    while True:
        before = nest.prev_op
        while before is not None:
            if (fill := _only_block(before)) is not None and buffers_written(fill) == [buffer]:
                disturbed = any(touches(op, read) for read in buffers_loaded(fill) for op in between)
                return fill if not disturbed and _is_fill(fill, block, stores[0], starts=starts) else None
            if touches(before, buffer):
                return None
            between.append(before)
            before = before.prev_op
        parent = nest.parent_op()
        if not isinstance(parent, ForOp):
            return None
        # An init in the loop runs later than a fill before it: no other op may observe the difference.
        if any(touches(op, buffer) for op in parent.body.block.ops if op is not nest):
            return None
        nest = parent


def _only_block(op: Operation) -> BlockOp | None:
    while isinstance(op, ForOp):
        inner = list(op.body.block.ops)
        if len(inner) != 1:
            return None
        op = inner[0]
    return op if isinstance(op, BlockOp) else None


def touches(op: Operation, buffer: SSAValue) -> bool:
    for inner in operations_in(op):
        if isinstance(inner, memref.LoadOp | memref.StoreOp):
            if inner.memref is buffer or may_overlap(inner.memref, buffer):
                return True
        elif touches_memory(inner):
            return True
    return False


def _is_fill(fill: BlockOp, block: BlockOp, update: memref.StoreOp, *, starts: bool) -> bool:
    """Whether a block stores one value, or with `starts` one per element, to exactly the updated elements."""
    ops = list(fill.body.block.ops)
    store = ops[-1] if ops else None
    if not isinstance(store, memref.StoreOp):
        return False
    if any(op.regions or (touches_memory(op) and not (starts and isinstance(op, memref.LoadOp))) for op in ops[:-1]):
        return False
    if fill.guards or any(kind is not IterKind.SPATIAL for kind in fill.kinds):
        return False
    if starts and store.memref in buffers_loaded(fill):
        return False
    if not starts and (
        any(value in fill.iter_vars for op in ops[:-1] for value in op.operands) or store.value in fill.iter_vars
    ):
        return False
    mapping = _matched(fill, store, block, update)
    if mapping is None:
        return False
    around = loops_around(fill)
    common = [loop for loop in around if loop in loops_around(block)]
    if len(common) < len(around) and any(
        read is not store.memref and may_overlap(read, store.memref) for read in buffers_loaded(block)
    ):
        return False  # because the reduction of one element may read another that the fill has written
    of_fill = dict(zip(fill.iter_vars, bindings_of(fill), strict=True))
    of_block = dict(zip(block.iter_vars, bindings_of(block), strict=True))
    for mine, theirs in mapping.items():
        if Index.of(fill.extents[mine.index]) != Index.of(block.extents[theirs.index]):
            return False
        shared = [
            binding.mentions(loop.induction_variable for loop in common)
            for binding in (of_fill[mine], of_block[theirs])
        ]
        if any(shared) and of_fill[mine] != of_block[theirs]:
            return False
    return all(loop.induction_variable in {b.single_value for b in of_fill.values()} for loop in common)


def _matched(
    fill: BlockOp, store: memref.StoreOp, block: BlockOp, update: memref.StoreOp
) -> dict[BlockArgument, BlockArgument] | None:
    """Iterators of the fill -> spatial ones of the reduction."""
    mapping: dict[BlockArgument, BlockArgument] = {}
    for one, other in zip(store.indices, update.indices, strict=True):
        own, theirs = Index.of(one), Index.of(other)
        mine = [variable for variable in fill.iter_vars if own.mentions([variable])]
        yours = [variable for variable in block.iter_vars if theirs.mentions([variable])]
        if not mine and not yours and own == theirs:
            continue
        if len(mine) != 1 or len(yours) != 1 or mapping.setdefault(mine[0], yours[0]) is not yours[0]:
            return None
        if own.substitute({mine[0]: Index.of(yours[0])}) != theirs:
            return None
    spatial = {v for v, kind in zip(block.iter_vars, block.kinds, strict=True) if kind is IterKind.SPATIAL}
    found = set(mapping.values())
    return mapping if set(mapping) == set(fill.iter_vars) and found == spatial and len(found) == len(mapping) else None


def _merge(fill: BlockOp, block: BlockOp) -> None:
    store = fill.body.block.last_op
    update = next(iter(operations_of(block, memref.StoreOp)))
    mapping = _matched(fill, store, block, update) if isinstance(store, memref.StoreOp) else None
    variables: dict[SSAValue, SSAValue] = {} if mapping is None else {**mapping}
    block.block_name = fill.block_name
    move_to_init(fill, block, variables)


def move_to_init(fill: BlockOp, block: BlockOp, variables: Mapping[SSAValue, SSAValue]) -> None:
    """Move a block's body to the end of a reduction's init. `variables` maps iterators of `fill` to the reduction's."""
    init = block.init
    if init is None:
        init = InitOp(Region(Block()))
        init.location = fill.location
        insert_at_start(block.body.block, init)
    given = [variables[variable] for variable in fill.iter_vars]
    Rewriter.inline_block(fill.body.block, InsertPoint.at_end(init.body.block), given)
    outer: Operation = fill
    while isinstance(parent := outer.parent_op(), ForOp) and len(list(parent.body.block.ops)) == 1:
        outer = parent
    Rewriter.erase_op(outer)
