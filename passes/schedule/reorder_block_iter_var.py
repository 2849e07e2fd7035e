"""Permutation of the iterators of a block."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, i64
from xdsl.ir import Operation

from weft.analysis.block_scopes import parts_of
from weft.dialects.tir import BlockOp
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class ReorderBlockIterVarPlan(Plan):
    """`order` has the old position of each iterator."""

    blocks: tuple[BlockOp, ...]
    order: tuple[int, ...]

    def rewrite(self) -> tuple[Operation, ...]:
        for block in self.blocks:
            self._reorder(block)
        return ()

    def _reorder(self, block: BlockOp) -> None:
        body = block.body.block
        old = list(block.iter_vars)
        extents = [block.extents[at] for at in self.order]
        kinds = [block.iter_kinds.data[at] for at in self.order]
        static = block.static_extents.get_values()
        results = block.bindings.data.results
        operands = tuple(block.binding_operands)
        for place, at in enumerate(self.order):
            new = body.insert_arg(old[at].type, len(old) + place)
            new.name_hint = old[at].name_hint
            old[at].replace_all_uses_with(new)
        for argument in old:
            body.erase_arg(argument)
        block.iter_kinds = ArrayAttr(kinds)
        block.static_extents = DenseArrayBase.from_list(i64, [static[at] for at in self.order])
        values = [extent for extent in extents if not isinstance(extent, int)]
        block.operands = (*values, *block.operands[len(values) :])
        block.set_bindings([results[at] for at in self.order], operands)


@dataclass(frozen=True)
class ReorderBlockIterVar(Primitive):
    """Permute the iterators of a block. Loops and the order of execution stay the same.

    Requirements:
    1. the order is a permutation of the iterators: their positions 0 .. n-1

    Parts of one block (`loop_partition`) are all changed.

    ```mlir
    tir.block "C" iters(%vi: spatial<8>, %vk: reduce<16>) = [%i, %k] { ... }
    // reorder_block_iter_var "C" {new_order = [1, 0]}
    tir.block "C" iters(%vk: reduce<16>, %vi: spatial<8>) = [%k, %i] { ... }
    ```
    """

    block: BlockOp
    new_order: tuple[int, ...]

    def plan(self) -> ReorderBlockIterVarPlan:
        count = len(self.block.iter_vars)
        if sorted(self.new_order) != list(range(count)):
            detail = f"{list(self.new_order)} for {count} iterators"
            legal = f"each of {', '.join(map(str, range(count)))} once" if count else "an empty order"
            self.refuse(1, Violation(detail, legal=legal))
        return ReorderBlockIterVarPlan(tuple(parts_of(self.block)), self.new_order)
