"""`lower-te-to-tir`: lower tensor expressions to block loops over buffers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IndexType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import AllocOp, DimOp, LoadOp, StoreOp
from xdsl.dialects.tensor import DimOp as TensorDimOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.graph import CallTirOp
from weft.dialects.integer_arith import constant_integer
from weft.dialects.levels import allowed_at
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.te import LOCATING, PARAMETER_ORDER, AssumeShapeOp, Combiner, ComputeOp, ReduceOp, YieldOp
from weft.dialects.te_extern import ExternOp
from weft.dialects.tir import AssumeShapeOp as TirAssumeShapeOp
from weft.dialects.tir import InitOp
from weft.dialects.tir_assume import AssumeOp
from weft.dialects.tir_kinds import COMMUTATIVE, PARAMETER_ACCESS, REDUCE, SPATIAL
from weft.dialects.traversal import captured_values
from weft.passes.index_builders import erase_dead, insert_at_start
from weft.passes.schedule.nest_builders import block_in_loops
from weft.passes.te.bufferize import Bufferization, buffer_type
from weft.passes.te.combiners import ConstantPool, combine, identity
from weft.passes.te.te_split_reductions import reduction_of, split_reductions
from weft.support.errors import CompileError, InternalError, did_you_mean
from weft.support.names import new_name


def te_functions(module: ModuleOp, named: Collection[str] = ()) -> list[FuncOp]:
    """Functions of tensor expressions, and those that only copy tensors and are `named` or called by
    `graph.call_tir`.
    """
    known = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)}
    for name in named:
        if name not in known:
            raise CompileError(f"lower-te-to-tir: no function @{name} to lower{did_you_mean(name, known)}")
    claimed = {op.callee.string_value() for op in module.walk() if isinstance(op, CallTirOp)} | set(named)
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and not op.is_declaration
        and (
            any(inner.name.startswith("te.") for inner in op.body.walk())
            or (op.sym_name.data in claimed and _is_copy(op))
        )
    ]


def _is_copy(function: FuncOp) -> bool:
    types = (*function.function_type.inputs, *function.function_type.outputs)
    return any(isinstance(type, TensorType) for type in types) and all(
        allowed_at("te", op.name) for op in function.body.walk()
    )


def lower_te_function(function: FuncOp) -> None:
    """Give a function loops and buffers, in place. Raises CompileError for ops other than tensor expressions, calls of
    functions over tensors, results that are not tensors, and reduce axes whose extent depends on the element.

    Results that are not returned are `memref.alloc`s; `tir.assume_shape` states extents.
    """
    _check(function)
    constants = ConstantPool(function)
    _hoist_dims(function)
    _erase_unused(function)
    split_reductions(function, constants)
    _FunctionLowering(function, constants).run()


_MAKES_TENSORS: Final = (ComputeOp, ConstantOp, ExternOp)


def _check(function: FuncOp) -> None:
    name = function.sym_name.data
    if len(function.body.blocks) != 1:
        raise CompileError.at(function, f"@{name}: a function of tensor expressions is one block")
    for op in function.body.walk():
        if not allowed_at("te", op.name):
            raise CompileError.at(op, f"@{name}: '{op.name}' does not belong in a function of tensor expressions")
        if isinstance(op, CallOp) and any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results)):
            what = f"calls @{op.callee.string_value()} on tensors: a function of a graph does, by graph.call_tir"
            raise CompileError.at(op, f"@{name} {what}")
        if not isinstance(op, _MAKES_TENSORS) and any(isinstance(result.type, TensorType) for result in op.results):
            raise CompileError.at(op, f"@{name}: '{op.name}' of tensors does not belong among tensor expressions")
        if isinstance(op, ConstantOp) and isinstance(op.value, DenseResourceAttr):
            raise CompileError.at(op, f"@{name}: the elements of a constant are written as dense<...>, got {op.value}")
    returned = function.body.block.last_op
    if not isinstance(returned, ReturnOp):
        raise CompileError.at(function, f"@{name} does not end in func.return")
    for value in returned.arguments:
        if not isinstance(value.type, TensorType):
            raise CompileError.at(returned, f"@{name}: results are tensors, got {value.type}")


def _hoist_dims(function: FuncOp) -> None:
    entry = function.body.block
    for dim in [op for op in function.body.walk() if isinstance(op, TensorDimOp)]:
        if not isinstance(dim.index.owner, ConstantOp):
            raise CompileError.at(dim, "tensor.dim needs a constant dimension")
        around = entry.find_ancestor_op_in_block(dim)
        if around is not None and around is not dim:
            dim.detach()
            entry.insert_op_before(dim, around)


def _erase_unused(function: FuncOp) -> None:
    for op in reversed(list(function.body.block.ops)):
        if isinstance(op, ComputeOp | ExternOp | ExtractOp) and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)


class _FunctionLowering(Bufferization):
    def __init__(self, function: FuncOp, constants: ConstantPool) -> None:
        self._constants = constants
        self._labels: set[str] = set()
        self._late: set[SSAValue] = set()
        """Scalars that depend on computations."""
        returned = cast(ReturnOp, function.body.block.last_op).arguments
        super().__init__(function, returned, _parameter_names(function, returned), _parameter_order(function, returned))

    def run(self) -> None:
        is_unproved = any(map(_may_leave_unwritten, self.old.ops))
        for op in list(self.old.ops):
            self._lower(op)
        self._constants.place(self.block)
        self.finish()
        self.function.attributes.pop(PARAMETER_ORDER, None)
        if is_unproved:
            self._state_accesses()

    def _state_accesses(self) -> None:
        """State that results are only written, which analyses cannot always prove."""
        written = {parameter for _, parameter in self.results}
        accesses = (AccessMode.WRITE if argument in written else AccessMode.READ for argument in self.function.args)
        self.function.attributes[PARAMETER_ACCESS] = ArrayAttr(list(map(AccessAttr, accesses)))

    def _place(self, op: Operation, like: Operation, *, waits: bool = False) -> None:
        """Before all loops, or after the current ones if the op depends on them."""
        op.location = like.location
        waits = waits or any(value in self._late for value in (*op.operands, *captured_values(op)))
        if waits:
            self._late.update(op.results)
        self.insert(op, self.end if waits else self.head)

    def _lower(self, op: Operation) -> None:
        match op:
            case ComputeOp():
                self._lower_compute(op)
            case ExternOp():
                self._lower_extern(op)
            case AssumeShapeOp():
                self._place(TirAssumeShapeOp(self.memory[op.buffer], op.values), op)
            case TensorDimOp():
                self._lower_dim(op)
            case AssumeOp():
                self.insert(op, self.assumptions)
            case ConstantOp(value=DenseIntOrFPElementsAttr() as elements) if isinstance(op.result.type, TensorType):
                self.constant(elements, op.result, op)
            case ReturnOp():
                self._copy_results(op)
            case _:
                self._lower_scalar(op)

    def _lower_scalar(self, op: Operation) -> None:
        op.detach()
        holder = Block([op])
        reads = [inner for inner in op.walk() if isinstance(inner, ExtractOp)]
        waits = any(isinstance(read.tensor.owner, ComputeOp | ExternOp) for read in reads)
        read_memory(reads, self.memory)
        for lowered in list(holder.ops):
            self._place(lowered, lowered, waits=waits)

    def _lower_dim(self, op: TensorDimOp) -> None:
        producer = op.source.owner
        if isinstance(producer, ComputeOp | ExternOp):
            op.result.replace_all_uses_with(self._extent_value(producer, op))
            return
        dim = DimOp(self.memory[op.source], op.index)
        dim.result.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(dim.result)
        self._place(dim, op)

    def _extent_value(self, compute: ComputeOp | ExternOp, op: TensorDimOp) -> SSAValue:
        dimension = constant_integer(op.index)
        extents = compute.extents_of(cast("OpResult", op.source))
        if dimension is None or not 0 <= dimension < len(extents):
            raise CompileError.at(op, f"tensor.dim needs a constant dimension of {op.source.type}")
        extent = extents[dimension]
        if isinstance(extent, SSAValue):
            return extent
        return self._constants.get(extent, op.result.type)

    def _lower_compute(self, compute: ComputeOp) -> None:
        outputs = [self._output(compute, result) for result in compute.results]
        reduce = reduction_of(compute)
        if reduce is not None:
            yielded = set(compute.yielded.values)
            for result in reduce.results:
                if result not in yielded:
                    type_ = MemRefType(result.type, compute.shape)
                    outputs.append(self._allocate(compute, compute.extent_operands, type_, result.name_hint))
        label = new_name(compute.label, self._labels)
        self.insert(compute_nest(compute, label, outputs, self.memory, self._constants), self.end)

    def _lower_extern(self, extern: ExternOp) -> None:
        outputs = [self._output(extern, result) for result in extern.results]
        label = new_name(extern.label, self._labels)
        extents = list(extern.domain)
        hints = [index.name_hint or f"i{index.index}" for index in extern.indices]
        body = extern.body.block
        extern.body.detach_block(body)
        read_memory([op for op in body.walk() if isinstance(op, ExtractOp)], self.memory)
        kinds = [SPATIAL] * len(extents)
        block, nest = block_in_loops(label, kinds, extents, [f"v{hint}" for hint in hints], extern, hints)
        Rewriter.inline_block(body, InsertPoint.at_end(block.body.block), [*block.iter_vars, *outputs])
        self.insert(nest, self.end)

    def _output(self, compute: ComputeOp | ExternOp, result: OpResult) -> SSAValue:
        buffer = self.result_parameter(result)
        extents = [extent for extent in compute.extents_of(result) if isinstance(extent, SSAValue)]
        if buffer is None:
            buffer = self._allocate(compute, extents, buffer_type(result.type), result.name_hint or compute.label)
        elif extents:
            self._place(TirAssumeShapeOp(buffer, extents), compute)
        self.memory[result] = buffer
        return buffer

    def _allocate(
        self, compute: Operation, extents: Sequence[SSAValue], type: MemRefType[Attribute], hint: str | None
    ) -> SSAValue:
        alloc = AllocOp(list(extents), [], type)
        alloc.memref.name_hint = hint if SSAValue.is_valid_name(hint) else None
        self._place(alloc, compute)
        return alloc.memref

    def _copy_results(self, returned: ReturnOp) -> None:
        for value, parameter in self.results:
            if self.memory[value] is parameter:
                continue
            extents = self._extents_of(value, returned)
            dynamic = [extent for extent in extents if isinstance(extent, SSAValue)]
            if dynamic:
                self._place(TirAssumeShapeOp(parameter, dynamic), returned)
            label = new_name(f"{parameter.name_hint or 'out'}_copy", self._labels)
            self.copy(self.memory[value], parameter, extents, label, "vi", returned)

    def _extents_of(self, tensor: SSAValue, like: Operation) -> list[int | SSAValue]:
        if isinstance(tensor.owner, ComputeOp | ExternOp):
            return list(tensor.owner.extents_of(cast("OpResult", tensor)))
        extents: list[int | SSAValue] = []
        for dimension, extent in enumerate(cast("TensorType[Attribute]", tensor.type).get_shape()):
            if extent != DYNAMIC_INDEX:
                extents.append(extent)
                continue
            dim = DimOp(self.memory[tensor], self._constants.get(dimension, IndexType()))
            self._place(dim, like)
            extents.append(dim.result)
        return extents


def _may_leave_unwritten(op: Operation) -> bool:
    """Statements, and possibly empty reductions, whose init is assumed to run: analyses may not prove that all elements
    are written.
    """
    if not isinstance(op, ComputeOp):
        return isinstance(op, ExternOp)
    reduce = reduction_of(op)
    return reduce is not None and any(isinstance(extent, SSAValue) for extent in reduce.extents)


def _parameter_names(function: FuncOp, returned: Sequence[SSAValue]) -> list[str]:
    inputs = len(function.args)
    taken: dict[str, None] = {}
    for position, source in enumerate((*function.args, *returned)):
        default = f"arg{position}" if position < inputs else f"out{position - inputs}"
        hint = source.name_hint or default
        while hint in taken:  # name hints exclude a number after an underscore
            hint, default = default, f"{default}x"
        taken[hint] = None
    return list(taken)


def _parameter_order(function: FuncOp, returned: Sequence[SSAValue]) -> list[int]:
    count = len(function.args) + len(returned)
    attribute = function.attributes.get(PARAMETER_ORDER)
    if attribute is None:
        return list(range(count))
    order = list(attribute.get_values()) if isinstance(attribute, DenseArrayBase) else []  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportUnknownArgumentType]
    if sorted(cast("list[int]", order)) != list(range(count)):
        raise CompileError.at(
            function,
            f"{PARAMETER_ORDER} must list each of the {count} inputs and results once, as array<i64: 0, 1, ...>, "
            f"got {attribute}",
        )
    return cast("list[int]", order)


@dataclass(frozen=True)
class LowerTeToTirPass(ModulePass):
    """Lower the functions of tensor expressions to block loops.

    Each `tensor` argument becomes a `memref`, each result a trailing `memref` parameter (or at the position in
    `te.parameter_order`) named after the returned value. Every `te.compute` becomes a loop nest around a block of its
    name, and its results buffers. Reductions in larger expressions are split off (`te-split-reductions`); unused
    computations are dropped. Functions that only copy tensors are lowered if `graph.call_tir` calls them, or `func`
    names them. Raises `CompileError` for other operations.

    Requires: functions of tensor expressions, called by lowered functions only (CompileError), since they take buffers
    afterwards.

    Leaves: functions of block loops over buffers; results are trailing parameters.
    """

    name = "lower-te-to-tir"

    func: tuple[str, ...] = ()
    """Functions to lower although they only copy tensors."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = te_functions(op, self.func)
        names = {function.sym_name.data for function in functions}
        for call in [inner for holder in op.ops if holder not in functions for inner in holder.walk()]:
            if isinstance(call, CallOp) and call.callee.string_value() in names:
                raise CompileError.at(
                    call,
                    f"@{call.callee.string_value()} is a function of tensor expressions: lowered, it takes buffers, "
                    "and this call gives it tensors",
                )
        for function in functions:
            lower_te_function(function)


