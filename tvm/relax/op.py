"""`relax.op`, `relax.op.nn` and `relax.op.image`: operators on expressions, which `weft.graph` has under its own names."""

from collections.abc import Callable
from typing import Any

from weft.tvm.relax.adapted import ADAPTED, apply
from weft.tvm.relax.names import operator_of

_REASONS = {
    **dict.fromkeys(("print", "assert_op"), "functions of a graph have no effects: do it in Python, on the results"),
    **dict.fromkeys(("make_closure", "invoke_closure", "invoke_pure_closure"), "functions are called by name"),
    **dict.fromkeys(("shape_to_tensor", "tensor_to_shape", "shape_of"), "shapes are tuples: weft.graph.extents(shape)"),
    "call_tir_with_grad": "weft computes no gradients",
    "call_py_func": "registered functions are called by call_dps_packed",
    "multinomial_from_uniform": "weft.graph.random_uniform, cumsum and searchsorted",
    "dynamic_strided_slice": "strided_slice takes extents with names",
    "attention_var_len": "attention takes a mask",
    **dict.fromkeys(
        ("non_max_suppression", "all_class_non_max_suppression", "get_valid_counts", "multibox_transform_loc"),
        "weft.graph.nms",
    ),
    **dict.fromkeys(("index_put", "index_tensor"), "scatter_nd and gather_nd"),
}
"""Operators of TVM that are not taken -> the reason."""


def applied(name: str) -> Callable[..., Any]:
    """The operator as a function of expressions. Raises `AttributeError` for unknown ones."""
    short = name.rpartition(".")[2]
    if short in ADAPTED:
        return ADAPTED[short]
    if short in _REASONS:
        raise AttributeError(f"relax.op has no '{name}' of TVM: {_REASONS[short]}")
    function = operator_of(name)

    def call(*args: Any, **options: Any) -> Any:
        return apply(name, *args, **options)

    call.__name__, call.__doc__ = name, function.__doc__
    return call


class _Group:
    """Operators below a name: `relax.op.nn`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return applied(f"{self._prefix}{name}")


nn, image = _Group("nn."), _Group("")
"""Operators of networks, and of images."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return applied(name)
