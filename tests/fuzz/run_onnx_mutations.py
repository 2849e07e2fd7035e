"""Mutated ONNX models through the importer and the compiler: `python tests/fuzz/run_onnx_mutations.py 3000 [FIRST_SEED]
[--jobs 2]`. Seeds from 1,000,000 on start from operators of onnxruntime.

A finding is a crash of the process, ten processor seconds, and an error that is not about the model: any but weft's
own. Every fourth model that is imported is compiled too.
"""

from __future__ import annotations

import resource
import signal
import sys
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "helpers"))

from onnx import ModelProto
from onnx_mutations import contrib_sources, mutated, sources
from run_mutations import MEMORY, SECONDS, Hang, run

import weft

FIRST_CONTRIB = 1_000_000
"""The first seed of models of operators of onnxruntime."""


def problems(model: ModelProto, *, compiles: bool) -> Iterator[tuple[str, str]]:
    """What happens to a model that no input may bring about: the step and the report."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    step = "from_onnx"
    try:
        module = weft.from_onnx(model)
        step = "build"
        if compiles:
            weft.build(module, target="llvm -num-threads=1 -opt-level=0")
    except weft.WeftError:
        pass
    except Hang:
        yield step, f"hangs\n{traceback.format_exc(limit=-6)}"
    except Exception:  # noqa: BLE001 (whatever it is becomes a finding)
        yield step, traceback.format_exc(limit=-6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def model_of(seed: int) -> ModelProto:
    """The mutated model of a seed."""
    return mutated(seed, sources() if seed < FIRST_CONTRIB else contrib_sources())


def work(connection: Connection) -> None:
    """Answer seeds by their findings."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while (seed := connection.recv()) is not None:
        connection.send(list(problems(model_of(seed), compiles=seed % 4 == 0)))


if __name__ == "__main__":
    sys.exit(run(__doc__, work, model_of))
