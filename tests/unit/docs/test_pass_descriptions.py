"""Descriptions of passes are read from their definitions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from xdsl.passes import ModulePass

from weft.dialects.sched import PRIMITIVE_STEPS
from weft.driver.universe import PASSES, load
from weft.passes.pass_descriptions import PassOption, describe_pass


@dataclass(frozen=True)
class CountPass(ModulePass):
    """Count loops: all of them. Raises nothing.

    More text.

    Requires: loops,
    of any kind.

    ```mlir
    "test.op"() : () -> ()
    // becomes
    "test.op"() : () -> ()
    ```
    Leaves: the same.
    """

    name = "count"

    limit: int
    """The largest number
    that is counted to."""
    all_loops: bool = False
    names: tuple[str, ...] = ("a", "b")
    func: str | None = field(default=None, metadata={"meaning": "The function."})


@dataclass(frozen=True)
class PlainPass(ModulePass):
    name = "plain"
    size: int = 1


def test_description() -> None:
    found = describe_pass(CountPass)
    assert (found.name, found.summary) == ("count", "Count loops")
    assert found.text.startswith("Count loops: all of them. Raises nothing.\n\nMore text.\n\n```mlir\n")
    assert (found.requires, found.leaves) == ("loops, of any kind.", "the same.")
    assert found.options == (
        PassOption("limit", "an integer", None, "The largest number that is counted to."),
        PassOption("all-loops", "true or false", "false", ""),
        PassOption("names", "names separated by commas", "a,b", ""),
        PassOption("func", "a name or string", "none", "The function."),
    )
    assert found.usage == "count{limit= [all-loops=] [names=] [func=]}"


def test_a_pass_without_docstring() -> None:
    found = describe_pass(PlainPass)
    assert (found.summary, found.text, found.usage) == ("", "", "plain{[size=]}")


_PRIMITIVES = {step.pass_name for step in PRIMITIVE_STEPS.values()}


@pytest.mark.parametrize("name", PASSES)
def test_passes_and_their_options_are_described(name: str) -> None:
    found = describe_pass(load(PASSES[name]))
    assert found.summary
    assert name in _PRIMITIVES or (found.requires and found.leaves)
    assert [option.name for option in found.options if not option.meaning] == []
