"""The environment of a result: processor, versions, date."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from weft.support.target import Target

PACKAGES = ("weft", "xdsl", "llvmlite", "numpy", "torch", "onnxruntime", "openvino", "onnx")


def processor_name() -> str:
    """The processor's name in the system; the architecture if unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """The versions of installed packages, by name."""
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def describe(today: datetime.date | None = None) -> dict[str, str]:
    """The date, the machine and the software, in words."""
    target = Target("llvm")
    caches = ((1, target.l1_bytes), (2, target.l2_bytes), (3, target.l3_bytes))
    sizes = ", ".join(f"L{level} {_size(size)}" for level, size in caches if size)
    software: Mapping[str, str] = {"Python": platform.python_version(), **versions()}
    return {
        "date": (today or datetime.date.today()).isoformat(),
        "processor": f"{processor_name()}, {target.cores} cores, {target.vector_bytes * 8}-bit vectors, {sizes}",
        "LLVM's name": target.cpu,
        "versions": ", ".join(f"{name} {number}" for name, number in software.items()),
    }


def _size(number: int) -> str:
    return f"{number / 2**20:.3g} MiB" if number >= 1 << 20 else f"{number / 2**10:.3g} KiB"
