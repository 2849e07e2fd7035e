"""Patterns of graphs from Python: what they match, what is replaced, what is refused."""

import numpy as np
import pytest
from xdsl.pattern_rewriter import PatternRewriteWalker

from weft import graph as G
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError

P = G.pattern
random = np.random.default_rng(1)
X, Y = G.var("x", ("n", 4)), G.var("y", ("n", 4))


def module_of(function, *params):
    params = params or (G.var("x", ("n", 4)), G.var("y", ("n", 4)))
    bb = G.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            found = function(*params)
            outputs = [bb.emit_output(value) for value in (found if isinstance(found, tuple) else (found,))]
        bb.emit_func_output(outputs)
    return bb.get()


def names(module):
    found = [op.name.removeprefix("graph.") for op in module.walk() if op.name.startswith("graph.")]
    return [name for name in found if name not in ("dataflow", "output", "constant")]


def matches(pattern, value):
    return P.match(pattern, value) is not None


def test_wildcards_of_one_name_are_one_value():
    twice = P.var("a") + P.relu(P.var("a"))
    assert matches(twice, X + G.relu(X))
    assert not matches(twice, X + G.relu(Y))
    assert matches(P.var() + P.relu(P.var()), X + G.relu(Y))
    shared = P.exp(P.var("a"))
    power = G.exp(X)
    assert P.match(shared * P.relu(shared), power * G.relu(power))["a"].ssa is X.ssa
    assert not matches(shared * P.relu(shared), power * G.relu(G.exp(X)))


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        (P.relu(P.var()) + P.var("y"), X + G.relu(X), True),
        (P.relu(P.var()) - P.var("y"), X - G.relu(X), False),
        (P.var() + 1, X + 1.0, True),
        (P.var() + 1, 1.0 + X, True),
        (P.var() + 1, X + 1.0000001, True),
        (P.var() + 1, X + 1.00001, False),
        (P.var() + 1, X + Y, False),
        (P.var() * P.const(lambda array: array.ndim == 1, "c"), X * G.const([1.0, 2.0, 3.0, 4.0]), True),
        (P.var() * P.const(lambda array: array.ndim == 1, "c"), X * 2.0, False),
        (P.relu(P.var()) | P.exp(P.var()), G.exp(X), True),
        (P.relu(P.var()) | P.exp(P.var()), G.tanh(X), False),
        (P.softmax(P.var(), axis=-1), G.softmax(X), True),
        (P.softmax(P.var(), axis=1), G.softmax(X), False),
        (P.softmax(P.var(), axis=lambda axis: axis in (-1, 1)), G.softmax(X), True),
        (P.transpose(P.var(), axes=(1, 0)), G.transpose(X, axes=[1, 0]), True),
        (P.concatenate([P.var("a"), P.exp(P.var("a"))]), G.concatenate([X, G.exp(X)]), True),
        (P.concatenate([P.var(), P.var(), P.var()]), G.concatenate([X, Y]), False),
        (P.layer_norm(P.var()), G.layer_norm(X), True),
        (P.layer_norm(P.var()), G.layer_norm(X, G.const(np.ones(4, "float32"))), False),
        (P.layer_norm(P.var(), P.optional(P.const())), G.layer_norm(X), True),
        (P.layer_norm(P.var(), P.optional(P.const())), G.layer_norm(X, G.const(np.ones(4, "float32"))), True),
        (P.op("split", P.var(), result=1), G.split(X, 2, axis=1)[1], True),
        (P.op("split", P.var(), result=1), G.split(X, 2, axis=1)[0], False),
        (P.factors(P.var("a"), P.tanh(P.var("a")), 6), 2.0 * (G.tanh(X) * (X * 3.0)), True),
        (P.factors(P.var("a"), P.tanh(P.var("a")), 6), 2.0 * (G.tanh(X) * (X * 4.0)), False),
        (P.factors(P.var("a"), P.tanh(P.var("a")), -0.5), G.tanh(X) * ((-X) / 2.0), True),
        (P.terms(P.exp(P.var()), P.var("a"), 3), 1.0 + (X + (G.exp(Y) - (-2.0))), True),
        (P.terms(P.exp(P.var()), P.var("a"), 3), X + G.exp(Y), False),
    ],
)
def test_matches(pattern, value, expected):
    assert matches(pattern, value) is expected


def test_optional_steps_and_names():
    linear = P.optional((P.var("x") @ P.var("w")).named("product"), lambda product: product + P.const(name="b"))
    w, bias = G.var("w", (4, 3)), G.const(np.ones(3, "float32"))
    product = X @ w
    found = P.match(linear, product + bias)
    assert {name: value.ssa for name, value in found.items()} == {
        "x": X.ssa, "w": w.ssa, "product": product.ssa, "b": bias.ssa,
    }  # fmt: skip
    assert P.match(linear, product).keys() == {"x", "w", "product"}
    assert P.match(linear, G.relu(product)) is None


