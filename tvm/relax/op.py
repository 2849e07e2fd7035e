"""`relax.op`, `relax.op.nn` and `relax.op.image`: operators on expressions, implemented by `weft.graph`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from weft.frontends import graph_composites
from weft.frontends.graph_builder import operator_names
from weft.tvm.relax.adapted import ADAPTED, apply
from weft.tvm.relax.names import operator_of, weft_name

_REASONS = {
    **dict.fromkeys(("print", "assert_op"), "scripts call R.print and R.assert_op"),
    **dict.fromkeys(
        ("alloc_storage", "alloc_tensor", "ensure_zero_offset", "kill_storage", "kill_tensor", "kill_object"),
        "weft allocates memory: give the program before CallTIRRewrite",
    ),
    "call_tir_dyn": "give the program before VMShapeLower",
    **dict.fromkeys(("dist", "ccl"), "weft runs a model on one device"),
    "grad": "weft computes no gradients",
    **dict.fromkeys(("make_closure", "invoke_closure", "invoke_pure_closure"), "functions are called by name"),
    **dict.fromkeys(("shape_to_tensor", "tensor_to_shape", "shape_of"), "shapes are tuples: weft.graph.extents(shape)"),
    "call_tir_with_grad": "weft computes no gradients",
    "call_py_func": "registered functions are called by call_dps_packed",
    **dict.fromkeys(("roi_pool", "get_valid_counts"), "roi_align"),
    "multinomial_from_uniform": "weft.graph.random_uniform, cumsum and searchsorted",
    "dynamic_strided_slice": "strided_slice takes extents with names",
    "attention_var_len": "attention takes a mask",
    **dict.fromkeys(
        ("non_max_suppression", "all_class_non_max_suppression", "get_valid_counts", "multibox_transform_loc"),
        "weft.graph.nms",
    ),
}
"""Unsupported operators of TVM -> the reason."""


def applied(name: str) -> Callable[..., Any]:
    """The operator as a function of expressions. Raises `AttributeError` for unknown ones."""
    short = name.rpartition(".")[2]
    if short in _REASONS:
        raise AttributeError(f"relax.op has no '{name}' of TVM: {_REASONS[short]}")
    adapted = ADAPTED.get(short)
    function = adapted if weft_name(name) not in operator_names() else operator_of(name)

    def call(*args: Any, **options: Any) -> Any:
        if adapted is not None and (function is adapted or _takes(adapted, args, options)):
            return adapted(*args, **options)
        return apply(name, *args, **options)  # with weft's parameters, as scripts print them

    call.__name__, call.__doc__ = name, getattr(function, "__doc__", None)
    return call if function is not None else operator_of(name)


def _takes(function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **options)
    except TypeError:
        return False
    return True


class _Group:
    """Operators in a namespace: `relax.op.nn`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return applied(f"{self._prefix}{name}")


class _OwnOperators:
    """Operators with weft's parameters: `R.weft.attention` has heads before the sequence."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return graph_composites.match_shape if name == "match_shape" else partial(apply, name)


nn, image, weft = _Group("nn."), _Group(""), _OwnOperators()
vision = memory = builtin = vm = image
"""Operators of networks and of images, and weft's operators whose names mean something else in TVM."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return applied(name)
