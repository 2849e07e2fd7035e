"""The bits of `stablehlo.rng_bit_generator`, as computed by XLA's CPU backend, from the key and the counter plus an
offset.

Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (2011); order of elements:
`xla/hlo/builder/lib/prng.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, TypeAlias, cast

from weft.support.errors import CompileError
from weft.texpr.expr import bits
from weft.texpr.shapes import Extent
from weft.texpr.stablehlo import Apply

Value: TypeAlias = Any
"""Unsigned integers."""

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_WEYL: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS_OF_PHILOX: Final = 10


def random_bits(
    apply: Apply, algorithm: str, indices: Sequence[Value], shape: Sequence[Extent], dtype: str, state: Sequence[Value]
) -> Value:
    generate = _threefry_bits if _is_threefry(algorithm, len(state)) else _philox_bits
    return generate(apply, indices, shape, dtype, state)


def next_state(
    apply: Apply, algorithm: str, shape: Sequence[Extent], dtype: str, state: Sequence[Value]
) -> list[Value]:
    key, low, *high = state
    if _is_threefry(algorithm, len(state)):
        counts = list(shape)
        if bits(dtype) < 64 and counts:
            split = _split(shape)
            counts[split] = (counts[split] + 1) // 2
        return [key, _plus(apply, low, _product(counts))]
    steps = _blocks(_product(shape), 2 if bits(dtype) == 64 else 4)
    found = _plus(apply, low, steps)
    carry = apply("cast", apply("less", found, low), dtype="uint64")
    return [key, found, *(_plus(apply, word, carry) for word in high)]


def _is_threefry(algorithm: str, words: int) -> bool:
    """DEFAULT is Philox, as in XLA's CPU backend."""
    if algorithm == "THREE_FRY":
        if words != 2:
            raise CompileError(f"the state of THREE_FRY has 2 elements, got {words}")
        return True
    if words not in (2, 3):
        raise CompileError(f"the state of PHILOX has 2 or 3 elements, got {words}")
    return False


def _product(extents: Sequence[Extent]) -> Any:
    total: Any = 1
    for extent in extents:
        total = total * extent
    return total


def _blocks(count: Any, size: int) -> Any:
    return (count + (size - 1)) // size


def _plus(apply: Apply, x: Value, y: Any) -> Value:
    return apply("add", x, y if isinstance(y, int) else apply("cast", y, dtype="uint64"))


def _linear(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    return reduce(lambda total, pair: total * pair[1] + pair[0], zip(indices, shape, strict=True), 0)


def _halves(apply: Apply, word: Value) -> tuple[Value, Value]:
    high = apply("right_shift", word, 32)
    return apply("cast", word, dtype="uint32"), apply("cast", high, dtype="uint32")


def _joined(apply: Apply, low: Value, high: Value) -> Value:
    wide = apply("left_shift", apply("cast", high, dtype="uint64"), 32)
    return apply("bitwise_or", wide, apply("cast", low, dtype="uint64"))


def _chosen(apply: Apply, number: Value, words: Sequence[Value]) -> Value:
    found = words[-1]
    for at, word in reversed(list(enumerate(words[:-1]))):
        found = apply("where", apply("equal", number, at), word, found)
    return found


def _split(shape: Sequence[Extent]) -> int:
    """The dimension whose even and odd elements are a block's words: the first even extent, else the greatest."""
    if not all(isinstance(extent, int) for extent in shape):
        raise CompileError("the shape of the bits is not known")
    extents = [int(cast("int", extent)) for extent in shape]
    even = [axis for axis, extent in enumerate(extents) if extent % 2 == 0]
    return even[0] if even else extents.index(max(extents))


def _threefry_bits(
    apply: Apply, indices: Sequence[Any], shape: Sequence[Any], dtype: str, state: Sequence[Value]
) -> Value:
    key, counter = state
    places, counts = list(indices), list(shape)
    word: Any = None
    if bits(dtype) < 64 and counts:
        split = _split(shape)
        counts[split] = (counts[split] + 1) // 2
        word = places[split] % 2
        places[split] = places[split] // 2
    blocks = _threefry(apply, _halves(apply, _plus(apply, counter, _linear(places, counts))), _halves(apply, key))
    if bits(dtype) == 64:
        return apply("cast", _joined(apply, *blocks), dtype=dtype)
    return apply("cast", blocks[0] if word is None else _chosen(apply, word, blocks), dtype=dtype)


def _threefry(apply: Apply, block: Sequence[Value], key: Sequence[Value]) -> tuple[Value, Value]:
    words = [*key, apply("bitwise_xor", apply("bitwise_xor", *key), _PARITY)]
    x, y = (apply("add", part, word) for part, word in zip(block, words, strict=False))
    for group in range(5):
        for amount in _ROTATIONS[group % 2]:
            x = apply("add", x, y)
            left = apply("left_shift", y, amount)
            y = apply("bitwise_or", left, apply("right_shift", y, 32 - amount))
            y = apply("bitwise_xor", x, y)
        x = apply("add", x, words[(group + 1) % 3])
        y = apply("add", apply("add", y, words[(group + 2) % 3]), group + 1)
    return x, y


def _philox_bits(
    apply: Apply, indices: Sequence[Any], shape: Sequence[Any], dtype: str, state: Sequence[Value]
) -> Value:
    key, low, high = (*state, state[0])[:3] if len(state) == 2 else state
    size = 2 if bits(dtype) == 64 else 4
    place = _linear(indices, shape)
    found = _plus(apply, low, place // size)
    if len(state) == 3:
        carry = apply("cast", apply("less", found, low), dtype="uint64")
        high = _plus(apply, high, carry)
    words = _philox(apply, [*_halves(apply, found), *_halves(apply, high)], _halves(apply, key))
    if bits(dtype) == 64:
        words = [_joined(apply, *words[:2]), _joined(apply, *words[2:])]
    return apply("cast", _chosen(apply, place % size, words), dtype=dtype)


def _philox(apply: Apply, block: Sequence[Value], key: Sequence[Value]) -> list[Value]:
    words = list(block)
    for step in range(_ROUNDS_OF_PHILOX):
        if step:
            key = [apply("add", word, number) for word, number in zip(key, _WEYL, strict=True)]
        (low, high), (other_low, other_high) = (
            _halves(apply, apply("multiply", apply("cast", word, dtype="uint64"), factor))
            for word, factor in zip(words[::2], _MULTIPLIERS, strict=True)
        )
        first = apply("bitwise_xor", apply("bitwise_xor", other_high, words[1]), key[0])
        third = apply("bitwise_xor", apply("bitwise_xor", high, words[3]), key[1])
        words = [first, other_low, third, low]
    return words
