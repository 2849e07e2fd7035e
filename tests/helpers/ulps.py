"""Errors of elementary functions in units in the last place (ulp), against wider arithmetic.

References: NumPy in double for f32, in `np.longdouble` for f64 (80 bits on x86: its functions are those of the C
library; elsewhere it may be as wide as double, and `WIDE` says so).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

WIDE = np.finfo(np.longdouble).nmant > 60
"""Whether there is an arithmetic to check f64 against."""
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
WIDER: dict[Any, Any] = {np.float32: np.float64, np.float64: np.longdouble}


def erf(x: Array) -> Array:
    """The error function in the arithmetic of `x`: its series below 2.5, the continued fraction of erfc above."""
    kind = x.dtype.type
    size = np.abs(x)
    result = np.empty_like(size)
    near = size < 2.5
    z = size[near]
    term, total = z.copy(), z.copy()
    for n in range(1, 60 if kind is np.float64 else 80):
        term = -term * z * z / n
        total = total + term / (2 * n + 1)
    root_pi = np.sqrt(4 * np.arctan(kind(1)))
    result[near] = total * 2 / root_pi
    t = np.minimum(size[~near], kind(30))
    fraction = np.zeros_like(t)
    for k in range(60 if kind is np.float64 else 100, 0, -1):
        fraction = kind(k) / 2 / (t + fraction)
    result[~near] = 1 - np.exp(-t * t) / ((t + fraction) * root_pi)
    result[np.isnan(x)] = np.nan
    return np.copysign(result, x)


EXACT: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "powf": np.power,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
"""Function -> what it is in the arithmetic of its argument, which is to be wider than that of the results to check."""

BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.2, 1.0),
    "exp2": (1.05, 1.2),
    "expm1": (1.1, 1.1),
    "log": (0.85, 0.85),
    "log2": (0.85, 0.85),
    "log10": (0.85, 0.85),
    "log1p": (1.0, 1.0),
    "tanh": (1.1, 1.1),
    "sin": (1.5, 1.5),
    "cos": (1.5, 1.5),
    "erf": (1.1, 1.25),
}
"""Function with a formula -> largest error in ulp for f32 and for f64, as in
docs/decisions/0016-elementary-functions.md, and 0087-sines-and-transposed-tiles.md there for sin and cos."""

IN_DOUBLE: dict[str, float] = dict.fromkeys(("sinh", "cosh", "asinh", "acosh", "atanh"), 0.51)
"""Function of numbers narrower than double, whose formula is in double -> largest error in ulp for f32."""

COMPOSED_BOUNDS: dict[str, tuple[float, float]] = {"sigmoid": (1.4, 1.3)}
"""The same of functions that tensor expressions make of others."""

SPECIAL = (
    *(0.0, np.inf, np.nan, 0.5, 1.0, 2.0, 10.0, 1e-40, 1.4e-45, 1.2e-38, 3.4e38, 1e-310, 5e-324, 2.2e-308, 1.79e308),
    *(
        88.72283,
        88.72284,
        87.33654,
        103.97208,
        103.9721,
        104.0,
        127.0,
        128.0,
        126.0,
        149.0,
        150.0,
        16.635532,
        17.328680,
    ),
    *(709.782712893384, 709.7827128933841, 745.1332191019411, 745.13321910194122, 708.3964185322641, 1023.0, 1024.0),
    *(
        1074.0,
        1075.0,
        1022.0,
        0.55,
        0.93,
        3.95,
        6.0,
        20.0,
        0.70710678,
        1.41421356,
        0.99999994,
        1 - 2.0**-53,
        1 + 2.0**-52,
    ),
    # Where formulas of sin and cos end, and numbers next to multiples of pi/2.
    *(12800.0, 3.0e6, 1.5707963267948966, 3.141592653589793, 10391.0, 6381956970095103.0),
    # Where errors of f32 functions are largest: sigmoid, tanh, exp2, log, erf, expm1, log1p, log2, log10, exp.
    *(4.5389175, 0.903245, 126.47623, 1.4101553, 0.9485716, 0.35095635, 0.44216922, 1.4086092, 1.3220899, 59.944431),
)
"""Thresholds and values that have a meaning of their own; samples have their neighbours and negatives too."""


def function_text(function: str, element: str, lanes: int, count: int, arguments: int = 1) -> str:
    """A low module with a function @f that applies `math.function` to `count` elements, `lanes` at a time (0: one by
    one, as a scalar)."""
    buffer = f"memref<{count}x{element}>"
    vector = f"vector<{lanes}x{element}>" if lanes else element
    inputs = ["A", "B"][:arguments]
    load, store = ("vector.load", "vector.store") if lanes else ("memref.load", "memref.store")
    suffix = f", {vector}" if lanes else ""
    loads = "\n".join(f"    %{x.lower()} = {load} %{x}[%i] : {buffer}{suffix}" for x in inputs)
    params = ", ".join(
        [*(f'#low.param<"{x}", {buffer}, read, []>' for x in inputs), f'#low.param<"Y", {buffer}, write, []>']
    )
    return f"""