def compute_nest(
    compute: ComputeOp,
    label: str,
    outputs: Sequence[SSAValue],
    memory: Mapping[SSAValue, SSAValue],
    constants: ConstantPool,
) -> Operation:
    """Loops around a block `label` that compute into `outputs`; takes the region of `compute`, of a form that
    `te-split-reductions` leaves.

    `memory` maps read tensors to buffers. A reduction over no values stores the identity, without loops; dynamic axes
    need at least one value, since `tir.init` runs with the first.

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
    erase_dead(compute.body.block)
    reduce = reduction_of(compute)
    combiner = None if reduce is None else reduce.kind
    empty = reduce is not None and 0 in reduce.extents
    hints = [index.name_hint or f"i{index.index}" for index in compute.indices]
    extents, kinds = list(compute.extents), [SPATIAL] * len(hints)
    if reduce is not None and not empty:
        hints += [axis.name_hint or f"k{axis.index}" for axis in reduce.axes]
        extents += reduce.extents
        kinds += [REDUCE] * len(reduce.axes)
    body, location = compute.body.block, compute.yielded.location
    compute.body.detach_block(body)
    spatial = list(body.args)
    read_memory([op for op in body.walk() if isinstance(op, ExtractOp)], memory)
    writer = _ExternWriter(body, outputs, spatial, constants, location)
    if reduce is None:
        writer.store_elements()
    elif empty:
        writer.store_identity(reduce)
    else:
        writer.reduce(reduce)
    block, nest = block_in_loops(label, kinds, extents, [f"v{hint}" for hint in hints], compute, hints)
    Rewriter.inline_block(body, InsertPoint.at_end(block.body.block), block.iter_vars)
    if combiner in LOCATING or combiner is Combiner.CUSTOM:
        block.attributes[COMMUTATIVE] = UnitAttr()
    return nest


def read_memory(reads: Sequence[ExtractOp], memory: Mapping[SSAValue, SSAValue]) -> None:
    for read in reads:
        buffer = memory.get(read.tensor)
        if buffer is None:
            raise CompileError.at(read, "reads a tensor that is neither a parameter nor a result of te.compute")
        load = LoadOp.create(operands=[buffer, *read.indices], result_types=[read.result.type])
        load.location = read.location
        Rewriter.replace_op(read, load)


def _take_yielded(body: Block) -> list[SSAValue]:
    last = body.last_op
    if not isinstance(last, YieldOp):
        raise InternalError("regions of tensor expressions end in te.yield")
    values = list(last.values)
    Rewriter.erase_op(last)
    return values


@dataclass
class _ExternWriter:
    body: Block
    outputs: Sequence[SSAValue]
    indices: Sequence[SSAValue]
    constants: ConstantPool
    location: LocationAttr

    def __post_init__(self) -> None:
        self.yielded = _take_yielded(self.body)

    def _append(self, op: Operation, block: Block | None = None) -> SSAValue:
        op.location = self.location
        (block or self.body).add_op(op)
        return op.results[0]

    def _store(self, value: SSAValue, buffer: SSAValue, block: Block) -> None:
        op = StoreOp.create(operands=[value, buffer, *self.indices])
        op.location = self.location
        block.add_op(op)

    def store_elements(self) -> None:
        for value, buffer in zip(self.yielded, self.outputs, strict=True):
            self._store(value, buffer, self.body)

    def store_identity(self, reduce: ReduceOp) -> None:
        self._store_identity(reduce, self.body)
        Rewriter.erase_op(reduce)

    def _store_identity(self, reduce: ReduceOp, block: Block) -> None:
        values = identity(reduce, self.constants.get, lambda op: self._append(op, block))
        for value, buffer in zip(values, self._buffers_of(reduce), strict=True):
            self._store(value, buffer, block)

    def reduce(self, reduce: ReduceOp) -> None:
        """Make an init and an update; `outputs` are buffers of yielded values, then of other results."""
        self.location = reduce.location
        buffers = self._buffers_of(reduce)
        init = Block()
        self._store_identity(reduce, init)
        inner = reduce.body.block
        values = _take_yielded(inner)
        axes = [self.body.insert_arg(IndexType(), len(self.body.args)) for _ in inner.args]
        Rewriter.inline_block(inner, InsertPoint.at_end(self.body), axes)
        old = [self._load(buffer) for buffer in buffers]
        for value, buffer in zip(combine(reduce, old, values, self._append), buffers, strict=True):
            self._store(value, buffer, self.body)
        Rewriter.erase_op(reduce)
        first = InitOp(Region(init))
        first.location = self.location
        insert_at_start(self.body, first)

    def _load(self, buffer: SSAValue) -> SSAValue:
        element = cast("MemRefType[Attribute]", buffer.type).element_type
        load = LoadOp.create(operands=[buffer, *self.indices], result_types=[element])
        return self._append(load)

    def _buffers_of(self, reduce: ReduceOp) -> list[SSAValue]:
        spare = iter(self.outputs[len(self.yielded) :])
        positions = {value: position for position, value in enumerate(self.yielded)}
        return [self.outputs[positions[result]] if result in positions else next(spare) for result in reduce.results]
