"""Memory in pages of its own."""

from pathlib import Path

import numpy as np
import pytest

from weft.support.pages import LARGE_PAGE, fresh_pages

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def test_pages_are_zeros_of_any_size() -> None:
    assert [bytes(fresh_pages(size)) for size in (0, 3)] == [b"\0", b"\0" * 3]


@pytest.mark.skipif(not SETTING.exists() or "[never]" in SETTING.read_text(), reason="the system has no large pages")
def test_large_memory_asks_for_large_pages() -> None:
    """Of the mapping that holds it: private, with the flag `hg` of madvise."""
    array = np.frombuffer(fresh_pages(4 * LARGE_PAGE), np.uint8)
    lines = Path("/proc/self/smaps").read_text().splitlines()
    spans = [
        (at, *(int(end, 16) for end in line.split()[0].split("-"))) for at, line in enumerate(lines) if _is_span(line)
    ]
    (begin,) = [at for at, start, end in spans if start <= array.ctypes.data < end]
    assert lines[begin].split()[1].endswith("p")
    flags = next(line for line in lines[begin:] if line.startswith("VmFlags:"))
    assert "hg" in flags.split()


def _is_span(line: str) -> bool:
    return "-" in line.split()[0] and not line.split()[0].endswith(":")
