"""Peak rates of the machine, measured by kernels that weft generates.

Arithmetic: chains of fused multiply-adds `c = c * x + y` in registers, enough to hide the latency. Memory: reading (a
sum), copying and the triad `c = a + 3 * b` of STREAM (McCalpin, 1995), over arrays several times the last-level cache,
and over arrays that fit in L2. Rates count bytes that the program reads and writes, not lines fetched to be
overwritten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from weft.driver.pipeline import Pipeline
from weft.driver.programs import parse
from weft.driver.stages import load, lower
from weft.frontends.create_func import create_func
from weft.runtime.aligned_arrays import aligned, empty
from weft.runtime.kernel_report import MachinePeaks
from weft.runtime.library import Library
from weft.schedule.schedule import Schedule
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError
from weft.support.target import Target
from weft.texpr.expr import Expr
from weft.texpr.reductions import reduce_axis
from weft.texpr.reductions import sum as sum_over
from weft.texpr.tensor import compute, placeholder

MEMORY_KINDS = ("read", "copy", "triad")
FLOPS_PER_CHAIN = 400_000
"""Operations of one lane of one chain, two per multiply-add; they take a few hundred microseconds."""
UNROLLED = 8
"""Vectors per iteration of a memory kernel."""


@dataclass(frozen=True)
class Bandwidth:
    """`gb_per_s` of `kind` over arrays of `mib` in all, in `place`: "memory" or "L2"."""

    kind: str
    place: str
    mib: float
    gb_per_s: float


@dataclass(frozen=True)
class Peaks:
    threads: int
    gflops: dict[str, float]
    """GFLOP/s by element type."""
    bandwidths: tuple[Bandwidth, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(value: dict[str, Any]) -> Peaks:
        bandwidths = tuple(Bandwidth(**item) for item in value["bandwidths"])
        return Peaks(value["threads"], value["gflops"], bandwidths)

    def lines(self) -> list[str]:
        """Text: a line for arithmetic, and one for each place in memory."""
        rates = ", ".join(f"{dtype} {rate:.4g}" for dtype, rate in self.gflops.items())
        lines = [f"{self.threads} thread{'s' * (self.threads > 1)}: {rates} GFLOP/s"]
        for place in dict.fromkeys(b.place for b in self.bandwidths):
            parts = [b for b in self.bandwidths if b.place == place]
            rates = ", ".join(f"{b.kind} {b.gb_per_s:.4g}" for b in parts)
            lines.append(f"  {place} ({parts[0].mib:.3g} MiB): {rates} GB/s")
        return lines


class PeakMeter:
    """The best of repeated measurements with `target.num_threads` threads, because clocks vary with load.

    `memory_bytes` is the total size of the arrays of a memory kernel, by default eight times the last-level cache.
    """

    def __init__(self, target: Target, memory_bytes: int | None = None) -> None:
        self._target = target
        self._kernels = {dtype: _Chains(target, dtype) for dtype in ("float32", "float64")}
        beyond = memory_bytes or max(8 * target.l3_bytes, 64 << 20)
        self._places = (("memory", beyond), ("L2", target.l2_bytes // 2 * target.num_threads))
        self.peaks = Peaks(target.num_threads, dict.fromkeys(self._kernels, 0.0), ())

    def measure_arithmetic(self, rounds: int) -> None:
        """Keep the best of `rounds` and of the earlier measurements."""
        known = self.peaks.gflops
        rates = {dtype: max(known[dtype], kernel.gflops(rounds)) for dtype, kernel in self._kernels.items()}
        self.peaks = replace(self.peaks, gflops=rates)

    def measure_memory(self, rounds: int) -> None:
        bandwidths = (
            bandwidth(self._target, kind, place, size, rounds) for place, size in self._places for kind in MEMORY_KINDS
        )
        self.peaks = replace(self.peaks, bandwidths=tuple(bandwidths))


@cache
def quick_peaks(target: Target) -> MachinePeaks:
    """The reference of reports, measured once per process in about a second."""
    beyond = min(max(4 * target.l3_bytes, 64 << 20), 1 << 30)
    cached = target.l2_bytes * target.num_threads
    memory, cache_ = (
        max(bandwidth(target, kind, place, size, 3).gb_per_s for kind in ("read", "copy"))
        for place, size in (("memory", beyond), ("L2", cached // 2))
    )
    return MachinePeaks(_Chains(target, "float32").gflops(5), memory, cache_, cached)


class _Chains:
    def __init__(self, target: Target, dtype: str) -> None:
        lanes = target.vector_bytes // np.dtype(dtype).itemsize
        shape = (target.num_threads, chains_of(target), lanes)
        steps = FLOPS_PER_CHAIN // 2
        self._library = _compiled(multiply_adds(shape, steps, dtype), target)
        self._arguments = (np.array([0.5, 0.5], dtype), empty(shape, dtype))
        self._flops = 2 * math.prod(shape) * steps

    def gflops(self, rounds: int) -> float:
        seconds = _best(self._library, "chains", self._arguments, rounds)
        result = self._arguments[-1]
        _check("the chains of multiply-adds", result, np.ones_like(result))  # c = c / 2 + 1 / 2 has the fixed point 1
        return self._flops / seconds / 1e9


def chains_of(target: Target) -> int:
    """Concurrent chains: enough to hide the latency of current processors, few enough for the registers."""
    return min(24, target.vector_registers - 4)


def multiply_adds(shape: tuple[int, int, int], steps: int, dtype: str) -> ModuleOp:
    """Compute `C[thread, chain, lane] = C * X[0] + X[1]`, `steps` times, with C in registers."""
    threads, chains, lanes = shape
    scalar = f"f{np.dtype(dtype).itemsize * 8}"
    buffer = f"memref<{threads}x{chains}x{lanes}x{scalar}>"
    module = parse(f"""
