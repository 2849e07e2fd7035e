"""Helper functions of graph loops: copies of buffers and of their rows, and the number of a step."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects.graph_control import STEP
from weft.dialects.tir import AssumeShapeOp
from weft.dialects.tir_kinds import SPATIAL
from weft.passes.schedule.nest_builders import block_in_loops, new_block
from weft.passes.te.bufferize import buffer_type as buffer_of_tensor
from weft.passes.tir.tir_pass import buffer_type

Buffer: TypeAlias = MemRefType[Attribute]


def copy_function(name: str, source: Buffer, target: Buffer, at: Operation) -> FuncOp:
    """Returns a function that copies a buffer. If one has an additional dimension, `step` is the number of its row.

    ```mlir
    func.func private @name(%step: memref<i64>, %source: memref<?x4xf32>, %target: memref<4xf32>)
    func.func private @name(%source: memref<4xf32>, %target: memref<4xf32>)
    ```
    """
    has_rows = source.get_num_dims() != target.get_num_dims()
    body = Block(arg_types=[*[buffer_of_tensor(STEP)] * has_rows, source, target])
    for argument, hint in zip(body.args, ["step"] * has_rows + ["source", "target"], strict=True):
        argument.name_hint = hint
    read, written = body.args[-2:]
    is_from_row = source.get_num_dims() > target.get_num_dims()
    whole, part = (read, written) if is_from_row else (written, read)
    extents = _extents(body, part)
    rows = _extents(body, whole, 1) if has_rows else []
    stated = [extent for extent in (*rows, *extents) if isinstance(extent, SSAValue)]
    if any(isinstance(extent, SSAValue) for extent in extents):
        body.add_op(AssumeShapeOp(whole, stated))
    numbers = range(len(extents))
    hints, loops = [f"v{number}" for number in numbers], [f"i{number}" for number in numbers]
    block, nest = block_in_loops(name, [SPATIAL] * len(extents), extents, hints, at, loops)
    row: list[SSAValue] = []
    if has_rows:
        number = memref.LoadOp.get(body.args[0], [])
        index = arith.IndexCastOp(number.res, IndexType())
        block.body.block.add_ops([number, index])
        row = [index.result]
    load = memref.LoadOp.get(read, [*(row if is_from_row else ()), *block.iter_vars])
    to = [*(() if is_from_row else row), *block.iter_vars]
    block.body.block.add_ops([load, memref.StoreOp.get(load.res, written, to)])
    body.add_op(nest)
    return _function(name, body, at)


def number_function(name: str, at: Operation) -> FuncOp:
    """Returns `@name(%t: index, %step: memref<i64>)`, which writes the number of a step."""
    block = Block(arg_types=[IndexType(), buffer_of_tensor(STEP)])
    step, cell = block.args
    step.name_hint, cell.name_hint = "t", "step"
    inner = new_block(name, [], [], [], [], at)
    number = arith.IndexCastOp(step, i64)
    inner.body.block.add_ops([number, memref.StoreOp.get(number.result, cell, [])])
    block.add_op(inner)
    return _function(name, block, at)


def _extents(block: Block, buffer: SSAValue, count: int | None = None) -> list[int | SSAValue]:
    found: list[int | SSAValue] = []
    for axis, extent in enumerate(buffer_type(buffer).get_shape()[:count]):
        if extent == DYNAMIC_INDEX:
            constant = arith.ConstantOp.from_int_and_width(axis, IndexType())
            dim = memref.DimOp(buffer, constant.result)
            block.add_ops([constant, dim])
            found.append(dim.result)
        else:
            found.append(extent)
    return found


def _function(name: str, block: Block, at: Operation) -> FuncOp:
    block.add_op(ReturnOp())
    function = FuncOp(name, (list(block.arg_types), []), Region(block), StringAttr("private"))
    for op in function.walk():
        op.location = at.location
    return function
