"""Patterns of PDL that `apply-pdl` refuses, with their places."""

import pytest

from weft.driver.apply_pdl import ApplyPdlPass
from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.support.errors import CompileError

PATTERN = """pdl.pattern : benefit(1) {{
  %type = pdl.type
  %x = pdl.operand
  %a = pdl.operation "graph.relu" (%x : !pdl.value) -> (%type : !pdl.type)
  {constraint}
  pdl.rewrite {root}{{
    %b = pdl.operation "graph.{name}" (%x : !pdl.value) -> (%type : !pdl.type)
    pdl.replace %a with %b
  }}
}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""


def apply(name="tanh", root="%a ", constraint=""):
    ctx = context()
    module = parse_text(ctx, PATTERN.format(name=name, root=root, constraint=constraint), "rules.mlir")
    ApplyPdlPass().apply(ctx, module)
    return str(module)


def test_patterns_of_the_program_itself():
    assert "= graph.tanh %" in apply()
    not_constant = 'pdl.apply_native_constraint "constant"(%x : !pdl.value)'
    assert "= graph.tanh %" not in apply(constraint=not_constant)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"root": ""}, r"rules.mlir:6:3: error: pdl.rewrite needs the operation that it rewrites"),
        ({"name": "tan_h"}, r"rules.mlir:6:3: error: Could not find op type for name graph.tan_h"),
        (
            {"constraint": 'pdl.apply_native_constraint "small"(%x : !pdl.value)'},
            r"rules.mlir:6:3: error: small PDL native constraint is not registered",
        ),
    ],
)
def test_patterns_that_are_refused(options, message):
    with pytest.raises(CompileError, match=message):
        apply(**options)


def test_files_that_hold_no_patterns(tmp_path):
    """A file is sought in the current folder, and beside the program."""
    ctx = context()
    program = parse_text(ctx, "func.func private @f()", str(tmp_path / "model.mlir"))
    for text, message in (
        (None, r"there is no file 'rules.pdl', neither in the current folder nor in that of the program"),
        ("func.func private @g()", r"'rules.pdl' has no pdl.pattern that rewrites"),
        ("pdl.patern", r"rules.pdl:1:1: error: .*pdl.patern"),
    ):
        if text is not None:
            (tmp_path / "rules.pdl").write_text(text)
        with pytest.raises(CompileError, match=message):
            ApplyPdlPass("rules.pdl").apply(ctx, program)
    with pytest.raises(CompileError, match=r"the program has no pdl.pattern that rewrites"):
        ApplyPdlPass().apply(ctx, program)
