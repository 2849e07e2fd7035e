"""Complex numbers within a model, as pairs of real tensors, because graphs have no complex types.

Operators that are linear in their complex operands, including most views, apply the converter for real tensors to both
parts. Inputs and outputs are real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any, Final, TypeAlias, cast

from weft.dialects.graph_shapes import EXTENTS, KnownExtent, Shape
from weft.frontends.graph_builder import Value, const
from weft.frontends.torch.converters import (
    CONVERTERS,
    Conversion,
    Converter,
    Scalar,
    apply,
    cast_to,
    extent_value,
    known,
)
from weft.frontends.torch.library import pytree
from weft.frontends.torch.symbols import UnsupportedError


@dataclass(frozen=True)
class Complex:
    real: Value
    imaginary: Value

    @property
    def shape(self) -> Shape:
        return self.real.shape

    @property
    def ndim(self) -> int:
        return self.real.ndim

    @property
    def dtype(self) -> str:
        return self.real.dtype


Operand: TypeAlias = "Complex | Value | Scalar | complex"
_COMPLEX: Final[dict[str, Converter]] = {}
_LINEAR: Final = (
    *("alias.default", "clone.default", "detach.default", "lift_fresh_copy.default", "view.default"),
    *("reshape.default", "_unsafe_view.default", "squeeze.dim", "squeeze.dims", "squeeze.default"),
    *("unsqueeze.default", "permute.default", "transpose.int", "t.default", "expand.default", "flip.default"),
    *("roll.default", "repeat.default", "slice.Tensor", "select.int", "narrow.default", "split_with_sizes.default"),
    *("split.Tensor", "unfold.default", "unbind.int", "diagonal.default", "tril.default", "triu.default"),
    *("as_strided.default", "index_select.default", "gather.default", "index.Tensor", "sum.default"),
    *("sum.dim_IntList", "mean.default", "mean.dim", "cumsum.default", "neg.default"),
)
"""Linear operators of one complex operand; other operands are real."""
_CHOICES: Final = {"cat.default": 0, "stack.default": 0, "where.self": 1}
"""Maps an operator that selects elements of several operands to the index of the first of these operands. Real ones
have an imaginary part of 0."""


def is_complex(leaves: object) -> bool:
    return any(isinstance(leaf, Complex | complex) for leaf in pytree.tree_leaves(leaves))


def complex_converter(name: str) -> Converter:
    """Raises `UnsupportedError` if there is none."""
    if name in _COMPLEX:
        return _COMPLEX[name]
    short = name.removeprefix("aten.")
    if short in _LINEAR or short in _CHOICES:

        def convert(cx: Conversion, *args: Any, **keywords: Any) -> Any:
            return _by_parts(cx, _CHOICES.get(short), args, keywords)

        return convert
    raise UnsupportedError("complex numbers")


def _by_parts(cx: Conversion, first: int | None, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Apply the real converter to both parts. Real tensors from operand `first` on have an imaginary part of 0."""
    imaginary = [
        pytree.tree_map(partial(_imaginary, of_value=first is not None and at >= first), arg)
        for at, arg in enumerate(args)
    ]
    one: Any = _real_converter(cx)(*pytree.tree_map(_real, list(args)), **keywords)
    other: Any = _real_converter(cx)(*imaginary, **keywords)
    if isinstance(one, tuple | list):
        pairs = zip(cast("Sequence[Value]", one), cast("Sequence[Value]", other), strict=True)
        return tuple(Complex(real, part) for real, part in pairs)
    return Complex(one, other)


def _real(leaf: Any) -> Any:
    return leaf.real if isinstance(leaf, Complex) else leaf


def _imaginary(leaf: Any, *, of_value: bool) -> Any:
    if isinstance(leaf, Complex):
        return leaf.imaginary
    return _zeros(leaf) if of_value and isinstance(leaf, Value) else leaf


def _real_converter(cx: Conversion) -> Converter:
    own = replace(cx, results=[replace(meta, is_complex=False) for meta in cx.results])
    return partial(CONVERTERS[cx.name], own)


