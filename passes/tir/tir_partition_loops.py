"""tir-partition-loops: main parts of loops without boundary conditions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import loop_with_variable
from weft.analysis.block_scopes import ancestors, function_of, vectorized_loop_around
from weft.analysis.index import Index, Quotient, RangeOf
from weft.analysis.integer_ranges import dynamic_extents_of, is_fixed, is_symbol, leaves
from weft.analysis.threads import runs_over_threads
from weft.dialects.effects import only_computes
from weft.dialects.low import BOUNDS_LOG
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import INTERIOR, LoopKind
from weft.dialects.traversal import blocks_of, copy_of, operations_in, operations_of
from weft.passes.index_builders import (
    compare_before,
    detached_ops,
    divided_up,
    end_of,
    erase_if_unused,
    if_around,
    index_before,
    insert_before,
)
from weft.passes.tir.guards import Constraint, comparisons, constraint_of, decide_ifs, replace_by_truth
from weft.passes.tir.interiors import make_interior_version
from weft.passes.tir.loop_pieces import copied_piece, extreme, is_at_most, restrict
from weft.passes.tir.speculation import speculate
from weft.passes.tir.tir_pass import (
    TirPass,
    range_of,
    range_of_difference,
    remembered_ranges,
    repetitions,
    replace_variable,
)
from weft.support.statistics import Statistic

_CUT: Final = Statistic("tir-partition-loops", "loops-cut", "loops whose main part has lost a condition")
_VERSIONS: Final = Statistic(
    "tir-partition-loops", "versions-made", "remainders with a version for each number of unrolled iterations"
)
_INTERIORS: Final = Statistic(
    "tir-partition-loops", "interiors", "loops with a version for iterations whose conditions all hold"
)
_GROWTH_OF_VERSIONS: Final = 32
"""Growth of a function by versions for numbers of iterations, as a factor of its operations."""
_GROWTH_OF_CHECKED: Final = 3
"""`growth` of functions with a log, where each copy of an access also copies its guards."""
_CUTS_OF_VERSION: Final = 6
"""Growth of a version by further splits, as a factor of its operations."""
_DIVISIBLE = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED)


@dataclass(frozen=True)
class PartitionLoopsPass(TirPass):
    """Split the range of a loop where a condition in it changes, so that its main part needs no condition.

    Applies to each `scf.if` on a conjunction of affine comparisons (guards of non-dividing splits, padding, `k == 0`).
    Splits the outermost serial, parallel or unrolled loop in which it provably holds, or fails, in most iterations:

    ```mlir
    tir.for %i0 in 32 { tir.for %i1 in 4 { scf.if %i0 * 4 + %i1 < 126 { BODY } } }
    // becomes
    tir.for %i0 in 31 { tir.for %i1 in 4 { BODY } }
    tir.for %i1 in 2 { BODY(31, %i1) }
    ```
    Remaining parts are partitioned, too; those without effect are erased. Extents may be dynamic. The order of
    iterations stays. Loops are copied while the function stays below `growth` times its size.

    Unrolled loops are not split for a condition that selects a value, as padding does, and has a constant bound,
    because each copy of the body evaluates it.

    If most of a body is other code, an inner loop over rows is split instead: one that contains all code under the
    condition, which is constant on both sides. Its bounds then depend on the loops around it.

    ```mlir
    tir.for %s in 14 { tir.for %r in 6 { ROW where %s * 4 + %r >= 1, else ZEROS } MUCH }
    // becomes
    tir.for %s in 14 { %n = max(1 - %s * 4, 0); tir.for %r in %n { ZEROS } tir.for %r in 6 - %n { ROW } MUCH }
    ```
    Nor is a loop split for the symbolic number of iterations of a loop over rows in it. A loop that then runs at most
    once becomes a condition.

    The remainder of a symbolic extent gets a version for each number of iterations of unrolled loops, whose arrays can
    then be promoted to registers:

    ```mlir
    tir.for %i0 in ceil(%n / 4) { tir.for %i1 in 4 unrolled { scf.if %i0 * 4 + %i1 < %n { BODY } } }
    // becomes
    tir.for %i0 in %n floordiv 4 { tir.for %i1 in 4 unrolled { BODY } }
    scf.if %n mod 4 > 0 { scf.if %n mod 4 < 2 { BODY } else { scf.if %n mod 4 < 3 { tir.for %i1 in 2 unrolled { BODY } }
      else { tir.for %i1 in 3 unrolled { BODY } } } }
    ```

    A parallel loop over nests with at most one iteration at each end is not split, so that threads share the ends:

    ```mlir
    tir.for %t in 4 parallel { tir.for %i in 4 { scf.if %t * 4 + %i < 14 { BODY } } MORE }
    // becomes
    tir.for %t in 4 parallel {
      scf.if %t < 3 { tir.for %i in 4 { BODY } MORE } else { tir.for %i in 2 { BODY(3, %i) } MORE(3) } }
    ```

    For symbolic bounds, an inner loop around loops is split if possible, so that outer loops are not copied. Several
    remainders, such as rows and columns of a tile of accumulators, get nested versions.

    A loop annotated `interior` is split for all conditions in it at once; no loop in it is split further, and none
    around it for them. Its main part has no conditions, or only masks of lanes; its ends have masks. A version with
    half of the lanes handles the remainder of a row:

    ```mlir
    tir.for %j in ceil(%n / 8) { tir.for %i in %m attributes {interior = true} {
      tir.for %l in 8 vectorized { scf.if %j * 8 + %l < %n { BODY(%i - 1 >= 0) } } } }
    // becomes
    tir.for %j in ceil(%n / 8) { scf.if %n - %j * 8 < 5 { the same with 4 lanes } else {
      scf.if 0 < %m { tir.for %l in 8 vectorized { scf.if %j * 8 + %l < %n { BODY(0 - 1 >= 0) } } }
      scf.if %j * 8 + 7 < %n { tir.for %i in %m - 1 { tir.for %l in 8 vectorized { BODY } } }
      else { tir.for %i in %m - 1 { tir.for %l in 8 vectorized { scf.if %j * 8 + %l < %n { BODY } } } } } }
    ```

    A function with a log of `tir-check-bounds` gets no versions and grows less, because copies multiply the guards.

    Requires: loops without blocks (`tir-lower-blocks`).

    Leaves: loops whose main parts are free of conditions.
    """

    name = "tir-partition-loops"

    growth: int = 12
    """Growth of a function, as a factor of its operations."""

    def rewrite(self, function: FuncOp) -> None:
        if operations_of(function, scf.IfOp):
            _Partitioner(function, self.growth).run()


@dataclass
class _Bounds:
    """Iterations `low .. high-1` for which comparisons hold (equalities: do not hold)."""

    lows: list[Index]
    highs: list[Index]
    proved: dict[arith.CmpiOp, bool]
    """Value of each comparison in the main part."""
    exclusive: bool
    """The loop has no effect outside the main part."""

    @property
    def is_symbolic(self) -> bool:
        return any(not bound.is_constant for bound in (*self.lows, *self.highs))


@dataclass
class _BlockRemainder:
    """Iterations, `least` to `most`, of unrolled loops at the end of a loop."""

    number: Index
    least: int
    most: int


def _runs_threads(op: Operation) -> bool:
    return isinstance(op, ForOp) and runs_over_threads(op)


def _size(op: Operation) -> int:
    return len(operations_in(op))


class _Partitioner:
    def __init__(self, function: FuncOp, growth: int) -> None:
        self.function = function
        self.is_for_threads = any(map(_runs_threads, operations_in(function)))
        is_checked = BOUNDS_LOG in function.attributes
        self.budget = ((min(growth, _GROWTH_OF_CHECKED) if is_checked else growth) - 1) * _size(function)
        self.versions = 0 if is_checked else _GROWTH_OF_VERSIONS * _size(function)
        self._look_again()

    def _look_again(self) -> None:
        self.ranges = remembered_ranges()
        self.compared: dict[SSAValue, list[tuple[arith.CmpiOp, Constraint]]] = {}

    def _has_threads(self, block: Block) -> bool:
        """All threads must pass each barrier that a later pass inserts."""
        loop = block.parent_op()
        if not self.is_for_threads or loop is None:
            return False
        return any(map(_runs_threads, (loop, *ancestors(loop), *operations_in(loop))))

    def comparisons(self, condition: SSAValue) -> list[tuple[arith.CmpiOp, Constraint]]:
        if condition not in self.compared:
            self.compared[condition] = list(comparisons(condition, self.ranges))
        return self.compared[condition]

    def run(self) -> None:
        decide_ifs(self.function)
        self.visit_block(self.function.body.block)
        # Last: loops around them would be split for these conditions.
        for loop in operations_of(self.function, ForOp):
            if loop.kind.data is LoopKind.SERIAL and loop.dynamic_extent is not None and _runs_at_most_once(loop):
                _replace_by_if(loop)

    def visit_block(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, ForOp):
                self.visit_loop(op)
            elif isinstance(op, scf.IfOp):
                for inner in blocks_of(op):
                    self.visit_block(inner)

    def visit_loop(self, loop: ForOp, *, is_end: bool = False) -> None:
        """At the end of a split loop (`is_end`), its conditions may be known to fail."""
        if INTERIOR in loop.attributes:
            if make_interior_version(loop, dynamic_extents_of(self.function)):
                _INTERIORS.add()
            self._look_again()
            return
        conditions = operations_of(loop.body, scf.IfOp)
        if (bounds := self.plan(loop, conditions, is_end=is_end)) is None:
            self._skip_idle_end(loop, conditions)
            self._visit_piece(loop.body.block, is_end=is_end or _runs_at_most_once(loop))
            return
        if not bounds.exclusive:
            if self._cut_rows(loop, list(bounds.proved)):
                self.visit_loop(loop)
                return
            if bounds.is_symbolic and not self._has_threads(loop.body.block) and is_in_small_parts(loop, bounds.proved):
                self.visit_block(loop.body.block)
                return
            self.budget -= 2 * _size(loop)
        _CUT.add()
        ends, pieces = apply_bounds(loop, bounds, is_end=is_end or self._has_threads(loop.body.block))
        self._look_again()
        for piece in (*pieces, *ends):
            if isinstance(piece, Block):
                self._visit_piece(piece, is_end=is_end)
            elif piece.parent is not None:
                self.visit_loop(piece, is_end=piece in ends and piece.dynamic_extent is not None)

    def _skip_idle_end(self, loop: ForOp, conditions: Sequence[scf.IfOp]) -> None:
        """Restrict a long loop, or one around loops, to iterations with effects, such as panels with columns."""
        if loop.kind.data is not LoopKind.SERIAL or not conditions:
            return
        extent = Index.of(loop.extent)
        most = extent.range(self.ranges)[1]
        if most is not None and most < _LONG and not _repeats_loops(loop):
            return
        for comparison, constraint in itertools.chain.from_iterable(self.comparisons(op.cond) for op in conditions):
            edge = edge_of(loop, constraint, self.ranges, value=False)
            if edge is None or not edge.is_low or not _has_symbols(edge.bound) or not loop.is_ancestor(comparison):
                continue
            if is_at_most((extent - edge.bound).simplified(range_of), 0) or _is_limited(loop, edge.bound):
                continue
            if self._is_idle_without(loop, comparison):
                some = extreme([edge.bound], Index({}), arith.MaxSIOp, loop)
                restrict(loop, Index({}), extreme([some], extent, arith.MinSIOp, loop))
                self._look_again()
                return

    def _visit_piece(self, body: Block, *, is_end: bool) -> None:
        blocks = self._versions(body)
        for block in blocks:
            (self._visit_versions if is_end or blocks != [body] else self.visit_block)(block)

    def _versions(self, body: Block) -> list[Block]:
        loop = body.parent_op()
        if not isinstance(loop, ForOp) or loop.dynamic_extent is None or not _runs_at_most_once(loop):
            return [body]
        if self._has_threads(body):
            return [body]
        found = remainder_of(loop, self.ranges)
        if found is None or found.versions * _size(loop) > self.budget:
            return [body]
        self.budget -= found.versions * _size(loop)
        _VERSIONS.add()
        blocks = make_versions(loop, found)
        self._look_again()
        return blocks

    def _visit_versions(self, block: Block) -> None:
        remainder = None if self._has_threads(block) else self._remainder_of(block)
        if remainder is None:
            self.visit_block(block)
            return
        grows = (remainder.most - remainder.least) * sum(map(_size, block.ops))
        self.versions -= grows
        self.budget += _CUTS_OF_VERSION * grows
        _VERSIONS.add()
        versions = versions_of_block(block, remainder)
        self._look_again()
        for version in versions:
            self._visit_versions(version)

    def _remainder_of(self, block: Block) -> _BlockRemainder | None:
        """None if copies are too large."""
        for op in [op for root in block.ops for op in operations_in(root) if type(op) is scf.IfOp]:
            for comparison, constraint in self.comparisons(op.cond):
                for unrolled in _unrolled_around(comparison, block):
                    edge = _sharp_edge(unrolled, constraint, self.ranges) if _accumulates(unrolled) else None
                    if edge is None or edge.bound.is_constant or _varies_in(edge.bound, block):
                        continue
                    extent = unrolled.extent
                    if not isinstance(extent, int) or not _has_symbols(edge.bound):
                        continue
                    low, high = range_of_difference(edge.bound, Index({}), self.ranges)
                    least, most = max(low or 0, 0), extent if high is None else min(high, extent)
                    if (most - least) * sum(map(_size, block.ops)) <= self.versions:
                        return _BlockRemainder(edge.bound, least, most)
        return None

    def plan(self, loop: ForOp, conditions: Sequence[scf.IfOp], *, is_end: bool = False) -> _Bounds | None:
        """At an end, only conditions that fail are considered."""
        if not conditions or loop.kind.data not in _DIVISIBLE or loop.extent in (0, 1):
            return None
        bounds = _Bounds([], [], {}, True)
        vector, has_threads = vectorized_loop_around(loop), self._has_threads(loop.body.block)
        for op in conditions:
            if _has_versions(op, loop):
                continue
            alone = _is_alone(loop, op)
            for comparison, constraint in self.comparisons(op.cond):
                edge = edge_of(loop, constraint, self.ranges)
                if edge is None or comparison in bounds.proved or not loop.is_ancestor(comparison):
                    continue
                if vector is not None and differs_between_lanes(edge, vector):
                    continue
                if has_threads and not all(map(is_fixed, edge.bound.values())) and not (alone and edge.exact):
                    continue
                if (
                    not has_threads
                    and _has_symbols(edge.bound)
                    and _changes_further_in(loop, comparison, constraint, self.ranges)
                ):
                    continue
                if op.results and loop.kind.data is LoopKind.UNROLLED and edge.bound.is_constant:
                    continue  # constants decide it in each copy of the body
                if not edge.bound.is_constant and not has_threads:
                    if self._ends_rows(loop, comparison):
                        continue
                    alone = alone or self._is_idle_without(loop, comparison)
                vanishes = alone and edge.exact and edge.value
                if not vanishes and (is_end or not self._worth_copying(loop, edge)):
                    edge = edge_of(loop, constraint, self.ranges, value=False)
                    if edge is None or not self._worth_copying(loop, edge):
                        continue
                (bounds.lows if edge.is_low else bounds.highs).append(edge.bound)
                bounds.proved[comparison] = edge.value
                bounds.exclusive = bounds.exclusive and vanishes
        return bounds if bounds.proved else None

    def _ends_rows(self, loop: ForOp, comparison: arith.CmpiOp) -> bool:
        found = row_loop_of(loop, comparison, self.ranges)
        if found is None or not found[1].value or _is_square(found[0]):
            return False
        return self._is_idle_without(found[0], comparison)

    def _is_idle_without(self, loop: ForOp, comparison: arith.CmpiOp) -> bool:
        wanted = constraint_of(comparison, self.ranges)

        def is_idle(block: Block) -> bool:
            for op in block.ops:
                if isinstance(op, scf.IfOp) and any(found == wanted for _, found in self.comparisons(op.cond)):
                    if op.false_region.blocks:
                        return False
                elif isinstance(op, ForOp | scf.IfOp):
                    if not all(map(is_idle, blocks_of(op))):
                        return False
                elif not only_computes(op) and not isinstance(op, memref.AllocOp | scf.YieldOp):
                    return False
            return True

        return is_idle(loop.body.block)

    def _cut_rows(self, loop: ForOp, comparisons: list[arith.CmpiOp]) -> bool:
        rows = [row_loop_of(loop, comparison, self.ranges) for comparison in comparisons]
        sizes = [_size(found[0]) for found in rows if found is not None]
        if len(sizes) < len(rows) or sum(sizes) > self.budget or not is_in_small_parts(loop, comparisons):
            return False
        for comparison in comparisons:
            # Earlier splits may have decided the comparison and changed the loop around it.
            found = None if comparison.parent is None else row_loop_of(loop, comparison, self.ranges)
            if found is not None:
                self.budget -= _size(found[0])
                cut_in_two(found[0], found[1], comparison)
                self._look_again()
        return True

    def _worth_copying(self, loop: ForOp, edge: ConditionEdge) -> bool:
        if 2 * _size(loop) > self.budget or _has_no_iterations(loop, edge, self.ranges):
            return False
        if not all(map(_is_computed_outside, edge.bound.values())):
            return _has_symbols(edge.bound) and _repeats_loops(loop)
        extent, at = loop.extent, edge.bound.constant
        if not isinstance(extent, int) or not edge.bound.is_constant:
            return True
        return 2 * (extent - max(at, 0) if edge.is_low else min(at, extent)) >= extent


def _has_versions(op: Operation, loop: ForOp) -> bool:
    inside = itertools.takewhile(lambda outer: outer is not loop, ancestors(op))
    return any(INTERIOR in outer.attributes for outer in inside)


def _is_computed_outside(value: SSAValue) -> bool:
    op = value.owner
    if is_fixed(value):
        return True
    return isinstance(op, arith.MinSIOp | arith.MaxSIOp) and all(
        _is_computed_outside(inner) for operand in op.operands for inner in Index.of(operand).values()
    )


_LONG: Final = 16
"""Iterations of a loop from which the computation of a bound takes little of its time."""


def _has_symbols(index: Index) -> bool:
    return any(is_symbol(leaf) for value in index.values() for leaf in leaves(value))


def _is_limited(loop: ForOp, bound: Index) -> bool:
    """Whether the extent of a loop is a minimum of a bound, or of the maximum of the bound and 0, and other values."""
    least = None if loop.dynamic_extent is None else loop.dynamic_extent.owner
    if not isinstance(least, arith.MinSIOp):
        return False
    parts = [*least.operands]
    for part in least.operands:
        if isinstance(part.owner, arith.MaxSIOp):
            parts += part.owner.operands
    return any(Index.of(part).simplified(range_of) == bound for part in parts)


def _is_square(loop: ForOp) -> bool:
    """`tir-transpose-tiles` needs all iterations of such a loop."""
    inner = operations_of(loop.body, ForOp)
    return [(op.kind.data, op.extent) for op in inner] == [(LoopKind.VECTORIZED, loop.extent)]


def _repeats_loops(loop: ForOp) -> bool:
    kinds = {op.kind.data for op in operations_in(loop.body) if isinstance(op, ForOp)}
    return loop.kind.data is LoopKind.SERIAL and LoopKind.SERIAL in kinds


def _changes_further_in(loop: ForOp, comparison: arith.CmpiOp, constraint: Constraint, ranges: RangeOf) -> bool:
    """Whether an inner loop around loops can be split; then `loop` is not copied."""
    inner = comparison.parent_op()
    while inner is not None and inner is not loop:
        if isinstance(inner, ForOp) and _repeats_loops(inner) and edge_of(inner, constraint, ranges) is not None:
            return True
        inner = inner.parent_op()
    return False


def _has_no_iterations(loop: ForOp, edge: ConditionEdge, ranges: RangeOf) -> bool:
    low, high = (edge.bound, Index.of(loop.extent)) if edge.is_low else (Index({}), edge.bound)
    most = range_of_difference(high, low, ranges)[1]
    return most is not None and most <= 0


def _unrolled_around(op: Operation, root: Operation | Block) -> Iterator[ForOp]:
    parent = op.parent_op()
    while parent is not None and root not in (parent, op.parent):
        if isinstance(parent, ForOp) and parent.kind.data is LoopKind.UNROLLED:
            yield parent
        op, parent = parent, parent.parent_op()


def _accumulates(loop: ForOp) -> bool:
    ops = operations_in(loop.body)
    loaded = {op.memref for op in ops if isinstance(op, memref.LoadOp)}
    return any(isinstance(op, memref.StoreOp) and op.memref in loaded for op in ops)


def _varies_in(index: Index, block: Block) -> bool:
    return any(value.owner is not block and block.is_ancestor(value.owner) for value in index.values())


def _is_alone(loop: ForOp, condition: scf.IfOp) -> bool:
    if condition.results or condition.false_region.blocks:
        return False
    inner: Operation = condition
    while inner is not loop:
        block, parent = inner.parent, inner.parent_op()
        if block is None or not isinstance(parent, ForOp):
            return False
        if any(op is not inner and not only_computes(op) for op in block.ops):
            return False
        inner = parent
    return True


def apply_bounds(loop: ForOp, bounds: _Bounds, *, is_end: bool = False) -> tuple[list[ForOp], list[ForOp | Block]]:
    """Returns ends that can be split further (none if `loop` is an end of symbolic extent), and other such bodies and
    loops."""
    extent = Index.of(loop.extent)
    zero = Index({})
    low = extreme(bounds.lows, zero, arith.MaxSIOp, loop)
    if bounds.lows:
        low = extreme([low], extent, arith.MinSIOp, loop)
    high = extreme(bounds.highs, extent, arith.MinSIOp, loop)
    if bounds.highs:
        high = extreme([high], low, arith.MaxSIOp, loop)
    if not bounds.exclusive and _is_shared_nest(loop) and _has_short_ends(low, high, extent):
        return [], _choose_inside(loop, bounds, low, high)
    ends, pieces = list[ForOp](), list[ForOp | Block]()
    head = None if bounds.exclusive else copied_piece(loop, zero, low)
    tail = None if bounds.exclusive else copied_piece(loop, high, extent)
    for comparison, value in bounds.proved.items():
        replace_by_truth(comparison, value)
    main = restrict(loop, low, high)
    for piece in (main, head, tail):
        if piece is not None:
            decide_ifs(piece)
            settled = _settle(piece)
            # Conditions may hold in most of an end although not in most of the loop.
            again = piece is not main and piece.extent != 1 and piece.parent is not None
            again = again and (isinstance(piece.extent, int) or not is_end)
            if again:
                ends.append(piece)
            else:
                pieces.extend(settled)
    return ends, pieces


def _is_shared_nest(loop: ForOp) -> bool:
    """A split may leave much work to one thread."""
    inside = operations_of(loop.body, ForOp)
    return loop.kind.data is LoopKind.PARALLEL and any(inner.kind.data is LoopKind.SERIAL for inner in inside)


def _has_short_ends(low: Index, high: Index, extent: Index) -> bool:
    return all(is_at_most(size.simplified(range_of), 1) for size in (low, extent - high))


def _runs_at_most_once(loop: ForOp) -> bool:
    return is_at_most(Index.of(loop.extent), 1)


def _choose_inside(loop: ForOp, bounds: _Bounds, low: Index, high: Index) -> list[ForOp | Block]:
    ends: list[tuple[str, Index, list[Operation]]] = []
    if high != Index.of(loop.extent):
        ends.append(("slt", high, _copy_of_iteration(loop, high)))
    if low != Index({}):
        ends.append(("sge", low, _copy_of_iteration(loop, Index({}))))
    for comparison, value in bounds.proved.items():
        replace_by_truth(comparison, value)
    body, here = loop.body.block, Index.of(loop.induction_variable)
    chosen = detached_ops(body)
    with end_of(body) as end:
        for predicate, bound, other in ends:
            condition = compare_before(predicate, here, bound, end)
            chosen = [if_around(condition, chosen, other)]
        insert_before(end, chosen)
    decide_ifs(loop)
    return _settle(loop)


def _copy_of_iteration(loop: ForOp, at: Index) -> list[Operation]:
    copy = copy_of(loop)
    replace_variable(copy, at)
    ops = detached_ops(copy.body.block)
    copy.erase()
    return ops


def versions_of_block(block: Block, remainder: _BlockRemainder) -> list[Block]:
    """Versions with constant iterations of unrolled loops and an effect."""
    original = detached_ops(block)
    terminator = original.pop() if isinstance(original[-1], scf.YieldOp) else None
    versions: list[Block] = []
    with end_of(block) as end:
        end.location = original[0].location
        number = Index.of(index_before(remainder.number, end))
        for known in range(remainder.least, remainder.most + 1):
            predicate = "sge" if known == remainder.most else "sle" if known == remainder.least else "eq"
            condition = compare_before(predicate, number, Index({}, known), end)
            mapping: dict[SSAValue, SSAValue] = {}
            choice = if_around(condition, [copy_of(op, mapping) for op in original])
            choice.location = end.location
            insert_before(end, [choice])
            _know_remainder(choice, remainder.number, known)
            decide_ifs(choice.true_region)
            for loop in [op for op in choice.true_region.block.ops if isinstance(op, ForOp)]:
                erase_idle_loops(loop)
            version = choice.true_region.block
            if all(only_computes(op) for op in version.ops if not isinstance(op, scf.YieldOp)):
                Rewriter.erase_op(choice)
            else:
                versions.append(version)
    for op in reversed(original):
        op.erase()
    if terminator is not None:
        block.add_op(terminator)
    return versions


def _know_remainder(root: Operation, number: Index, known: int) -> None:
    ranges = remembered_ranges()
    for op in [op for op in operations_in(root) if type(op) is scf.IfOp and op is not root]:
        for comparison, constraint in list(comparisons(op.cond, ranges)):
            for unrolled in _unrolled_around(comparison, root):
                edge = _sharp_edge(unrolled, constraint, ranges)
                if edge is not None and edge.bound == number:
                    predicate = "slt" if edge.value != edge.is_low else "sge"
                    variable = Index.of(unrolled.induction_variable)
                    same = compare_before(predicate, variable, Index({}, known), comparison)
                    comparison.result.replace_all_uses_with(same)
                    erase_if_unused([comparison.result])
                    break


def cut_in_two(loop: ForOp, edge: ConditionEdge, comparison: arith.CmpiOp) -> None:
    zero, extent = Index({}), Index.of(loop.extent)
    at = extreme([extreme([edge.bound], zero, arith.MaxSIOp, loop)], extent, arith.MinSIOp, loop)
    copies: dict[SSAValue, SSAValue] = {}
    other = copy_of(loop, copies)
    twin = copies[comparison.result]
    if isinstance(twin, OpResult):
        replace_by_truth(twin.op, not edge.value)
    replace_by_truth(comparison, edge.value)
    Rewriter.insert_op(other, InsertPoint.before(loop) if edge.is_low else InsertPoint.after(loop))
    before, behind = (other, loop) if edge.is_low else (loop, other)
    for piece in (restrict(before, zero, at), restrict(behind, at, extent)):
        if piece is not None:
            decide_ifs(piece)
            _settle(piece)


def _settle(loop: ForOp) -> list[ForOp | Block]:
    """The parts to split further: a loop of one iteration is dissolved, one without effect erased."""
    erase_idle_loops(loop)
    parent = loop.parent
    if parent is None:
        return []
    if loop.extent != 1:
        return [loop.body.block]
    ops = detached_ops(loop.body.block)
    parent.insert_ops_before(ops, loop)
    Rewriter.erase_op(loop)
    loops: list[ForOp | Block] = [op for op in ops if isinstance(op, ForOp)]
    return loops + [block for op in ops if isinstance(op, scf.IfOp) for block in blocks_of(op)]


def _replace_by_if(loop: ForOp) -> None:
    condition = compare_before("sgt", Index.of(loop.extent), Index({}), loop)
    loop.induction_variable.replace_all_uses_with(index_before(Index({}), loop))
    insert_before(loop, [if_around(condition, detached_ops(loop.body.block))])
    Rewriter.erase_op(loop)


def erase_idle_loops(root: ForOp) -> None:
    for loop in [op for op in operations_in(root, inner_first=True) if isinstance(op, ForOp)]:
        if all(only_computes(op) for op in loop.body.block.ops):
            Rewriter.erase_op(loop)


@dataclass(frozen=True)
class MaskedRemainder:
    """Unrolled loops over the remainder of a symbolic extent, of `extent` iterations. Comparisons are `last >= step * i
    + r`, `r` in `0 .. step - 1`."""

    last: Index
    step: int
    extent: int
    loops: dict[ForOp, list[arith.CmpiOp]]
    """Loop -> its comparisons; iterations for which these fail are idle."""
    versions: int
    """The largest possible number of remaining iterations."""

    def distances(self) -> dict[SSAValue, Index]:
        """Comparison -> distance from the first remaining element."""
        every = [comparison for found in self.loops.values() for comparison in found]
        constraints = {comparison.result: constraint_of(comparison) for comparison in every}
        return {
            value: self.last - constraint.index for value, constraint in constraints.items() if constraint is not None
        }


def remainder_of(loop: ForOp, ranges: RangeOf) -> MaskedRemainder | None:
    """None for conditions on several remainders."""
    found: dict[tuple[Index, int, int], dict[ForOp, list[arith.CmpiOp]]] = {}
    inner_remainders = False
    for op in operations_in(loop.body):
        if type(op) is not scf.IfOp:
            continue
        for comparison, constraint in comparisons(op.cond, ranges):
            unrolled = next(
                (u for u in _unrolled_around(op, loop) if u.induction_variable in constraint.index.terms), None
            )
            if unrolled is None:
                continue
            parts = _parts_of(unrolled, constraint)
            if parts is None or constraint.equality or not isinstance(unrolled.extent, int):
                return None
            factor, outer, inner = parts
            if any(loop.body.block is not value.owner and loop.is_ancestor(value.owner) for value in outer.values()):
                inner_remainders = True
                continue
            if factor >= 0 or inner.range(ranges) != (factor + 1, 0) or not _is_alone(unrolled, op):
                return None
            loops = found.setdefault((outer, -factor, unrolled.extent), {})
            loops.setdefault(unrolled, []).append(comparison)
    if len(found) != 1:
        return None
    (((last, step, extent), loops),) = found.items()
    if inner_remainders and step == 1:
        # Versions of inner loops suffice for promotion to registers.
        return None
    # Remainders have ranges in normal form only.
    first = last.substitute({loop.induction_variable: Index({})}, ranges)
    quotients = [atom for atom in first.terms if isinstance(atom, Quotient) and atom.divisor == step * extent]
    is_less = len(quotients) == 1 and first - _recombined(quotients[0]) in (Index({}, -1), Index({}))
    return MaskedRemainder(last, step, extent, loops, extent - (step == 1 and is_less)) if extent > 1 else None


def _recombined(quotient: Quotient) -> Index:
    return quotient.numerator - Index({quotient: quotient.divisor})


def make_versions(loop: ForOp, remainder: MaskedRemainder) -> list[Block]:
    if remainder.step > 1:
        distances = {condition: (distance,) for condition, distance in remainder.distances().items()}
        extents = dynamic_extents_of(function_of(loop))
        speculate(loop, distances, {remainder.last: remainder.step * remainder.extent}, extents)
    versions: list[list[Operation]] = []
    for count in range(remainder.versions + 1):
        mapping: dict[SSAValue, SSAValue] = {}
        copy = copy_of(loop, mapping)
        for unrolled, comparisons_ in remainder.loops.items():
            results = [cast("OpResult", mapping[comparison.result]) for comparison in comparisons_]
            twins = [cast("arith.CmpiOp", result.op) for result in results]
            _let_run(cast("BlockArgument", mapping[unrolled.induction_variable]).block, count, remainder.step, twins)
        decide_ifs(copy)
        for inner in [op for op in copy.body.block.ops if isinstance(op, ForOp)]:
            erase_idle_loops(inner)
        replace_variable(copy, Index.of(loop.induction_variable))
        versions.append(detached_ops(copy.body.block))
        copy.erase()
    for op in reversed(detached_ops(loop.body.block)):
        op.erase()
    blocks: list[Block] = []
    chosen = versions.pop()
    with end_of(loop.body.block) as end:
        while versions:
            bound = Index({}, (len(versions) - 1) * remainder.step)
            choice = if_around(compare_before("slt", remainder.last, bound, end), versions.pop(), chosen)
            blocks += blocks_of(choice)
            chosen = [choice]
        insert_before(end, chosen)
    return blocks


def _let_run(body: Block, count: int, step: int, comparisons_: Sequence[arith.CmpiOp]) -> None:
    """With several elements per step, the last may be masked."""
    unrolled = cast("ForOp", body.parent_op())
    if count == 0:
        Rewriter.erase_op(unrolled)
        return
    if step > 1 and count > 1:
        restrict(unrolled, Index({}), Index({}, count))
        apply_bounds(unrolled, _Bounds([], [Index({}, count - 1)], dict.fromkeys(comparisons_, True), False))
        return
    if step == 1:
        for comparison in comparisons_:
            replace_by_truth(comparison, True)
    piece = restrict(unrolled, Index({}), Index({}, count))
    if piece is not None:
        decide_ifs(piece)
        _settle(piece)


_MUCH: Final = 4
"""A part of a body is small if the rest is this factor larger."""


@dataclass
class ConditionEdge:
    """A comparison is `value` from iteration `bound` on (`is_low`), or below it."""

    bound: Index
    is_low: bool
    value: bool
    exact: bool
    """It provably has the opposite value on the other side."""


def edge_of(loop: ForOp, constraint: Constraint, ranges: RangeOf, *, value: bool = True) -> ConditionEdge | None:
    """The iteration at which `constraint` changes: on one side it provably has `value` in all inner iterations."""
    parts = _parts_of(loop, constraint)
    if parts is None:
        return None
    factor, outer, inner = parts
    low, high = inner.range(ranges)
    if constraint.equality:
        return _edge_of_equality(loop, constraint, factor, outer, (low, high)) if value else None
    least = low if value else high
    if least is None:
        return None
    bound = divided_up(-(outer + least), factor) if factor > 0 else (outer + least) // -factor + 1
    return ConditionEdge(bound.simplified(ranges), value == (factor > 0), value, low == high)


def _sharp_edge(loop: ForOp, constraint: Constraint, ranges: RangeOf) -> ConditionEdge | None:
    edge = edge_of(loop, constraint, ranges)
    other = None if edge is None or edge.exact else edge_of(loop, constraint, ranges, value=False)
    return edge if edge is not None and (edge.exact or (other is not None and other.bound == edge.bound)) else None


def _parts_of(loop: ForOp, constraint: Constraint) -> tuple[int, Index, Index] | None:
    """Factor of the induction variable, invariant and varying parts of the rest; None if the variable is absent, or in
    quotients."""
    variable = loop.induction_variable
    factor = constraint.index.coefficient(variable)
    rest = constraint.index - Index({variable: factor})
    if factor == 0 or rest.depends_on([variable]):
        return None
    inner = Index({atom: f for atom, f in rest.terms.items() if _is_inner(Index({atom: 1}), loop)})
    return factor, rest - inner, inner


def _edge_of_equality(
    loop: ForOp, constraint: Constraint, factor: int, outer: Index, inner: tuple[int | None, int | None]
) -> ConditionEdge | None:
    """An equality holds for few iterations: it fails after them if they are the first, else before."""
    low, high = inner
    extent = loop.extent
    if low is None or high is None or not outer.is_constant or not isinstance(extent, int):
        return None
    # factor * i is in least .. most; normalise to a positive factor.
    least, most = -(outer.constant + high), -(outer.constant + low)
    if factor < 0:
        factor, least, most = -factor, -most, -least
    first, last = -(-least // factor), most // factor
    if last < first or last < 0 or first >= extent:
        return None
    if first <= 0:
        return ConditionEdge(Index({}, last + 1), True, constraint.negated, False)
    if last >= extent - 1:
        return ConditionEdge(Index({}, first), False, constraint.negated, False)
    return None


def _is_inner(index: Index, loop: ForOp) -> bool:
    """Thread indices vary: all threads run the same iterations."""
    return any(loop.is_ancestor(value.owner) or _is_thread(value) for value in index.values())


def _is_thread(value: SSAValue) -> bool:
    loop = loop_with_variable(value)
    return loop is not None and runs_over_threads(loop)


def differs_between_lanes(edge: ConditionEdge, vector: ForOp) -> bool:
    """Whether lanes run different numbers of iterations, so that a mask is better."""
    return any(
        value is vector.induction_variable or (isinstance(value, OpResult) and vector.is_ancestor(value.owner))
        for value in edge.bound.values()
    )


def is_in_small_parts(loop: ForOp, comparisons: Iterable[Operation]) -> bool:
    """Whether parts with the comparisons are small, by code size after unrolling."""
    parts = {part for part in loop.body.block.ops if any(part.is_ancestor(op) for op in comparisons)}
    small = sum(map(_code_size, parts))
    return _MUCH * small <= sum(_code_size(part) for part in loop.body.block.ops if part not in parts)


def _code_size(root: Operation) -> int:
    return sum(repetitions(op, root) for op in operations_in(root))


def row_loop_of(loop: ForOp, comparison: arith.CmpiOp, ranges: RangeOf) -> tuple[ForOp, ConditionEdge] | None:
    """The outermost serial loop over rows with an exact edge for `comparison`.

    A row contains a loop, so it costs more than its bounds. All lanes run the same rows.
    """
    constraint = constraint_of(comparison, ranges)
    found: tuple[ForOp, ConditionEdge] | None = None
    inner = comparison.parent_op()
    while constraint is not None and inner is not None and inner is not loop:
        if isinstance(inner, ForOp) and inner.kind.data is LoopKind.SERIAL and _is_of_rows(inner):
            edge = edge_of(inner, constraint, ranges)
            if edge is not None and edge.exact:
                found = inner, edge
        inner = inner.parent_op()
    return found


def _is_of_rows(loop: ForOp) -> bool:
    return vectorized_loop_around(loop) is None and bool(operations_of(loop.body, ForOp))
