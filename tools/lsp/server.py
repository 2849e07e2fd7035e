"""The language server: open documents, their analysis in the background, and requests."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from weft.driver.programs import context
from weft.support.errors import CompileError, ScheduleError, WeftError
from weft.support.locations import SourceLocation, remember_text
from weft.tools.diagnostics import Diagnostic
from weft.tools.lsp.actions import APPLY, RUN, UPDATE, apply_action, apply_passes, code_actions
from weft.tools.lsp.answers import Document
from weft.tools.lsp.index import FileIndex, analyse
from weft.tools.lsp.python_files import ScriptAction, examine, scheduled_script
from weft.tools.lsp.python_names import PythonDocument
from weft.tools.lsp.run_lines import check_lines, difference, output_of, prefix_mistakes, run_lines, with_checks
from weft.tools.lsp.texts import Text
from weft.tools.printing import ScopedMLIRTarget

_PAUSE: Final = 0.2
"""Seconds without a change before a text is analysed."""
_FIRST: Final = 10.0
"""Seconds that a request waits for the first analysis of a file."""
_SEVERITIES: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "remark": lsp.DiagnosticSeverity.Information,
    "note": lsp.DiagnosticSeverity.Hint,
}


class WeftServer(LanguageServer):
    def __init__(self) -> None:
        super().__init__("weft-lsp", version("weft"), text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.context = context()
        self.indices: dict[str, FileIndex] = {}
        self.analysed: dict[str, asyncio.Event] = {}
        self.scripts: dict[str, tuple[str, Sequence[ScriptAction]]] = {}
        """The last examined text of each Python file, and the primitives for its loops."""
        self._documents: dict[str, Document] = {}
        """The last answer to `document` for each file: its tokens and positions serve further requests."""
        self._pending: dict[str, asyncio.Task[None]] = {}
        self.pool = ThreadPoolExecutor(1)

    def text(self, uri: str) -> str:
        return self.workspace.get_text_document(uri).source.replace("\r\n", "\n")

    def schedule(self, uri: str, *, saved: bool = False, pause: float = _PAUSE) -> None:
        """Analyse a file after a pause without changes."""
        before = self._pending.pop(uri, None)
        if before is not None:
            before.cancel()
        self.analysed.setdefault(uri, asyncio.Event())
        self._pending[uri] = asyncio.get_running_loop().create_task(self._analyse(uri, saved=saved, pause=pause))

    async def _analyse(self, uri: str, *, saved: bool, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.workspace.get_text_document(uri)
        content, version = self.text(uri), document.version
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self.pool, self._diagnostics, uri, content, saved)
        self.analysed[uri].set()
        if uri in self.workspace.text_documents and self.text(uri) == content:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))

    def _diagnostics(self, uri: str, content: str, saved: bool) -> list[lsp.Diagnostic]:
        path = to_fs_path(uri) or uri
        text = Text(content)
        if path.endswith(".py"):
            examined = examine(path, content, saved=saved)
            self.scripts[uri] = content, examined.actions
            return [_diagnostic(text, uri, path, d) for d in examined.diagnostics]
        remember_text(path, content)
        analysis = analyse(self.context, content, path)
        known = self.indices.get(uri)
        if analysis.index is not None and (analysis.complete or known is None):
            self.indices[uri] = analysis.index
        found = [_diagnostic(text, uri, path, d) for d in _with_notes(analysis.diagnostics)]
        for mistake in prefix_mistakes(content):
            start = text.starts[mistake.line]
            where = text.range(start, start + len(text.line(mistake.line)))
            found.append(lsp.Diagnostic(where, mistake.message, lsp.DiagnosticSeverity.Warning, source="filecheck"))
        return found

    def forget(self, uri: str) -> None:
        pending = self._pending.pop(uri, None)
        if pending is not None:
            pending.cancel()
        self.indices.pop(uri, None)
        self._documents.pop(uri, None)
        self.scripts.pop(uri, None)
        self.analysed.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def document(self, uri: str) -> Document:
        """Returns a file with its last successful parse, after waiting for the first one."""
        event = self.analysed.get(uri)
        if event is not None and not uri.endswith(".py") and uri not in self.indices:
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), _FIRST)
        return self.known_document(uri)

    def known_document(self, uri: str) -> Document:
        content, index = self.text(uri), self.indices.get(uri)
        known = self._documents.get(uri)
        if known is None or known.index is not index or known.text.content != content:
            text = known.text if known is not None and known.text.content == content else Text(content)
            kind = PythonDocument if uri.endswith(".py") else Document
            known = self._documents[uri] = kind(uri, text, index)
        return known


def _with_notes(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [d for d in found if d.location is not None or d.kind != "note"]


def _diagnostic(text: Text, uri: str, path: str, found: Diagnostic) -> lsp.Diagnostic:
    place = found.location
    where = (
        _range_of(text, place)
        if place is not None and place.file == path
        else lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    )
    return lsp.Diagnostic(where, found.message, _SEVERITIES[found.kind], source="weft")


def _range_of(text: Text, place: SourceLocation) -> lsp.Range:
    line = max(place.line - 1, 0)
    content = text.line(line)
    column = max(place.column - 1, 0)
    length = place.length
    if not length:
        word = re.match(r"[\w.%@!#^]+", content[column:])
        length = 1 if word is None else len(word[0])
    start = (text.starts[line] if line < len(text.starts) else len(text.content)) + column
    return text.range(start, min(start + length, len(text.content)))


def make_server() -> WeftServer:
    server = WeftServer()
    feature = server.feature

    @feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def _(ls: WeftServer, params: lsp.DidOpenTextDocumentParams) -> None:
        ls.schedule(params.text_document.uri, saved=True, pause=0.0)

    @feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def _(ls: WeftServer, params: lsp.DidChangeTextDocumentParams) -> None:
        ls.schedule(params.text_document.uri)

    @feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def _(ls: WeftServer, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.schedule(params.text_document.uri, saved=True, pause=0.0)

    @feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def _(ls: WeftServer, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.forget(params.text_document.uri)

    @feature(lsp.TEXT_DOCUMENT_HOVER)
    async def _(ls: WeftServer, params: lsp.HoverParams) -> lsp.Hover | None:
        return (await ls.document(params.text_document.uri)).hover(params.position)

    @feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def _(ls: WeftServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
        return (await ls.document(params.text_document.uri)).definition(params.position)

    @feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def _(ls: WeftServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
        return (await ls.document(params.text_document.uri)).references(params.position)

    @feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def _(ls: WeftServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        return (await ls.document(params.text_document.uri)).highlights(params.position)

    @feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def _(ls: WeftServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return (await ls.document(params.text_document.uri)).outline()

    @feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def _(ls: WeftServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        return ls.known_document(params.text_document.uri).folding()

    @feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def _(ls: WeftServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        return (await ls.document(params.text_document.uri)).hints(params.range)

    @feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def _(ls: WeftServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        return ls.known_document(params.text_document.uri).formatted()

    @feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "%", "@", "^", "!", "#", "{", ","])
    )
    async def _(ls: WeftServer, params: lsp.CompletionParams) -> lsp.CompletionList:
        document = ls.known_document(params.text_document.uri)
        return lsp.CompletionList(is_incomplete=False, items=document.completions(params.position, ls.context))

    @feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    async def _(ls: WeftServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, line = params.text_document.uri, params.range.start.line
        if uri in ls.scripts:
            content, actions = ls.scripts[uri]
            found = actions if content == ls.text(uri) else ()
            return [apply_action(a.title, uri, line, a.passes) for a in found if a.line == line + 1]
        return list(code_actions(await ls.document(uri), params.range))

    @server.command(APPLY)
    async def _(ls: WeftServer, uri: str, line: int, passes: str) -> None:
        """A refusal becomes a diagnostic."""
        document = await ls.document(uri)
        path = to_fs_path(uri) or uri
        if isinstance(document, PythonDocument):
            await _schedule_script(ls, document, line, passes)
            return
        try:
            edit = apply_passes(document, line, passes).edit
        except WeftError as error:
            where = document.text.range(
                document.text.starts[line], document.text.starts[line] + len(document.text.line(line))
            )
            place = error.location if isinstance(error, CompileError | ScheduleError) else None
            if place is not None and place.file == path:
                where = _range_of(document.text, place)
            _refuse(ls, uri, where, str(error))
            return
        await _change(ls, uri, [edit])

    @server.command(RUN)
    async def _(ls: WeftServer, uri: str, line: int) -> str | None:
        """Show and return the difference."""
        found = await _run(ls, uri, line)
        if found is None:
            return None
        content, output = found
        plain = content if ls.indices.get(uri) is None else _printed(ls.indices[uri])
        shown = difference(plain, output)
        file = Path(tempfile.mkdtemp(prefix="weft-lsp-"), f"{Path(to_fs_path(uri) or 'run').stem}.diff")
        file.write_text(shown or "no difference\n")
        if ls.client_capabilities.window is not None and ls.client_capabilities.window.show_document is not None:
            address = from_fs_path(str(file))
            if address is not None:
                await ls.window_show_document_async(lsp.ShowDocumentParams(address))
        return shown

    @server.command(UPDATE)
    async def _(ls: WeftServer, uri: str, line: int, prefix: str) -> None:
        found = await _run(ls, uri, line)
        if found is None:
            return
        content, output = found
        text = Text(content)
        index = ls.indices.get(uri)
        starts: list[tuple[str, int]] = []
        if index is not None:
            known = [(name, chunk.places[op][0]) for chunk in index.chunks for name, op in chunk.symbols()]
            starts = [(name, index.text.position(start).line) for name, start in known]
        updated = with_checks(content, check_lines(output, prefix), prefix, starts)
        await _change(ls, uri, [lsp.TextEdit(text.range(0, len(content)), updated)])

    return server


async def _run(ls: WeftServer, uri: str, line: int) -> tuple[str, str] | None:
    """A failure is shown."""
    content = ls.text(uri)
    run = next((run for run in run_lines(content) if run.line == line), None)
    if run is None:
        ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, f"line {line + 1} has no RUN line"))
        return None
    file = Path(to_fs_path(uri) or os.devnull)
    try:
        return content, await asyncio.get_running_loop().run_in_executor(None, output_of, run, content, file)
    except CompileError as error:
        ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, error.message))
        return None


def _refuse(ls: WeftServer, uri: str, where: lsp.Range, message: str) -> None:
    refusal = lsp.Diagnostic(where, message, lsp.DiagnosticSeverity.Warning, source="weft schedule")
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, [refusal]))
    ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, message.split("\n", 1)[0]))


async def _schedule_script(ls: WeftServer, document: PythonDocument, line: int, passes: str) -> None:
    """A refusal becomes a diagnostic."""
    uri, text = document.uri, document.text
    path = to_fs_path(uri) or uri
    arguments = path, text.content, line + 1, passes
    try:
        found = await asyncio.get_running_loop().run_in_executor(ls.pool, scheduled_script, *arguments)
        if isinstance(found, str):
            await _change(ls, uri, [document.function_edit(line, found)])
            return
        where, message = _diagnostic(text, uri, path, found[0]).range, found[0].message
    except CompileError as error:
        where, message = text.range(text.starts[line], text.starts[line] + len(text.line(line))), error.message
    _refuse(ls, uri, where, message)


async def _change(ls: WeftServer, uri: str, edits: list[lsp.TextEdit]) -> None:
    await ls.workspace_apply_edit_async(lsp.ApplyWorkspaceEditParams(lsp.WorkspaceEdit(changes={uri: edits})))


def _printed(index: FileIndex) -> str:
    return "\n// -----\n".join(ScopedMLIRTarget().text(chunk.module) for chunk in index.chunks) + "\n"
