"""`relax.op` and `relax.op.nn`: operators on expressions, which `weft.graph` has under its own names."""

from collections.abc import Callable
from typing import Any

from weft.frontends.graph_builder import Value
from weft.tvm.relax.expr import Call
from weft.tvm.relax.names import operator_of


def applied(name: str) -> Callable[..., Any]:
    """The operator as a function of expressions."""
    function = operator_of(name)

    def apply(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        return Call.at(found.ssa) if isinstance(found, Value) else tuple(Call.at(one.ssa) for one in found)

    apply.__name__, apply.__doc__ = name, function.__doc__
    return apply


def linear(data: Value, weight: Value, bias: Value | None = None, out_dtype: str | None = None) -> Any:
    """`matmul(data, permute_dims(weight)) + bias`."""
    options = {} if out_dtype is None else {"out_dtype": out_dtype}
    product = applied("matmul")(data, applied("permute_dims")(weight), **options)
    return product if bias is None else applied("add")(product, bias)


class _Network:
    def __getattr__(self, name: str) -> Callable[..., Any]:
        return applied(f"nn.{name}")


nn = _Network()
"""Operators of networks."""


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return applied(name)
