"""The lexer with one pattern for frequent tokens finds the tokens and errors of xDSL's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from weft.driver import parsing

FILES = sorted((Path(__file__).parents[2] / "filecheck").rglob("*.mlir"))
PIECES = [
    *'%@#!^abcXx09._-$"\\ \n/{}()[]<>:,=+*?|éµ²½١\t\v\f\u00a0',
    *("->", "{-#", "#-}", "//", "0x1F", "0xi32", "1.5e3", "...", "12xf32", "-3", "%a#1", '"\\0A"', "@f", '@"g"'),
]


class _Original(MLIRLexer):
    _unescaped_characters_regex = parsing._Lexer._unescaped_characters_regex  # pyright: ignore[reportPrivateUsage]


def tokens(lexer: MLIRLexer) -> list[object]:
    """Kinds and places, and the error that ends the text, if any."""
    found: list[object] = []
    while True:
        try:
            token = lexer.lex()
        except ParseError as error:
            return [*found, str(error), lexer.pos]
        found.append((token.kind, token.span, type(token.span), lexer.pos))
        if token.kind is MLIRTokenKind.EOF:
            return found


def check(text: str) -> None:
    given = Input(text, "f.mlir")
    assert tokens(parsing._Lexer(given)) == tokens(_Original(given))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("part", range(4))
def test_files(part: int) -> None:
    assert len(FILES) > 100
    for file in FILES[part::16]:
        check(file.read_text(encoding="utf-8", errors="replace"))


def test_random_texts() -> None:
    rng = random.Random(0)
    for _ in range(3000):
        check("".join(rng.choices(PIECES, k=rng.randint(1, 14))))
