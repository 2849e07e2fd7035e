"""`affine`: index maps, loops with bounds of several maps, integer-set conditions, accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import affine
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block
from xdsl.ir.affine import AffineMap

from weft.dialects.combiners import COMBINATIONS, UPSTREAM_KINDS
from weft.dialects.index_map import over_dims
from weft.dialects.upstream.affine import MaxOp, ParallelOp
from weft.interp.control import assign_affine, branch, loop_with_values
from weft.interp.memory import load_element, store_element
from weft.interp.registry import emit_nothing, emits
from weft.interp.scalar import combined
from weft.interp.vectors import load_lanes, store_lanes
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xdsl.dialects.builtin import AffineMapAttr
    from xdsl.ir import Operation, SSAValue

    from weft.interp.emitter import Emitter

emits(affine.YieldOp)(emit_nothing)


@emits(affine.ApplyOp)
def emit_apply(emitter: Emitter, op: affine.ApplyOp) -> None:
    assign_affine(emitter, op.result, over_dims(op.map.data)[0], list(op.mapOperands), op)


@emits(affine.MinOp, MaxOp)
def emit_choice(emitter: Emitter, op: affine.MinOp | MaxOp) -> None:
    values = _values(emitter, op.map, op.arguments)
    name = emitter.define(op.result)
    emitter.line(f"{name} = {_chosen('max' if isinstance(op, MaxOp) else 'min', values)}", op)


def _values(emitter: Emitter, map_: AffineMapAttr, operands: Sequence[SSAValue]) -> list[str]:
    return [emitter.affine(expr, operands) for expr in over_dims(map_.data)]


def _chosen(function: str, values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{function}({', '.join(values)})"


@emits(affine.ForOp)
def emit_for(emitter: Emitter, op: affine.ForOp) -> None:
    low = _chosen("max", _values(emitter, op.lowerBoundMap, op.lowerBoundOperands))
    high = _chosen("min", _values(emitter, op.upperBoundMap, op.upperBoundOperands))
    loop_with_values(emitter, op, f"range({low}, {high}, {op.step.value.data})", op.inits)


@emits(ParallelOp)
def emit_parallel(emitter: Emitter, op: ParallelOp) -> None:
    """Sequential; reductions start with the neutral element."""
    count = op.lower_map.data.num_dims + op.lower_map.data.num_symbols
    lows = _values(emitter, op.lower_map, op.map_operands[:count])
    highs = _values(emitter, op.upper_map, op.map_operands[count:])
    names: list[str] = []
    combiners = [UPSTREAM_KINDS.get(kind) for kind in op.kinds]
    for result, combiner in zip(op.res, combiners, strict=True):
        if combiner is None:
            raise CompileError.at(op, f"the interpreter has no meaning for reductions {op.kinds} of '{op.name}'")
        name = emitter.define(result)
        emitter.line(f"{name} = {emitter.constant(COMBINATIONS[combiner].neutral(result.type), 'neutral')}", op)
        names.append(name)
    body = op.body.block
    ranges: list[str] = []
    for lower, upper, step in zip(op.lower_groups.get_values(), op.upper_groups.get_values(), op.steps, strict=True):
        low, lows = _chosen("max", lows[:lower]), lows[lower:]
        high, highs = _chosen("min", highs[:upper]), highs[upper:]
        ranges.append(f"range({low}, {high}, {step.value.data})")
    with emitter.nest(body.args, ranges, op, names):
        emitter.region(body)
        last = body.last_op
        values = last.operands if isinstance(last, affine.YieldOp) else ()
        for name, value, combiner in zip(names, values, combiners, strict=True):
            if combiner is not None:
                emitter.line(f"{name} = {combined(emitter, op, combiner, name, emitter.value(value), value.type)}", op)


@emits(affine.IfOp)
def emit_if(emitter: Emitter, op: affine.IfOp) -> None:
    set_ = op.condition.data
    tests: list[str] = []
    for constraint in set_.constraints:
        sides = over_dims(AffineMap(set_.num_dims, set_.num_symbols, (constraint.lhs, constraint.rhs)))
        left, right = (emitter.affine(side, op.args) for side in sides)
        tests.append(f"{left} {constraint.kind.value} {right}")
    results = [emitter.define(result) for result in op.results]
    with emitter.nested(f"if {' and '.join(tests) or 'True'}:", op):
        branch(emitter, op, op.then_region.block, results)
    if op.else_region.blocks:
        with emitter.nested("else:", op):
            branch(emitter, op, op.else_region.block, results)


def _indices(emitter: Emitter, map_: AffineMapAttr, operands: Sequence[SSAValue], op: Operation) -> list[SSAValue]:
    exprs = over_dims(map_.data)
    places = Block(arg_types=[IndexType()] * len(exprs)).args
    for place, expr in zip(places, exprs, strict=True):
        assign_affine(emitter, place, expr, list(operands), op)
    return list(places)


def _access(
    rule: Callable[[Emitter, Operation, SSAValue, Sequence[SSAValue]], None],
) -> Callable[[Emitter, affine.LoadOp | affine.StoreOp | affine.VectorLoadOp | affine.VectorStoreOp], None]:
    return lambda emitter, op: rule(emitter, op, op.memref, _indices(emitter, op.map, op.indices, op))


emits(affine.LoadOp)(_access(load_element))
emits(affine.StoreOp)(_access(store_element))
emits(affine.VectorLoadOp)(_access(load_lanes))
emits(affine.VectorStoreOp)(_access(store_lanes))
