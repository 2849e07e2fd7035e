"""Element types by name, as users of tensor expressions write them, and their limits."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import AnyFloat, Float16Type, Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from weft.dialects.element_types import TYPES, element_name
from weft.support.argument_types import shown
from weft.support.errors import did_you_mean
from weft.texpr.places import error

_MANTISSA_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_MAX_EXPONENT = {"float16": 16, "bfloat16": 128, "float32": 128, "float64": 1024}


def checked_dtype(dtype: object) -> str:
    """`dtype` as a name of `TYPES`; also takes NumPy's dtypes. Raises CompileError for any other."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    if name == "bool_":
        name = "bool"
    if not isinstance(name, str) or name not in TYPES:
        raise error(f"there is no element type {shown(dtype)}{did_you_mean(str(name), TYPES)}")
    return name


def type_of(dtype: str) -> IntegerType | AnyFloat:
    """The IR type of an element type."""
    return TYPES[dtype]


def name_of(type: Attribute) -> str:
    """The name of an IR type. Raises CompileError for one that is no element type."""
    name = element_name(type)
    if name is None:
        raise error(f"no element type of tensors is {type}")
    return name


def is_float(dtype: str) -> bool:
    return dtype in _MANTISSA_BITS


def is_integer(dtype: str) -> bool:
    """Whether `dtype` holds integers; bool does not."""
    return dtype.startswith("int")


def bits(dtype: str) -> int:
    """Width in bits; 1 for bool."""
    type = TYPES[dtype]
    match type:
        case IntegerType():
            return type.width.data
        case Float64Type():
            return 64
        case Float32Type():
            return 32
        case Float16Type() | _:
            return 16


def least(dtype: str) -> int | float:
    """The least finite value. Raises CompileError for bool."""
    if is_float(dtype):
        return -greatest(dtype)
    if not is_integer(dtype):
        raise error(f"{dtype} has no least value")
    return -(1 << (bits(dtype) - 1))


def greatest(dtype: str) -> int | float:
    """The greatest finite value. Raises CompileError for bool."""
    if is_float(dtype):
        mantissa = 2.0 - 2.0 ** (1 - _MANTISSA_BITS[dtype])
        return math.ldexp(mantissa, _MAX_EXPONENT[dtype] - 1)
    if not is_integer(dtype):
        raise error(f"{dtype} has no greatest value")
    return (1 << (bits(dtype) - 1)) - 1
