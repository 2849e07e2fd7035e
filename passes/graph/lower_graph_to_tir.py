"""`lower-graph-to-tir`: a graph function becomes a function over buffers that calls tensor functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, count
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.arith import FloorDivSIOp, MuliOp, RemSIOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    TupleType,
    UnitAttr,
)
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from weft.analysis.index import Index
from weft.dialects.graph import (
    CallDpsOp,
    CallTirOp,
    ConstantOp,
    DataflowOp,
    MakeTupleOp,
    TupleGetOp,
    callee_of,
    dense_value,
)
from weft.dialects.graph_shapes import (
    Expression,
    ExtentDivision,
    KnownExtent,
    lone_name,
    shape_of,
    show_extent,
)
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.tir import AssumeShapeOp
from weft.dialects.tir_kinds import PARAMETER_ACCESS, TIR_FUNCTION
from weft.passes.graph.functions import graph_functions, shape_at
from weft.passes.index_ops import constant_before, erase_dead, index_before, insert_before, result_before
from weft.passes.te.bufferize import Bufferization, buffer_type
from weft.passes.tir.flat_signature import Quantity, quantity_of, stated_quantities
from weft.support.errors import CompileError, InternalError
from weft.texpr.graph_operators import Operator

Tensor = TensorType[Attribute]


def lower_graph_function(function: FuncOp) -> None:
    """Give a graph function buffers: parameters and results become `memref` parameters (results last, under their own
    names), intermediates `memref.alloc`, constants `memref.global`; `graph.call_tir` becomes `func.call`.

    Requires that every operator was legalised, every callee lowered to buffers, and every extent known. Raises
    `CompileError`.

    ```mlir
    func.func @f(%x: tensor<?x4xf32, #graph.dims<n>>) -> tensor<?x4xf32, #graph.dims<n>> {
      %h = graph.call_tir @relu(%x) : ...
      %y = graph.call_tir @relu(%h) : ...
      func.return %y
    // becomes
    func.func @f(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
      %n = memref.dim %x, %c0 : memref<?x4xf32>
      tir.assume_shape %y[%n] : memref<?x4xf32>
      %h = memref.alloc(%n) : memref<?x4xf32>
      func.call @relu(%x, %h) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      func.call @relu(%h, %y) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      func.return
    }
    ```
    """
    inline_dataflow(function)
    tuples = fold_tuples(function)
    erase_dead(function.body.block)
    returned = _returned(function, tuples)
    computed = [value for value in returned if isinstance(value.owner, CallTirOp)]
    is_used = any(isinstance(use.operation, CallTirOp) for value in computed for use in value.uses)
    lowering = _FunctionLowering(function, returned)
    for op in list(lowering.old.ops):
        lowering.lower(op)
    lowering.finish()
    if is_used:  # a result that other calls read is written before all the same
        accesses = [AccessMode.READ] * (len(function.args) - len(returned)) + [AccessMode.WRITE] * len(returned)
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(list(map(AccessAttr, accesses)))


def inline_dataflow(function: FuncOp) -> None:
    """Move what dataflow regions hold to where they stand: order is fixed from here on. Constants of arith that are
    tensors become those of graphs."""
    for op in list(function.walk()):
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            constant = ConstantOp(op.value)
            constant.location = op.location
            Rewriter.replace_op(op, constant)
    for op in list(function.body.block.ops):
        if isinstance(op, DataflowOp):
            output = op.output
            values = list(output.values)
            Rewriter.erase_op(output)
            Rewriter.inline_block(op.body.block, InsertPoint.before(op))
            Rewriter.replace_op(op, [], values)


def fold_tuples(function: FuncOp) -> dict[SSAValue, Sequence[SSAValue]]:
    """Let users of a tuple's values use the values; tuples and what is in them."""
    tuples: dict[SSAValue, Sequence[SSAValue]] = {}
    for op in function.body.block.ops:
        if isinstance(op, MakeTupleOp):
            tuples[op.result] = list(op.values)
        elif isinstance(op, TupleGetOp) and op.source in tuples:
            op.result.replace_all_uses_with(tuples[op.source][op.index])
    return tuples


def _returned(function: FuncOp, tuples: dict[SSAValue, Sequence[SSAValue]]) -> list[SSAValue]:
    """The returned values, those in tuples one by one."""
    returned = function.get_return_op()
    leaves: list[SSAValue] = []

    def visit(value: SSAValue) -> None:
        if not isinstance(value.type, TupleType):
            leaves.append(value)
            return
        if value not in tuples:
            raise CompileError.at(function, f"@{function.sym_name.data}: a tuple must be made in the function")
        for inner in tuples[value]:
            visit(inner)

    for value in () if returned is None else returned.arguments:
        visit(value)
    return leaves


