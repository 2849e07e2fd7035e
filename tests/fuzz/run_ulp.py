"""Errors of elementary functions over all f32 numbers: `python tests/fuzz/run_ulp.py [exp tanh ...] --mcpu haswell`.

Each function is compiled as a tensor expression of 16 lanes, for this machine or for `--mcpu` (which this machine must
run), and its results for all 2^32 encodings are compared with a reference in double. A line a function: the largest
error in units in the last place and where it is, how many results are not the nearest number, and how many are plainly
wrong (NaN for a number or a number for NaN, no infinity where the exact value is one, the wrong sign). About a minute a
function; `--part 2/4` looks at the second quarter of the encodings, `--stride 31` at every 31st.

References are NumPy's functions, and PyTorch's erf where PyTorch is installed (else a series, which is slow).
`--check-references` compares them with mpmath, at numbers of all magnitudes, which says how far they can be trusted.
`--same-as haswell` compares the bits of the results with those of the code for another CPU instead, which is quicker
where they should be the same.
The exit status is 1 when a result is plainly wrong, an error exceeds its bound in `tests/helpers/ulps.py`, or results
that should be the same differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from ulps import BOUNDS, COMPOSED_BOUNDS, EXACT, errors  # noqa: E402

import weft  # noqa: E402
from weft import te  # noqa: E402

Array = NDArray[Any]

CHUNK: Final = 1 << 15
"""Numbers at a time: what is computed of them stays in the second cache."""
LANES: Final = 16
_EXPONENT: Final = 0x7FF << 52
"""The bits of the exponent of a double: alone they are a power of two."""
_SMALLEST_NORMAL: Final = 2.0**-126
_EPSILON: Final = 2.0**-23


@dataclass(frozen=True)
class Subject:
    """A function of one number: as weft has it, its reference in double, its bound in ulp (None where it is the C
    library's function), and how mpmath computes it."""

    expression: Callable[[te.Expr], te.Expr]
    reference: Callable[[Array], Array]
    bound: float | None
    precise: Callable[[Any, Any], Any]
    is_monotone: bool = False
    """Whether the function rises, or falls, all over its domain, which is an interval."""


def _erf() -> Callable[[Array], Array]:
    try:
        import torch
    except ImportError:
        return EXACT["erf"]
    torch.set_num_threads(1)
    return lambda x: torch.erf(torch.from_numpy(x)).numpy()


def _power(name: str, base: float | None, exponent: float | None) -> tuple[str, Subject]:
    """x to a fixed power, or a fixed base to the power x."""
    f32 = np.float32
    if exponent is not None:
        y = float(f32(exponent))
        subject = Subject(lambda x: te.pow(x, y), lambda x: np.power(x, y), 0.51, lambda m, x: m.power(x, y))
    else:
        b = float(f32(base))
        subject = Subject(lambda x: te.pow(b, x), lambda x: np.power(b, x), 0.51, lambda m, x: m.power(b, x))
    return name, subject


def subjects() -> dict[str, Subject]:
    """By name, those with formulas of weft's own first."""
    found: dict[str, Subject] = {}
    bounds = BOUNDS | COMPOSED_BOUNDS
    for name, reference in EXACT.items():
        if hasattr(te, name):
            bound = bounds[name][0] if name in bounds else None
            reference = _erf() if name == "erf" else reference
            precise = _PRECISE.get(name) or _precise_of(name)
            found[name] = Subject(
                getattr(te, name), reference, bound, precise, name not in ("sin", "cos", "tan", "cosh")
            )
    powers = (
        *(_power(f"pow(x, {y})", None, y) for y in (0.3, -7.0, 3.0)),
        *(_power(f"pow({b}, x)", b, None) for b in (10.0, 0.999, -3.0)),
    )
    return found | dict(powers)


def _precise_of(name: str) -> Callable[[Any, Any], Any]:
    return lambda m, x: getattr(m, name)(x)


_PRECISE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "exp2": lambda m, x: m.power(2, x),
    "log2": lambda m, x: m.log(x, 2),
    "rsqrt": lambda m, x: 1 / m.sqrt(x),
    "cbrt": lambda m, x: m.sign(x) * m.cbrt(abs(x)),
    "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)),
}


