"""The language server, as an editor talks to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsp_session import Session, apply, with_server
from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from weft.tools.python_files import load_python_file

PROGRAM = """// RUN: weft-opt %s -p 'cse,tir-split{block=B loop=0 factors=0,4}' | filecheck %s

// CHECK-LABEL: func.func @add
// OTHER-NEXT: tir.for
func.func @add(%A: memref<64x8xf32>, %B: memref<64x8xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %A, %c0 : memref<64x8xf32>
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.block "B" iters(%v: spatial<64>, %w: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%v, %w] : memref<64x8xf32>
        %b = arith.addf %a, %a : f32
        memref.store %b, %B[%v, %w] : memref<64x8xf32>
      }
    }
  }
  func.return
}

// -----

func.func private @callee(i32) -> i32
func.func @caller(%x: i32) -> i32 {
  %é = arith.constant 1 : i32
  %y = func.call @callee(%x) : (i32) -> i32
  cf.br ^end(%y : i32)
^end(%z: i32):
  func.return %z : i32
}

// -----

sched.func @schedule {
  %b = sched.get_block "B" in @add : block
  %i, %j = sched.get_loops %b : loop, loop
  sched.vectorize %j
}
"""


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM.replace("%é", "%e"))
    return path


def place(uri: str, found: list[lsp.Location] | None) -> list[tuple[int, int]]:
    assert found is not None
    assert all(location.uri == uri for location in found)
    return [(location.range.start.line, location.range.start.character) for location in found]


def test_answers(file: Path) -> None:
    """Hover, definitions, references, outline, completion, hints and folding of one file."""

    async def body(session: Session) -> None:
        uri = await session.open(file)
        found = await session.diagnostics()
        assert [(d.range.start.line, d.message) for d in found] == [(3, "no RUN line checks the prefix OTHER")]

        assert "%a : f32" in await session.hover(uri, "addf %|a")
        assert "result of `memref.load`, 2 uses" in await session.hover(uri, "addf %|a")
        about = await session.hover(uri, "arith.add|f")
        assert "effects: none of its own" in about
        assert "%b = arith.addf %a, %a : f32" in about
        about = await session.hover(uri, "memref.st|ore")
        assert "effects: writes %B" in about
        about = await session.hover(uri, "tir.bl|ock")
        assert "reads %A; writes %B" in about
        assert "%v: spatial<64>" in about
        assert "iterations: 0 .. 64" in await session.hover(uri, "tir.f|or %i")
        assert "iterations: 0 .. 8" in await session.hover(uri, "= [%i, %|j]")
        assert "factors" in await session.hover(uri, "tir-sp|lit")
        assert "func.func private @callee" in await session.hover(uri, "call @cal|lee")
        assert await session.hover(uri, "cf.br ^e|nd") == "block with arguments (i32) and 1 operations"

        defined = await session.client.text_document_definition_async(lsp.DefinitionParams(**session.at(uri, "%A[%|v")))
        assert place(uri, defined) == [(9, 26)]
        defined = await session.client.text_document_definition_async(
            lsp.DefinitionParams(**session.at(uri, "call @cal|lee"))
        )
        assert place(uri, defined) == [(21, 18)]
        defined = await session.client.text_document_definition_async(
            lsp.DefinitionParams(**session.at(uri, "br ^e|nd"))
        )
        assert place(uri, defined) == [(26, 0)]
        uses = await session.client.text_document_references_async(
            lsp.ReferenceParams(context=lsp.ReferenceContext(True), **session.at(uri, "addf %|a"))
        )
        assert place(uri, uses) == [(10, 8), (11, 24), (11, 28)]
        uses = await session.client.text_document_references_async(
            lsp.ReferenceParams(context=lsp.ReferenceContext(True), **session.at(uri, "call @cal|lee"))
        )
        assert place(uri, uses) == [(21, 18), (24, 17)]

        outline = await session.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri))
        )
        assert outline is not None
        assert [symbol.name for symbol in outline] == ["@add", "@callee", "@caller", "@schedule"]
        first = outline[0]
        assert isinstance(first, lsp.DocumentSymbol)
        names = []
        while first.children:
            (first,) = first.children
            names.append(first.name)
        assert names == ["%i", "%j", "B"]

        lines = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
        hints = await session.client.text_document_inlay_hint_async(
            lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), lines)
        )
        assert hints is not None
        shown = {(hint.position.line, hint.label) for hint in hints}
        assert (6, ": index") in shown
        assert not any(line in (7, 8, 9) for line, _ in shown), "variables of loops and blocks are indices"
        assert not any(line == 11 for line, _ in shown)

        folds = await session.client.text_document_folding_range_async(
            lsp.FoldingRangeParams(lsp.TextDocumentIdentifier(uri))
        )
        assert folds is not None
        assert {(4, 16), (7, 14), (9, 12)} <= {(fold.start_line, fold.end_line) for fold in folds}

        assert {"arith.addf", "arith.constant"} <= set(await session.completions(uri, "= arith.|addf"))
        assert "%v" in await session.completions(uri, "load %|A")
        assert "%b" not in await session.completions(uri, "load %|A")
        assert await session.completions(uri, "call @|callee") == ["@caller", "@callee"]
        assert "tir-split" in await session.completions(uri, "-p 'cse,tir|-split")
        assert {"block", "loop", "factors"} <= set(await session.completions(uri, "tir-split{block=B |loop"))
        assert await session.completions(uri, "// CHECK-LABEL: func.|func") == []

    with_server(body)


def test_aliases_and_types(file: Path) -> None:
    async def body(session: Session) -> None:
        file.write_text(
            "#map = affine_map<(d0) -> (d0 * 2)>\n!row = memref<8xf32>\n"
            "func.func @f(%A: !row, %i: index) {\n  %j = affine.apply #map(%i)\n  func.return\n}\n"
        )
        uri = await session.open(file)
        assert await session.diagnostics() == []
        assert "#map = affine_map<(d0) -> (d0 * 2)>" in await session.hover(uri, "apply #m|ap")
        assert "!row = memref<8xf32>" in await session.hover(uri, "%A: !r|ow")
        assert (await session.completions(uri, "apply #|map"))[0] == "#map"
        assert (await session.completions(uri, "%A: !|row"))[0] == "!row"
        assert {"index", "memref"} <= set(await session.completions(uri, "%i: |index"))
        assert "index" not in await session.completions(uri, "%j = |affine")
        session.change(uri, "!row, %i", "!rows, %i")
        assert await session.hover(uri, "%A: !r|ow") == ""

    with_server(body)


def test_what_changes_keeps_the_last_good_parse(file: Path) -> None:
    async def body(session: Session) -> None:
        uri = await session.open(file)
        await session.diagnostics()
        session.change(uri, "%c0 = arith.constant 0 : index", "%c0 = arith.const")
        found = [d for d in await session.diagnostics() if d.severity == lsp.DiagnosticSeverity.Error]
        assert [(d.range.start.line, d.range.start.character) for d in found] == [(5, 8)]
        assert "unknown operation 'arith.const', did you mean 'arith.constant'" in found[0].message
        assert "%a : f32" in await session.hover(uri, "addf %|a")
        assert "effects: writes %B" in await session.hover(uri, "memref.st|ore")
        session.change(uri, "%c0 = arith.const", "%c0 = arith.constant 0 : index")
        session.change(uri, "%b, %B[%v, %w]", "%a, %B[%w, %v]")
        assert "index" in str([d.message for d in await session.diagnostics()])

    with_server(body)


def test_primitives_as_code_actions(file: Path) -> None:
    async def body(session: Session) -> None:
        uri = await session.open(file)
        await session.diagnostics()
        actions = await session.actions(uri, "|tir.for %i")
        assert {"Split %i by 8", "Vectorize %i", "Interchange %i and %j", "Fuse %i and %j"} <= set(actions)
        await session.run(actions["Split %i by 8"])
        text = session.edited(uri)
        assert text.count("tir.for") == PROGRAM.count("tir.for") + 1
        assert text.startswith("// RUN")
        assert "func.func @caller" in text
        assert "  func.return\n}\n\n// -----" in text
        await session.run(actions['Decompose the reduction of "B" at %i'])
        (refused,) = await session.diagnostics()
        assert refused.range.start.line in (7, 9)
        assert "decompose_reduction" in refused.message
        assert "requirement" in refused.message
        assert session.messages

    with_server(body)


def test_comments_after_a_function_stay(file: Path) -> None:
    """An operation ends with its last token, also in the outline."""

    async def body(session: Session) -> None:
        plain = PROGRAM.split("// -----")[0].rstrip() + "  // the end\n\n// Twice.\nfunc.func private @twice()\n"
        file.write_text(plain)
        uri = await session.open(file)
        await session.diagnostics()
        await session.run((await session.actions(uri, "|tir.for %i"))["Split %i by 8"])
        assert session.edited(uri).endswith("}  // the end\n\n// Twice.\nfunc.func private @twice()\n")
        outline = await session.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri))
        )
        assert outline is not None
        assert [symbol.range.end.line for symbol in outline if isinstance(symbol, lsp.DocumentSymbol)] == [17, 20]

    with_server(body)


def test_run_lines_as_code_actions(file: Path) -> None:
    async def body(session: Session) -> None:
        file.write_text(PROGRAM.split("// -----")[0])
        uri = await session.open(file)
        await session.diagnostics()
        actions = await session.actions(uri, "|// RUN")
        show, update = "Run this line and show the difference", "Write the CHECK lines from its output"
        assert list(actions) == [show, update]
        shown = str(await session.run(actions[show]))
        assert re.search(r"^-.*tir.for %i in 64", shown, re.MULTILINE)
        assert re.search(r"^\+.*tir.for %\w+ in 16", shown, re.MULTILINE)
        await session.run(actions[update])
        text = session.edited(uri)
        assert text.count("CHECK-LABEL") == 1
        assert "// OTHER-NEXT: tir.for" in text
        assert re.search(r"// CHECK-LABEL: func\.func @add\(%\[\[A:\\w\+\]\]: memref", text)
        file.write_text(text)

    with_server(body)


def test_formatting(file: Path) -> None:
    async def body(session: Session) -> None:
        messy = re.sub(r"^ +", "", PROGRAM.replace("%é", "%e"), flags=re.MULTILINE).rstrip() + "  "
        file.write_text(messy)
        uri = await session.open(file)
        options = lsp.FormattingOptions(tab_size=2, insert_spaces=True)
        edits = await session.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), options)
        )
        assert edits is not None
        assert apply(messy, edits[0]) == PROGRAM.replace("%é", "%e")
        session.change(uri, messy, PROGRAM.replace("%é", "%e"))
        again = await session.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), options)
        )
        assert not again

    with_server(body)


SCRIPT = """from weft.script import tir as T

