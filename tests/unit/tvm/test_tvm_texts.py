"""Programs as text, in the style of TVM's tests (`tests/data/tvm_*.txt`): each is read, printed, and read back as the
same program."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import weft
import weft.tvm as tvm
from weft.analysis.structural_equality import structural_equal
from weft.support.errors import CompileError
from weft.tools.tvmc_words import translated
from weft.tvm.script import from_source

FOLDER = Path(__file__).parents[2] / "data"
HEAD = """import numpy as np
import weft.tvm as tvm
from weft.tvm import relax, te
from weft.tvm.script import ir as I
from weft.tvm.script import relax as R
from weft.tvm.script import tirx as T
"""


def texts(family: str) -> list[Any]:
    parts = re.split(r"^#@ ", (FOLDER / f"tvm_{family}.txt").read_text(), flags=re.M)[1:]
    return [pytest.param(body, id=name) for name, _, body in (part.partition("\n") for part in parts)]


def program(text: str, folder: Path) -> Any:
    """The program in a Python text: the module or function `Module` or `main`."""
    path = folder / "program.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(f"program_{abs(hash(text))}", path)
    assert spec is not None and spec.loader is not None
    module = ModuleType(spec.name)
    module.__file__ = str(path)
    sys.modules[spec.name] = module
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return getattr(module, "Module", None) or module.main


@pytest.mark.parametrize("text", [*texts("tensor_ir"), *texts("relax")])
def test_read_and_printed(text: str, tmp_path: Path):
    found = program(text, tmp_path)
    shown = str(found.script())
    again = from_source(shown)
    assert str(again.script()) == shown or structural_equal(
        getattr(found, "func_op", found), getattr(again, "func_op", again)
    )


def run(text: str, folder: Path, *arrays: Any) -> Any:
    found = program(text, folder)
    library = weft.build(found, "llvm", default_schedule=False)
    return library["main"](*arrays)


A = np.arange(32, dtype=np.float32)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(8):\n    B[i * 4 : i * 4 + 4] = A[i * 4 : i * 4 + 4] * T.Broadcast(T.float32(2), 4)", A * 2),
        ("for i in range(8):\n    B[T.Ramp(i, 8, 4)] = A[T.Ramp(i, 8, 4)] + T.float32(1)", A + 1),
        ("for i in range(32):\n    B[i] = A[i]\nB[1:32] = B[0:31]", np.concatenate([A[:1], A[:31]])),
        ("for i in range(8):\n    B.vstore([i * 4], A.vload([i * 4], 'float32x4') * T.Broadcast(T.float32(3), 4))",
         A * 3),
        ("s: T.float32 = T.float32(0)\nfor i in range(32):\n    s += A[i]\n    B[i] = s", np.cumsum(A)),
        ("s = T.local_scalar('float32')\ns = T.float32(1)\nfor i in range(32):\n    s = s + A[i]\n    B[i] = s",
         np.cumsum(A) + 1),
        ("C = T.decl_buffer((8, 4), 'float32', data=A.data, strides=(1, 8))\nfor i, j in T.grid(8, 4):\n"
         "    B[i * 4 + j] = C[i, j]", A.reshape(4, 8).T.reshape(-1)),
        ("C = T.decl_buffer((16,), 'float32', data=A.data, elem_offset=16)\nfor i in range(32):\n    B[i] = C[i % 16]",
         np.tile(A[16:], 2)),
        ("C = T.alloc_buffer((4, 8), 'float32')\nD = T.decl_buffer((32,), 'float32', data=C.data)\n"
         "for i in range(32):\n    D[i] = A[i]\nfor i, j in T.grid(4, 8):\n    B[i * 8 + j] = C[i, j]", A),
        ("for i in range(32):\n    B[i] = T.float32(0)\nfor i, in T.grid((4, 8)):\n    B[i] = A[i]",
         np.where((A >= 4) & (A < 8), A, 0)),
        ("for i in range(32):\n    B[i] = T.fma(A[i], A[i], T.f32(1))", A * A + 1),
        ("for i in T.grid(32, 1):\n    B[i[0]] = A[i[0]]", A),
    ],
)  # fmt: skip
def test_functions_compute(body: str, expected: np.ndarray, tmp_path: Path):
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    text = f'@T.prim_func\ndef main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):\n{inner}'
    run(text, tmp_path, A.copy(), result := np.zeros_like(A))
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = A[0:4]", "elements of A are read one by one"),
        ("B[T.Ramp(0, 1, n)] = T.Broadcast(T.float32(0), 4)", "number of lanes that is known"),
        ("B[0] = T.Ramp(0, 1, 4)", "vectors are indices and values of stores"),
        ("T.static_assert(1 > 2)", "is not known to hold"),
        ("return 7", "returns nothing but 0"),
        ('T.attr(A, "reduce_scope", 0)\nB[0] = A[0]', "reductions over threads are blocks"),
        ("C = T.decl_buffer((4, n), 'float32', data=A.data, strides=(8, 1))\nB[0] = C[0, 0]", "constant extents"),
    ],
)
def test_functions_that_are_refused(body: str, message: str, tmp_path: Path):
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    text = f'@T.prim_func\ndef main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), n: T.int32):\n{inner}'
    with pytest.raises(CompileError, match=message):
        program(text, tmp_path)


MACRO = """
@T.macro{options}
def add(dst, i, *values):
    dst[i] = values[0] + values[1] + T.float32(c)