def _complex(*names: str) -> Callable[[Converter], Converter]:
    def keep(converter: Converter) -> Converter:
        _COMPLEX.update({f"aten.{name}": converter for name in names})
        return converter

    return keep


def _parts(cx: Conversion, x: Operand, dtype: str) -> tuple[Value, Value | None]:
    """Both parts in one element type, None for the imaginary part of a real number."""
    if isinstance(x, Complex):
        return cast_to(x.real, dtype), cast_to(x.imaginary, dtype)
    if isinstance(x, complex):
        return const(x.real, dtype), const(x.imag, dtype)
    return cx.operand(x, dtype), None


def _zeros(like: Value) -> Value:
    return apply("full", known(like.shape), 0, dtype=like.dtype)


@_complex("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar")
def _add(cx: Conversion, x: Operand, y: Operand, alpha: Scalar | complex) -> Complex:
    if isinstance(alpha, complex):
        raise UnsupportedError("a complex factor of a sum")
    name = cx.name.split(".")[1]
    x, y = (y, x) if name == "rsub" else (x, y)
    (a, b), (c, d) = (_parts(cx, operand, cx.dtype) for operand in (x, y))
    parts = [(a, c), (_zeros(a) if b is None else b, _zeros(c) if d is None else d)]
    if alpha != 1:
        factor = cx.number(alpha, cx.dtype)
        parts = [(one, apply("multiply", other, factor)) for one, other in parts]
    operator = "add" if name == "add" else "subtract"
    return Complex(*(apply(operator, *pair) for pair in parts))


@_complex("constant_pad_nd.default")
def _padded(cx: Conversion, x: Complex, pad: Sequence[Any], value: Scalar | complex = 0) -> Complex:
    numbers = (value.real, value.imag) if isinstance(value, complex) else (value, 0)
    convert = _real_converter(cx)
    return Complex(*(convert(part, pad, n) for part, n in zip((x.real, x.imaginary), numbers, strict=True)))


@_complex("_to_copy.default", "complex.default")
def _to_complex(cx: Conversion, x: Value | Complex, y: Value | None = None, **_: object) -> Complex | Value:
    if not cx.results[0].is_complex:
        return cast_to(x.real if isinstance(x, Complex) else x, cx.dtype)
    real, imaginary = _parts(cx, x, cx.dtype)
    imaginary = cast_to(y, cx.dtype) if y is not None else imaginary
    return Complex(real, _zeros(real) if imaginary is None else imaginary)


@_complex("polar.default")
def _polar(cx: Conversion, size: Value, angle: Value) -> Complex:
    return Complex(*(apply("multiply", size, apply(name, angle)) for name in ("cos", "sin")))


@_complex("view_as_real.default", "view_as_real_copy.default")
def _view_as_real(cx: Conversion, x: Complex) -> Value:
    return apply("stack", [x.real, x.imaginary], axis=x.ndim)


@_complex("view_as_complex.default", "view_as_complex_copy.default")
def _view_as_complex(cx: Conversion, x: Value) -> Complex:
    return _of_pairs(x)


def _of_pairs(x: Value) -> Complex:
    parts = apply("split", x, 2, axis=x.ndim - 1)
    return Complex(*(apply("squeeze", part, axis=[x.ndim - 1]) for part in parts))


@_complex("_conj.default", "conj_physical.default", "_conj_physical.default", "_conj_copy.default")
def _conj(cx: Conversion, x: Complex) -> Complex:
    return Complex(x.real, apply("negative", x.imaginary))


@_complex("abs.default")
def _abs(cx: Conversion, x: Complex) -> Value:
    return CONVERTERS["aten.hypot.default"](cx, x.real, x.imaginary)


@_complex("angle.default")
def _angle(cx: Conversion, x: Complex) -> Value:
    return apply("atan2", x.imaginary, x.real)


@_complex("mul.Tensor", "mul.Scalar")
def _multiply(cx: Conversion, x: Operand, y: Operand) -> Complex:
    (a, b), (c, d) = (_parts(cx, operand, cx.dtype) for operand in (x, y))
    if b is None or d is None:
        real, parts = (a, (c, d)) if b is None else (c, (a, b))
        return Complex(*(apply("multiply", real, _zeros(real) if part is None else part) for part in parts))
    product = apply("subtract", apply("multiply", a, c), apply("multiply", b, d))
    return Complex(product, apply("add", apply("multiply", a, d), apply("multiply", b, c)))


