"""Random ONNX graphs with symbolic axes: `python tests/fuzz/run_onnx_graphs.py 500 [FIRST_SEED] [--jobs 2]`.

Each is compiled and run at several sizes, 0 and 1 among them; results are those of `onnx.reference`. A finding is a
result that differs, and any error: nodes that the importer refuses are left out of the graphs. `--show` prints these.
`WITHOUT=Slice,Pad` in the environment leaves out operators.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from onnx_graphs import OnnxProgram, check
from run_mutations import run

WITHOUT = tuple(os.environ.get("WITHOUT", "").split(","))


def problems(seed: int) -> Iterator[tuple[str, str]]:
    """What is wrong with a graph: the step and the report."""
    step = "import"
    try:
        program = OnnxProgram(seed, without=WITHOUT)
        step = "build and run"
        check(program)
    except Exception:  # noqa: BLE001 (whatever it is, it is a finding)
        yield step, traceback.format_exc(limit=-4)


def work(connection: Connection) -> None:
    """Answer seeds by their findings."""
    while (seed := connection.recv()) is not None:
        connection.send(list(problems(seed)))


def shown(seed: int) -> str:
    """A graph, and what was refused while it grew."""
    program = OnnxProgram(seed, without=WITHOUT)
    return "\n".join([str(program), *(f"refused {message}" for message in program.refusals)])


if __name__ == "__main__":
    sys.exit(run(__doc__, work, shown))
