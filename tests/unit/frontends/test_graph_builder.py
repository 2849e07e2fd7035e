"""`weft.graph`: functions of tensors built in Python, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft import te
from weft.dialects.graph_shapes import ShapeError
from weft.interp.interpreter import Interpreter
from weft.support.errors import CompileError


def random(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def perceptron() -> tuple[Any, Any]:
    """A module, and what its function computes of x, w and b."""
    bb = G.BlockBuilder()
    x, w, b = G.var("x", ("n", 12)), G.var("w", (12, 8)), G.var("b", (8,))
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            h = bb.emit(G.relu(G.add(G.matmul(x, w), b)), "h")
            y = bb.emit_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] * 2.0, name="twice"), h)
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    return bb.get(), lambda x, w, b: np.maximum(x @ w + b, 0) * 2


def test_a_built_module_verifies_prints_and_runs_for_any_extent():
    module, reference = perceptron()
    assert str(weft.parse(str(module))) == str(module)
    w, b = random(12, 8), random(8)
    library = weft.build(module)
    for n in (1, 5):
        x = random(n, 12)
        expected = reference(x, w, b)
        np.testing.assert_allclose(Interpreter(module).call("main", x, w, b), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(library["main"](x, w, b), expected, rtol=1e-5, atol=1e-5)


def test_parameters_are_bound_in_a_copy():
    module, reference = perceptron()
    w, b, x = random(12, 8), random(8), random(3, 12)
    bound = G.bind_params(module, "main", {"w": w, "b": b})
    assert "graph.constant" in str(bound) and "graph.constant" not in str(module)
    np.testing.assert_allclose(weft.build(bound)["main"](x), reference(x, w, b), rtol=1e-5, atol=1e-5)


def test_values_have_shapes_and_operators_of_python():
    x = G.var("x", ("n", 6))
    assert repr(x) == "Value(x: (n, 6) float32)" and x.ndim == 2 and x.dtype == "float32"
    found = (x + 1, 1.0 - x, x * x, 2.0 / x, x**2.0, -x)
    assert all(value.shape == x.shape for value in found)
    assert (x @ G.var("w", (6, 4))).shape == (x.shape[0], 4)
    assert x.T.shape == (6, x.shape[0])
    y = G.var("y", (4, 6))
    assert y[1:, ::2].shape == (3, 3) and y[0].shape == (6,) and y[-1, 2].shape == ()
    assert y.reshape(-1, 3).shape == (8, 3) and x.reshape("2 * n", 3).shape[1] == 3
    assert y.astype("float16").dtype == "float16"
    assert [part.shape for part in G.split(y, 2)] == [(2, 6), (2, 6)]


def test_parts_of_values_are_those_of_arrays():
    bb = G.BlockBuilder()
    y = G.var("y", (4, 6))
    with bb.function("main", [y]):
        bb.emit_func_output([y[1:, ::2], y[-1, 2], y[0], 1.0 - y])
    a = random(4, 6)
    found = weft.build(bb.get())["main"](a)
    for one, other in zip(found, (a[1:, ::2], a[-1, 2], a[0], 1 - a), strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_outside_of_dataflow_and_several_results():
    bb = G.BlockBuilder()
    x = G.var("x", (2, 3))
    with bb.function("main", [x], {"note": "first"}):
        y = bb.emit(G.exp(x))
        with bb.dataflow():
            z = bb.emit_output(G.sum(y, axis=1))
        bb.emit_func_output([z, y])
    with bb.function("second", [a := G.var("a", (2,))]):
        bb.emit_func_output(a + G.const([1.0, 2.0]))
    module = bb.get()
    assert 'note = "first"' in str(module)
    a = random(2, 3)
    z, y = weft.build(module)["main"](a)
    np.testing.assert_allclose(y, np.exp(a), rtol=1e-5)
    np.testing.assert_allclose(z, np.exp(a).sum(1), rtol=1e-5)


def test_functions_registered_in_python_are_called():
    @weft.register_func("builder.double", override=True)
    def double(x: Any, out: Any) -> None:
        np.multiply(x, 2, out=out)

    bb = G.BlockBuilder()
    x = G.var("x", ("n",))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.call_dps("builder.double", [x], ("n",)))
    np.testing.assert_array_equal(Interpreter(bb.get()).call("main", random(4)), random(4) * 2)


def test_pictures_of_built_modules():
    assert G.svg(perceptron()[0]).startswith("<svg")


def test_every_operator_is_a_function_with_its_signature():
    assert "softmax" in dir(G) and "axis" in str(__import__("inspect").signature(G.softmax))
    assert "exp(x)" in (G.softmax.__doc__ or "")


x, y = G.var("x", (2, 3)), G.var("y", ("n", 4))


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: G.reluu(x), AttributeError, "there is no operator 'reluu', did you mean 'relu'"),
        (lambda: G.add(x, y), ShapeError, r"graph.add: the shapes \(2, 3\) and \(n, 4\) do not broadcast"),
        (lambda: G.matmul(x, x), ShapeError, "tensor_a of shape .* has 3 elements"),
        (lambda: G.softmax(x, axes=1), TypeError, r"softmax\(\) got an unexpected keyword argument 'axes'"),
        (lambda: G.add(1, 2), CompileError, "add: lhs must be a value of a graph, got 1"),
        (lambda: G.relu([1.0]), CompileError, r"relu: data must be a value of a graph, got \[1.0\]"),
        (lambda: G.var("x y", (1,)), CompileError, "var: a name is a word, got 'x y'"),
        (lambda: G.var("x", (-1,)), CompileError, "var x: an extent is not negative, got -1"),
        (lambda: G.var("x", (1.5,)), CompileError, "var x: an extent is a number or text, got 1.5"),  # pyright: ignore
        (lambda: G.var("x", ("n +",)), ShapeError, r"'n \+' is no extent"),
        (lambda: G.var("x", (1,), "float33"), CompileError, "float33"),
        (lambda: G.BlockBuilder().emit(G.relu(x)), CompileError, "emit: no function is open"),
        (lambda: x["a"], CompileError, "values are indexed by integers and slices, got 'a'"),
        (lambda: G.svg(3), TypeError, "argument 'module' must be a module"),
    ],
)  # fmt: skip
def test_bad_input_is_named(build: Any, kind: type[Exception], message: str):
    with pytest.raises(kind, match=message):
        build()


def test_misuse_of_the_builder_is_named():
    bb = G.BlockBuilder()
    a = G.var("a", (2,))
    with pytest.raises(CompileError, match="function @f has no output: call emit_func_output"), bb.function("f", [a]):
        pass
    a = G.var("a", (2,))
    with bb.function("f", [a]):
        with pytest.raises(CompileError, match="@g begins in @f, which has not ended"), bb.function("g", []):
            pass
        with pytest.raises(CompileError, match="variable 'x' is no parameter or value of the function"):
            bb.emit(G.relu(x))
        with pytest.raises(CompileError, match="emit_output is outside a dataflow region"):
            bb.emit_output(a)
        with bb.dataflow():
            inner = bb.emit(G.relu(a))
            with pytest.raises(CompileError, match="a dataflow region begins in another one"), bb.dataflow():
                pass
            with pytest.raises(CompileError, match="the dataflow region has not ended"):
                bb.emit_func_output(inner)
        with pytest.raises(CompileError, match="does not leave the dataflow region: give it to emit_output"):
            bb.emit_func_output(inner)
        with pytest.raises(CompileError, match="@f has not ended"):
            bb.get()
        bb.emit_func_output(a)
    with pytest.raises(CompileError, match="has a function @f already"), bb.function("f", []):
        pass
    with (
        pytest.raises(CompileError, match="two parameters are called 'b'"),
        bb.function("g", [G.var("b", (1,)), G.var("b", (1,))]),
    ):
        pass
    with pytest.raises(CompileError, match="returns tensors, got 3"), bb.function("g", [a := G.var("a", (2,))]):
        bb.emit_te(lambda t: 3, a)


def test_modules_show_themselves(capsys: pytest.CaptureFixture[str]):
    module, _ = perceptron()
    assert isinstance(module, G.Module) and isinstance(module.clone(), G.Module)
    script = module.script()
    assert script.startswith(
        "from weft import graph as G\n\nbb = G.BlockBuilder()\n# @te(tensor<?x8xf32>): no graph function\n"
    )
    assert '    h = bb.emit(G.relu(add), "h")  # ("n", 8) float32\n' in script.replace("    " * 2, "    ")
    assert "bb.call_tir(" in script
    module.show()
    assert capsys.readouterr().out == script
    module.show(color=True)
    assert "\x1b[" in capsys.readouterr().out
    assert module.svg() == G.svg(module) == module._repr_html_()
    assert G.svg(module)._repr_svg_() == module.svg()
    bound = G.bind_params(module, "main", {"w": random(12, 8), "b": random(8)})
    assert 'w = G.const(..., "float32")  # (12, 8)' in bound.script()
    assert G.Module.of(module) is module
    parsed = weft.parse(str(module))
    assert isinstance(copy := G.Module.of(parsed), G.Module) and str(copy) == str(parsed)


def test_scripts_build_their_modules():
    bb = G.BlockBuilder()
    x, class_ = G.var("x", ("n", 4)), G.var("class", (2, 3), "int32")
    with bb.function("main", [x, class_]):
        with bb.dataflow():
            first, second = G.split(x, 2, axis=1)
            ones = G.const(np.ones((5, 6), "float32"))
            y = bb.emit(G.einsum("ij,kj->ik", G.concatenate([first, second, first], axis=-1), ones), "y")
            z = bb.call_dps("env.any", [G.softmax(y)], ("2 * n + 1",), "float64")
            y, z = bb.emit_output(y.reshape("5 * n")), bb.emit_output(z)
        bb.emit_func_output([y, z, class_ + 2])
    with bb.function("other", [v := G.var("v", (3,))]):
        bb.emit_func_output(G.clip(G.sum(v, axis=[0], keepdims=True), -1.5, 2.0))
    module = bb.get()
    script = module.script().replace("G.const(..., ", "G.const(np.ones((5, 6)), ")
    namespace: dict[str, Any] = {"np": np}
    exec(script, namespace)
    weft.assert_structural_equal(namespace["mod"], module)


def test_functions_of_modules_are_shared_replaced_and_removed():
    bb = G.BlockBuilder()

    def scaled(factor: float) -> Any:
        return lambda a: te.compute(a.shape, lambda i: a[i] * factor, name="scaled")

    with bb.function("main", [x := G.var("x", (3,))]):
        y = bb.emit_te(scaled(2.0), bb.emit_te(scaled(2.0), x))
        bb.emit_func_output(bb.emit_te(scaled(3.0), y))
    assert weft.function_names(bb.get()) == ["te", "te_1", "main"]
    np.testing.assert_allclose(weft.build(bb.get())["main"](np.ones(3, np.float32)), [12, 12, 12])
    bb.update_function("te_1", weft.lookup(bb.get(), "te"))
    np.testing.assert_allclose(weft.build(bb.get())["main"](np.ones(3, np.float32)), [8, 8, 8])
    with pytest.raises(CompileError, match="remove_function: @te is used by @main"):
        bb.remove_function("te")
    bb.remove_function("main")
    assert weft.function_names(bb.get()) == ["te", "te_1"]


def test_numbers_beside_conditions():
    x, c = G.var("x", ("n", 4), "float16"), G.var("c", ("n", 4), "bool")
    assert G.where(c, x, -np.inf).dtype == G.where(c, 0.0, x).dtype == "float16"
    assert G.where(c, 1.0, 0.0).dtype == "float32"
    assert G.where(c, 1, 0).dtype == "int64"
    assert G.logical_and(c, True).dtype == "bool"


def test_numbers_for_roles_that_take_integers_are_int64() -> None:
    bb, x = G.BlockBuilder(), G.var("x", (3,))
    with bb.function("main", [x]):
        bb.emit_func_output([bb.emit(G.quantize(x, 0.5, 3)), bb.emit(G.random_uniform((3,), seed=1 << 40))])
    results = bb.get().body.block.first_op.function_type.outputs  # pyright: ignore
    assert [str(type_) for type_ in results] == ["tensor<3xi8>", "tensor<3xf32>"]


def test_branches_and_functions_of_extents_go_into_the_function_that_is_traced():
    bb = G.BlockBuilder()
    x = G.var("x", ("n", 4))

    def shifted(v: Any) -> Any:
        rows = v.shape[0]
        return bb.emit_te(lambda a, n: te.compute(a.shape, lambda i, j: a[i, j] + n.astype("float32")), v, rows)

    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_if(G.greater(G.sum(x), 0.0), shifted, lambda v: v, x))
    library = weft.build(bb.get())
    positive = abs(random(3, 4))
    np.testing.assert_allclose(library["main"](positive), positive + 3, rtol=1e-6)
    np.testing.assert_allclose(library["main"](-positive), -positive, rtol=1e-6)


def test_names_that_differ_in_a_number_behind_an_underscore() -> None:
    bb = G.BlockBuilder()
    x, y, z = G.var("x_1", ("n_1", "n1")), G.var("x1", ("n1",)), G.var("x11", ("n_1",))
    with bb.function("main", [x, y, z]):
        with bb.dataflow():
            a = bb.emit_output(G.add(x, y))
            b = bb.emit_output(bb.emit_te(lambda s, t: te.compute(s.shape, lambda i, j: s[i, j] * t[i]), x, z))
        bb.emit_func_output([a, b])
    library = weft.build(bb.get())
    first, second, third = random(2, 3), random(3), random(2)
    found = library["main"](first, second, third)
    np.testing.assert_allclose(found[0], first + second, rtol=1e-6)
    np.testing.assert_allclose(found[1], first * third[:, None], rtol=1e-6)
    with pytest.raises(ValueError, match=r"argument 2 \('x1'\)"):
        library["main"](first, random(4), third)
    with pytest.raises(CompileError, match="var: a name is a word, got 'é'"):
        G.var("é", (1,))
    with pytest.raises(CompileError, match="an extent is not negative, got 2 - 3"):
        G.var("x", ("2 - 3",))
    with pytest.raises(ShapeError, match="'é' is no extent"):
        G.var("x", ("é",))
    with pytest.raises(ShapeError, match=r"'\(\(\(.*\.\.\.' is no extent"):
        G.var("x", ("(" * 5000 + "n" + ")" * 5000,))


def test_captured_values_of_one_name() -> None:
    bb = G.BlockBuilder()
    x, y = G.var("x_0", (3,)), G.var("x_1", (3,))
    with bb.function("main", [x, y]):
        out = bb.emit_loop(lambda step, c, a, b: G.add(c, G.multiply(a, b)), 4, [x], [], [x, y])
        bb.emit_func_output(out)
    found = weft.build(bb.get())["main"](np.ones(3, np.float32), np.full(3, 2, np.float32))
    np.testing.assert_array_equal(found, [9, 9, 9])


@pytest.mark.parametrize("is_nested", [False, True])
def test_functions_of_loops_and_branches_bind_the_names_of_extents(is_nested: bool) -> None:
    """The body uses `n`, which the extent of its parameter does not determine."""
    bb = G.BlockBuilder()
    x = G.var("x", ("n", "m"))

    def more(value: Any) -> Any:
        return G.add(value, G.cast(G.sum(G.iota(("n",))), "float32"))

    def step(place: Any, value: Any) -> Any:
        if not is_nested:
            return more(value)
        return bb.emit_if(G.greater(place, 1), more, lambda same: same, value)

    with bb.function("main", [x]):
        rows = G.full(("n floordiv 2", "m"), 0.0)
        bb.emit_func_output(bb.emit_loop(step, 4, [rows]))
    module = bb.get()
    for n in (0, 1, 7):
        wanted = np.full((n // 2, 3), (2 if is_nested else 4) * sum(range(n)), np.float32)
        np.testing.assert_array_equal(Interpreter(module).call("main", random(n, 3)), wanted)
        np.testing.assert_array_equal(weft.build(module)["main"](random(n, 3)), wanted)
