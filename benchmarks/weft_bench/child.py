"""The measuring process: one number of threads, one request, results as lines of JSON.

    PYTHONPATH=benchmarks python -m weft_bench.child '{"what": "ladder", "threads": 1, ...}'

It is a separate process, because OpenBLAS, OpenMP and the allocator read their settings at start. `events` starts it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from weft.support.errors import CompileError, WeftError

MEASURES: Mapping[str, str] = {
    "ladder": "weft_bench.ladder",
    "ops": "weft_bench.ops",
    "model": "weft_bench.model",
    "dynamic": "weft_bench.dynamic",
}
"""Kind of request -> the module whose `measure(request)` yields events."""
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}
"""Keeps freed memory in the process, so that results allocated by a library are mapped at the next call."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "WEFT_NUM_THREADS")


def events(request: Mapping[str, Any]) -> Generator[dict[str, Any]]:
    """The events of a child process with `request["threads"]` threads. The process ends with the generator.

    Raises `CompileError` if it ends without reporting completion.
    """
    settings = dict.fromkeys(_THREADS, str(request["threads"]))
    command = [sys.executable, "-m", "weft_bench.child", json.dumps(request)]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **settings, **_KEEP_MEMORY, "PYTHONPATH": path}
    # SIGTERM ends the child too, and reports the results so far.
    signal.signal(signal.SIGTERM, _interrupt)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                event = json.loads(line)
                if event["event"] == "failed":
                    raise CompileError(event["message"])
                yield event
            status = process.wait()
        finally:
            process.kill()
    if status != 0:
        raise CompileError(f"the process that measures ended with status {status}")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Process the request on the command line."""
    request = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with events
    try:
        for event in import_module(MEASURES[request["what"]]).measure(request):
            print(json.dumps(event), file=answers)
    except WeftError as error:
        print(json.dumps({"event": "failed", "message": str(error).removeprefix("error: ")}), file=answers)
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)  # the parent reports the results so far


if __name__ == "__main__":
    main()
