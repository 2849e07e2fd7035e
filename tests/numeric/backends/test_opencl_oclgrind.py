"""The example programs for GPUs under Oclgrind: no race, no use of memory that nobody wrote, no access beyond an array.

Planted bugs are found.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

cl = pytest.importorskip("pyopencl", reason="OpenCL is not installed: pip install 'weft[opencl]'")
if "Oclgrind" not in {platform.name for platform in cl.get_platforms()}:
    pytest.skip("Oclgrind is not installed: pip install 'weft[opencl]'", allow_module_level=True)

PROGRAM = Path(__file__).resolve().parents[2] / "helpers" / "oclgrind_programs.py"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gpu"
sys.path.insert(0, str(EXAMPLES))
LADDER = importlib.import_module("ladder")
sys.path.remove(str(EXAMPLES))


def simulated(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """What `oclgrind_programs.py` prints."""
    settings = {
        "OCLGRIND_LOG": str(folder / "log"),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_MAX_ERRORS": "10000000",
        "PYOPENCL_NO_CACHE": "1",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
def test_programs_are_clean(tmp_path: Path) -> None:
    names = LADDER.names("Oclgrind", "clean")
    results = simulated(tmp_path, "good", *names)
    assert [result["name"] for result in results] == names
    for result in results:
        assert not result["log"], f"{result['name']}:\n" + "\n".join(result["log"])
        assert result["error"] < 1e-5, result["name"]


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER.names("Oclgrind", "barriers"))
def test_no_barrier_can_be_left_out(tmp_path: Path, name: str) -> None:
    """Without any one of its barriers a program shows up in the log."""
    results = simulated(tmp_path, "barriers", name)
    assert results
    for result in results:
        assert result["log"], f"{result['name']} was not noticed"


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER.names("Oclgrind", "guards"))
def test_guards_that_let_one_more_through(tmp_path: Path, name: str) -> None:
    results = simulated(tmp_path, "guards", name)
    assert results
    for result in results:
        assert result["log"], f"{result['name']} was not noticed"


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER.names("Oclgrind", "atomics"))
def test_plain_stores_in_the_place_of_atomic_operations(tmp_path: Path, name: str) -> None:
    (result,) = simulated(tmp_path, "atomics", name)
    assert any("race" in line for line in result["log"]), f"{result['name']} was not noticed"
