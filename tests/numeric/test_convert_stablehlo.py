"""Programs that JAX printed compute what JAX computed: interpreted, as tensor expressions, and compiled.

`stablehlo/print_programs.py` made the programs and the results.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import first_tier
from xdsl.dialects.builtin import ModuleOp

import weft
from weft.interp.interpreter import Interpreter
from weft.passes.convert.convert_stablehlo_to_te import convert_stablehlo
from weft.support.errors import CompileError, Remark

FOLDER = Path(__file__).parent / "stablehlo"
EXPECTED = np.load(FOLDER / "expected.npz")
REFUSED = {"loop": "stablehlo.while", "sorting": "stablehlo.sort"}
"""Programs that hold an op which has no tensor expression."""
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
CONVERTED = [name for name in PROGRAMS if name not in REFUSED]


def read(name: str) -> ModuleOp:
    return weft.parse_file(FOLDER / f"{name}.mlir")


def converted(name: str) -> ModuleOp:
    module = read(name)
    convert_stablehlo(module, strict=True)
    module.verify()
    return module


def arrays(name: str, role: str) -> list[np.ndarray]:
    count = sum(key.startswith(f"{name}/{role}") for key in EXPECTED.files)
    return [EXPECTED[f"{name}/{role}{position}"] for position in range(count)]


def check(name: str, results: Any) -> None:
    found: Sequence[np.ndarray] = results if isinstance(results, tuple) else (results,)
    expected = arrays(name, "out")
    assert len(found) == len(expected)
    for position, (array, wanted) in enumerate(zip(found, expected, strict=True)):
        label = f"{name}, result {position}"
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype), label
        np.testing.assert_allclose(array, wanted, rtol=2e-5, atol=2e-6, equal_nan=True, err_msg=label)


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str) -> None:
    """What is printed reads as the same module."""
    text = str(read(name))
    assert str(weft.parse(text)) == text


@pytest.mark.parametrize("name", PROGRAMS)
def test_interpreted(name: str) -> None:
    check(name, Interpreter(read(name)).call("main", *arrays(name, "in")))


@pytest.mark.parametrize("name", CONVERTED)
def test_as_tensor_expressions(name: str) -> None:
    check(name, Interpreter(converted(name)).call("main", *arrays(name, "in")))


@pytest.mark.parametrize("name", first_tier(CONVERTED, "relu_perceptron", "convnet", "gathers", "symbolic_shapes"))
def test_compiled(name: str) -> None:
    results = tuple(np.zeros_like(array) for array in arrays(name, "out"))
    weft.build(converted(name))["main"](*arrays(name, "in"), *results)
    check(name, results)


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


def test_shape_assertions_are_checked() -> None:
    """Extents of one symbolic name must agree in a call."""
    library = weft.build(converted("symbolic_shapes"))
    x, y = arrays("symbolic_shapes", "in")
    with pytest.raises(ValueError, match="arg1"):
        library["main"](x, y[:, :2], *arrays("symbolic_shapes", "out"))
