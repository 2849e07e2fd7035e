"""The names of operators in TVM and in weft."""

from collections.abc import Callable, Sequence
from typing import Any

from weft.frontends.graph_builder import Value, operator, operator_names
from weft.support.errors import did_you_mean

_IN_WEFT = {
    **{"permute_dims": "transpose", "concat": "concatenate", "astype": "cast", "mod": "trunc_mod"},
    "ewise_fma": "fma",
}
_IN_TVM = {weft: tvm for tvm, weft in _IN_WEFT.items()}
_NETWORK = """
relu leaky_relu gelu silu softmax log_softmax softplus prelu selu dropout conv1d conv2d conv3d conv1d_transpose
conv2d_transpose conv3d_transpose max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d batch_norm
layer_norm group_norm instance_norm rms_norm attention pad
"""
"""The operators that stand in `relax.op.nn`, `R.nn`."""


def relax_name(name: str) -> str:
    """`nn.relu` for `relu`, `permute_dims` for `transpose`."""
    return _IN_TVM.get(name, f"nn.{name}" if name in _NETWORK.split() else name)


def operator_of(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    """weft's operator for a name of `relax.op`. Raises `AttributeError` for unknown ones."""
    wanted = _IN_WEFT.get(name, name.removeprefix("nn."))
    if wanted not in operator_names():
        known = map(relax_name, operator_names())
        raise AttributeError(f"relax.op has no '{name}' of TVM{did_you_mean(name, list(known))}")
    return operator(wanted)


def tensor_shape(extents: Sequence[Any]) -> str:
    """`(1, n)`."""
    return f"({', '.join(map(str, extents))}{',' * (len(extents) == 1)})"
