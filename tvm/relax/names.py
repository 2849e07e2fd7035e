"""The names of operators in TVM and in weft."""

from __future__ import annotations

from collections.abc import Callable

from weft.frontends.graph_builder import Value, operator, operator_names
from weft.support.errors import did_you_mean

_IN_WEFT = {
    "permute_dims": "transpose",
    "concat": "concatenate",
    "astype": "cast",
    "nn.batch_flatten": "flatten",
    "ewise_fma": "fma",
}
_IN_TVM = {weft: tvm for tvm, weft in _IN_WEFT.items()}
_NETWORK = """
relu leaky_relu gelu silu softmax log_softmax softplus prelu selu dropout conv1d conv2d conv3d conv1d_transpose
conv2d_transpose conv3d_transpose max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d batch_norm
layer_norm group_norm instance_norm rms_norm attention pad
"""
NETWORK = frozenset(_NETWORK.split())
"""The operators that stand in `relax.op.nn`, `R.nn`."""


def weft_name(name: str) -> str:
    """`relu` for `nn.relu`, `transpose` for `permute_dims`."""
    return _IN_WEFT.get(name, name.removeprefix("nn."))


def relax_name(name: str) -> str:
    """`nn.relu` for `relu`, `permute_dims` for `transpose`."""
    return _IN_TVM.get(name, f"nn.{name}" if name in NETWORK else name)


def operator_of(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    """weft's operator for a name of `relax.op`. Raises `AttributeError` for unknown ones."""
    wanted = weft_name(name)
    if wanted not in operator_names():
        known = map(relax_name, operator_names())
        raise AttributeError(f"relax.op has no '{name}' of TVM{did_you_mean(name, list(known))}")
    return operator(wanted)
