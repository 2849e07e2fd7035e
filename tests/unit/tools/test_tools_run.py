"""`weft run` in this process: arrays in and out, the check, and what it says when something is wrong."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wrong_rewrites import WrongPass
from xdsl.context import Context
from xdsl.dialects.arith import AddfOp, SubfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from weft.driver.build import build_module
from weft.runtime.library import Library
from weft.support.build_options import BuildOptions
from weft.support.errors import CompileError, ScheduleError
from weft.support.files import check_output
from weft.support.target import Target
from weft.tools import run_command
from weft.tools.failures import run_tool
from weft.tools.weft_cli import execute

EXAMPLES = Path(__file__).parents[3] / "examples"
ACCUMULATE = """
func.func @accumulate(%A: memref<8xf64>, %S: memref<8xf64>) {
  tir.for %i in 8 {
    tir.block "S" iters(%v: spatial<8>) = [%i] {
      %a = memref.load %A[%v] : memref<8xf64>
      %s = memref.load %S[%v] : memref<8xf64>
      %t = arith.addf %s, %a : f64
      memref.store %t, %S[%v] : memref<8xf64>
    }
  }
  func.return
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "accumulate.mlir"
    file.write_text(ACCUMULATE)
    return str(file)


def test_arrays_from_files_to_files(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    a, b = (random.uniform(-1, 1, (128, 128)).astype(np.float32) for _ in range(2))
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.asfortranarray(b))
    words = ["run", str(EXAMPLES / "mm_relu.mlir"), "--func", "mm_relu", "--check"]
    words += ["--input", f"A={tmp_path / 'a.npy'}", "--input", f"B={tmp_path / 'b.npy'}"]
    assert execute([*words, "--output", f"C={tmp_path / 'c.npy'}"]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), np.maximum(a @ b, 0), atol=1e-4)


