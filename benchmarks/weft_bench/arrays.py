"""Random arrays and PyTorch tensors for measurements (`weft.runtime.aligned_arrays`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.runtime.aligned_arrays import aligned, empty


def tensor(torch: Any, shape: Sequence[int], dtype: str = "float32") -> Any:
    """An aligned PyTorch tensor."""
    return torch.from_numpy(empty(tuple(shape), dtype))


def random(generator: np.random.Generator, shape: Sequence[int], dtype: str = "float32") -> NDArray[Any]:
    """Uniform numbers in [-1, 1), or over the whole range of an integer type."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return aligned(generator.integers(limits.min, limits.max, shape, kind.type, endpoint=True))
    return aligned(generator.uniform(-1.0, 1.0, shape).astype(kind))
