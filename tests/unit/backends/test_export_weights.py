"""Whole models as programs: their constants as data of the program, or in a file of weights."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as G
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
random = np.random.default_rng(8)
W, B, V = (random.standard_normal(shape).astype(np.float32) for shape in ((160, 128), (128,), (128, 136)))
X = random.standard_normal((3, 160)).astype(np.float32)
EXPECTED = np.maximum(X @ W + B, 0) @ V


def two_layers() -> G.Module:
    bb = G.BlockBuilder()
    x, w, b, v = G.var("x", ("n", 160)), G.var("w", W.shape), G.var("b", B.shape), G.var("v", V.shape)
    with bb.function("model", [x, w, b, v]):
        with bb.dataflow():
            y = bb.emit_output(G.matmul(G.relu(G.add(G.matmul(x, w), b)), v))
        bb.emit_func_output(y)
    return G.bind_params(bb.get(), "model", {"w": W, "b": B, "v": V})


@pytest.fixture(scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)])
def library(request: pytest.FixtureRequest) -> weft.Library:
    """As written, and with default schedules, which pack the constants."""
    return weft.build(two_layers(), default_schedule=request.param)


MAIN = """
#include <stdio.h>
#include "model.h"

int main(int count, char **arguments) {
  static float x[3][160], y[3][136];
  if (fread(x, sizeof x, 1, stdin) != 1) return 2;
#ifdef WEIGHTS
  if (count > 1) {
    const char *problem = weft_load_weights(arguments[1]);
    if (problem) {
      puts(problem);
      return 3;
    }
  }
#endif
  model(x[0], y[0], 3);
  return fwrite(y, sizeof y, 1, stdout) != 1;
}
"""


def run(program: list[str]) -> Any:
    done = subprocess.run(program, input=X.tobytes(), capture_output=True, check=False)
    if done.returncode == 0:
        return np.frombuffer(done.stdout, np.float32).reshape(3, 136)
    return done.returncode, (done.stdout + done.stderr).decode()


def linked(folder: Path, exported: Path, *options: str) -> str:
    (folder / "main.c").write_text(MAIN)
    program = str(folder / "main")
    libraries = ["-lm", "-lpthread"]
    sources = [str(folder / "main.c"), str(exported)]
    subprocess.run([str(COMPILER), "-Werror", *options, *sources, *libraries, "-o", program], check=True)
    return program


@needs_compiler
@pytest.mark.parametrize("file", ["libmodel.so", pytest.param("model.a", marks=pytest.mark.slow)])
def test_constants_are_data_of_the_program(library: weft.Library, tmp_path: Path, file: str) -> None:
    exported = library.export(tmp_path / file)
    library.export(tmp_path / "model.h")
    assert exported.stat().st_size > W.nbytes + V.nbytes
    assert "weft_load_weights" not in (tmp_path / "model.h").read_text()
    np.testing.assert_allclose(run([linked(tmp_path, exported)]), EXPECTED, rtol=1e-4, atol=1e-3)
    if file.endswith(".so"):
        np.testing.assert_array_equal(weft.load(exported)["model"](X), library["model"](X))
        with pytest.raises(CompileError, match=r"libmodel.so' has its constants in it: it was exported without"):
            weft.load(exported, weights=tmp_path / "weights")


@needs_compiler
@pytest.mark.parametrize("file", ["libmodel.so", pytest.param("model.o", marks=pytest.mark.slow)])
def test_constants_in_a_file_of_weights(library: weft.Library, tmp_path: Path, file: str) -> None:
    weights = tmp_path / "model.weights"
    exported = library.export(tmp_path / file, weights=weights)
    assert exported.stat().st_size < W.nbytes < weights.stat().st_size
    weights.unlink()
    library.export(tmp_path / "model.h", weights=weights)
    assert not weights.exists(), "a header has no weights"
    library.export(tmp_path / file, weights=weights)
    program = linked(tmp_path, exported, "-DWEIGHTS")
    np.testing.assert_allclose(run([program, str(weights)]), EXPECTED, rtol=1e-4, atol=1e-3)
    problem = "weft: the weights of this program are not loaded: call weft_load_weights first\n"
    assert run([program]) == (-6, problem)
    assert run([program, "none"]) == (3, "weft: cannot open the weights 'none'\n")


@needs_compiler
def test_files_of_weights_are_checked(library: weft.Library, tmp_path: Path) -> None:
    weights = tmp_path / "model.weights"
    exported = library.export(tmp_path / "libmodel.so", weights=weights)
    with pytest.raises(CompileError, match=r"'.*libmodel.so' needs its weights: weft.load\('.*', weights=FILE\)"):
        weft.load(exported)
    np.testing.assert_array_equal(weft.load(exported, weights=weights)["model"](X), library["model"](X))
    whole = weights.read_bytes()
    for content, reason in (
        (None, "cannot open the weights '.*model.weights'"),
        (b"", "'.*model.weights' is no file of weights"),
        (whole[:60], "'.*model.weights' is no file of weights"),
        (b"x" + whole[1:], "'.*model.weights' is no file of weights"),
        (whole[:64], rf"the weights '.*' are cut off: 0 of {len(whole) - 64} bytes"),
        (whole[:-1], rf"the weights '.*' are cut off: {len(whole) - 65} of {len(whole) - 64} bytes"),
        (whole[:5000] + b"\x55" + whole[5001:], "the weights '.*' are damaged: they are not as they were exported"),
        (whole[:64] + whole[72:80] + whole[64:72] + whole[80:], "are damaged: they are not as they were exported"),
        (whole[:16] + bytes(8) + whole[24:], "the weights '.*' are those of another program"),
        (whole[:24] + bytes(8) + whole[32:], "the weights '.*' are those of another program"),
    ):
        weights.unlink(missing_ok=True)
        if content is not None:
            weights.write_bytes(content)
        with pytest.raises(CompileError, match=reason):
            weft.load(exported, weights=weights)


def test_exports_that_take_no_weights(library: weft.Library, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"model.ll': ll has its constants in it; object, shared, archive, header"):
        library.export(tmp_path / "model.ll", weights=tmp_path / "weights")
    with pytest.raises(CompileError, match=r"model.o' cannot be the program and its weights"):
        library.export(tmp_path / "model.o", weights=tmp_path / "model.o")
    with pytest.raises(CompileError, match="there is no folder"):
        library.export(tmp_path / "model.o", weights=tmp_path / "none" / "weights")
    text = library.export(tmp_path / "model.ll").read_text()
    assert text.count("private unnamed_addr constant [") >= 2 and "external constant" not in text


@needs_compiler
def test_programs_without_large_constants_take_empty_weights(tmp_path: Path) -> None:
    relu = "%y = graph.relu %x : tensor<4xf32> func.return %y : tensor<4xf32>"
    small = weft.build(f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{ {relu} }}")
    exported = small.export(tmp_path / "f.so", weights=tmp_path / "weights")
    assert (tmp_path / "weights").stat().st_size == 64
    assert weft.load(exported)["f"](np.float32([-1, 2, 3, 4])).tolist() == [0, 2, 3, 4]


@needs_compiler
def test_weft_build_exports_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, program, weights = (tmp_path / name for name in ("model.mlir", "libmodel.so", "model.weights"))
    source.write_text(str(two_layers()))
    header = ["--header", str(tmp_path / "model.h")]
    options = [*header, "--weights", str(weights), "--no-default-schedule"]
    assert execute(["build", str(source), "-o", str(program), *options]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"saved     {weights}"
    np.testing.assert_allclose(weft.load(program, weights=weights)["model"](X), EXPECTED, rtol=1e-4, atol=1e-3)
    declared = re.findall(r"^(?:void|const char) .*?(\w+)\(", (tmp_path / "model.h").read_text(), re.MULTILINE)
    assert declared == ["weft_load_weights", "model"], "kernels are private"
    with pytest.raises(CompileError, match="a program in C has its constants in it; build for llvm"):
        execute(["build", str(source), "-o", str(tmp_path / "m.c"), "--weights", str(weights)])


@pytest.mark.slow
def test_objects_for_other_machines_have_their_constants(tmp_path: Path) -> None:
    foreign = weft.build(two_layers(), target="llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -num-threads=1")
    arrays = list(foreign.constants.values())
    code = foreign.export(tmp_path / "model.o").read_bytes()
    assert arrays and all(code.count(array.tobytes()) == 1 for array in arrays)
