"""Arrays of a run, and the comparison of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft.dialects.element_types import TYPES
from weft.interp.compare import tolerance
from weft.interp.values import carrier_dtype, narrow, widen
from weft.support.array_files import read_npy
from weft.support.call_arguments import choose_strides, empty_array, numpy_dtype
from weft.support.call_preconditions import near_numbers
from weft.support.call_signature import ArraySpec, ScalarSpec, Signature
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import write_output

Array: TypeAlias = NDArray[Any]
Value: TypeAlias = "Array | float | int | bool"


def assignments(words: Sequence[str], option: str, names: Sequence[str], what: str) -> dict[str, str]:
    """Parse `NAME=VALUE` words; each name must be one of `names`. Raises `CompileError`."""
    found = assigned(words, option)
    for name, value in found.items():
        if name not in names:
            raise CompileError(f"{option} {name}={value}: there is no {what} '{name}'{did_you_mean(name, names)}")
    return found


def given_inputs(words: Sequence[str], signature: Signature) -> dict[str, str]:
    """`NAME=` is optional for a file of the only input. Raises `CompileError`."""
    lone = [spec.name for spec in signature.args if isinstance(spec, ScalarSpec) or not spec.writes]
    if len(lone) == 1:
        words = [f"{lone[0]}={word}" if word.endswith(".npy") and "=" not in word else word for word in words]
    return assignments(words, "--input", [spec.name for spec in signature.args], "argument")


def assigned(words: Sequence[str], option: str) -> dict[str, str]:
    """Parse `NAME=VALUE` words. Raises `CompileError`."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not value or not name:
            raise CompileError(f"{option} takes NAME=VALUE, got '{word}'")
        if name in found:
            raise CompileError(f"{option} gives '{name}' twice: {found[name]} and {value}")
        found[name] = value
    return found


def write_npy(path: str, array: Array) -> None:
    """Save at exactly `path`. Raises `CompileError`."""
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    write_output(Path(path), file.getvalue())


@dataclass(frozen=True)
class Request:
    inputs: Mapping[str, str]
    """Files or numbers by name."""
    seed: int
    positive: bool = False
    """Whether random numbers are positive, for programs that divide or take logarithms."""


def make_arguments(signature: Signature, request: Request, chosen: dict[str, int] | None = None) -> dict[str, Value]:
    """Returns the arguments of a call: those of the request, else random numbers.

    Unstated sizes are 1, or close to 1 to satisfy the preconditions, and are added to `chosen`. Write-only outputs are
    filled with NaN (or the largest integer), which reveals unwritten elements. Raises `CompileError` for a value that
    does not fit, and an extent that cannot be determined.
    """
    given: dict[str, Value] = {}
    for spec in signature.args:
        if spec.name in request.inputs:
            given[spec.name] = _given(spec, request.inputs[spec.name])
    extents = _symbol_extents(signature, given)
    _define_extents(signature, given, extents)
    more = _completed(signature, extents)
    if chosen is not None:
        chosen.update(more)
    extents |= more
    _define_extents(signature, given, extents)
    strides = _stride_symbols(signature, extents)
    random = np.random.default_rng(request.seed)
    values: dict[str, Value] = {}
    for spec in signature.args:
        if spec.name in given:
            values[spec.name] = given[spec.name]
        elif isinstance(spec, ArraySpec) and spec.is_allocated:
            continue
        elif isinstance(spec, ScalarSpec):
            raise CompileError(f"scalar argument '{spec}' needs a value: --input {spec.name}=NUMBER")
        else:
            shape = tuple(_extent(spec, extent, extents) for extent in spec.shape)
            made = _unwritten(spec, shape) if spec.access == "write" else _random(random, spec, shape, request.positive)
            values[spec.name] = made if spec.strides is None else _strided(spec, made, {**strides, **extents})
    for symbol, (position, element) in signature.elements.items():
        name = signature.args[position].name
        if name not in given:
            cast("Array", values[name]).flat[element] = extents[symbol]
    return values


def sizes_note(chosen: Mapping[str, int]) -> str:
    if not chosen:
        return ""
    sizes = ", ".join(f"{name} = {size}" for name, size in chosen.items())
    return f"sizes     {sizes} (chosen: --shape and --input state others)"


def _stride_symbols(signature: Signature, extents: Mapping[str, int]) -> dict[str, int]:
    arrays = [
        (tuple(extents.get(e, 1) if isinstance(e, str) else e for e in spec.shape), spec.strides)
        for spec in signature.arrays
        if spec.strides is not None
    ]
    return choose_strides(arrays, extents)