func.func @f({", ".join(f"%{x}: {buffer}" for x in [*inputs, "Y"])}) attributes {{
    low.params = [{params}], low.symbols = []}} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  %end = arith.constant {count} : index
  scf.for %i = %c0 to %end step %step {{
{loads}
    %y = math.{function} {", ".join(f"%{x.lower()}" for x in inputs)} : {vector}
    {store} %y, %Y[%i] : {buffer}{suffix}
  }}
  func.return
}}"""


class Bfloat16:
    """What `np.finfo` says of the formats that NumPy has."""

    minexp, maxexp, nmant = -126, 128, 7
    max = (2 - 2.0**-7) * 2.0**127


def errors(result: Array, exact: Array, limits: Any = None) -> Array:
    """The distance of each result from the exact value, in units in the last place of the result's format at the exact
    value. Infinity is where the format's range ends; NaN for a number, or a zero with the wrong sign, is infinitely
    far off. `limits` are those of the format where the results have come in a wider one."""
    limits = limits or np.finfo(result.dtype)
    wide = exact.dtype.type
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(exact))
        unit = np.ldexp(wide(1), np.clip(exponent, limits.minexp + 1, limits.maxexp) - 1 - limits.nmant)
        end = wide(limits.max) + np.ldexp(wide(1), limits.maxexp - 1 - limits.nmant)
        bounded = np.where(np.isinf(result), np.copysign(end, result), result.astype(wide))
        distance = np.abs(bounded - np.clip(exact, -end, end)) / unit
    wrong = (np.isnan(result) != np.isnan(exact)) | (
        (result == 0) & (exact == 0) & (np.signbit(result) != np.signbit(exact))
    )
    return np.where(wrong, np.inf, np.where(np.isnan(exact), 0, distance))


def special(dtype: Any) -> Array:
    """`SPECIAL` with two neighbours on both sides, of both signs."""
    with np.errstate(all="ignore"):
        numbers = np.array(SPECIAL).astype(dtype)
        above = np.nextafter(numbers, dtype(np.inf))
        below = np.nextafter(numbers, dtype(-np.inf))
        more = (np.nextafter(above, dtype(np.inf)), np.nextafter(below, dtype(-np.inf)))
    both = np.concatenate([numbers, above, below, *more])
    return np.concatenate([both, -both])


def sample(dtype: Any, count: int, seed: int = 0) -> Array:
    """`count` numbers: f32 from all encodings evenly; f64 half from all encodings, half from where functions bend."""
    rng = np.random.default_rng(seed)
    head = special(dtype)
    if dtype is np.float32:
        step = (1 << 32) // count
        numbers = np.arange(0, 1 << 32, step, dtype=np.uint64)[:count]
        numbers = (numbers + rng.integers(0, step, count, dtype=np.uint64)).astype(np.uint32).view(np.float32)
    else:
        encodings = rng.integers(0, 1 << 64, count // 2, dtype=np.uint64).view(np.float64)
        part = count // 8
        signs = rng.choice([-1.0, 1.0], part)
        bends = [rng.uniform(-750, 750, part), rng.uniform(-30, 30, part), rng.uniform(-2, 2, part)]
        numbers = np.concatenate([encodings, *bends, np.exp(rng.uniform(-40, 8, part)) * signs])
        numbers = np.resize(numbers, count)
    numbers[: len(head)] = head
    return numbers
