"""Matchers of structured ops: dimensions, operands, bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ShapedType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.transform import AffineMapType, TransformValueHandleType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

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
from weft.schedule.transform.payload import Origin, PayloadBlock, PayloadInit
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
    if isinstance(target, PayloadBlock):
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


@handles("match.structured.input")
def match_input(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    inputs, _ = _operand_counts(interpreter, op)
    return _operands(interpreter, op, range(inputs))


@handles("match.structured.init")
def match_init(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    inputs, inits = _operand_counts(interpreter, op)
    return _operands(interpreter, op, range(inputs, inputs + inits))


def _operands(interpreter: Interpreter, op: Operation, numbers: range) -> list[list[Associated]]:
    """Check operands' indexing maps; returns maps, producers or the operands."""
    target = _structured(interpreter, op)
    origin = cast("Origin", target.origin)  # `_operand_counts` reads its attributes
    chosen = [numbers[at] for at in _chosen(interpreter, op, target, len(numbers), "raw_position_list")]
    maps = origin.maps or ()
    for number in chosen:
        is_projected = maps[number].is_projected_permutation()
        for kind, holds in (
            ("permutation", is_projected and len(maps[number].results) == maps[number].num_dims),
            ("projected_permutation", is_projected),
        ):
            if kind in op.properties and not holds:
                raise interpreter.failure(op, f"the indexing map of operand {number} is no {kind}", target)
    if not op.results:
        return []
    match op.results[0].type:
        case AffineMapType():
            return [[Param(AffineMapAttr(maps[number])) for number in chosen]]
        case TransformValueHandleType():
            return [[Param(origin.operand_types[number]) for number in chosen]]
        case _:
            producers = [interpreter.payload.producer(target, number) for number in chosen]
            if None in producers:
                number = chosen[producers.index(None)]
                raise interpreter.failure(op, f"could not find a producer for operand number: {number}", target)
            return [[producer for producer in producers if producer is not None]]


@handles("match.structured.result")
def match_result(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    target, position = _structured(interpreter, op), integer_of(op, "position")
    types = () if target.origin is None else target.origin.result_types
    if not -len(types) <= position < len(types):
        raise interpreter.failure(op, f"it has {len(types)} results, there is no result {position}", target)
    if isinstance(op.results[0].type, TransformValueHandleType):
        return [[Param(types[position])]]
    users = interpreter.payload.consumers(target)
    if "single" in op.properties and len(users) != 1:
        raise interpreter.failure(op, f"the result has {len(users)} users, one is expected", target)
    if not users:
        raise interpreter.failure(op, "no users of the result", target)
    return [[users[0]]]


@handles("match.structured.elemental_bitwidth")
def match_bitwidth(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    found = interpreter.associated(op.operands[0], op)
    types = [one.value for one in found if isinstance(one, Param)]
    if not isinstance(op.operands[0].type, TransformValueHandleType) or len(types) != 1:
        raise CompileError.at(op, f"{op_name(op)} needs a handle to one value")
    element = types[0].element_type if isinstance(types[0], TensorType | MemRefType) else types[0]
    if not isinstance(element, IntegerType | AnyFloat):
        raise interpreter.failure(op, f"unsupported element type: {element}")
    return [_integers([element.bitwidth])]


@handles("match.structured.classify_contraction_dims")
def classify_contraction(interpreter: Interpreter, op: Operation) -> list[list[Associated]]:
    """Dimensions of batches (in operands and result), rows and columns (one operand and result), and sums (operands
    only)."""
    target = _structured(interpreter, op)
    maps = () if target.origin is None else target.origin.maps or ()
    if len(maps) != 3 or not all(map_.is_projected_permutation() for map_ in maps):
        raise interpreter.failure(op, "contraction: expected three operands with projected permutations", target)
    left, right, result = ({cast("AffineDimExpr", e).position for e in map_.results} for map_ in maps)
    found = [left & right & result, (left & result) - right, (right & result) - left, (left & right) - result]
    if not found[3]:
        raise interpreter.failure(op, "contraction: no dimension is summed", target)
    return [_integers(sorted(dims)) for dims in found]


def _structured(interpreter: Interpreter, op: Operation) -> PayloadBlock | PayloadInit:
    target = interpreter.single(op)
    if not isinstance(target, PayloadBlock | PayloadInit):
        raise interpreter.failure(op, "expected a structured op", target)
    return target


def _integers(values: Sequence[int]) -> list[Associated]:
    return [Param(IntegerAttr(value, i64)) for value in values]


def _dimensions(interpreter: Interpreter, target: PayloadBlock | PayloadInit) -> list[tuple[int, bool]]:
    if isinstance(target, PayloadInit):
        shaped = [] if target.origin is None else [*target.origin.result_types, *target.origin.operand_types]
        return [(extent, False) for extent in next(t for t in shaped if isinstance(t, ShapedType)).get_shape()]
    kinds = interpreter.payload.block(target).iter_kinds
    extents = [1 if loop is None else extent_of(interpreter, loop) for loop in target.loops]
    return [
        (DYNAMIC_INDEX if extent is None else extent, kind.data is IterKind.REDUCE)
        for extent, kind in zip(extents, kinds, strict=True)
    ]


def _chosen(
    interpreter: Interpreter, op: Operation, target: PayloadBlock | PayloadInit, rank: int, name: str = "raw_dim_list"
) -> list[int]:
    """Listed dimensions or operands; negative ones count from the end."""
    listed = list(cast("DenseArrayBase[Any]", op.properties[name]).get_values())
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
