"""Operators on tensors known at import, folded by their references.

This serves shapes, whose elements may be symbolic: extents that Shape, Gather, Mul and Concat compute become the target
of a reshape. If a node with known inputs does not fold, it is converted like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np

from weft.dialects import graph_shapes
from weft.dialects.graph_shapes import Expression, KnownExtent, is_not_negative
from weft.frontends.graph_builder import operator_type
from weft.frontends.onnx.known_tensors import SMALL, Entry, KnownTensor
from weft.frontends.onnx.node import Refusal
from weft.texpr.references.arguments import axes_of
from weft.texpr.shapes import items

_OF_INTEGERS: Final = (
    *("Add", "And", "Cast", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Gather", "Greater"),
    *("GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Range", "ReduceMax"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "Slice", "Split", "Squeeze", "Sub", "Transpose", "Where"),
)
"""Operators folded at import for small tensors of integers and bools."""
_OF_ALL: Final = ("Reshape", "Unsqueeze")
"""Operators folded at import for all tensors."""


def can_fold(operator: str, inputs: Sequence[Entry | None]) -> bool:
    known = [item for item in inputs if isinstance(item, KnownTensor)]
    if len(known) < sum(item is not None for item in inputs):
        return False
    is_small = all(k.array.size <= SMALL and ("int" in k.dtype or k.dtype == "bool") for k in known)
    return operator in _OF_ALL or (operator in _OF_INTEGERS and is_small)


class _UndecidedError(Exception):
    """A quotient of extents that depends on their signs."""


def _is_positive(extent: KnownExtent) -> KnownExtent:
    return graph_shapes.choose_size("max", graph_shapes.choose_size("min", extent, 1), 0)


def _is_less(left: KnownExtent, right: KnownExtent) -> KnownExtent:
    return _is_positive(graph_shapes.subtract(right, left))


def _negated(truth: KnownExtent) -> KnownExtent:
    return graph_shapes.subtract(1, truth)


def _select(condition: KnownExtent, left: KnownExtent, right: KnownExtent) -> KnownExtent:
    return graph_shapes.add(right, graph_shapes.multiply(condition, graph_shapes.subtract(left, right)))


def _is_unequal(left: KnownExtent, right: KnownExtent) -> KnownExtent:
    difference = graph_shapes.subtract(left, right)
    distance = graph_shapes.choose_size("max", difference, graph_shapes.multiply(difference, -1))
    return graph_shapes.choose_size("min", distance, 1)


def _are_both(left: KnownExtent, right: KnownExtent) -> KnownExtent:
    """A minimum is a single term: products of sums would grow with each operator."""
    if isinstance(left, int) or isinstance(right, int):
        return graph_shapes.multiply(left, right)
    return graph_shapes.choose_size("min", left, right)


_COMPARISONS: Final[Mapping[str, Callable[[KnownExtent, KnownExtent], KnownExtent]]] = {
    "equal": lambda a, b: _negated(_is_unequal(a, b)),
    "less": _is_less,
    "less_equal": lambda a, b: _negated(_is_less(b, a)),
    "greater": lambda a, b: _is_less(b, a),
    "greater_equal": lambda a, b: _negated(_is_less(a, b)),
    "logical_and": _are_both,
    "logical_or": lambda a, b: _negated(_are_both(_negated(a), _negated(b))),
}
"""Comparisons, whose results are extents of 0 and 1."""


def _quotient(a: KnownExtent, b: KnownExtent) -> KnownExtent:
    """The quotient is rounded toward zero. Raises `_UndecidedError` if the sign of a divisor is unknown."""
    if not is_not_negative(b):
        if not is_not_negative(negated := graph_shapes.multiply(b, -1)):
            raise _UndecidedError(f"the sign of {b} is not known")
        a, b = graph_shapes.multiply(a, -1), negated
    below = graph_shapes.multiply(a, -1)
    if is_not_negative(a):
        return graph_shapes.floordiv(a, b)
    if is_not_negative(below):
        return graph_shapes.multiply(graph_shapes.floordiv(below, b), -1)
    over, under = (graph_shapes.choose_size("max", graph_shapes.floordiv(side, b), 0) for side in (a, below))
    return graph_shapes.subtract(over, under)


_ON_EXTENTS: Final[Mapping[str, Callable[[KnownExtent, KnownExtent], Any]]] = {
    "add": graph_shapes.add,
    "subtract": graph_shapes.subtract,
    "multiply": graph_shapes.multiply,
    "trunc_divide": _quotient,
    "floor_mod": graph_shapes.modulo,
    "maximum": partial(graph_shapes.choose_size, "max"),
    "minimum": partial(graph_shapes.choose_size, "min"),
    **_COMPARISONS,
}
"""Binary operators on extents."""
_QUOTIENTS: Final = ("floor_mod", "trunc_divide", "trunc_mod")
_MOVES: Final = (
    *("broadcast_to", "concatenate", "expand_dims", "prod", "reshape", "squeeze", "strided_slice", "sum", "take"),
    "transpose",
)
"""Operators whose references take arrays of extents."""


def folded(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> KnownTensor:
    """Raises `Refusal` if an operator is not folded."""
    kind = operator_type(name)
    given = dict(kind.SIGNATURE.bind(*args, **options).arguments)
    groups = [given.pop(role.name, None) for role in kind.ROLES]
    tensors = [value for group in groups for value in items(group) if isinstance(value, KnownTensor)]
    dtype: str = given.get("dtype") or next((t.dtype for t in tensors if t.dtype != "bool"), "bool")
    arrays: list[Any] = [
        [_array(v, dtype) for v in cast("list[Any]", group)] if isinstance(group, list) else _array(group, dtype)
        for group in groups
    ]
    _check_indices(name, arrays, given.get("axis", 0))
    try:
        if name in _QUOTIENTS and any(n == 0 for n in arrays[1].flat):
            raise Refusal("division by zero")
        if any(tensor.is_symbolic for tensor in tensors):
            return KnownTensor.of(_on_extents(name, arrays, given, dtype), "bool" if name in _COMPARISONS else dtype)
        if name == "cast" and not ("int" in dtype or dtype in ("bool", "float32", "float64")):
            raise Refusal(f"numbers are not cast to {dtype} at import")
        found = np.asarray(kind.called(kind.REFERENCE, arrays, given))
    except (TypeError, ValueError, LookupError, ArithmeticError, _UndecidedError) as error:
        raise Refusal(f"{name} is not known at import: {error}") from None
    if found.size > max(SMALL, *(tensor.array.size for tensor in tensors)):
        raise Refusal(f"a tensor of shape {found.shape} is not computed at import")
    if found.dtype == np.bool_:
        return KnownTensor(found, "bool")
    return KnownTensor(found if found.dtype == tensors[0].array.dtype else found.astype(dtype), dtype)


def _check_indices(name: str, arrays: Sequence[Any], axis: int | None) -> None:
    """Raises `Refusal` for indices out of range, which the references wrap around."""
    if name not in ("take", "gather") or any(isinstance(n, Expression) for n in arrays[1].flat):
        return
    data, indices = arrays[:2]
    extent = data.size if axis is None else data.shape[axis]
    if np.any((indices < -extent) | (indices >= extent)):
        raise Refusal(f"indices {indices.tolist()} are outside of axis {axis} with {extent} elements")


def _array(value: Any, dtype: str) -> Any:
    return value.array if isinstance(value, KnownTensor) else None if value is None else np.asarray(value, dtype)


def _number(element: Any) -> KnownExtent:
    return element if isinstance(element, Expression) else int(element)


def _on_extents(name: str, arrays: Sequence[Any], given: Mapping[str, Any], dtype: str) -> Any:
    kind = operator_type(name)
    if name == "negative":
        name, arrays = "multiply", [*arrays, np.array(-1)]
    if name == "cast":
        if dtype not in ("int32", "int64", "uint32", "uint64"):
            raise Refusal(f"extents are not cast to {dtype}")  # narrower integers may wrap
        return arrays[0]
    if name in _MOVES:
        return kind.called(kind.REFERENCE, arrays, given)
    arrays = [np.vectorize(_number, otypes=[object])(array) if array.size else array for array in arrays]
    if name == "where":
        return np.frompyfunc(_select, 3, 1)(*arrays)
    if name == "logical_not":
        return np.frompyfunc(_negated, 1, 1)(*arrays)
    if name in ("max", "min"):
        choose = np.frompyfunc(partial(graph_shapes.choose_size, name), 2, 1)
        return choose.reduce(arrays[0], axis=axes_of(given.get("axis")), keepdims=bool(given.get("keepdims", False)))
    if name not in _ON_EXTENTS:
        raise Refusal(f"{name} is not computed of extents")
    return np.frompyfunc(_ON_EXTENTS[name], 2, 1)(*arrays)
