"""Arrays in .npy and .npz files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from weft.support.errors import CompileError

Array: TypeAlias = NDArray[Any]

_MALFORMED: Final = (ValueError, EOFError, BadZipFile, MemoryError, OverflowError)


def read_npy(path: str) -> Array:
    """Raises `CompileError` for other content, and `OSError`."""
    try:
        loaded: Any = np.load(path, allow_pickle=False)
    except _MALFORMED as error:
        raise CompileError(f"'{path}' is not a .npy file with an array of numbers: {error}") from error
    if not isinstance(loaded, np.ndarray):
        raise CompileError(f"'{path}' holds several arrays (.npz): give a .npy file with one")
    return np.ascontiguousarray(loaded).reshape(loaded.shape)


def read_npz(path: str) -> Mapping[str, Array]:
    """Raises `CompileError` for other content, and `OSError`."""
    try:
        loaded: Any = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            return {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in loaded.items()}
    except _MALFORMED as error:
        raise CompileError(f"'{path}' is not a .npz file with arrays of numbers: {error}") from error
    raise CompileError(f"'{path}' holds one array (.npy): give a .npz file with an array for each name")
