"""The `.ll` files that weft brings along: LLVM accepts each with every set of parameters that weft uses."""

import re
import tomllib
from pathlib import Path
from string import Template

import llvmlite.binding as llvm
import numpy as np
import pytest

from weft.backends.llvm.resources import HELPERS_FILE, ir_text
from weft.runtime.call import native_call_ir
from weft.runtime.export.program import threads_ir
from weft.runtime.export.weights import ExportedConstants
from weft.runtime.native_runtime import (
    FUTEX_SYSCALLS,
    MAX_THREADS,
    linux_ir,
    memory_ir,
    parallel_for_ir,
    pool_ir,
    results_ir,
)
from weft.runtime.registered_functions import registered_functions_ir
from weft.runtime.timing import EVICT_FILE, REPEAT_FILE
from weft.support.target import Target

ROOT = Path(__file__).parents[3]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FILES = sorted(
    path.relative_to(ROOT) for room in SETUPTOOLS["package-dir"].values() for path in (ROOT / room).rglob("*.ll")
)
ARCHITECTURES = ("x86_64", "AMD64", "aarch64", "arm64", "riscv64", "i686")
"""Those with a hint or system calls of their own, and one with neither."""
TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu", "arm64-apple-darwin")

CASES = {
    "backends/llvm/float_helpers.ll": [ir_text(HELPERS_FILE)],
    "runtime/memory.ll": [memory_ir(architecture) for architecture in ARCHITECTURES],
    "runtime/native_call.ll": [native_call_ir()],
    "runtime/parallel_for.ll": [parallel_for_ir(threads) for threads in (1, MAX_THREADS)],
    "runtime/registered_functions.ll": [registered_functions_ir(thread_local=own) for own in (False, True)],
    "runtime/results.ll": [results_ir()],
    "runtime/repeat.ll": [ir_text(REPEAT_FILE)],
    "runtime/evict.ll": [ir_text(EVICT_FILE)],
    "runtime/futex.ll": [linux_ir(architecture) for architecture in FUTEX_SYSCALLS],
    "runtime/thread_pool.ll": [pool_ir(a, linux_ir(a)) for a in FUTEX_SYSCALLS],
    "runtime/export/pool_start.ll": (pools := [threads_ir(Target.parse(f"llvm -mtriple={t}")) for t in TRIPLES]),
    "runtime/export/condition_variable.ll": pools[-1:],
    "runtime/export/weights.ll": [
        part.text for part in [ExportedConstants({"weft_const_0": np.zeros(32)}, in_file=True).part()] if part
    ],
}


def test_every_file_is_checked_and_installed() -> None:
    assert sorted(CASES) == [str(file) for file in FILES]
    for file in FILES:
        assert "*.ll" in SETUPTOOLS["package-data"]["weft." + ".".join(file.parent.parts)]


@pytest.mark.parametrize("file", CASES)
def test_llvm_accepts_the_file_with_all_parameters(file: str) -> None:
    for text in CASES[file]:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
        # The texts are made of this very file.
        defined = re.findall(r"^define .*@([\w.]+)\(", (ROOT / file).read_text(), re.MULTILINE)
        assert set(defined) <= {f.name for f in module.functions if not f.is_declaration}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_parameters_are_described_at_the_top(file: Path) -> None:
    text = (ROOT / file).read_text()
    head = text.partition("\n\n")[0]
    assert all(line.startswith(";") for line in head.splitlines())
    assert [name for name in Template(text).get_identifiers() if not re.search(rf"\b{name}\b", head)] == []


def test_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(KeyError, match="threads"):
        ir_text(ROOT / "runtime" / "parallel_for.ll")
