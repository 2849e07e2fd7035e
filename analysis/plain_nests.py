"""Is a function still as it was written, with one nest of serial loops for each block?"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import NoneAttr
from xdsl.dialects.func import FuncOp

from weft.analysis.index import Index
from weft.analysis.structure import child_blocks, loops_around
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import COMMUTATIVE, LoopKind
from weft.dialects.traversal import operations_in


def is_plain(block: BlockOp) -> bool:
    """Whether a block stands alone in a nest with one serial loop for each of its iterators, in their order, and
    nothing is noted on the block or its loops. It holds no blocks."""
    loops = loops_around(block)
    if len(loops) != len(block.iter_vars):
        return False
    variables = [loop.induction_variable for loop in loops]
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    if [binding.single_value for binding in bindings] != variables or block.guards:
        return False
    if list(block.extents) != [loop.extent for loop in loops]:
        return False
    if not set(block.attributes) <= {COMMUTATIVE} or any(isinstance(op, BlockOp) for op in operations_in(block.body)):
        return False
    return all(loop.kind.data is LoopKind.SERIAL and not loop.attributes and holds_one_nest(loop) for loop in loops)


def holds_one_nest(loop: ForOp) -> bool:
    """Whether one loop, block or condition is all that runs in a loop, but for what computes indices."""
    return sum(isinstance(op, ForOp | BlockOp) or bool(op.regions) for op in loop.body.block.ops) == 1


def why_not_plain(function: FuncOp) -> str | None:
    """Why a function counts as scheduled already: a block that is not plain, or a temporary that somebody said
    something about. None when it is as a front end might have written it."""
    for block in child_blocks(function):
        if not is_plain(block):
            return f'block "{block.label}" is not alone in a nest of serial loops, one for each iterator'
    for op in operations_in(function):
        if isinstance(op, memref.AllocOp) and not isinstance(op.memref.type.memory_space, NoneAttr):
            return f"temporary {op.memref.name_hint} has a memory scope"
        if isinstance(op, memref.AllocOp) and op.attributes:
            return f"temporary {op.memref.name_hint} has attributes: {', '.join(op.attributes)}"
    return None
