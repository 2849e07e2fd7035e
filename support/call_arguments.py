"""Checks of the arguments of a call in Python, with an error for each mistake."""

from __future__ import annotations

import ctypes
import math
import operator
import os
import reprlib
import sys
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import did_you_mean
from weft.support.narrow_floats import ROUNDINGS, float_to_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from weft.support.call_preconditions import CallPrecondition

    Array = NDArray[Any]


Failure: TypeAlias = "Callable[[type[Exception], object, object], Exception]"
"""Maps the class of an error, the expected and the actual value to the error about one argument."""
_Symbols: TypeAlias = dict[str, tuple[int, str]]
"""The values of symbols, each with the argument that determined it."""


@dataclass(frozen=True)
class BoundArguments:
    """Arguments of the native function."""

    slots: tuple[int, ...]
    """For each parameter a pointer, the bits of a scalar, or the value of a symbol."""
    arrays: Mapping[int, Array]
    """By position; they keep the memory alive."""
    symbols: Mapping[str, int]
    results: tuple[Array | AllocatedResult, ...]
    """The allocated results."""


class AllocatedResult:
    def __init__(self, spec: ArraySpec) -> None:
        self.spec = spec
        self.descriptor = np.zeros(1 + len(spec.shape), np.int64)
        self._is_taken = False

    def take(self) -> Array:
        """Returns the array, which then owns the memory."""
        address, *shape = self.descriptor.tolist()
        self._is_taken = True
        if text := _protocol_text(self.spec.dtype):
            return np.asarray(_Memory(address, (*shape,), text))
        dtype = bfloat16_dtype() if self.spec.dtype == "bfloat16" else numpy_dtype(self.spec)
        count = math.prod(shape) * dtype.itemsize
        return np.asarray(_Memory(address, (count,), "|u1")).view(dtype).reshape(shape)

    def __del__(self) -> None:
        if not self._is_taken and self.descriptor[0]:
            _free_function()(int(self.descriptor[0]))


@cache
def _protocol_text(name: str) -> str:
    """The element type for `__array_interface__`; empty for types that NumPy lacks."""
    known = np.sctypeDict.get(name)  # has ml_dtypes's types if that is loaded
    return np.dtype(known).str if known is not None and np.dtype(known).isbuiltin == 1 else ""


class _Memory:
    """Memory of the C library's `malloc`, freed with the last array over it."""

    def __init__(self, address: int, shape: tuple[int, ...], element: str) -> None:
        self._address, self._free = address, _free_function()
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": element}

    def __del__(self) -> None:
        self._free(self._address)


@cache
def _free_function() -> Callable[[int], None]:
    free = ctypes.CDLL(None if os.name == "posix" else "ucrtbase").free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free


def returned(results: tuple[Any, ...]) -> Any:
    if not results:
        return None
    found = [result.take() if isinstance(result, AllocatedResult) else result for result in results]
    return found[0] if len(found) == 1 else tuple(found)


