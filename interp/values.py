"""Run-time values, and their conversion from and to NumPy arrays.

i1 is bool, iN intN, uiN uintN (intN outside of graphs), index int64, f16/f32/f64 float16/32/64. bf16 is
`ml_dtypes.bfloat16` if that package is loaded, else 16 bits in uint16; inside the interpreter it is float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    IndexType,
    IntegerType,
    Signedness,
    VectorType,
    f32,
    f64,
)

from weft.dialects.element_types import STORED, TYPES, array_name, element_name, is_stored
from weft.interp.scalar_functions import wrap
from weft.support.call_arguments import bfloat16_dtype, stored_dtype
from weft.support.float_to_integer import floats_to_integers
from weft.support.narrow_floats import ROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
    from xdsl.ir import Attribute


Scalar: TypeAlias = float | int | bool
Array: TypeAlias = NDArray[Any]

MAX_ELEMENTS = 1 << 26
"""The maximum number of elements of a buffer that the interpreter allocates: half a gigabyte."""
MAX_RANK = 64
"""The maximum rank of NumPy arrays."""


@dataclass
class BufferStorage:
    """A memref between functions: row-major elements (None if never written) and extents."""

    data: list[Scalar | None]
    shape: tuple[int, ...]
    name: str
    strides: tuple[int, ...] | None = None
    """The strides of a view in elements; None for row-major order."""
    offset: int = 0


def array_dtype(element_type: Attribute) -> np.dtype[Any] | None:
    if isinstance(element_type, BFloat16Type):
        return bfloat16_dtype()
    return carrier_dtype(element_type)


def carrier_dtype(element_type: Attribute) -> np.dtype[Any] | None:
    """The dtype inside the interpreter: float32 for bf16."""
    if isinstance(element_type, BFloat16Type):
        return np.dtype(np.float32)
    if isinstance(element_type, ComplexType):
        return complex_dtype(cast("ComplexType[Any]", element_type))
    name = "int64" if isinstance(element_type, IndexType) else array_name(element_type)
    if name in STORED:
        return stored_dtype(name)
    return None if name is None else np.dtype(name)


def complex_dtype(element_type: ComplexType[Any]) -> np.dtype[Any] | None:
    """The dtype, or None unless the parts are float32 or float64."""
    return {f32: np.dtype(np.complex64), f64: np.dtype(np.complex128)}.get(element_type.element_type)


def widen(array: Array, element_type: Attribute) -> Array:
    """A caller's array -> the interpreter's tensor (a new one for bf16)."""
    if isinstance(element_type, ComplexType):  # callers pass the parts along a last dimension
        return np.ascontiguousarray(array).view(complex_dtype(element_type) or np.complex128)[..., 0]
    if not isinstance(element_type, BFloat16Type):
        return _as_elements(array, element_type)
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32)


def narrow(array: Array, element_type: Attribute, dtype: np.dtype[Any] | None = None) -> Array:
    """The interpreter's tensor -> an array for callers; `dtype` selects the format of bf16 and the signedness of
    integers."""
    if isinstance(element_type, ComplexType):
        return np.stack([np.real(array), np.imag(array)], -1)
    if not isinstance(element_type, BFloat16Type):
        return _as_elements(array, element_type) if dtype is None else array.view(dtype)
    wanted = bfloat16_dtype() if dtype is None else dtype
    if wanted == np.uint16:
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return array.astype(wanted)


def _as_elements(array: Array, element_type: Attribute) -> Array:
    dtype = carrier_dtype(element_type)
    if dtype is None or array.dtype == dtype or dtype.itemsize != array.dtype.itemsize:
        return array
    return array.view(dtype) if dtype.kind in "iu" or is_stored(element_type) else array


def places(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> list[int]:
    found = np.asarray(offset)
    for extent, stride in zip(shape, strides, strict=True):
        found = found[..., np.newaxis] + np.arange(extent) * stride
    return found.ravel().tolist()


def flat_list(array: Array) -> list[Any]:
    return array.ravel().tolist()


def array_of(elements: Sequence[Scalar], shape: Sequence[int], element_type: Attribute) -> Array:
    """A tensor from rounded Python scalars, row-major; indices wrap to 64 bits."""
    dtype = carrier_dtype(element_type)
    try:
        array = np.array(elements, dtype=dtype)
    except OverflowError:
        array = np.array([wrap(cast("int", element), 64) for element in elements], dtype=dtype)
    return array.reshape(tuple(shape))


def round_array(array: Array, element_type: Attribute) -> Array:
    """Round a tensor computed in double or in its type."""
    if isinstance(element_type, BFloat16Type):
        return _round_array_bf16(np.asarray(array, np.float64))
    found = np.asarray(array)
    with np.errstate(all="ignore"):
        if found.dtype.kind == "f" and isinstance(element_type, IntegerType) and element_type.width.data > 1:
            signed = element_type.signedness.data is not Signedness.UNSIGNED
            found = floats_to_integers(found, element_type.width.data, signed=signed)
        return found.astype(carrier_dtype(element_type), copy=False)


def _round_array_bf16(array: NDArray[np.float64]) -> Array:
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(array)
        quantum = np.maximum(exponent - 8, -133)
        rounded = np.ldexp(np.rint(np.ldexp(array, -quantum)), quantum)
        # Numbers above the largest bf16 are at least 2^128 here: infinity in float32.
        return np.where(np.isfinite(array), rounded, array).astype(np.float32)


def finisher(type_: Attribute) -> Callable[[Any], Any]:
    rounding = ROUNDINGS.get(element_name(type_) or "")
    if rounding is not None:
        return lambda x: rounding(float(x))
    match type_:
        case IntegerType():
            width = type_.width.data
            return bool if width == 1 else lambda x: wrap(int(x), width)
        case IndexType():
            return int
        case VectorType():
            finish = finisher(type_.element_type)
            return lambda lanes: [finish(lane) for lane in lanes]
        case _:
            carrier = array_name(type_)
            return (lambda x: x) if carrier is None else finisher(TYPES[carrier])


def array_of_dense(value: DenseIntOrFPElementsAttr) -> Array | None:
    element_type = value.get_element_type()
    dtype = carrier_dtype(element_type)
    if dtype is None:
        return None
    data = value.data.data
    if dtype == np.bool_:
        elements = np.frombuffer(data, np.uint8) != 0
    else:
        stored = np.dtype(np.uint16) if isinstance(element_type, BFloat16Type) else dtype
        elements = np.frombuffer(data, stored.newbyteorder("<")).astype(stored)
        elements = elements if stored.kind == "c" else widen(elements, element_type)
    return elements.reshape(value.get_shape())
