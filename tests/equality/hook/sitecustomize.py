"""Record the code that weft generates in this process, if `record.py` started the process or one of its parents.

Python imports this module at start-up because its folder is in PYTHONPATH. It wraps the functions through which all
generated code passes: `llvmlite.binding.parse_assembly` and the constructor of `KernelSource` (C, CUDA, OpenCL, Metal);
and the one that applies default schedules, whose traces it records. Each text is appended to the recording with a
label: the test that pytest runs, or the command line.
"""

import atexit
import importlib.abc
import importlib.util
import os
import sys
import threading
import zlib
from collections.abc import Callable, Sequence
from hashlib import blake2b
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(os.environ["WEFT_RECORDING"]) if "WEFT_RECORDING" in os.environ else None
lines: list[str] = []


def label() -> str:
    """The test that runs, or the command line without folders, which differ between two runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    return " ".join((test or " ".join(Path(argument).name for argument in sys.orig_argv[1:])).split())


def record(kind: str, text: str) -> None:
    """Append a text to the recording."""
    assert FOLDER is not None
    data = text.encode(errors="surrogateescape")
    digest = blake2b(data, digest_size=16).hexdigest()
    file = FOLDER / "texts" / digest
    if not file.exists():
        partial = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        partial.write_bytes(zlib.compress(data, 1))
        partial.replace(file)
    lines.append(f"{label()}\t{kind}\t{digest}\n")
    if len(lines) >= 100:
        write()


def write() -> None:
    """Write what this process has recorded since the last call."""
    if FOLDER is not None and lines:
        with (FOLDER / f"{os.getpid()}.tsv").open("a") as file:
            file.writelines(lines)
        lines.clear()


def _in_llvm(module: ModuleType) -> None:
    original = module.parse_assembly

    def parse_assembly(llvmir: str, *arguments: Any, **keywords: Any) -> Any:
        record("llvm", llvmir)
        return original(llvmir, *arguments, **keywords)

    module.parse_assembly = parse_assembly  # type: ignore[attr-defined]


def _in_c(module: ModuleType) -> None:
    original = module.KernelSource.__init__

    def initialize(self: Any, text: str, *arguments: Any, **keywords: Any) -> None:
        record("c", text)
        original(self, text, *arguments, **keywords)

    module.KernelSource.__init__ = initialize


def _in_schedules(module: ModuleType) -> None:
    original = module.apply_default_schedule

    def apply_default_schedule(*arguments: Any, **keywords: Any) -> Any:
        traces = original(*arguments, **keywords)
        for trace in traces:
            record("schedule", str(trace))
        return traces

    module.apply_default_schedule = apply_default_schedule  # type: ignore[attr-defined]


def _in_this_process(module: ModuleType) -> None:
    """Workers would be ended before they write, and the number of them depends on times."""
    module.WORTH_A_PROCESS = float("inf")  # type: ignore[attr-defined]


def _not_isolated(module: ModuleType) -> None:
    """Code for another CPU is compiled in a worker, which has another label."""
    module.isolated = lambda _, function, *arguments, **keywords: function(*arguments, **keywords)  # type: ignore[attr-defined]


PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "llvmlite.binding": _in_llvm,
    "weft.backends.c_family.emitter": _in_c,
    "weft.autoschedule.default_schedule": _in_schedules,
    "weft.driver.kernels": _in_this_process,
    "weft.support.isolation": _not_isolated,
}


class Patching(importlib.abc.MetaPathFinder):
    """Find modules as usual, and patch those of `PATCHES` after they have run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name not in PATCHES:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            PATCHES[name](module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if FOLDER is not None:
    sys.meta_path.insert(0, Patching())
    atexit.register(write)
    os.register_at_fork(before=write, after_in_child=lines.clear)