func.func @chains(%X: memref<2x{scalar}>, %C: {buffer}) {{
  %zero = arith.constant 0.0 : {scalar}
  %one = arith.constant 1 : index
  %first = arith.constant 0 : index
  tir.for %p in {threads} {{ tir.for %c in {chains} {{ tir.for %l in {lanes} {{ tir.for %t in {steps} {{
    tir.block "chain"
        iters(%vp: spatial<{threads}>, %vc: spatial<{chains}>, %vl: spatial<{lanes}>, %vt: reduce<{steps}>)
        = [%p, %c, %l, %t] {{
      tir.init {{ memref.store %zero, %C[%vp, %vc, %vl] : {buffer} }}
      %old = memref.load %C[%vp, %vc, %vl] : {buffer}
      %x = memref.load %X[%first] : memref<2x{scalar}>
      %y = memref.load %X[%one] : memref<2x{scalar}>
      %product = arith.mulf %old, %x : {scalar}
      %new = arith.addf %product, %y : {scalar}
      memref.store %new, %C[%vp, %vc, %vl] : {buffer}
    }}
  }} }} }} }}
  func.return
}}
""")
    return _in_registers(module, "chain")


def bandwidth(target: Target, kind: str, place: str, size: int, rounds: int) -> Bandwidth:
    """GB/s of a kernel of `kind` over arrays of about `size` bytes in all."""
    lanes = target.vector_bytes // 4
    arrays = {"read": 1, "copy": 2, "triad": 3}[kind]
    rows = max(1, size // (arrays * target.num_threads * UNROLLED * target.vector_bytes))
    shape = (target.num_threads, rows, UNROLLED, lanes)
    library = _compiled(reading(shape) if kind == "read" else writing(shape, kind), target)
    inputs = [aligned(np.ones(shape, np.float32)) for _ in range(max(1, arrays - 1))]
    result = empty((shape[0], *shape[2:]) if kind == "read" else shape, "float32")
    seconds = _best(library, kind, (*inputs, result), rounds)
    expected = {"read": float(rows), "copy": 1.0, "triad": 4.0}[kind]
    _check(f"the {kind} kernel", result, np.full_like(result, expected))
    moved = arrays * inputs[0].nbytes
    return Bandwidth(kind, place, moved / 2**20, moved / seconds / 1e9)


def reading(shape: tuple[int, ...]) -> ModuleOp:
    """A program that sums the rows of each thread, one sum per lane, in registers."""
    a = placeholder(shape, "float32", name="A")
    r = reduce_axis((0, shape[1]), name="r")

    def element(p: Expr, u: Expr, lane: Expr) -> Expr:
        return sum_over(a[p, r, u, lane], axis=r)

    s = compute((shape[0], *shape[2:]), element, name="S")
    return _in_registers(create_func([a, s], name="read"), "S")


def writing(shape: tuple[int, ...], kind: str) -> ModuleOp:
    inputs = [placeholder(shape, "float32", name=name) for name in ("A", "B")[: 1 if kind == "copy" else 2]]

    def element(p: Expr, r: Expr, u: Expr, lane: Expr) -> Expr:
        first, *others = (tensor[p, r, u, lane] for tensor in inputs)
        return first + others[0] * 3.0 if others else first

    c = compute(shape, element, name="C")
    sch = Schedule(create_func([*inputs, c], name=kind))
    p, _, u, lane = sch.get_loops("C")
    sch.parallel(p)
    sch.unroll(u)
    sch.vectorize(lane)
    return sch.mod


def _in_registers(module: ModuleOp, name: str) -> ModuleOp:
    """Keep results of a reduction (thread, vector, lane, reduction) in registers until it ends."""
    sch = Schedule(module)
    block = sch.get_block(name)
    thread, vector, lane, reduction = sch.get_loops(block)
    result = sch.cache_write(block, 0, "local")
    sch.reorder(thread, reduction, vector, lane)
    sch.reverse_compute_at(result, thread)
    init = sch.decompose_reduction(block, reduction)
    for each in (init, block, result):
        *_, vector, lane = sch.get_loops(each)
        sch.unroll(vector)
        sch.vectorize(lane)
    sch.parallel(thread)
    return sch.mod


def _compiled(module: ModuleOp, target: Target) -> Library:
    return load(lower(Pipeline(module, target, BuildOptions(default_schedule=False))))


def _best(library: Library, name: str, arguments: Sequence[NDArray[Any]], rounds: int) -> float:
    return library.time_evaluator(name, number=1, repeat=rounds, min_repeat_ms=1.0)(*arguments).min


def _check(what: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
    if not np.array_equal(got, expected):
        raise CompileError(f"{what} computed {got.flat[0]}, expected {expected.flat[0]}: its time means nothing")
