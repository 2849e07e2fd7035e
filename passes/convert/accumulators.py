"""Reductions that accumulate in the destination of a later copy."""

from __future__ import annotations

from xdsl.dialects import affine, memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.analysis.block_scopes import buffers_loaded, child_blocks, child_towards, is_plain
from weft.analysis.index import Index
from weft.dialects.aliasing import may_overlap
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import operations_in
from weft.passes.convert.reduction_inits import touches
from weft.passes.index_builders import index_before, set_access


def accumulate_in_place(function: FuncOp) -> None:
    """Let reductions accumulate in the buffers that their results are copied to.

    ```mlir
    tir.for ... { tir.block "sum" ... { tir.init { %sum[%vi] = 0 }  %sum[%vi] = %sum[%vi] + ... } }
    tir.for ... { tir.block "y" iters(%vi: spatial<8>) ... { %y[%vi] = %sum[%vi] } }
    // becomes
    tir.for ... { tir.block "y" ... { tir.init { %y[%vi] = 0 }  %y[%vi] = %y[%vi] + ... } }
    ```
    Only the reduction and an injective copy use the temporary; no op from the reduction up to the copy accesses the
    destination; and no buffer that the reduction reads may overlap it.
    """
    for copy in child_blocks(function):
        accesses = _copied(copy)
        if accesses is None:
            continue
        load, store = accesses
        reduction = _reduction_into(load.memref, copy, function)
        if reduction is not None and _is_free(store.memref, reduction, copy, function):
            _redirect(reduction, copy, load, store, function)


def _copied(block: BlockOp) -> tuple[memref.LoadOp, memref.StoreOp] | None:
    """Load and store of a block that copies elements injectively."""
    ops = [op for op in block.body.block.ops if not isinstance(op, affine.ApplyOp)]
    if not is_plain(block) or len(ops) != 2 or IterKind.REDUCE in block.kinds:
        return None
    load, store = ops
    if not isinstance(load, memref.LoadOp) or not isinstance(store, memref.StoreOp) or store.value is not load.res:
        return None
    if not isinstance(load.memref.owner, memref.AllocOp) or list(load.indices) != list(block.iter_vars):
        return None
    alone = [values[0] for index in store.indices if len(values := list(Index.of(index).values())) == 1]
    is_injective = sorted(v.index for v in alone if v in block.iter_vars and isinstance(v, BlockArgument))
    linear = all(isinstance(atom, SSAValue) for index in store.indices for atom in Index.of(index).terms)
    return (load, store) if linear and is_injective == list(range(len(block.iter_vars))) else None


def _reduction_into(buffer: SSAValue, copy: BlockOp, function: FuncOp) -> BlockOp | None:
    users = [use.operation for use in buffer.uses]
    blocks = {block for block in child_blocks(function) if any(block.is_ancestor(user) for user in users)} - {copy}
    if len(blocks) != 1 or not all(isinstance(user, memref.LoadOp | memref.StoreOp) for user in users):
        return None
    (block,) = blocks
    if not all(block.is_ancestor(user) or copy.is_ancestor(user) for user in users):
        return None
    spatial = [v for v, kind in zip(block.iter_vars, block.kinds, strict=True) if kind is IterKind.SPATIAL]
    extents = [Index.of(block.extents[variable.index]) for variable in spatial]
    if block.init is None or not is_plain(block) or extents != [Index.of(extent) for extent in copy.extents]:
        return None
    own = [user for user in users if isinstance(user, memref.LoadOp | memref.StoreOp) and block.is_ancestor(user)]
    return block if all(list(user.indices) == spatial for user in own) else None


def _is_free(target: SSAValue, reduction: BlockOp, copy: BlockOp, function: FuncOp) -> bool:
    if any(read is target or may_overlap(read, target) for read in buffers_loaded(reduction)):
        return False
    op: Operation | None = child_towards(function, reduction).next_op
    end = child_towards(function, copy)
    while op is not None and op is not end:
        if touches(op, target):
            return False
        op = op.next_op
    return op is end


def _redirect(reduction: BlockOp, copy: BlockOp, load: memref.LoadOp, store: memref.StoreOp, function: FuncOp) -> None:
    spatial = [v for v, kind in zip(reduction.iter_vars, reduction.kinds, strict=True) if kind is IterKind.SPATIAL]
    renamed: dict[SSAValue, Index] = {
        theirs: Index.of(own) for theirs, own in zip(copy.iter_vars, spatial, strict=True)
    }
    places = [Index.of(index).substitute(renamed) for index in store.indices]
    temporary = load.memref
    for op in operations_in(reduction):
        if isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref is temporary:
            set_access(op, store.memref, [index_before(place, op) for place in places])
    reduction.block_name = copy.block_name
    Rewriter.erase_op(child_towards(function, copy))
    if isinstance(temporary.owner, Operation) and temporary.first_use is None:
        Rewriter.erase_op(temporary.owner)
