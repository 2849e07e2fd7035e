"""Converters of `ai.onnx.ml`: scalers and encoders of features, linear models, tree ensembles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from weft.frontends.graph_builder import Value
from weft.frontends.onnx.known_tensors import Item, KnownTensor
from weft.frontends.onnx.node import Node
from weft.frontends.onnx.operators import ops
from weft.frontends.onnx.registry import converts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DOMAIN: Final = "ai.onnx.ml"
_DEEPEST: Final = 512
"""Maximum number of branches from a root to a leaf."""


def _constant(numbers: Any, dtype: str) -> Value:
    return KnownTensor(np.array(numbers, dtype), dtype).constant()


def _numbers(node: Node, name: str) -> list[float]:
    found: list[float] = node.attribute(name) or []
    return found


def _floats_of(data: Value) -> Value:
    return data if "float" in data.dtype else ops.cast(data, "float32")


def _matrix(node: Node) -> Value:
    """The input of samples and features; a vector is one sample."""
    data = node.value(0)
    if data.ndim not in (1, 2):
        raise node.refuse(f"input 'X' must have rank 1 or 2, got {data.ndim}")
    return ops.expand_dims(data, [0]) if data.ndim == 1 else data


@converts("Binarizer", domain=_DOMAIN)
def _binarizer(node: Node, data: Value, *, threshold: float) -> Item:
    return ops.cast(ops.greater(_floats_of(data), threshold), data.dtype)


@converts("Scaler", domain=_DOMAIN)
def _scaler(node: Node) -> Item:
    data = _floats_of(node.value(0))
    offset, scale = (_constant(_numbers(node, name), data.dtype) for name in ("offset", "scale"))
    return ops.multiply(ops.subtract(data, offset), scale)


@converts("Normalizer", domain=_DOMAIN)
def _normalizer(node: Node, *, norm: str) -> Item:
    data = _floats_of(_matrix(node))
    if norm == "L2":
        length = ops.vector_norm(data, [1], True)
    else:
        length = (ops.max if norm == "MAX" else ops.sum)(ops.abs(data), [1], True)
    return ops.divide(data, ops.maximum(length, 1e-30))


@converts("Imputer", domain=_DOMAIN)
def _imputer(node: Node, data: Value) -> Item:
    kind = "float" if "float" in data.dtype else "int64"
    values = _numbers(node, f"imputed_value_{kind}s")
    if not values or len(values) not in (1, data.shape[-1]):
        raise node.refuse(f"attribute 'imputed_value_{kind}s' must be 1 or {data.shape[-1]} numbers, got {len(values)}")
    replaced: float = node.attribute(f"replaced_value_{kind}") or 0
    is_missing = ops.isnan(data) if replaced != replaced else ops.equal(data, replaced)
    return ops.where(is_missing, _constant(values, data.dtype), data)


@converts("ArrayFeatureExtractor", domain=_DOMAIN)
def _array_feature_extractor(node: Node, data: Value, places: Value) -> Item:
    found = ops.take(data, ops.reshape(places, [-1]), data.ndim - 1)
    return ops.expand_dims(found, [0]) if data.ndim == 1 else found


@converts("FeatureVectorizer", domain=_DOMAIN)
def _feature_vectorizer(node: Node, *values: Value) -> Item:
    widths = node.integers("inputdimensions", 1, node.count)
    parts: list[Value] = []
    for position, value in enumerate(values):
        part = _floats_of(value if value.ndim == 2 else ops.expand_dims(value, [1]))
        if widths is not None and part.shape[1] != widths[position]:
            raise node.refuse(f"attribute 'inputdimensions' = {widths} must be those of the inputs")
        parts.append(part)
    return ops.concatenate(parts, 1)


@converts("OneHotEncoder", domain=_DOMAIN)
def _one_hot(node: Node, data: Value, *, zeros: bool) -> Item:
    categories = _numbers(node, "cats_int64s")
    if not categories:
        raise node.refuse("attribute 'cats_strings' is not supported: strings have no type in weft")
    if not zeros:
        raise node.refuse("attribute 'zeros' = 0 is not supported: unknown categories would have to fail")
    wide = data if data.dtype == "int64" else ops.cast(data, "int64")
    return ops.cast(ops.equal(ops.expand_dims(wide, [data.ndim]), _constant(categories, "int64")), "float32")


@converts("LabelEncoder", domain=_DOMAIN, since=2)
def _label_encoder(node: Node, data: Value) -> Item:
    keys, values, default = _labels(node, "keys"), _labels(node, "values"), _default_label(node)
    if keys is None or values is None or len(keys) != len(values) or not len(keys):
        raise node.refuse("attributes 'keys_*' and 'values_*' must be as many numbers; strings have no type in weft")
    if keys.dtype.name != data.dtype:
        raise node.refuse(f"attribute 'keys_*' must be of the type of the input, {data.dtype}, got {keys.dtype}")
    hit = ops.equal(ops.expand_dims(data, [data.ndim]), _constant(keys, data.dtype))
    if data.dtype.startswith("float"):
        missing = ops.logical_and(ops.expand_dims(ops.isnan(data), [data.ndim]), _constant(np.isnan(keys), "bool"))
        hit = ops.logical_or(hit, missing)
    first = ops.take(_constant(values, values.dtype.name), ops.argmax(ops.cast(hit, "uint8"), data.ndim), 0)
    return ops.where(ops.any(hit, [data.ndim]), first, _constant(default, values.dtype.name))


def _labels(node: Node, what: str) -> NDArray[Any] | None:
    """Keys or values of a map of labels, or None if missing or strings."""
    for suffix, dtype in (("int64s", "int64"), ("floats", "float32")):
        if node.has_attribute(f"{what}_{suffix}"):
            return np.array(node.attribute(f"{what}_{suffix}"), dtype)
    if node.has_attribute(f"{what}_tensor"):
        return node.scope.tensor_of(node.attribute(f"{what}_tensor")).array.reshape(-1)
    return None


def _default_label(node: Node) -> Any:
    if node.has_attribute("default_tensor"):
        return node.scope.tensor_of(node.attribute("default_tensor")).array.reshape(())
    kind = "int64" if node.has_attribute("values_int64s") else "float"
    return node.attribute(f"default_{kind}") or 0


# Linear models


def _transformed(node: Node, scores: Value, transform: str) -> Value:
    if transform == "NONE":
        return scores
    if transform == "LOGISTIC":
        return ops.sigmoid(scores)
    if transform == "SOFTMAX":
        return ops.softmax(scores, 1)
    raise node.refuse(f"attribute 'post_transform' = {transform} is not supported")


def _linear(node: Node, targets: int) -> Value:
    data = _floats_of(_matrix(node))
    weights, bias = _numbers(node, "coefficients"), _numbers(node, "intercepts")
    if not weights or len(weights) % targets:
        raise node.refuse(f"attribute 'coefficients' must be {targets} rows of numbers, got {len(weights)}")
    product = ops.matmul(data, _constant(np.reshape(weights, (targets, -1)).T.copy(), data.dtype))
    return ops.add(product, _constant(bias, data.dtype)) if bias else product


@converts("LinearRegressor", domain=_DOMAIN)
def _linear_regressor(node: Node, *, targets: int, post_transform: str) -> Item:
    return _transformed(node, _linear(node, targets), post_transform)


@converts("LinearClassifier", domain=_DOMAIN)
def _linear_classifier(node: Node) -> Sequence[Item]:
    node.attribute("multi_class")
    return _classified(node, _linear(node, len(_classes(node, "classlabels_ints"))), "classlabels_ints")


def _classes(node: Node, name: str) -> list[int]:
    labels = node.integers(name)
    if not labels:
        raise node.refuse(f"attribute '{name}' must hold the classes: strings have no type in weft")
    return labels


def _classified(node: Node, scores: Value, name: str) -> Sequence[Item]:
    labels = _constant(_classes(node, name), "int64")
    return ops.take(labels, ops.argmax(scores, 1), 0), _transformed(node, scores, node.attribute("post_transform"))


# Trees


@dataclass
class _Trees:
    """The nodes of trees: branches, and leaves, whose successors are themselves."""

    modes: list[str]
    features: list[int]
    thresholds: list[float]
    on_true: list[int]
    on_false: list[int]
    nan_is_true: list[bool]
    roots: list[int]
    weights: NDArray[Any]
    """The weight of each node for each target: (nodes, targets)."""

    def depth(self, node: Node) -> int:
        """The maximum number of branches to a leaf. Raises `Refusal` for cyclic trees."""
        level = set(self.roots)
        for depth in range(_DEEPEST + 1):
            level = {n for at in level if self.modes[at] != "LEAF" for n in (self.on_true[at], self.on_false[at])}
            if not level:
                return depth
        raise node.refuse(f"the trees are deeper than {_DEEPEST} branches, or have no end")

    def leaves_of(self, node: Node, data: Value) -> Value:
        """The leaf of each tree for each sample: (samples, trees)."""
        kinds = sorted(set(self.modes) - {"LEAF"})
        number: dict[str, int] = {kind: at for at, kind in enumerate(kinds)}
        wide, count = _floats_of(data), data.shape[1]
        if isinstance(count, int) and max(self.features) >= count:
            raise node.refuse(f"feature {max(self.features)} is none of the {count} of input 'X'")
        limits = _constant(self.thresholds, wide.dtype)
        modes = _constant([number.get(kind, 0) for kind in self.modes], "int64")
        features, yes, no = (_constant(table, "int64") for table in (self.features, self.on_true, self.on_false))
        nan_is_true = _constant(self.nan_is_true, "bool") if any(self.nan_is_true) else None
        shape = [data.shape[0], len(self.roots)]
        places = ops.broadcast_to(_constant(self.roots, "int64"), shape)
        for _ in range(self.depth(node)):
            value = ops.take_along_axis(wide, ops.take(features, places, 0), 1)
            limit = ops.take(limits, places, 0)
            taken = getattr(ops, _COMPARISONS[kinds[0]])(value, limit)
            for kind in kinds[1:]:
                is_kind = ops.equal(ops.take(modes, places, 0), number[kind])
                taken = ops.where(is_kind, getattr(ops, _COMPARISONS[kind])(value, limit), taken)
            if nan_is_true is not None:
                goes = ops.logical_and(ops.isnan(value), ops.take(nan_is_true, places, 0))
                taken = ops.logical_or(taken, goes)
            places = ops.where(taken, ops.take(yes, places, 0), ops.take(no, places, 0))
        return places

    def scores(self, node: Node, data: Value, aggregate: str) -> Value:
        """Aggregate the weights of the leaves of each sample: (samples, targets)."""
        dtype = self.weights.dtype.name
        of_trees = ops.take(_constant(self.weights, dtype), self.leaves_of(node, data), 0)
        if aggregate in ("SUM", "AVERAGE"):
            total = ops.sum(of_trees, [1])
            return total if aggregate == "SUM" else ops.divide(total, float(len(self.roots)))
        if self.weights.shape[1] > 1:
            raise node.refuse(f"attribute 'aggregate_function' = {aggregate} of several targets is not supported")
        return (ops.min if aggregate == "MIN" else ops.max)(of_trees, [1])


_COMPARISONS: Final[Mapping[str, str]] = {
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_GT": "greater",
    "BRANCH_EQ": "equal",
    "BRANCH_NEQ": "not_equal",
}
_MODES: Final = (*_COMPARISONS, "BRANCH_MEMBER")
"""The modes of branches. Their indices are the numbers that files store."""


@converts("TreeEnsemble", domain=_DOMAIN, since=5)
def _tree_ensemble(node: Node, *, n_targets: int) -> Item:
    data, targets = _matrix(node), n_targets
    aggregate = ("AVERAGE", "SUM", "MIN", "MAX")[node.integer("aggregate_function", 0, 3)]
    transform = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")[node.integer("post_transform", 0, 4)]
    trees = _numbered_trees(node, targets)
    return _transformed(node, trees.scores(node, data, aggregate), transform)


def _numbered_trees(node: Node, targets: int) -> _Trees:
    """Leaves are in separate tables. A membership test becomes a chain of equality tests."""

    def table(name: str, count: int) -> list[int]:
        found = node.integers(name, 0, count)
        if found is None:
            raise node.refuse(f"attribute '{name}' is missing")
        return found

    def tensor(name: str) -> NDArray[Any]:
        return node.scope.tensor_of(node.attribute(name)).array

    node.attribute("nodes_hitrates")
    modes, splits, weights = tensor("nodes_modes"), tensor("nodes_splits"), tensor("leaf_weights")
    count, leaves = len(modes), len(weights)
    features, yes, no = (table(f"nodes_{name}", count) for name in ("featureids", "truenodeids", "falsenodeids"))
    yes_leaf, no_leaf = (table(f"nodes_{name}", count) for name in ("trueleafs", "falseleafs"))
    nan = (
        table("nodes_missing_value_tracks_true", count) if node.has_attribute("nodes_missing_value_tracks_true") else []
    )
    ids, roots = table("leaf_targetids", leaves), node.integers("tree_roots", 0) or []
    ends = [(at, end) for pair in ((yes, yes_leaf), (no, no_leaf)) for at, end in zip(*pair, strict=True)]
    fits = all(at < (leaves if end else count) for at, end in ends) and len(splits) == count and bool(roots)
    if not fits or max(ids, default=0) >= targets or max(roots) >= count or int(np.max(modes)) >= len(_MODES):
        raise node.refuse("attributes 'nodes_*', 'leaf_*' and 'tree_roots' name nodes, leaves or targets that are none")
    sets: list[list[float]] = [[]]
    for number in tensor("membership_values").tolist() if node.has_attribute("membership_values") else ():
        if number != number:
            sets.append([])
        else:
            sets[-1].append(number)
    trees = _Trees(
        [_MODES[int(mode)] for mode in modes],
        features,
        splits.tolist(),
        [at + count * end for at, end in zip(yes, yes_leaf, strict=True)],
        [at + count * end for at, end in zip(no, no_leaf, strict=True)],
        [bool(flag) for flag in nan] or [False] * count,
        roots,
        np.zeros((0, targets), weights.dtype),
    )
    trees.modes += ["LEAF"] * leaves
    trees.features += [0] * leaves
    trees.thresholds += [0.0] * leaves
    trees.nan_is_true += [False] * leaves
    trees.on_true += range(count, count + leaves)
    trees.on_false += range(count, count + leaves)
    members = iter(sets)
    for at in range(count):
        if trees.modes[at] == "BRANCH_MEMBER":
            numbers: list[float] = next(members, list[float]())
            if not numbers:
                raise node.refuse("attribute 'membership_values' has too few sets, or an empty one")
            _chain_of_tests(trees, at, numbers)
    node.check_room(len(trees.modes), targets)
    trees.weights = np.zeros((len(trees.modes), targets), weights.dtype)
    trees.weights[np.arange(leaves) + count, ids] = weights
    return trees


def _chain_of_tests(trees: _Trees, at: int, numbers: Sequence[float]) -> None:
    last = trees.on_false[at]
    trees.modes[at], trees.thresholds[at] = "BRANCH_EQ", numbers[0]
    for number in numbers[1:]:
        trees.on_false[at] = len(trees.modes)
        at, before = len(trees.modes), at
        for column in (trees.features, trees.on_true, trees.nan_is_true, trees.on_false):
            cast("list[int]", column).append(cast("int", column[before]))
        trees.modes.append("BRANCH_EQ")
        trees.thresholds.append(number)
    trees.on_false[at] = last


@converts("TreeEnsembleRegressor", domain=_DOMAIN, until=4)
def _tree_regressor(node: Node, *, n_targets: int, aggregate_function: str, post_transform: str) -> Item:
    scores = _trees_of_pairs(node, "target", n_targets).scores(node, _matrix(node), aggregate_function)
    return _transformed(node, _based(node, scores), post_transform)


@converts("TreeEnsembleClassifier", domain=_DOMAIN, until=4)
def _tree_classifier(node: Node) -> Sequence[Item]:
    labels = _classes(node, "classlabels_int64s")
    if len(labels) == 2 and len(set(node.integers("class_ids") or [])) == 1:
        raise node.refuse("attribute 'class_ids' = one of two classes is not supported: give weights for both")
    trees = _trees_of_pairs(node, "class", len(labels))
    return _classified(node, _based(node, trees.scores(node, _matrix(node), "SUM")), "classlabels_int64s")


def _based(node: Node, scores: Value) -> Value:
    base = _numbers(node, "base_values")
    return ops.add(scores, _constant(base, scores.dtype)) if base else scores


def _trees_of_pairs(node: Node, kind: str, targets: int) -> _Trees:
    """Trees whose nodes are identified by a tree and a number within it."""
    for name in ("nodes_values_as_tensor", "base_values_as_tensor", f"{kind}_weights_as_tensor"):
        if node.has_attribute(name):
            raise node.refuse(f"attribute '{name}' is not supported")
    for name in ("nodes_hitrates", "nodes_hitrates_as_tensor"):
        node.attribute(name)
    modes: list[str] = node.attribute("nodes_modes") or []
    count = len(modes)
    known = (*_COMPARISONS, "LEAF")
    if not modes or any(mode not in known for mode in modes):
        raise node.refuse(f"attribute 'nodes_modes' must be of {', '.join(known)}")

    def table(name: str, length: int) -> list[int]:
        found = node.integers(name, 0, length)
        if found is None:
            raise node.refuse(f"attribute '{name}' is missing")
        return found

    trees_of, ids, features = (table(f"nodes_{name}", count) for name in ("treeids", "nodeids", "featureids"))
    place = {pair: at for at, pair in enumerate(zip(trees_of, ids, strict=True))}
    values = _numbers(node, "nodes_values")
    if len(place) < count or len(values) != count:
        raise node.refuse(f"attributes 'nodes_*' must name {count} different nodes, with a number each")
    tracks = node.integers("nodes_missing_value_tracks_true", 0, count) if _gives_tracks(node) else None
    to: dict[bool, list[int]] = {}
    for branch in (True, False):
        column = table("nodes_truenodeids" if branch else "nodes_falsenodeids", count)
        to[branch] = []
        for at, (tree, target) in enumerate(zip(trees_of, column, strict=True)):
            goal = at if modes[at] == "LEAF" else place.get((tree, target))
            if goal is None:
                raise node.refuse(f"attribute 'nodes_*nodeids' names node {target} of tree {tree}, which is none")
            to[branch].append(goal)
    inner = {goal for at in range(count) if modes[at] != "LEAF" for goal in (to[True][at], to[False][at])}
    roots = [at for at in range(count) if at not in inner]
    node.check_room(count, targets)
    weights = np.zeros((count, targets), np.float32)
    given = _numbers(node, f"{kind}_weights")
    columns = [table(f"{kind}_{name}", len(given)) for name in ("treeids", "nodeids", "ids")]
    for tree, number, target, weight in zip(*columns, given, strict=True):
        if (tree, number) not in place or target >= targets:
            raise node.refuse(f"attribute '{kind}_ids' names node {number} of tree {tree} or target {target}: is none")
        weights[place[tree, number], target] += weight
    flags = [bool(flag) for flag in tracks or [0] * count]
    return _Trees(modes, features, values, to[True], to[False], flags, roots, weights)


def _gives_tracks(node: Node) -> bool:
    return node.has_attribute("nodes_missing_value_tracks_true") and bool(
        node.attribute("nodes_missing_value_tracks_true")
    )
