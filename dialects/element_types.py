"""Element types: NumPy names and sizes in memory (docs/decisions/0052-element-types.md).

Unsigned integers outside of arrays and graphs are signless, and storage types are bytes: parameters and results state
the element type, `%x: memref<4xi8> {tir.element = ui8}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from weft.support.argument_types import checked
from weft.support.errors import CompileError, did_you_mean
from weft.support.narrow_floats import SMALL_FLOATS, small_float

TYPES: Final[dict[str, IntegerType | AnyFloat]] = {
    "bool": i1,
    "int8": IntegerType(8),
    "int16": IntegerType(16),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "uint8": IntegerType(8, Signedness.UNSIGNED),
    "uint16": IntegerType(16, Signedness.UNSIGNED),
    "uint32": IntegerType(32, Signedness.UNSIGNED),
    "uint64": IntegerType(64, Signedness.UNSIGNED),
    "float16": f16,
    "bfloat16": bf16,
    "float32": f32,
    "float64": f64,
    **{name: small_float(name) for name in SMALL_FLOATS},
    "int2": IntegerType(2),
    "int4": IntegerType(4),
    "uint2": IntegerType(2, Signedness.UNSIGNED),
    "uint4": IntegerType(4, Signedness.UNSIGNED),
}
"""Name -> type, for elements of arrays. Integers wrap."""
STORED: Final = frozenset({*SMALL_FLOATS, "int2", "int4", "uint2", "uint4"})
"""Types in memory only: elements are bytes until they are converted to other types."""
_NAMES: Final[dict[Attribute, str]] = {type_: name for name, type_ in TYPES.items()}
_registered: dict[type[Attribute], str] = {}
"""Types of other dialects -> element type of their arrays."""


@checked
def register_element_type(type_: type[Attribute], dtype: str, *, override: bool = False) -> None:
    """Represent another dialect's elements by arrays of a NumPy type.

        weft.register_element_type(FixedType, "int16")

    The interpreter and `--validate` then support such buffers; ops handle numbers of `dtype` (`register_operation(...,
    meaning=...)`). A user-supplied pass replaces the type before the low level. Raises `CompileError` for weft's types,
    an unknown `dtype`, and a registered type unless `override`.
    """
    if dtype not in TYPES:
        raise CompileError(f"{type_.name} has elements of an unknown type '{dtype}'{did_you_mean(dtype, TYPES)}")
    if value_type(TYPES[dtype]) != TYPES[dtype]:
        raise CompileError(f"{type_.name} has elements of {dtype}, which no values are: use a signed type or a float")
    if type_ in map(type, _NAMES):
        raise CompileError(f"{type_.name} is a type that weft knows")
    if type_ in _registered and not override:
        raise CompileError(f"{type_.name} is registered already; override=True replaces it")
    _registered[type_] = dtype


def unregister_element_type(type_: type[Attribute]) -> None:
    """Raises `CompileError` for an unregistered type."""
    if _registered.pop(type_, None) is None:
        raise CompileError(f"{type_.name} is not registered")


def array_name(type_: Attribute) -> str | None:
    """Returns None for types without arrays."""
    return _NAMES.get(type_) or _registered.get(type(type_))


def element_name(type_: Attribute) -> str | None:
    return _NAMES.get(type_)


ELEMENT: Final = "tir.element"
"""Attribute of a parameter or result: the element type of its arrays, or the type of the number, if its type does not
determine it."""


def is_stored(type_: Attribute) -> bool:
    return _NAMES.get(type_) in STORED


def is_unsigned(type_: Attribute) -> bool:
    """Only arrays and graphs have such integers."""
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.UNSIGNED


def element_of(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, TensorType | MemRefType) else type_


def value_type(type_: Attribute) -> Attribute:
    """Makes integers signless and storage types bytes."""
    element = element_of(type_)
    if is_stored(element):
        return _with_element(type_, IntegerType(8))
    return _with_element(type_, IntegerType(_width(element))) if is_unsigned(element) else type_


def value_elements(elements: DenseIntOrFPElementsAttr[Any]) -> DenseIntOrFPElementsAttr[Any]:
    type_ = cast("TensorType[Any]", value_type(elements.type))
    return elements if type_ == elements.type else DenseIntOrFPElementsAttr(type_, elements.data)


def stated_elements(types: Iterable[Attribute]) -> ArrayAttr[DictionaryAttr] | None:
    """Attributes that state these types; None if implied."""
    stated = [DictionaryAttr({ELEMENT: type_} if value_type(type_) != type_ else {}) for type_ in types]
    return ArrayAttr(stated) if any(entry.data for entry in stated) else None


def joined_attributes(
    first: ArrayAttr[DictionaryAttr] | None, second: ArrayAttr[DictionaryAttr] | None
) -> ArrayAttr[DictionaryAttr] | None:
    if first is None or second is None:
        return first or second
    return ArrayAttr([DictionaryAttr(a.data | b.data) for a, b in zip(first, second, strict=True)])


def parameter_types(function: FuncOp) -> Sequence[Attribute]:
    """Types for callers. Raises `CompileError` for a wrong stated one."""
    return _as_stated(function, function.function_type.inputs.data, function.arg_attrs)


def result_types(function: FuncOp) -> Sequence[Attribute]:
    """See `parameter_types`."""
    return _as_stated(function, function.function_type.outputs.data, function.res_attrs)


def forget_elements(function: FuncOp) -> None:
    if function.arg_attrs is not None:
        left = [DictionaryAttr({n: a for n, a in entry.data.items() if n != ELEMENT}) for entry in function.arg_attrs]
        function.arg_attrs = ArrayAttr(left) if any(entry.data for entry in left) else None


def _as_stated(
    function: FuncOp, types: Sequence[Attribute], attributes: ArrayAttr[DictionaryAttr] | None
) -> Sequence[Attribute]:
    if attributes is None:
        return types
    found: list[Attribute] = []
    for type_, entry in zip(types, attributes, strict=True):
        stated = entry.data.get(ELEMENT)
        if stated is not None and value_type(stated) != element_of(type_):
            message = f"@{function.sym_name.data}: elements of {type_} are no {stated}, as {ELEMENT} states"
            raise CompileError.at(function, message)
        found.append(type_ if stated is None else _with_element(type_, stated))
    return found


def _with_element(type_: Attribute, element: Attribute) -> Attribute:
    match type_:
        case TensorType():
            return TensorType(element, type_.get_shape(), type_.encoding)
        case MemRefType():
            return MemRefType(element, type_.get_shape(), type_.layout, type_.memory_space)
        case _:
            return element


def bytes_of(element: Attribute) -> int:
    if isinstance(element, IndexType):
        return 8
    if isinstance(element, BFloat16Type):
        return 2
    return max(1, element.bitwidth // 8) if isinstance(element, FixedBitwidthType) else 8


def buffer_bytes(type_: Attribute) -> int:
    """Returns 0 for a dynamic shape."""
    return math.prod(type_.get_shape()) * bytes_of(type_.element_type) if isinstance(type_, MemRefType) else 0


def least(type_: Attribute) -> float | int:
    """The least number; signless integers are signed."""
    if isinstance(type_, AnyFloat):
        return -math.inf
    return 0 if is_unsigned(type_) else -(1 << (_width(type_) - 1))


def greatest(type_: Attribute) -> float | int:
    """The greatest number; signless integers are signed."""
    if isinstance(type_, AnyFloat):
        return math.inf
    return (1 << (_width(type_) - (not is_unsigned(type_)))) - 1


def _width(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 64
