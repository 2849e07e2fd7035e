"""Notebooks show IR with colours and reports as text."""

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft import te
from weft.driver.notebooks import operation_html, register_formatters
from weft.runtime.timing import BenchmarkResult
from weft.support.shown import ir_html

UPSTREAM = """
func.func @f(%a: i32) -> i32 {
  %x = arith.addi %a, %a : i32
  func.return %x : i32
}
"""


def scheduled() -> weft.Schedule:
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1, name="B")
    return weft.Schedule(te.create_func([a, b], name="f"))


def test_modules_are_scripts() -> None:
    html = operation_html(scheduled().mod)
    assert "@</span>" in html or "T.prim_func" in html
    assert "monospace" in html


def test_other_modules_and_traces_are_ir() -> None:
    html = operation_html(weft.parse(UPSTREAM))
    assert ">%x</span>" in html
    assert ">arith.addi</span>" in html
    assert ">@trace</span>" in operation_html(scheduled().trace)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"a<b" // c<d', '&lt;b&quot;</span> <span style="color:#6e7781;font-style:italic">// c&lt;d</span>'),
        ("memref<?xf32>", "&lt;?x"),
        ("%a-b = x", ">%a-b</span> = x"),
    ],
)
def test_text_is_escaped_and_nothing_is_lost(text: str, shown: str) -> None:
    assert shown in ir_html(text)


def test_reports_are_text() -> None:
    result = BenchmarkResult((0.5, 1.0))
    bundle = result._repr_mimebundle_()
    assert bundle["text/plain"] == str(result)
    assert str(result) in bundle["text/html"]


def test_libraries_are_tables_of_functions() -> None:
    bb = G.BlockBuilder()
    x = G.var("x", ("n", 4), "float32")
    with bb.function("main", [x]):
        y = bb.emit(G.matmul(x, G.const(np.ones((4, 4), np.float32))))
        bb.emit_func_output(G.softmax(G.add(y, G.const(np.ones(4, np.float32)))))
    library: Any = weft.build(bb.get(), target="llvm -mcpu=x86-64-v2 -num-threads=1", cache=False)
    shown = library._repr_mimebundle_()
    title, header, row = shown["text/plain"].splitlines()
    assert title == "weft library for llvm -mcpu=x86-64-v2 -num-threads=1 -opt-level=2"
    assert header.split() == ["function", "arguments", "memory"]
    assert row.startswith("main      x: float32[n, 4], out ")
    assert "constants 64 B" in row
    assert "<td" in shown["text/html"] and "float32[n, 4]" in shown["text/html"]


def test_libraries_without_kernels_have_no_memory() -> None:
    library: Any = weft.build(scheduled().mod, cache=False)
    assert library._repr_mimebundle_()["text/plain"].splitlines()[-1].split() == [
        *("f", "A:", "float32[4,", "4],", "out", "B:", "float32[4,", "4]", "-")
    ]


def test_a_shell_of_ipython() -> None:
    shell_of = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell: Any = shell_of()
    register_formatters(shell)
    shell.display_formatter.active_types = ["text/plain", "text/html"]
    module = weft.parse(UPSTREAM)
    formats, _ = shell.display_formatter.format(module)
    assert formats == {"text/plain": str(module), "text/html": operation_html(module)}
