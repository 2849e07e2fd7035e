"""`weft explore --mcp`, as a client of the Model Context Protocol talks to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest

from weft.tools.explore.mcp import answer_to, serve
from weft.tools.explore.operations import OPERATIONS, Operation, Reply, Workbench

ROOT = Path(__file__).parents[3]
MM_RELU = str(ROOT / "examples/mm_relu.mlir")


class Client:
    """A client that starts the server, as hosts do."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "weft.tools.weft_cli", "explore", "--mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        self._last = 0

    def send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def request(self, method: str, params: object = None) -> dict[str, Any]:
        self._last += 1
        message: dict[str, object] = {"jsonrpc": "2.0", "id": self._last, "method": method}
        self.send(message if params is None else {**message, "params": params})
        answer = self.receive()
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == self._last
        return answer

    def call(self, name: str, **arguments: object) -> tuple[str, dict[str, Any]]:
        """The text of a tool's result, and the whole result, which is no error."""
        result = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        assert not result["isError"], result
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], result

    def refusal(self, name: str, **arguments: object) -> str:
        result = self.request("tools/call", {"name": name, "arguments": arguments})["result"]
        assert result["isError"]
        return result["content"][0]["text"]

    def end(self) -> tuple[int, str]:
        output, _ = self._process.communicate(timeout=60)
        return self._process.returncode, output


@pytest.fixture(name="client")
def _client(tmp_path: Path) -> Generator[Client]:
    client = Client(tmp_path)
    yield client
    assert client.end() == (0, "")


def test_all_tools(client: Client, tmp_path: Path) -> None:
    found = client.request(
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
    )["result"]
    assert found["protocolVersion"] == "2025-06-18"
    assert found["serverInfo"]["name"] == "weft-explore"
    assert "tools" in found["capabilities"]
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert client.request("ping")["result"] == {}

    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    assert set(tools) == set(OPERATIONS)
    assert tools["goto"]["inputSchema"]["required"] == ["position"]
    assert tools["goto"]["inputSchema"]["properties"] == {"position": {"type": "integer"}}
    assert tools["save"]["inputSchema"]["properties"]["overwrite"] == {"type": "boolean"}
    assert all(tool["description"] for tool in tools.values())

    assert client.refusal("step") == "error: no program is loaded: load FILE"
    _, loaded = client.call("load", file=MM_RELU)
    assert loaded["structuredContent"]["upcoming"][1] == "schedules"
    text, moved = client.call("step", count=2)
    assert text.startswith("[2] i0, i1 = split(i, factors=[None, 4])")
    assert moved["structuredContent"]["at"] == 2
    assert "+  tir.for %i0 in 32 {" in client.call("diff")[0]
    assert client.call("diff", first=0, second=0)[0] == "no difference"
    assert client.call("back")[0].startswith("[1]")
    assert client.call("goto", position=2)[0].startswith("[2]")
    assert client.call("complete", line="split(C.")[1]["structuredContent"]["texts"] == ["C.i", "C.j"]
    client.call("apply", call="split(k, [None, 8])")
    refusal = client.refusal("apply", call="parallel(k0)")
    assert "requirement 2" in refusal
    assert "at the same time" in refusal
    assert client.call("undo")[1]["structuredContent"]["at"] == 2
    assert client.call("redo")[1]["structuredContent"]["at"] == 3
    assert "> [3] split(k, [None, 8])" in client.call("status")[0]
    assert "loop k0 in 16" in client.call("loops", func="mm_relu")[0]
    assert "argument" in client.call("buffers")[0]
    assert client.call("ir", func="mm_relu")[0].startswith("func.func @mm_relu")
    assert client.call("run")[1]["structuredContent"] == {"agrees": True}
    assert client.call("time")[1]["structuredContent"]["median_s"] > 0
    client.call("save", format="trace", file="t.mlir")
    assert "sched.split" in (tmp_path / "t.mlir").read_text()
    assert "exists: pass overwrite to replace it" in client.refusal("save", format="trace", file="t.mlir")
    client.call("save", format="trace", file="t.mlir", overwrite=True)
    client.call("undo")
    client.call("change")
    assert "low-choose-threads" in client.call("end")[0]


