"""Arguments of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Ints: TypeAlias = "int | Sequence[int]"


def listed(value: Any) -> list[Any]:
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def each(value: Any, rank: int) -> list[Any]:
    return listed(value) if isinstance(value, list | tuple) else [value] * rank


def axes_of(axis: object) -> Any:
    return tuple(listed(axis)) if isinstance(axis, list) else axis


def array_dtype(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def accumulator(dtype: str | None, *arrays: Array) -> list[Array]:
    return [array.astype(dtype) for array in arrays] if dtype not in (None, "bfloat16") else list(arrays)
