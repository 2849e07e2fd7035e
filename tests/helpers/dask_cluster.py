"""A scheduler of Dask and workers, as processes on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType


class DaskCluster:
    """Processes that end with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def scheduler(self) -> subprocess.Popen[bytes]:
        """Start the scheduler, on the same address each time."""
        return self._started("scheduler", "--port", str(self._port), "--host", "127.0.0.1", "--no-dashboard")

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one thread. It ends when its scheduler does."""
        nothing = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(self._folder))
        return self._started("worker", self.address, *nothing)

    def _started(self, what: str, *words: str) -> subprocess.Popen[bytes]:
        log = self._stack.enter_context((self._folder / f"{what}.log").open("ab"))
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process
