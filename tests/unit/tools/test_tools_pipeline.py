"""Pass and target specifications: what is accepted, and what a wrong one says."""

import re
from dataclasses import dataclass
from typing import IO, ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.target import Target

from weft.passes.pipeline_text import parse_pipeline_text
from weft.support.errors import CompileError


@dataclass(frozen=True)
class SplitPass(ModulePass):
    name: ClassVar[str] = "tir-split"

    block: str
    loop: int
    factors: tuple[int, ...] = ()
    guess: bool = False
    share: float = 0.5
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.loop < 0:
            raise ValueError(f"loop counts from 0, got {self.loop}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class PlainPass(ModulePass):
    name: ClassVar[str] = "plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pass


@dataclass(frozen=True)
class TextTarget(Target):
    name: ClassVar[str] = "text"
    width: int = 80

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        pass


PASSES = {"tir-split": lambda: SplitPass, "plain": lambda: PlainPass}


def test_options_of_every_type() -> None:
    split, plain = parse_pipeline_text(
        'tir-split{block="C 1" loop=2 factors=0,4 guess share=1 limit=7},plain', PASSES, "pass"
    )
    assert split == SplitPass("C 1", 2, (0, 4), True, 1.0, 7)
    assert isinstance(split, SplitPass) and isinstance(split.share, float)
    assert plain == PlainPass()


def test_defaults_and_a_list_of_one() -> None:
    (split,) = parse_pipeline_text("tir-split{block=C loop=0 factors=4 guess=false}", PASSES, "pass")
    assert split == SplitPass("C", 0, (4,))


def test_an_empty_pipeline() -> None:
    assert parse_pipeline_text("", PASSES, "pass") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tir-splt{block=C}", "error: unknown pass 'tir-splt', did you mean 'tir-split'?"),
        ("zzz", "error: unknown pass 'zzz' (known: 'plain', 'tir-split')"),
        ("tir-split{loop=1}", "error: pass 'tir-split' needs option 'block', a name or string"),
        ("tir-split{block=C}", "error: pass 'tir-split' needs option 'loop', an integer"),
        ("tir-split{block=C loop=x}", "error: pass 'tir-split': option 'loop' expects an integer, got 'x'"),
        ("tir-split{block=C loop=true}", "error: pass 'tir-split': option 'loop' expects an integer, got true"),
        ("tir-split{block=C loop=1.5}", "error: pass 'tir-split': option 'loop' expects an integer, got 1.5"),
        ("tir-split{block=C loop=1,2}", "error: pass 'tir-split': option 'loop' expects an integer, got 1,2"),
        ("tir-split{block=C loop}", "error: pass 'tir-split': option 'loop' expects an integer, got nothing"),
        ("tir-split{block=3 loop=1}", "error: pass 'tir-split': option 'block' expects a name or string, got 3"),
        (
            "tir-split{block=C loop=1 factors=a,2}",
            "error: pass 'tir-split': option 'factors' expects integers separated by commas, got 'a',2",
        ),
        (
            "tir-split{block=C loop=1 factors=true}",
            "error: pass 'tir-split': option 'factors' expects integers separated by commas, got true",
        ),
        ("tir-split{block=C loop=1 guess=2}", "error: pass 'tir-split': option 'guess' expects true or false, got 2"),
        ("tir-split{block=C loop=1 share=x}", "error: pass 'tir-split': option 'share' expects a number, got 'x'"),
        (
            "tir-split{block=C loop=1 factor=4}",
            "error: pass 'tir-split' has no option 'factor', did you mean 'factors'?",
        ),
        ("plain{x=1}", "error: pass 'plain' has no option 'x': it has no options"),
        ("tir-split{block=C loop=-1}", "error: pass 'tir-split': loop counts from 0, got -1"),
        ("plain{", "<pass option>:1:7: error: Expected argument name here\nplain{\n      ^"),
        ("plain plain", "<pass option>:1:6: error: Expected a comma or pass arguments here\nplain plain\n     ^"),
        (
            "tir-split{block=%C}",
            "<pass option>:1:17: error: Unknown token\ntir-split{block=%C}\n                ^",
        ),
    ],
)
def test_what_a_wrong_pipeline_says(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_pipeline_text(text, PASSES, "pass")
    assert re.sub(r" \[pass\.[a-z-]+\]$", "", str(caught.value).rstrip()) == message


def test_targets_speak_of_targets() -> None:
    assert parse_pipeline_text("text{width=4}", {"text": lambda: TextTarget}, "target") == (TextTarget(4),)
    with pytest.raises(CompileError, match="unknown target 'txt', did you mean 'text'"):
        parse_pipeline_text("txt", {"text": lambda: TextTarget}, "target")
