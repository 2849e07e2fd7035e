"""Mutated IR: texts of files with tokens dropped, doubled, swapped and replaced, lines moved between files."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TOKEN = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@#!^][\w$.]*|-?\d+\.\d+(?:e[-+]?\d+)?|0x[0-9A-Fa-f]+|-?\d+|[A-Za-z_][\w.$]*|->|\s+|.',
    re.DOTALL,
)
_NUMBERS = (
    *("0", "1", "-1", "2", "7", "64", "1000000", "2147483647", "2147483648", "-2147483649", "4611686018427387904"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "0.5", "1.0e400"),
    *("100000000000000000000000000000", "?", "0x7FC00000"),
)
_TYPES = (
    *("f16", "bf16", "f32", "f64", "f80", "f128", "i1", "i8", "i32", "i64", "i128", "i0", "si32", "ui8", "index"),
    *("memref<4xf32>", "memref<f32>", "memref<?x?xf32>", "memref<*xf32>", "tensor<4xf32>", "tensor<?xf32>", "none"),
    *("vector<4xf32>", "memref<4x4xf32, strided<[?, 1], offset: ?>>", "memref<0xf32>", "complex<f32>", "() -> ()"),
)
_ATTRIBUTES = (
    *("{x}", "{prefetch = 3}", "attributes {low.params = []}", 'attributes {low.symbols = ["n"]}', "{low.unroll}"),
    *("attributes {tir.function}", "{reassociate = 1}", "attributes {low.params = 1}", "{dimension = 9 : i64}"),
)
_TYPE = re.compile(r"(?:bf16|f\d+|[su]?i\d+|index|memref|tensor|vector)$")
_NUMBER = re.compile(r"-?\d|0x")


@cache
def sources() -> tuple[str, ...]:
    """The chunks of the IR files of the repository, without comments."""
    chunks: list[str] = []
    for path in sorted([*(ROOT / "tests").rglob("*.mlir"), *(ROOT / "examples").glob("*.mlir")]):
        for chunk in re.split(r"^// -----.*\n?", path.read_text(), flags=re.MULTILINE):
            text = "".join(line for line in chunk.splitlines(keepends=True) if not line.lstrip().startswith("//"))
            if text.strip() and len(text) < 8000:
                chunks.append(text)
    return tuple(chunks)


def tokens_of(text: str) -> list[str]:
    return _TOKEN.findall(text)


@cache
def _operations() -> tuple[str, ...]:
    """The names of operations that the sources use."""
    words = {token for text in sources() for token in tokens_of(text)}
    return tuple(sorted(word for word in words if re.fullmatch(r"[a-z]+\.[a-z_]+", word)))


def mutated(seed: int, extra: tuple[str, ...] = ()) -> str:
    """The text of a case: one of the sources (or of `extra`, such as lowered ones), changed in one to four places."""
    rng = random.Random(seed)
    pool = extra if extra and rng.random() < 0.4 else sources()
    text = rng.choice(pool)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        text = _mutated_once(text, rng, pool)
    return text


def _mutated_once(text: str, rng: random.Random, pool: tuple[str, ...]) -> str:
    if rng.random() < 0.25:
        return _with_other_lines(text, rng, pool)
    tokens = tokens_of(text)
    places = [at for at, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return text
    kind = rng.random()
    if kind < 0.25:
        numbers = [at for at in places if _NUMBER.match(tokens[at])]
        if numbers:
            tokens[rng.choice(numbers)] = rng.choice(_NUMBERS)
    elif kind < 0.4:
        types = [at for at in places if _TYPE.fullmatch(tokens[at])]
        if types:
            tokens[rng.choice(types)] = rng.choice(_TYPES)
    elif kind < 0.6:
        names = [at for at in places if tokens[at][0] in '%@"^#']
        if names:
            at = rng.choice(names)
            tokens[at] = rng.choice([token for token in tokens if token[0] == tokens[at][0]])
    elif kind < 0.7:
        words = [at for at in places if "." in tokens[at] and tokens[at][0].isalpha()]
        if words:
            tokens[rng.choice(words)] = rng.choice(_operations())
    elif kind < 0.75:
        tokens.insert(rng.choice(places) + 1, f" {rng.choice(_ATTRIBUTES)} ")
    elif kind < 0.85:
        del tokens[rng.choice(places)]
    elif kind < 0.92:
        at = rng.choice(places)
        tokens.insert(at, tokens[at])
    else:
        one, other = rng.choice(places), rng.choice(places)
        tokens[one], tokens[other] = tokens[other], tokens[one]
    return "".join(tokens)


def _with_other_lines(text: str, rng: random.Random, pool: tuple[str, ...]) -> str:
    """Lines dropped, doubled, swapped, or taken from another text."""
    lines = text.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[one]
        case 1:
            lines.insert(one, lines[one])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            source = rng.choice(pool).splitlines(keepends=True)
            start = rng.randrange(len(source))
            lines[one:one] = source[start : start + rng.randrange(1, 6)]
    return "".join(lines)
