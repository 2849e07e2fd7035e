"""The view of `weft explore` in a terminal, on textual."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, cast

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from weft.support.trees import Tree, branches
from weft.tools.explore.cancellation import Cancellable
from weft.tools.explore.commands import completions_of_line, help_text, run_line
from weft.tools.explore.completion import Completion
from weft.tools.explore.differences import Row, changed_words, changes, side_by_side
from weft.tools.explore.operations import Workbench
from weft.tools.explore.pipeline import State
from weft.tools.explore.session import Session, tables_text, text_pattern
from weft.tools.failures import message_of, shown_warnings

_MOST_FUNCTIONS: Final = 12
"""Maximum number of functions whose loops and buffers are shown."""
_WIDE: Final = 110
"""Minimum columns for which the pipeline, the program and its loops are side by side."""
_SIDE_BY_SIDE: Final = 86
"""Minimum columns of the program for which differences are side by side by default."""
_TOKEN: Final = re.compile(
    r"(?P<comment>//.*)|(?P<string>\"[^\"]*\")|(?P<value>%[\w$.-]+)|(?P<symbol>[@^!#][\w$.-]+)"
    r"|(?P<operation>\b[a-z_]+\.[a-z_.]+\b)|(?P<type>\b(?:memref|vector|tensor)\b|\b[fiu]\d+\b|\bindex\b)|(?P<number>\b\d[\d.e+-]*\b)"
)


@dataclass(frozen=True)
class Palette:
    styles: Mapping[str, Style]
    added: str
    removed: str
    changed_left: str
    changed_right: str
    word_left: str
    word_right: str
    gutter: Style
    quiet: Style


def _styles(**colours: str) -> dict[str, Style]:
    return {name: Style.parse(colour) for name, colour in colours.items()}


DARK: Final = Palette(
    _styles(comment="#8b949e", string="#a5d6ff", value="#d2a8ff", symbol="#ffa657", operation="#79c0ff", type="#7ee787",
            number="#e3b341", function="bold", loop="#79c0ff", block="bold #7ee787", init="#7ee787", buffer="#e3b341",
            call="#d2a8ff", operator="#79c0ff", condition="#79c0ff"),
    added="#12361f", removed="#4a1a1f", changed_left="#3a1c20", changed_right="#11301d", word_left="#7d2a33",
    word_right="#1f6b3a", gutter=Style.parse("#6e7681"), quiet=Style.parse("#8b949e"),
)  # fmt: skip
LIGHT: Final = Palette(
    _styles(comment="#59636e", string="#0a3069", value="#6639ba", symbol="#953800", operation="#0550ae", type="#116329",
            number="#7d4e00", function="bold", loop="#0550ae", block="bold #116329", init="#116329", buffer="#7d4e00",
            call="#6639ba", operator="#0550ae", condition="#0550ae"),
    added="#d3f5dc", removed="#ffdcd9", changed_left="#ffe9e7", changed_right="#e4f8e9", word_left="#ffb8b0",
    word_right="#9be9a8", gutter=Style.parse("#818b98"), quiet=Style.parse("#59636e"),
)  # fmt: skip


class Lines(ScrollView, can_focus=True):
    """Lines that are rendered when they are seen."""

    def __init__(self, *, id: str, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: Sequence[Text] = ()
        self._wanted: re.Pattern[str] | None = None
        self._match = -1

    def show(self, lines: Sequence[Text]) -> None:
        self._lines = lines
        self.virtual_size = Size(max((line.cell_len for line in lines), default=0), len(lines))
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def line(self, number: int, width: int, shift: int) -> Text:
        return self.marked(self._lines[number])[shift : shift + width] if number < len(self._lines) else Text()

    def marked(self, text: Text) -> Text:
        """Highlight the text that is searched."""
        if self._wanted is None:
            return text
        text = text.copy()
        text.highlight_regex(self._wanted, Style(reverse=True))
        return text

    def search(self, wanted: re.Pattern[str] | None) -> int:
        """Scroll to the first match. Returns the number of matching lines."""
        self._wanted, self._match = wanted, -1
        self.refresh()
        return self.to_match(1)

    def to_match(self, direction: int) -> int:
        """Scroll to the next match, or the last one. Returns their number."""
        wanted = self._wanted
        found = [] if wanted is None else [at for at, line in enumerate(self.texts()) if wanted.search(line)]
        if found:
            self._match = (max(self._match, 0) + direction if self._match >= 0 else 0) % len(found)
            self.scroll_to(y=max(found[self._match] - 3, 0), animate=False)
        return len(found)

    def texts(self) -> Iterator[str]:
        return (line.plain for line in self._lines)

    def render_line(self, y: int) -> Strip:
        shift, top = self.scroll_offset
        width = self.size.width
        text = self.line(top + y, width, shift)
        strip = Strip(text.render(self.app.console), text.cell_len)
        return strip.adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)


class ProgramView(Lines):
    """The IR, or its difference from the state before."""

    MODES: ClassVar = ("difference", "side by side", "program")

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.mode: str | None = None
        """The mode, or None for a difference that is side by side if there is room."""
        self.before: Sequence[str] = ()
        self.after: Sequence[str] = ()
        self.rows: Sequence[Row] = ()
        self._shown: list[tuple[Row, str]] = []
        """The rows with the sides to show: `left`, `right` or `both`."""

    @property
    def shown_mode(self) -> str:
        if self.mode is not None:
            return self.mode
        return "side by side" if self.size.width >= _SIDE_BY_SIDE else "difference"

    def show_states(self, before: Sequence[str], after: Sequence[str], rows: Sequence[Row]) -> None:
        self.before, self.after, self.rows = before, after, rows
        self.list_rows()
        self.to_change(0)

    def list_rows(self) -> None:
        mode = self.shown_mode
        shown: list[tuple[Row, str]] = []
        if mode == "side by side":
            shown = [(row, "both") for row in self.rows]
        else:
            pending: list[tuple[Row, str]] = []
            for row in self.rows:
                if row.kind in ("changed", "removed") and mode == "difference":
                    shown.append((row, "left"))
                if row.kind == "changed" and mode == "difference":
                    pending.append((row, "right"))
                    continue
                if row.right is not None:
                    shown += [*pending, (row, "right")]
                    pending = []
            shown += pending
        self._shown = shown
        longest = max(map(len, (*self.before, *self.after)), default=0) + 6
        half = self.size.width // 2
        width = self.size.width + max(longest - half, 0) if mode == "side by side" else longest
        self.virtual_size = Size(width, len(shown))
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self.list_rows()

    def starts(self) -> list[int]:
        return changes([row for row, _ in self._shown])

    def to_change(self, number: int) -> None:
        """Scroll to the start if there is no such change."""
        starts = self.starts()
        self.scroll_to(0, max(starts[number] - 3, 0) if number < len(starts) else 0, animate=False)

    def to_next_change(self, direction: int) -> None:
        here = self.scroll_offset.y + 3
        starts = [at for at in self.starts() if (at > here if direction > 0 else at < here)]
        if starts:
            self.scroll_to(y=max((starts[0] if direction > 0 else starts[-1]) - 3, 0), animate=False)

    def texts(self) -> Iterator[str]:
        for row, side in self._shown:
            left = "" if row.left is None or side == "right" else self.before[row.left]
            yield left if row.right is None or side == "left" else f"{left}\n{self.after[row.right]}"

    @property
    def palette(self) -> Palette:
        return DARK if self.app.current_theme.dark else LIGHT

    def line(self, number: int, width: int, shift: int) -> Text:
        if number >= len(self._shown):
            return Text()
        row, side = self._shown[number]
        if side != "both":
            return self._half(row, side, width, shift)
        half = (width - 1) // 2
        left = self._half(row, "left", half, shift)
        right = self._half(row, "right", width - 1 - half, shift)
        return Text.assemble(left, ("│", self.palette.gutter), right)

    def _half(self, row: Row, side: str, width: int, shift: int) -> Text:
        """Returns number, mark and line, of exactly `width` cells."""
        palette = self.palette
        at, texts = (row.left, self.before) if side == "left" else (row.right, self.after)
        if at is None:
            return Text("\u2571" * width if width > 0 else "", palette.gutter + Style(dim=True))
        mark = " "
        background = ""
        if row.kind in ("changed", "removed", "added") and self.mode != "program":
            mark = "-" if side == "left" else "+"
            background = {"removed": palette.removed, "added": palette.added}.get(
                row.kind, palette.changed_left if side == "left" else palette.changed_right
            )
        text = self.marked(highlighted(texts[at], palette))
        if row.kind == "changed" and row.left is not None and row.right is not None and self.mode != "program":
            words = changed_words(self.before[row.left], self.after[row.right])[side == "right"]
            colour = palette.word_left if side == "left" else palette.word_right
            for start, end in words:
                text.stylize(Style(bgcolor=colour), start, end)
        gutter = Text(f"{at + 1:>4}{mark}", palette.gutter)
        line = Text.assemble(gutter, text[shift : shift + max(width - 5, 0)])
        line.truncate(width)
        line.pad_right(width - line.cell_len)
        if background:
            line.stylize_before(Style(bgcolor=background))
        return line


def highlighted(line: str, palette: Palette) -> Text:
    text = Text(line)
    for match in _TOKEN.finditer(line):
        text.stylize(palette.styles[match.lastgroup or ""], match.start(), match.end())
    return text


def tree_lines(trees: Sequence[Tree], palette: Palette) -> list[Text]:
    lines: list[Text] = []
    for tree in trees:
        if lines:
            lines.append(Text())
        for branch, node in branches(tree):
            note = f"  {node.note}" if node.note else ""
            style = palette.styles.get(node.kind, Style())
            lines.append(Text.assemble((branch, palette.gutter), (node.label, style), (note, palette.quiet)))
    return lines


@dataclass(frozen=True)
class _PanelContents:
    """Computed outside of the event loop."""

    state: State
    before: Sequence[str]
    after: Sequence[str]
    rows: Sequence[Row]
    trees: Sequence[Tree]
    buffers: str


def _view_of(session: Session, wanted: re.Pattern[str] | None) -> _PanelContents:
    """Show functions in whose loop trees a text is found; else those that changed."""
    before, after = (state.text.split("\n") for state in (session.previous, session.state))
    known = list(session.state.parts)
    names = [] if wanted is None else [name for name, _ in session.found_loops(wanted)]
    names = (list(dict.fromkeys(names)) or session.changed_functions() or known)[:_MOST_FUNCTIONS]
    trees = [tree for name in names for tree in session.loops(name)]
    tables = [table for name in names for table in session.buffers(name)]
    return _PanelContents(session.state, before, after, side_by_side(before, after), trees, tables_text(tables))


class ConfirmScreen(ModalScreen[bool]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape,enter", "answer(False)", "no"),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield Label(f"{self._text}\n\n[b]y[/b] yes   [b]n[/b] no", id="question")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Help(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        keys = "\n".join(f"{binding.key_display or binding.key:12} {binding.tooltip}" for binding in _KEYS)
        with VerticalScroll(id="help"):
            yield Static(f"Keys\n\n{keys}\n\nCommands, after ':'\n\n{help_text()}", markup=False)


_KEYS: Final = [
    Binding("n,space", "command('step')", "step", key_display="n", tooltip="run the next pass or schedule step"),
    Binding("b,backspace", "command('back')", "back", key_display="b", tooltip="one state back"),
    Binding("c", "command('change')", "to change", tooltip="step until the program changes"),
    Binding("e", "command('end')", "to end", show=False, tooltip="step to the end of the pipeline"),
    Binding("u", "command('undo')", "undo", tooltip="undo the last primitive"),
    Binding("r", "command('redo')", "redo", show=False, tooltip="apply it again"),
    Binding("x", "command('run')", "run", tooltip="run, and compare with the input program"),
    Binding("t", "command('time')", "time", tooltip="measure calls of the program as it is"),
    Binding("d", "mode", "view", tooltip="difference in one column, side by side, or the program"),
    Binding(
        "right_square_bracket", "next_change(1)", "next change", key_display="]", show=False, tooltip="next change"
    ),
    Binding("left_square_bracket", "next_change(-1)", "", key_display="[", show=False, tooltip="previous change"),
    Binding("slash", "find", "find", key_display="/", tooltip="find a text in the program, its loops and buffers"),
    Binding("f3", "match(1)", "", key_display="F3", show=False, tooltip="the next line with the text"),
    Binding("shift+f3", "match(-1)", "", key_display="Shift+F3", show=False, tooltip="the previous one"),
    Binding("escape", "cancel", "cancel", key_display="Esc", show=False, tooltip="cancel the running command"),
    Binding("p", "panel('pipeline')", "panels", show=False, tooltip="show or hide the pipeline"),
    Binding("l", "side", "loops", show=False, tooltip="loops, buffers, or neither"),
    Binding("s", "save", "save", tooltip="save as program, trace, script or python"),
    Binding("colon", "prompt", "apply", key_display=":", tooltip="the command line: split(i, [None, 4])"),
    Binding("ctrl+t", "theme", "theme", show=False, tooltip="dark or light"),
    Binding("question_mark", "help", "help", key_display="?", tooltip="this page"),
    Binding("q", "quit", "quit", show=False, tooltip="end"),
]


class CommandLine(Input):
    """Tab and the arrow keys choose a completion, Escape leaves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "take", "complete", priority=True),
        Binding("down", "choose(1)", "next"),
        Binding("up", "choose(-1)", "previous"),
        Binding("enter", "submit", "run"),
        Binding("escape", "leave", "leave"),
    ]

    def action_take(self) -> None:
        self.explorer.take_completion()

    def action_choose(self, direction: int) -> None:
        self.explorer.choose_completion(direction)

    def action_leave(self) -> None:
        self.explorer.leave_prompt()

    @property
    def explorer(self) -> ExploreApp:
        return cast("ExploreApp", self.app)


