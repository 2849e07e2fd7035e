"""Converters of operators that are other names of functions of `te.ops` (`weft.texpr.spellings`). Operands
are converted to the element type that PyTorch computes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from weft.frontends.graph_builder import Value, operator_type
from weft.frontends.torch.converters import Conversion, Converter, Scalar, apply, cast_to, register
from weft.frontends.torch.library import torch
from weft.frontends.torch.symbols import dtype_name, torch_dtype
from weft.texpr.spellings import Spelling, spellings

NARROW: Final = ("float16", "bfloat16")
"""Element types that PyTorch converts to float32 if the other operand is a number."""
_ROUNDED: Final = ("copysign", "floor_divide", "floor_mod", "trunc_divide", "trunc_mod")
"""Operators for which PyTorch rounds numbers to the element type, also to 16 bits."""
_ORDERED: Final = ("greater", "greater_equal", "less", "less_equal")
_COMPARISONS: Final = ("equal", "not_equal", *_ORDERED)
_UNCHANGED: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ceil", "floor", "round", "trunc"), ("int", "uint", "bool")),
    **dict.fromkeys(("abs", "relu"), ("uint", "bool")),
    **dict.fromkeys(("negative", "sign", "square"), ("bool",)),
}
"""Kinds of elements that an operator leaves unchanged."""


@lru_cache(maxsize=4096)
def _promoted(x: tuple[str, bool] | type, y: tuple[str, bool] | type) -> str:
    """PyTorch's common element type of operands, given as (element type, whether the rank is 0) or as classes of
    numbers."""
    one, other = (
        torch.empty(() if kind[1] else (1,), dtype=torch_dtype(kind[0]), device="meta")
        if isinstance(kind, tuple)
        else kind(1)
        for kind in (x, y)
    )
    return dtype_name(torch.result_type(one, other))


def _kind(value: Value | Scalar) -> tuple[str, bool] | type:
    if isinstance(value, Value):
        return value.dtype, value.ndim == 0
    return type(value) if isinstance(value, bool | int | float) else int


def applied(cx: Conversion, name: str, *values: Value | Scalar | None, **options: object) -> Any:
    """Operands have PyTorch's computation type: for most, that of the result, and float32 for narrow floats with a
    number."""
    dtype = cx.dtype
    if name in _COMPARISONS:
        dtype = _promoted(*(_kind(value) for value in values if value is not None))
        dtype = "uint8" if dtype == "bool" and name in _ORDERED else dtype
    elif name in ("all", "any"):
        dtype = "bool"
    elif name in ("argmax", "argmin") and isinstance(values[0], Value):
        dtype = values[0].dtype
    elif dtype in NARROW and name not in _ROUNDED and not all(isinstance(v, Value | None) for v in values):
        dtype = "float32"
    found = apply(name, *(None if v is None else cx.operand(v, dtype) for v in values), **options)
    return cast_to(found, cx.dtype) if isinstance(found, Value) else found


def axes_of(x: Value, dim: Sequence[int] | int | None) -> list[int] | None:
    """None, which means all, if no axes are given or the rank is 0."""
    if dim is None:
        return None
    given = [dim] if isinstance(dim, int) else list(dim)
    return [axis % x.ndim for axis in given] if x.ndim and given else None


def _spelled(operator: str, spelling: Spelling) -> Converter:
    kind = operator_type(operator)
    annotations = {name: str(kind.SIGNATURE.parameters[name].annotation) for name in spelling.parameters}
    takes_an_axis = any(name.startswith("axis") and text != "Axes" for name, text in annotations.items())

    def convert(cx: Conversion, *args: Any, **keywords: Any) -> Any:
        given: dict[str, Any] = {**dict(zip(cx.parameters, args, strict=False)), **keywords}
        options: dict[str, Any] = {p: given.pop(a, None) for p, a in spelling.parameters.items()}
        x, *others = list(given.values())[: len(kind.ROLES)]
        if isinstance(x, Value) and x.dtype.startswith(_UNCHANGED.get(operator, ())):
            return cast_to(x, cx.dtype)
        is_scalar = takes_an_axis and not x.ndim
        x = apply("reshape", x, (1,)) if is_scalar else x
        options = {name: value for name, value in options.items() if value is not None}
        for name, value in options.items():
            if annotations[name] == "Axes":
                options[name] = axes_of(x, value)
            elif name.startswith("axis"):
                options[name] = value % x.ndim
            elif annotations[name] == "float":
                options[name] = float(value)
        found = applied(cx, operator, x, *others, **options, **spelling.fixed)
        return apply("reshape", found, ()) if is_scalar else found

    return convert


for _name, (_operator, _spelling) in spellings("aten").items():
    register(_name)(_spelled(_operator, _spelling))
