"""Calls of registered Python functions, and results that calls allocate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import IndexType

from weft.dialects.element_types import STORED, array_name, value_type
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.low_results import ReturnResultOp
from weft.interp.errors import InterpreterError
from weft.interp.registry import evaluates
from weft.interp.values import Array, BufferStorage, array_dtype, array_of, flat_list, narrow, widen
from weft.support.errors import CompileError
from weft.support.registered_calls import call_registered

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

Shapes: TypeAlias = "Sequence[tuple[tuple[int, ...], Attribute]]"
"""Extents and element types."""

_UNWRITTEN = 0xA5
"""Fills outputs before a call: no bool, and unlikely in wide integers. Floats are filled with ones, a NaN that
computations do not produce."""


def filled(
    op: Operation, name: str, inputs: Sequence[Array], types: Sequence[Attribute], results: Shapes
) -> tuple[Array, ...]:
    """Results that the function `name` writes. Raises `InterpreterError` if it is missing, raises, returns a value,
    or leaves an element unwritten; undetected for 16-bit integers and bytes."""
    given = [narrow(array, type_) for array, type_ in zip(inputs, types, strict=True)]
    outputs = [_unwritten(op, shape, type_) for shape, type_ in results]
    element_types = (*types, *(type_ for _, type_ in results))
    names = ["int64" if isinstance(type_, IndexType) else array_name(type_) or "" for type_ in element_types]
    try:
        call_registered(name, given, outputs, names)
    except CompileError as error:
        raise InterpreterError(op, error.message) from error
    except Exception as error:
        raise InterpreterError(op, f"the function '{name}' raised {type(error).__name__}: {error}") from error
    for position, output in enumerate(outputs):
        _check_written(op, name, position, output)
    return tuple(widen(array, type_) for array, (_, type_) in zip(outputs, results, strict=True))


def _unwritten(op: Operation, shape: tuple[int, ...], element_type: Attribute) -> Array:
    dtype = array_dtype(element_type)
    if dtype is None:
        raise InterpreterError(op, f"the interpreter has no arrays of {element_type}")
    array = np.empty(shape, dtype)
    _bits(array)[...] = _pattern(dtype)
    return array


def _bits(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


def _pattern(dtype: np.dtype[Any]) -> int:
    byte = _UNWRITTEN if dtype.kind in "biu" else 0xFF
    return int.from_bytes(bytes([byte]) * dtype.itemsize, "little")


def _check_written(op: Operation, name: str, position: int, output: Array) -> None:
    if (output.dtype.kind in "iu" and output.dtype.itemsize < 4) or output.dtype.name in STORED:
        return
    left = np.argwhere(_bits(output) == _pattern(output.dtype))
    if len(left):
        index = ", ".join(map(str, left[0]))
        raise InterpreterError(
            op,
            f"the function '{name}' left {len(left)} of the {output.size} elements of result {position} unwritten, the "
            f"first at [{index}]",
        )


@evaluates(CallRegisteredOp)
def call_registered_op(op: CallRegisteredOp, *values: Any) -> None:
    count, extents = len(op.shapes.data), iter(values[len(op.shapes.data) :])
    buffers = cast("tuple[BufferStorage, ...]", values[:count])
    shapes = [tuple(next(extents) if e < 0 else e for e in type_.get_shape()) for type_ in op.array_types]
    types = [type_.element_type for type_ in op.array_types]
    inputs: list[Array] = []
    first = len(op.inputs)
    for buffer, shape, type_ in zip(buffers[:first], shapes, types, strict=False):
        if None in buffer.data:
            raise InterpreterError(op, f"'{op.callee.data}' reads %{buffer.name}, which was not written everywhere")
        array = array_of(cast("list[Any]", buffer.data), shape, value_type(type_))
        inputs.append(widen(array, type_))
    results = list(zip(shapes[first:], types[first:], strict=True))
    found = filled(op, op.callee.data, inputs, types[:first], results)
    for buffer, array, type_ in zip(buffers[first:], found, types[first:], strict=True):
        buffer.data[:] = flat_list(widen(array, value_type(type_)))


@evaluates(ReturnResultOp)
def return_result(op: ReturnResultOp, source: BufferStorage, descriptor: BufferStorage, *extents: int) -> None:
    """The descriptor gets the list of elements instead of an address."""
    given = iter(extents)
    shape = [next(given) if extent < 0 else extent for extent in op.shape.get_shape()]
    elements = list(source.data[: math.prod(shape)])
    if None in elements:
        raise InterpreterError(op, f"'{op.name}' returns %{source.name}, which was not written everywhere")
    descriptor.data[:] = [cast("Any", elements), *shape]
