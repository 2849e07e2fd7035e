"""One `te.compute` -> a loop nest around one block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IndexType, MemRefType, UnitAttr
from xdsl.dialects.memref import LoadOp, StoreOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.traits import is_side_effect_free

from weft.dialects.te import Combiner, ComputeOp, Extent, ReduceOp, YieldOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import COMMUTATIVE, REDUCE, SPATIAL, IterKindAttr
from weft.passes.te.combiners import combine, identity
from weft.passes.te.constants import ConstantPool
from weft.passes.te.te_split_reductions import reduction_of
from weft.support.errors import CompileError, InternalError


@dataclass
class Axis:
    """An iterator of the block, and the loop that it is bound to."""

    hint: str
    extent: Extent
    kind: IterKindAttr


def compute_nest(
    compute: ComputeOp,
    label: str,
    outputs: Sequence[SSAValue],
    memory: Mapping[SSAValue, SSAValue],
    constants: ConstantPool,
) -> Operation:
    """The loops that compute `compute` into the buffers `outputs`, around a block called `label`; takes its region.

    `memory` has the buffer of each tensor that it reads. The computation has one of the forms that
    `te-split-reductions` leaves. A reduction over no values at all stores the identity, without loops over its axes;
    axes of dynamic extent must have at least one value, for `tir.init` runs with the first.

    ```mlir
    %Y = te.compute "Y" (%i) : tensor<4xf32> {
      %s = te.reduce sum (%k in 8) : f32 { ... te.yield %p : f32 }
      te.yield %s : f32
    }
    // becomes
    tir.for %i in 4 {
      tir.for %k in 8 {
        tir.block "Y" iters(%vi: spatial<4>, %vk: reduce<8>) = [%i, %k] {
          tir.init { memref.store %zero, %Y[%vi] : memref<4xf32> }
          ...
          %y = memref.load %Y[%vi] : memref<4xf32>
          %sum = arith.addf %y, %p : f32
          memref.store %sum, %Y[%vi] : memref<4xf32>
    ```
    """
    _erase_dead(compute.body.block)
    reduce = reduction_of(compute)
    combiner = None if reduce is None else reduce.kind
    empty = reduce is not None and 0 in reduce.extents
    axes = [
        Axis(index.name_hint or f"i{index.index}", extent, SPATIAL)
        for index, extent in zip(compute.indices, compute.extents, strict=True)
    ]
    if reduce is not None and not empty:
        axes += [
            Axis(axis.name_hint or f"k{axis.index}", extent, REDUCE)
            for axis, extent in zip(reduce.axes, reduce.extents, strict=True)
        ]
    body = _take(compute.body)
    spatial = list(body.args)
    read_memory([op for op in body.walk() if isinstance(op, ExtractOp)], memory)
    writer = _Writer(body, outputs, spatial, constants)
    if reduce is None:
        writer.store_elements()
    elif empty:
        writer.store_identity(reduce)
    else:
        writer.reduce(reduce)
    nest, block = _around(body, label, axes, compute)
    if combiner in (Combiner.ARGMAX, Combiner.ARGMIN, Combiner.CUSTOM):
        block.attributes[COMMUTATIVE] = UnitAttr()
    return nest


def _take(region: Region) -> Block:
    """The block of a region, without it."""
    block = region.block
    region.detach_block(block)
    return block


def _erase_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if op.results and all(r.first_use is None for r in op.results) and is_side_effect_free(op):
            op.detach()
            op.erase()


def read_memory(reads: Sequence[ExtractOp], memory: Mapping[SSAValue, SSAValue]) -> None:
    """Reads of tensors become loads of their buffers."""
    for read in reads:
        block = read.parent_block()
        if block is None:
            raise InternalError("a read without a block")
        buffer = memory.get(read.tensor)
        if buffer is None:
            raise CompileError.at(read, "reads a tensor that is neither a parameter nor a result of te.compute")
        load = LoadOp.create(operands=[buffer, *read.indices], result_types=[read.result.type])
        load.location = read.location
        load.res.name_hint = read.result.name_hint
        block.insert_op_before(load, read)
        read.result.replace_all_uses_with(load.res)
        read.detach()
        read.erase()


class _Writer:
    """Turns what an element region yields into stores."""

    def __init__(
        self, body: Block, outputs: Sequence[SSAValue], indices: Sequence[SSAValue], constants: ConstantPool
    ) -> None:
        self._body = body
        self._outputs = outputs
        self._indices = indices
        self._constants = constants
        last = body.last_op
        if not isinstance(last, YieldOp):
            raise InternalError("an element region ends in te.yield")
        self._location = last.location
        self._yielded = list(last.values)
        last.detach()
        last.erase()

    def _append(self, op: Operation, block: Block | None = None) -> SSAValue:
        op.location = self._location
        (block or self._body).add_op(op)
        return op.results[0]

    def _store(self, value: SSAValue, buffer: SSAValue, block: Block) -> None:
        op = StoreOp.create(operands=[value, buffer, *self._indices])
        op.location = self._location
        block.add_op(op)

    def store_elements(self) -> None:
        for value, buffer in zip(self._yielded, self._outputs, strict=True):
            self._store(value, buffer, self._body)

    def store_identity(self, reduce: ReduceOp) -> None:
        """What a reduction over nothing is."""
        self._store_identity(reduce, self._body)
        reduce.detach()
        reduce.erase()

    def _store_identity(self, reduce: ReduceOp, block: Block) -> None:
        values = identity(reduce, self._constants.get, lambda op: self._append(op, block))
        for value, buffer in zip(values, self._buffers_of(reduce), strict=True):
            self._store(value, buffer, block)

    def reduce(self, reduce: ReduceOp) -> None:
        """An init, and an update of the buffers by the values that the reduction's body gives.

        `outputs` has the buffers of what is yielded, then those of the reduction's other results.
        """
        self._location = reduce.location
        buffers = self._buffers_of(reduce)
        init = Block()
        self._store_identity(reduce, init)
        inner = _take(reduce.body)
        terminator = inner.last_op
        if not isinstance(terminator, YieldOp):
            raise InternalError("a reduction's body ends in te.yield")
        values = list(terminator.values)
        terminator.detach()
        terminator.erase()
        for axis in list(inner.args):
            own = self._body.insert_arg(IndexType(), len(self._body.args))
            axis.replace_all_uses_with(own)
        reduce.detach()
        for op in list(inner.ops):
            op.detach()
            self._body.add_op(op)
        old = [self._load(buffer) for buffer in buffers]
        for value, buffer in zip(combine(reduce, old, values, self._append), buffers, strict=True):
            self._store(value, buffer, self._body)
        reduce.erase()
        first = InitOp(Region(init))
        first.location = self._location
        if self._body.first_op is None:
            self._body.add_op(first)
        else:
            self._body.insert_op_before(first, self._body.first_op)

    def _load(self, buffer: SSAValue) -> SSAValue:
        element = cast("MemRefType[Attribute]", buffer.type).element_type
        load = LoadOp.create(operands=[buffer, *self._indices], result_types=[element])
        return self._append(load)

    def _buffers_of(self, reduce: ReduceOp) -> list[SSAValue]:
        """The buffer of each result of the reduction."""
        spare = iter(self._outputs[len(self._yielded) :])
        positions = {value: position for position, value in enumerate(self._yielded)}
        return [self._outputs[positions[result]] if result in positions else next(spare) for result in reduce.results]


def _around(body: Block, label: str, axes: Sequence[Axis], like: ComputeOp) -> tuple[Operation, BlockOp]:
    """A block over `axes` with this body, in loops of the same axes; the nest and the block."""
    for argument, axis in zip(body.args, axes, strict=True):
        argument.name_hint = f"v{axis.hint}"
    loops: list[ForOp] = []
    for axis in axes:
        loop = ForOp.around(axis.extent, (), axis.hint)
        loop.location = like.location
        loops.append(loop)
    block = BlockOp(
        label,
        [axis.kind for axis in axes],
        [axis.extent for axis in axes],
        [AffineExpr.dimension(d) for d in range(len(axes))],
        [loop.induction_variable for loop in loops],
        Region(body),
    )
    block.location = like.location
    nest: Operation = block
    for loop in reversed(loops):
        loop.body.block.add_op(nest)
        nest = loop
    return nest, block
