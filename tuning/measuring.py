"""Measurement of candidates in child processes: machine code in, times out (`docs/tuning.md`).

Candidate and reference, the program with its default schedule, must compute the same results, up to rounding, on the
same random arguments. These stay in cache if they fit (warm), except large constants of a model with many of them.
Kernels are measured by their device's clock, on device memory.
"""

from __future__ import annotations

import hashlib
import math
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.backends.llvm.jit import link_objects
from weft.backends.names import symbol_name
from weft.dialects.element_types import TYPES
from weft.interp.arguments import ArgumentRecipe
from weft.interp.compare import outputs_equal
from weft.interp.values import widen
from weft.runtime.aligned_arrays import aligned
from weft.runtime.c_compiler import compiled_symbols
from weft.runtime.call import Caller
from weft.runtime.devices import DeviceError
from weft.runtime.library import Function
from weft.runtime.native_runtime import runtime_symbols
from weft.runtime.timing import evict
from weft.support.call_signature import ArraySpec, Signature
from weft.support.limited_calls import Failure, Limits, limited_call
from weft.support.target import Target
from weft.tuning.records import FASTEST

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from weft.runtime.devices import KernelProgram
    from weft.runtime.timing import SecondsOf


@dataclass(frozen=True)
class Built:
    signature: Signature
    code: bytes
    """The object file. With kernels, the LLVM IR of the host functions, because the processors of runner and builder
    may differ."""
    target: str
    declarations: str = ""
    """In LLVM IR, of the runtime functions that it calls."""
    constants: dict[str, NDArray[Any]] = field(default_factory=dict[str, "NDArray[Any]"])
    """Large ones, by symbol."""
    c_sources: tuple[str, ...] = ()
    kernels: KernelProgram | None = None
    """Launched by the host functions."""

    @property
    def digest(self) -> bytes:
        kernels = b"" if self.kernels is None else self.kernels.text.encode()
        return hashlib.blake2b(self.code + kernels).digest()


@dataclass(frozen=True)
class ArgumentSpec:
    recipe: ArgumentRecipe
    seed: int
    reduction_length: int
    constants_from_memory: bool = False
    """Evict large constants from all caches before a call."""
    weighted: tuple[tuple[ArgumentRecipe, float], ...] = ()
    """Replaces `recipe`: arguments of several sizes, whose times are added with these weights."""


@dataclass(frozen=True)
class Repeats:
    most: int = 50
    seconds: float = 0.15
    """Of all repeats once three were undisturbed; four times that otherwise."""
    repeat_seconds: float = 0.001
    """Least time of a repeat, to which short calls are batched. Longer repeats are disturbed more often."""
    spread: float = 0.02
    """Repeats end when the three fastest differ by less."""
    hopeless_seconds: float = math.inf
    """Slower candidates are called at most three times, and once if a call is long."""


_FILLS_CACHES: Final = 0.01
"""Seconds of calls after which caches are warm and pages are mapped: a longer single call suffices to reject a
candidate."""


@dataclass(frozen=True)
class Measured:
    """Seconds per call for each repeat; or a difference from the reference, which is a bug."""

    times: tuple[float, ...]
    difference: str = ""


def measure(
    built: Built, reference: Built, arguments: ArgumentSpec, repeats: Repeats, limits: Limits
) -> Measured | Failure:
    """Call a candidate in a child process, and compare results with the reference."""
    if built.kernels is not None:
        # Drivers reserve addresses for all memory of their devices, so address space does not measure memory in use.
        limits = replace(limits, memory_bytes=0)
        return limited_call(limits, _measure_on_device, built, reference, arguments, repeats)
    return limited_call(limits, measure_here, built, reference, arguments, repeats)


def _measure_on_device(built: Built, reference: Built, arguments: ArgumentSpec, repeats: Repeats) -> Measured:
    """Measure in a process that exits when the device fails, because its context is then unusable."""
    try:
        return measure_here(built, reference, arguments, repeats)
    except DeviceError as error:
        sys.exit(error.message)


def measure_here(built: Built, reference: Built, arguments: ArgumentSpec, repeats: Repeats) -> Measured:
    if not arguments.weighted:
        return _measured_at(built, reference, arguments, repeats)
    times: list[list[float]] = []
    for recipe, weight in arguments.weighted:
        own = replace(repeats, hopeless_seconds=repeats.hopeless_seconds / weight) if weight else repeats
        measured = _measured_at(built, reference, replace(arguments, recipe=recipe, weighted=()), own)
        if measured.difference:
            return measured
        times.append([weight * seconds for seconds in sorted(measured.times)])
    return Measured(tuple(map(sum, zip(*times, strict=False))))


