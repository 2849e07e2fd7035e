"""How the commands end: messages on standard error, exit status 1, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.support.errors import CompileError, InternalError
from weft.tools.failures import run_tool

TOOLS = Path(sys.executable).parent
PROGRAM = "func.func @f() {\n  func.return\n}\n"


def weft_opt(*arguments: str | Path, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOLS / "weft-opt", *arguments], input=stdin, cwd=cwd, capture_output=True, text=True, check=False
    )


def raising(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CompileError("no such thing"), "error: no such thing\n"),
        (FileNotFoundError(2, "No such file or directory", "x.mlir"), "error: cannot open 'x.mlir': no such file or"),
        (InternalError("lost a loop"), "internal error: lost a loop\nThis is a bug in weft"),
        (KeyError("q"), "internal error: KeyError: 'q'\nThis is a bug in weft"),
        (RecursionError(), "error: the program is nested too deeply"),
    ],
)
def test_an_error_is_a_message_and_status_1(error: Exception, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(lambda: raising(error), debug=False) == 1
    assert capsys.readouterr().err.startswith(message)


def test_debug_shows_where_an_internal_error_came_from() -> None:
    with pytest.raises(InternalError):
        run_tool(lambda: raising(InternalError("lost a loop")), debug=True)
    assert run_tool(lambda: raising(CompileError("no such thing")), debug=True) == 1


def test_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(lambda: raising(KeyboardInterrupt()), debug=False) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_file_that_is_missing_a_folder_or_not_text(tmp_path: Path) -> None:
    (tmp_path / "binary.mlir").write_bytes(b"func.func\n  \xc3\xa9 \xff\x00")
    (tmp_path / "folder.mlir").mkdir()
    (tmp_path / "a.txt").write_text(PROGRAM)
    expected = {
        "missing.mlir": "error: cannot open 'missing.mlir': no such file or directory\n",
        "folder.mlir": "error: cannot open 'folder.mlir': is a directory\n",
        "binary.mlir": "binary.mlir:2:5: error: 'binary.mlir' is not a text file: byte 0xff is not valid UTF-8 "
        "[ir.not-text]\n",
        "a.txt": "error: 'a.txt': no frontend reads files that end in '.txt' (known: 'mlir'); -f names one\n",
    }
    for file, message in expected.items():
        done = weft_opt(file, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", message)


@pytest.mark.slow
def test_output_goes_to_a_file_only_when_all_is_well(tmp_path: Path) -> None:
    (tmp_path / "good.mlir").write_text(PROGRAM)
    (tmp_path / "bad.mlir").write_text("foo.bar")
    assert weft_opt("good.mlir", "-o", "out.mlir", cwd=tmp_path).returncode == 0
    written = (tmp_path / "out.mlir").read_text()
    assert "func.func @f()" in written
    assert weft_opt("bad.mlir", "-o", "out.mlir", cwd=tmp_path).returncode == 1
    assert (tmp_path / "out.mlir").read_text() == written
    done = weft_opt("good.mlir", "-o", "no/out.mlir", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: 'no/out.mlir': there is no folder 'no' [file.cannot-write]\n")


def test_unknown_pass_and_target() -> None:
    done = weft_opt("-p", "cannonicalize", stdin=PROGRAM)
    assert done.returncode == 1
    assert done.stderr.startswith("error: unknown pass 'cannonicalize', did you mean 'canonicalize'")
    done = weft_opt("-t", "mlr", stdin=PROGRAM)
    assert done.returncode == 1
    assert done.stderr.startswith("error: unknown target 'mlr', did you mean 'mlir'")


def test_the_reader_went_away() -> None:
    program = "".join(f"func.func @f{i}() {{\n  func.return\n}}\n" for i in range(2000))
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [TOOLS / "weft-opt"], stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(write)
        _, errors = process.communicate(program)
    assert (process.returncode, errors) == (1, "")


def test_a_place_after_wide_and_tab_characters() -> None:
    done = weft_opt(stdin='func.func @f() {\n\t"é😀.x"() : () -> ()\n}')
    assert done.returncode == 1
    assert done.stderr.startswith("<stdin>:2:2: error: unknown operation 'é😀.x'")
    assert done.stderr.endswith('\n\t"é😀.x"() : () -> ()\n\t^^^^^^\n')


def test_expected_errors_that_do_not_come_fail(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_text("// expected-error@+1 {{no such}}\n" + PROGRAM)
    (tmp_path / "b.mlir").write_text("// expected-error@+1 {{something else}}\nfoo.bar\n")
    (tmp_path / "c.mlir").write_text("// expected-failure {{careful}}\n" + PROGRAM)
    (tmp_path / "d.mlir").write_text("foo.bar\n")
    done = weft_opt("a.mlir", "--verify-diagnostics", cwd=tmp_path)
    assert done.returncode == 1
    assert "a.mlir:1:4: error: expected error 'no such' was not produced" in done.stderr
    done = weft_opt("b.mlir", "--verify-diagnostics", cwd=tmp_path)
    assert done.returncode == 1
    assert "b.mlir:2:1: error: unexpected error: unknown operation 'foo.bar'" in done.stderr
    assert "b.mlir:1:4: error: expected error 'something else' was not produced" in done.stderr
    done = weft_opt("c.mlir", "--verify-diagnostics", cwd=tmp_path)
    assert done.returncode == 1
    assert "expected-failure is not known" in done.stderr
    # As in xDSL: tell, and end well.
    done = weft_opt("d.mlir", "--parsing-diagnostics", cwd=tmp_path)
    assert done.returncode == 0
    assert "d.mlir:1:1: error: unknown operation 'foo.bar'" in done.stdout


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("tir-split{block=B loop=7 factors=2,2}", '{file}:2:21: error: block "B" has 1 loops'),
        ("tir-reorder{block=B loops=0,0}", "  at {file}:2:"),
        ("verify-level{level=low}", "{file}:2:3: error: tir.for is not allowed at level 'low'"),
    ],
)
def test_drivers_of_xdsl_report_errors_with_their_place(
    pipeline: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from xdsl.xdsl_opt_main import xDSLOptMain

    file = tmp_path / "f.mlir"
    file.write_text(
        "func.func @f(%A: memref<4xf32>) {\n"
        '  tir.for %i in 4 { tir.block "B" iters(%v: spatial<4>) = [%i] {\n'
        "    %a = memref.load %A[%v] : memref<4xf32>\n"
        "    memref.store %a, %A[%v] : memref<4xf32>\n"
        "  } }\n  func.return\n}\n"
    )
    xDSLOptMain(args=[str(file), "-p", pipeline, "--verify-diagnostics"]).run()
    assert message.format(file=file) in capsys.readouterr().out
