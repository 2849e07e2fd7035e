"""Errors have codes, and `weft explain` knows each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from error_docs import errors_markdown

import weft
from weft.passes.schedule.primitive import PRIMITIVES, primitive_class
from weft.support.error_codes import CLASSES, ErrorClass, class_of, with_code
from weft.support.errors import CompileError, ScheduleError, Violation
from weft.tools.explain_command import explanations
from weft.tools.weft_cli import execute

PAGE = Path(__file__).parents[3] / "docs" / "errors.md"


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.code)
def test_example_raises_an_error_of_the_class(kind: ErrorClass) -> None:
    with pytest.raises(CompileError) as raised:
        exec(kind.example, {"weft": weft})
    assert class_of(raised.value.message) is kind
    assert f" [{kind.code}]" in str(raised.value)


def test_codes_are_unique_and_of_one_form() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+\.[a-z-]+", code) for code in codes)
    assert not {code.partition(".")[0] for code in codes} & set(PRIMITIVES)


def test_other_messages_have_none() -> None:
    assert with_code("something else is wrong") == "something else is wrong"
    assert str(CompileError("something else is wrong")) == "error: something else is wrong"


def test_every_requirement_has_a_code() -> None:
    known = explanations()
    for name in PRIMITIVES:
        for number, title in enumerate(primitive_class(name).requirements(), start=1):
            assert known[f"{name}.{number}"].title == title
            assert title in known[f"{name}.{number}"].meaning


def test_refusals_end_with_the_code() -> None:
    error = ScheduleError("vectorize(%i)", 2, "the extent is constant", Violation("it is %n"), subject='block "B"')
    assert str(error).split("\n")[0].endswith("requirement 2, the extent is constant [vectorize.2]")
    assert ScheduleError("vectorize(%i)", 0, "a loop is expected", Violation("got 3")).code == ""


def test_refusal_of_a_schedule() -> None:
    module = weft.parse(
        "func.func @f(%A: memref<8xf32>) {\n  tir.for %i in 8 {\n"
        '    tir.block "B" iters(%v: spatial<8>) = [%i] {\n'
        "      %z = arith.constant 0.0 : f32\n      memref.store %z, %A[%v] : memref<8xf32>\n"
        "    }\n  }\n  func.return\n}"
    )
    schedule = weft.Schedule(module)
    block = schedule.get_block("B")
    (loop,) = schedule.get_loops(block)
    with pytest.raises(ScheduleError, match=r"\[decompose_reduction\.\d\]\n") as raised:
        schedule.decompose_reduction(block, loop)
    assert raised.value.code in explanations()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["vectorize.1"], "vectorize.1: "),
        (["tir.out-of-bounds"], "tir.out-of-bounds: out of bounds"),
        (["f.mlir:3:1: error: unknown pass 'csee', did you mean 'cse'? [pass.unknown]"], "pass.unknown: unknown"),
        (["error: unknown target kind 'lvm'"], "target.unknown-kind: unknown kind"),
        ([], "pass.unknown "),
    ],
)
def test_command(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["explain", *words]) == 0
    assert expected in capsys.readouterr().out


def test_unknown_code() -> None:
    with pytest.raises(CompileError, match=r"there is no error 'vectorise\.1', did you mean 'vectorize\.1'"):
        execute(["explain", "vectorise.1"])


def test_page_is_as_generated() -> None:
    assert PAGE.read_text() == errors_markdown(), "run: python docs/generators/error_docs.py > docs/errors.md"
