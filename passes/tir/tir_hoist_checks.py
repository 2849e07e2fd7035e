"""tir-hoist-checks: hoist bounds checks out of loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_scopes import buffers_written
from weft.analysis.index import Index
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import is_pure, may_trap, opaque_op, underlying
from weft.dialects.low import BOUNDS_LOG
from weft.dialects.tir import ForOp
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.index_builders import branch_before, compare_before, erase_if_unused, insert_before
from weft.passes.tir.tir_pass import TirPass, range_of
from weft.support.statistics import Statistic

_HOISTED: Final = Statistic("tir-hoist-checks", "checks-hoisted", "checks that run once before a loop, a loop each")


@dataclass(frozen=True)
class HoistChecksPass(TirPass):
    """Log failures of bounds checks that are invariant in a loop once, before the loop.

    ```mlir
    tir.for %j in 64 {
      %p = memref.load %I[%i] : memref<8xindex>
      %inside = arith.cmpi ult, %p, %c16 : index
      %a = scf.if %inside -> (f32) { LOAD(%p, %j) } else { LOG(%p), ZERO }
      USE(%a, %j)
    }
    // becomes
    %p = memref.load %I[%i] : memref<8xindex>
    %inside = arith.cmpi ult, %p, %c16 : index
    scf.if %inside { } else { LOG(%p) }
    tir.for %j in 64 { %a = scf.if %inside -> (f32) { LOAD(%p, %j) } else { ZERO }; USE(%a, %j) }
    ```
    Without stores to the log the loop can be vectorized, and compilers unswitch the remaining condition. Logging once
    suffices for maxima. Guards of `tir-check-bounds` move out of as many loops as possible, with their computations,
    and loads of buffers that the loop does not write, as do invariant accesses. The log stays under the conditions
    around a guard, and one on the extent if the loop may be empty, because only accesses that run are reported.

    Requires: loops without blocks (`tir-lower-blocks`), with the guards of `tir-check-bounds`.

    Leaves: the same; logs of guards that are invariant in a loop precede it.
    """

    name = "tir-hoist-checks"

    def rewrite(self, function: FuncOp) -> None:
        if BOUNDS_LOG not in function.attributes:
            return
        for loop in operations_in(function, inner_first=True):
            if isinstance(loop, ForOp) and loop.extent != 0 and opaque_op(loop) is None:
                _CheckHoist(loop, function.args[0]).run()


class _CheckHoist:
    def __init__(self, loop: ForOp, log: SSAValue) -> None:
        self.loop = loop
        self.log = log
        self.written = with_overlapping(buffers_written(loop)) - {log}

    def run(self) -> None:
        used: set[SSAValue] = set()
        candidates: list[Operation] = []
        for op in reversed(list(self.loop.body.block.ops)):
            inside = operations_in(op)
            if (isinstance(op, scf.IfOp) and any(map(self._logs, inside))) or any(r in used for r in op.results):
                candidates.append(op)
                used.update(operand for inner in inside for operand in inner.operands)
        runs = False
        for op in reversed(candidates):
            moves = self._moves(op)
            before = [op] if moves else self._split(op) if isinstance(op, scf.IfOp) else []
            if not before:
                continue
            if not runs:
                _require_iterations(self.loop)
                runs = True
            if moves:
                op.detach()
            Rewriter.insert_op(before, InsertPoint.before(self.loop))
            _HOISTED.add(any(self._logs(inner) for new in before for inner in operations_in(new)))

    def _logs(self, op: Operation) -> bool:
        return isinstance(op, memref.StoreOp) and op.memref is self.log

    def _is_invariant(self, value: SSAValue) -> bool:
        return not self.loop.is_ancestor(value.owner)

    def _repeats(self, op: Operation) -> bool:
        if isinstance(op, memref.LoadOp):
            return underlying(op.memref) not in self.written
        return self._logs(op) or isinstance(op, scf.YieldOp) or (is_pure(op) and not may_trap(op))

    def _moves(self, op: Operation) -> bool:
        return all(
            (self._repeats(inner) or isinstance(inner, scf.IfOp))
            and all(self._is_invariant(v) or op.is_ancestor(v.owner) for v in inner.operands)
            for inner in operations_in(op)
        )

    def _split(self, guard: scf.IfOp) -> list[Operation]:
        known: dict[SSAValue, SSAValue] = {}
        split: list[tuple[Operation, Operation]] = []

        def part(region: Region) -> Region:
            copies = Block()
            for op in [op for block in region.blocks for op in block.ops]:
                if not all(self._is_invariant(v) or v in known for v in op.operands):
                    continue
                if isinstance(op, scf.IfOp):
                    condition = known.get(op.cond, op.cond)
                    copies.add_op(scf.IfOp(condition, [], part(op.true_region), part(op.false_region)))
                elif not isinstance(op, scf.YieldOp) and self._repeats(op):
                    copies.add_op(copy := copy_of(op, known))
                    split.append((op, copy))
            copies.add_op(scf.YieldOp())
            return Region(copies)

        if not self._is_invariant(guard.cond):
            return []
        copy = scf.IfOp(guard.cond, [], part(guard.true_region), part(guard.false_region))
        stores = [op for op, _ in split if self._logs(op)]
        logging = [op.parent_op() for op in stores]
        for op in stores:
            Rewriter.erase_op(op)
        erase_if_unused(op for op, _ in reversed(split) if op not in stores)
        erase_if_unused(op for _, op in reversed(split))
        for op in logging:
            if isinstance(op, scf.IfOp) and not op.results:
                _drop_empty(op.false_region)
        return [copy] if stores else []


def _require_iterations(loop: ForOp) -> None:
    extent = Index.of(loop.extent)
    low, _ = extent.range(range_of)
    if low is not None and low >= 1:
        return
    with branch_before(compare_before("sgt", extent, Index({}), loop), loop) as end:
        loop.detach()
        insert_before(end, [loop])


def _drop_empty(region: Region) -> None:
    for block in list(region.blocks):
        if isinstance(block.first_op, scf.YieldOp):
            region.detach_block(block)
            block.erase()