@dataclass(frozen=True)
class LowerGraphToTirPass(ModulePass):
    """Give graph functions buffers and calls.

    Parameters and results become `memref` parameters (results last, under their own names), intermediates
    `memref.alloc`, constants `memref.global`; `graph.call_tir` becomes `func.call`. Raises `CompileError` for extents
    that are not known.

    Requires: graph functions whose callees work on buffers (`lower-te-to-tir`).

    Leaves: functions over buffers that allocate and call.
    """

    name = "lower-graph-to-tir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in graph_functions(op):
            lower_graph_function(function)


def _parameter_names(function: FuncOp, returned: Sequence[SSAValue]) -> list[str | None]:
    """A name for each argument and returned tensor. Those of results are not taken, and end in no `_<number>`, which
    xDSL cuts off name hints."""
    names = [argument.name_hint for argument in function.args]
    for value in returned:
        base = value.name_hint or "out"
        candidates = chain((base, f"{base}_out"), (f"{base}_out{number}" for number in count(2)))
        names.append(next(name for name in candidates if name not in names))
    return names


class _FunctionLowering(Bufferization):
    """Extents, temporaries and constants come first, then the calls. Lower the ops in order, then `finish`."""

    def __init__(self, function: FuncOp, returned: Sequence[SSAValue]) -> None:
        self._name = function.sym_name.data
        self._extents: dict[Expression, SSAValue] = {}
        """The values of dynamic extents."""
        for argument in function.args:
            if isinstance(argument.type, TupleType):
                raise CompileError.at(
                    function, f"@{self._name}: tuple parameters cannot be lowered, got {argument.type}"
                )
        for value in returned:
            if not isinstance(value.type, TensorType):
                raise CompileError.at(function, f"@{self._name} must return tensors, got {value.type}")
        super().__init__(function, returned, _parameter_names(function, returned))
        function.attributes[TIR_FUNCTION] = UnitAttr()  # it may hold calls alone
        for tensor, buffer in self.memory.items():
            for axis, extent in enumerate(self._shape(cast("Tensor", tensor.type))):
                if isinstance(extent, Expression) and lone_name(extent) is not None and extent not in self._extents:
                    dim = memref.DimOp(buffer, constant_before(axis, self.head))
                    self._know(extent, result_before(dim, self.head))
        for tensor, buffer in (*self.memory.items(), *self.results):
            self._tie(buffer, cast("Tensor", tensor.type))

    def _tie(self, buffer: SSAValue, type_: Tensor) -> None:
        """State the extents of a parameter, unless all of them are read from it."""
        extents = self._dynamic(type_)
        if not all(isinstance(e.owner, memref.DimOp) and e.owner.source is buffer for e in extents) or (
            len(set(extents)) < len(extents)
        ):
            insert_before(self.head, [AssumeShapeOp(buffer, extents)])

    # Extents

    def _shape(self, type_: Tensor) -> Sequence[KnownExtent]:
        """The extents of a tensor. Raises `CompileError` when one is unknown."""
        shape = shape_at(self.function, type_)
        if None in shape:
            raise CompileError.at(
                self.function,
                f"@{self._name}: {type_} has an unknown extent; name the dynamic extents with #graph.dims<...>",
            )
        return cast("Sequence[KnownExtent]", shape)

    def _dynamic(self, type_: Tensor) -> list[SSAValue]:
        """The values of the dynamic extents of a tensor."""
        values = [self._extent(extent) for extent in self._shape(type_)]
        return [value for value in values if isinstance(value, SSAValue)]

    def _know(self, extent: Expression, value: SSAValue) -> None:
        self._extents[extent] = value
        value.name_hint = value.name_hint or lone_name(extent)

    def _extent(self, extent: KnownExtent) -> int | SSAValue:
        """A number or an index value. Raises `CompileError` when a name in the extent is not bound."""
        if isinstance(extent, int):
            return extent
        if extent not in self._extents:
            self._know(extent, index_before(self._index(extent), self.head))
        return self._extents[extent]

    def _index(self, extent: KnownExtent) -> Index:
        if isinstance(extent, int):
            return Index.of(extent)
        if extent in self._extents:
            return Index.of(self._extents[extent])
        total = Index({}, 0)
        for monomial, coefficient in extent.terms:
            factors = [self._atom(atom) for atom in monomial] or [Index.of(1)]
            total = total + reduce(lambda left, right: self._combined(MuliOp, left, right), factors) * coefficient
        return total

    def _atom(self, atom: str | ExtentDivision) -> Index:
        if isinstance(atom, ExtentDivision):
            left, right = self._index(atom.left), self._index(atom.right)
            if right.is_constant and right.constant > 0:
                return left // right.constant if atom.kind == "floordiv" else left % right.constant
            # Extents are not negative, so the remainder of the truncated division is the non-negative one.
            return self._combined(FloorDivSIOp if atom.kind == "floordiv" else RemSIOp, left, right)
        value = self._extents.get(Expression((((atom,), 1),)))
        if value is None:
            bound = ", ".join(sorted(map(show_extent, self._extents))) or "none"
            raise CompileError.at(
                self.function, f"extent '{atom}' is not bound by the shape of any operand (bound: {bound})"
            )
        return Index.of(value)

    def _combined(self, op_type: type[MuliOp | FloorDivSIOp | RemSIOp], left: Index, right: Index) -> Index:
        values = index_before(left, self.head), index_before(right, self.head)
        return Index.of(result_before(op_type(*values), self.head))

    # The body

    def lower(self, op: Operation) -> None:
        match op:
            case ConstantOp():
                self._constant(op)
            case CallTirOp():
                self._call(op)
            case ReturnOp():
                self._copy_results()
            case MakeTupleOp() | TupleGetOp():
                pass
            case CallDpsOp():
                raise CompileError.at(
                    op,
                    f'graph.call_dps "{op.callee.data}": functions registered in Python cannot be called from compiled '
                    "code; use graph.call_tir, or run the graph function in the interpreter",
                )
            case Operator():
                raise CompileError.at(op, f"{op.name} must be legalised first (pass legalize-graph-to-te)")
            case _ if any(isinstance(result.type, TensorType) for result in op.results):
                raise CompileError.at(op, f"{op.name} makes a tensor that graph functions cannot lower")
            case _:
                self.insert(op, self.end)

    def _constant(self, op: ConstantOp) -> None:
        try:
            value = dense_value(op)
        except VerifyException as error:
            raise CompileError.at(op, str(error)) from None
        self.constant(value, op.result, op)

    def _call(self, op: CallTirOp) -> None:
        """Call the function with the operands and a buffer for each result: a result parameter or a temporary."""
        callee = callee_of(op)
        wanted = callee.function_type.inputs.data
        if callee.function_type.outputs or not all(isinstance(t, MemRefType) for t in wanted):
            raise CompileError.at(
                op, f"graph.call_tir: @{callee.sym_name.data} works on tensors, lower it first (pass lower-te-to-tir)"
            )
        _check_call_shapes(op, callee)
        for result in op.results:
            buffer = self.result_parameter(result)
            if buffer is None:
                extents = self._dynamic(cast("Tensor", result.type))
                allocation = memref.AllocOp(extents, (), buffer_type(result.type))
                buffer = self._value(allocation, self.head, op, result.name_hint)
            self.memory[result] = buffer
        buffers = [self._buffer(op, value) for value in (*op.operands, *op.results)]
        arguments = [self._cast(op, buffer, type_) for buffer, type_ in zip(buffers, wanted, strict=True)]
        call = CallOp(op.callee, arguments, ())
        call.location = op.location
        self.insert(call, self.end)

    def _value(self, op: Operation, section: Operation, like: Operation, hint: str | None = None) -> SSAValue:
        """The result of an op that is put into a section, with the location of `like`."""
        op.location = like.location
        self.insert(op, section)
        op.results[0].name_hint = hint
        return op.results[0]

    def _buffer(self, op: Operation, tensor: SSAValue) -> SSAValue:
        buffer = self.memory.get(tensor)
        if buffer is None:
            raise InternalError(f"{op.name} uses %{tensor.name_hint}, which has no buffer")
        return buffer

    def _cast(self, op: Operation, buffer: SSAValue, type_: Attribute) -> SSAValue:
        """The buffer as a callee takes it: static extents forgotten where it takes any."""
        if buffer.type == type_:
            return buffer
        return self._value(memref.CastOp.get(buffer, cast("MemRefType[Attribute]", type_)), self.end, op)

    def _copy_results(self) -> None:
        """What no call computes is copied, and the second and further returns of one tensor."""
        for value, target in self.results:
            source = self._buffer(self.function, value)
            if source is not target:
                extents = [self._extent(extent) for extent in self._shape(cast("Tensor", value.type))]
                self.copy(source, target, extents, f"copy_{target.name_hint}", "v", self.function)


def _check_call_shapes(call: CallTirOp, callee: FuncOp) -> None:
    """Every two dimensions that `tir.assume_shape` ties in `callee` are the same extent in `call`.

    Compiled calls pass each extent once, so a result that is declared too small would be written beyond its end. Raises
    `CompileError` with both dimensions.
    """
    shapes = [shape_of(cast("Tensor", value.type)) for value in (*call.operands, *call.results)]

    def show(dimension: Quantity) -> str:
        position = dimension.parameter - len(call.operands)
        role = f"operand {dimension.parameter}" if position < 0 else f"result {position}"
        return f"dimension {dimension.dimension} of {role}"

    stated = [op for op in callee.walk() if isinstance(op, AssumeShapeOp)]
    for first, value in [pair for op in stated for pair in stated_quantities(op)]:
        second = quantity_of(value)
        if second is None or second.is_stride:
            continue
        one, other = (shapes[quantity.parameter][quantity.dimension] for quantity in (first, second))
        if one != other:
            raise CompileError.at(
                call,
                f"graph.call_tir @{callee.sym_name.data}: {show(first)} is {show_extent(one)}, but the function states "
                f"that it equals {show(second)}, which is {show_extent(other)}",
            )
