"""Programs that are written for TVM 0.27 (`tests/tvm_programs`), run by weft under TVM's names and compared with NumPy.
`tests/tvm_programs/compare.py` runs the same files in TVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "tvm_programs"


FAMILIES = dict.fromkeys(("tensor_ir", "te", "relax", "trace", "dlight"), 20)
FAMILIES |= {"trace": 60, "cache": 56, "inline": 26, "motion": 40, "reduction": 27, "other": 45}


@pytest.mark.slow
@pytest.mark.parametrize(("family", "count"), FAMILIES.items())
def test_programs_of_tvm(family: str, count: int, tmp_path: Path):
    command = [sys.executable, "-m", "weft.tvm", str(FOLDER / "run_all.py"), str(tmp_path / "results.npz"), family]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"of {count} programs" in found.stdout, found.stderr
    assert len(found.stdout.splitlines()) == 1, found.stdout
    assert found.returncode == 0, found.stderr


def test_a_script_as_it_is(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport tvm\nfrom tvm import te\nfrom tvm.s_tir import Schedule\nfrom tvm.script import tirx as T\n"
        "import tvm.relax.op\nprint(sys.argv[1], tvm.__name__, Schedule.__module__, T.__name__)\n"
    )
    command = [sys.executable, "-m", "weft.tvm", str(script), "word"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["word", "weft.tvm", "weft.tvm.tir.schedule", "weft.tvm.script.tirx"], found.stderr


def test_names_that_tvm_lacks(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text("import tvm.nothing\n")
    command = [sys.executable, "-m", "weft.tvm", str(script)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No module named 'tvm.nothing'" in found.stderr
    bare = subprocess.run(command[:-1], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "usage: python -m weft.tvm" in bare.stderr
