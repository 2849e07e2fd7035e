"""A function over buffers, built from a graph function: extents, temporaries and constants first, then the calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    TupleType,
    UnitAttr,
    UnknownLoc,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from weft.dialects.graph import CallTirOp, ConstantOp, callee_of, dense_value
from weft.dialects.graph_shapes import Expression, KnownExtent, ShapeError, lone_name, shape_of
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import SPATIAL, TIR_FUNCTION
from weft.passes.graph.call_shapes import check_call_shapes
from weft.passes.graph.extents import ExtentValues
from weft.passes.graph.functions import fresh_name
from weft.support.errors import CompileError, InternalError

Tensor = TensorType[Attribute]


def buffer_type(tensor: Tensor) -> MemRefType[Attribute]:
    """The buffer that holds a tensor."""
    return MemRefType(tensor.element_type, tensor.get_shape())


def _result_name(hint: str | None, taken: set[str]) -> str:
    """A parameter name that is not taken. It ends in no `_<number>`, which xDSL cuts off name hints."""
    base = hint or "out"
    candidates = chain((base, f"{base}_out"), (f"{base}_out{number}" for number in count(2)))
    name = next(name for name in candidates if name not in taken)
    taken.add(name)
    return name


class HostFunction:
    """The new function takes the parameters of `function` as buffers, then a buffer for each of `returned`.

    Call `constant`, `call` and `keep` in the order of the old ops, then `finish`.
    """

    def __init__(self, module: ModuleOp, function: FuncOp, returned: Sequence[SSAValue], symbols: set[str]) -> None:
        self._module = module
        self._function = function
        self._name = function.sym_name.data
        self._symbols = symbols
        self._block = Block()
        self._head: list[Operation] = []
        self._calls: list[Operation] = []
        self._extents = ExtentValues(self._head.append, function)
        self._buffers: dict[SSAValue, SSAValue] = {}
        """Tensors and the buffers they lie in."""
        self._targets: dict[SSAValue, SSAValue] = {}
        """Tensors still to be computed and the result parameters that they go to."""
        self._globals: dict[Attribute, str] = {}
        self._add_parameters()
        self._copies = self._add_results(returned)

    # Parameters and results

    def _add_parameters(self) -> None:
        tensors: list[tuple[SSAValue, Tensor]] = []
        for old in self._function.args:
            if isinstance(old.type, TupleType):
                raise CompileError.at(
                    self._function, f"@{self._name}: tuple parameters cannot be lowered, got {old.type}"
                )
            type_ = buffer_type(old.type) if isinstance(old.type, TensorType) else old.type
            new = self._add_argument(type_, old.name_hint)
            if isinstance(old.type, TensorType):
                self._buffers[old] = new
                tensors.append((new, cast("Tensor", old.type)))
            else:
                old.replace_all_uses_with(new)
        for buffer, type_ in tensors:
            for axis, extent in enumerate(self._shape(type_)):
                if lone_name(extent) is not None:
                    self._read_extent(buffer, axis, extent)
        for buffer, type_ in tensors:
            self._tie(buffer, type_)

    def _add_argument(self, type_: Attribute, hint: str | None) -> SSAValue:
        argument = self._block.insert_arg(type_, len(self._block.args))
        argument.name_hint = hint
        return argument

    def _add_results(self, returned: Sequence[SSAValue]) -> list[tuple[SSAValue, SSAValue]]:
        """A parameter for each returned tensor. Gives the pairs (tensor, parameter) that must be copied at the end:
        what no call computes, and the second and further returns of one tensor."""
        names = {a.name_hint for a in self._block.args if a.name_hint is not None}
        copies: list[tuple[SSAValue, SSAValue]] = []
        for value in returned:
            if not isinstance(value.type, TensorType):
                raise CompileError.at(self._function, f"@{self._name} must return tensors, got {value.type}")
            buffer = self._add_argument(buffer_type(value.type), _result_name(value.name_hint, names))
            self._tie(buffer, value.type)
            if isinstance(value.owner, CallTirOp) and value not in self._targets:
                self._targets[value] = buffer
            else:
                copies.append((value, buffer))
        return copies

    def _shape(self, type_: Tensor) -> Sequence[KnownExtent]:
        """The extents of a tensor. Raises `CompileError` when one is unknown."""
        try:
            shape = shape_of(type_)
        except ShapeError as error:
            raise CompileError.at(self._function, str(error)) from None
        if None in shape:
            raise CompileError.at(
                self._function,
                f"@{self._name}: {type_} has an unknown extent; name the dynamic extents with #graph.dims<...>",
            )
        return cast("Sequence[KnownExtent]", shape)

    def _read_extent(self, buffer: SSAValue, axis: int, extent: KnownExtent) -> None:
        if isinstance(extent, Expression) and not self._extents.knows(extent):
            position = arith.ConstantOp(IntegerAttr(axis, IndexType()))
            position.result.name_hint = f"c{axis}"
            dim = memref.DimOp(buffer, position.result)
            self._head += [position, dim]
            self._extents.know(extent, dim.result)

    def _dynamic(self, type_: Tensor) -> list[SSAValue]:
        """The values of the dynamic extents of a tensor."""
        values = [self._extents.value(extent) for extent in self._shape(type_)]
        return [value for value in values if isinstance(value, SSAValue)]

    def _tie(self, buffer: SSAValue, type_: Tensor) -> None:
        """State the extents of a parameter, unless all of them are read from it."""
        extents = self._dynamic(type_)
        if not all(isinstance(e.owner, memref.DimOp) and e.owner.source is buffer for e in extents) or (
            len(set(extents)) < len(extents)
        ):
            self._head.append(AssumeShapeOp(buffer, extents))

    # The body

    def constant(self, op: ConstantOp) -> None:
        """A constant becomes data of the module; equal constants of the function share it."""
        try:
            value = dense_value(op)
        except VerifyException as error:
            raise CompileError.at(op, str(error)) from None
        type_ = buffer_type(op.result.type)
        name = self._globals.get(value)
        if name is None:
            name = fresh_name(f"{self._name}_{op.result.name_hint or 'constant'}", self._symbols)
            self._globals[value] = name
            data = memref.GlobalOp.get(StringAttr(name), type_, value, constant=UnitAttr())
            data.location = op.location
            self._module.body.block.insert_op_before(data, self._function)
        get = memref.GetGlobalOp(name, type_)
        get.location = op.location
        get.memref.name_hint = op.result.name_hint
        self._head.append(get)
        self._buffers[op.result] = get.memref

    def call(self, op: CallTirOp) -> None:
        """Call the function with the operands and a buffer for each result: a result parameter or a temporary."""
        callee = callee_of(op)
        wanted = callee.function_type.inputs.data
        if callee.function_type.outputs or not all(isinstance(t, MemRefType) for t in wanted):
            raise CompileError.at(
                op, f"graph.call_tir: @{callee.sym_name.data} works on tensors, lower it first (pass lower-te-to-tir)"
            )
        check_call_shapes(op, callee)
        for result in op.results:
            target = self._targets.pop(result, None)
            self._buffers[result] = self._allocate(op, result) if target is None else target
        buffers = [self._buffer(op, value) for value in (*op.operands, *op.results)]
        arguments = [self._cast(op, buffer, type_) for buffer, type_ in zip(buffers, wanted, strict=True)]
        call = CallOp(op.callee, arguments, ())
        call.location = op.location
        self._calls.append(call)

    def _allocate(self, op: Operation, tensor: SSAValue) -> SSAValue:
        type_ = cast("Tensor", tensor.type)
        allocation = memref.AllocOp(self._dynamic(type_), (), buffer_type(type_))
        allocation.location = op.location
        allocation.memref.name_hint = tensor.name_hint
        self._head.append(allocation)
        return allocation.memref

    def _buffer(self, op: Operation, tensor: SSAValue) -> SSAValue:
        buffer = self._buffers.get(tensor)
        if buffer is None:
            raise InternalError(f"{op.name} uses %{tensor.name_hint}, which has no buffer")
        return buffer

    def _cast(self, op: Operation, buffer: SSAValue, type_: Attribute) -> SSAValue:
        """The buffer as a callee takes it: static extents forgotten where it takes any."""
        if buffer.type == type_:
            return buffer
        cast_ = memref.CastOp.get(buffer, cast("MemRefType[Attribute]", type_))
        cast_.location = op.location
        self._calls.append(cast_)
        return cast_.dest

    def keep(self, op: Operation) -> None:
        """An op on scalars stays as it is."""
        op.detach()
        self._calls.append(op)

    def finish(self) -> None:
        """Put the new function in the place of the old one."""
        for value, target in self._copies:
            self._calls.append(self._copy(self._buffer(self._function, value), target, cast("Tensor", value.type)))
        self._calls.append(ReturnOp())
        for op in self._head:
            if isinstance(op.location, UnknownLoc):
                op.location = self._function.location
        self._block.add_ops([*self._head, *self._calls])
        new = FuncOp(
            self._name,
            FunctionType.from_lists([a.type for a in self._block.args], []),
            Region(self._block),
            self._function.sym_visibility,
        )
        new.attributes = {**self._function.attributes, TIR_FUNCTION: UnitAttr()}  # it may hold calls alone
        new.location = self._function.location
        module = self._module.body.block
        module.insert_op_before(new, self._function)
        module.erase_op(self._function)

    def _copy(self, source: SSAValue, target: SSAValue, type_: Tensor) -> Operation:
        """Loops that copy one buffer to another."""
        extents = [self._extents.value(extent) for extent in self._shape(type_)]
        body = Block(arg_types=[IndexType()] * len(extents))
        load = memref.LoadOp.get(source, body.args)
        body.add_ops([load, memref.StoreOp.get(load.res, target, body.args)])
        loops = [ForOp.around(extent, name_hint=f"i{axis}") for axis, extent in enumerate(extents)]
        block = BlockOp(
            f"copy_{target.name_hint}",
            [SPATIAL] * len(extents),
            extents,
            [AffineExpr.dimension(axis) for axis in range(len(extents))],
            [loop.induction_variable for loop in loops],
            Region(body),
        )
        nest: Operation = block
        for loop in reversed(loops):
            loop.body.block.add_op(nest)
            nest = loop
        for axis, argument in enumerate(body.args):
            argument.name_hint = f"v{axis}"
        return nest
