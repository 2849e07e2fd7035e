"""What `weft-opt` prints is what was written: names, order and layout, but for comments and the implicit module."""

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.universe import XDSL_UNIVERSE

from weft.driver.parsing import parse_text
from weft.driver.universe import WEFT_UNIVERSE
from weft.tools.weft_opt import text_of

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.mlir"))


def context() -> Context:
    ctx = Context()
    for universe in (XDSL_UNIVERSE, WEFT_UNIVERSE):
        for name, factory in universe.all_dialects.items():
            ctx.register_dialect(name, factory)
    return ctx


def bare_lines(text: str) -> list[str]:
    """The lines of a program without comments, blank lines and indentation of the module."""
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("//")]
    if lines and lines[0] == "builtin.module {":
        lines = [line.removeprefix("  ") for line in lines[1:-1]]
    return lines


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.name)
def test_examples_print_as_they_are_written(example: Path) -> None:
    text = example.read_text()
    printed = text_of(parse_text(context(), text, example.name))
    assert bare_lines(printed) == bare_lines(text)
    assert text_of(parse_text(context(), printed, "printed")) == printed


SIBLINGS = """
func.func @f(%n: index) -> index {
  %0 = scf.for %i = %n to %n step %n iter_args(%x = %n) -> (index) {
    %y = arith.addi %x, %i : index
    %1 = arith.addi %y, %x : index
    scf.yield %1 : index
  }
  %1 = scf.for %i = %n to %n step %n iter_args(%x = %0) -> (index) {
    %y = arith.addi %x, %i : index
    %2 = arith.addi %y, %x : index
    scf.yield %2 : index
  }
  %y = arith.addi %0, %1 : index
  %y_1 = arith.addi %y, %1 : index
  func.return %y_1 : index
}
"""


def test_regions_reuse_names_and_numbers_but_hide_none_that_is_visible() -> None:
    printed = text_of(parse_text(context(), SIBLINGS, "siblings"))
    assert bare_lines(printed) == bare_lines(SIBLINGS)
