"""tir-partition-blocks: full thread blocks without boundary conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from weft.analysis.accesses import is_loop_value, loop_with_variable
from weft.analysis.index import Index
from weft.analysis.threads import axis_of, runs_over_blocks
from weft.dialects.tir import ForOp
from weft.dialects.traversal import copy_of
from weft.passes.index_builders import compare_before, conjunction_before, detached_ops, if_around, insert_at_start
from weft.passes.tir.guards import comparisons, decide_ifs, replace_by_truth
from weft.passes.tir.tir_pass import TirPass, range_of


@dataclass(frozen=True)
class PartitionBlocksPass(TirPass):
    """Split the work of each kernel by the index of the thread block, if conditions depend on it.

    ```mlir
    tir.for %b in %0 thread_binding<"blockIdx.x"> { tir.for %t in 64 thread_binding<"threadIdx.x"> {
        scf.if %b * 64 + %t < %n { BODY } } }
    // becomes
    tir.for %b in %0 thread_binding<"blockIdx.x"> { tir.for %t in 64 thread_binding<"threadIdx.x"> {
        scf.if %b < %n floordiv 64 { BODY } else { scf.if %b * 64 + %t < %n { BODY } } } }
    ```
    A thread block is full, and drops these conditions, if they hold for all its threads and iterations. The new
    condition is uniform in a thread block, so barriers are allowed under it. Temporaries of static size move to the
    start of the kernel, so that both versions share them.

    Requires: kernels (`tir-bind-threads`) without blocks (`tir-lower-blocks`).

    Leaves: kernels with a version of their body for thread blocks in which all conditions hold.
    """

    name = "tir-partition-blocks"

    def rewrite(self, function: FuncOp) -> None:
        for body in thread_bodies(function):
            for op in [op for op in body.walk() if isinstance(op, memref.AllocOp)]:
                if not op.dynamic_sizes and op.parent is not body:
                    insert_at_start(body, op)
            _partition(body)


def thread_bodies(root: Operation) -> list[Block]:
    loops = [op for op in root.walk() if isinstance(op, ForOp) and axis_of(op) is not None]
    return [loop.body.block for loop in loops if not any(loop.body.is_ancestor(inner) for inner in loops)]


def _partition(body: Block) -> None:
    full = _conditions_of_full_blocks(body)
    if not full:
        return
    anchor = next(op for op in body.ops if not isinstance(op, memref.AllocOp))
    condition = conjunction_before([_compare(index, anchor) for index in _weakest(full.values())], anchor)
    kept = [op for op in body.ops if isinstance(op, memref.AllocOp) or op.is_before_in_block(anchor)]
    original = [op for op in detached_ops(body) if op not in kept]
    body.add_ops(kept)
    mapping: dict[SSAValue, SSAValue] = {}
    copies = [copy_of(op, mapping) for op in original]
    chosen = if_around(condition, copies, original)
    chosen.location = anchor.location
    body.add_op(chosen)
    for comparison in full:
        twin = mapping[comparison.result]
        if isinstance(twin, OpResult):
            replace_by_truth(twin.op, True)
    decide_ifs(chosen.true_region)


def _conditions_of_full_blocks(body: Block) -> dict[arith.CmpiOp, Index]:
    """Comparison -> index that is non-negative if it holds in the whole thread block."""
    found: dict[arith.CmpiOp, Index] = {}
    kernel = body.parent_op()
    for op in body.walk():
        if not isinstance(op, scf.IfOp):
            continue
        for comparison, constraint in comparisons(op.cond):
            if constraint.equality or kernel is None or not kernel.is_ancestor(comparison):
                continue
            inner = Index({a: f for a, f in constraint.index.terms.items() if not _is_uniform(Index({a: 1}), kernel)})
            outer = constraint.index - inner
            low, _ = inner.range(range_of)
            if low is not None and any(_is_block(value) for value in outer.values()):
                found[comparison] = (outer + low).simplified(range_of)
    return found


def _is_block(value: SSAValue) -> bool:
    loop = loop_with_variable(value)
    return loop is not None and runs_over_blocks(loop)


def _is_uniform(index: Index, kernel: Operation) -> bool:
    for value in index.values():
        if kernel.is_ancestor(value.owner) or (is_loop_value(value) and not _is_block(value)):
            return False
    return True


def _weakest(indices: Iterable[Index]) -> list[Index]:
    least: dict[Index, Index] = {}
    for index in indices:
        key = index - index.constant
        if key not in least or index.constant < least[key].constant:
            least[key] = index
    return list(least.values())


def _compare(index: Index, anchor: Operation) -> SSAValue:
    blocks = [atom for atom in index.terms if isinstance(atom, SSAValue) and _is_block(atom)]
    if len(blocks) == 1 and (factor := -index.coefficient(blocks[0])) > 0:
        rest = index + Index({blocks[0]: factor})
        if not any(_is_block(value) for value in rest.values()):
            return compare_before("slt", Index.of(blocks[0]), (rest // factor + 1).simplified(range_of), anchor)
    return compare_before("sge", index, Index({}), anchor)
