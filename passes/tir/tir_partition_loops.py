"""tir-partition-loops: conditions on loop variables leave the hot part of their loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from weft.analysis.index import Index, RangeOf
from weft.analysis.threads import runs_over_threads
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.tir.guards import Constraint, comparisons, decide_ifs, replace_by_truth
from weft.passes.tir.nest import (
    defining_block,
    divided_up,
    index_before,
    insert_before,
    is_defined_inside,
    is_free_of_effects,
    range_of,
    range_of_difference,
    remembered_ranges,
    tir_functions,
)

_DIVISIBLE = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED)


@dataclass(frozen=True)
class PartitionLoopsPass(ModulePass):
    """Split the range of a loop where a condition in it changes, so that its main part needs no condition.

    For each `scf.if` whose condition is a conjunction of affine comparisons (guards of non-dividing splits, padding,
    `k == 0`), at the outermost serial, parallel or unrolled loop where the condition holds for most iterations, or for
    few of them:

    ```mlir
    tir.for %i0 in 32 { tir.for %i1 in 4 { scf.if %i0 * 4 + %i1 < 126 { BODY } } }
    // becomes
    tir.for %i0 in 31 { tir.for %i1 in 4 { BODY } }
    tir.for %i1 in 2 { BODY(31, %i1) }
    ```
    The remaining parts (before and after the main one) are treated alike; a part where the condition is false and that
    holds nothing else vanishes. Extents may be dynamic. Order of iterations and meaning stay the same. Copies are made
    while the function stays below `growth` times its size; conditions that are left stay as they are.
    """

    name = "tir-partition-loops"

    growth: int = 12

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in tir_functions(op):
            if any(isinstance(inner, scf.IfOp) for inner in operations_in(function)):
                _Partitioner(function, self.growth).run()


@dataclass
class _Bounds:
    """The iterations `low .. high-1` of a loop for which comparisons hold (for equalities: do not hold)."""

    lows: list[Index]
    highs: list[Index]
    proved: dict[arith.CmpiOp, bool]
    """What is known of each comparison in the main part."""
    exclusive: bool
    """Outside the main part the loop does nothing."""


@dataclass
class _Edge:
    """Where one comparison changes in a loop: it is `value` for all iterations from `low` on and below `high`."""

    low: Index | None
    high: Index | None
    value: bool
    exact: bool
    """On the other side it is surely the opposite."""


def _size(op: Operation) -> int:
    return len(operations_in(op))


class _Partitioner:
    def __init__(self, function: FuncOp, growth: int) -> None:
        self.function = function
        self.budget = (growth - 1) * _size(function)
        self._look_again()

    def _look_again(self) -> None:
        """Forget what was found out about loops and comparisons, for loops have changed."""
        self.ranges = remembered_ranges()
        self.compared: dict[SSAValue, list[tuple[arith.CmpiOp, Constraint]]] = {}

    def comparisons(self, condition: SSAValue) -> list[tuple[arith.CmpiOp, Constraint]]:
        """The index comparisons among the conjuncts of a condition."""
        if condition not in self.compared:
            self.compared[condition] = list(comparisons(condition, self.ranges))
        return self.compared[condition]

    def run(self) -> None:
        decide_ifs(self.function)
        self.visit_block(self.function.body.block)

    def visit_block(self, block: Block) -> None:
        for op in list(block.ops):
            if isinstance(op, ForOp):
                self.visit_loop(op)
            elif isinstance(op, scf.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self.visit_block(inner)

    def visit_loop(self, loop: ForOp) -> None:
        if (bounds := self.plan(loop)) is None:
            self.visit_block(loop.body.block)
            return
        if not bounds.exclusive:
            self.budget -= 2 * _size(loop)
        pieces = apply_bounds(loop, bounds)
        self._look_again()
        for piece in pieces:
            if isinstance(piece, Block):
                self.visit_block(piece)
            elif piece.parent is not None:
                self.visit_loop(piece)

    def plan(self, loop: ForOp) -> _Bounds | None:
        """Where to cut `loop`, or None when no cut helps."""
        if loop.kind.data not in _DIVISIBLE or loop.extent in (0, 1):
            return None
        bounds = _Bounds([], [], {}, True)
        vector = _vectorized_loop_around(loop)
        for op in operations_in(loop.body):
            if type(op) is not scf.IfOp:
                continue
            alone = _is_alone(loop, op)
            for comparison, constraint in self.comparisons(op.cond):
                edge = _edge_of(loop, constraint, self.ranges)
                if edge is None or comparison in bounds.proved or not loop.is_ancestor(comparison):
                    continue
                if vector is not None and _differs_between_lanes(edge, vector):
                    continue
                vanishes = alone and edge.exact and edge.value
                if not vanishes and edge.exact and not self._worth_copying(loop, edge):
                    edge = _opposite(edge)
                if vanishes or self._worth_copying(loop, edge):
                    bounds.lows += [edge.low] if edge.low is not None else []
                    bounds.highs += [edge.high] if edge.high is not None else []
                    bounds.proved[comparison] = edge.value
                    bounds.exclusive = bounds.exclusive and vanishes
        return bounds if bounds.proved else None

    def _worth_copying(self, loop: ForOp, edge: _Edge) -> bool:
        """Whether the comparison is known in at least half of the loop, and the copies are not too large."""
        if 2 * _size(loop) > self.budget:
            return False
        edges = [e for e in (edge.low, edge.high) if e is not None]
        if not all(_is_symbol(v) for e in edges for v in e.values()):
            return False
        extent = loop.extent
        if not isinstance(extent, int):
            return True
        low = edge.low.constant if edge.low is not None and edge.low.is_constant else 0
        high = edge.high.constant if edge.high is not None and edge.high.is_constant else extent
        return 2 * (min(high, extent) - max(low, 0)) >= extent


def _is_symbol(value: SSAValue) -> bool:
    """Whether `value` is computed outside of all loops."""
    home = defining_block(value)
    return home is not None and isinstance(home.parent_op(), FuncOp)


def _vectorized_loop_around(loop: ForOp) -> ForOp | None:
    parent = loop.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp) and parent.kind.data is LoopKind.VECTORIZED:
            return parent
        parent = parent.parent_op()
    return None


def _differs_between_lanes(edge: _Edge, vector: ForOp) -> bool:
    """Whether lanes would run different numbers of iterations: then a mask is better than a cut."""
    values = [v for bound in (edge.low, edge.high) if bound is not None for v in bound.values()]
    return any(
        value is vector.induction_variable or (isinstance(value, OpResult) and is_defined_inside(value, vector))
        for value in values
    )


def _is_alone(loop: ForOp, condition: scf.IfOp) -> bool:
    """Whether `loop` does nothing when `condition` is false, and it has no else part."""
    if condition.results or condition.false_region.blocks:
        return False
    inner: Operation = condition
    while inner is not loop:
        block, parent = inner.parent, inner.parent_op()
        if block is None or not isinstance(parent, ForOp):
            return False
        if any(op is not inner and not is_free_of_effects(op) for op in block.ops):
            return False
        inner = parent
    return True


def _opposite(edge: _Edge) -> _Edge:
    """The other side of an exact edge: what holds in a few first or last iterations only does not hold in the rest."""
    if edge.low is not None and edge.high is not None:
        return edge
    return _Edge(edge.high, edge.low, not edge.value, True)


def _edge_of(loop: ForOp, constraint: Constraint, ranges: RangeOf) -> _Edge | None:
    """Where `constraint`, of a comparison somewhere in `loop`, changes as the loop runs."""
    variable = loop.induction_variable
    index = constraint.index
    factor = index.coefficient(variable)
    rest = index - Index({variable: factor})
    if factor == 0 or rest.depends_on([variable]):
        return None
    inner = Index({atom: f for atom, f in rest.terms.items() if _is_inner(Index({atom: 1}), loop)})
    outer = rest - inner
    low, high = inner.range(ranges)
    if constraint.equality:
        return _edge_of_equality(loop, constraint, factor, outer, (low, high))
    if low is None or constraint.negated:
        return None
    exact = low == high
    if factor > 0:
        return _Edge(divided_up(-(outer + low), factor), None, True, exact)
    return _Edge(None, (outer + low) // -factor + 1, True, exact)


def _edge_of_equality(
    loop: ForOp, constraint: Constraint, factor: int, outer: Index, inner: tuple[int | None, int | None]
) -> _Edge | None:
    """An equality can hold for a few iterations only: it is false after them, when they are the first, or before."""
    low, high = inner
    extent = loop.extent
    if low is None or high is None or not outer.is_constant or not isinstance(extent, int):
        return None
    # factor * i lies in least .. most; counted with a positive factor.
    least, most = -(outer.constant + high), -(outer.constant + low)
    if factor < 0:
        factor, least, most = -factor, -most, -least
    first, last = -(-least // factor), most // factor
    if last < first or last < 0 or first >= extent:
        return None
    if first <= 0:
        return _Edge(Index({}, last + 1), None, constraint.negated, False)
    if last >= extent - 1:
        return _Edge(None, Index({}, first), constraint.negated, False)
    return None


def _is_inner(index: Index, loop: ForOp) -> bool:
    """Whether an index varies inside of the loop; threads all run the same iterations of it, so it does if they do."""
    return any(is_defined_inside(value, loop) or _is_thread(value) for value in index.values())


def _is_thread(value: SSAValue) -> bool:
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(loop, ForOp) and runs_over_threads(loop)


def apply_bounds(loop: ForOp, bounds: _Bounds) -> list[ForOp | Block]:
    """Cut `loop`, once for all of its conditions; returns what else can be cut: bodies, and loops that were in them."""
    extent = Index.of(loop.extent)
    zero = Index({})
    low = _extreme(bounds.lows, zero, arith.MaxSIOp, loop)
    if bounds.lows:
        low = _extreme([low], extent, arith.MinSIOp, loop)
    high = _extreme(bounds.highs, extent, arith.MinSIOp, loop)
    if bounds.highs:
        high = _extreme([high], low, arith.MaxSIOp, loop)
    pieces: list[ForOp | Block] = []
    head = None if bounds.exclusive else _copy(loop, zero, low)
    tail = None if bounds.exclusive else _copy(loop, high, extent)
    for comparison, value in bounds.proved.items():
        replace_by_truth(comparison, value)
    main = _limit(loop, low, high)
    for piece in (main, head, tail):
        if piece is not None:
            decide_ifs(piece)
            pieces.extend(_settle(piece))
    return pieces


def _extreme(
    bounds: list[Index], start: Index, chooser: type[arith.MinSIOp | arith.MaxSIOp], anchor: Operation
) -> Index:
    """The minimum or maximum of `bounds` and `start`, computed before `anchor` where ranges do not tell it."""
    result = start
    for bound in dict.fromkeys(bounds):
        bound = bound.simplified(range_of)
        least, most = range_of_difference(bound, result)
        smaller, larger = (bound, result) if chooser is arith.MinSIOp else (result, bound)
        if most is not None and most <= 0:
            result = smaller
        elif least is not None and least >= 0:
            result = larger
        else:
            op = chooser(index_before(result, anchor), index_before(bound, anchor))
            insert_before(anchor, [op])
            result = Index.of(op.results[0])
    return result


def _copy(loop: ForOp, start: Index, end: Index) -> ForOp | None:
    """A copy of `loop` over `start .. end-1`, before it when it starts at 0, else after it; None when empty."""
    size = (end - start).simplified(range_of)
    _, most = size.range(range_of)
    parent = loop.parent
    if parent is None or (most is not None and most <= 0):
        return None
    copy = copy_of(loop)
    if start == Index({}):
        parent.insert_op_before(copy, loop)
    else:
        parent.insert_op_after(copy, loop)
    return _limit(copy, start, end)


def _limit(loop: ForOp, start: Index, end: Index) -> ForOp | None:
    """Let `loop` run over `start .. end-1` only; None when that is empty."""
    size = (end - start).simplified(range_of)
    _, most = size.range(range_of)
    if most is not None and most <= 0:
        loop.detach()
        loop.erase()
        return None
    if size.is_constant:
        limited = ForOp(size.constant, loop.detach_region(loop.body), loop.kind.data, annotations=loop.attributes)
    else:
        value = index_before(size, loop)
        limited = ForOp(value, loop.detach_region(loop.body), loop.kind.data, annotations=loop.attributes)
    limited.location = loop.location
    parent = loop.parent
    if parent is not None:
        parent.insert_op_before(limited, loop)
    loop.detach()
    loop.erase()
    variable = Index({} if size == Index({}, 1) else {limited.induction_variable: 1})
    if variable + start != Index({limited.induction_variable: 1}):
        _replace_variable(limited, variable + start)
    return limited


def _replace_variable(loop: ForOp, index: Index) -> None:
    """Let the body of `loop` use `index` in the place of the loop variable."""
    first = loop.body.block.first_op
    variable = loop.induction_variable
    if first is None or variable.first_use is None:
        return
    new = index_before(index, first, variable.name_hint)
    variable.replace_uses_with_if(new, lambda use: use.operation is not new.owner)


def _settle(loop: ForOp) -> list[ForOp | Block]:
    """What is left to cut of a decided piece: a loop of one iteration dissolves, one without effect vanishes."""
    erase_idle_loops(loop)
    parent = loop.parent
    if parent is None:
        return []
    if loop.extent != 1:
        return [loop.body.block]
    ops = list(loop.body.block.ops)
    for op in ops:
        op.detach()
    parent.insert_ops_before(ops, loop)
    loop.detach()
    loop.erase()
    return [op for op in ops if isinstance(op, ForOp)] + [
        block for op in ops if isinstance(op, scf.IfOp) for region in op.regions for block in region.blocks
    ]


def erase_idle_loops(root: ForOp) -> None:
    """Erase loops, `root` included, that do nothing but compute values."""
    for loop in [op for op in operations_in(root, inner_first=True) if isinstance(op, ForOp)]:
        if all(is_free_of_effects(op) for op in loop.body.block.ops):
            loop.detach()
            loop.erase()