def _measured_at(built: Built, reference: Built, arguments: ArgumentSpec, repeats: Repeats) -> Measured:
    kept = _kept(reference, arguments)
    from_memory = arguments.constants_from_memory and built.kernels is None and bool(built.constants)
    if from_memory:  # in large pages, as in a model
        built = replace(built, constants={name: aligned(array) for name, array in built.constants.items()})
    function, values = _function(built), kept.arguments()
    before, begin = _preemptions(), perf_counter()
    function(*values)
    first = perf_counter() - begin
    difference = _difference(built.signature, values, kept.expected, arguments.reduction_length)
    if difference:
        return Measured((), difference)
    with function.runs(*values) as runs:
        seconds_of = partial(_from_memory, runs, built.constants.values()) if from_memory else runs
        calls = [first]
        while len(calls) < FASTEST and min(calls) > repeats.hopeless_seconds:
            if sum(calls) >= _FILLS_CACHES and _preemptions() == before:
                break
            calls.append(seconds_of(1))
        if min(calls) > repeats.hopeless_seconds:
            return Measured(tuple(calls))
        return Measured(_times(seconds_of, repeats))


def _from_memory(runs: SecondsOf, constants: Collection[NDArray[Any]], number: int) -> float:
    total = 0.0
    for _ in range(number):
        evict(constants)
        total += runs(1)
    return total


def _times(seconds_of: SecondsOf, repeats: Repeats) -> tuple[float, ...]:
    """Seconds of each repeat; if there are enough, only for those without preemption."""
    number = 1
    calm: list[float] = []
    disturbed: list[float] = []
    begin = perf_counter()
    while len(calm) + len(disturbed) < repeats.most:
        if len(calm) >= FASTEST and _spread(calm) <= repeats.spread:
            break
        limit = repeats.seconds if len(calm) >= FASTEST else 4 * repeats.seconds
        if len(calm) + len(disturbed) >= FASTEST and perf_counter() - begin > limit:
            break
        before = _preemptions()
        took = seconds_of(number)
        if took < repeats.repeat_seconds and not calm and not disturbed and number < 1 << 24:
            number = max(number + 1, math.ceil(number * min(1.2 * repeats.repeat_seconds / max(took, 1e-9), 100.0)))
        else:
            (calm if _preemptions() == before else disturbed).append(took / number)
    return tuple(calm if len(calm) >= FASTEST else calm + disturbed)


def _preemptions() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _spread(times: list[float]) -> float:
    fastest = sorted(times)[:FASTEST]
    return fastest[-1] / fastest[0] - 1


def _function(built: Built) -> Function:
    if built.kernels is not None:
        from weft.runtime.gpu_library import DeviceProgram, GpuFunction  # start-up: 109 ms

        program = DeviceProgram(built.kernels, built.code.decode(), [built.signature], built.constants)
        program.load()
        return GpuFunction(program, built.signature)
    target = Target.parse(built.target)
    symbols = runtime_symbols([built.declarations], target)
    symbols.update({name: array.ctypes.data for name, array in built.constants.items()})
    for source in built.c_sources:
        symbols.update(compiled_symbols(source))
    name = symbol_name(built.signature.name)
    code = link_objects([built.code], [name], symbols)
    return Function(Caller(built.signature, code.address(name), (code, built.constants), always_release_gil=True))


class _Reference:
    def __init__(self, reference: Built, arguments: ArgumentSpec) -> None:
        self.drawn = arguments.recipe.draw(arguments.seed)
        self.expected = _aligned(self.drawn)
        self._values = _aligned(self.drawn)
        _function(reference)(*self.expected)

    def arguments(self) -> list[Any]:
        """Arguments in the same memory for each call: all candidates have the same alignment and no page faults."""
        for value, drawn in zip(self._values, self.drawn, strict=True):
            if isinstance(value, np.ndarray):
                np.copyto(value, drawn)
        return self._values


def _aligned(values: list[Any]) -> list[Any]:
    return [aligned(value) if isinstance(value, np.ndarray) else value for value in values]


_KEPT: Final[dict[bytes, _Reference]] = {}
"""By code and arguments: a process measures the candidates of one program in turn."""
_MOST_KEPT: Final = 8
"""References with arguments of several sizes."""


def _kept(reference: Built, arguments: ArgumentSpec) -> _Reference:
    key = reference.digest + hashlib.blake2b(repr(arguments).encode()).digest()
    if key not in _KEPT:
        if len(_KEPT) >= _MOST_KEPT or not any(known.startswith(reference.digest) for known in _KEPT):
            _KEPT.clear()
        _KEPT[key] = _Reference(reference, arguments)
    return _KEPT[key]


def _difference(signature: Signature, values: list[Any], expected: list[Any], reduction_length: int) -> str:
    for spec, value, wanted in zip(signature.args, values, expected, strict=True):
        if not isinstance(spec, ArraySpec) or not spec.writes:
            continue
        got, want = (widen(array, TYPES[spec.dtype]) for array in (value, wanted))
        if not outputs_equal(want, got, reduction_length=reduction_length):
            wide, other = np.asarray(want, np.float64), np.asarray(got, np.float64)
            # A NaN in one of them is the largest difference.
            index = np.unravel_index(np.nan_to_num(np.abs(wide - other), nan=np.inf).argmax(), wide.shape)
            place = "".join(f"[{at}]" for at in index)
            return f"{spec.name}{place} is {got[index]}, with the default schedule it is {want[index]}"
    return ""
