"""`weft explore --mcp`: a server of the Model Context Protocol on standard input and output
(https://modelcontextprotocol.io/specification).

Messages are JSON-RPC 2.0, one a line. Operations are tools; a refusal is a result with `isError`, so that the client
sees its text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.metadata import version
from queue import Queue
from threading import Lock, Thread
from typing import Final, TextIO, cast

from weft.support.errors import CompileError, did_you_mean
from weft.tools.explore.cancellation import Cancellable
from weft.tools.explore.operations import OPERATIONS, Operation, Workbench
from weft.tools.failures import message_of

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions of the protocol that the server speaks, the newest first."""
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
_TYPES: Final[Mapping[type, str]] = {str: "string", int: "integer", bool: "boolean"}


class _RequestError(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def serve(workbench: Workbench, source: TextIO, output: TextIO) -> int:
    """Answer in order until the input ends. Programs print to standard error."""
    server = _Server(workbench)
    reader = Thread(target=server.read, args=(source,), name="weft-mcp", daemon=True)
    reader.start()
    while (line := server.next_line()) is not None:
        with redirect_stdout(sys.stderr):
            answer = server.answer(line)
        if answer is not None:
            output.write(json.dumps(answer) + "\n")
            output.flush()
    return 0


class _Server:
    """One thread answers; another one reads, and cancels requests that wait or run."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._lines: Queue[str | None] = Queue()
        self._running = Cancellable()
        self._lock = Lock()
        self._current: object = None
        """Key of the request that runs."""
        self._waiting: list[object] = []
        """Keys of requests that were read."""
        self._cancelled: list[object] = []
        """Keys of those that the client cancelled before they ran."""

    def read(self, source: TextIO) -> None:
        for line in source:
            if line.strip() and not self._cancels(line):
                self._lines.put(line)
        self._lines.put(None)

    def next_line(self) -> str | None:
        return self._lines.get()

    def answer(self, line: str) -> object | None:
        """Cancelled requests get no answer."""
        key = _key_of(_message(line))
        with self._lock:
            if key is not None and key in self._waiting:
                self._waiting.remove(key)
            if key is not None and key in self._cancelled:
                self._cancelled.remove(key)
                return None
            self._current = key

        def body() -> object | None:
            with self._lock:
                if key is not None and key in self._cancelled:  # since it is current
                    raise KeyboardInterrupt
            return answer_to(self._workbench, line)

        try:
            return self._running.run(body)
        except CompileError:  # cancelled: other errors are answers
            return None
        finally:
            with self._lock:
                self._current = None
                if key in self._cancelled:
                    self._cancelled.remove(key)

    def _cancels(self, line: str) -> bool:
        """Carry a cancellation out; keys of other requests are remembered."""
        message = _message(line)
        if message.get("method") != "notifications/cancelled" or "id" in message:
            key = _key_of(message)
            if key is not None:
                with self._lock:
                    self._waiting.append(key)
            return False
        params = message.get("params")
        key = cast("Mapping[str, object]", params).get("requestId") if isinstance(params, dict) else None
        with self._lock:
            is_running = key is not None and key == self._current
            if (is_running and not self._running.cancel()) or key in self._waiting:
                self._cancelled.append(key)
        return True


def _message(line: str) -> Mapping[str, object]:
    """Returns an empty mapping for batches and text other than JSON."""
    try:
        message: object = json.loads(line)
    except ValueError:
        return {}
    return cast("Mapping[str, object]", message) if isinstance(message, dict) else {}


def _key_of(message: Mapping[str, object]) -> object:
    return message.get("id") if "method" in message else None


def answer_to(workbench: Workbench, line: str) -> object | None:
    """Accepts batches; notifications get no answer."""
    try:
        message: object = json.loads(line)
    except ValueError as error:
        return _failure(None, PARSE_ERROR, f"the message is no JSON: {error}")
    if isinstance(message, list):
        answers = [_answer(workbench, one) for one in cast("list[object]", message)]
        if not answers:
            return _failure(None, INVALID_REQUEST, "the batch is empty")
        return [answer for answer in answers if answer is not None] or None
    return _answer(workbench, message)


def _answer(workbench: Workbench, message: object) -> dict[str, object] | None:
    request = cast("Mapping[str, object]", message) if isinstance(message, dict) else dict[str, object]()
    key, method, params = request.get("id"), request.get("method"), request.get("params", {})
    if request.get("jsonrpc") != "2.0" or not isinstance(method, str) or isinstance(key, bool | dict | list):
        if "id" in request and ("result" in request or "error" in request):
            return None  # because a response has no answer
        return _failure(None, INVALID_REQUEST, "a request has jsonrpc 2.0, a method and an id")
    if "id" not in request:
        return None
    try:
        if not isinstance(params, dict):
            raise _RequestError(INVALID_PARAMS, "params must be an object")
        result = _result(workbench, method, cast("Mapping[str, object]", params))
    except _RequestError as error:
        return _failure(key, error.code, str(error))
    except Exception as error:  # noqa: BLE001 - a bug must not end the server
        return _failure(key, INTERNAL_ERROR, message_of(error))
    return {"jsonrpc": "2.0", "id": key, "result": result}


def _failure(key: object, code: int, message: str) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}}


def _result(workbench: Workbench, method: str, params: Mapping[str, object]) -> dict[str, object]:
    match method:
        case "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {"listChanged": False}},
                "serverInfo": {"name": "weft-explore", "title": "weft explore", "version": version("weft")},
                "instructions": "Load a program, step through its pipeline, apply schedule primitives with exact "
                "legality, look at differences, loops and buffers, run, time and save it.",
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_description(operation) for operation in OPERATIONS.values()]}
        case "tools/call":
            return _called(workbench, params)
        case _:
            raise _RequestError(UNKNOWN_METHOD, f"unknown method '{method}'")


def _description(operation: Operation) -> dict[str, object]:
    properties = {name: {"type": _TYPES[kind]} for name, (kind, _) in operation.parameters.items()}
    required = [name for name, (_, is_required) in operation.parameters.items() if is_required]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": operation.name, "description": operation.summary, "inputSchema": schema}


def _called(workbench: Workbench, params: Mapping[str, object]) -> dict[str, object]:
    name, arguments = params.get("name"), params.get("arguments", {})
    if not isinstance(name, str) or name not in OPERATIONS:
        hint = did_you_mean(name, OPERATIONS) if isinstance(name, str) else ""
        raise _RequestError(INVALID_PARAMS, f"unknown tool {name!r}{hint}")
    if not isinstance(arguments, dict):
        raise _RequestError(INVALID_PARAMS, "arguments must be an object")
    try:
        reply = OPERATIONS[name].call(workbench, cast("Mapping[str, object]", arguments))
    except FileExistsError as error:
        return _content(f"{error}: pass overwrite to replace it", is_error=True)
    except Exception as error:  # noqa: BLE001 - every failure is a result that the client reads
        return _content(message_of(error), is_error=True)
    return {**_content(reply.text), **({"structuredContent": reply.data} if reply.data else {})}


def _content(text: str, *, is_error: bool = False) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