def bind_arguments(
    signature: Signature, positional: Sequence[object], keywords: Mapping[str, object], *, copied: bool = False
) -> BoundArguments:
    """Check and convert arguments. `copied` arrays may have any layout; the strides of the copies are chosen.

    Raises `TypeError` for a wrong number, names, kinds or element types of arguments, and `ValueError` for a wrong
    rank, shape, strides, alignment, writability, overlap or value of a scalar.
    """
    values = by_position(signature, positional, keywords)
    symbols: _Symbols = {}
    arrays: dict[int, Array] = {}
    slots: list[int] = []
    numbers: dict[str, int] = {}
    passed = (at for at, arg in enumerate(signature.args) if not isinstance(arg, ArraySpec) or not arg.is_allocated)
    left_out = dict.fromkeys(range(len(signature.args)))
    for position, value in zip(passed, values, strict=False):
        spec = signature.args[position]
        del left_out[position]
        fail = partial(argument_error, signature, position)
        if isinstance(spec, ScalarSpec):
            slots.append(_scalar_bits(spec, value, fail))
            number = ctypes.c_int64(slots[-1]).value
            if spec.element.kind == "int":
                numbers[spec.name] = number
            if spec.symbol:
                if number < 0 and spec.symbol in signature.extent_symbols:
                    _check_stated(signature, spec.symbol, number)
                    raise fail(ValueError, f"an extent of at least 0 ({_uses(signature, spec.symbol)})", number)
                extent, giver = symbols.setdefault(spec.symbol, (number, f"'{spec.name}'"))
                if extent != number:
                    raise fail(ValueError, f"{spec.symbol} = {extent} (from {giver})", number)
            continue
        array = as_array(signature, position, value)
        _check_array(spec, array, symbols, fail)
        if not copied:
            _check_layout(spec, array, symbols, fail)
        arrays[position] = array
        slots.append(array.ctypes.data)
    if copied:
        specs = zip(signature.arrays, arrays.values(), strict=False)
        strided = [(array.shape, spec.strides) for spec, array in specs if spec.strides is not None]
        chosen = choose_strides(strided, {name: value for name, (value, _) in symbols.items()})
        symbols.update((name, (value, "")) for name, value in chosen.items())
    for symbol, (position, element) in signature.elements.items():
        if position in arrays:
            number = int(arrays[position].flat[element])
            if number < 0 and symbol in signature.extent_symbols:
                _check_stated(signature, symbol, number)
                place = _source(signature, symbol).removesuffix(f"'{signature.args[position].name}'")
                expected = f"an extent of at least 0 ({_uses(signature, symbol)})"
                expected += f" as {place.removesuffix(' of ')}" if place else ""
                raise argument_error(signature, position, ValueError, expected, number)
            value, giver = symbols.setdefault(symbol, (number, signature.args[position].name))
            if value != number:
                expected = f"{value} as element {element} ({symbol} = {value}, from {giver})"
                raise argument_error(signature, position, ValueError, expected, number)
    if signature.facts or signature.limits:
        _check_facts(signature, numbers, symbols)
    known = {name: value for name, (value, _) in symbols.items()}
    results = allocate(signature, [cast("ArraySpec", signature.args[position]) for position in left_out], known)
    for position, result in zip(left_out, results, strict=True):
        arrays[position] = result.descriptor if isinstance(result, AllocatedResult) else result
        slots.insert(position, arrays[position].ctypes.data)
    if left_out:
        arrays = dict(sorted(arrays.items()))
    check_overlap(signature, arrays)
    slots.extend(known[name] for name in signature.symbols)
    return BoundArguments(tuple(slots), arrays, known, results)


def by_position(signature: Signature, positional: Sequence[object], keywords: Mapping[str, object]) -> list[object]:
    """Trailing results are optional, and allocated ones must be omitted."""
    allocated = [arg.name for arg in signature.arrays if arg.is_allocated]
    names = [arg.name for arg in signature.args if arg.name not in allocated]
    optional = signature.results - sum(spec.is_allocated for spec in signature.result_specs)
    least = len(names) - optional
    wanted = str(len(names)) if least == len(names) else f"{least} to {len(names)}"
    if len(positional) > len(names):
        raise TypeError(f"{signature.name}: expected {wanted} arguments, got {len(positional)}: {signature}")
    given = dict(zip(names, positional, strict=False))
    for name, value in keywords.items():
        if name in allocated:
            raise TypeError(
                f"{signature.name}: result '{name}' must be omitted: its size depends on data, so the call allocates "
                f"it: {signature}"
            )
        if name not in names:
            raise TypeError(f"{signature.name}: unknown argument '{name}'{did_you_mean(name, names)}: {signature}")
        if name in given:
            raise TypeError(f"{signature.name}: argument '{name}' is given twice: {signature}")
        given[name] = value
    missing = [name for name in names[: max(least, 0)] if name not in given]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise TypeError(
            f"{signature.name}: expected {wanted} arguments, got {len(given)}, without {listed}: {signature}"
        )
    results = [name for name in names[least:] if name in given]
    if results and len(results) < optional:
        absent = next(name for name in names[least:] if name not in given)
        raise TypeError(f"{signature.name}: give all results or none, '{absent}' is missing: {signature}")
    return [given[name] for name in names if name in given]


def argument_error(
    signature: Signature, position: int, kind: type[Exception], expected: object, got: object
) -> Exception:
    name = signature.args[position].name
    return kind(f"{signature.name}: argument {position + 1} ('{name}'): expected {expected}, got {got}")


