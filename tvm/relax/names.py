"""Names of operators in TVM and weft."""

from collections.abc import Callable, Sequence
from typing import Any

from weft.frontends.graph_builder import Value, operator, operator_names
from weft.support.errors import did_you_mean
from weft.texpr.spellings import spellings

_IN_WEFT = {name: operator for name, (operator, _) in spellings("relax").items()} | {"log_add_exp": "logaddexp"}
_IN_TVM = {operator: name for name, operator in _IN_WEFT.items()}


def relax_name(name: str) -> str:
    """`nn.relu` for `relu`, `permute_dims` for `transpose`."""
    return _IN_TVM.get(name, name)


def weft_name(name: str) -> str:
    """`relu` for `nn.relu`, `transpose` for `permute_dims`."""
    return _IN_WEFT.get(name, name.rpartition(".")[2])


def operator_of(name: str) -> Callable[..., Value | tuple[Value, ...]]:
    """Raises `AttributeError` for unknown names of `relax.op`."""
    wanted = weft_name(name)
    if wanted not in operator_names():
        known = map(relax_name, operator_names())
        raise AttributeError(f"relax.op has no '{name}' of TVM{did_you_mean(name, list(known))}")
    return operator(wanted)


def tensor_shape(extents: Sequence[Any]) -> str:
    """`(1, n)`."""
    return f"({', '.join(map(str, extents))}{',' * (len(extents) == 1)})"
