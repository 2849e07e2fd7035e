"""Large constants, whose memory attributes, arrays and compiled code share."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, Final, cast

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, IntegerType, Signedness, TensorType

from weft.dialects.element_types import STORED, TYPES, array_name
from weft.support.errors import CompileError
from weft.support.float_to_integer import floats_to_integers
from weft.support.narrow_floats import SMALL_FLOATS, float_to_bits
from weft.support.pages import fresh_pages

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from xdsl.ir import Attribute

LARGE_BYTES: Final = 1 << 16
"""Constants of at least this size are in separate pages, which compiled code reads in place."""


def new_constant(shape: Sequence[int], element_type: Attribute) -> tuple[NDArray[Any], DenseIntOrFPElementsAttr]:
    """Zeros, and an attribute with their memory, to be filled before using the attribute.

    bf16 are uint16 bit patterns. Raises `CompileError` for elements without arrays.
    """
    import numpy as np

    dtype = _dtype(element_type)
    size = prod(shape) * dtype.itemsize
    data = memoryview(fresh_pages(size))[:size]
    # xDSL only reads bytes; a view has their length, hash and equality.
    attribute = DenseIntOrFPElementsAttr(
        cast("TensorType[Any]", TensorType(element_type, shape)), BytesAttr(cast("bytes", data.toreadonly()))
    )
    return np.frombuffer(data, dtype).reshape(shape), attribute


def dense_attribute(array: NDArray[Any], element_type: Attribute) -> DenseIntOrFPElementsAttr:
    if array.nbytes >= LARGE_BYTES and array.dtype == _dtype(element_type):
        elements, attribute = new_constant(array.shape, element_type)
        elements[...] = array
        return attribute
    little_endian = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    type_ = cast("TensorType[Any]", TensorType(element_type, array.shape))
    return DenseIntOrFPElementsAttr(type_, BytesAttr(little_endian.tobytes()))


def shared_attribute(array: NDArray[Any], element_type: Attribute) -> DenseIntOrFPElementsAttr:
    """Share an array's memory, not to be written afterwards; copies small arrays and other dtypes or layouts."""
    is_plain = array.flags.c_contiguous and array.dtype == _dtype(element_type) and array.dtype.kind != "b"
    if array.nbytes < LARGE_BYTES or not is_plain:
        return dense_attribute(array, element_type)
    data = memoryview(cast("Any", array.reshape(-1).view("uint8").view(_hashable_array()))).toreadonly()
    type_ = cast("TensorType[Any]", TensorType(element_type, array.shape))
    return DenseIntOrFPElementsAttr(type_, BytesAttr(cast("bytes", data)))


@cache
def _hashable_array() -> type[NDArray[Any]]:
    """A view is hashable if its owner is; hashes by identity."""
    import numpy as np

    return type("HashableArray", (np.ndarray,), {"__hash__": object.__hash__})


def is_repeated(value: DenseIntOrFPElementsAttr) -> bool:
    """Whether all elements have the same bytes. xDSL's `is_splat` first makes a Python number of each."""
    data, count = memoryview(value.data.data), prod(value.get_shape())
    size = len(data) // count if count else 0
    return data[size:] == data[: len(data) - size]


def elements_of(value: DenseIntOrFPElementsAttr) -> NDArray[Any]:
    """A read-only array, copied only if the attribute does not store all elements.

    Raises `CompileError` for elements without arrays, or a wrong number.
    """
    import numpy as np

    shape, dtype = value.get_shape(), _dtype(value.get_element_type())
    data = np.frombuffer(value.data.data, dtype)
    if data.dtype == np.bool_:
        data = data.view(np.uint8) != 0  # xDSL writes all bits of true
    if data.size == 1:
        return np.broadcast_to(data.reshape(()), shape)
    if data.size != prod(shape):
        raise CompileError(f"a constant of type {value.type} has {data.size} elements")
    return data.reshape(shape)


def _dtype(element_type: Attribute) -> np.dtype[Any]:
    import numpy as np

    from weft.support.call_arguments import stored_dtype  # start-up: 24 ms

    name = array_name(element_type)
    if name is None:
        raise CompileError(f"no array has elements of type {element_type}")
    if name in STORED:
        return stored_dtype(name) or np.dtype(np.uint8)
    return np.dtype("uint16" if name == "bfloat16" else name).newbyteorder("<")


def constant_elements(numbers: ArrayLike, dtype: str) -> NDArray[Any]:
    """Floats round to nearest, and convert to integers as `arith.fptosi`. Types of ml_dtypes are bits if it is not
    loaded.

    Raises `CompileError` for an integer out of range.
    """
    import numpy as np

    given, element_type = np.asarray(numbers), TYPES[dtype]
    if given.dtype.name == dtype:
        return given
    if isinstance(element_type, IntegerType) and dtype != "bool":
        bits, signed = element_type.width.data, element_type.signedness.data is not Signedness.UNSIGNED
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if given.dtype.kind == "f":
            return floats_to_integers(given, bits, signed=signed)
        for number in (given.min(initial=0), given.max(initial=0)):
            if not low <= number <= high:
                raise CompileError(f"{number} does not fit {dtype}, which holds {low} to {high}")
        return given.astype(dtype if bits >= 8 else "int8" if signed else "uint8")
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return _bfloat16_bits(given.astype(np.float64))
        if dtype in SMALL_FLOATS:
            bits = [float_to_bits(float(number), dtype) for number in given.flat]
            return np.array(bits, np.int8).view(np.uint8).reshape(given.shape)
        return given.astype(dtype)


def _bfloat16_bits(numbers: NDArray[Any]) -> NDArray[Any]:
    """Rounds ties to even, via a float32 rounded to odd."""
    import numpy as np

    single = np.asarray(numbers.astype(np.float32))
    bits = single.view(np.int32)
    beyond: NDArray[Any] = np.isfinite(numbers) & (np.abs(single) > np.abs(numbers))
    bits = np.where(beyond, bits - 1, bits) | ((single != numbers) & (numbers == numbers))
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.asarray(np.where(numbers == numbers, rounded, bits >> 16 | 0x40), np.uint16)
