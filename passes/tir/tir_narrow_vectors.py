"""tir-narrow-vectors: narrower vectors for short remainders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.index import Index, RangeOf
from weft.analysis.integer_ranges import is_symbol, leaves
from weft.dialects.effects import only_computes
from weft.dialects.element_types import bytes_of
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import copy_of, operations_in, operations_of
from weft.passes.index_builders import compare_before, if_around
from weft.passes.schedule.nest_builders import set_loop_extent
from weft.passes.tir.guards import comparisons
from weft.passes.tir.tir_pass import TirPass, buffer_type, remembered_ranges
from weft.support.statistics import Statistic

_NARROWED: Final = Statistic("tir-narrow-vectors", "loops-narrowed", "vectorized loops with a narrower version")
_SHARE: Final = 4
"""Ratio of the lanes of a loop to those of its narrower version."""


@dataclass(frozen=True)
class NarrowVectorsPass(TirPass):
    """Select at run time a version of a vectorized loop with a quarter of the lanes, if it spans several machine
    vectors and the number of active lanes is symbolic.

    ```mlir
    tir.for %j in 64 vectorized { scf.if %k * 64 + %j < %n { BODY } }
    // becomes, with vectors of 64 bytes
    scf.if %n - %k * 64 <= 16 { tir.for %j in 16 vectorized { scf.if %k * 64 + %j < %n { BODY } } }
    else { tir.for %j in 64 vectorized { scf.if %k * 64 + %j < %n { BODY } } }
    ```
    All lanes of a masked vector are computed: otherwise a short row takes as long as a full one.

    Requires: loops without blocks (`tir-lower-blocks`), whose main parts are free of conditions
    (`tir-partition-loops`).

    Leaves: the same.
    """

    name = "tir-narrow-vectors"

    vector_bytes: int = 64
    """Bytes of a vector of the machine."""

    def rewrite(self, function: FuncOp) -> None:
        ranges = remembered_ranges()
        loops = operations_of(function, ForOp) if operations_of(function, scf.IfOp) else []
        for loop in loops:
            last = _last_lane(loop, ranges) if loop.kind.data is LoopKind.VECTORIZED else None
            lanes = None if last is None else self._lanes(loop)
            if lanes is not None and last is not None:
                _NARROWED.add()
                _narrow(loop, lanes, last)

    def _lanes(self, loop: ForOp) -> int | None:
        if not isinstance(loop.extent, int) or loop.extent % _SHARE:
            return None
        accessed = [op.memref for op in operations_in(loop) if isinstance(op, memref.LoadOp | memref.StoreOp)]
        widest = max((bytes_of(buffer_type(buffer).element_type) for buffer in accessed), default=0)
        lanes = loop.extent // _SHARE
        return lanes if lanes * widest >= self.vector_bytes else None


def _last_lane(loop: ForOp, ranges: RangeOf) -> Index | None:
    """None if other conditions depend on lanes, or the last lane is not symbolic."""
    conditions = [op for op in loop.body.block.ops if type(op) is scf.IfOp]
    if len(conditions) != 1 or conditions[0].results or conditions[0].false_region.blocks:
        return None
    if any(not only_computes(op) for op in loop.body.block.ops if op is not conditions[0]):
        return None
    variable, found = loop.induction_variable, set[Index]()
    for _, constraint in comparisons(conditions[0].cond, ranges):
        if constraint.index.depends_on([variable]):
            last = constraint.index + Index.of(variable)
            if constraint.equality or last.depends_on([variable]):
                return None
            found.add(last)
    if len(found) != 1:
        return None
    (last,) = found
    values = list(last.values())
    is_outside = not any(loop.is_ancestor(value.owner) for value in values)
    return last if is_outside and any(is_symbol(leaf) for value in values for leaf in leaves(value)) else None


def _narrow(loop: ForOp, lanes: int, last: Index) -> None:
    is_short = compare_before("slt", last, Index({}, lanes), loop)
    narrow, wide = copy_of(loop), copy_of(loop)
    choice = if_around(is_short, [narrow], [wide])
    choice.location = loop.location
    Rewriter.insert_op(choice, InsertPoint.before(loop))
    set_loop_extent(narrow, lanes)
    Rewriter.erase_op(loop)
