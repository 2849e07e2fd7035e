"""The view of `weft explore` without a terminal."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

pytest.importorskip("textual")

from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from weft.tools.explore.app import ConfirmScreen, ExploreApp, Lines, ProgramView
from weft.tools.explore.operations import OPERATIONS, Operation, Reply, Workbench

ROOT = Path(__file__).parents[3]
MM_RELU = str(ROOT / "examples/mm_relu.mlir")


class View:
    """A driver of the view."""

    def __init__(self, app: ExploreApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settled()

    async def enter(self, line: str) -> None:
        """Type a command line."""
        await self.pilot.press("colon")
        self.app.query_one("#prompt", Input).value = line
        await self.pilot.pause()
        await self.press("enter")

    async def settled(self) -> None:
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    def text(self, widget: str) -> str:
        return str(self.app.query_one(widget, Static).render())

    @property
    def reply(self) -> str:
        return self.text("#reply")

    @property
    def program(self) -> ProgramView:
        return self.app.query_one("#program", ProgramView)

    def lines(self, widget: str = "#program") -> list[str]:
        """The visible lines."""
        view = self.app.query_one(widget, Lines)
        return [view.render_line(y).text.rstrip() for y in range(view.size.height)]

    def pipeline(self) -> list[str]:
        options = self.app.query_one("#pipeline", OptionList)
        return [str(options.get_option_at_index(at).prompt).strip() for at in range(options.option_count)]


def with_view(body: Callable[[View], Awaitable[None]], file: str = MM_RELU, width: int = 160, height: int = 40) -> None:
    async def run() -> None:
        workbench = Workbench()
        OPERATIONS["load"].call(workbench, {"file": file})
        app = ExploreApp(workbench)
        async with app.run_test(size=(width, height)) as pilot:
            view = View(app, pilot)
            await view.settled()
            await body(view)

    asyncio.run(run())


def test_steps_and_differences() -> None:
    async def body(view: View) -> None:
        assert view.pipeline()[0].split() == ["0", "input"]
        assert "schedules" in view.pipeline()
        await view.press("n")
        await view.press("space")
        assert view.text("#what").startswith("[2] i0, i1 = split(i, factors=[None, 4])")
        assert view.program.shown_mode == "side by side"
        shown = view.lines()
        split = next(line for line in shown if "tir.for %i0 in 32 {" in line)
        assert "tir.for %i in 128 {" in split.split("│")[0]
        assert any("loop i0 in 32" in line for line in view.lines("#loops"))
        assert any("argument" in line for line in view.lines("#buffers"))
        await view.press("d")
        assert view.reply == "view: program"
        assert not any("tir.for %i in 128 {" in line for line in view.lines()[:8])
        await view.press("d")
        assert view.reply == "view: difference"
        assert any(line.lstrip(" 0123456789").startswith("-") for line in view.lines())
        assert any(line.lstrip(" 0123456789").startswith("+") for line in view.lines())
        await view.press("backspace")
        assert view.text("#what").startswith("[1] schedules")
        await view.press("c")
        assert view.text("#what").startswith("[2]")

    with_view(body)


def test_a_primitive_with_completion_and_a_refusal() -> None:
    async def body(view: View) -> None:
        await view.pilot.press("colon", *"spl")
        await view.pilot.pause()
        completions = view.app.query_one("#completions", OptionList)
        assert completions.has_class("open")
        await view.pilot.press("tab", *"C.", "down", "tab")
        prompt = view.app.query_one("#prompt", Input)
        assert prompt.value == "split(C.j"
        prompt.value += ", [None, 8])"
        await view.press("enter")
        assert view.text("#what").startswith("[1] split(C.j, [None, 8])")
        assert prompt.value == ""
        assert not completions.has_class("open")
        prompt.value = "parallel(k)"
        await view.press("enter")
        assert "requirement 2, the iterations are independent" in view.reply
        assert view.app.query_one("#message").has_class("refused")
        assert view.text("#what").startswith("[1]")
        await view.press("escape")
        assert view.app.focused is view.program
        await view.press("u")
        assert view.text("#what").startswith("[0]")
        assert not view.app.query_one("#message").has_class("refused")
        await view.press("r")
        assert view.text("#what").startswith("[1]")
        await view.press("colon", "up")
        assert prompt.value == "redo"

    with_view(body)


def test_runs_and_times() -> None:
    async def body(view: View) -> None:
        await view.press("x")
        assert "C agrees with the interpreter" in view.reply
        await view.press("t")
        assert "GFLOP/s" in view.reply
        assert "runs in" in view.text("#what")

    with_view(body)


def test_the_pipeline_is_a_list_to_choose_from() -> None:
    async def body(view: View) -> None:
        await view.enter("step 3")
        await view.press("escape")
        view.app.query_one("#pipeline", OptionList).focus()
        await view.press("up", "up", "enter")
        assert view.text("#what").startswith("[1] schedules")
        assert len(view.app.session.states) == 4

    with_view(body)


def test_a_text_is_found_in_the_program_and_its_loops() -> None:
    async def body(view: View) -> None:
        await view.press("slash")
        prompt = view.app.query_one("#prompt", Input)
        assert prompt.value == "find "
        prompt.value = "find block y"
        await view.press("enter")
        assert view.reply.startswith("'block y': 0 lines of the program, 1 of loop trees")
        assert any("block Y" in line for line in view.lines("#loops"))
        await view.enter("find memref.store")
        assert view.reply.startswith("'memref.store': 3 lines of the program, 0 of loop trees")
        await view.press("escape")
        starts = []
        for key in ("f3", "f3", "f3", "shift+f3"):
            starts.append(view.program._match)
            await view.press(key)
        assert (*starts, view.program._match) == (0, 1, 2, 0, 2)
        await view.enter("find")
        assert view.reply == "" and view.program._wanted is None

    with_view(body)


def test_a_command_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends, the state stays, and the next command works."""
    begun = threading.Event()

    def endless(workbench: Workbench, func: str | None = None) -> Reply:
        begun.set()
        while True:
            time.sleep(0.001)

    monkeypatch.setitem(cast("dict[str, Operation]", OPERATIONS), "run", Operation("run", endless))

    async def body(view: View) -> None:
        await view.pilot.press("n", "x")
        while not begun.is_set():
            await view.pilot.pause()
            await view.pilot.press("x")
        await view.press("escape")
        assert view.reply == "error: cancelled"
        assert view.text("#what").startswith("[1]")
        await view.press("n")
        assert view.text("#what").startswith("[2]")
        await view.press("escape")
        assert view.text("#what").startswith("[2]")

    with_view(body)


