"""Rewrites shared by primitives: replace a loop variable, move a body, erase empty loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from weft.analysis.accesses import least_value, range_of
from weft.analysis.index import Index, exprs_of
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.passes.index_ops import materialize


def new_loop(extent: int | SSAValue, hint: str | None, like: Operation, kind: LoopKind = LoopKind.SERIAL) -> ForOp:
    """An empty loop with the source location of `like`."""
    loop = ForOp.around(extent, (), hint, kind)
    loop.location = like.location
    return loop


def empty_copy(loop: ForOp, extent: int | SSAValue, hint: str | None) -> ForOp:
    """An empty loop that runs as `loop` does."""
    copy = new_loop(extent, hint, loop, loop.kind.data)
    copy.thread_axis = loop.thread_axis
    copy.attributes.update(loop.attributes)
    return copy


def nest(loops: Sequence[ForOp], body: Sequence[Operation]) -> Operation | None:
    """Put each loop into the one before, and `body` into the last; returns the outermost op."""
    inner: Sequence[Operation] = body
    for loop in reversed(loops):
        loop.body.block.add_ops(inner)
        inner = (loop,)
    return inner[0] if inner else None


def take_operations(block: Block) -> list[Operation]:
    """Detach all operations of a block, in order."""
    operations = list(block.ops)
    for op in operations:
        op.detach()
    return operations


def rebind(block: BlockOp, mapping: Mapping[SSAValue, Index]) -> None:
    """Replace values in the bindings and guards of a block, simplified with the ranges of the loops around it.

    Bindings that mention none of the values stay as they are: those to loops of one iteration, say, which may be split.
    """
    bindings = [
        index.substitute(mapping, range_of).simplified(range_of) if index.depends_on(mapping) else index
        for index in Index.of_map(block.bindings.data, block.binding_operands)
    ]
    block.set_bindings(*exprs_of(bindings))
    operands = [Index.of(v) for v in block.guard_operands]
    guards = [
        (
            Index.of_expr(left, operands).substitute(mapping, range_of).simplified(range_of),
            Index.of_expr(right, operands).substitute(mapping, range_of).simplified(range_of),
        )
        for left, right in block.guards
    ]
    set_guards(block, guards)


def set_guards(block: BlockOp, guards: Sequence[tuple[Index, Index]]) -> None:
    """Give a block the guards `left < right`, without those that ranges prove and without repetition."""
    kept = [guard for guard in dict.fromkeys(guards) if not always_less(*guard)]
    exprs, operands = exprs_of([side for guard in kept for side in guard])
    block.set_guards(list(zip(exprs[::2], exprs[1::2], strict=True)), operands)


def guards_of(block: BlockOp) -> list[tuple[Index, Index]]:
    """The guards of a block as indices over loop values."""
    operands = [Index.of(v) for v in block.guard_operands]
    return [(Index.of_expr(left, operands), Index.of_expr(right, operands)) for left, right in block.guards]


def always_less(left: Index, right: Index) -> bool:
    """Whether ranges prove left < right."""
    low = least_value(right - left)
    return low is not None and low > 0


def replace_loop_value(value: SSAValue, index: Index, body: Block, before: Operation | None = None) -> None:
    """Replace every use of a loop value by `index`.

    `body` is a block in which the index can be computed: before `before`, or at its start.
    """
    users = dict.fromkeys(use.operation for use in value.uses)
    others: list[Operation] = []
    for user in users:
        if isinstance(user, BlockOp):
            if value in user.extent_operands:
                others.append(user)
            rebind(user, {value: index})
        else:
            others.append(user)
    if not others:
        return
    new, operations = materialize(index)
    insert_in(body, operations, before or body.first_op)
    for user in others:
        for at, operand in enumerate(user.operands):
            if operand is value:
                user.operands[at] = new


def become(block: BlockOp, other: BlockOp) -> None:
    """Turn a block into another one, detached and used up: handles on the block stay valid."""
    region = other.detach_region(0)
    old = block.detach_region(0)
    block.add_region(region)
    block.operands = list(other.operands)
    block.properties = dict(other.properties)
    block.attributes = dict(other.attributes)
    old.drop_all_references()
    other.erase()


def insert_in(body: Block, operations: Sequence[Operation], before: Operation | None) -> None:
    """Insert operations before an operation of a block, or at its end."""
    for op in operations:
        if before is None:
            body.add_op(op)
        else:
            body.insert_op_before(op, before)


def erase_empty_loops(op: Operation | None) -> None:
    """Erase `op` when it is a loop without blocks in it, then the loops around it that become empty."""
    while isinstance(op, ForOp) and not _does_anything(op.body):
        parent = op.parent_op()
        op.detach()
        op.erase()
        op = parent


def _does_anything(region: Region) -> bool:
    """Whether a region holds more than index arithmetic and empty loops."""
    for op in region.block.ops:
        if isinstance(op, ForOp):
            if _does_anything(op.body):
                return True
        elif op.name not in ("affine.apply", "arith.constant"):
            return True
    return False
