"""Targets of random programs: CPUs with different instructions, and C."""

from __future__ import annotations

_TARGETS = ("llvm -mcpu=haswell", "llvm -mcpu=znver4", "llvm -mcpu=x86-64-v2", "c")


def target_of(seed: int) -> str:
    """Returns each target in turn, with one thread, then with two."""
    threads = 1 + seed // len(_TARGETS) % 2
    return f"{_TARGETS[seed % len(_TARGETS)]} -opt-level=0 -num-threads={threads}"