@_complex("div.Tensor", "div.Scalar")
def _divide(cx: Conversion, x: Operand, y: Operand) -> Complex:
    (a, b), (c, d) = (_parts(cx, operand, cx.dtype) for operand in (x, y))
    if d is None:
        return Complex(*(apply("divide", part, c) for part in (a, _zeros(a) if b is None else b)))
    size = apply("add", apply("square", c), apply("square", d))
    top = _multiply(cx, Complex(a, _zeros(a) if b is None else b), Complex(c, apply("negative", d)))
    return Complex(apply("divide", top.real, size), apply("divide", top.imaginary, size))


@_complex("exp.default")
def _exp(cx: Conversion, x: Complex) -> Complex:
    return _polar(cx, apply("exp", x.real), x.imaginary)


@_complex("mm.default", "bmm.default", "matmul.default")
def _matmul(cx: Conversion, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = (_parts(cx, operand, cx.dtype) for operand in (x, y))
    if b is None or d is None:
        raise UnsupportedError("a product of real and complex matrices")
    products = [[apply("matmul", one, other) for other in (c, d)] for one in (a, b)]
    real = apply("subtract", products[0][0], products[1][1])
    return Complex(real, apply("add", products[0][1], products[1][0]))


def _count(x: Value | Complex, dims: Sequence[int]) -> KnownExtent:
    return EXTENTS.product(known(tuple(x.shape[dim] for dim in dims)))


def _scaled(pairs: Value, mode: int, count: KnownExtent, *, inverse: bool) -> Value:
    """PyTorch's normalization: 0 is none, 1 the square root of the number of elements, 2 the number. Inverse transforms
    are already divided by the number."""
    if isinstance(count, int):
        factor = (1.0, 1 / sqrt(max(count, 1)), 1 / max(count, 1))[mode] * (count if inverse else 1)
        return pairs if factor == 1 else apply("multiply", pairs, const(factor, pairs.dtype))
    if mode == 2 * inverse:
        return pairs
    number = apply("maximum", extent_value(count, pairs.dtype), 1)
    return apply("multiply" if inverse else "divide", pairs, apply("sqrt", number) if mode == 1 else number)


def _transformed(pairs: Value, dims: Sequence[int], *, inverse: bool) -> Value:
    for dim in dims:
        pairs = apply("dft", pairs, axis=dim, inverse=inverse)
    return pairs


@_complex("_fft_c2c.default")
def _c2c(cx: Conversion, x: Complex, dim: Sequence[int], normalization: int, forward: bool) -> Complex:
    dims = [axis % x.ndim for axis in dim]
    pairs = _transformed(_view_as_real(cx, x), dims, inverse=not forward)
    return _of_pairs(_scaled(pairs, normalization, _count(x, dims), inverse=not forward))


@_complex("_fft_r2c.default")
def _r2c(cx: Conversion, x: Value, dim: Sequence[int], normalization: int, onesided: bool) -> Complex:
    dims = [axis % x.ndim for axis in dim]
    pairs = apply("dft", apply("expand_dims", x, x.ndim), axis=dims[-1], onesided=onesided)
    pairs = _transformed(pairs, dims[:-1], inverse=False)
    return _of_pairs(_scaled(pairs, normalization, _count(x, dims), inverse=False))


@_complex("_fft_c2r.default")
def _c2r(cx: Conversion, x: Complex, dim: Sequence[int], normalization: int, last_dim_size: KnownExtent) -> Value:
    dims = [axis % x.ndim for axis in dim]
    pairs = _transformed(_view_as_real(cx, x), dims[:-1], inverse=True)
    found = apply("dft", pairs, axis=dims[-1], length=last_dim_size, inverse=True, onesided=True)
    count = _count(x, dims[:-1]) * last_dim_size
    return apply("squeeze", _scaled(found, normalization, count, inverse=True), axis=[x.ndim])
