"""Lowering of `affine` to `scf`, `memref` and `vector` in functions that are not raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import affine, arith, memref, scf, vector
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineMap
from xdsl.rewriter import Rewriter

from weft.analysis.block_patterns import neutral_value
from weft.analysis.index import Index
from weft.dialects.combiners import UPSTREAM_KINDS
from weft.dialects.index_map import over_dims
from weft.dialects.traversal import operations_in
from weft.dialects.upstream.affine import MaxOp, ParallelOp
from weft.passes.index_builders import (
    arith_op,
    bool_constant,
    compare_before,
    conjunction_before,
    constant_before,
    index_before,
    number_attribute,
    result_before,
)

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp


def lower_affine(function: FuncOp) -> None:
    """Replace ops of `affine` without a `problem_of_affine`; `affine.apply` stays.

    ```mlir
    affine.for %i = 0 to min(%n, 8) { %v = affine.vector_load %A[%i * 4] : memref<32xf32>, vector<4xf32> }
    // becomes
    %least = arith.minsi %n, %c8 : index
    scf.for %i = %c0 to %least step %c1 {
      %at = affine.apply affine_map<(d0) -> (d0 * 4)> (%i)
      %v = vector.load %A[%at] : memref<32xf32>, vector<4xf32> }
    ```
    """
    for op in operations_in(function, inner_first=True):
        rewrite = _REWRITES.get(type(op))
        if rewrite is not None:
            rewrite(op)


def problem_of_affine(op: Operation) -> str | None:
    """The reason why an op of `affine` has no form in `scf`."""
    if not isinstance(op, ParallelOp):
        return None
    for kind, result in zip(op.kinds, op.res, strict=True):
        if kind not in UPSTREAM_KINDS:
            return f"results of its reduction '{kind}' depend on the order of iterations"
        if neutral_value(UPSTREAM_KINDS[kind], result.type) is None:
            return f"its reduction '{kind}' has no neutral element of type {result.type}"
    return None


def _values(map_: AffineMap, operands: Sequence[SSAValue], op: Operation) -> list[SSAValue]:
    dims = [Index.of(value) for value in operands]
    return [index_before(Index.of_expr(expr, dims), op) for expr in over_dims(map_)]


def _chosen(values: Sequence[SSAValue], kind: type[Operation], op: Operation) -> SSAValue:
    return reduce(lambda left, right: result_before(arith_op(kind, left, right), op), values)


def _replace(op: Operation, new: Operation) -> None:
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
    new.location = op.location
    Rewriter.replace_op(op, new)


def _yield(block: Block) -> None:
    last = block.last_op
    if isinstance(last, affine.YieldOp):
        Rewriter.replace_op(last, scf.YieldOp(*last.operands))
    elif last is None:
        block.add_op(scf.YieldOp())


def _choice(op: Operation) -> None:
    choice = cast("affine.MinOp | MaxOp", op)
    kind = arith.MaxSIOp if isinstance(op, MaxOp) else arith.MinSIOp
    value = _chosen(_values(choice.map.data, choice.arguments, op), kind, op)
    value.name_hint = value.name_hint or choice.result.name_hint
    Rewriter.replace_op(op, [], [value])


def _access(op: Operation) -> None:
    access = cast("affine.LoadOp | affine.StoreOp | affine.VectorLoadOp | affine.VectorStoreOp", op)
    indices = _values(access.map.data, access.indices, op)
    match access:
        case affine.LoadOp():
            new: Operation = memref.LoadOp.get(access.memref, indices)
        case affine.StoreOp():
            new = memref.StoreOp.get(access.value, access.memref, indices)
        case affine.VectorLoadOp():
            new = vector.LoadOp(access.memref, indices, access.result.type)
        case affine.VectorStoreOp():
            new = vector.StoreOp(access.value, access.memref, indices)
    _replace(op, new)


def _for(op: Operation) -> None:
    loop = cast("affine.ForOp", op)
    lower = _chosen(_values(loop.lowerBoundMap.data, loop.lowerBoundOperands, op), arith.MaxSIOp, op)
    upper = _chosen(_values(loop.upperBoundMap.data, loop.upperBoundOperands, op), arith.MinSIOp, op)
    step = constant_before(loop.step.value.data, op)
    body = loop.detach_region(loop.body)
    _yield(body.block)
    _replace(op, scf.ForOp(lower, upper, step, list(loop.inits), body))


def _parallel(op: Operation) -> None:
    loop = cast("ParallelOp", op)
    count = loop.lower_map.data.num_dims + loop.lower_map.data.num_symbols
    lower = _values(loop.lower_map.data, loop.map_operands[:count], op)
    upper = _values(loop.upper_map.data, loop.map_operands[count:], op)
    lows: list[SSAValue] = []
    highs: list[SSAValue] = []
    for low, high in zip(loop.lower_groups.get_values(), loop.upper_groups.get_values(), strict=True):
        lows.append(_chosen(lower[:low], arith.MaxSIOp, op))
        highs.append(_chosen(upper[:high], arith.MinSIOp, op))
        lower, upper = lower[low:], upper[high:]
    steps = [constant_before(step.value.data, op) for step in loop.steps]
    starts: list[SSAValue] = []
    regions: list[Region] = []
    for kind, result in zip(loop.kinds, loop.res, strict=True):
        combiner, type_ = UPSTREAM_KINDS[kind], result.type
        neutral = neutral_value(combiner, type_)
        starts.append(result_before(arith.ConstantOp(number_attribute(cast("float", neutral), type_)), op))
        block = Block(arg_types=[type_, type_])
        combined = arith_op(combiner, *block.args)
        block.add_ops([combined, scf.ReduceReturnOp(combined.results[0])])
        regions.append(Region(block))
    body = loop.detach_region(loop.body)
    last = body.block.last_op
    values = list(last.operands) if isinstance(last, affine.YieldOp) else []
    if isinstance(last, affine.YieldOp):
        Rewriter.erase_op(last)
    body.block.add_op(scf.ReduceOp(values, regions))
    _replace(op, scf.ParallelOp(lows, highs, steps, body, starts))


_PREDICATES: Final = {AffineConstraintKind.ge: "sge", AffineConstraintKind.le: "sle", AffineConstraintKind.eq: "eq"}


def _if(op: Operation) -> None:
    condition = cast("affine.IfOp", op)
    set_ = condition.condition.data
    tests: list[SSAValue] = []
    for row in set_.constraints:
        left, right = _values(AffineMap(set_.num_dims, set_.num_symbols, (row.lhs, row.rhs)), condition.args, op)
        tests.append(compare_before(_PREDICATES[row.kind], Index.of(left), Index.of(right), op))
    holds = conjunction_before(tests, op) if tests else result_before(bool_constant(True), op)
    regions = [op.detach_region(region) for region in list(op.regions)]
    for region in regions:
        for block in region.blocks:
            _yield(block)
    then_region, else_region = regions
    _replace(op, scf.IfOp(holds, list(op.result_types), then_region, else_region))


_REWRITES: Final[Mapping[type[Operation], Callable[[Operation], None]]] = {
    **dict.fromkeys((affine.MinOp, MaxOp), _choice),
    **dict.fromkeys((affine.LoadOp, affine.StoreOp, affine.VectorLoadOp, affine.VectorStoreOp), _access),
    affine.ForOp: _for,
    affine.IfOp: _if,
    ParallelOp: _parallel,
}
LOWERED: Final = frozenset((*_REWRITES, affine.YieldOp))
"""The operations that `lower_affine` replaces."""
