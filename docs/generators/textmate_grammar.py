"""The TextMate grammar of IR for editors, from the dialects of weft and xDSL.

    python docs/generators/textmate_grammar.py > editors/vscode/syntaxes/mlir.tmLanguage.json

A test compares the file with the output.
"""

from __future__ import annotations

import json
import re

from weft.dialects.sched_parameters import SHORT_NAMES
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.driver.programs import context

_WORDS = ("attributes", "in", "iters", "loc", "private", "public", "nested", "step", "to", "else", *LoopKind, *IterKind)


def grammar() -> str:
    """The grammar, as JSON."""
    names = sorted(context().registered_dialect_names, key=lambda name: (-len(name), name))
    dialects = "|".join(re.escape(name) for name in names)
    patterns = [
        _rule("comment.line.double-slash.test.mlir", r"//\s*(RUN|[A-Z][A-Z0-9_-]*(-[A-Z]+)?):.*$"),
        _rule("comment.line.double-slash.mlir", r"//.*$"),
        {
            "name": "string.quoted.double.mlir",
            "begin": '"',
            "end": '"',
            "patterns": [_rule("constant.character.escape.mlir", r"\\([nt\"\\]|[0-9A-Fa-f]{2})")],
        },
        _rule("variable.other.value.mlir", r"%[\w$.-]+(#\d+)?"),
        _rule("entity.name.function.mlir", r"@[\w$.-]+"),
        _rule("entity.name.label.mlir", r"\^[\w$.-]+"),
        _rule("support.type.mlir", r"![A-Za-z_][\w$.]*"),
        _rule("support.constant.attribute.mlir", r"#[A-Za-z_][\w$.]*"),
        _rule("keyword.operator.operation.mlir", rf"\b({dialects})\.[A-Za-z_][\w.]*\b"),
        _rule("storage.type.mlir", r"\b([su]?i\d+|bf16|f\d+(E\d+M\d+\w*)?|index|none)\b"),
        _rule("storage.type.mlir", r"(?<=x)([su]?i\d+|bf16|f\d+(E\d+M\d+\w*)?|index)\b"),
        _rule(
            "support.type.mlir",
            r"\b(memref|tensor|vector|complex|tuple|dense|dense_resource|array|affine_map|strided)\b",
        ),
        _rule("keyword.other.mlir", rf"\b({'|'.join(_WORDS)})\b"),
        _rule("constant.language.mlir", r"\b(true|false|unit)\b"),
        _rule("storage.type.mlir", rf"(?<=[:,] )({'|'.join(SHORT_NAMES)})\b(?=,|$)"),
        # Extents of shapes, `4x?x8x`, except the first, which has no x before it.
        _rule("keyword.operator.dimension.mlir", r"(?<=[\d?])x(?=[\d?a-z])"),
        _rule("constant.numeric.mlir", r"(?<=[\d?]x)\d+"),
        _rule("constant.numeric.mlir", r"\b(0x[0-9A-Fa-f]+|\d+(\.\d*)?([eE][+-]?\d+)?)"),
        _rule("keyword.operator.mlir", r"->|=|:"),
    ]
    return json.dumps({"scopeName": "source.mlir", "name": "MLIR", "patterns": patterns}, indent=2) + "\n"


def _rule(name: str, match: str) -> dict[str, object]:
    return {"name": name, "match": match}


if __name__ == "__main__":
    print(grammar(), end="")
