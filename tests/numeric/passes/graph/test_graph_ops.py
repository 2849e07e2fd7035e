"""Each operator, computed by NumPy here, by the interpreter as an operator, as a tensor expression, as block loops, and
as machine code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from weft.driver.parsing import parse_text
from weft.driver.programs import context
from weft.interp.interpreter import Interpreter
from weft.passes.graph.graph_infer_types import GraphInferTypesPass
from weft.passes.graph.legalize_graph_to_te import LegalizeGraphToTePass
from weft.passes.graph.lower_graph_to_tir import LowerGraphToTirPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.runtime.low_module import load_low_module
from weft.support.narrow_floats import round_bf16
from weft.support.target import Target

Array = NDArray[Any]
random = np.random.default_rng(1)
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i32": np.int32, "i64": np.int64}
DTYPES["i1"] = np.bool_


def draw(element: str, *shape: int) -> Array:
    """Numbers of which sums of a few products are exact in every order and type."""
    if element == "i1":
        return random.integers(0, 2, shape).astype(np.bool_)
    return random.integers(-8, 9, shape).astype(DTYPES[element])


def run_all(text: str, *arguments: Array, exact: bool = True) -> Array:
    """The result of @main at every level; asserts that all agree with the first, the graph itself."""
    ctx = context()
    module = parse_text(ctx, text, "test.mlir")
    module.verify()
    expected = Interpreter(module).call("main", *arguments)
    for step in (GraphInferTypesPass(), LegalizeGraphToTePass(), LowerTeToTirPass()):
        step.apply(ctx, module)
        module.verify()
        same(Interpreter(module).call("main", *arguments), expected, exact, step.name)
    for step in (LowerGraphToTirPass(), LowerTirToLowPass()):
        step.apply(ctx, module)
        module.verify()
        same(
            into(lambda *a, m=module: Interpreter(m).call("main", *a), expected, arguments), expected, exact, step.name
        )
    library = load_low_module(module, Target("llvm"))
    same(into(library["main"], expected, arguments), expected, exact, "llvm")
    return expected


def into(function: Callable[..., Any], like: Array, arguments: tuple[Array, ...]) -> Array:
    """Call a function that takes its result as the last argument."""
    result = np.full_like(like, 77)
    function(*arguments, result)
    return result


def same(actual: Array, expected: Array, exact: bool, where: str) -> None:
    assert actual.dtype == expected.dtype, where
    compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
    compare(actual, expected, err_msg=where, **({} if exact else {"rtol": 1e-5, "atol": 1e-6}))


def type_text(element: str, shape: tuple[int | str, ...]) -> str:
    """A tensor type; names stand for dynamic extents."""
    names = [e for e in shape if isinstance(e, str)]
    dims = "".join(f"{'?' if isinstance(e, str) else e}x" for e in shape)
    encoding = f", #graph.dims<{', '.join(names)}>" if names else ""
    return f"tensor<{dims}{element}{encoding}>"


def program(op: str, element: str, *shapes: tuple[int | str, ...]) -> str:
    """@main, a function of one operator; its result type is inferred."""
    types = [type_text(element, shape) for shape in shapes]
    name, _, attributes = op.partition(" ")
    parameters = ", ".join(f"%a{n}: {type_}" for n, type_ in enumerate(types))
    operands = ", ".join(f"%a{n}" for n in range(len(types)))
    ctx = context()
    body = f"%r = graph.{name} {operands} {attributes} : {', '.join(types)}"
    probe = parse_text(ctx, f"func.func @main({parameters}) {{ {body}\n func.return }}", "probe.mlir")
    result = next(op for op in probe.walk() if op.name == f"graph.{name}").results[0].type
    return f"func.func @main({parameters}) -> {result} {{ {body}\n func.return %r : {result} }}"


BINARY = {
    "add": (np.add, "f32 f64 f16 i8 i32 i64"),
    "subtract": (np.subtract, "f32 f16 i8 i64"),
    "multiply": (np.multiply, "f32 f16 i8 i32"),
    "maximum": (np.maximum, "f32 f16 i8 i1"),
    "minimum": (np.minimum, "f32 f64 i64 i1"),
}


@pytest.mark.parametrize(
    ("name", "element"), [(name, element) for name, (_, all_) in BINARY.items() for element in all_.split()]
)
def test_binary(name: str, element: str):
    a, b = draw(element, 3, 4), draw(element, 3, 4)
    expected = BINARY[name][0](a, b)
    np.testing.assert_array_equal(run_all(program(name, element, (3, 4), (3, 4)), a, b), expected)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3,)),
        ((2, 3), (2, 1)),
        ((2, 1), (1, 3)),
        ((), (2, 2)),
        ((1, 1, 3), (4, 1, 1)),
        (("n", 4), (4,)),
        (("n", 1), ("m",)),
        ((3, "n"), (1, "n")),
        (("n", "m"), ("n", "m")),
    ],
)
def test_broadcasting(a: tuple[int | str, ...], b: tuple[int | str, ...]):
    sizes = {"n": 5, "m": 2}
    x, y = (draw("f32", *(sizes[e] if isinstance(e, str) else e for e in shape)) for shape in (a, b))
    np.testing.assert_array_equal(run_all(program("subtract", "f32", a, b), x, y), x - y)


def test_divide_rounds_as_ieee():
    a, b = (random.standard_normal((4, 5)).astype(np.float32) for _ in range(2))
    b[0, 0] = 0
    a[0, 0], a[1, 1] = 0, np.inf
    with np.errstate(all="ignore"):
        expected = a / b
    np.testing.assert_array_equal(run_all(program("divide", "f32", (4, 5), (4, 5)), a, b), expected)


def test_maximum_and_minimum_give_nan():
    a = np.array([np.nan, 1, np.inf, -np.inf], np.float32)
    b = np.array([2, np.nan, np.nan, 3], np.float32)
    np.testing.assert_array_equal(run_all(program("maximum", "f32", (4,), (4,)), a, b), np.maximum(a, b))
    np.testing.assert_array_equal(run_all(program("minimum", "f32", (4,), (4,)), a, b), np.minimum(a, b))


@pytest.mark.parametrize("element", ["f32", "f16", "i8", "i64"])
def test_relu(element: str):
    a = draw(element, 4, 5)
    np.testing.assert_array_equal(run_all(program("relu", element, ("n", 5)), a), np.maximum(a, 0))


@pytest.mark.parametrize("name", ["mish"])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_activations(name: str, element: str):
    run_all(program(name, element, ("n", 5)), draw(element, 4, 5), exact=element == "f16")


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 3), None), ((2, 3, 4), None), ((2, 3, 4), (1, 2, 0)), ((2, 3, 4), (-1, 0, 1)), ((), ())]
)
@pytest.mark.parametrize("element", ["f32", "i1"])
def test_transpose(shape: tuple[int, ...], axes: tuple[int, ...] | None, element: str):
    a = draw(element, *shape)
    attribute = "" if axes is None else f" {{axes = array<i64{':' * bool(axes)} {', '.join(map(str, axes))}>}}"
    np.testing.assert_array_equal(run_all(program(f"transpose{attribute}", element, shape), a), np.transpose(a, axes))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((1, 2, 3), (1, 3, 4)),
        ((5, 2, 3), (3,)),
        (("n", "k"), ("k", 4)),
        (("b", "n", "k"), (1, "k", "m")),
    ],
)
def test_matmul_shapes(a: tuple[int | str, ...], b: tuple[int | str, ...]):
    sizes = {"n": 2, "k": 3, "m": 4, "b": 5}
    x, y = (draw("f32", *(sizes[e] if isinstance(e, str) else e for e in shape)) for shape in (a, b))
    np.testing.assert_array_equal(run_all(program("matmul", "f32", a, b), x, y), x @ y)


@pytest.mark.parametrize("element", ["f64", "f16", "i8", "i32"])
def test_matmul_elements(element: str):
    a, b = draw(element, 3, 7), draw(element, 7, 2)
    np.testing.assert_array_equal(run_all(program("matmul", element, (3, 7), (7, 2)), a, b), a @ b)


def test_half_products_accumulate_in_single():
    """100 times 1 + 2**-9 and then the sum, rounded to f16 once; adding in f16 would lose most of it."""
    a, b = np.full((1, 400), 1 + 2.0**-9, np.float16), np.ones((400, 1), np.float16)
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run_all(program("matmul", "f16", (1, 400), (400, 1)), a, b), expected)


def test_bfloat16():
    """bf16 arrays are their bits where no package gives the type."""
    values = random.standard_normal((2, 3, 3)).astype(np.float32)
    a, b = np.vectorize(round_bf16)(values).astype(np.float32)

    def bits(array: Array) -> Array:
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    def check(actual: Array, expected: Array) -> None:
        shown = actual if actual.dtype == np.uint16 else actual.view(np.uint16)
        np.testing.assert_array_equal(shown, bits(np.vectorize(round_bf16)(expected.astype(np.float64))))

    for name, function in (("add", np.add), ("multiply", np.multiply), ("maximum", np.maximum), ("matmul", np.matmul)):
        ctx = context()
        module = parse_text(ctx, program(name, "bf16", (3, 3), (3, 3)), "test.mlir")
        expected = function(a.astype(np.float64), b.astype(np.float64))
        if name == "matmul":
            expected = expected.astype(np.float32)
        check(Interpreter(module).call("main", bits(a), bits(b)), expected)
        lower(module)
        result = np.zeros((3, 3), np.uint16)
        Interpreter(module).call("main", bits(a), bits(b), result)
        check(result, expected)


def lower(module: ModuleOp) -> None:
    ctx = context()
    for step in (GraphInferTypesPass(), LegalizeGraphToTePass(), LowerTeToTirPass(), LowerGraphToTirPass()):
        step.apply(ctx, module)
        module.verify()
