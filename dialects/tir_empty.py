"""Empty reductions: a block's init if an extent of its reduction is 0.

Elements of empty reductions get initial values. The init then runs before the outermost loop that a reduce iterator is
bound to, for each spatial point of the loops. Interpreter and lowering share this plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import captured_values, sources_in


@dataclass(frozen=True)
class EmptyStart:
    """The init of a block if one of `extents`, those of its reduction, is 0."""

    block: BlockOp
    anchor: ForOp
    """It runs before this loop: the outermost of the reduction or of iterators that share loops with it."""
    kept: tuple[ForOp, ...]
    """Loops from `anchor` inwards that the reduction does not use; repeated around the init."""
    whole: tuple[int, ...]
    """Iterators that range over their whole domain, because their loops are also the reduction's."""
    guards: tuple[tuple[AffineExpr, AffineExpr], ...]
    """Applicable guards, over the guard operands."""
    extents: tuple[SSAValue, ...]


def empty_start(block: BlockOp) -> EmptyStart | None:
    """Returns None for other blocks, and if the init needs values that only the reduction provides."""
    extents = [
        e
        for e, kind in zip(block.extents, block.kinds, strict=True)
        if kind is IterKind.REDUCE and isinstance(e, SSAValue)
    ]
    if block.init is None or not extents:
        return None
    chain = loop_chain(block)
    operands = list(block.binding_operands)
    bindings = list(zip(block.bindings.data.results, block.kinds, strict=True))
    reduced = _loop_values([v for e, kind in bindings if kind is IterKind.REDUCE for v in _used(e, operands)], chain)
    shared = [values for e, kind in bindings if kind is not IterKind.REDUCE and (values := _used(e, operands))]
    shared = [loops for values in shared if not reduced.isdisjoint(loops := _loop_values(values, chain))]
    first = reduced.union(*shared)
    inside = chain[next((at for at, loop in enumerate(chain) if loop.induction_variable in first), len(chain)) :]
    if not reduced or not inside:
        return None
    anchor = inside[0]
    kept = tuple(loop for loop in inside if loop.induction_variable not in reduced)
    known = {loop.induction_variable for loop in kept}
    whole: list[int] = []
    needed: list[SSAValue] = [*extents, *(loop.extent for loop in kept if isinstance(loop.extent, SSAValue))]
    for at, (expr, kind) in enumerate(bindings):
        values = _used(expr, operands)
        if kind is IterKind.REDUCE:
            continue
        if reduced.isdisjoint(_loop_values(values, chain)):
            needed.extend(values)
            continue
        whole.append(at)
        extent = block.extents[at]
        needed.extend([extent] if isinstance(extent, SSAValue) else [])
    guards: list[tuple[AffineExpr, AffineExpr]] = []
    for guard in block.guards:
        values = [v for side in guard for v in _used(side, list(block.guard_operands))]
        if reduced.isdisjoint(_loop_values(values, chain)):
            guards.append(guard)
            needed.extend(values)
    needed.extend(value for value in captured_values(block.init) if not block.is_ancestor(value.owner))
    if any(value not in known and anchor.is_ancestor(value.owner) for value in needed):
        return None
    return EmptyStart(block, anchor, kept, tuple(whole), tuple(guards), tuple(extents))


def loop_chain(block: BlockOp) -> list[ForOp]:
    """Loops, outermost first."""
    loops: list[ForOp] = []
    parent = block.parent_op()
    while isinstance(parent, ForOp):
        loops.append(parent)
        parent = parent.parent_op()
    return loops[::-1]


def _used(expr: AffineExpr, operands: Sequence[SSAValue]) -> list[SSAValue]:
    return [operands[node.position] for node in expr.dfs() if isinstance(node, AffineDimExpr)]


def _loop_values(values: Sequence[SSAValue], loops: Sequence[ForOp]) -> set[SSAValue]:
    """Loop variables from which `values` are computed."""
    return sources_in(values) & {loop.induction_variable for loop in loops}
