"""Random numbers by seed and element index: Philox4x32-10 (Salmon et al. 2011).

The words of the element at row-major position p have counter (p mod 2^32, p div 2^32, 0, 0) and key (seed mod 2^32,
seed div 2^32), on every target and for every schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from weft.support.argument_types import shown
from weft.texpr.expr import Expr, as_expr, error, is_float
from weft.texpr.math import cos, log, select, sqrt
from weft.texpr.ops.arguments import compute, constant, floating, integer, result_dtype, sum_dtype
from weft.texpr.shapes import Extent, checked_shape
from weft.texpr.tensor import Tensor

__all__ = ["bernoulli", "dropout", "random_normal", "random_uniform"]

_WORD = (1 << 32) - 1
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10

_PARTS = {"float16": 11, "bfloat16": 8, "float32": 24}
"""Bits of random numbers: all multiples of the dtype's spacing below 1 occur."""


def _seed(what: str, seed: Tensor | int) -> Callable[[], Expr]:
    """The seed as int64, of an integer or a tensor of one."""
    if not isinstance(seed, Tensor):
        number = integer(seed, f"{what}: the seed")
        if not -(1 << 63) <= number < 1 << 63:
            raise error(f"{what}: the seed has 64 bits, got {shown(seed)}")
        return lambda: constant(number, "int64")
    if seed.ndim or not seed.dtype.startswith(("int", "uint")):
        raise error(
            f"{what}: the seed is an integer or a tensor of one, got {seed.name} of {seed.dtype}, rank {seed.ndim}"
        )
    return lambda: seed().astype("int64")


