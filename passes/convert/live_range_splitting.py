"""Live range splitting: separate buffers for consecutive values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from xdsl.dialects.memref import AllocOp, DimOp, LoadOp, StoreOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.dialects.aliasing import is_exposed
from weft.dialects.effects import opaque_op
from weft.dialects.strides import dense_buffer
from weft.dialects.tir import AssumeShapeOp, BlockOp
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import insert_before

Sizes: TypeAlias = Callable[[SSAValue], Sequence[SSAValue]]
"""Returns the dynamic extents of a buffer."""


@dataclass(frozen=True)
class WholeWrite:
    """A top-level nest whose block writes every element of a buffer once."""

    nest: Operation
    block: BlockOp
    buffer: SSAValue
    reduces: bool
    """Whether the block has an init, so that its loads of the buffer read its own earlier writes."""

    @property
    def reads_earlier(self) -> bool:
        """Whether the block reads previous contents."""
        return not self.reduces and bool(_loads(self.nest, self.buffer))


def split_live_ranges(body: Block, writes: Sequence[WholeWrite], sizes: Sizes) -> None:
    """Give each value that a function keeps in a buffer a separate buffer, except the last one.

    ```mlir
    tir.block "matmul" ... { tir.init { store %zero, %C[...] } ... store %sum, %C[%vm, %vn] }
    tir.block "relu" ... { %x = load %C[%vi, %vj] ... store %y, %C[%vi, %vj] }
    // becomes
    %t = memref.alloc() : memref<8x8xf32>
    tir.block "matmul" ... { tir.init { store %zero, %t[...] } ... store %sum, %t[%vm, %vn] }
    tir.block "relu" ... { %x = load %t[%vi, %vj] ... store %y, %C[%vi, %vj] }
    ```
    A value begins at a block of `writes`. In-place updates save memory without schedules, but their blocks are neither
    complete nor reductions, which inlining and fusion require. A buffer is not split if it has uses other than in nests
    of `body`, its initial contents are read, another parameter may overlap it, or it is a parameter that an opaque
    operation might access.
    """
    for buffer in dict.fromkeys(write.buffer for write in writes):
        by_nest = {write.nest: write for write in writes if write.buffer is buffer}
        nests = _nests_using(body, buffer)
        if nests is None or is_exposed(buffer) or not isinstance(buffer.owner, Block | AllocOp):
            continue
        if isinstance(buffer, BlockArgument) and (buffer.block is not body or opaque_op(body) is not None):
            continue
        begins = [at for at, nest in enumerate(nests) if nest in by_nest]
        if len(begins) < 2 or begins[0] != 0 or by_nest[nests[0]].reads_earlier:
            continue
        for first, last in pairwise(begins):
            label = by_nest[nests[first]].block.label
            _move(buffer, nests[first:last], label, by_nest[nests[last]], sizes(buffer))


def _nests_using(body: Block, buffer: SSAValue) -> list[Operation] | None:
    """Ops of `body` that load from or store to a buffer, in order; None for other uses."""
    using: set[Operation] = set()
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, DimOp | AssumeShapeOp):
            continue
        nest = body.find_ancestor_op_in_block(op)
        if nest is None or nest is op or not isinstance(op, LoadOp | StoreOp) or op.memref is not buffer:
            return None
        using.add(nest)
    return [op for op in body.ops if op in using]


def _move(
    buffer: SSAValue, nests: Sequence[Operation], name: str, next_: WholeWrite, sizes: Sequence[SSAValue]
) -> None:
    alloc = AllocOp(sizes, [], dense_buffer(buffer.type))
    alloc.memref.name_hint = name
    insert_before(nests[0], [alloc])
    for nest in nests:
        # The earlier contents that the first of them reads have been moved before.
        for op in operations_in(nest):
            if isinstance(op, LoadOp | StoreOp) and op.memref is buffer:
                op.operands = [alloc.memref if operand is buffer else operand for operand in op.operands]
    if not next_.reduces:
        for load in _loads(next_.nest, buffer):
            load.operands = [alloc.memref, *load.indices]


def _loads(nest: Operation, buffer: SSAValue) -> list[LoadOp]:
    return [op for op in operations_in(nest) if isinstance(op, LoadOp) and op.memref is buffer]
