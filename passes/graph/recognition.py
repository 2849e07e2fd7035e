"""Rules that recognise activations, normalizations and attention in compositions of operators. See
docs/decisions/0053-graph-rewriting.md.

The recognised operator makes one pass over the data, in float32 for 16-bit floats, and rounds differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isclose, sqrt
from typing import Any, Final, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from weft.analysis import graph_patterns as P
from weft.analysis.graph_patterns import Match, Pattern, arguments_of, array_of_constant, number_of
from weft.dialects.graph import ConstantOp
from weft.passes.graph.operators import (
    axes_of,
    counted_axes,
    dtype_of,
    extents_of,
    made,
    name_of,
    operands_of,
    properties_of,
    reshaped,
    source_of,
    type_of,
)
from weft.passes.graph.rewriting import Replacement, Rule, pattern_rule
from weft.texpr.graph_operators import Operator

X: Final = P.var("x")


def _of_x(name: str, pattern: Pattern, **attributes: object) -> Rule:
    return pattern_rule(pattern, lambda found, _: made(name, [found["x"]], **attributes))


# Activations


def _activations() -> list[Rule]:
    exp_minus = P.exp(P.factors(X, -1.0))
    relu6 = _clipped(P.terms(X, 3.0), 0.0, 6.0)
    hardsigmoid = P.hardsigmoid(X, alpha=_is_a_sixth, beta=0.5)
    minus_abs = P.factors(P.abs(X), -1.0)
    small = _softplus(minus_abs) | P.log1p(P.exp(minus_abs))
    return [
        _of_x("relu", P.maximum(X, 0) | P.clip(X, a_min=0, a_max=None)),
        _of_x("sigmoid", P.reciprocal(P.terms(exp_minus, 1.0)) | 1.0 / P.terms(exp_minus, 1.0)),
        _of_x("silu", P.factors(X, P.sigmoid(X)) | X / P.terms(exp_minus, 1.0)),
        _of_x("hardsigmoid", P.factors(relu6, 1 / 6) | _clipped(P.terms(P.factors(X, 1 / 6), 0.5), 0.0, 1.0)),
        _of_x("hardswish", P.factors(X, relu6, 1 / 6) | P.factors(X, hardsigmoid)),
        _of_x(
            "softplus",
            P.log(P.terms(P.exp(X), 1.0)) | P.log1p(P.exp(X)) | P.terms(P.relu(X), small),
        ),
        _of_x("log_sigmoid", P.log(P.sigmoid(X)) | P.factors(_softplus(P.factors(X, -1.0)), -1.0)),
        _of_x("softsign", X / P.terms(P.abs(X), 1.0)),
        _of_x("mish", P.factors(X, P.tanh(_softplus(X)))),
        _of_x("gelu", _gelu(), approximate="none"),
        _of_x("gelu", _gelu_by_tanh(), approximate="tanh"),
    ]


def _softplus(value: Pattern) -> Pattern:
    return P.softplus(value, beta=1.0, threshold=inf)


def _is_a_sixth(alpha: object) -> bool:
    return isinstance(alpha, float) and isclose(alpha, 1 / 6, rel_tol=1e-6)


def _clipped(value: Pattern, least: float, greatest: float) -> Pattern:
    def above(inner: Pattern) -> Pattern:
        return P.maximum(inner, least) | P.relu(inner) if least == 0 else P.maximum(inner, least)

    return (
        P.clip(value, a_min=least, a_max=greatest)
        | P.minimum(above(value), greatest)
        | above(P.minimum(value, greatest))
    )


def _gelu() -> Pattern:
    """Matches x / 2 * (1 + erf(x / sqrt(2)))."""
    erf = P.erf(P.factors(X, sqrt(0.5)))
    return P.factors(P.terms(erf, 1.0), X, 0.5) | P.factors(P.terms(P.factors(erf, 0.5), 0.5), X)


def _gelu_by_tanh() -> Pattern:
    """Matches x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))."""
    root, cubic = 0.7978845608028654, 0.044715

    def cube(factor: float) -> Pattern:
        return P.factors(P.power(X, 3), factor) | P.factors(P.square(X), X, factor) | P.factors(X, X, X, factor)

    def square(factor: float) -> Pattern:
        return P.factors(P.square(X), factor) | P.factors(P.power(X, 2), factor) | P.factors(X, X, factor)

    inner = (
        P.factors(P.terms(cube(cubic), X), root)
        | P.factors(P.terms(square(cubic), 1.0), X, root)
        | P.terms(cube(cubic * root), P.factors(X, root))
    )
    tanh = P.tanh(inner)
    return P.factors(P.terms(tanh, 1.0), X, 0.5) | P.factors(P.terms(P.factors(tanh, 0.5), 0.5), X)


# Normalizations


def _normalizations() -> list[Rule]:
    deviation = P.subtract(X, _average(X, "mean"))
    variance = _average(_squared(deviation), "variance") | P.op("var", X, keepdims=True, ddof=0).named("variance")
    layer = _divided(deviation, P.sqrt, variance)
    rms = _divided(X, P.sqrt, _average(_squared(X), "variance"))
    top = P.op("max", X, keepdims=True).named("top")
    power = P.exp(X - top) | P.exp(X)
    total = P.op("sum", power, keepdims=True, dtype=None).named("total")
    return [
        pattern_rule(layer, lambda found, _: _normalized("layer_norm", found, ("mean", "variance"))),
        pattern_rule(rms, lambda found, _: _normalized("rms_norm", found, ("variance",))),
        pattern_rule(power / total | power * P.reciprocal(total) | power * (1.0 / total), _softmax),
        pattern_rule(P.log(P.softmax(X).named("softmax")), _log_softmax),
        pattern_rule(P.log(P.op("sum", P.exp(X), dtype=None).named("total")), _logsumexp),
        Rule(frozenset(("multiply", "add")), _scaled_norm),
    ]


def _average(value: Pattern, name: str) -> Pattern:
    """Matches a mean with kept axes: `name` is the reduction, `<name>_count` the divisor of a sum."""
    total = P.op("sum", value, keepdims=True, dtype=None).named(name)
    return P.mean(value, keepdims=True).named(name) | total / P.const(name=f"{name}_count")


def _squared(value: Pattern) -> Pattern:
    return P.square(value) | P.multiply(value, value) | P.power(value, 2)


def _divided(value: Pattern, root: Callable[..., Pattern], variance: Pattern) -> Pattern:
    """Matches forms of value / sqrt(variance + epsilon)."""
    under = P.optional(variance, lambda y: y + P.const(name="epsilon"))
    deviation = root(under) | P.power(under, 0.5)
    inverse = P.rsqrt(under) | P.reciprocal(deviation) | P.power(under, -0.5) | 1.0 / deviation
    return value / deviation | value * inverse


def _axes_of(value: SSAValue) -> list[int]:
    return counted_axes(cast("Operator", value.owner))


def _normalized(name: str, found: Match, reductions: Sequence[str]) -> Replacement:
    """Returns a norm over the common axes of the reductions, if these are means."""
    axes = _axes_of(found[reductions[0]])
    epsilon = number_of(found["epsilon"]) if found.get("epsilon") else 0.0
    if not axes or epsilon is None or any(_axes_of(found[reduction]) != axes for reduction in reductions):
        return None
    for reduction in reductions:
        count = found.get(f"{reduction}_count")
        if count is not None:
            extents, number = [extents_of(found["x"])[axis] for axis in axes], number_of(count)
            size = 1
            for extent in extents:
                if not isinstance(extent, int):
                    return None
                size *= extent
            if number is None or number != size:
                return None
    return made(name, [found["x"]], axis=axes if len(axes) > 1 else axes[0], epsilon=float(epsilon))


def _softmax(found: Match, _: SSAValue) -> Replacement:
    axes = _axes_of(found["total"])
    if len(axes) != 1 or (found.get("top") and _axes_of(found["top"]) != axes):
        return None
    return made("softmax", [found["x"]], axis=axes[0])


def _log_softmax(found: Match, _: SSAValue) -> Replacement:
    return made("log_softmax", [found["x"]], axis=arguments_of(cast("Operation", found["softmax"].owner))["axis"])


def _logsumexp(found: Match, _: SSAValue) -> Replacement:
    keepdims = bool(arguments_of(cast("Operation", found["total"].owner))["keepdims"])
    return made("logsumexp", [found["x"]], axis=_axes_of(found["total"]), keepdims=keepdims)


_SCALES: Final = {
    ("multiply", "layer_norm"): "gamma",
    ("add", "layer_norm"): "beta",
    ("multiply", "rms_norm"): "weight",
}
"""Maps an operator after a norm to the operand of the norm that replaces it."""


def _scaled_norm(op: Operation) -> Replacement:
    for value, other in (op.operands, reversed(op.operands)):
        norm = source_of(value, "layer_norm", "rms_norm")
        role = norm and _SCALES.get((name_of(op), name_of(norm)))
        if norm is None or role is None or not value.has_one_use() or other.owner is norm:
            continue
        given = operands_of(norm)
        if given[role] is not None or (role == "gamma" and given["beta"] is not None):
            continue
        axes = counted_axes(norm)
        scale = _along(other, axes, value) if value.type == op.results[0].type else None
        if scale is not None:
            given[role] = scale
            return made(name_of(norm), list(given.values()), **properties_of(norm))
    return None


def _along(value: SSAValue, axes: Sequence[int], like: SSAValue) -> SSAValue | None:
    """Returns a tensor with an element per index of the last `axes` of `like`, in their shape."""
    whole, shape = extents_of(like), extents_of(value)
    if list(axes) != list(range(len(whole) - len(axes), len(whole))):
        return None
    own = whole[len(whole) - len(axes) :]
    if type_of(value).element_type != type_of(like).element_type or None in own:
        return None
    if shape == own:
        return value
    if shape[len(shape) - len(own) :] != own or any(extent != 1 for extent in shape[: -len(own)]):
        return None
    return reshaped(value, own)


# Attention


def _attention(op: Operation) -> Replacement:
    """Recognise softmax(query @ key.T * scale + mask) @ value."""
    if not _is_plain_product(op, transposed=False):
        return None
    weights, value = op.operands
    softmax = _only_source(weights, "softmax")
    if softmax is None or arguments_of(softmax)["axis"] not in (-1, len(extents_of(weights)) - 1):
        return None
    for scores, mask, is_causal in _masks(softmax.operands[0]):
        product, scale = _unscaled(scores)
        matmul = _only_source(product, "matmul", "batch_matmul")
        if matmul is None or product.type != softmax.operands[0].type:
            continue
        query, key = matmul.operands
        if not _is_plain_product(matmul, transposed=True):
            transposed = _only_source(key, "transpose")
            if transposed is None or not _is_plain_product(matmul, transposed=False):
                continue
            axes = axes_of(transposed)
            axes[-2:] = reversed(axes[-2:])
            key = transposed.operands[0]
            if axes != list(range(len(axes))):
                key = made("transpose", [key], axes=axes).results[0]
        (query, more), (key, most) = _unscaled(query), _unscaled(key)
        return made("attention", [query, key, value, mask], is_causal=is_causal, scale=float(scale * more * most))
    return None


def _only_source(value: SSAValue, *names: str) -> Operator | None:
    return source_of(value, *names) if value.has_one_use() else None


def _is_plain_product(op: Operation, *, transposed: bool) -> bool:
    arguments = arguments_of(op)
    return (
        not arguments["transpose_a"]
        and bool(arguments["transpose_b"]) == transposed
        and all(type_of(value).element_type == type_of(op.results[0]).element_type for value in op.operands)
        and all(len(type_of(value).get_shape()) >= 2 for value in op.operands)
    )


def _unscaled(value: SSAValue) -> tuple[SSAValue, float]:
    scale = 1.0
    while (op := _only_source(value, "multiply", "divide")) is not None:
        left, right = op.operands
        if source_of(value, "multiply") and number_of(right) is None:
            left, right = right, left
        number = number_of(right)
        if number is None or left.type != value.type or (number == 0 and op.name.endswith("divide")):
            break
        value, scale = left, scale / number if op.name.endswith("divide") else scale * number
    return value, scale


def _masks(scores: SSAValue) -> Sequence[tuple[SSAValue, SSAValue | None, bool]]:
    """Returns scaled products, masks, and whether these are causal."""
    found: list[tuple[SSAValue, SSAValue | None, bool]] = []
    added, chosen = _only_source(scores, "add"), _only_source(scores, "where")
    if added is not None:
        for product, mask in (added.operands, reversed(added.operands)):
            causal = isinstance(mask.owner, ConstantOp) and _is_causal(mask, scores)
            found.append((product, None if causal else mask, causal))
    if chosen is not None and (least := number_of(chosen.operands[2])) is not None and least <= _LEAST_SCORE:
        condition, product, _ = chosen.operands
        causal = isinstance(condition.owner, ConstantOp) and _is_causal(condition, scores)
        # A query without visible keys gives NaN only for -inf; every query of the causal mask has one.
        if causal or least == float("-inf"):
            found.append((product, None if causal else condition, causal))
    return [*found, (scores, None, False)]


_LEAST_SCORE: Final = -1e9
"""Maximum score for which exp is 0 in any type, so that the score is masked."""


def _is_causal(mask: SSAValue, scores: SSAValue) -> bool:
    """Returns whether a mask of bools, or of 0 and equivalents of -inf, shows keys 0 to i to query i."""
    import numpy as np

    shape = type_of(mask).get_shape()
    if len(shape) < 2 or any(e != 1 for e in shape[:-2]) or shape[-2:] != type_of(scores).get_shape()[-2:]:
        return False
    if DYNAMIC_INDEX in shape[-2:]:
        return False
    array: Any = array_of_constant(cast("ConstantOp", mask.owner)).reshape(shape[-2:])
    sees = np.tri(*array.shape, dtype=bool)
    if dtype_of(mask) == "bool":
        return bool((array == sees).all())
    return bool((array[sees] == 0).all() and (array[~sees] <= _LEAST_SCORE).all() and not np.isnan(array).any())


ACTIVATIONS: Final = tuple(_activations())
NORMALIZATIONS: Final = tuple(_normalizations())
ATTENTION: Final = (Rule(frozenset(("matmul", "batch_matmul")), _attention),)