def test_values_that_only_the_match_uses():
    power = G.exp(X)
    assert matches(P.relu(P.exp(P.var()).used_once()), G.relu(power))
    _other = G.tanh(power)
    assert not matches(P.relu(P.exp(P.var()).used_once()), G.relu(power))
    assert matches(P.relu(P.exp(P.var())), G.relu(power))
    assert matches(P.relu(P.exp(P.var()).where(lambda ssa: G.Value(ssa).dtype == "float32")), G.relu(power))


def test_unknown_names():
    with pytest.raises(CompileError, match=r"there is no operator 'rellu', did you mean 'relu'"):
        P.op("rellu", P.var())
    with pytest.raises(AttributeError, match=r"there is no operator 'rellu', did you mean 'relu'"):
        _ = P.rellu
    with pytest.raises(CompileError, match=r"pattern relu: the operator has 1 operands, got 2"):
        P.relu(P.var(), P.var())
    with pytest.raises(CompileError, match=r"pattern softmax: there is no attribute 'axes', did you mean 'axis'\?"):
        P.softmax(P.var(), axes=1)
    with pytest.raises(CompileError, match=r"pattern relu: an operand is a pattern or a number, got 'x'"):
        P.relu("x")


def dense_of(found):
    return G.dense(found["x"], found["w"])


LINEAR = P.var("x") @ P.transpose(P.var("w"), axes=None)


def linear(x, w):
    return G.relu(x @ w.T)


def test_replaced_by_operators():
    module = module_of(linear, G.var("x", ("n", 4)), G.var("w", (3, 4)))
    assert sum(1 for _ in P.find(module, LINEAR)) == 1
    x, w = random.standard_normal((5, 4), np.float32), random.standard_normal((3, 4), np.float32)
    before = Interpreter(module).call("main", x, w)
    assert P.rewrite(module, LINEAR, dense_of) == 1
    module.verify()
    assert names(module) == ["dense", "relu"]
    np.testing.assert_allclose(Interpreter(module).call("main", x, w), before, rtol=1e-5)
    assert P.rewrite(module, LINEAR, dense_of) == 0


def test_larger_matches_are_replaced_first():
    bias = G.const(np.ones(3, "float32"))
    module = module_of(lambda x, w: x @ w.T + bias, G.var("x", ("n", 4)), G.var("w", (3, 4)))
    layer = P.optional(LINEAR, lambda product: product + P.const(name="b"))
    assert len(list(P.find(module, layer))) == 2
    assert P.rewrite(module, layer, lambda v: G.dense(v["x"], v["w"], v.get("b"))) == 1
    assert names(module) == ["dense"]


def test_a_pattern_of_xdsl():
    module = module_of(linear, G.var("x", ("n", 4)), G.var("w", (3, 4)))
    PatternRewriteWalker(P.rewrite_pattern(LINEAR, dense_of)).rewrite_module(module)
    module.verify()
    assert "dense" in names(module) and "matmul" not in names(module)


def test_shared_values_are_not_computed_twice():
    def shared(x, y):
        power = G.exp(x)
        return G.relu(power), power + y

    module = module_of(shared)
    wide = P.relu(P.exp(P.var("x")))
    assert P.rewrite(module, wide, lambda v: G.maximum(G.exp(v["x"]), 0.0)) == 0
    assert P.rewrite(module, wide, lambda v: G.maximum(G.exp(v["x"]), 0.0), allow_shared=True) == 1
    module.verify()
    assert names(module).count("exp") == 2


def test_new_operators_are_not_matched_again():
    module = module_of(lambda x, y: G.relu(x) + y)
    assert P.rewrite(module, P.relu(P.var("x")), lambda v: G.relu(G.relu(v["x"]))) == 1
    assert names(module).count("relu") == 2


def test_a_match_may_be_left_as_it_is():
    module = module_of(lambda x, y: G.relu(x) + G.relu(y))
    assert P.rewrite(module, P.relu(P.var("x")), lambda v: G.exp(v["x"]) and None) == 0
    assert names(module).count("relu") == 2
    uses = [use.operation.parent for op in module.walk() for block in op.regions for a in block.block.args
            for use in a.uses]  # fmt: skip
    assert None not in uses


@pytest.mark.parametrize(
    ("replacement", "message"),
    [
        (lambda v: v["x"].T, r"rewrite: the replacement is tensor<4x\?xf32, .*>, but graph.relu gives tensor<\?x4xf32"),
        (lambda v: G.concatenate([v["x"], v["x"].T], 2), r"rewrite: graph.concatenate: there is no axis 2 in rank 2"),
        (lambda v: 1, r"rewrite: the function gives a value of a graph or None, got 1"),
        (lambda v: G.exp(G.var("z", ("n", 4))), r"variable 'z' is no parameter or value of the function"),
    ],
)
def test_replacements_that_do_not_fit(replacement, message):
    module = module_of(lambda x, y: G.relu(x) + y)
    before = str(module)
    with pytest.raises(CompileError, match=message):
        P.rewrite(module, P.relu(P.var("x")), replacement)
    assert str(module) == before
