"""Families of CPUs: known or measured properties of cores and memory.

LLVM and the system report sizes of registers and caches (`machine.py`). Other processors have the numbers of
`Processor()`, which hold for Intel's since Skylake and are close for others. `weft.driver.peaks` and
`benchmarks/fit_costs.py` measure a new family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Processor:
    """Times are in cycles of a core, sizes in bytes."""

    fma_ports: int = 2
    """Vector multiply-adds started per cycle."""
    fma_latency: int = 4
    """Cycles between dependent multiply-adds. (Fog, "Instruction tables")"""
    bf16_dots_per_fma: float = 1.0
    """Vector dot products of bf16 pairs (`vdpbf16ps`, `bfdot`) started in the time of a vector multiply-add."""
    load_ports: int = 2
    store_ports: int = 1
    issue_width: int = 6
    """Instructions issued per cycle."""
    reorder_window: int = 224
    """Instructions in flight."""
    line_bytes: int = 64
    """Bytes of a cache line."""
    l1_ways: int = 8
    """Lines at a power-of-two distance that L1 can hold."""
    page_bytes: int = 4096
    l1_tlb_pages: int = 64
    """Entries of the first-level TLB."""
    tlb_cycles: float = 8.0
    """Cycles of a second-level TLB hit."""
    bytes_per_cycle: tuple[float, float, float] = (32.0, 16.0, 6.0)
    """Bytes per cycle that one core reads from L2, L3 and memory."""
    prefetched_streams: int = 8
    """Streams of consecutive lines that a core's prefetchers track."""
    prefetches_across_pages: bool = False
    """Whether the prefetchers cross page boundaries and keep up with reads; software prefetches of such streams then
    only cost time (docs/decisions/0025-prefetching.md).
    """
    memory_streams: int = 4
    """The number of rows, a power of two, that one core reads fastest concurrently from memory.
    (docs/decisions/0030-rows-from-memory.md)
    """
    share_of_memory: float = 0.5
    """Fraction of the machine's memory bandwidth that one core can use. With 1, arrays beyond the caches are bound by
    bytes; with less, by the lines that a core can have in flight. (docs/decisions/0028-streaming-stores.md)
    """
    waking_cycles: float = float(1 << 14)
    """Cycles to wake the idle threads of the pool."""

    @property
    def fills_memory(self) -> bool:
        """Whether one core is bound by memory bandwidth: then streaming stores save time. Otherwise they occupy a slot
        for lines in flight for longer."""
        return self.share_of_memory > 0.6

    @property
    def bf16_dots_pay(self) -> bool:
        return 2 * self.bf16_dots_per_fma > 1

    @property
    def fmas_in_flight(self) -> int:
        return self.fma_ports * self.fma_latency


_GOLDEN_COVE: Final = Processor(
    reorder_window=512, l1_tlb_pages=96, bytes_per_cycle=(48.0, 9.0, 6.0), bf16_dots_per_fma=0.25
)
_ZEN: Final = Processor(prefetches_across_pages=True, share_of_memory=0.9)
PROCESSORS: Final = {
    # Measured on a Zen 4 (docs/decisions/0089-large-pages.md).
    "znver4": replace(_ZEN, memory_streams=1),
    # Measured on an EPYC with full 512-bit units (benchmarks/results/2026-11-30-cpu-zen5.md); the window is from AMD's
    # "Software Optimization Guide for the AMD Zen 5 Microarchitecture".
    "znver5": replace(
        _ZEN,
        issue_width=8,
        reorder_window=448,
        l1_ways=12,
        l1_tlb_pages=96,
        tlb_cycles=7.0,
        bytes_per_cycle=(62.0, 30.0, 10.0),
        memory_streams=1,
    ),
    "znver": _ZEN,
    # Measured on an Emerald Rapids: read bandwidths, and a `vdpbf16ps` of any length every second cycle, where two
    # `vfmadd231ps` and two `vpdpbusd` start per cycle (benchmarks/results/2026-11-30-amx.md).
    # (Intel, "Optimization Reference Manual", Golden Cove)
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), _GOLDEN_COVE),
}
"""Prefixes of LLVM's CPU names that differ from `Processor()`; the longest match applies."""
_OTHER: Final = Processor()


def processor(cpu: str) -> Processor:
    """`cpu` is LLVM's name."""
    prefixes = [prefix for prefix in PROCESSORS if cpu.startswith(prefix)]
    return PROCESSORS[max(prefixes, key=len)] if prefixes else _OTHER
