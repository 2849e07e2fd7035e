"""Divergence analysis: which values of a loop body differ between lanes, and whether the loop can be vectorized."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.dialects.vector import CombiningKindFlag
from xdsl.ir import Block, Operation, OpResult, SSAValue

from weft.analysis.index import Index, RangeOf
from weft.dialects.low_access import PrefetchOp
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import REASSOCIATE, LoopKind
from weft.passes.tir.nest import remembered_ranges

COMBINERS: dict[type[Operation], CombiningKindFlag] = {
    arith.AddfOp: CombiningKindFlag.ADD,
    arith.MulfOp: CombiningKindFlag.MUL,
    arith.MaximumfOp: CombiningKindFlag.MAXIMUMF,
    arith.MinimumfOp: CombiningKindFlag.MINIMUMF,
    arith.MaxnumfOp: CombiningKindFlag.MAXNUMF,
    arith.MinnumfOp: CombiningKindFlag.MINNUMF,
    arith.AddiOp: CombiningKindFlag.ADD,
    arith.MuliOp: CombiningKindFlag.MUL,
    arith.MaxSIOp: CombiningKindFlag.MAXSI,
    arith.MinSIOp: CombiningKindFlag.MINSI,
    arith.MaxUIOp: CombiningKindFlag.MAXUI,
    arith.MinUIOp: CombiningKindFlag.MINUI,
    arith.AndIOp: CombiningKindFlag.AND,
    arith.OrIOp: CombiningKindFlag.OR,
    arith.XOrIOp: CombiningKindFlag.XOR,
}
"""Ops that combine all lanes into one value."""

DIVISIONS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
"""Ops that must not run for a divisor of 0."""


@dataclass(frozen=True)
class Reduction:
    """`buffer[place] = combine(buffer[place], operand)` with one place for all lanes."""

    load: memref.LoadOp
    combine: Operation
    operand: SSAValue
    kind: CombiningKindFlag


@dataclass
class Lanes:
    """What `analyse` found out about the body of a vectorised loop."""

    loop: ForOp
    varying: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values that differ between lanes."""
    reductions: dict[memref.StoreOp, Reduction] = field(default_factory=dict[memref.StoreOp, Reduction])
    obstacle: str | None = None
    """Why the loop cannot become vector operations."""
    ranges: RangeOf = field(default_factory=remembered_ranges)
    """Ranges of the values in the loop, which stay the same until it is replaced."""

    def varies(self, index: Index) -> bool:
        return any(value in self.varying for value in index.values())


def analyse(loop: ForOp) -> Lanes:
    """Decide about `loop`, of static extent."""
    lanes = Lanes(loop, {loop.induction_variable})
    _scan(loop.body.block, lanes)
    return lanes


def _scan(block: Block, lanes: Lanes) -> None:
    for op in block.ops:
        if lanes.obstacle is None:
            _scan_op(op, lanes)


def _scan_op(op: Operation, lanes: Lanes) -> None:
    match op:
        case memref.LoadOp():
            if lanes.varies(place_of(op, lanes)):
                lanes.varying.add(op.res)
        case memref.StoreOp():
            if not lanes.varies(place_of(op, lanes)):
                _scan_shared_store(op, lanes)
        case scf.IfOp():
            for region in op.regions:
                for block in region.blocks:
                    _scan(block, lanes)
            varying = op.cond in lanes.varying
            yielded = [v for r in op.regions for b in r.blocks if b.last_op for v in b.last_op.operands]
            for result in op.results:
                if varying or any(v in lanes.varying for v in yielded):
                    lanes.varying.add(result)
        case ForOp():
            if op.dynamic_extent is not None and lanes.varies(Index.of(op.dynamic_extent)):
                lanes.obstacle = "the extent of an inner loop differs between lanes"
            elif op.kind.data is LoopKind.THREAD_BINDING:
                lanes.obstacle = "an inner loop is bound to threads"
            _scan(op.body.block, lanes)
        case scf.YieldOp() | PrefetchOp():
            pass
        case _:
            _scan_value_op(op, lanes)


def _scan_value_op(op: Operation, lanes: Lanes) -> None:
    if not op.name.startswith(("arith.", "math.")) and not isinstance(op, affine.ApplyOp):
        lanes.obstacle = f"{op.name} has no vector form"
    elif any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results)):
        lanes.obstacle = "it holds vectors already"
    elif any(operand in lanes.varying for operand in op.operands) and _result_varies(op, lanes):
        lanes.varying.update(op.results)


def _result_varies(op: Operation, lanes: Lanes) -> bool:
    """Whether an op on varying values gives varying ones: the lane may cancel out of index arithmetic."""
    return not is_traced(op) or lanes.varies(Index.of(op.results[0]).simplified(lanes.ranges))


def is_traced(op: Operation) -> bool:
    """Whether `Index.of` sees through `op`, so that its result says which values it varies with."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, IndexType):
        return False
    return Index.of(op.results[0]).single_value is not op.results[0]


def place_of(op: memref.LoadOp | memref.StoreOp, lanes: Lanes) -> Index:
    """Where a flat access goes."""
    return Index.of(op.indices[0]).simplified(lanes.ranges)


def _scan_shared_store(op: memref.StoreOp, lanes: Lanes) -> None:
    """All lanes store to one place: a reduction that may be reordered, or one value for all of them."""
    others = [
        use.operation for use in op.memref.uses if use.operation is not op and lanes.loop.is_ancestor(use.operation)
    ]
    reduction = _reduction_of(op, lanes)
    if reduction is not None and others == [reduction.load]:
        lanes.reductions[op] = reduction
    elif op.value in lanes.varying or any(isinstance(other, memref.LoadOp) for other in others):
        lanes.obstacle = "lanes store different values to one place"


def _reduction_of(op: memref.StoreOp, lanes: Lanes) -> Reduction | None:
    if not isinstance(op.value, OpResult):
        return None
    combine = op.value.op
    kind = COMBINERS.get(type(combine))
    if kind is None or combine.parent is not op.parent or not op.value.has_one_use():
        return None
    if isinstance(combine, arith.AddfOp | arith.MulfOp) and REASSOCIATE not in lanes.loop.attributes:
        return None
    left, right = combine.operands
    for accumulator, operand in ((left, right), (right, left)):
        load = accumulator.owner
        if (
            isinstance(load, memref.LoadOp)
            and load.memref is op.memref
            and load.parent is op.parent
            and accumulator.has_one_use()
            and place_of(load, lanes) == place_of(op, lanes)
        ):
            return Reduction(load, combine, operand, kind)
    return None


def needs_an_active_lane(block: Block, lanes: Lanes) -> bool:
    """Whether ops in `block` must not run when no lane does: shared accesses, loops, divisions of shared values."""
    for op in block.walk():
        if isinstance(op, ForOp):
            return True
        if isinstance(op, memref.LoadOp | memref.StoreOp) and not lanes.varies(place_of(op, lanes)):
            return True
        if isinstance(op, DIVISIONS) and not any(operand in lanes.varying for operand in op.operands):
            return True
    return False
