"""The core runs where no extra is installed: `make run`, and the commands that the README shows first."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import runpy, sys
hidden, program, sys.argv[1:] = sys.argv[1].split(), sys.argv[2], sys.argv[3:]
sys.modules.update(dict.fromkeys(hidden))  # as if they were not installed
run = runpy.run_path if program.endswith(".py") else runpy.run_module
run(program, run_name="__main__")
"""


def normalized(name: str) -> str:
    """A distribution's name in the one spelling of PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def core_distributions() -> set[str]:
    """The names of the distributions that weft needs without an extra, directly or not."""
    found: set[str] = set()
    missing = ["weft"]
    while missing:
        name = missing.pop()
        if name not in found:
            found.add(name)
            lines = [line for line in requires(name) or () if "extra ==" not in line]
            missing += [normalized(re.split(r"[^\w.-]", line)[0]) for line in lines]
    return found


@pytest.mark.parametrize(
    "command",
    [
        ("examples/run_mm_relu.py",),
        ("weft.tools.weft_cli", "--help"),
        ("weft.tools.weft_cli", "run", "examples/mm_relu.mlir", "--check"),
        ("weft.tools.weft_opt", "examples/mm_relu.mlir", "-p", "default-schedule"),
    ],
    ids=" ".join,
)
def test_core_runs_without_extras(command: tuple[str, ...]) -> None:
    core = core_distributions()
    assert {"xdsl", "numpy", "llvmlite", "islpy"} <= core
    extras = [
        module
        for module, names in packages_distributions().items()
        if module not in sys.stdlib_module_names and core.isdisjoint(map(normalized, names))
    ]
    program = [sys.executable, "-c", PROGRAM, " ".join(sorted(extras)), *command]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