def _strided(spec: ArraySpec, values: Array, symbols: Mapping[str, int]) -> Array:
    array = empty_array(spec, values.shape, symbols)
    array[...] = values
    return array


def _given(spec: ArraySpec | ScalarSpec, text: str) -> Value:
    if isinstance(spec, ArraySpec):
        array = read_npy(text)
        if array.dtype != _dtype(spec):
            raise CompileError(
                f"--input {spec.name}={text}: argument '{spec}' takes {_dtype(spec)}, the file holds {array.dtype}"
            )
        if not _takes(spec, array.shape):
            shape = "x".join(map(str, array.shape))
            raise CompileError(f"--input {spec.name}={text}: argument '{spec}' does not take shape {shape}")
        return array
    kind = spec.element.kind
    try:
        if kind == "bool":
            return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
        return float(text) if kind == "float" else int(text)
    except (ValueError, KeyError):
        raise CompileError(f"--input {spec.name}={text}: argument '{spec}' takes a {kind}, got '{text}'") from None


def _takes(spec: ArraySpec, shape: Sequence[int]) -> bool:
    known = zip(spec.shape, shape, strict=False)
    return len(shape) == len(spec.shape) and all(isinstance(e, str) or e == extent for e, extent in known)


def array_of_result(value: Any, spec: ArraySpec) -> Array:
    """Numbers become arrays of rank 0."""
    if isinstance(value, np.ndarray):
        return value
    type_ = TYPES[spec.dtype]
    return np.asarray(narrow(np.asarray(value).astype(carrier_dtype(type_)), type_))


def _completed(signature: Signature, extents: Mapping[str, int]) -> dict[str, int]:
    """Returns values near 1 that satisfy the preconditions for the symbols that `extents` lacks."""
    defined = {fact.defines for fact in signature.facts}
    shapes = (spec.shape for spec in signature.arrays if not spec.is_allocated)
    symbols = (*(e for shape in shapes for e in shape if isinstance(e, str)), *signature.elements)
    unknown = [name for name in dict.fromkeys(symbols) if name not in extents and name not in defined]

    def holds(numbers: Mapping[str, int]) -> bool:
        known = {**extents, **numbers}
        return all(fact.holds(known) for fact in signature.facts if all(name in known for name in fact.names))

    bounded = [name for name in unknown if any(name in fact.names for fact in signature.facts)]
    return {**dict.fromkeys(unknown, 1), **near_numbers(dict.fromkeys(bounded, 1), bounded, holds)}


def _symbol_extents(signature: Signature, given: Mapping[str, Value]) -> dict[str, int]:
    """Raises `CompileError` if the arrays contradict each other."""
    extents: dict[str, tuple[int, str]] = {}
    for spec in signature.arrays:
        value = given.get(spec.name)
        if isinstance(value, np.ndarray):
            shape = value.shape
        else:
            continue
        for symbol, extent in zip(spec.shape, shape, strict=True):
            if isinstance(symbol, str):
                known, teller = extents.setdefault(symbol, (extent, spec.name))
                if known != extent:
                    raise CompileError(
                        f"extent '{symbol}' is {known} in argument '{teller}', but {extent} in '{spec.name}'"
                    )
    for symbol, (position, element) in signature.elements.items():
        value = given.get(signature.args[position].name)
        if isinstance(value, np.ndarray):
            extents.setdefault(symbol, (int(value.flat[element]), signature.args[position].name))
    return {symbol: extent for symbol, (extent, _) in extents.items()}


def _define_extents(signature: Signature, given: Mapping[str, Value], extents: dict[str, int]) -> None:
    numbers = {name: value for name, value in given.items() if isinstance(value, int)}
    for fact in signature.facts:
        if fact.defines is not None and fact.defines not in extents:
            value = fact.defined({**numbers, **extents})
            if isinstance(value, int) and value >= 0:
                extents[fact.defines] = value


