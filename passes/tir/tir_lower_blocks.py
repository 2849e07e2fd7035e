"""tir-lower-blocks: inline blocks into their loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.index import Index
from weft.dialects.tir import BlockOp
from weft.dialects.tir_kinds import TIR_FUNCTION
from weft.dialects.tir_regions import AccessRegionOp
from weft.dialects.traversal import operations_in
from weft.passes.tir.nest import (
    compare_before,
    conjunction_before,
    detached_ops,
    if_around,
    index_before,
    insert_before,
    range_of,
    tir_functions,
)
from weft.passes.tir.nontemporal import note_nontemporal
from weft.passes.tir.prefetches import note_prefetches
from weft.support.errors import CompileError


@dataclass(frozen=True)
class LowerBlocksPass(ModulePass):
    """Replace every `tir.block` by its body: iterators become their bindings, guards that may fail become `scf.if`.

    ```mlir
    tir.block "C" iters(%vi: spatial<126>) = [%i0 * 4 + %i1] where [%i0 * 4 + %i1] < [126] { BODY(%vi) }
    // becomes
    %vi = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%i0, %i1)
    %c126 = arith.constant 126 : index
    %inside = arith.cmpi slt, %vi, %c126 : index
    scf.if %inside { BODY(%vi) }
    ```
    Loops stay. Blocks inside blocks are replaced too. Accesses of a block annotated `prefetch` note what to ask for
    ahead of time (`prefetches.py`), stores of one annotated `nontemporal` that they go past the caches
    (`nontemporal.py`). Requires: no `tir.init` (CompileError names the block).
    """

    name = "tir-lower-blocks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in tir_functions(op):
            blocks = [op for op in operations_in(function) if isinstance(op, BlockOp)]
            note_prefetches(function, blocks)
            note_nontemporal(blocks)
            for block in blocks:
                lower_block(block)
            # Blocks may have been the only ops that told.
            function.attributes[TIR_FUNCTION] = UnitAttr()


def lower_block(block: BlockOp) -> None:
    """Replace `block` by its body."""
    if block.init is not None:
        raise CompileError.at(block, f'block "{block.label}" still has its tir.init: run tir-lower-reductions before')
    conditions = _conditions(block)
    body = block.body.block
    bindings = Index.of_map(block.bindings.data, block.binding_operands)
    for variable, binding in zip(block.iter_vars, bindings, strict=True):
        if variable.first_use is not None:
            value = index_before(binding.simplified(range_of), block, variable.name_hint)
            variable.replace_all_uses_with(value)
    regions = [op for op in body.ops if isinstance(op, AccessRegionOp)]
    for op in regions:
        op.detach()
        op.erase()
    ops: list[Operation] = detached_ops(body)
    parent = block.parent
    if conditions:
        insert_before(block, [if_around(conjunction_before(conditions, block), ops)])
    elif parent is not None:
        parent.insert_ops_before(ops, block)
    block.detach()
    block.erase()


def _conditions(block: BlockOp) -> list[SSAValue]:
    """The guards of `block` that ranges do not prove, computed before it."""
    dims = [Index.of(v) for v in block.guard_operands]
    conditions: list[SSAValue] = []
    for left_expr, right_expr in block.guards:
        left = Index.of_expr(left_expr, dims).simplified(range_of)
        right = Index.of_expr(right_expr, dims).simplified(range_of)
        low, _ = (right - left).simplified(range_of).range(range_of)
        if low is None or low < 1:
            conditions.append(compare_before("slt", left, right, block))
    return conditions
