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
