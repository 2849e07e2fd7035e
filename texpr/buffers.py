"""Memory layouts of tensors.

```python
s = te.var("s")
A = te.placeholder((m, n), name="A", strides=(s, 1))
C = te.compute((m, n), lambda i, j: A[i, j] + 1, name="C")
te.create_func([A, C], binds={C: te.decl_buffer((m, n), name="C", strides=(s, 1))})
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.low_access import StrideOp
from weft.dialects.strides import with_strides
from weft.dialects.tir import AssumeShapeOp, AssumeStridesOp
from weft.support.argument_types import shown
from weft.texpr.expr import Var, checked_dtype, error
from weft.texpr.shapes import Extent, Stride, checked_name, checked_shape, checked_strides, value_name
from weft.texpr.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Buffer:
    """A tensor's layout in `binds`."""

    shape: tuple[Extent, ...]
    dtype: str
    name: str
    strides: tuple[Stride, ...] | None


Binds: TypeAlias = Mapping[Tensor, Buffer]


def decl_buffer(
    shape: object,
    dtype: object = None,
    name: str | None = None,
    *,
    strides: object = None,
    offset_factor: int = 0,
    data_alignment: int = -1,
) -> Buffer:
    """A buffer with strides in elements: integers, variables, or None if calls determine them.

    Dense and row-major by default. TVM's `offset_factor` and `data_alignment` have no effect.
    """
    del offset_factor, data_alignment
    label = checked_name(name, "buffer")
    extents = checked_shape(shape, f"buffer {label}")
    checked = checked_strides(strides, len(extents), f"buffer {label}")
    return Buffer(extents, checked_dtype("float32" if dtype is None else dtype), label, checked)


def set_strides(function: FuncOp, parameters: Sequence[Tensor | Var], binds: Binds | None) -> None:
    """Set the strides of placeholders and `binds` on a function over buffers, in place.

    Calls check that strides, extents and parameters of one variable are equal.
    """
    stated = dict(_stated(parameters, binds or {}))
    if not stated:
        return
    for position, strides in stated.items():
        argument = function.args[position]
        fixed = tuple(stride if isinstance(stride, int) else None for stride in strides)
        type_ = cast("MemRefType[Attribute]", argument.type)
        Rewriter.replace_value_with_new_type(argument, with_strides(type_, fixed))
    function.update_function_type()
    _Ties(function, parameters).state(stated)


def _stated(parameters: Sequence[Tensor | Var], binds: Binds) -> dict[int, tuple[Stride, ...]]:
    positions = {parameter: at for at, parameter in enumerate(parameters) if isinstance(parameter, Tensor)}
    found = {at: tensor.strides for tensor, at in positions.items() if tensor.strides is not None}
    for tensor, buffer in binds.items():
        if tensor not in positions:
            raise error(f"binds: {shown(tensor)} is no parameter of the function")
        if buffer.dtype != tensor.dtype or len(buffer.shape) != tensor.ndim:
            rank = len(buffer.shape)
            raise error(f"binds: {shown(tensor)} does not fit buffer {buffer.name} of rank {rank} and {buffer.dtype}")
        for dimension, (one, other) in enumerate(zip(tensor.shape, buffer.shape, strict=True)):
            if one is not other and one != other:
                raise error(f"binds: extent {dimension} of {tensor.name} is {one}, that of {buffer.name} is {other}")
        if buffer.strides is not None:
            found[positions[tensor]] = buffer.strides
    return found


class _Ties:
    def __init__(self, function: FuncOp, parameters: Sequence[Tensor | Var]) -> None:
        block = function.body.block
        self._arguments = function.args
        self._location = function.location
        known = [op for op in block.ops if isinstance(op, memref.DimOp | AssumeShapeOp)]
        self._builder = Builder(InsertPoint.after(known[-1]) if known else InsertPoint.at_start(block))
        self._values: dict[Var, SSAValue] = {}
        self._extents: dict[Var, tuple[SSAValue, int]] = {}
        for argument, parameter in zip(function.args, parameters, strict=True):
            if isinstance(parameter, Var):
                self._values[parameter] = argument
                continue
            for dimension, extent in enumerate(parameter.shape):
                if isinstance(extent, Var):
                    self._extents.setdefault(extent, (argument, dimension))

    def state(self, stated: Mapping[int, tuple[Stride, ...]]) -> None:
        for position, strides in stated.items():
            buffer = self._arguments[position]
            values: list[SSAValue | None] = []
            is_tied = False
            free = [(dimension, stride) for dimension, stride in enumerate(strides) if not isinstance(stride, int)]
            for dimension, stride in free:
                known = None if stride is None else self._known(stride)
                is_tied = is_tied or known is not None
                if known is None and stride is not None:
                    # The first stride's hint is also the symbol in the signature.
                    known = self._values[stride] = self._stride(buffer, dimension, value_name(stride.name))
                values.append(known)
            if is_tied:
                pairs = zip(free, values, strict=True)
                stated_values = [self._stride(buffer, d, None) if value is None else value for (d, _), value in pairs]
                self._append(AssumeStridesOp(buffer, stated_values))

    def _known(self, variable: Var) -> SSAValue | None:
        if variable not in self._values and variable in self._extents:
            source, axis = self._extents[variable]
            position = ConstantOp(IntegerAttr(axis, IndexType()))
            self._append(position)
            op = memref.DimOp(source, position.result)
            op.result.name_hint = value_name(variable.name)
            self._append(op)
            self._values[variable] = op.result
        return self._values.get(variable)

    def _stride(self, buffer: SSAValue, dimension: int, hint: str | None) -> SSAValue:
        op = StrideOp(buffer, dimension)
        op.stride.name_hint = hint
        self._append(op)
        return op.stride

    def _append(self, op: Operation) -> None:
        op.location = self._location
        self._builder.insert(op)