@T.prim_func
def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + unknown
"""


def test_python(tmp_path: Path) -> None:
    async def body(session: Session) -> None:
        file = tmp_path / "kernel.py"
        file.write_text(SCRIPT)
        uri = await session.open(file)
        (found,) = await session.diagnostics()
        assert "unknown" in found.message
        assert found.range.start.line == 7
        session.change(uri, "for i in", "for i in in")
        (found,) = await session.diagnostics()
        assert "invalid syntax" in found.message
        assert found.range.start.line == 4

    with_server(body)


MODULE = """import weft
from weft.script import ir_module, tir as T


@ir_module
class Module:
    @T.prim_func
    def own(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
        # A comment, which is lost.
        T.func_attr({"global_symbol": "sums"})
        for i, k in T.grid(8, 8):
            with T.block("B"):
                v, r = T.axis.remap("SR", [i, k])
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v, r]


é = weft.Schedule(Module)
"""


def test_primitives_in_python(tmp_path: Path) -> None:
    async def body(session: Session) -> None:
        file = tmp_path / "kernel.py"
        file.write_text(MODULE)
        uri = await session.open(file)
        assert await session.diagnostics() == []
        assert await session.actions(uri, "|é = weft") == {}
        assert 'Inline block "B" into its readers' in await session.actions(uri, "|with T.block")
        actions = await session.actions(uri, "|for i, k in")
        assert {"Split %i by 4", "Vectorize %k", "Interchange %i and %k"} <= set(actions)
        await session.run(actions["Split %i by 4"])
        text = session.edited(uri)
        assert "    def own(\n" in text or "    def own(A" in text
        assert "for i0, i1, k in T.grid(2, 4, 8):" in text
        assert text.startswith(MODULE.partition("    @T.prim_func")[0])
        assert text.endswith(MODULE.rpartition("B[v] = ")[2].partition("\n")[2])
        (changed := tmp_path / "changed.py").write_text(text)
        assert "tir.for %i1 in 4" in str(load_python_file(str(changed)).Module)

        await session.run(actions["Vectorize %k"])
        (refused,) = await session.diagnostics()
        assert "the iterations are independent" in refused.message and "iteration (i=0, k=1)" in refused.message
        assert refused.range.start.line == 10
        session.change(uri, "    # A comment", "    # Another comment")
        assert await session.diagnostics() == []
        assert await session.actions(uri, "|for i, k in") == {}
        await session.run(actions["Split %i by 4"])
        assert session.messages[-1].startswith("save the file first")

    with_server(body)


NAMES = """import weft
from weft.script import tir as T

