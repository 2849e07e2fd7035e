"""`--list-passes`, `--help-pass`, `--list-targets`: passes and targets describe themselves."""

import dataclasses
import shlex
from typing import Any

import pytest
from xdsl.universe import Universe

from weft.driver.universe import WEFT_UNIVERSE
from weft.passes.pass_descriptions import describe_pass
from weft.passes.pipeline_text import parse_passes, parse_pipeline_text
from weft.support.errors import CompileError
from weft.tools.pass_help import example, full_help, pass_listing

UNIVERSE = Universe.get_multiverse()


def test_every_target_of_weft_and_its_options_are_described() -> None:
    for factory in WEFT_UNIVERSE.all_targets.values():
        about = describe_pass(factory())
        assert about.summary
        assert [option.name for option in about.options if not option.meaning] == []


def check_example(name: str, available: dict[str, Any], what: str) -> None:
    kind = available[name]()
    _, _, flag, text = shlex.split(example(kind, describe_pass(kind), what))
    if flag == "-p":
        (found,) = parse_passes(text, available)
    else:
        (found,) = parse_pipeline_text(text, available, what)
    assert found.name == kind.name


def test_every_example_is_a_command_that_parses() -> None:
    for name in WEFT_UNIVERSE.all_passes:
        check_example(name, UNIVERSE.all_passes, "pass")
    for name in WEFT_UNIVERSE.all_targets:
        check_example(name, UNIVERSE.all_targets, "target")


@pytest.mark.parametrize("name", sorted(WEFT_UNIVERSE.all_passes))
def test_options_with_defaults(name: str) -> None:
    """They are optional, described with the default, and parse back from their text, strings too."""
    kind = WEFT_UNIVERSE.all_passes[name]()
    about = describe_pass(kind)
    _, _, _, text = shlex.split(example(kind, about, "pass"))
    (made,) = parse_passes(text, UNIVERSE.all_passes)
    assert isinstance(made, kind)
    given = {spelling.partition("=")[0] for spelling in text.partition("{")[2].removesuffix("}").split()}
    described = {option.name: option.default for option in about.options}
    for option in dataclasses.fields(kind):
        if option.default is not dataclasses.MISSING and option.name.replace("_", "-") not in given:
            assert getattr(made, option.name) == option.default
            if option.default is None or isinstance(option.default, str):
                assert described[option.name.replace("_", "-")] == (option.default or "none")
    strings = {f.name: "two words" for f in dataclasses.fields(kind) if isinstance(f.default, str) and f.name != "name"}
    changed = dataclasses.replace(made, **strings)
    assert parse_passes(str(changed.pipeline_pass_spec()), UNIVERSE.all_passes) == (changed,)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_example_of_xdsl_is_a_command_that_parses() -> None:
    for name in UNIVERSE.all_passes.keys() - WEFT_UNIVERSE.all_passes.keys():
        check_example(name, UNIVERSE.all_passes, "pass")


def test_the_list_has_every_pass_under_the_first_word_of_its_name() -> None:
    text = pass_listing(UNIVERSE.all_passes, ["tir", "memref", "memref_stream"])
    lines = text.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(UNIVERSE.all_passes)
    assert "  tir-fuse" in text.partition("\ntir:\n")[2].partition("\n\n")[0]
    assert "  memref-stream-legalize " in text.partition("\nmemref-stream:\n")[2].partition("\n\n")[0]
    assert "\n  cse" in text.partition("\nother passes:\n")[2]


def test_a_pass_that_cannot_be_imported_is_listed_with_the_reason() -> None:
    def broken() -> Any:
        raise ImportError("no module named 'acme'")

    available = {"acme-lower": broken}
    assert "acme-lower  (pass 'acme-lower' cannot be loaded: ImportError: no module" in pass_listing(available, [])
    with pytest.raises(CompileError, match="pass 'acme-lower' cannot be loaded"):
        parse_passes("acme-lower", available)


def test_help_of_a_pass_with_options() -> None:
    assert full_help("verify-level", UNIVERSE.all_passes, "pass").endswith(
        "\n\noptions:\n  level: a name or string (required)\n      The level: `graph`, `te`, `tir` or `low`.\n\n"
        "example:\n  weft-opt program.mlir -p 'verify-level{level=tir}'"
    )
    text = full_help("tir-split", UNIVERSE.all_passes, "pass")
    assert text.startswith("pass 'tir-split' of weft\n\n  Split a loop into nested loops whose extents are the factors")
    assert (
        "  factors: integers separated by commas (required)\n      The extents of the new loops, outermost first"
        in text
    )
    assert "  func: a name or string (default: none)\n" in text
    assert text.endswith("weft-opt program.mlir -p 'tir-split{block=B loop=0 factors=0,4}'")


def test_help_of_passes_of_xdsl() -> None:
    assert "\n\nIt has no options.\n\nexample:\n  weft-opt program.mlir -p cse" in full_help(
        "cse", UNIVERSE.all_passes, "pass"
    )
    text = full_help("convert-scf-to-openmp", UNIVERSE.all_passes, "pass")
    assert "  schedule: 'static' or 'dynamic' or 'auto' (default: none)" in text
    assert "  nested: true or false (default: false)" in text
    text = full_help("apply-eqsat-pdl", UNIVERSE.all_passes, "pass")
    assert "  max-iterations: an integer (default: 20)\n      Maximum number of iterations" in text


def test_statistics_are_part_of_the_help() -> None:
    text = full_help("tir-check-bounds", UNIVERSE.all_passes, "pass")
    assert "statistics:\n  accesses-guarded: loads and stores that are not proved in bounds" in text


def test_unknown_names() -> None:
    with pytest.raises(CompileError, match="unknown pass 'tir-splt', did you mean 'tir-split'"):
        full_help("tir-splt", UNIVERSE.all_passes, "pass")
