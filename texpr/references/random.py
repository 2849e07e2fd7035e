"""Random numbers by Philox4x32-10 (Salmon et al. 2011), on uint64 arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.texpr.references.arguments import Array, array_dtype

_WORD = np.uint64(0xFFFFFFFF)
_PARTS = {"float16": 11, "bfloat16": 8, "float32": 24}


def philox(counter: Array, key: Sequence[int]) -> list[Array]:
    """The words of each 64-bit counter, whose upper half of 128 bits is 0."""
    shift = np.uint64(32)
    words = [counter & _WORD, counter >> shift, np.zeros_like(counter), np.zeros_like(counter)]
    keys = [np.uint64(part) for part in key]
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (second >> shift) ^ words[1] ^ keys[0],
            second & _WORD,
            (first >> shift) ^ words[3] ^ keys[1],
            first & _WORD,
        ]
        keys = [(keys[0] + np.uint64(0x9E3779B9)) & _WORD, (keys[1] + np.uint64(0xBB67AE85)) & _WORD]
    return words


def _words(shape: Sequence[int], seed: Array | int) -> list[Array]:
    number = int(seed) % (1 << 64)
    count = int(np.prod([*shape, 1]))
    counter = np.arange(count, dtype=np.uint64).reshape(tuple(shape))
    return philox(counter, (number & 0xFFFFFFFF, number >> 32))


def _fraction(words: Sequence[Array], dtype: str, first: int = 0) -> Array:
    if dtype == "float64":
        count = (words[0] >> np.uint64(5)) * np.uint64(1 << 26) + (words[1] >> np.uint64(6))
        return (count + np.uint64(first)).astype(np.float64) * 2.0**-53
    bits = _PARTS[dtype]
    return (((words[0] >> np.uint64(32 - bits)) + np.uint64(first)).astype(np.float64) * 2.0**-bits).astype(np.float32)


def random_uniform(shape: Sequence[int], seed: Array | int, low: float, high: float, dtype: str) -> Array:
    part = _fraction(_words(shape, seed)[:2], dtype)
    return (part * part.dtype.type(high - low) + part.dtype.type(low)).astype(array_dtype(dtype))


def random_normal(shape: Sequence[int], seed: Array | int, mean: float, scale: float, dtype: str) -> Array:
    words, wide = _words(shape, seed), "float64" if dtype == "float64" else "float32"
    first, second = (words[:2], words[2:]) if wide == "float64" else (words[:1], words[1:2])
    u, v = _fraction(first, wide, 1).astype(np.float64), _fraction(second, wide).astype(np.float64)
    return mean + scale * np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


def bernoulli(data: Array, seed: Array | int, dtype: str | None) -> Array:
    found = _fraction(_words(data.shape, seed), "float32") < data
    return found.astype(data.dtype if dtype is None else array_dtype(dtype))


def dropout(data: Array, seed: Array | int, ratio: float, is_training: bool) -> tuple[Array, Array]:
    if not is_training or ratio == 0:
        return data, np.ones(data.shape, bool)
    mask = _fraction(_words(data.shape, seed), "float32") >= np.float32(ratio)
    return np.where(mask, data / (1 - ratio), 0), mask