def as_array(signature: Signature, position: int, value: object) -> Array:
    """Returns an array of NumPy's own class over the same memory; bfloat16 becomes integers with the bits.

    Shape, strides, element type and address are those found by NumPy's constructor, since attributes of subclasses and
    of other libraries' arrays are not trusted; DLPack capsules and buffers are. A Python number is accepted for a
    read-only array of rank 0. Raises `TypeError` for a value without such a view, and `ValueError` for an integer out
    of range.
    """
    spec = signature.args[position]
    if type(value) in (bool, int, float) and isinstance(spec, ArraySpec) and is_number(spec):
        bits = _scalar_bits(ScalarSpec(spec.name, spec.dtype), value, partial(argument_error, signature, position))
        size = spec.element.bytes
        return np.frombuffer(bits.to_bytes(8, "little")[:size], numpy_dtype(spec)).reshape(())
    bfloat = isinstance(spec, ArraySpec) and spec.dtype == "bfloat16"
    try:
        hidden = hidden_meaning(value)
        array = _plain_view(value, bfloat) if not hidden else np.empty(0)
    except Exception as error:  # methods of the caller's class may raise anything
        expected, got = f"an array {spec}", _kind_of(value)
        if hasattr(type(value), "__dlpack__"):
            expected, got = f"{expected} in this machine's memory", f"{got}: {error}"
        raise argument_error(signature, position, TypeError, expected, got) from error
    if hidden:
        raise argument_error(signature, position, TypeError, f"an array {spec}", hidden)
    if array.dtype.kind == "c" and isinstance(spec, ArraySpec) and array.flags.c_contiguous:
        # The parts of complex numbers are a last dimension of 2.
        part = np.dtype(f"f{array.dtype.itemsize // 2}")
        if spec.shape[-1:] == (2,) and numpy_dtype(spec) == part:
            return array.reshape(-1).view(part).reshape(*array.shape, 2)
    return array.view(np.uint16) if bfloat and array.dtype.name == "bfloat16" else array


def is_number(spec: ArraySpec) -> bool:
    return not spec.shape and spec.access == "read" and spec.element.kind != "stored"


def _plain_view(value: object, bfloat: bool) -> Array:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return array if type(array) is np.ndarray else np.ndarray.view(array, np.ndarray)
    if not hasattr(value, "__dlpack__"):
        return np.asarray(memoryview(cast("Any", value)))
    source: Any = value
    bfloat = bfloat and str(getattr(source, "dtype", "")).endswith("bfloat16")
    if bfloat and (torch := cast("Any", sys.modules.get("torch"))) is not None:
        # NumPy lacks bfloat16.
        source = source.view(torch.int16)
    array = cast("Array", np.from_dlpack(source))
    if array.size and array.flags.owndata:
        raise ValueError("the DLPack capsule gives no address")
    return array.view(np.uint16) if bfloat else array


def hidden_meaning(value: object) -> str:
    """Returns a difference between the elements and the contents of the memory, or an empty text."""
    if isinstance(value, np.ma.MaskedArray):
        return f"{_kind_of(value)}, whose mask would be lost (pass its .filled(value) or .data)"
    for query, bit in (("is_conj", "conjugate"), ("is_neg", "negative")):
        if getattr(type(value), query, None) is not None and getattr(value, query)():
            return f"{_kind_of(value)} with its {bit} bit set (.resolve_{query[3:]}() makes a plain one)"
    return ""


def _kind_of(value: object) -> str:
    return type(value).__name__


