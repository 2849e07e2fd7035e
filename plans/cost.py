"""The cost of a plan on a machine: cycles of a core, and bytes that move between levels of memory.

The tuner's analytical model compares `cost`, rules compare `step`. Facts of machines are in `support.processors`,
constants in `fitted.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from weft.plans import fitted
from weft.plans.traffic import LoopNest, bytes_from_beyond, caches, pages_from_beyond

if TYPE_CHECKING:
    from weft.support.processors import Processor
    from weft.support.target import Target


@dataclass(frozen=True)
class Work:
    """Instructions of a loop nest on all threads, and operands, without reference to IR."""

    operations: float = 0.0
    """Additions, multiplications, comparisons and similar operations; a vector of several registers counts once for
    each."""
    functions: float = 0.0
    """Divisions and elementary functions."""
    loads: float = 0.0
    stores: float = 0.0
    iterations: float = 0.0
    """Iterations of loops that remain loops in the code, each with a comparison and a branch."""
    chained: float = 0.0
    """Length of the longest chain of dependent operations, such as the updates of one sum."""
    loop_entries: float = 0.0
    """Executions of innermost loops."""
    nest: LoopNest = field(default_factory=LoopNest)
    threads: float = 1.0
    """The average number of busy threads."""


@dataclass
class Cost:
    """An estimate: `cycles` of wall time, bytes by level, and the bounds of the cycles: the time of each unit of a core
    alone.
    """

    cycles: float = 0.0
    bytes_beyond_l1: float = 0.0
    bytes_beyond_l2: float = 0.0
    memory_bytes: float = 0.0
    """Bytes from beyond L3, or L2 if that is larger."""
    page_misses: float = 0.0
    """Pages whose translation the first-level TLB lacks."""
    arithmetic_cycles: float = 0.0
    load_cycles: float = 0.0
    store_cycles: float = 0.0
    issue_cycles: float = 0.0
    chain_cycles: float = 0.0
    """The longest chain of dependent operations."""
    transfer_cycles: float = 0.0
    """Transfer of the bytes from beyond L1, one level after the other."""


def cost(work: Work, target: Target) -> Cost:
    """The cost of `work` on the CPU of `target`.

    Cycles are a share of the sum of bounds, because units of a core overlap, plus loop entries and page misses, without
    transfers, which prefetching hides (docs/decisions/0088-what-the-cost-model-learns.md).
    """
    cpu = target.processor
    second, third, memory = moved = [sum(bytes_from_beyond(work.nest, cache, cpu)) for cache in caches(target)]
    pages = pages_from_beyond(work.nest, cpu)
    instructions = work.operations + work.functions + work.loads + work.stores
    bounds = (
        work.operations / cpu.fma_ports + fitted.FUNCTION * work.functions,
        work.loads / cpu.load_ports,
        work.stores / cpu.store_ports,
        (instructions + 2.0 * work.iterations) / cpu.issue_width,
        cpu.fma_latency * work.chained,
    )
    cycles = fitted.OVERLAP * sum(bounds) + fitted.LOOP_ENTRY * work.loop_entries + cpu.tlb_cycles * pages
    if work.threads > 1:
        cycles = cycles / work.threads + cpu.waking_cycles
    transfer = sum(count / rate for count, rate in zip(moved, cpu.bytes_per_cycle, strict=True))
    return Cost(cycles, second, third, memory, pages, *bounds, transfer)


def step(costs: fitted.TileCosts, products: int, vectors: int, elements: float, processor: Processor) -> float:
    """The cost of one reduction step of a register tile, in multiply-adds of vectors: `products` of them, which wait
    for each other if fewer than the ports have in flight, and loads of `vectors` and `elements`.
    """
    wait = max(1.0, processor.fmas_in_flight / products)
    loads = costs.vector * vectors + costs.element * elements
    return costs.product * max(products, processor.fmas_in_flight) + (loads * wait if costs.loads_wait else loads)


def threads_pay_from(processor: Processor) -> int:
    """The least scalar multiply-adds, at the peak rate of 32-byte vectors, for which other threads are woken."""
    return int(fitted.THREADS_PAY * processor.waking_cycles * processor.fma_ports * _LANES)


def instructions_pay_from(processor: Processor) -> int:
    """The least instructions for which other threads are woken, if known at run time only."""
    return int(fitted.INSTRUCTIONS_PAY * processor.waking_cycles)


_LANES: Final = 8
"""The number of elements of 4 bytes in a vector of 32 bytes."""