def _words(position: Expr, seed: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Words as int64s from 0 to 2^32 - 1. Products wrap; shifts give upper words."""
    state = position & _WORD, (position >> 32) & _WORD, constant(0, "int64"), constant(0, "int64")
    keys = seed & _WORD, (seed >> 32) & _WORD
    for _ in range(_ROUNDS):
        first, second = state[0] * _MULTIPLIERS[0], state[2] * _MULTIPLIERS[1]
        state = (
            ((second >> 32) & _WORD) ^ state[1] ^ keys[0],
            second & _WORD,
            ((first >> 32) & _WORD) ^ state[3] ^ keys[1],
            first & _WORD,
        )
        keys = (keys[0] + _KEY_STEPS[0]) & _WORD, (keys[1] + _KEY_STEPS[1]) & _WORD
    return state


def _fraction(words: tuple[Expr, Expr], dtype: str, *, from_one: bool = False) -> Expr:
    """A number in [0, 1) or (0, 1]: upper bits of a word, of two for float64."""
    if dtype == "float64":
        count = (words[0] >> 5) * (1 << 26) + (words[1] >> 6)
        number, bits = count, 53
    else:
        bits = _PARTS[dtype]
        number = words[0] >> (32 - bits)
    if from_one:
        number = number + 1
    return number.astype(sum_dtype(dtype)) * 2.0**-bits


def _drawn(
    shape: tuple[Extent, ...],
    seed: Callable[[], Expr],
    element: Callable[[tuple[Expr, Expr, Expr, Expr]], Expr],
    name: str,
) -> Tensor:
    def at(*indices: Expr) -> Expr:
        position: Expr = as_expr(0)
        for index, extent in zip(indices, shape, strict=True):
            position = position * extent + index
        return element(_words(position, seed()))

    return compute(shape, at, name)


def random_uniform(
    shape: object,
    seed: Tensor | int = 0,
    low: float = 0.0,
    high: float = 1.0,
    dtype: object = "float32",
    *,
    name: str = "random_uniform",
) -> Tensor:
    """Uniformly distributed numbers from `low` to `high` (exclusive, up to rounding).

    low + u * (high - low), with u = (w0 >> 8) / 2^24 of the first word (Philox4x32-10, see `weft.texpr.ops.random`);
    the upper 11 bits for float16, 8 for bfloat16; ((w0 >> 5) * 2^26 + (w1 >> 6)) / 2^53 for float64. The seed is a
    64-bit integer, or a tensor of one.

    Dtypes: floats.
    Equals: `low + philox_fractions(shape, seed) * (high - low)`; ONNX RandomUniform, with other numbers.
    """
    what = "random_uniform"
    result = _float(what, dtype)
    start, length = float(low), float(high) - float(low)

    def element(words: tuple[Expr, Expr, Expr, Expr]) -> Expr:
        return (_fraction(words[:2], result) * length + start).astype(result)

    return _drawn(checked_shape(shape, f"{what}: the shape"), _seed(what, seed), element, name)


def random_normal(
    shape: object,
    seed: Tensor | int = 0,
    mean: float = 0.0,
    scale: float = 1.0,
    dtype: object = "float32",
    *,
    name: str = "random_normal",
) -> Tensor:
    """Normally distributed numbers with given mean and standard deviation.

    mean + scale * sqrt(-2 log(u)) * cos(2 pi v) (Box and Muller 1958), with u = ((w0 >> 8) + 1) / 2^24 and v = (w1 >>
    8) / 2^24, see `random_uniform`. 16-bit floats use float32; float64 takes two words for u and v each.

    Dtypes: floats.
    Equals: `mean + scale * np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)`; ONNX RandomNormal, with other numbers.
    """
    what = "random_normal"
    result = _float(what, dtype)
    wide = sum_dtype(result)

    def element(words: tuple[Expr, Expr, Expr, Expr]) -> Expr:
        second = words[2:] if wide == "float64" else (words[1], words[1])
        size = sqrt(log(_fraction(words[:2], wide, from_one=True)) * -2.0)
        return (size * cos(_fraction(second, wide) * (2 * math.pi)) * float(scale) + float(mean)).astype(result)

    return _drawn(checked_shape(shape, f"{what}: the shape"), _seed(what, seed), element, name)


def _float(what: str, dtype: object) -> str:
    result = result_dtype(dtype, "float32")
    if not is_float(result):
        raise error(f"{what} makes floats, got {result}")
    return result


def bernoulli(data: Tensor, seed: Tensor | int = 0, dtype: object = None, *, name: str = "bernoulli") -> Tensor:
    """1 with the probability given by each element, else 0: whether u < x, with u of float32 as in `random_uniform`.

    Dtypes: floats; the result is of `dtype` (that of the data).
    Equals: `(philox_fractions(data.shape, seed) < data).astype(dtype)`; ONNX Bernoulli, with other numbers.
    """
    source = floating(data, "bernoulli: data")
    result = result_dtype(dtype, source.dtype)
    found = random_uniform(source.shape, seed, name=f"{name}_uniform")
    wide = "float64" if source.dtype == "float64" else "float32"

    def element(*i: Expr) -> Expr:
        return (found(*i).astype(wide) < source(*i).astype(wide)).astype(result)

    return compute(source.shape, element, name)


def dropout(
    data: Tensor,
    seed: Tensor | int = 0,
    ratio: float = 0.5,
    is_training: bool = False,
    *,
    name: str = "dropout",
) -> tuple[Tensor, Tensor]:
    """Elements set to 0 with probability `ratio`, others divided by 1 - ratio, and the mask of kept ones: u >= ratio,
    with u of float32 as in `random_uniform`. Outside of training, the data and ones.

    Results: `<name>`, `<name>_mask`. Raises CompileError for a ratio outside of 0 to 1 (exclusive).

    Dtypes: floats; the mask is bool.
    Equals: `torch.nn.functional.dropout(data, ratio, is_training)`, with other numbers; ONNX Dropout.
    """
    source = floating(data, "dropout: data")
    share = float(ratio)
    if not 0 <= share < 1:
        raise error(f"dropout: the ratio is from 0 to 1 (exclusive), got {shown(ratio)}")
    draw = _seed("dropout", seed)
    if not is_training or share == 0:
        mask = compute(source.shape, lambda *_: constant(True, "bool"), f"{name}_mask")
        return compute(source.shape, lambda *i: source(*i), name), mask
    mask = _drawn(source.shape, draw, lambda words: _fraction(words[:2], "float32") >= share, f"{name}_mask")
    wide = sum_dtype(source.dtype)

    def element(*i: Expr) -> Expr:
        return select(mask(*i), source(*i).astype(wide) * (1.0 / (1.0 - share)), 0.0).astype(source.dtype)

    return compute(source.shape, element, name), mask
