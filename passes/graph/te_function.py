"""Builds the tensor expression function that an operator of the graph dialect becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.dialects.graph_ops import Tensor
from weft.dialects.graph_shapes import Expression, Extent, Shape, shape_of
from weft.dialects.te import AssumeShapeOp, Combiner, ComputeOp, ReduceOp, YieldOp
from weft.passes.graph.extents import ExtentValues
from weft.support.errors import CompileError, InternalError

Element = Callable[["Body", Sequence[SSAValue]], SSAValue]
"""Writes the expression of one element: gets the body and the index values, returns the element."""


class Body:
    """Where ops are appended: the block of a function, of an element, or of a reduction."""

    def __init__(self, block: Block, location: LocationAttr) -> None:
        self.block = block
        self._location = location

    def append(self, op: Operation) -> None:
        op.location = self._location
        self.block.add_op(op)

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Append an op; its only result."""
        self.append(op)
        op.results[0].name_hint = hint
        return op.results[0]

    def constant(self, value: int | float, type_: Attribute) -> SSAValue:
        """A scalar of an integer, index or floating-point type."""
        if isinstance(type_, IntegerType | IndexType):
            return self.emit(arith.ConstantOp(IntegerAttr(int(value), type_)))
        if isinstance(type_, AnyFloat):
            return self.emit(arith.ConstantOp(FloatAttr(value, type_)))
        raise InternalError(f"no scalar constant of type {type_}")

    def read(self, source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """One element of a tensor."""
        return self.emit(tensor.ExtractOp(source, list(indices), _tensor(source).element_type))

    def reduce(
        self,
        combiner: Combiner,
        axes: Sequence[int | SSAValue],
        type_: Attribute,
        element: Element,
        hints: Sequence[str],
    ) -> SSAValue:
        """Combine the values of `element` over axes from 0 to the given extents."""
        op = ReduceOp.over(combiner, axes, [type_], hints)
        inner = Body(op.body.block, self._location)
        inner.append(YieldOp(element(inner, op.axes)))
        return self.emit(op)


class TeFunction(Body):
    """A function over the operands of one graph op, named after their roles, that knows their extents.

    `known` extents stand for the same value wherever they occur; operands that share one are tied by
    `te.assume_shape`. Raises `CompileError` about `op` for an extent that is unknown.
    """

    def __init__(self, op: Operation, operands: Sequence[Tensor], roles: Sequence[str]) -> None:
        plain = [TensorType(type_.element_type, type_.get_shape()) for type_ in operands]
        super().__init__(Block(arg_types=plain), op.location)
        self.arguments = self.block.args
        self.shapes = [shape_of(type_) for type_ in operands]
        self._op = op
        self._extents = ExtentValues(self.append, op)
        for argument, role, shape in zip(self.arguments, roles, self.shapes, strict=True):
            argument.name_hint = role
            self._bind(argument, shape)

    def _bind(self, argument: SSAValue, shape: Shape) -> None:
        seen: list[SSAValue] = []
        shared = False
        for axis, extent in enumerate(shape):
            if extent is None:
                raise CompileError.at(
                    self._op,
                    f"{self._op.name}: dimension {axis} of %{argument.name_hint} is unknown; "
                    "name the dynamic extents of its type with #graph.dims<...>",
                )
            if isinstance(extent, Expression):
                if self._extents.knows(extent):
                    shared = True
                else:
                    position = self.constant(axis, IndexType())
                    self._extents.know(extent, self.emit(tensor.DimOp(argument, position)))
                value = self._extents.value(extent)
                seen.extend([value] if isinstance(value, SSAValue) else [])
        if shared:
            self.append(AssumeShapeOp(argument, seen))

    def extent(self, extent: Extent) -> int | SSAValue:
        """An extent as `te` takes it."""
        if extent is None:
            raise CompileError.at(self._op, f"{self._op.name}: the result has an extent that is unknown")
        return self._extents.value(extent)

    def compute(
        self, name: str, shape: Shape, element_type: Attribute, element: Element, hints: Sequence[str] = ()
    ) -> SSAValue:
        """A new tensor, each element of which is what `element` writes."""
        names = hints or [f"i{axis}" for axis in range(len(shape))]
        op = ComputeOp.over(name, [self.extent(extent) for extent in shape], [element_type], names)
        inner = Body(op.body.block, self._location)
        inner.append(YieldOp(element(inner, op.indices)))
        self.append(op)
        return op.results[0]

    def finish(self, name: str, results: Sequence[SSAValue]) -> FuncOp:
        """The function, private to its module, that returns `results`."""
        self.append(ReturnOp(*results))
        type_ = FunctionType.from_lists([a.type for a in self.arguments], [r.type for r in results])
        function = FuncOp(name, type_, Region(self.block), "private")
        function.location = self._location
        return function


def _tensor(value: SSAValue) -> Tensor:
    if not isinstance(value.type, TensorType):
        raise InternalError(f"expected a tensor, got {value.type}")
    return value.type


def broadcast_indices(body: Body, shape: Shape, result: Shape, indices: Sequence[SSAValue]) -> Sequence[SSAValue]:
    """The indices at which an operand of `shape` is read for the element of `result` at `indices`: an extent of 1 that
    is stretched is read at 0."""
    skipped = len(result) - len(shape)
    return [
        body.constant(0, IndexType()) if extent == 1 and wide != 1 else index
        for extent, wide, index in zip(shape, result[skipped:], indices[skipped:], strict=True)
    ]
