"""Constants of the IR as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import BFloat16Type

from weft.interp.values import Array, carrier_dtype, widen

if TYPE_CHECKING:
    from xdsl.dialects.builtin import DenseIntOrFPElementsAttr


def array_of_dense(value: DenseIntOrFPElementsAttr) -> Array | None:
    """The elements as a tensor of the interpreter, in the shape of the type; None when the interpreter has no such."""
    element_type = value.get_element_type()
    dtype = carrier_dtype(element_type)
    if dtype is None:
        return None
    data = value.data.data
    if dtype == np.bool_:
        elements = np.frombuffer(data, np.uint8) != 0
    else:
        stored = np.dtype(np.uint16) if isinstance(element_type, BFloat16Type) else dtype
        elements = widen(np.frombuffer(data, stored.newbyteorder("<")).astype(stored), element_type)
    return elements.reshape(value.get_shape())
