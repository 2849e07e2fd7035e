"""Cost models that rank schedules of a program by their features.

Boosted trees (LightGBM, extra `tune`) are trained on measurements; without LightGBM, or with too few samples, the
analytical model of `plans/cost.py` is used. Inputs are the features of a schedule and their differences from those of
the default; the label is the rank among the measured schedules of the program, so that programs of any size are learned
together.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, cast

from weft.support.errors import CompileError
from weft.tuning.features import NAMES

Features: TypeAlias = Sequence[float]
FORMAT: Final = 3
"""Of saved models; increases when features change their meaning."""
_LEAST: Final = 16
"""Samples from which trees are trained."""
_MOST: Final = 4000
"""Latest samples that a model is trained with."""
_SHARE: Final = 8
"""Trees are trained again when `1 / _SHARE` of the samples is new, to bound the cost in a long search."""
_ROUNDS: Final = 150
_TEXT_OF_ALL: Final = 64 << 20
"""Characters of a saved model."""
_PARAMETERS: Final = {
    **{"objective": "regression", "learning_rate": 0.05, "num_leaves": 15, "min_data_in_leaf": 10},
    **{"feature_fraction": 0.4, "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 2.0},
    **{"seed": 0, "deterministic": True, "force_row_wise": True, "num_threads": 1, "verbose": -1},
}


@dataclass(frozen=True)
class Sample:
    features: tuple[float, ...]
    default: tuple[float, ...]
    """Of the default schedule of the program."""
    ratio: float
    """Time divided by that of the default schedule."""


class CostModel(Protocol):
    name: str

    @property
    def choice(self) -> int:
        """Candidates to choose from per measured candidate."""
        ...

    def learn(self, samples: Sequence[Sample]) -> None: ...

    def predict(self, candidates: Sequence[Features], default: Features) -> list[float]:
        """Predicted costs, smaller for faster candidates; only the order matters."""
        ...


class AnalyticalModel:
    name = "analytical"
    choice = 2

    def learn(self, samples: Sequence[Sample]) -> None: ...

    def predict(self, candidates: Sequence[Features], default: Features) -> list[float]:
        at = NAMES.index("cycles")
        return [features[at] - default[at] for features in candidates]


@dataclass
class BoostedTrees:
    """The analytical model until there are samples. Deterministic in the samples."""

    name = "boosted trees"
    samples: list[Sample] = field(default_factory=list[Sample])
    _booster: Any = None
    _new: int = 0
    """Samples since trees were trained."""

    @property
    def choice(self) -> int:
        """Larger once trees are trained."""
        return 4 if len(self.samples) >= _LEAST else AnalyticalModel.choice

    def learn(self, samples: Sequence[Sample]) -> None:
        """The next prediction retrains if an eighth of the samples is new."""
        self.samples = [*self.samples, *samples][-_MOST:]
        self._new += len(samples)

    def predict(self, candidates: Sequence[Features], default: Features) -> list[float]:
        is_stale = self._booster is None or self._new * _SHARE >= len(self.samples)
        if self._new and is_stale and len(self.samples) >= _LEAST:
            self._train()
        if self._booster is None:
            return AnalyticalModel().predict(candidates, default)
        rows = _matrix([(f, default) for f in candidates])
        return [float(value) for value in self._booster.predict(rows, num_threads=1)]

    def _train(self) -> None:
        library = _library()
        rows = _matrix([(sample.features, sample.default) for sample in self.samples])
        data = library.Dataset(rows, places(self.samples), params={"verbose": -1, "min_data_in_bin": 1})
        self._booster = library.train(_PARAMETERS, data, num_boost_round=_ROUNDS)
        self._new = 0

    def to_text(self) -> str:
        """The samples as JSON: trees are trained again, so that no library format is read from a file."""
        rows = [[sample.features, sample.default, sample.ratio] for sample in self.samples]
        return json.dumps({"format": FORMAT, "names": NAMES, "samples": rows})


def places(samples: Sequence[Sample]) -> list[float]:
    """The rank of each sample within its program, from 0 for the fastest to 1; 0.5 for a single one."""
    by_program: dict[tuple[float, ...], list[int]] = {}
    for at, sample in enumerate(samples):
        by_program.setdefault(sample.default, []).append(at)
    found = [0.5] * len(samples)
    for members in by_program.values():
        if len(members) > 1:
            for at, rank in zip(members, _ranks([samples[at].ratio for at in members]), strict=True):
                found[at] = rank / (len(members) - 1)
    return found


def samples_from_text(text: str) -> list[Sample]:
    """Parse a saved model; empty if its features differ. Raises `CompileError` for anything else."""
    if len(text) > _TEXT_OF_ALL:
        raise CompileError(f"a cost model has {len(text):,} characters")
    try:
        found: Any = json.loads(text)
        if found["format"] != FORMAT or tuple(found["names"]) != NAMES:
            return []
        rows = cast("list[Any]", found["samples"])
        samples = [Sample(_numbers(row[0]), _numbers(row[1]), float(row[2])) for row in rows]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise CompileError(f"no cost model: {error}") from None
    if not all(math.isfinite(sample.ratio) and sample.ratio > 0 for sample in samples):
        raise CompileError("no cost model: ratios of times are above 0")
    return samples


def _numbers(value: Any) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in value)
    if len(numbers) != len(NAMES) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{len(NAMES)} features are numbers, got {len(numbers)}")
    return numbers


def cost_model() -> CostModel:
    return BoostedTrees() if _library() is not None else AnalyticalModel()


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Spearman's coefficient: 1 for the same order, -1 for the reverse, 0 for fewer than two values; equal values share
    their mean rank."""
    first, second = _ranks(predicted), _ranks(measured)
    mean = (len(first) - 1) / 2
    spread = math.sqrt(sum((x - mean) ** 2 for x in first) * sum((y - mean) ** 2 for y in second))
    return sum((x - mean) * (y - mean) for x, y in zip(first, second, strict=True)) / spread if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[begin]]:
            for at in order[begin:end]:
                ranks[at] = (begin + end - 1) / 2
            begin = end
    return ranks


def _matrix(pairs: Sequence[tuple[Features, Features]]) -> Any:
    import numpy as np

    rows = [[*features, *(f - d for f, d in zip(features, default, strict=True))] for features, default in pairs]
    return np.asarray(rows, np.float64)


def _library() -> Any:
    try:
        return importlib.import_module("lightgbm")
    except ImportError:
        return None
