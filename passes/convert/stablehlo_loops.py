"""Expansion of `chlo.scan` to `stablehlo.while`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, IntegerAttr, TensorType, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.chlo import ScanOp
from weft.dialects.stablehlo import (
    OPS,
    CompareOp,
    ComparisonDirectionAttr,
    ConstantOp,
    ReturnOp,
    WhileOp,
    int_array,
)
from weft.support.errors import CompileError

_KINDS: Final = {op.name: op for op in OPS}
_NUMBER: Final = TensorType(i32, [])


def expand_scans(function: FuncOp) -> None:
    """Replace each `chlo.scan` by a `stablehlo.while` over the slices, in place.

    ```mlir
    %y, %c = chlo.scan(%x) inits (%z) dimension=0 { ... } : (tensor<5x2xf32>, tensor<2xf32>) -> (...)
    // becomes
    %i, %y, %c = stablehlo.while(%j = %zero, %ys = %zeros, %carry = %z) : ...
    cond { ... %j < 5 ... } do { %slice = dynamic_slice %x, %j ...; ...; dynamic_update_slice %ys, %s, %j ... }
    ```

    Raises `CompileError` for dynamic extents.
    """
    for op in [op for op in function.walk(reverse=True) if isinstance(op, ScanOp)]:
        _expand(op)


def _made(name: str, operands: Sequence[SSAValue], type_: Attribute, **properties: Attribute) -> Operation:
    return _KINDS[name].create(operands=operands, result_types=[type_], properties=properties)


def _filled(type_: TensorType[Any], number: int) -> ConstantOp:
    return ConstantOp.create(
        result_types=[type_], properties={"value": DenseIntOrFPElementsAttr.from_list(type_, [number])}
    )


def _expand(op: ScanOp) -> None:
    axis = op.dimension.value.data
    types = [cast("TensorType[Attribute]", value.type) for value in (*op.operands, *op.results)]
    if any(DYNAMIC_INDEX in type_.get_shape() for type_ in types):
        raise CompileError.at(op, f"{op.name}: dynamic extents are not supported")
    lengths = {cast("TensorType[Attribute]", x.type).get_shape()[axis] for x in (*op.inputs, *op.outputs)}
    if len(lengths) != 1:
        raise CompileError.at(op, f"{op.name}: dimension {axis} has one extent in inputs and outputs, got {lengths}")
    (length,) = lengths
    is_reverse = op.is_reverse is not None and bool(op.is_reverse.value.data)
    zero, one, count = (_filled(_NUMBER, number) for number in (0, 1, length))
    starts = [_filled(cast("TensorType[Any]", value.type), 0) for value in op.outputs]
    outside = [zero, one, count, *starts]
    carried = [zero.output, *(start.output for start in starts), *op.inits]
    carried_types = [value.type for value in carried]

    test = Block(arg_types=carried_types)
    compare = CompareOp.create(
        operands=[test.args[0], count.output],
        result_types=[TensorType(IntegerAttr.from_bool(True).type, [])],
        properties={"comparison_direction": ComparisonDirectionAttr("LT")},
    )
    test.add_ops([compare, ReturnOp.create(operands=compare.results)])

    body = Block(arg_types=carried_types)
    counter, place = body.args[0], body.args[0]
    if is_reverse:
        last = _made("stablehlo.subtract", [count.output, counter], _NUMBER)
        back = _made("stablehlo.subtract", [last.results[0], one.output], _NUMBER)
        body.add_ops([last, back])
        place = back.results[0]

    def indices(rank: int) -> list[SSAValue]:
        return [place if dim == axis else zero.output for dim in range(rank)]

    values: dict[SSAValue, SSAValue] = {}
    arguments = op.body.block.args
    for source, argument in zip(op.inputs, arguments[: len(op.inputs)], strict=True):
        type_ = cast("TensorType[Attribute]", source.type)
        sizes = [1 if dim == axis else extent for dim, extent in enumerate(type_.get_shape())]
        cut = _made(
            "stablehlo.dynamic_slice",
            [source, *indices(len(sizes))],
            TensorType(type_.element_type, sizes),
            slice_sizes=int_array(sizes),
        )
        row = _made("stablehlo.reshape", cut.results, argument.type)
        body.add_ops([cut, row])
        values[argument] = row.results[0]
    outputs = len(op.outputs)
    values |= zip(arguments[len(op.inputs) :], body.args[1 + outputs :], strict=True)
    for inner in op.body.block.ops:
        if inner is not op.body.block.last_op:
            body.add_op(inner.clone(values))
    found = [values.get(value, value) for value in cast("Operation", op.body.block.last_op).operands]
    following = _made("stablehlo.add", [counter, one.output], _NUMBER)
    body.add_op(following)
    written: list[SSAValue] = []
    for position, (value, stack) in enumerate(zip(found, body.args[1 : 1 + outputs], strict=False)):
        type_ = op.outputs[position].type
        sizes = [1 if dim == axis else extent for dim, extent in enumerate(type_.get_shape())]
        row = _made("stablehlo.reshape", [value], TensorType(type_.element_type, sizes))
        update = _made("stablehlo.dynamic_update_slice", [stack, row.results[0], *indices(len(sizes))], type_)
        body.add_ops([row, update])
        written.append(update.results[0])
    body.add_op(ReturnOp.create(operands=[following.results[0], *written, *found[outputs:]]))
    loop = WhileOp.create(operands=carried, result_types=carried_types, regions=[Region(test), Region(body)])
    for new in (*outside, loop):
        new.location = op.location
    Rewriter.replace_op(op, [*outside, loop], list(loop.results[1:]))