@dataclass
class Findings:
    """What is known of a function so far."""

    largest: float = 0.5
    """In ulp. What is rounded correctly may be half a unit off, and is not told apart."""
    place: float = 0.0
    seen: int = 0
    not_nearest: int = 0
    wrong_nans: int = 0
    wrong_infinities: int = 0
    wrong_signs: int = 0

    @property
    def wrong(self) -> int:
        return self.wrong_nans + self.wrong_infinities + self.wrong_signs

    def add(self, numbers: Array, result: Array, exact: Array) -> None:
        """Compare f32 results with exact values. What has the bits of the nearest number needs no closer look."""
        self.seen += len(numbers)
        (off,) = np.nonzero(exact.astype(np.float32).view(np.int32) != result.view(np.int32))
        if not len(off) or (len(off) == len(numbers) and np.isnan(result).all() and np.isnan(exact).all()):
            return
        result, exact = result[off], exact[off]
        size = exact.view(np.int64) & _EXPONENT
        distance = np.abs(result - exact) / np.maximum(size.view(np.float64), _SMALLEST_NORMAL)
        # What is not a number is worse as well.
        differ = (result.view(np.int32) < 0) != (exact.view(np.int64) < 0)
        (worse,) = np.nonzero(~(distance <= self.largest * _EPSILON) | differ)
        self.not_nearest += len(off)
        if len(worse):
            self._look(numbers[off[worse]], result[worse], exact[worse])

    def _look(self, numbers: Array, result: Array, exact: Array) -> None:
        """Compare results that are worse than those before, or wrong."""
        is_nan, should_be = np.isnan(result), np.isnan(exact)
        self.not_nearest -= int(np.count_nonzero(is_nan & should_be))
        self.wrong_nans += int(np.count_nonzero(is_nan != should_be))
        self.wrong_infinities += int(np.count_nonzero(np.isinf(exact) & (result != exact)))
        signs = ~is_nan & ~should_be & (np.signbit(result) != np.signbit(exact))
        self.wrong_signs += int(np.count_nonzero(signs))
        found = np.where(signs, np.inf, errors(result, exact))
        at = int(np.argmax(found))
        if found[at] > self.largest:
            self.largest, self.place = float(found[at]), float(numbers[at])


def kernel(subject: Subject, target: str) -> Callable[[Array, Array], None]:
    """The function on `CHUNK` numbers, `LANES` at a time."""
    A = te.placeholder((CHUNK,), "float32", name="A")
    B = te.compute((CHUNK,), lambda i: subject.expression(A[i]), name="B")
    sch = weft.Schedule(te.create_func([A, B], name="apply"))
    _, inner = sch.split(sch.get_loops("B")[0], factors=[None, LANES])
    sch.vectorize(inner)
    return weft.build(sch.mod, target=target)["apply"]


def are_as_at_the_ends(reference: Callable[[Array], Array], numbers: Array, result: Array) -> bool:
    """Whether a monotone function rounds to the same number at both ends of a run of numbers, or is defined at neither,
    and all results are that: then they are right, and most of the encodings, which are very large or very small, take
    little time."""
    first, last = reference(numbers[[0, -1]].astype(np.float64)).astype(np.float32)
    if np.isnan(first) and np.isnan(last):
        return bool(np.isnan(result).all())
    bits = first.view(np.int32)
    return bool(bits == last.view(np.int32) and (result.view(np.int32) == bits).all())


def examine(subject: Subject, target: str, encodings: range) -> Findings:
    """Errors over `encodings`, whose step must leave all low bits their turn."""
    run = kernel(subject, target)
    findings = Findings()
    first, result = np.arange(CHUNK, dtype=np.uint32) * np.uint32(encodings.step), np.empty(CHUNK, np.float32)
    for start in range(encodings.start, encodings.stop, CHUNK * encodings.step):
        numbers = (first + np.uint32(start)).view(np.float32)
        run(numbers, result)
        with np.errstate(all="ignore"):
            if subject.is_monotone and are_as_at_the_ends(subject.reference, numbers, result):
                findings.seen += len(numbers)
                continue
            exact = subject.reference(numbers.astype(np.float64))
            findings.add(numbers, result, exact)
    return findings


def count_differences(subject: Subject, target: str, other: str, encodings: range) -> tuple[int, float]:
    """How many results differ between the code for two targets, and for which number they first do. All NaN are the
    same."""
    runs = [kernel(subject, target), kernel(subject, other)]
    first, results = np.arange(CHUNK, dtype=np.uint32) * np.uint32(encodings.step), np.empty((2, CHUNK), np.float32)
    count, place = 0, 0.0
    for start in range(encodings.start, encodings.stop, CHUNK * encodings.step):
        numbers = (first + np.uint32(start)).view(np.float32)
        for run, result in zip(runs, results, strict=True):
            run(numbers, result)
        one, two = results
        (off,) = np.nonzero(one.view(np.int32) != two.view(np.int32))
        off = off[~(np.isnan(one[off]) & np.isnan(two[off]))]
        if len(off):
            place = place if count else float(numbers[off[0]])
            count += len(off)
    return count, place