class ExploreApp(App[None]):
    TITLE = "weft explore"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = list(_KEYS)
    CSS = """
    Screen { layout: vertical; }
    #title { height: 1; background: $primary; color: $text; padding: 0 1; text-style: bold; }
    #body { height: 1fr; }
    #pipeline { width: 28; height: 100%; border: none; border-right: solid $surface-lighten-2; }
    #pipeline { padding: 0; background: $surface; }
    #side { width: 42; border-left: solid $surface-lighten-2; }
    Lines, OptionList, VerticalScroll { scrollbar-size: 1 1; }
    #loops { height: 1fr; }
    #buffers { height: auto; max-height: 40%; }
    #program { width: 1fr; height: 1fr; }
    .heading { height: 1; padding: 0 1; background: $surface-lighten-1; color: $text-muted; }
    #center { width: 1fr; }
    #message { height: auto; max-height: 9; padding: 0 1; background: $surface; }
    #message.refused { background: $error 20%; }
    #completions { display: none; height: auto; max-height: 8; border: none; padding: 0; background: $panel; }
    #completions.open { display: block; }
    #prompt { height: 1; border: none; padding: 0; background: $surface; width: 1fr; }
    #prompt:focus { background: $boost; border: none; }
    #line { height: 1; }
    #mark { width: 2; color: $accent; text-style: bold; }
    .-narrow #body { layout: vertical; }
    .-narrow #pipeline { display: none; width: 100%; height: 10; border-right: none; }
    .-narrow #pipeline.open { display: block; }
    .-narrow #side { width: 100%; height: 28%; border-left: none; }
    .-narrow #buffers { height: 1fr; max-height: 100%; }
    .-narrow #side .buffers, .-narrow #side.buffers .loops { display: none; }
    .-narrow #side.buffers .buffers { display: block; }
    #side.closed, .-wide #pipeline.closed { display: none; }
    .-narrow #center { width: 100%; height: 1fr; }
    ConfirmScreen, Help { align: center middle; }
    #question { padding: 1 3; border: round $warning; background: $surface; width: auto; max-width: 90%; }
    #help { padding: 1 2; border: round $primary; background: $surface; width: 90%; height: 90%; }
    """

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]
        self._workbench = workbench
        self._busy = False
        self._command = Cancellable()
        self._wanted: re.Pattern[str] | None = None
        self._completions: list[Completion] = []
        self._previous_lines: list[str] = []
        self._view: _PanelContents | None = None

    @property
    def session(self) -> Session:
        return self._workbench.session

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="body"):
            yield OptionList(id="pipeline", markup=False)
            with Vertical(id="center"):
                yield Static(id="what", classes="heading", markup=False)
                yield ProgramView(id="program")
            with Vertical(id="side"):
                yield Static("loops", classes="heading loops")
                yield Lines(id="loops", classes="loops")
                yield Static("buffers", classes="heading buffers")
                yield Lines(id="buffers", classes="buffers")
        with VerticalScroll(id="message", can_focus=False):
            yield Static(id="reply", markup=False)
        yield OptionList(id="completions", markup=False)
        with Horizontal(id="line"):
            yield Label(">", id="mark")
            yield CommandLine(
                placeholder="split(i, [None, 4]), a pass, or a command (? lists them)",
                id="prompt",
                select_on_focus=False,
            )
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#program", ProgramView).focus()
        self._work(lambda: "step: n   apply a primitive: :   help: ?")

    # Commands

    def _work(self, body: Callable[[], str]) -> None:
        """Run an operation outside of the event loop, then show its reply."""
        if self._busy:
            self._reply("busy: the last command still runs (Esc cancels it)", refused=True)
            return
        self._busy = True
        self.set_timer(1.0, self._show_busy)
        self.query_one("#mark", Label).update("…")
        self.run_worker(lambda: self._worked(body), thread=True, exit_on_error=True)

    def _show_busy(self) -> None:
        if self._busy:
            self._reply("running; Esc cancels")

    def action_cancel(self) -> None:
        if self._command.cancel():
            self._reply("cancelling: native code that runs now ends first")

    def _worked(self, body: Callable[[], str]) -> None:
        warned: list[str] = []
        refused, question = False, ""
        try:
            with shown_warnings(lambda warning: warned.append(str(warning))):
                text = self._command.run(body)
        except FileExistsError as error:
            text, question = "", str(error)
        except Exception as error:  # noqa: BLE001 - every failure is a message
            text, refused = message_of(error), True
        shown = self._view
        is_current = shown is not None and shown.state is self.session.state
        view = shown if is_current else _view_of(self.session, self._wanted)
        self.call_from_thread(self._finish, view, "\n".join([*warned, text]), refused, question)

    def _finish(self, view: _PanelContents, text: str, refused: bool, question: str) -> None:
        self._busy = False
        self.query_one("#mark", Label).update(">")
        if view is not self._view:
            self._show(view)
        else:
            self._show_heading(view)
        self._view = view
        self._reply(text, refused=refused)
        if question:
            line = self._previous_lines[-1]
            self.push_screen(
                ConfirmScreen(f"{question}: overwrite it?"), lambda yes: self._overwrite(line, yes=bool(yes))
            )

    def _overwrite(self, line: str, *, yes: bool) -> None:
        if yes:
            self._work(lambda: run_line(self._workbench, line, overwrite=True).text)
        else:
            self._reply("not saved")

    def _reply(self, text: str, *, refused: bool = False) -> None:
        self.query_one("#reply", Static).update(text)
        self.query_one("#message").set_class(refused, "refused")

    def action_command(self, line: str) -> None:
        self.command(line)

    def command(self, line: str) -> None:
        if line.strip() in ("quit", "exit"):
            self.exit()
            return
        self._previous_lines.append(line)
        name = line.split(maxsplit=1)[0] if line.strip() else ""
        if name in ("help", "?"):
            self.action_help()
        elif name == "find":
            self._find(line.strip().removeprefix("find").strip())
        elif line.strip():
            self._work(lambda: run_line(self._workbench, line).text)

    # Views

    def _show(self, view: _PanelContents) -> None:
        palette = self.query_one("#program", ProgramView).palette
        self.query_one("#program", ProgramView).show_states(view.before, view.after, view.rows)
        self.query_one("#loops", Lines).show(tree_lines(view.trees, palette))
        self.query_one("#buffers", Lines).show([Text(line) for line in view.buffers.split("\n") if view.buffers])
        for panel in self.query(Lines):
            panel.search(self._wanted)
        self._show_heading(view)

    def _find(self, text: str) -> None:
        """Show matching loop trees, and highlight a text everywhere; an empty text ends that."""

        def counts() -> str:
            wanted = self._wanted = text_pattern(text) if text else None
            self._view = None  # computed again, for the text
            if wanted is None:
                return ""
            session = self.session
            lines, loops = len(session.found_lines(wanted)), len(session.found_loops(wanted))
            return f"'{text}': {lines} lines of the program, {loops} of loop trees; F3: next, Shift+F3: previous"

        self._work(counts)

    def action_find(self) -> None:
        self._prefill("find ")

    def action_match(self, direction: int) -> None:
        focused = self.focused
        panel = focused if isinstance(focused, Lines) else self.query_one("#program", ProgramView)
        panel.to_match(direction)

    def _show_heading(self, view: _PanelContents) -> None:
        session, state = self.session, view.state
        self.query_one("#title", Static).update(f"{session.file}   {session.target}")
        time = session.times.get(state)
        parts = [f"[{session.at}] {state.title}", f"{state.seconds * 1e3:.1f} ms"]
        parts += [] if time is None else [f"runs in {time.median * 1e3:.4g} ms"]
        parts += ["no change"] if session.at and view.before == view.after else []
        self.query_one("#what", Static).update("   ".join(parts))
        self._show_pipeline()

    def _show_pipeline(self) -> None:
        session, palette = self.session, self.query_one("#program", ProgramView).palette
        pipeline = self.query_one("#pipeline", OptionList)
        width = max(pipeline.size.width - 2, 20)

        def in_one_line(text: Text) -> Text:
            text.truncate(width, overflow="ellipsis")
            return text

        options: list[Option] = []
        for at, state in enumerate(session.states):
            time = session.times.get(state)
            mark = {"primitive": "*", "input": " "}.get(state.kind, " ")
            title = (state.title, Style(bold=at == session.at))
            label = in_one_line(Text.assemble((f"{at:>3}{mark} ", palette.gutter), title))
            if time is not None:
                label.append(f"\n     {time.median * 1e3:.4g} ms", palette.styles["number"])
            options.append(Option(label, id=str(at)))
        upcoming = [
            Option(in_one_line(Text(f"     {title}", palette.quiet)), disabled=True) for title in session.upcoming()
        ]
        pipeline.clear_options()
        pipeline.add_options([*options, *upcoming])
        pipeline.highlighted = session.at
        pipeline.scroll_to_highlight()

    @on(OptionList.OptionSelected, "#pipeline")
    def _go(self, event: OptionList.OptionSelected) -> None:
        self.command(f"goto {event.option.id}")

    def action_mode(self) -> None:
        view = self.query_one("#program", ProgramView)
        modes = ProgramView.MODES
        view.mode = modes[(modes.index(view.shown_mode) + 1) % len(modes)]
        view.list_rows()
        view.to_change(0)
        self._reply(f"view: {view.mode}")

    def action_next_change(self, direction: int) -> None:
        self.query_one("#program", ProgramView).to_next_change(direction)

    def action_panel(self, name: str) -> None:
        self.query_one(f"#{name}").toggle_class("open", "closed")

    def action_side(self) -> None:
        """On a narrow terminal show loops, then buffers, then nothing."""
        side = self.query_one("#side")
        is_narrow = self.screen.has_class("-narrow")
        if side.has_class("closed"):
            side.remove_class("closed", "buffers")
        elif is_narrow and not side.has_class("buffers"):
            side.add_class("buffers")
        else:
            side.add_class("closed")

    def action_theme(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def watch_theme(self, _: str) -> None:
        if self.is_running and self._view is not None:  # because colours of lines are those of the theme
            self._show(self._view)

    def action_help(self) -> None:
        self.push_screen(Help())

    # The command line

    def action_prompt(self) -> None:
        self.query_one("#prompt", CommandLine).focus()

    def action_save(self) -> None:
        self._prefill("save program ")

    def _prefill(self, text: str) -> None:
        prompt = self.query_one("#prompt", CommandLine)
        prompt.value = text
        prompt.cursor_position = len(text)
        prompt.focus()

    def leave_prompt(self) -> None:
        self._close_completions()
        self.query_one("#program", ProgramView).focus()

    @on(Input.Submitted, "#prompt")
    def _submit(self, event: Input.Submitted) -> None:
        event.input.value = ""
        self._close_completions()
        self.command(event.value)

    @on(Input.Changed, "#prompt")
    def _complete(self, event: Input.Changed) -> None:
        line = event.value[: event.input.cursor_position]
        self._completions = completions_of_line(self._workbench, line)[:200] if line else []
        chosen = self.query_one("#completions", OptionList)
        chosen.clear_options()
        width = max((len(one.text) for one in self._completions), default=0)
        quiet = self.query_one("#program", ProgramView).palette.quiet
        chosen.add_options([Text.assemble(f"  {one.text:{width}}  ", (one.detail, quiet)) for one in self._completions])
        chosen.set_class(bool(self._completions), "open")
        if self._completions:
            chosen.highlighted = 0

    def _close_completions(self) -> None:
        self._completions = []
        self.query_one("#completions", OptionList).remove_class("open")

    def choose_completion(self, direction: int) -> None:
        chosen = self.query_one("#completions", OptionList)
        if self._completions:
            chosen.highlighted = ((chosen.highlighted or 0) + direction) % len(self._completions)
        elif self._previous_lines:
            self._prefill(self._previous_lines[-1])

    def take_completion(self) -> None:
        chosen = self.query_one("#completions", OptionList)
        if self._completions and chosen.highlighted is not None:
            one = self._completions[chosen.highlighted]
            prompt = self.query_one("#prompt", CommandLine)
            line = prompt.value[: one.start] + one.text
            rest = prompt.value[prompt.cursor_position :]
            prompt.value = line + rest
            prompt.cursor_position = len(line)
