"""The example programs for GPUs, through OpenCL on this machine's processor (PoCL), against NumPy."""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier

import weft
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute

pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
CASES: dict[str, Any] = {case.name: case for case in importlib.import_module("gpu_programs").CASES}
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))

ODD = (70, 33, 9, 17)
TARGET = "opencl -opt-level=0"
"""PoCL takes seconds to optimise kernels with many threads and barriers, and little time to compile them."""


@pytest.mark.parametrize(
    "name", first_tier(LADDER.names("PoCL", "odd"), "sigmoid", "layernorm", "batched_matmul", "conv2d")
)
def test_odd_sizes(name: str) -> None:
    CASES[name].check(TARGET, CASES[name].fitting(*ODD))


FAR = ((1023, 17, 1, 17), (17, 1, 1023, 1), (1, 1023, 17, 3))
"""Long, odd and single extents, each in each place."""


@pytest.mark.parametrize("name", first_tier(LADDER.names("PoCL", "far"), "vector_add4", "column_sum", "matmul_local"))
def test_long_and_single_extents(name: str) -> None:
    case = CASES[name]
    for numbers in FAR:
        sizes = {n: max(size, one) for (n, size), one in zip(case.fitting(*numbers).items(), case.ones, strict=False)}
        case.check(TARGET, sizes)


@pytest.mark.parametrize("name", first_tier(LADDER.names("PoCL", "any"), "multiply", "transpose", "depthwise"))
def test_sizes_that_calls_tell(name: str) -> None:
    case = CASES[name]
    function = case.build(TARGET, case.fitting(*ODD), dynamic=True)["main"]
    fixed = {n: size for n, size in case.fitting(*ODD).items() if n in case.static}
    for numbers in (ODD, (128, 64, 32, 16), *FAR, case.ones):
        sizes = {n: max(size, one) for (n, size), one in zip(case.fitting(*numbers).items(), case.ones, strict=False)}
        arguments, expected = case.arguments({**sizes, **fixed})
        function(*arguments)
        assert case.error(arguments[-1], expected) <= case.tolerance


@pytest.mark.parametrize("name", first_tier(LADDER.names("PoCL", "optimised"), "dot"))
def test_optimised(name: str) -> None:
    CASES[name].check("opencl", CASES[name].fitting(*ODD))


def test_build_says_where_it_runs_and_gives_its_source() -> None:
    case = CASES["vector_add"]
    library = case.build("opencl -device=pocl")
    assert "Portable Computing Language" in library.device and library.device in repr(library)
    assert "__kernel" in library.get_source() and library.get_source() == library.imported_modules[0].get_source()
    arguments, expected = case.arguments({"n": 1 << 20})
    times = library.time_evaluator("main", number=2, repeat=3)(*arguments)
    assert 0 < times.min < 1
    library["main"](*arguments)
    np.testing.assert_array_equal(arguments[-1], expected)


def test_unknown_device() -> None:
    case = CASES["vector_add"]
    library = weft.build(case.schedule(n=100).mod, target="opencl -device=abacus")
    assert "__kernel" in library.get_source()
    with pytest.raises(CompileError, match=r"no OpenCL device is named 'abacus' \(there are: .*Portable"):
        library["main"](*case.arguments({"n": 100})[0])


def test_weft_run_says_which_device_it_picked(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "vector_add.mlir")
    assert execute(["run", file, "--target", TARGET, "--shape", "A=1000", "--check", "--time"]) == 0
    output = capsys.readouterr().out
    lines = dict(line.split(maxsplit=1) for line in output.splitlines()[1:])
    assert "Portable Computing Language" in lines["device"]
    assert "of the interpreter" in output and lines["time"].startswith("median")


LONG = """
import os, signal, threading
import numpy as np
import weft
from weft import te

x, k = te.placeholder((64,), "float32", name="x"), te.reduce_axis((0, 1 << 40), name="k")
y = te.compute((64,), lambda i: te.sum(x[i] * te.cast(k, "float32"), axis=k), name="y")
schedule = weft.Schedule(te.create_func([x, y], name="f"))
blocks, threads = schedule.split(schedule.get_loops("y")[0], factors=[None, 32])
schedule.bind(blocks, "blockIdx.x"), schedule.bind(threads, "threadIdx.x")
call = weft.build(schedule.mod, target="opencl")["f"]
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    call(np.ones(64, np.float32))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_long_kernels_can_be_interrupted() -> None:
    result = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\n", "")
