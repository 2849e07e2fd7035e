"""`weft run` in this process: arrays in and out, the check, and what it says when something is wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.arith import AddfOp, SubfOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from weft.driver.build import build
from weft.runtime.library import Library
from weft.support.errors import CompileError, ScheduleError
from weft.support.target import Target
from weft.tools import run_command
from weft.tools.weft_cli import execute

EXAMPLES = Path(__file__).parents[2] / "examples"
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
    def miscompile(module: ModuleOp, target: Target, **options: Any) -> Library:
        wrong = module.clone()
        for add in [op for op in wrong.walk() if isinstance(op, AddfOp)]:
            Rewriter.replace_op(add, SubfOp(add.lhs, add.rhs))
        return build(wrong, target, **options)

    monkeypatch.setattr(run_command, "build", miscompile)
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
        (["--shape", "A=9"], "--shape A=9: argument is 'A: float64[8]'"),
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