def _extent(spec: ArraySpec, extent: int | str, extents: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    if extent not in extents:
        raise CompileError(
            f"no argument determines the extent '{extent}' of '{spec.name}' in '{spec}': give --shape {spec.name}="
            f"{'x'.join(map(str, spec.shape))} with numbers, or --input {spec.name}=FILE.npy"
        )
    return extents[extent]


def _random(random: np.random.Generator, spec: ArraySpec, shape: tuple[int, ...], positive: bool) -> Array:
    """Returns floats from -1 to 1, or integers from -10 to 10, restricted by the type and `positive`."""
    kind = spec.element.kind
    if kind == "bool":
        return random.integers(0, 2, shape).astype(np.bool_)
    if kind in ("int", "uint"):
        low = 1 if positive else 0 if kind == "uint" else -10
        return random.integers(low, 11, shape).astype(spec.dtype)
    numbers = random.uniform(0.125 if positive else -1.0, 1.0, shape)
    if spec.dtype == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if spec.dtype.endswith("int4"):
        numbers *= 7
    return numbers.astype(_dtype(spec))


def _dtype(spec: ArraySpec) -> np.dtype[Any]:
    try:
        return numpy_dtype(spec)
    except TypeError as error:
        raise CompileError(f"argument '{spec}': {error}") from None


def _unwritten(spec: ArraySpec, shape: tuple[int, ...]) -> Array:
    kind = spec.element.kind
    if spec.dtype == "bfloat16":
        return np.full(shape, 0x7FC0, np.uint16)
    if kind == "float":
        return np.full(shape, np.nan, spec.dtype)
    if kind == "stored":
        return np.full(shape, 0x7F, np.uint8).view(_dtype(spec))
    return np.full(shape, True if kind == "bool" else spec.element.range[1], spec.dtype)


_EPSILON: Mapping[str, float] = {
    **{dtype: float(np.finfo(dtype).eps) for dtype in ("float16", "float32", "float64")},
    "bfloat16": 2.0**-7,
}
"""The distance from 1 to the next number of each float type."""


@dataclass(frozen=True)
class ArrayDifference:
    """`where` is the worst element."""

    agrees: bool
    allowed: float
    """The absolute error attributed to rounding: fused multiply-add, and reassociated sums. Integers and booleans must
    be equal."""
    max_absolute: float
    max_relative: float
    """The maximum over the elements that are not 0."""
    where: tuple[int, ...]
    got: object
    expected: object

    def __str__(self) -> str:
        errors = f"max abs error {self.max_absolute:.3g}, max rel error {self.max_relative:.3g}"
        if self.agrees:
            return errors
        index = ", ".join(map(str, self.where))
        return f"{errors}; at [{index}] got {self.got}, expected {self.expected}"


def compare(got: NDArray[Any], expected: NDArray[Any], dtype: str, epsilon: float = 0.0) -> ArrayDifference:
    """`dtype` is the element type ("bfloat16" is passed as its bits in uint16), `epsilon` that of the format of rounded
    factors. Raises `CompileError` for different shapes or element types."""
    if got.shape != expected.shape:
        raise CompileError(f"the shape is {_shape_text(got)}, expected {_shape_text(expected)}")
    if _family(got) != _family(expected):
        raise CompileError(f"the elements are {got.dtype}, expected {expected.dtype}")
    if got.size == 0:
        return ArrayDifference(True, 0.0, 0.0, 0.0, (), None, None)
    # Widened, so that distances are not rounded.
    a, b = (widen(array, TYPES[dtype]).astype(np.float64) for array in (got, expected))
    with np.errstate(all="ignore"):
        is_float = dtype in _EPSILON
        same = got == expected if not is_float else (a == b) | (np.isnan(a) & np.isnan(b))
        absolute = np.where(same, 0.0, np.abs(a - b))
        # The distance of a number from NaN or infinity is infinite.
        absolute = np.where(np.isnan(absolute), np.inf, absolute)
        absolute = np.where(~same & (absolute == 0.0), 1.0, absolute)  # integers beyond 2**53
        magnitude = np.abs(b)
        relative = np.where(same, 0.0, absolute / magnitude)
        relative = np.where(magnitude == 0.0, 0.0, relative)
    finite = magnitude[np.isfinite(magnitude)]
    scale = float(finite.max()) if finite.size else 0.0
    allowed = max(tolerance(_EPSILON[dtype], _TERMS, scale), 4 * epsilon * scale) if is_float else 0.0
    worst = int(np.argmax(absolute))
    where = tuple(int(i) for i in np.unravel_index(worst, a.shape))
    largest = float(absolute.flat[worst])
    return ArrayDifference(
        largest <= allowed, allowed, largest, float(relative.max()), where, a[where].item(), b[where].item()
    )


def _family(array: NDArray[Any]) -> tuple[str, int]:
    """Integers and bfloat16, which may be stored as integers, are one kind."""
    return array.dtype.kind if array.dtype.kind in "bfcOUS" else "bits", array.dtype.itemsize


def _shape_text(array: NDArray[Any]) -> str:
    return "x".join(map(str, array.shape)) or "that of a number"


_TERMS = 256
"""The assumed number of terms of the longest sum. Rounding grows as its square root, so that a few thousand terms
pass."""