def check_reference(subject: Subject, count: int = 4000) -> float:
    """The largest error of a reference in units in the last place of double, at f32 numbers: half of them of any
    encoding, half of the magnitudes at which functions bend."""
    import mpmath

    mpmath.mp.prec = 240
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 32, count // 2, dtype=np.uint64).astype(np.uint32).view(np.float32)
    bends = np.exp(rng.uniform(-12, 5, count // 2)) * rng.choice([-1, 1], count // 2)
    with np.errstate(all="ignore"):
        x = np.concatenate([numbers, bends.astype(np.float32)]).astype(np.float64)
        values = subject.reference(x)
    is_checked = np.isfinite(x) & np.isfinite(values) & (np.abs(values) > 1e-300)
    largest = 0.0
    for number, value in zip(x[is_checked], values[is_checked], strict=True):
        exact = mpmath.re(subject.precise(mpmath, mpmath.mpf(float(number))))
        unit = float(np.ldexp(1.0, int(np.frexp(value)[1]) - 53))
        largest = max(largest, float(abs(mpmath.mpf(float(value)) - exact) / unit))
    return largest


def main() -> int:
    known = subjects()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help=f"of {', '.join(known)}; all unless given")
    parser.add_argument("--mcpu", default="", help="the CPU whose code is checked")
    parser.add_argument("--stride", type=int, default=1, help="look at every how manieth number; odd")
    parser.add_argument("--part", default="1/1", help="part k of n of all encodings, as k/n")
    parser.add_argument(
        "--same-as", default="", help="a CPU whose code should give the same bits: compare these instead"
    )
    parser.add_argument("--check-references", action="store_true", help="compare the references with mpmath instead")
    options = parser.parse_args()
    names: list[str] = options.functions or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no function {', '.join(unknown)}: there are {', '.join(known)}")
    if options.stride < 1 or options.stride % 2 == 0:
        parser.error(f"--stride must be odd, got {options.stride}")
    which, _, parts = str(options.part).partition("/")
    size = (1 << 32) // int(parts)
    encodings = range((int(which) - 1) * size, int(which) * size, options.stride)
    chosen = {name: known[name] for name in names}
    if options.check_references:
        for name, subject in chosen.items():
            print(f"| {name} | {check_reference(subject):.2f} |", flush=True)
        return 0
    print(f"target {_target(options.mcpu)}, part {options.part}, every {options.stride}\n")
    if options.same_as:
        return _print_differences(chosen, _target(options.mcpu), _target(options.same_as), encodings)
    return _print_errors(chosen, _target(options.mcpu), encodings)


def _target(cpu: str) -> str:
    return str(weft.Target.parse("llvm -num-threads=1" + (f" -mcpu={cpu}" if cpu else "")))


def _print_errors(chosen: dict[str, Subject], target: str, encodings: range) -> int:
    print("| function | largest error, ulp | at | not nearest | wrong NaN, infinity, sign | numbers | CPU seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    is_wrong = False
    for name, subject in chosen.items():
        started = time.process_time()
        found = examine(subject, target, encodings)
        seconds = time.process_time() - started
        counts = f"{found.wrong_nans}, {found.wrong_infinities}, {found.wrong_signs}"
        print(
            f"| {name} | {found.largest:.4f} | {np.float32(found.place)!s} | {found.not_nearest / found.seen:.2%} | "
            f"{counts} | {found.seen} | {seconds:.0f} |",
            flush=True,
        )
        is_wrong |= found.wrong > 0 or (subject.bound is not None and found.largest > subject.bound)
    return int(is_wrong)


def _print_differences(chosen: dict[str, Subject], target: str, other: str, encodings: range) -> int:
    print(f"other target {other}\n\n| function | results that differ | first at |\n|---|---|---|", flush=True)
    total = 0
    for name, subject in chosen.items():
        count, place = count_differences(subject, target, other, encodings)
        print(f"| {name} | {count} | {np.float32(place)!s} |", flush=True)
        total += count
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
