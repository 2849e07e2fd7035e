"""Operations of matchers that examine structured ops: their dimensions, operands and bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, ShapedType, StringAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from weft.dialects.effects import op_name
from weft.dialects.tir import InitOp
from weft.dialects.tir_kinds import IterKind
from weft.schedule.transform.interpreter import (
    Associated,
    Interpreter,
    Param,
    Silenceable,
    handles,
    integer_of,
    mode_of,
)
from weft.schedule.transform.payload import InitialOp, StructuredOp
from weft.schedule.transform.structured import extent_of
from weft.support.errors import CompileError

_PROPAGATE: Final = 1


@handles("match.structured")
def match_structured(interpreter: Interpreter, op: Operation) -> list[Sequence[Associated]]:
    target = _structured(interpreter, op)
    mode = mode_of(op) if "failure_propagation_mode" in op.properties else _PROPAGATE
    try:
        return interpreter.run_block(op.regions[0].block, [[target]], _PROPAGATE)
    except Silenceable:
        if mode == _PROPAGATE:
            raise
        return [[] for _ in op.results]


@handles("match.structured.rank")
def match_rank(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [_integers([len(_dimensions(interpreter, _structured(interpreter, op)))])]


@handles("match.structured.num_inputs")
def match_num_inputs(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [_integers([_operand_counts(interpreter, op)[0]])]


@handles("match.structured.num_inits")
def match_num_inits(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    return [_integers([_operand_counts(interpreter, op)[1]])]


@handles("match.structured.dim")
def match_dim(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    target = _structured(interpreter, op)
    dimensions = _dimensions(interpreter, target)
    chosen = _chosen(interpreter, op, target, len(dimensions))
    for kind, is_reduction in (("parallel", False), ("reduction", True)):
        wrong = next((d for d in chosen if dimensions[d][1] != is_reduction), None)
        if kind in op.properties and wrong is not None:
            raise interpreter.failure(op, f"expects dimension {wrong} to be {kind}", target)
    return [_integers([dimensions[d][0] for d in chosen]) for _ in op.results]


@handles("match.structured.body")
def match_body(interpreter: Interpreter, op: Operation) -> None:
    target = _structured(interpreter, op)
    stores: list[memref.StoreOp] = []
    if isinstance(target, StructuredOp):
        inside = (one for one in interpreter.payload.block(target).body.block.ops if not isinstance(one, InitOp))
        stores = [one for each in inside for one in each.walk() if isinstance(one, memref.StoreOp)]
    if "passthrough" in op.properties:
        if not all(isinstance(one.value.owner, memref.LoadOp) for one in stores):
            raise interpreter.failure(op, "does not match the body: it is not passthrough", target)
    elif "reduction_position" in op.properties:
        position = integer_of(op, "reduction_position")
        if not 0 <= position < len(stores) or _combined(stores[position]) is None:
            raise interpreter.failure(op, f"does not match the body: output {position} is no reduction", target)
    elif isinstance(names := op.properties.get("contraction"), ArrayAttr):
        wanted = [cast("StringAttr", name).data for name in names]
        if len(wanted) != 2:
            raise CompileError.at(op, f"{op_name(op)}: a contraction is two names of ops, got {len(wanted)}")
        if len(stores) != 1 or not _is_contraction(stores[0], *wanted):
            raise interpreter.failure(op, "does not match the body: it is not a contraction", target)
    else:
        raise CompileError.at(op, f"{op_name(op)} has one of passthrough, reduction_position and contraction")


def _structured(interpreter: Interpreter, op: Operation) -> StructuredOp | InitialOp:
    target = interpreter.single(op)
    if not isinstance(target, StructuredOp | InitialOp):
        raise interpreter.failure(op, "expected a structured op", target)
    return target


def _integers(values: Sequence[int]) -> list[Associated]:
    return [Param(IntegerAttr(value, i64)) for value in values]


def _dimensions(interpreter: Interpreter, target: StructuredOp | InitialOp) -> list[tuple[int, bool]]:
    if isinstance(target, InitialOp):
        shaped = [] if target.origin is None else [*target.origin.result_types, *target.origin.operand_types]
        return [(extent, False) for extent in next(t for t in shaped if isinstance(t, ShapedType)).get_shape()]
    kinds = interpreter.payload.block(target).iter_kinds
    extents = [1 if loop is None else extent_of(interpreter, loop) for loop in target.loops]
    return [
        (DYNAMIC_INDEX if extent is None else extent, kind.data is IterKind.REDUCE)
        for extent, kind in zip(extents, kinds, strict=True)
    ]


def _chosen(interpreter: Interpreter, op: Operation, target: StructuredOp | InitialOp, rank: int) -> list[int]:
    """The dimensions that an op lists; negative ones count from the end."""
    listed = list(cast("DenseArrayBase[Any]", op.properties["raw_dim_list"]).get_values())
    wrong = next((d for d in listed if not -rank <= d < rank), None)
    if wrong is not None:
        raise interpreter.failure(op, f"position overflow {wrong} (updated from {wrong}) for maximum {rank}", target)
    dims = [d % rank for d in listed]
    if "is_all" in op.properties:
        return list(range(rank))
    return [d for d in range(rank) if d not in dims] if "is_inverted" in op.properties else dims


def _operand_counts(interpreter: Interpreter, op: Operation) -> tuple[int, int]:
    target = _structured(interpreter, op)
    sizes = target.attributes.get("operandSegmentSizes")
    if not isinstance(sizes, DenseArrayBase):
        raise interpreter.failure(op, "its operands are not divided into inputs and outputs", target)
    inputs, outputs = cast("DenseArrayBase[Any]", sizes).get_values()
    return inputs, outputs


def _combined(store: memref.StoreOp) -> tuple[Operation, SSAValue] | None:
    combiner = store.value.owner
    if not isinstance(combiner, Operation) or len(combiner.operands) != 2:
        return None
    for old, other in (combiner.operands, (combiner.operands[1], combiner.operands[0])):
        if isinstance(old.owner, memref.LoadOp) and old.owner.memref is store.memref:
            return combiner, other
    return None


def _is_contraction(store: memref.StoreOp, elementwise: str, reduction: str) -> bool:
    found = _combined(store)
    if found is None or op_name(found[0]) != reduction:
        return False
    product = _without_casts(found[1])
    return (
        isinstance(product, Operation)
        and op_name(product) == elementwise
        and len(product.operands) == 2
        and all(isinstance(_without_casts(operand), memref.LoadOp) for operand in product.operands)
    )


def _without_casts(value: SSAValue) -> Operation | Block:
    owner = value.owner
    while isinstance(owner, Operation) and len(owner.operands) == 1 and not isinstance(owner, memref.LoadOp):
        owner = owner.operands[0].owner
    return owner
