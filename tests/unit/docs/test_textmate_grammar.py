"""The grammar of editors is made from the dialects, and colours the words that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from textmate_grammar import grammar

FILE = Path(__file__).parents[3] / "editors" / "vscode" / "syntaxes" / "mlir.tmLanguage.json"


def test_file_is_as_generated() -> None:
    command = "run: python docs/generators/textmate_grammar.py > editors/vscode/syntaxes/mlir.tmLanguage.json"
    assert FILE.read_text() == grammar(), command


@pytest.mark.parametrize(
    ("word", "scope"),
    [
        ("%a_1#2", "variable.other.value"),
        ("@f", "entity.name.function"),
        ("^bb0", "entity.name.label"),
        ("tir.for", "keyword.operator.operation"),
        ("sched.get_block", "keyword.operator.operation"),
        ("memref.load", "keyword.operator.operation"),
        ("f32", "storage.type"),
        ("!sched.loop", "support.type"),
        ("128", "constant.numeric"),
        ("// RUN: weft-opt", "comment.line.double-slash.test"),
    ],
)
def test_words(word: str, scope: str) -> None:
    rules = [rule for rule in json.loads(grammar())["patterns"] if "match" in rule]
    first = next(rule for rule in rules if re.match(rule["match"], word))
    assert first["name"] == f"{scope}.mlir"


def _plain_words(line: str, rules: list[dict[str, str]]) -> list[str]:
    """The words that no rule names, as TextMate reads a line: the earliest match, of these the first rule."""
    found: list[str] = []
    at = 0
    while at < len(line):
        matches = [m for rule in rules if (m := re.compile(rule.get("match", r'"[^"]*"')).search(line, at)) is not None]
        first = min(matches, key=lambda m: m.start(), default=None)
        end = len(line) if first is None else first.start()
        found += re.findall(r"\w+", line[at:end])
        at = end if first is None else max(first.end(), at + 1)
    return found


@pytest.mark.parametrize(
    ("file", "plain"),
    [
        ("examples/mm_relu.mlir", {"factors"}),
        ("tests/filecheck/tir/lower-vectorized-idle.mlir", {"d0", "slt"}),
        ("tests/filecheck/graph/donated.mlir", set()),
    ],
)
def test_files(file: str, plain: set[str]) -> None:
    """All words of a file are coloured, except names of dimensions, keys and predicates."""
    rules = json.loads(grammar())["patterns"]
    text = (FILE.parents[3] / file).read_text()
    assert {word for line in text.split("\n") for word in _plain_words(line, rules)} == plain
