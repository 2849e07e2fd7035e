"""Reductions: combine the values of an expression over reduce axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from weft.dialects.te import Combiner, identity_of
from weft.support.argument_types import checked, shown
from weft.support.locations import SourceLocation
from weft.texpr.expr import (
    Accumulator,
    BinaryKind,
    Const,
    Expr,
    ExprLike,
    IterVar,
    as_expr,
    as_number,
    binary,
    caller,
    cast_to,
    check_computable,
    error,
    is_float,
    nested,
    number_as,
    subexpressions,
    type_of,
)
from weft.texpr.math import if_then_else
from weft.texpr.shapes import as_index, checked_extent, checked_name, items


@dataclass(eq=False)
class CustomCombiner:
    name: str
    lefts: tuple[Accumulator, ...]
    rights: tuple[Accumulator, ...]
    combined: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@dataclass(eq=False)
class Reduction:
    """A joint reduction, compared by identity."""

    combiner: Combiner
    axes: tuple[IterVar, ...]
    values: tuple[Expr, ...]
    place: SourceLocation | None
    custom: CustomCombiner | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        bounds = [b for axis in self.axes for b in axis.dom if isinstance(b, Expr)]
        custom = (*self.custom.combined, *self.custom.identity) if self.custom else ()
        return (*self.values, *custom, *bounds)


@dataclass(eq=False, slots=True, repr=False)
class ReduceValue(Expr):
    reduction: Reduction
    position: int
    dtype: str
    is_index: bool = False

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.reduction.parts

    def text(self, depth: int) -> str:
        reduction = self.reduction
        name = reduction.custom.name if reduction.custom else reduction.combiner.value
        axes = ", ".join(axis.name for axis in reduction.axes)
        return f"{name}({nested(depth, *reduction.values)}, axis=[{axes}])"


def reductions_in(exprs: Iterable[Expr]) -> tuple[Reduction, ...]:
    return tuple(dict.fromkeys(e.reduction for e in subexpressions(exprs) if isinstance(e, ReduceValue)))


def reduce_axis(dom: Sequence[int | Expr], name: str = "rv") -> IterVar:
    """`low <= value < high` for `dom = (low, high)`. Raises CompileError for an empty name, bounds other than integers,
    and high < low.
    """
    label = checked_name(name, "rv")
    if not isinstance(dom, list | tuple) or len(dom) != 2:
        raise error(f"reduce axis {label}: its range is (low, high), got {shown(dom)}")
    low, high = (_bound(bound, label) for bound in dom)
    if isinstance(low, int) and isinstance(high, int) and high < low:
        raise error(f"reduce axis {label}: the range ({low}, {high}) ends before it starts")
    extent = high if low == 0 and isinstance(low, int) else high - low
    return IterVar(label, low, checked_extent(extent, f"reduce axis {label}: its extent"), True)


def _bound(bound: object, label: str) -> int | Expr:
    number = as_number(bound)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    expr = as_index(bound, f"reduce axis {label}: its bound")
    return int(expr.value) if isinstance(expr, Const) else expr


def _axes(name: str, axis: IterVar | Sequence[IterVar] | None) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    if axis is None or not axes:
        raise error(f"te.{name} needs the axis to reduce over: te.{name}(expr, axis=k)")
    for one in axes:
        if not isinstance(one, IterVar) or not one.is_reduce:
            raise error(f"te.{name} reduces over axes made by te.reduce_axis, got {shown(one)}")
    if len(set(map(id, axes))) != len(axes):
        raise error(f"te.{name}: axis {[a.name for a in axes if isinstance(a, IterVar)]} names one axis twice")
    return tuple(a for a in axes if isinstance(a, IterVar))


def _reduced(
    combiner: Combiner, axes: tuple[IterVar, ...], values: Sequence[Expr], custom: CustomCombiner | None = None
) -> tuple[ReduceValue, ...]:
    inner_axes = {id(axis) for inner in reductions_in(values) for axis in inner.axes}
    for axis in axes:
        if id(axis) in inner_axes:
            raise error(f"reduce axis {axis.name} is reduced twice, in a reduction and in one around it")
    reduction = Reduction(combiner, axes, tuple(values), caller(), custom)
    return tuple(ReduceValue(reduction, position, value.dtype) for position, value in enumerate(values))


def _numeric(
    combiner: Combiner, expr: ExprLike, axis: IterVar | Sequence[IterVar] | None, where: ExprLike | None
) -> Expr:
    name: str = str(combiner.value)
    axes, value = _axes(name, axis), as_expr(expr)
    check_computable(f"te.{name}", value)
    if value.dtype == "bool":
        raise error(f"te.{name} takes numbers, got bool `{value}`: cast, or use te.any and te.all")
    if where is not None:
        (neutral,) = identity_of(combiner, [type_of(value.dtype)])
        value = if_then_else(where, value, number_as(neutral, value.dtype))
    return _reduced(combiner, axes, (value,))[0]


def sum(expr: ExprLike, axis: IterVar | Sequence[IterVar] | None = None, where: ExprLike | None = None) -> Expr:
    """Sum over reduce axes, in the dtype of `expr`, which is evaluated and added where `where` holds. Integers wrap.
    Raises CompileError for bools and invalid axes.
    """
    return _numeric(Combiner.SUM, expr, axis, where)


def prod(expr: ExprLike, axis: IterVar | Sequence[IterVar] | None = None, where: ExprLike | None = None) -> Expr:
    """Product over reduce axes, see `sum`."""
    return _numeric(Combiner.PROD, expr, axis, where)


def max(
    expr: ExprLike,
    other: ExprLike | IterVar | None = None,
    axis: IterVar | Sequence[IterVar] | None = None,
    where: ExprLike | None = None,
) -> Expr:
    """The maximum of two numbers, `te.max(a, b)`, or over reduce axes, `te.max(a, axis=k)` or `te.max(a, k)`.

    NaN propagates; an empty reduction is -inf or the least integer.
    """
    return _extreme(Combiner.MAX, BinaryKind.MAX, expr, other, axis, where)


def min(
    expr: ExprLike,
    other: ExprLike | IterVar | None = None,
    axis: IterVar | Sequence[IterVar] | None = None,
    where: ExprLike | None = None,
) -> Expr:
    """The minimum, `te.min(a, b)` or `te.min(a, axis=k)`, see `max`; an empty reduction is +inf or the greatest
    integer.
    """
    return _extreme(Combiner.MIN, BinaryKind.MIN, expr, other, axis, where)


def _extreme(
    combiner: Combiner,
    kind: BinaryKind,
    expr: ExprLike,
    other: ExprLike | IterVar | Sequence[IterVar] | None,
    axis: IterVar | Sequence[IterVar] | None,
    where: ExprLike | None,
) -> Expr:
    if axis is None and (isinstance(other, list | tuple) or (isinstance(other, IterVar) and other.is_reduce)):
        axis, other = other, None
    if axis is not None:
        if other is not None:
            raise error(f"te.{combiner.value} takes either a second number or an axis, got both")
        return _numeric(combiner, expr, axis, where)
    if other is None:
        raise error(f"te.{combiner.value} takes two numbers, or one and axis=")
    return binary(kind, expr, other)


def _logical(combiner: Combiner, kind: BinaryKind, conditions: tuple[ExprLike, ...], axis: object) -> Expr:
    name: str = str(combiner.value)
    if not conditions:
        raise error(f"te.{name} needs at least one condition")
    exprs = [as_expr(condition) for condition in conditions]
    for expr in exprs:
        if expr.dtype != "bool":
            raise error(f"te.{name} takes bools, got {expr.dtype} `{expr}`: compare it")
    result = exprs[0]
    for expr in exprs[1:]:
        result = binary(kind, result, expr)
    if axis is None:
        return result
    return _reduced(combiner, _axes(name, axis), (result,))[0]  # pyright: ignore[reportArgumentType]


def all(*conditions: ExprLike, axis: IterVar | Sequence[IterVar] | None = None) -> Expr:
    """Whether all conditions hold, `te.all(i >= 1, i < n)`; with `axis`, for all its values."""
    return _logical(Combiner.ALL, BinaryKind.AND, conditions, axis)


def any(*conditions: ExprLike, axis: IterVar | Sequence[IterVar] | None = None) -> Expr:
    """Whether any condition holds; with `axis`, for some value."""
    return _logical(Combiner.ANY, BinaryKind.OR, conditions, axis)


def argmax(
    expr: ExprLike, axis: IterVar | Sequence[IterVar], dtype: object = "int64", *, place: ExprLike | None = None
) -> tuple[Expr, Expr]:
    """The maximum over reduce axes and its index from 0, the first of equal ones; NaN is greater than all numbers.

    Over several axes the index is row-major, or the expression `place`, of which the least is first. An empty reduction
    gives the greatest integer.
    """
    return _located(Combiner.ARGMAX, expr, axis, dtype, place)


def argmin(expr: ExprLike, axis: IterVar | Sequence[IterVar], dtype: object = "int64") -> tuple[Expr, Expr]:
    """The minimum and its index, see `argmax`; NaN is less than all numbers."""
    return _located(Combiner.ARGMIN, expr, axis, dtype, None)


def _located(
    combiner: Combiner,
    expr: ExprLike,
    axis: IterVar | Sequence[IterVar],
    dtype: object,
    given: ExprLike | None,
) -> tuple[Expr, Expr]:
    axes, value = _axes(str(combiner.value), axis), as_expr(expr)
    check_computable(f"te.{combiner.value}", value)
    if value.dtype == "bool":
        raise error(f"te.{combiner.value} takes numbers, got bool `{value}`: cast it")
    place: Expr = axes[0] - axes[0].low
    for one in axes[1:]:
        place = place * one.extent + (one - one.low)
    place = cast_to(place if given is None else given, dtype)
    if place.dtype == "bool" or is_float(place.dtype):
        raise error(f"te.{combiner.value} gives an integer index, got dtype {place.dtype}")
    return _reduced(combiner, axes, (value, place))  # pyright: ignore[reportReturnType]


@checked
def comm_reducer(
    fcombine: Callable[..., object], fidentity: Callable[..., object], name: str = "reduce"
) -> Callable[..., Expr | tuple[Expr, ...]]:
    """A reduction with a custom combiner: `fcombine(x, y)` combines two values, `fidentity(dtype)` is its identity.

    For joint reductions of n values, x and y are tuples, and `fcombine` and `fidentity(dtype0, dtype1, ...)` return n
    values:

        def fcombine(x, y):
            better = x[1] >= y[1]
            return te.select(better, x[0], y[0]), te.select(better, x[1], y[1])

        argmax = te.comm_reducer(fcombine, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
        T0, T1 = te.compute((m,), lambda i: argmax((index[i, k], value[i, k]), axis=k))

    `fcombine` must be associative and commutative with a neutral identity: schedules reorder it. Raises CompileError if
    it returns other dtypes than the values'.
    """

    def reducer(
        expr: ExprLike | Sequence[ExprLike], axis: IterVar | Sequence[IterVar] | None = None
    ) -> Expr | tuple[Expr, ...]:
        several = isinstance(expr, list | tuple)
        values = tuple(as_expr(e) for e in expr) if isinstance(expr, list | tuple) else (as_expr(expr),)
        dtypes = [value.dtype for value in values]
        lefts = tuple(Accumulator(p, dtype) for p, dtype in enumerate(dtypes))
        rights = tuple(Accumulator(p + len(dtypes), dtype) for p, dtype in enumerate(dtypes))
        combined = fcombine(lefts, rights) if several else fcombine(lefts[0], rights[0])
        custom = CustomCombiner(
            name,
            lefts,
            rights,
            _checked_tuple(f"{name}: what the combiner returns", combined, dtypes),
            _checked_tuple(f"{name}: the identity", fidentity(*dtypes), dtypes),
        )
        results = _reduced(Combiner.CUSTOM, _axes(name, axis), values, custom)
        return results if several else results[0]

    reducer.__name__ = reducer.__qualname__ = name
    return reducer


def _checked_tuple(what: str, values: object, dtypes: Sequence[str]) -> tuple[Expr, ...]:
    listed = items(values)
    if len(listed) != len(dtypes):
        raise error(f"{what} has {len(listed)} values for {len(dtypes)} that are reduced")
    exprs = tuple(as_expr(value, dtype) for value, dtype in zip(listed, dtypes, strict=True))
    for expr, dtype in zip(exprs, dtypes, strict=True):
        if expr.dtype != dtype:
            raise error(f"{what} is {expr.dtype} `{expr}`, but what is reduced is {dtype}")
    return exprs
