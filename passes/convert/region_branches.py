"""`scf.index_switch` as a chain of `scf.if`; inlining of `scf.execute_region`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index
from weft.dialects.traversal import operations_in
from weft.passes.index_builders import compare_before, detached_ops

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Operation


def is_single_region(op: Operation) -> bool:
    return isinstance(op, scf.ExecuteRegionOp) and len(op.region.blocks) == 1


def replace_region_branches(function: FuncOp) -> None:
    """Replace every `scf.index_switch`, and every `scf.execute_region` of one block.

    ```mlir
    %y = scf.index_switch %k -> f32
    case 2 { scf.yield %a : f32 }
    default { scf.yield %b : f32 }
    // becomes
    %is2 = arith.cmpi eq, %k, %c2 : index
    %y = scf.if %is2 -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    ```
    """
    for op in operations_in(function, inner_first=True):
        if isinstance(op, scf.IndexSwitchOp):
            _replace_switch(op)
        elif isinstance(op, scf.ExecuteRegionOp) and is_single_region(op):
            _inline(op, op.region)


def _replace_switch(op: scf.IndexSwitchOp) -> None:
    cases = op.cases.get_values()
    others, *regions = [op.detach_region(region) for region in list(op.regions)]
    if not cases:
        _inline(op, others)
        return
    chain: scf.IfOp | None = None
    for case, region in reversed(list(zip(cases, regions, strict=True))):
        if chain is not None:
            others = Region(Block([chain, scf.YieldOp(*chain.results)]))
        condition = compare_before("eq", Index.of(op.arg), Index({}, case), op)
        chain = scf.IfOp(condition, list(op.result_types), region, others)
        chain.location = op.location
        for old, result in zip(op.results, chain.results, strict=True):
            result.name_hint = old.name_hint
    if chain is not None:
        Rewriter.replace_op(op, chain)


def _inline(op: Operation, region: Region) -> None:
    *inner, end = detached_ops(region.block)
    Rewriter.insert_op(inner, InsertPoint.before(op))
    values = list(end.operands)
    end.erase()
    Rewriter.replace_op(op, [], values)