@pytest.mark.slow
def test_saving_asks_before_it_overwrites(tmp_path: Path) -> None:
    async def body(view: View) -> None:
        file = tmp_path / "p.mlir"
        await view.press("s")
        assert view.app.query_one("#prompt", Input).value == "save program "
        await view.press("escape")
        await view.enter(f"save program {file}")
        assert view.reply == f"saved {file}"
        file.write_text("mine")
        await view.enter(f"save program {file}")
        assert isinstance(view.app.screen, ConfirmScreen)
        await view.press("n")
        assert file.read_text() == "mine"
        assert view.reply == "not saved"
        await view.enter(f"save program {file}")
        await view.press("y")
        await view.settled()
        assert "func.func" in file.read_text()

    with_view(body)


def test_a_narrow_terminal() -> None:
    async def body(view: View) -> None:
        await view.enter("step 2")
        await view.press("escape")
        assert view.program.shown_mode == "difference"
        assert not view.app.query_one("#pipeline").display
        assert view.app.query_one("#loops").display
        assert not view.app.query_one("#buffers").display
        await view.press("l")
        assert view.app.query_one("#buffers").display
        await view.press("l")
        assert not view.app.query_one("#side").display
        await view.press("l", "p")
        assert view.app.query_one("#loops").display
        assert view.app.query_one("#pipeline").display
        assert all(len(line) <= 80 for line in view.lines())

    with_view(body, width=80, height=30)


def test_themes_and_help() -> None:
    async def body(view: View) -> None:
        await view.press("n")
        dark = view.program.palette
        await view.press("ctrl+t")
        assert view.program.palette is not dark
        await view.press("question_mark")
        assert "Keys" in str(view.app.screen.query_one(Static).render())
        await view.press("escape")
        assert view.app.focused is view.program
        await view.press("q")

    with_view(body)


@pytest.mark.slow
def test_a_file_of_ten_thousand_lines(tmp_path: Path) -> None:
    """Steps, differences and keys, on 320 copies of a program."""
    text = Path(MM_RELU).read_text().partition("func.func")[2].partition("// Tiles")[0]
    copies = [f"func.func{text.replace('@mm_relu', f'@f{n}')}" for n in range(320)]
    file = tmp_path / "large.mlir"
    file.write_text("".join(copies))
    assert file.read_text().count("\n") > 10_000

    async def body(view: View) -> None:
        await view.enter("split(f319.Y.i, [None, 8])")
        assert view.text("#what").startswith("[1] split(f319.Y.i, [None, 8])")
        assert any("tir.for %i0 in 16 {" in line for line in view.lines())
        assert any("loop i0 in 16" in line for line in view.lines("#loops"))
        assert not any("@f1(" in line for line in view.lines("#loops"))

    with_view(body, str(file))
