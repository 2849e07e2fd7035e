"""Families of CPUs: what is known or was measured of their cores and memory, one row each.

The sizes of registers and caches of a machine are in `machine.py`, because LLVM and the system report them; the numbers
here nobody reports. A processor that is not in the table has the numbers of `Processor()`, which hold for Intel's since
Skylake, and are close for others. A new family is a row here: `weft.driver.peaks` and `benchmarks/fit_costs.py` measure
what it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Processor:
    """A family of CPUs. Times are in cycles of a core, sizes in bytes."""

    fma_ports: int = 2
    """Ports that start a multiply-add of vectors in a cycle."""
    fma_latency: int = 4
    """Cycles from a multiply-add to the next one of the same sum. (Fog, "Instruction tables")"""
    load_ports: int = 2
    store_ports: int = 1
    issue_width: int = 6
    """Instructions that start in a cycle."""
    reorder_window: int = 224
    """Instructions that are under way at a time."""
    line_bytes: int = 64
    """Bytes that caches move at once."""
    l1_ways: int = 8
    """Lines a power of two apart that L1 holds at once."""
    page_bytes: int = 4096
    l1_tlb_pages: int = 64
    """Pages whose translation the first-level TLB holds."""
    tlb_cycles: float = 8.0
    """Cycles of a translation from the second-level TLB."""
    bytes_per_cycle: tuple[float, float, float] = (32.0, 16.0, 6.0)
    """Bytes per cycle that one core reads from L2, L3 and memory."""
    prefetched_streams: int = 8
    """Streams of consecutive lines that the prefetchers of a core follow at a time."""
    prefetches_across_pages: bool = False
    """Whether the prefetchers continue across ends of pages, and keep up with streams that are read; software
    prefetches of such streams then only cost time (docs/decisions/0025-prefetching.md)."""
    memory_streams: int = 4
    """Rows that one core reads fastest side by side from memory, a power of two.
    (docs/decisions/0030-rows-from-memory.md)"""
    share_of_memory: float = 0.5
    """Share of the memory bandwidth of the machine that one core draws; with 1, arrays beyond the caches are bound by
    bytes, and with less by lines that a core can have under way. (docs/decisions/0028-streaming-stores.md)"""
    waking_cycles: float = float(1 << 14)
    """Cycles until idle threads of the pool have started."""

    @property
    def fills_memory(self) -> bool:
        """Whether one core is bound by the bandwidth of memory: then a store that does not read the line first saves
        time. With less of the bandwidth, such a store holds a place for lines under way for longer."""
        return self.share_of_memory > 0.6

    @property
    def fmas_in_flight(self) -> int:
        """Independent multiply-adds that keep the ports busy."""
        return self.fma_ports * self.fma_latency


_ZEN: Final = Processor(prefetches_across_pages=True, share_of_memory=0.9)
PROCESSORS: Final = {
    # Measured on a Zen 4 (docs/decisions/0089-large-pages.md).
    **dict.fromkeys(("znver4", "znver5"), replace(_ZEN, memory_streams=1)),
    "znver": _ZEN,
}
"""Prefixes of LLVM's names of CPUs that differ from `Processor()`; the longest one decides."""
_OTHER: Final = Processor()


def processor(cpu: str) -> Processor:
    """The family of a CPU, by LLVM's name of it."""
    prefixes = [prefix for prefix in PROCESSORS if cpu.startswith(prefix)]
    return PROCESSORS[max(prefixes, key=len)] if prefixes else _OTHER
