"""Memory in pages of its own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.support.pages import LARGE_PAGE, fresh_pages

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def test_pages_are_zeros_of_any_size() -> None:
    assert [bytes(fresh_pages(size)) for size in (0, 3)] == [b"\0", b"\0" * 3]


@pytest.mark.skipif(not SETTING.exists() or "[never]" in SETTING.read_text(), reason="the system has no large pages")
def test_large_memory_asks_for_large_pages() -> None:
    _check_mapping(np.frombuffer(fresh_pages(4 * LARGE_PAGE), np.uint8))


@pytest.mark.skipif(not SETTING.exists() or "[never]" in SETTING.read_text(), reason="the system has no large pages")
def test_constants_below_a_large_page_share_large_pages() -> None:
    bb, count = G.BlockBuilder(), 5
    numbers = np.arange(LARGE_PAGE // 8, dtype=np.float32).reshape(-1, 512)
    x = G.var("x", numbers.shape)
    with bb.function("main", [x]):
        value: Any = x
        for at in range(count):
            value = bb.emit(G.add(value, G.const(numbers + at)))
        bb.emit_func_output(value)
    library = weft.build(bb.get(), target="llvm -num-threads=1")
    arrays = [array for array in library.constants.values() if array.nbytes == LARGE_PAGE // 2]
    assert len(arrays) == count
    for array in arrays:
        _check_mapping(array)
    np.testing.assert_array_equal(library["main"](numbers), 6 * numbers + 10)


def _check_mapping(array: np.ndarray[Any, Any]) -> None:
    """The mapping that holds it is private, with the flag `hg` of madvise."""
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
