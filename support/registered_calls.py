"""Calls of registered Python functions, which receive arrays and write results in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft.support.user_functions import registered_function

Array: TypeAlias = NDArray[Any]


def call_registered(name: str, inputs: Sequence[Array], outputs: Sequence[Array], dtypes: Sequence[str]) -> None:
    """Inputs are read-only views. `dtypes` are the element types of inputs and outputs, because bfloat16 is passed as
    its bits.

    Raises `CompileError` for an unregistered name, `TypeError` for a function that returns results, and whatever the
    function raises.
    """
    function = registered_function(name)
    form, count = _FORMS[function.arrays], len(inputs)
    given = [form(a, dtype, at >= count) for at, (a, dtype) in enumerate(zip((*inputs, *outputs), dtypes, strict=True))]
    result: object = function.call(*given)
    if result is None or _is_among(result, given[count:]):
        return
    shape = getattr(result, "shape", None)
    kind = type(result).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
    raise TypeError(
        f"the function registered as '{name}' returned a value ({kind}): it gets its results as its last "
        f"{f'{len(outputs)} arguments' if len(outputs) > 1 else 'argument'}, writes them in place (out[...] = y), and "
        "returns None"
    )


def _is_among(result: object, outputs: Sequence[object]) -> bool:
    values = cast("tuple[object, ...]", result) if isinstance(result, tuple) else (result,)
    return all(any(value is array for array in outputs) for value in values)


def _as_numpy(array: Array, dtype: str, is_output: bool) -> Array:
    view = array.view()
    view.flags.writeable = is_output
    return view


def _as_torch(array: Array, dtype: str, is_output: bool) -> Any:
    """NumPy cannot export bfloat16. Tensors are never read-only."""
    import torch

    if dtype != "bfloat16":
        return torch.from_dlpack(array)
    return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)


_FORMS: Final[Mapping[str, Callable[[Array, str, bool], Any]]] = {"numpy": _as_numpy, "torch": _as_torch}
