"""Bufferization of operations that create tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final, cast

from xdsl.dialects import arith, memref, scf, tensor
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects.index_map import mixed_extents
from weft.dialects.upstream.views import static_numbers
from weft.passes.convert.function_bufferization import FunctionBufferization, Rule
from weft.passes.convert.tensor_places import is_inside, is_tensor, shape_of_tensor, terminator_of


def _allocated(bufferization: FunctionBufferization, op: Operation, sizes: Sequence[SSAValue]) -> SSAValue:
    result = op.results[0]
    for size in sizes:
        bufferization.require("sge", size, 0, f"{op.name} of a negative extent")
    bufferization.buffers[result] = bufferization.allocate(
        result, lambda: mixed_extents(shape_of_tensor(result), sizes)
    )
    return bufferization.buffers[result]


def _empty(bufferization: FunctionBufferization, op: Operation) -> None:
    _allocated(bufferization, op, op.operands)
    bufferization.done(op)


def _alloc_tensor(bufferization: FunctionBufferization, op: Operation) -> None:
    result = op.results[0]
    copied = next(filter(is_tensor, op.operands), None)
    if copied is None:
        _allocated(bufferization, op, op.operands)
    else:
        source = bufferization.buffers[copied]
        target = bufferization.allocate(result, lambda: bufferization.extents(source))
        bufferization.buffers[result] = target
        bufferization.copy(source, target)
    bufferization.done(op)


def _splat(bufferization: FunctionBufferization, op: Operation) -> None:
    bufferization.fill(op.operands[0], _allocated(bufferization, op, op.operands[1:]))
    bufferization.done(op)


def _from_elements(bufferization: FunctionBufferization, op: Operation) -> None:
    buffer = _allocated(bufferization, op, ())
    shape = shape_of_tensor(op.results[0])
    numbers = [bufferization.index(number) for number in range(max(shape, default=0))]
    for element, place in zip(op.operands, product(*map(range, shape)), strict=True):
        bufferization.insert(memref.StoreOp.get(element, buffer, [numbers[at] for at in place]))
    bufferization.done(op)


def _generate(bufferization: FunctionBufferization, op: Operation) -> None:
    buffer = _allocated(bufferization, op, op.operands)
    bufferization.regions(op)
    _by_region(bufferization, op, buffer)
    bufferization.done(op)


def _by_region(bufferization: FunctionBufferization, op: Operation, buffer: SSAValue) -> None:
    block = op.regions[0].detach_block(0)
    _with_indices(block)
    block.insert_arg(_element(buffer), 0)
    last = terminator_of(block)
    block.insert_op_before(linalg.YieldOp(*last.operands), last)
    last.detach()
    last.erase()
    bufferization.pointwise([], buffer, block)


def _with_indices(block: Block) -> None:
    """Let a block of `linalg.generic` compute its indices, which were arguments."""
    for argument in reversed(block.args):
        properties = {"dim": IntegerAttr(argument.index, 64)}
        index = linalg.IndexOp.create(result_types=[IndexType()], properties=properties)
        block.insert_op_before(index, cast("Operation", block.first_op))
        argument.replace_all_uses_with(index.results[0])
        block.erase_arg(argument)


def _element(buffer: SSAValue) -> Attribute:
    return cast("MemRefType[Attribute]", buffer.type).element_type


def _pad(bufferization: FunctionBufferization, op: Operation) -> None:
    source, result = bufferization.buffers[op.operands[0]], op.results[0]
    amounts = iter(op.operands[1:])
    low, high = (mixed_extents(static_numbers(op, f"static_{side}"), amounts) for side in ("low", "high"))
    sizes = bufferization.extents(source)
    for amount in (*low, *high):
        bufferization.require("sge", amount, 0, f"{op.name} by a negative number of elements")

    def extents() -> list[int | SSAValue]:
        return [bufferization.sum(*terms) for terms in zip(low, sizes, high, strict=True)]

    buffer = bufferization.buffers[result] = bufferization.allocate(result, extents)
    block = op.regions[0].block
    value = terminator_of(block).operands[0]
    if isinstance(value.owner, arith.ConstantOp) and is_inside(value, op):
        constant = value.owner
        constant.detach()
        bufferization.insert(constant)
    if is_inside(value, op):
        bufferization.regions(op)
        _keep_interior(bufferization, op, source, low, sizes)
        _by_region(bufferization, op, buffer)
    else:
        bufferization.fill(value, buffer)
        bufferization.copy(source, bufferization.subview(buffer, low, sizes, [1] * len(sizes), range(len(sizes))))
    bufferization.done(op)


def _keep_interior(
    bufferization: FunctionBufferization,
    op: Operation,
    source: SSAValue,
    low: Sequence[int | SSAValue],
    sizes: Sequence[int | SSAValue],
) -> None:
    """The region of `tensor.pad` yields the source in the interior, its former value around."""
    starts = [bufferization.as_value(number) for number in low]
    ends = [bufferization.as_value(bufferization.sum(*pair)) for pair in zip(low, sizes, strict=True)]
    old = op.regions[0].detach_block(0)
    last = terminator_of(old)
    old.insert_op_before(scf.YieldOp(*last.operands), last)
    last.detach()
    last.erase()
    block = Block(arg_types=old.arg_types)
    ops: list[Operation] = []
    for argument, new in zip(old.args, block.args, strict=True):
        argument.replace_all_uses_with(new)
    for argument in reversed(old.args):
        old.erase_arg(argument)
    for place, start, end in zip(block.args, starts, ends, strict=True):
        ops += [arith.CmpiOp(place, start, "sge"), arith.CmpiOp(place, end, "slt")]
    inside = ops[0].results[0]
    for other in ops[1:]:
        ops.append(arith.AndIOp(inside, other.results[0]))
        inside = ops[-1].results[0]
    places = [arith.SubiOp(place, start) for place, start in zip(block.args, starts, strict=True)]
    load = memref.LoadOp.get(source, [place.result for place in places])
    kept = Block([*places, load, scf.YieldOp(load.res)])
    chosen = scf.IfOp(inside, [_element(source)], Region(kept), Region(old))
    block.add_ops([*ops, chosen, tensor.YieldOp(chosen.results[0])])
    op.regions[0].add_block(block)


def _concat(bufferization: FunctionBufferization, op: Operation) -> None:
    axis = cast("IntegerAttr[IntegerType]", op.properties["dim"]).value.data
    sources = [bufferization.buffers[value] for value in op.operands]
    sizes = [bufferization.extents(source) for source in sources]
    result = op.results[0]

    def extents() -> list[int | SSAValue]:
        along = bufferization.sum(*(size[axis] for size in sizes))
        return [along if d == axis else extent for d, extent in enumerate(sizes[0])]

    buffer = bufferization.buffers[result] = bufferization.allocate(result, extents)
    before: list[int | SSAValue] = []
    for source, size in zip(sources, sizes, strict=True):
        offset = bufferization.sum(*before)
        offsets = [offset if d == axis else 0 for d in range(len(size))]
        bufferization.copy(source, bufferization.subview(buffer, offsets, size, [1] * len(size), range(len(size))))
        before = [offset, size[axis]]
    bufferization.done(op)


def _gather(bufferization: FunctionBufferization, op: Operation) -> None:
    source, indices = (bufferization.buffers[value] for value in op.operands)
    result = op.results[0]
    gathered = cast("DenseArrayBase[IntegerType]", op.properties["gather_dims"]).get_values()
    batch = len(shape_of_tensor(op.operands[1])) - 1
    rank = len(shape_of_tensor(op.operands[0]))
    is_reduced = len(shape_of_tensor(result)) == batch + rank - len(gathered)
    kept = [d for d in range(rank) if not is_reduced or d not in gathered]

    def extents() -> list[int | SSAValue]:
        outer, inner = bufferization.extents(indices)[:batch], bufferization.extents(source)
        return [*outer, *(1 if d in gathered else inner[d] for d in kept)]

    buffer = bufferization.buffers[result] = bufferization.allocate(result, extents)
    block = Block(arg_types=[IndexType()] * (batch + len(kept)))
    places: list[SSAValue] = [block.args[batch + kept.index(d)] if d in kept else block.args[0] for d in range(rank)]
    ops: list[Operation] = []
    for number, d in enumerate(gathered):
        at = arith.ConstantOp(IntegerAttr(number, IndexType()))
        load = memref.LoadOp.get(indices, [*block.args[:batch], at.result])
        ops += [at, load]
        if not isinstance(load.res.type, IndexType):
            ops.append(arith.IndexCastOp(load.res, IndexType()))
        places[d] = ops[-1].results[0]
    element = memref.LoadOp.get(source, places)
    block.add_ops([*ops, element, linalg.YieldOp(element.res)])
    _with_indices(block)
    block.insert_arg(_element(buffer), 0)
    bufferization.pointwise([], buffer, block)
    bufferization.done(op)


CREATION: Final[Mapping[str, Rule]] = {
    "bufferization.alloc_tensor": _alloc_tensor,
    "tensor.concat": _concat,
    "tensor.empty": _empty,
    "tensor.from_elements": _from_elements,
    "tensor.gather": _gather,
    "tensor.generate": _generate,
    "tensor.pad": _pad,
    "tensor.splat": _splat,
}
"""Maps an operation that creates a tensor to its rewrite."""
