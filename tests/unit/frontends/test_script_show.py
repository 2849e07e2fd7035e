"""Scripts with colours."""

import builtins
import io
import re
import sys
from types import ModuleType

import pytest

import weft
from weft.frontends.script.show import html_text, pieces, terminal_text
from weft.script import Script, parse, print_script, script, show

MODULE = parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("<&>"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.max(A[vi], T.float32(0.5))
""")
TEXT = print_script(MODULE) + "# a comment\n"


def test_pieces_are_the_text() -> None:
    assert "".join(piece for _, piece in pieces(TEXT)) == TEXT
    styles = {piece: style.value for style, piece in pieces(TEXT)}
    expected = {
        "for": "keyword",
        "T": "namespace",
        "block": "word",
        "spatial": "word",
        "f": "definition",
        "Module": "definition",
        "8": "number",
        '"<&>"': "string",
        "# a comment": "comment",
        "@": "decorator",
        "vi": "plain",
        "A": "plain",
    }
    assert {piece: styles[piece] for piece in expected} == expected


def test_terminal() -> None:
    coloured = terminal_text(TEXT)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == TEXT
    assert "\x1b[1;35mfor\x1b[0m i \x1b[1;35min\x1b[0m range(\x1b[33m8\x1b[0m):" in coloured


def test_html_escapes() -> None:
    page = html_text(TEXT)
    assert page.startswith("<pre") and page.endswith("</pre>")
    assert "&quot;&lt;&amp;&gt;&quot;" in page
    assert (
        re.sub(r"<[^>]*>", "", page)
        .replace("&quot;", '"')
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
        == TEXT
    )


def test_show_prints(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    show(MODULE)
    assert capsys.readouterr().out == print_script(MODULE) == script(MODULE)
    show(MODULE, color=True)
    assert "\x1b[" in capsys.readouterr().out

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    show(MODULE, file=(coloured := Terminal()))
    assert "\x1b[" in coloured.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    show(MODULE, file=(plain := Terminal()))
    assert plain.getvalue() == print_script(MODULE)
    show(MODULE, file=(forced := io.StringIO()), color=True)
    assert forced.getvalue() == coloured.getvalue()


def test_show_in_a_notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[object] = []

    class Shell:
        kernel = object()

    display = ModuleType("IPython.display")
    display.display = shown.append  # pyright: ignore
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(builtins, "get_ipython", Shell, raising=False)
    show(MODULE)
    assert capsys.readouterr().out == ""
    (cell,) = shown
    assert isinstance(cell, Script)
    assert cell._repr_html_() == html_text(print_script(MODULE))
    assert str(cell) == repr(cell) == print_script(MODULE)


def test_public_name() -> None:
    assert weft.script.print_script is print_script
