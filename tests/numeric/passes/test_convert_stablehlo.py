"""Programs that JAX printed compute what JAX computed: interpreted, as tensor expressions, and compiled.

`stablehlo/print_programs.py` made the programs and the results; `stablehlo/forms/` has forms that they do not have.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.interp.errors import InterpreterError
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo
from weft.passes.module_edits import functions_of
from weft.support.errors import CompileError, Remark

FOLDER = Path(__file__).parent / "stablehlo"
FORMS = FOLDER / "forms" / "forms.mlir"
EXPECTED = np.load(FOLDER / "expected.npz")
REFUSED = {"loop": "stablehlo.while"}
"""Programs that hold an op which has no tensor expression."""
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
CONVERTED = [name for name in PROGRAMS if name not in REFUSED]


def read(name: str) -> ModuleOp:
    return weft.parse_file(FOLDER / f"{name}.mlir")


def converted(module: ModuleOp) -> ModuleOp:
    convert_stablehlo(module, strict=True)
    module.verify()
    return module


def arrays(name: str, role: str) -> list[np.ndarray]:
    count = sum(key.startswith(f"{name}/{role}") for key in EXPECTED.files)
    return [EXPECTED[f"{name}/{role}{position}"] for position in range(count)]


def check(name: str, results: Any, expected: Sequence[np.ndarray]) -> None:
    found: Sequence[np.ndarray] = results if isinstance(results, tuple) else (results,)
    assert len(found) == len(expected)
    for position, (array, wanted) in enumerate(zip(found, expected, strict=True)):
        label = f"{name}, result {position}"
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype), label
        np.testing.assert_allclose(array, wanted, rtol=2e-5, atol=2e-6, equal_nan=True, err_msg=label)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    """As it was printed and as tensor expressions, in the interpreter."""
    module, inputs, expected = read(name), arrays(name, "in"), arrays(name, "out")
    check(name, Interpreter(module).call("main", *inputs), expected)
    if name in CONVERTED:
        check(name, Interpreter(converted(module)).call("main", *inputs), expected)


@pytest.mark.parametrize("name", first_tier(CONVERTED, "convnet"))
def test_compiled(name: str) -> None:
    expected = arrays(name, "out")
    results = tuple(np.zeros(array.shape, array.dtype) for array in expected)
    weft.build(converted(read(name)))["main"](*arrays(name, "in"), *results)
    check(name, results, expected)


@pytest.mark.parametrize("name", first_tier([*PROGRAMS, "forms/forms"], "forms/forms", "loop"))
def test_text(name: str) -> None:
    """What is printed reads as the same module."""
    text = str(read(name))
    assert str(weft.parse(text)) == text


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    op = REFUSED[name]
    module = read(name)
    text = str(module)
    with pytest.warns(Remark, match=f"leaves @main as it is: {op}: there is no tensor expression") as told:
        convert_stablehlo(module)
    assert str(module) == text
    assert op in str(told[0].message).splitlines()[1]
    with pytest.raises(CompileError, match=f"{op}: there is no tensor expression"):
        convert_stablehlo(module, strict=True)


def test_nothing_to_convert() -> None:
    module = weft.parse("func.func @f(%x: f32) -> f32 {\n  func.return %x : f32\n}")
    with pytest.warns(Remark, match="no function holds ops of stablehlo"):
        convert_stablehlo(module)


def test_shape_assertions_are_checked() -> None:
    """Extents of one symbolic name must agree in a call."""
    interpreter = Interpreter(converted(read("symbolic_shapes")))
    x, y = arrays("symbolic_shapes", "in")
    with pytest.raises(InterpreterError, match="the shape of arg1 is 3x2, but the program assumes 3x4"):
        interpreter.call("main", x, y[:, :2])


AGREEING = {
    "elementwise": ("stablehlo.add %a, %b : tensor<?xf32>", "?", "?", "?", (3,), (3,), (4,)),
    "a number": (
        '"stablehlo.add"(%a, %b) : (tensor<?xf32>, tensor<3xf32>) -> tensor<?xf32>',
        "?",
        "3",
        "?",
        (3,),
        (3,),
        None,
    ),
    "product": (
        "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
        "(tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
        *("?x?", "?x?", "?x?", (2, 3), (3, 4), (2, 4)),
    ),
    "concatenate": (
        "stablehlo.concatenate %a, %b, dim = 0 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>",
        *("?x?", "?x?", "?x?", (2, 3), (4, 3), (4, 2)),
    ),
}


@pytest.mark.parametrize("name", first_tier(AGREEING, "elementwise", "a number"))
def test_dynamic_operands_agree(name: str) -> None:
    """Extents that an op needs to be equal are checked by calls."""
    op, left, right, result, of_left, of_right, wrong = AGREEING[name]
    module = weft.parse(f"""func.func @main(%a: tensor<{left}xf32>, %b: tensor<{right}xf32>) -> tensor<{result}xf32> {{
  %0 = {op}
  return %0 : tensor<{result}xf32>
}}""")
    library = weft.build(module.clone())
    a, b = np.ones(of_left, np.float32), np.full(of_right, 2, np.float32)
    np.testing.assert_array_equal(library["main"](a, b), Interpreter(module).call("main", a, b))
    with pytest.raises(ValueError, match="expected shape" if wrong else "expected n0 == 3"):
        library["main"](*((a, np.ones(wrong, np.float32)) if wrong else (np.ones(4, np.float32), b)))


def test_extents_that_are_computed_agree() -> None:
    library = weft.build("""func.func @main(%a: tensor<?xf32>, %b: tensor<?xf32>, %c: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %1 = stablehlo.add %0, %c : tensor<?xf32>
  return %1 : tensor<?xf32>
}""")
    a, b = np.ones(2, np.float32), np.ones(3, np.float32)
    np.testing.assert_array_equal(library["main"](a, b, np.ones(5, np.float32)), np.full(5, 2))
    with pytest.raises(ValueError, match=r"expected n0 \+ n1 == n2, got n0 = 2 .*, n1 = 3 .*, n2 = 4 "):
        library["main"](a, b, np.ones(4, np.float32))


R = np.random.RandomState(1)
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 2.5, -0.49999997, 3e38], np.float32)


def floats(*shape: int) -> np.ndarray:
    return R.randn(*shape).astype(np.float32)


def integers(low: int, high: int, *shape: int, dtype: type = np.int32) -> np.ndarray:
    return R.randint(low, high, shape).astype(dtype)


ENDS = np.array([1, -1, 7, -7, 2**31 - 1, -(2**31), 0, 12345], np.int32)
AMOUNTS = np.array([0, 31, 32, -1, 1, 31, 5, 40], np.int32)
DOUBLES = np.array([0.9, -0.9, np.nan, np.inf, -np.inf, 2.0**31 - 0.5, -(2.0**31) - 0.5, 1e19])
HALVES = np.array([1.5, -1.5, np.nan, np.inf, -np.inf, 65504, -32768, 40000], np.float16)
INPUTS = {
    "special_floats": (SPECIAL, SPECIAL[::-1].copy(), np.float32(-1), np.float32(2)),
    "special_integers": (ENDS, AMOUNTS, integers(-128, 128, 8, dtype=np.int8), ENDS.astype(np.int64) * 2**33 + 5),
    "truth": (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)),
    "converts": (DOUBLES, HALVES),
    "convolutions": (
        *(floats(2, 5, 6, 4), floats(3, 2, 4, 2), floats(1, 2, 4, 3, 3, 2)),
        *(floats(3, 2, 2, 2, 2), floats(3, 3, 1, 8)),
    ),
    "windows": (floats(5, 6), np.float32(0.5)),
    "reductions": (floats(3, 4), integers(0, 100, 3, 4), np.float32(1.5)),
    "places": (floats(6, 5), integers(-3, 8, 3, 2, dtype=np.int64), integers(-3, 8, 2, 3), floats(3, 2, 2)),
    "dynamic": (floats(5, 4), np.float32(9)),
    "pooled": (np.round(floats(5, 6)), floats(3, 3), np.float32(0.5)),
    "order": (SPECIAL, SPECIAL[::-1].copy().view(np.int32)),
    "grouped": (floats(4, 5, 3), floats(2, 3, 6), floats(2, 4, 3), integers(-1, 5, 2, 2), floats(2, 2, 3)),
    "control": (floats(3), np.int32(-5), np.bool_(False)),
}


@pytest.fixture(scope="module")
def forms() -> tuple[ModuleOp, ModuleOp]:
    """The module of forms, as it is written and as tensor expressions."""
    module = weft.parse_file(FORMS)
    assert set(functions_of(module)) == set(INPUTS)
    return module, converted(module.clone())


@pytest.mark.parametrize("name", INPUTS)
def test_forms(forms: tuple[ModuleOp, ModuleOp], name: str) -> None:
    """The interpreter of stablehlo and that of tensor expressions agree."""
    expected, found = (Interpreter(module).call(name, *INPUTS[name]) for module in forms)
    check(name, found, expected)


@pytest.mark.slow
def test_compiled_forms(forms: tuple[ModuleOp, ModuleOp]) -> None:
    reference, library = Interpreter(forms[0]), weft.build(forms[1])
    for name, inputs in INPUTS.items():
        expected = reference.call(name, *inputs)
        results = tuple(np.zeros(array.shape, array.dtype) for array in expected)
        library[name](*inputs, *results)
        check(name, results, expected)
