"""Ranges of activations, from calls with calibration data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft.support.argument_types import shown
from weft.support.array_files import read_npy, read_npz
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

Array: TypeAlias = NDArray[Any]
Sample: TypeAlias = "Mapping[str, Any] | Sequence[Any] | Array"
"""The arguments of a call: by name, in order, or the only one."""

METHODS: Final = ("minmax", "percentile", "mse")
_BINS: Final = 2048
"""The number of bins of a histogram."""
_CUTS: Final = 32
"""The number of fractions of the least and the greatest number that method mse tries as limits."""


@dataclass(frozen=True)
class CalibrationMethod:
    """The method that derives the range of an activation. Raises `CompileError` for invalid values."""

    name: str = "minmax"
    """minmax: all numbers. percentile: without the outermost ones. mse: the range with the least squared error of
    rounding to 256 steps."""
    percentile: float = 99.99
    """Percentage of the numbers inside the range, for method percentile: above 50, at most 100."""

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise CompileError(
                f"method is one of {', '.join(METHODS)}, got '{self.name}'{did_you_mean(self.name, METHODS)}"
            )
        if not 50.0 < self.percentile <= 100.0:
            raise CompileError(f"percentile is above 50 and at most 100, got {self.percentile:g}")

    def limits(self, numbers: Distribution) -> tuple[float, float]:
        if self.name == "percentile":
            return self._between(numbers)
        return self._of_least_error(numbers) if self.name == "mse" else (numbers.least, numbers.greatest)

    def _between(self, numbers: Distribution) -> tuple[float, float]:
        total, outside = np.cumsum(numbers.counts), (100.0 - self.percentile) / 200.0
        first, last = (int(np.searchsorted(total, share * int(total[-1]))) for share in (outside, 1.0 - outside))
        if outside == 0.0:
            return numbers.least, numbers.greatest
        edges = numbers.edges
        return float(edges[first]), float(edges[min(last, _BINS - 1) + 1])

    @staticmethod
    def _of_least_error(numbers: Distribution) -> tuple[float, float]:
        centres = (numbers.edges[:-1] + numbers.edges[1:]) / 2
        fractions = np.linspace(1.0, 1.0 / _CUTS, _CUTS)
        best, found = np.inf, (numbers.least, numbers.greatest)
        for low in fractions * min(numbers.least, 0.0) if numbers.least < 0.0 else (0.0,):
            for high in fractions * max(numbers.greatest, 0.0) if numbers.greatest > 0.0 else (0.0,):
                scale = (high - low) / 255
                zero = np.rint(-low / scale)
                steps = np.clip(np.rint(centres / scale), -zero, 255 - zero)
                error = float(np.dot(numbers.counts, np.square(steps * scale - centres)))
                if error < best:
                    best, found = error, (float(low), float(high))
        return found


@dataclass
class Distribution:
    least: float = np.inf
    greatest: float = -np.inf
    counts: Array = field(default_factory=lambda: np.zeros(_BINS, np.int64))
    """Counts in equal bins from the least to the greatest number."""

    @property
    def edges(self) -> Array:
        return np.linspace(self.least, self.greatest, _BINS + 1)

    def widen(self, numbers: Array) -> None:
        if numbers.size:
            self.least = min(self.least, float(numbers.min()))
            self.greatest = max(self.greatest, float(numbers.max()))

    def count(self, numbers: Array) -> None:
        at = (numbers.reshape(-1).astype(np.float64) - self.least) * (_BINS / (self.greatest - self.least))
        self.counts += np.bincount(np.minimum(at.astype(np.int64), _BINS - 1), minlength=_BINS)


@dataclass(frozen=True)
class CalibrationData:
    samples: Sequence[tuple[str, Sample]]
    """The calls, each with a name for messages."""

    @staticmethod
    def of(data: Iterable[Sample]) -> CalibrationData:
        """Samples given by a program. Raises `CompileError` if there are none, and `TypeError`."""
        if not isinstance(cast("object", data), Iterable):
            raise TypeError(f"calibration data are the arguments of calls, one after the other, got {shown(data)}")
        found = [(f"sample {number}", sample) for number, sample in enumerate(data)]
        if not found:
            raise CompileError("there is no calibration data: give the arguments of at least one call")
        return CalibrationData(found)

    @staticmethod
    def read(folder: str, inputs: Sequence[str]) -> CalibrationData:
        """The samples in a folder: an .npz file has an array for each input, by name; an .npy file is the only input,
        or named after one of several. Raises `CompileError`, `OSError`."""
        path = Path(folder)
        if not path.is_dir():
            raise CompileError(f"'{folder}' is no folder of calibration data (.npz and .npy files)")
        files = sorted(path.iterdir())
        found: list[tuple[str, Sample]] = [
            (f"'{file}'", read_npz(str(file))) for file in files if file.suffix == ".npz"
        ]
        arrays = {file: read_npy(str(file)) for file in files if file.suffix == ".npy"}
        if len(inputs) == 1:
            found += [(f"'{file}'", {inputs[0]: array}) for file, array in arrays.items()]
        elif arrays:
            for file in arrays:
                if file.stem not in inputs:
                    listed = ", ".join(inputs)
                    raise CompileError(
                        f"'{file}': the model has the inputs {listed}; a .npy file has the name of one, or give .npz "
                        "files with an array for each"
                    )
            found.append((f"'{folder}'", {file.stem: array for file, array in arrays.items()}))
        if not found:
            raise CompileError(f"'{folder}' holds no calibration data: no .npz or .npy file")
        return CalibrationData(found)

    def run(self, function: Callable[..., Any]) -> Iterable[tuple[str, tuple[Array, ...]]]:
        """The results of each sample. Raises `CompileError`, naming the sample, for invalid arguments and floats that
        are not finite."""
        for where, sample in self.samples:
            by_name = dict(sample) if isinstance(sample, Mapping) else {}
            in_order = () if isinstance(sample, Mapping) else sample if isinstance(sample, tuple | list) else (sample,)
            for name, value in (*by_name.items(), *enumerate(in_order)):
                _check_finite(where, name, value)
            try:
                found = function(*in_order, **by_name)
            except (TypeError, ValueError) as error:
                raise CompileError(f"calibration data {where}: {error}") from None
            results = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
            yield where, tuple(np.asarray(result) for result in results)


def _check_finite(where: str, name: str | int, value: Any) -> None:
    array = np.asarray(value)
    if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
        what = f"argument {name}" if isinstance(name, int) else f"'{name}'"
        count = int((~finite).sum())
        raise CompileError(
            f"calibration data {where}: {what} holds {count} of {array.size} numbers that are NaN or infinite"
        )


def ranges_of(
    function: Callable[..., Any], labels: Sequence[str], data: CalibrationData, method: CalibrationMethod
) -> dict[str, tuple[float, float]]:
    """The ranges of the activations, the last results of `function`. Raises `CompileError` for one that is not finite,
    or is constant."""
    found = {label: Distribution() for label in labels}

    def activations() -> Iterable[tuple[str, str, Array]]:
        for where, results in data.run(function):
            for label, array in zip(labels, results[len(results) - len(labels) :], strict=True):
                yield where, label, array

    for where, label, array in activations():
        if not np.isfinite(array).all():
            raise CompileError(f"calibration data {where}: activation '{label}' holds numbers that are NaN or infinite")
        found[label].widen(array)
    for label, numbers in found.items():
        if not numbers.least < numbers.greatest:
            value = f"is {numbers.least:g} everywhere" if numbers.least == numbers.greatest else "has no elements"
            raise CompileError(
                f"activation '{label}' {value} in the calibration data, so that it has no range: give other data, or "
                f"name '{label}' among those to skip"
            )
    if method.name != "minmax":
        for _, label, array in activations():
            found[label].count(array)
    return {label: method.limits(numbers) for label, numbers in found.items()}
