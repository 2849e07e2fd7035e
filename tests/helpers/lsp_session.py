"""A language server in a process of its own, and a client that talks to it."""

from __future__ import annotations

import asyncio
import sys
from ast import literal_eval
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

T = TypeVar("T")
_SECONDS = 120


class Session:
    """A connection to the server. Diagnostics and edits that it sends are kept."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self._published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self.edits: list[lsp.WorkspaceEdit] = []
        self.messages: list[str] = []
        self._texts: dict[str, tuple[str, int]] = {}

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: lsp.PublishDiagnosticsParams) -> None:
            self._published.put_nowait(params)

        @client.feature(lsp.WORKSPACE_APPLY_EDIT)
        def _(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
            self.edits.append(params.edit)
            return lsp.ApplyWorkspaceEditResult(applied=True)

        @client.feature(lsp.WINDOW_SHOW_MESSAGE)
        def _(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

    async def open(self, file: Path) -> str:
        """Open a file; returns its address."""
        uri, text = file.as_uri(), file.read_text()
        language = "python" if file.suffix == ".py" else "mlir"
        item = lsp.TextDocumentItem(uri, language, 1, text)
        self._texts[uri] = text, 1
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, old: str, new: str) -> None:
        """Replace a part of the text."""
        text, version = self._texts[uri]
        assert old in text
        self._texts[uri] = text.replace(old, new, 1), version + 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version + 1, uri),
                [lsp.TextDocumentContentChangeWholeDocument(self._texts[uri][0])],
            )
        )

    def text(self, uri: str) -> str:
        return self._texts[uri][0]

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """The next diagnostics that the server sends."""
        return [*(await asyncio.wait_for(self._published.get(), _SECONDS)).diagnostics]

    def at(self, uri: str, mark: str, nth: int = 0) -> dict[str, Any]:
        """The place of the nth occurrence of a mark, after its `|`."""
        plain = mark.replace("|", "")
        at = -1
        for _ in range(nth + 1):
            at = self.text(uri).index(plain, at + 1)
        at += mark.index("|")
        line = self.text(uri).count("\n", 0, at)
        column = at - (self.text(uri).rfind("\n", 0, at) + 1)
        return {"text_document": lsp.TextDocumentIdentifier(uri), "position": lsp.Position(line, column)}

    async def hover(self, uri: str, mark: str, nth: int = 0) -> str:
        """The text of a hover, empty if there is none."""
        found = await self.client.text_document_hover_async(lsp.HoverParams(**self.at(uri, mark, nth)))
        return found.contents.value if found is not None and isinstance(found.contents, lsp.MarkupContent) else ""

    async def completions(self, uri: str, mark: str) -> list[str]:
        """The labels of the completions at a mark."""
        found = await self.client.text_document_completion_async(lsp.CompletionParams(**self.at(uri, mark)))
        assert isinstance(found, lsp.CompletionList)
        return [item.label for item in found.items]

    async def actions(self, uri: str, mark: str) -> dict[str, lsp.ExecuteCommandParams]:
        """The commands of the code actions at a mark, by their titles."""
        at = self.at(uri, mark)["position"]
        found = await self.client.text_document_code_action_async(
            lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), lsp.Range(at, at), lsp.CodeActionContext([]))
        )
        commands: dict[str, lsp.ExecuteCommandParams] = {}
        for action in found or ():
            # lsprotocol 2025 reads an action with a command and without an edit as a command.
            command = literal_eval(str(action.command)) if isinstance(action, lsp.Command) else None
            assert command is not None
            commands[action.title] = lsp.ExecuteCommandParams(command["command"], command["arguments"])
        return commands

    async def run(self, command: lsp.ExecuteCommandParams) -> object:
        """Execute a command of the server."""
        return await self.client.workspace_execute_command_async(command)

    def edited(self, uri: str) -> str:
        """The text after the last edit of the server."""
        changes = self.edits[-1].changes
        assert changes is not None
        (edit,) = changes[uri]
        return apply(self.text(uri), edit)


def apply(text: str, edit: lsp.TextEdit) -> str:
    """A text after an edit."""
    lines = text.split("\n")

    def offset(position: lsp.Position) -> int:
        return sum(len(line) + 1 for line in lines[: position.line]) + position.character

    return text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]


def with_server(body: Callable[[Session], Awaitable[T]]) -> T:
    """Run a body with a session, and end the server."""

    async def run() -> T:
        client = LanguageClient("test", "1")
        session = Session(client)
        await client.start_io(sys.executable, "-m", "weft.tools.weft_lsp")
        await client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities(), root_uri=None))
        client.initialized(lsp.InitializedParams())
        try:
            return await asyncio.wait_for(body(session), 4 * _SECONDS)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    return asyncio.run(run())