def test_output_of_programs_is_no_message(client: Client, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(f"import weft\nprint('noise')\nMODULE = weft.parse_file({MM_RELU!r})\n")
    client.call("load", file="kernel.py")
    assert client.call("status")[0].startswith("> [0] input")


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ("{", -32700, "no JSON"),
        ("[]", -32600, "batch is empty"),
        ('"text"', -32600, "a request has"),
        ({"id": 1, "method": "ping"}, -32600, "jsonrpc 2.0"),
        ({"jsonrpc": "2.0", "id": 1}, -32600, "a method"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600, "an id"),
        ({"jsonrpc": "2.0", "id": 1, "method": "pong"}, -32601, "unknown method 'pong'"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32602, "params must be an object"),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stp"}},
            -32602,
            "unknown tool 'stp', did you mean 'step'",
        ),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}, -32602, "unknown tool None"),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "step", "arguments": 1}},
            -32602,
            "arguments must be an object",
        ),
    ],
)
def test_bad_messages(message: object, code: int, text: str) -> None:
    answer = answer_to(Workbench(), message if isinstance(message, str) else json.dumps(message))
    assert isinstance(answer, dict)
    assert answer["error"]["code"] == code
    assert text in answer["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"position": "1"}, "goto: 'position' must be an integer, got '1'"),
        ({"position": True}, "goto: 'position' must be an integer, got True"),
        ({"positoin": 1}, "goto: unknown argument 'positoin', did you mean 'position'"),
        ({}, "goto: 'position' is missing: goto POSITION"),
    ],
)
def test_bad_arguments(arguments: dict[str, object], text: str) -> None:
    params = {"name": "goto", "arguments": arguments}
    answer: Any = answer_to(
        Workbench(), json.dumps({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params})
    )
    assert answer["id"] == "a"
    assert answer["result"]["isError"]
    assert text in answer["result"]["content"][0]["text"]


def test_notifications_and_batches() -> None:
    workbench = Workbench()
    assert answer_to(workbench, json.dumps({"jsonrpc": "2.0", "method": "tools/call"})) is None
    assert answer_to(workbench, json.dumps({"jsonrpc": "2.0", "id": 3, "result": {}})) is None
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answers: Any = answer_to(workbench, json.dumps([ping, {"jsonrpc": "2.0", "method": "x"}, {**ping, "id": 2}]))
    assert [answer["id"] for answer in answers] == [1, 2]
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "1999-01-01"}}
    answer: Any = answer_to(workbench, json.dumps(unknown))
    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_a_bug_does_not_end_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("weft.tools.explore.operations.Operation.call", broken)
    params = {"name": "status"}
    answer: Any = answer_to(
        Workbench(), json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    )
    assert answer["result"]["isError"]
    assert "internal error: RuntimeError: oops" in answer["result"]["content"][0]["text"]


def test_requests_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that runs, and one that waits: neither has an answer, and others are answered."""
    begun = threading.Event()

    def endless(workbench: Workbench, func: str | None = None) -> Reply:
        begun.set()
        while True:
            time.sleep(0.001)

    monkeypatch.setitem(cast("dict[str, Operation]", OPERATIONS), "run", Operation("run", endless))
    (source, to_server), (from_server, output) = os.pipe(), os.pipe()
    with os.fdopen(to_server, "w") as client, os.fdopen(from_server) as answers:

        def request(key: int, method: str, params: object) -> None:
            client.write(json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}) + "\n")

        def cancel(key: object) -> None:
            params = {"requestId": key, "reason": "not wanted"}
            client.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}) + "\n")

        with os.fdopen(source) as lines, os.fdopen(output, "w") as written:
            server = threading.Thread(target=serve, args=(Workbench("llvm"), lines, written))
            server.start()
            request(1, "tools/call", {"name": "run", "arguments": {}})
            request(2, "ping", {})
            request(3, "ping", {})
            client.flush()
            assert begun.wait(60)
            cancel(99)
            cancel(2)
            cancel([1])
            cancel(1)
            client.flush()
            assert json.loads(answers.readline()) == {"jsonrpc": "2.0", "id": 3, "result": {}}
            cancel(3)
            request(3, "ping", {})
            client.close()
            server.join(60)
            assert not server.is_alive()
        assert [json.loads(line)["id"] for line in answers] == [3]