def described(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    return f"{_kind_of(value)} {reprlib.repr(value)}"


def bfloat16_dtype() -> np.dtype[Any]:
    """Returns ml_dtypes's if it is loaded, else uint16."""
    return np.dtype(getattr(sys.modules.get("ml_dtypes"), "bfloat16", np.uint16))


def numpy_dtype(spec: ArraySpec) -> np.dtype[Any]:
    """Raises `TypeError` if the type requires the package ml_dtypes and it is not installed."""
    if spec.element.kind != "stored":
        return np.dtype(np.uint16 if spec.dtype == "bfloat16" else spec.dtype)
    found = stored_dtype(spec.dtype)
    if found is None:
        raise TypeError(f"arrays of {spec.dtype} need the package ml_dtypes: pip install 'weft[types]'")
    return found


def stored_dtype(name: str) -> np.dtype[Any] | None:
    """Returns None without the package ml_dtypes."""
    try:
        module = import_module("ml_dtypes")
    except ImportError:
        return None
    return np.dtype(getattr(module, name))


def _check_array(spec: ArraySpec, array: Array, symbols: _Symbols, fail: Failure) -> None:
    try:
        wanted = numpy_dtype(spec)
    except TypeError as error:
        raise fail(TypeError, f"elements of type {spec.dtype}", f"{_dtype_name(array)}: {error}") from None
    if array.dtype != wanted:
        expected = "bfloat16 (or uint16 with its bits)" if spec.dtype == "bfloat16" else spec.dtype
        raise fail(TypeError, f"elements of type {expected}", _dtype_name(array))
    if array.ndim != len(spec.shape):
        raise fail(ValueError, f"rank {len(spec.shape)} (shape {_shape_text(spec.shape)})", f"shape {array.shape}")
    for dimension, (extent, got) in enumerate(zip(spec.shape, array.shape, strict=True)):
        place = f"axis {dimension} of '{spec.name}'"
        value, giver = symbols.setdefault(extent, (got, place)) if isinstance(extent, str) else (extent, "")
        if got != value:
            expected = f"shape {_shape_text(spec.shape)}" + (
                f" with {extent} = {value} (from {giver})" if giver else ""
            )
            hint = "; --shape states an axis of 1 that is repeated" if giver and 1 in (got, value) else ""
            raise fail(ValueError, expected, f"shape {array.shape} (dimension {dimension} is {got}{hint})")
    if spec.writes and not array.flags.writeable:
        raise fail(ValueError, "a writable array, since it is an output", "a read-only one")


def _check_layout(spec: ArraySpec, array: Array, symbols: _Symbols, fail: Failure) -> None:
    if spec.strides is not None:
        _check_strides(spec, array, symbols, fail)
    elif not array.flags.c_contiguous:
        raise fail(ValueError, "a C-contiguous array (np.ascontiguousarray makes one)", _layout(array))
    if spec.writes and spec.strides is not None and overlaps_itself(array):
        raise fail(ValueError, "an output whose elements are at different places", _layout(array))
    if array.size and array.ctypes.data % spec.element.bytes:
        raise fail(ValueError, f"memory aligned to {spec.element.bytes} bytes", f"address {array.ctypes.data:#x}")


def _check_strides(spec: ArraySpec, array: Array, symbols: _Symbols, fail: Failure) -> None:
    """Check the strides of a view, and record their symbols. Those of dimensions of extent 1 and of empty arrays are
    unused, so any value is valid."""
    size = spec.element.bytes
    dense = row_major(array.shape)
    open_strides: list[tuple[str, int]] = []
    for dimension, (stride, extent, got) in enumerate(zip(spec.strides or (), array.shape, array.strides, strict=True)):
        if not array.size or extent == 1:
            if isinstance(stride, str):
                open_strides.append((stride, dense[dimension]))
            continue
        value, remainder = divmod(got, size)
        if remainder:
            detail = f"dimension {dimension} has {got} bytes from one element to the next"
            raise fail(ValueError, f"strides that are multiples of {size} bytes", detail)
        wanted, giver = (
            (stride, "") if isinstance(stride, int) else symbols.setdefault(stride, (value, f"'{spec.name}'"))
        )
        if value != wanted:
            expected = f"strides {_shape_text(spec.strides or ())} (in elements)"
            expected += f" with {stride} = {wanted} (from {giver})" if giver else ""
            detail = f"strides {tuple(step // size for step in array.strides)} (dimension {dimension} has {value})"
            raise fail(ValueError, expected, detail)
    for name, value in open_strides:
        symbols.setdefault(name, (value, f"'{spec.name}'"))


def choose_strides(
    arrays: Sequence[tuple[Sequence[int], Sequence[int | str]]], symbols: Mapping[str, int]
) -> dict[str, int]:
    """Returns strides for symbols of arrays (shape and strides each) that are not in `symbols`. The last dimension is
    the densest, and no two elements overlap."""
    chosen: dict[str, int] = {}
    # A symbol of several dimensions grows to the largest requirement, as do the strides that depend on it.
    for _ in range(1 + sum(len(strides) for _, strides in arrays)):
        before = dict(chosen)
        for shape, strides in arrays:
            reach = 1
            for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
                if isinstance(stride, str):
                    if stride not in symbols:
                        chosen[stride] = max(chosen.get(stride, 1), reach)
                    stride = symbols.get(stride, chosen.get(stride, 1))
                reach += max(extent - 1, 0) * abs(stride)
        if chosen == before:
            break
    return chosen


def row_major(shape: Sequence[int]) -> list[int]:
    strides, stride = [1] * len(shape), 1
    for dimension in reversed(range(len(shape))):
        strides[dimension] = stride
        stride *= max(shape[dimension], 1)
    return strides


def memory_span(array: Array) -> Array:
    """Returns the memory from the first to the last element, with the gaps of a view, as one dimension. Raises
    `ValueError` for negative strides."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if any(stride < 0 for stride in array.strides):
        raise ValueError(f"expected strides that are not negative, got {array.strides}")
    last = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    count = last // array.itemsize + 1 if array.size else 0
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,), writeable=array.flags.writeable)


def overlaps_itself(array: Array) -> bool:
    """Returns whether two elements may share bytes. Exact for slices and transpositions."""
    steps = sorted(
        (abs(stride), extent) for stride, extent in zip(array.strides, array.shape, strict=True) if extent > 1
    )
    reach = array.itemsize
    for stride, extent in steps:
        if stride < reach:
            return bool(array.size)
        reach += stride * (extent - 1)
    return False


def _check_facts(signature: Signature, numbers: Mapping[str, int], symbols: _Symbols) -> None:
    values = {**numbers, **{name: value for name, (value, _) in symbols.items()}}
    for fact in signature.facts:
        if fact.defines is not None and fact.defines not in values:
            value = fact.defined(values)
            if value is not None and value < 0:
                raise ValueError(f"{signature.name}: {_no_extent(signature, fact, value, values)}: {signature}")
            if value is not None:
                values[fact.defines] = value
                symbols[fact.defines] = (value, fact.text)
    for fact in (*signature.facts, *signature.limits):
        if all(name in values for name in fact.names) and not fact.holds(values):
            raise _broken(signature, fact, values, symbols)


def _check_stated(signature: Signature, symbol: str, value: int) -> None:
    """Check the preconditions that bound `symbol` from below by more than 0 and state a reason."""
    for fact in signature.facts:
        is_bound = fact.names == (symbol,) and " == " not in fact.relation
        if is_bound and fact.reason and not fact.holds({symbol: value}) and not fact.holds({symbol: 0}):
            raise _broken(signature, fact, {symbol: value}, [symbol])


def _broken(
    signature: Signature, fact: CallPrecondition, values: Mapping[str, int], symbols: Collection[str]
) -> ValueError:
    sources = {name: _source(signature, name) for name in fact.names if name in symbols}
    return ValueError(f"{signature.name}: {fact.problem(values, sources)}: {signature}")


def _uses(signature: Signature, symbol: str) -> str:
    places = [(spec.shape.index(symbol), spec.name) for spec in signature.arrays if symbol in spec.shape]
    return ", ".join(f"axis {axis} of '{name}'" for axis, name in places)


def _no_extent(signature: Signature, fact: CallPrecondition, value: int, values: Mapping[str, int]) -> str:
    known = [name for name in fact.names if name != fact.defines and name in values]
    given = ", ".join(f"{name} = {values[name]} ({_source(signature, name)})" for name in known)
    extent = fact.text.replace(" == ", " = ")
    return f"expected an extent of at least 0, got {extent} = {value} for {given}"


def _source(signature: Signature, symbol: str) -> str:
    if symbol in signature.elements:
        position, element = signature.elements[symbol]
        array = cast("ArraySpec", signature.args[position])
        return f"element {element} of '{array.name}'" if array.shape else f"'{array.name}'"
    for spec in signature.args:
        if isinstance(spec, ScalarSpec):
            if spec.symbol == symbol:
                return f"'{spec.name}'"
        elif symbol in spec.shape:
            return f"axis {spec.shape.index(symbol)} of '{spec.name}'"
        elif symbol in spec.symbols:
            return f"a stride of '{spec.name}'"
    return "a call"


def _dtype_name(array: Array) -> str:
    dtype = array.dtype
    return dtype.name if dtype.isnative else f"{dtype.name} of the other byte order ({dtype.str})"


def _layout(array: Array) -> str:
    return f"strides {array.strides} for shape {array.shape}"


def _shape_text(shape: Sequence[int | str]) -> str:
    inner = ", ".join(str(extent) for extent in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def check_overlap(signature: Signature, arrays: Mapping[int, Array], *, copied: bool = False) -> None:
    """Raises `ValueError` if an output shares a byte with another argument. Two may overlap if both specifications
    allow it and neither is `copied`."""
    for position, array in arrays.items():
        spec = signature.args[position]
        if not isinstance(spec, ArraySpec) or not spec.writes or not array.size:
            continue
        for other_position, other in arrays.items():
            fellow = signature.args[other_position]
            if not copied and spec.may_overlap and isinstance(fellow, ArraySpec) and fellow.may_overlap:
                continue
            if other_position != position and other.size and share_memory(array, other):
                got = f"one that overlaps argument {other_position + 1} ('{signature.args[other_position].name}')"
                expected = "an output that shares no memory with other arguments"
                raise argument_error(signature, position, ValueError, expected, got)


def share_memory(one: Array, other: Array) -> bool:
    """Returns True if that is expensive to determine."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=cast("Any", 10_000))
    except np.exceptions.TooHardError:
        return True


def allocate(
    signature: Signature, specs: Sequence[ArraySpec], symbols: Mapping[str, int]
) -> tuple[Array | AllocatedResult, ...]:
    """Returns memory for omitted results, or descriptors if the call allocates. Raises `TypeError` if no argument
    determines their extents."""
    for spec in specs:
        unknown = next((extent for extent in spec.symbols if extent not in symbols), None)
        if unknown is not None:
            raise TypeError(
                f"{signature.name}: result '{spec.name}' must be given: no argument determines the extent '{unknown}'"
            )
    return tuple(
        AllocatedResult(spec)
        if spec.is_allocated
        else empty_array(spec, tuple(symbols[e] if isinstance(e, str) else e for e in spec.shape), symbols)
        for spec in specs
    )


def empty_array(spec: ArraySpec, shape: tuple[int, ...], symbols: Mapping[str, int] | None = None) -> Array:
    """`symbols` maps known stride symbols to values."""
    if spec.strides is None:
        return _dense_array(spec, shape)
    known, dense = symbols or {}, row_major(shape)
    strides = [
        stride if isinstance(stride, int) else known.get(stride, dense[dimension])
        for dimension, stride in enumerate(spec.strides)
    ]
    steps = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True) if extent > 0]
    before, after = -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    room = _dense_array(spec, (before + after + 1,))
    return np.lib.stride_tricks.as_strided(room[before:], shape, [stride * room.itemsize for stride in strides])