c = 1
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    c = T.meta_var(5)
    for i in range(32):
        add(B, i, A[i], T.float32(2))
"""


@pytest.mark.parametrize(("options", "constant"), [("(hygienic=False)", 5), ("", 1)])
def test_names_in_macros(options: str, constant: int, tmp_path: Path):
    text = MACRO.format(options=options).replace("c = 1\n", "") if constant == 5 else MACRO.format(options="")
    text = text if constant == 5 else "c = 1\n" + text
    run(text, tmp_path, A.copy(), result := np.zeros_like(A))
    np.testing.assert_array_equal(result, A + 2 + constant)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("add(B)", "add needs i"),
        ("add(B, 0, i=1)", "add has no other parameter 'i'"),
        ("again(B)", "again expands itself"),
    ],
)
def test_macros_that_are_refused(call: str, message: str, tmp_path: Path):
    text = f"""
@T.macro(hygienic=False)
def again(dst):
    again(dst)

@T.macro
def add(dst, i):
    dst[i] = T.float32(0)

@T.prim_func
def main(B: T.Buffer((32,), "float32")):
    {call}
"""
    with pytest.raises(CompileError, match=message):
        program(text, tmp_path)


def test_effects_run_in_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    text = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
        R.print(x, format="first {}")
        y = R.add(x, x)
        R.assert_op(c, y, format="refused {}")
        R.print(y, format="then {}")
        return y
"""
    library = weft.build(program(text, tmp_path))
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(library["main"](x, np.array(True)), [2, 4])
    assert capfd.readouterr().out.split("\n")[:2] == ["first [1. 2.]", "then [2. 4.]"]
    with pytest.raises(Exception, match=r"refused \[2. 4.\]"):
        library["main"](x, np.array(False))


def test_calls_that_change_arguments(tmp_path: Path):
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def step(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"), C: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.sblock("s"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = B[vi, vj] + A[vi, vj]
                C[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        shape = R.Tensor((2, 3), "float32")
        return R.call_tir_inplace(Module.step, (x, y), [1, -1], [shape, shape])
"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    first, second = weft.build(program(text, tmp_path))["main"](x, y := x + 1)
    np.testing.assert_array_equal(first, x + y)
    np.testing.assert_array_equal(second, x * 2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "compile --target=llvm --input-shapes x:[1,16] --tuning-records tune.db -o model.so model.onnx",
            "compile --target llvm --shape x=1x16 --database tune.db -o model.so model.onnx",
        ),
        ("tune --trials 8 --output tune.db model.onnx", "tune --trials 8 --database tune.db model.onnx"),
        ("run --device cpu --fill-mode random --print-time --repeat 3 model.onnx", "run --time --repeat 3 model.onnx"),
    ],
)
def test_command_lines_of_tvmc(words: str, expected: str):
    assert translated(words.split()) == expected.split()


def test_sizes_that_depend_on_data(tmp_path: Path):
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "int32")):
        values = R.unique(x, return_counts=True)
        places = R.nonzero(x)
        return values[0], values[1], places
"""
    x = np.array([[4, 0, 4], [2, 0, 2]], np.int32)
    values, counts, places = weft.build(program(text, tmp_path))["main"](x)
    wanted = np.unique(x, return_counts=True)
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(counts, wanted[1])
    np.testing.assert_array_equal(places, np.nonzero(x))


def test_mixed_precision_is_that_of_the_target(tmp_path: Path):
    text = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((256, 256), "float32")):
        return R.matmul(x, R.const(np.ones((256, 256), "float32")))
"""
    module = program(text, tmp_path)
    assert "out_dtype" in str(tvm.relax.transform.ToMixedPrecision()(module))
    with tvm.target.Target("llvm -mcpu=core2"), pytest.raises(CompileError, match="core2 has no instructions"):
        tvm.relax.transform.ToMixedPrecision()(module)
