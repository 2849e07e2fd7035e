"""A headless browser that tests drive: Chromium, by the DevTools protocol over two pipes."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)


class Page:
    """A page in the browser; `problems` are errors of its script and console, `requests` what it loaded."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = os.fdopen(commands, "wb"), os.fdopen(answers, "rb")
        self._last, self._session = 0, ""
        self._unread = b""
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._is_loaded = False
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command of the protocol."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while (found := self._receive()).get("id") != self._last:
            pass
        assert "error" not in found, f"{method}: {found}"
        return found["result"]

    def _receive(self) -> dict[str, Any]:
        """The next message; what events tell is kept."""
        while b"\0" not in self._unread:
            part = os.read(self._answers.fileno(), 1 << 20)
            assert part, "the browser went away"
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.problems.append(json.dumps(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.problems.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Page.loadEventFired":
                self._is_loaded = True
            case _:
                pass
        return message

    def open(self, file: Path) -> None:
        """Load a file, and wait until it is loaded."""
        self._is_loaded = False
        self.problems, self.requests = [], []
        self.send("Page.navigate", url=file.as_uri())
        while not self._is_loaded:
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript; waits for a promise."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, where the focus is."""
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13, "Home": 36}
        typed = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **typed)
            typed = {}


@contextmanager
def chromium() -> Generator[Page]:
    """A page of a new browser, which ends with the context."""
    assert CHROMIUM is not None
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()

    def take_pipes() -> None:
        """The browser reads commands from file 3, and writes answers to file 4."""
        first, second = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (commands_out, answers_in))
        os.dup2(first, 3)
        os.dup2(second, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}"],
            pass_fds=(3, 4, commands_out, answers_in),
            preexec_fn=take_pipes,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        try:
            yield Page(commands_in, answers_out)
        finally:
            process.kill()
            process.wait()