def _dense_array(spec: ArraySpec, shape: tuple[int, ...]) -> Array:
    try:
        return np.empty(shape, bfloat16_dtype() if spec.dtype == "bfloat16" else numpy_dtype(spec))
    except (MemoryError, ValueError) as error:  # NumPy raises ValueError for more bytes than addresses
        raise MemoryError(f"there is no memory for '{spec.name}' of shape {shape}: {error}") from error


def _scalar_bits(spec: ScalarSpec, value: object, fail: Failure) -> int:
    element = spec.element
    if isinstance(value, np.ndarray) and cast("Array", value).ndim == 0:
        value = cast("object", value[()])
    if element.kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise fail(TypeError, "a bool", described(value))
        return 1 if value else 0
    if element.kind == "float":
        return _float_bits(spec, value, fail)
    try:
        number = operator.index(cast("Any", value))
    except Exception as error:  # methods of the caller's class may raise anything
        raise fail(TypeError, f"an integer ({spec.dtype})", described(value)) from error
    least, most = element.range
    if not least <= number <= most:
        got = described(number).removeprefix("int ")
        raise fail(ValueError, f"an integer from {least} to {most} ({spec.dtype})", got)
    return number & ((1 << 64) - 1)


def _float_bits(spec: ScalarSpec, value: object, fail: Failure) -> int:
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError
        number = float(cast("Any", value))
    except Exception as error:  # methods of the caller's class may raise anything
        raise fail(TypeError, f"a number ({spec.dtype})", described(value)) from error
    return float_to_bits(ROUNDINGS[spec.dtype](number), spec.dtype) & ((1 << 8 * spec.element.bytes) - 1)