def test_the_check_starts_from_what_the_arrays_held(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", program, "--check", "--time", "--repeat", "1"]) == 0
    out = capsys.readouterr().out
    assert "accumulate(A: float64[8], inout S: float64[8])" in out
    assert "check     S: within" in out


def test_the_seed_decides_the_arrays(program: str, tmp_path: Path) -> None:
    results: list[np.ndarray] = []
    for number, seed in enumerate(("1", "1", "2")):
        file = tmp_path / f"s{number}.npy"
        assert execute(["run", program, "--seed", seed, "--output", f"S={file}"]) == 0
        results.append(np.load(file))
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_a_difference_is_an_error(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def miscompile(module: ModuleOp, target: Target, options: BuildOptions) -> Library:
        wrong = module.clone()
        for add in [op for op in wrong.walk() if isinstance(op, AddfOp)]:
            Rewriter.replace_op(add, SubfOp(add.lhs, add.rhs))
        return build_module(wrong, target, options)

    monkeypatch.setattr(run_command, "build_module", miscompile)
    assert execute(["run", program, "--check"]) == 1
    assert "error: output 'S' differs from the interpreter: max abs error" in capsys.readouterr().err


def test_a_perceptron_agrees_with_the_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", str(EXAMPLES / "mlp.mlir"), "--check"]) == 0
    assert "of the interpreter (max abs error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repeat", "0"], "--repeat must be at least 1, got 0"),
        (["--threads", "0"], "--threads must be at least 1, got 0"),
        (["--input", "A"], "--input takes NAME=VALUE, got 'A'"),
        (["--shape", "A=9"], "shapes: axis 0 of 'A' is 8 in the program, got 9"),
        (["--target", "llvm -mcpu=znver44"], "unknown CPU 'znver44'"),
    ],
)
def test_wrong_words(program: str, words: list[str], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        execute(["run", program, *words])
    assert message in str(caught.value)


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    (tmp_path / "empty.mlir").write_text("")
    with pytest.raises(CompileError, match="the file holds no function with a body"):
        execute(["run", str(tmp_path / "empty.mlir")])
    with pytest.raises(CompileError, match=r"weft runs \.mlir and \.onnx files, got '\.txt'"):
        execute(["run", "program.txt"])
    with pytest.raises(FileNotFoundError):
        execute(["run", str(tmp_path / "none.mlir")])


def test_a_refused_step_of_the_schedule(tmp_path: Path) -> None:
    file = tmp_path / "refused.mlir"
    file.write_text(
        ACCUMULATE
        + """
        sched.func @schedule {
          %s = sched.get_block "S" in @accumulate : block
          %i = sched.get_loops %s : loop
          %o, %n = sched.split %i {factors = [3, 2]} : loop, loop
        }
        """
    )
    with pytest.raises(ScheduleError, match="requirement 3, the factors cover the extent"):
        execute(["run", str(file)])
    assert execute(["run", str(file), "--no-schedule", "--check"]) == 0


def test_functions_that_call_others_are_chosen(tmp_path: Path) -> None:
    file = tmp_path / "calls.mlir"
    file.write_text(
        ACCUMULATE
        + """
        func.func @twice(%A: memref<8xf64>, %S: memref<8xf64>) {
          func.call @accumulate(%A, %S) : (memref<8xf64>, memref<8xf64>) -> ()
          func.call @accumulate(%A, %S) : (memref<8xf64>, memref<8xf64>) -> ()
          func.return
        }
        """
    )
    assert execute(["run", str(file), "--check", "--time", "--repeat", "1"]) == 0


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute([]) == 0
    assert execute(["--help"]) == 0
    assert execute(["--version"]) == 0
    assert capsys.readouterr().out.count("usage: weft COMMAND") == 2
    with pytest.raises(SystemExit) as caught:
        execute(["run", "--help"])
    assert caught.value.code == 0
    assert "--check-limit SECONDS" in capsys.readouterr().out


RESULTS = """
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %y = graph.relu %x : tensor<4xf32> -> tensor<4xf32>
  %p = graph.greater %x, %y : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  func.return %y, %p : tensor<4xf32>, tensor<4xi1>
}
"""
NUMBER = """
func.func @first(%x: memref<4xTYPE>, %n: i32) -> TYPE {
  %c0 = arith.constant 0 : index
  %a = memref.load %x[%c0] : memref<4xTYPE>
  func.return %a : TYPE
}
"""


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            (np.zeros((2, 2), "f4"), np.zeros(4, "?")),
            r"error: output '.*' differs .*: the shape is 4, expected 2x2",
        ),
        ((np.float32(1), np.zeros(4, "?")), r"the shape is 4, expected that of a number"),
        ((np.zeros(4, "f8"), np.zeros(4, "?")), r"the elements are float32, expected float64"),
        ((np.zeros(4, "i4"), np.zeros(4, "?")), r"the elements are float32, expected int32"),
        ((np.zeros(4, "f4"), np.zeros(4, "i1")), r"the elements are bool, expected int8"),
        ((np.zeros(4, "f4"),), r"error: the interpreter gives 1 results, the compiled program 2"),
        (np.zeros(4, "f4"), r"error: the interpreter gives 1 results, the compiled program 2"),
        (
            ValueError("n is 3, but 4"),
            r"error: the interpreter cannot run the program on these arguments: n is",
        ),
    ],
)
def test_results_that_do_not_compare(
    returned: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "f.mlir").write_text(RESULTS)

    def call(*_: object) -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    monkeypatch.setattr(run_command.Interpreter, "call", call)
    assert run_tool(lambda: execute(["run", str(tmp_path / "f.mlir"), "--check"]), debug=False) == 1
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert "internal error" not in error