@T.prim_func
def add(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.serial(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = T.sqrt(A[v])

def tiled(sch: weft.Schedule):
    (i,) = sch.get_loops("B")
    sch.split(i, [None, 4])
    return {
        "é": sch.mod,
    }

other = weft.Schedule(add)
other.split(other.get_loops("B")[0], [None, 4])
"""


def test_names_of_python(tmp_path: Path) -> None:
    async def body(session: Session) -> None:
        file = tmp_path / "kernel.py"
        file.write_text(NAMES)
        uri = await session.open(file)
        assert await session.diagnostics() == []
        for mark in ("sch.sp|lit(i", "other.spl|it(other"):
            about = await session.hover(uri, mark)
            assert "Schedule.split(self, loop" in about
            assert "Split a loop into" in about
        assert "Square root" in await session.hover(uri, "T.sq|rt")
        assert "T.block" in await session.hover(uri, "T.blo|ck")
        assert "for i in T.serial(8):" in await session.hover(uri, "spatial(8, |i)")
        assert "(i,) = sch.get_loops" in await session.hover(uri, "split(|i, [None")
        assert await session.hover(uri, "retu|rn") == ""

        async def definition(mark: str) -> list[lsp.Location]:
            found = await session.client.text_document_definition_async(lsp.DefinitionParams(**session.at(uri, mark)))
            assert isinstance(found, list)
            return [location for location in found if isinstance(location, lsp.Location)]

        assert place(uri, await definition("spatial(8, |i)")) == [(5, 8)]
        assert place(uri, await definition("|B[v]")) == [(4, 38)]
        (split,) = await definition("sch.sp|lit(i")
        source = Path(to_fs_path(split.uri) or "").read_text().splitlines()
        assert "def split(" in "".join(source[split.range.start.line : split.range.start.line + 3])

        outline = await session.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri))
        )
        assert [symbol.name for symbol in outline or ()] == ["add"]

        # Python has other rules of indentation and other names.
        edits = await session.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(4, True))
        )
        assert not edits
        assert await session.completions(uri, "other.|split") == []

    with_server(body)


CHAIN = """func.func @f(%A: memref<64x8xf32>, %C: memref<64x8xf32>) {
  %B = memref.alloc() : memref<64x8xf32>
  tir.for %i in 64 {
    tir.for %j in 8 {
      tir.block "B" iters(%v: spatial<64>, %w: spatial<8>) = [%i, %j] {
        %a = memref.load %A[%v, %w] : memref<64x8xf32>
        memref.store %a, %B[%v, %w] : memref<64x8xf32>
      }
    }
  }
  tir.for %p in 64 {
    tir.for %q in 8 {
      tir.block "C" iters(%v: spatial<64>, %w: spatial<8>) = [%p, %q] {
        %b = memref.load %B[%v, %w] : memref<64x8xf32>
        memref.store %b, %C[%v, %w] : memref<64x8xf32>
      }
    }
  }
  func.return
}
"""


def test_places_of_blocks_and_copies_of_buffers(tmp_path: Path) -> None:
    async def body(session: Session) -> None:
        file = tmp_path / "chain.mlir"
        file.write_text(CHAIN)
        uri = await session.open(file)
        await session.diagnostics()
        actions = await session.actions(uri, '|tir.block "B"')
        assert {'Compute "B" at %p of "C"', 'Compute "B" at %q of "C"'} <= set(actions)
        await session.run(actions['Compute "B" at %p of "C"'])
        moved = session.edited(uri)
        assert moved.index("tir.for %p") < moved.index('tir.block "B"')
        await session.run(actions['Read %A of "B" through local memory'])
        assert '"A_local"' in session.edited(uri)
        await session.run(actions['Write %B of "B" through local memory'])
        assert '"B_local"' in session.edited(uri)
        actions = await session.actions(uri, '|tir.block "C"')
        await session.run(actions['Compute "C" at %i of "B"'])
        moved = session.edited(uri)
        assert moved.index('tir.block "C"') < moved.index("func.return")
        assert "%p" not in moved

    with_server(body)


@pytest.mark.slow
def test_a_file_of_ten_thousand_lines(tmp_path: Path) -> None:
    async def body(session: Session) -> None:
        function = PROGRAM.split("// -----")[0].split("\n", 4)[-1].rstrip()
        text = "\n".join(function.replace("@add", f"@add{n}") for n in range(720)) + "\n"
        assert text.count("\n") > 10_000
        file = tmp_path / "large.mlir"
        file.write_text(text)
        uri = await session.open(file)
        assert await session.diagnostics() == []
        last = 719
        assert "%a : f32" in await session.hover(uri, "addf %|a", last)
        session.change(uri, "@add719(%A: memref<64x8xf32>", "@add719(%A: memref<64x8xf32")
        assert "%a : f32" in await session.hover(uri, "addf %|a", last)
        outline = await session.client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri))
        )
        assert outline is not None
        assert len(outline) >= last
        (found,) = await session.diagnostics()
        assert found.range.start.line > 9_000

    with_server(body)


def test_without_pygls(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from weft.support.errors import CompileError
    from weft.tools.weft_lsp import execute

    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "weft.tools.lsp.server", raising=False)
    with pytest.raises(CompileError, match=r"weft-lsp needs the package pygls: pip install 'weft\[lsp\]'"):
        execute([])