@pytest.mark.parametrize("type_", ["f32", "bf16", "i8"])
def test_numbers_as_results_are_compared(type_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first.mlir").write_text(NUMBER.replace("TYPE", type_))
    assert execute(["run", str(tmp_path / "first.mlir"), "--input", "n=3", "--check"]) == 0
    assert "of the interpreter" in (out := capsys.readouterr().out) or "equal to the interpreter" in out


NUMPY = b"\x93NUMPY\x01\x00\x76\x00"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 4), "f4"), r"argument 'x: float32\[4\]' does not take shape 2x4"),
        (np.zeros((), "f4"), r"argument 'x: float32\[4\]' does not take shape "),
        (np.zeros(4, "f8"), "takes float32, the file holds float64"),
        (np.zeros(4, [("a", "f4")]), "takes float32, the file holds "),
        (np.zeros(4, "c8"), "takes float32, the file holds complex64"),
        (b"PK\x03\x04 no archive", "is not a .npy file with an array of numbers"),
        (
            b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999, ), }",
            "not a .npy",
        ),
        (b"", "is not a .npy file"),
    ],
)
def test_arrays_that_do_not_fit(array: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(RESULTS)
    if isinstance(array, bytes):
        (tmp_path / "x.npy").write_bytes(array)
    else:
        np.save(tmp_path / "x.npy", array)
    with pytest.raises(CompileError, match=message):
        execute(["run", str(tmp_path / "f.mlir"), "--input", f"x={tmp_path / 'x.npy'}", "--check"])


WRONG_CLAMP = """
func.func @relu6(%A: memref<64xf32>, %B: memref<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  tir.for %i in 64 {
    %a = memref.load %A[%i] : memref<64xf32>
    %r = arith.maximumf %a, %zero : f32
    %y = arith.minimumf %r, %six : f32
    memref.store %y, %B[%i] : memref<64xf32>
  }
  func.return
}
"""


@pytest.mark.parametrize(("rewrite", "values"), [("relu6_to_relu", "saturating values"), ("max_to_maxnum", "NaN")])
def test_the_check_runs_on_edge_values(
    rewrite: str, values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "relu6.mlir").write_text(WRONG_CLAMP)
    assert execute(["run", str(tmp_path / "relu6.mlir"), "--check"]) == 0
    assert "agrees with the interpreter on saturating values, NaN, zeros" in capsys.readouterr().out

    def broken(program: ModuleOp, target: Target, options: BuildOptions) -> Library:
        changed = program.clone()
        WrongPass(rewrite).apply(Context(), changed)
        return build_module(changed, target, options)

    monkeypatch.setattr(run_command, "build_module", broken)
    assert execute(["run", str(tmp_path / "relu6.mlir"), "--check"]) == 1
    assert f"error: output 'B' differs from the interpreter on {values} in A" in capsys.readouterr().err


def test_outputs_are_no_inputs(tmp_path: Path) -> None:
    """Commands do not overwrite what they read."""
    database = tmp_path / "tune.db"
    database.write_bytes(b"")
    link = tmp_path / "link.db"
    link.symlink_to(database)
    with pytest.raises(CompileError, match="is read: it cannot be the output as well"):
        check_output(link, database)


def test_seeds_are_not_negative(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "p.mlir"
    program.write_text("func.func @f(%A: memref<4xf32>) { func.return }")
    for command in ("run", "tune"):
        assert run_tool(lambda command=command: execute([command, str(program), "--seed", "-1"]), debug=False) == 1
        assert "error: --seed must not be negative, got -1" in capsys.readouterr().err


def test_measurements_as_json(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.json"
    assert execute(["run", program, "--check", "--time", "--repeat", "3", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert found["function"] == "accumulate"
    assert found["check"] == "agrees"
    assert found["build_ms"] > 0
    assert found["stages_ms"]
    time = found["time"]
    assert len(time["seconds"]) == 3
    assert time["min"] <= time["median"] <= time["p90"] <= time["p99"] <= max(time["seconds"])
    assert time["calls_per_second"] == pytest.approx(1 / time["median"])
    capsys.readouterr()
    assert execute(["run", program, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["function"] == "accumulate"
    assert "build " in err


def test_json_that_cannot_be_written(program: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="there is no folder"):
        execute(["run", program, "--json", str(tmp_path / "no" / "out.json")])


def test_many_schedules_are_counted() -> None:
    assert run_command._names(["a", "b"]) == "@a, @b"
    assert run_command._names([f"s{n}" for n in range(48)]) == "48 schedules"
