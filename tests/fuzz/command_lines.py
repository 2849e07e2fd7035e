"""Command lines of `weft` and `weft-opt` with junk: files that are none, malformed options, beside what fits."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import FrameType

import numpy as np

from weft.tools.failures import run_tool
from weft.tools.weft_cli import COMMANDS, execute
from weft.tools.weft_opt import WeftOptMain

SECONDS = 20
ENDS = {
    "bench": (["--none"], ["--size=x"], ["--threads=x"]),
    "tune": (["--none"], ["--trials=x"], ["--trials=0"], ["--trials=-1"]),
}
"""Commands that measure -> the words that keep them from doing it."""
RELU = """func.func @relu6(%A: memref<?x4xf32>, %s: f32, %B: memref<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %six = arith.constant 6.0 : f32
  %n = memref.dim %A, %c0 : memref<?x4xf32>
  tir.assume_shape %B[%n] : memref<?x4xf32>
  tir.for %i in %n { tir.for %j in 4 {
    tir.block "B" iters(%vi: spatial<%n>, %vj: spatial<4>) = [%i, %j] {
      %a = memref.load %A[%vi, %vj] : memref<?x4xf32>
      %r = arith.maximumf %a, %s : f32
      %y = arith.minimumf %r, %six : f32
      memref.store %y, %B[%vi, %vj] : memref<?x4xf32>
    }
  } }
  func.return
}
"""
SUM = """func.func @sum(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %z = graph.add %x, %y : tensor<4xi64>, tensor<4xi64> -> tensor<4xi64>
  func.return %z : tensor<4xi64>
}
"""
SCRIPT = """import sys
import weft

def space(sch):
    pass

def program():
    return weft.parse('''func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }''')

def fails():
    raise KeyError("nothing")

def exits():
    sys.exit(3)

number = 3
"""


def write_files(folder: Path) -> None:
    """The inputs: good ones, and of each kind some that are not what their name says."""
    texts = {
        "relu.mlir": RELU,
        "sum.mlir": SUM,
        "both.mlir": RELU + SUM,
        "empty.mlir": "",
        "words.mlir": "this is no program",
        "comment.mlir": "// nothing\n",
        "script.py": SCRIPT,
        "syntax.py": "def f(:\n",
        "raises.py": "raise LookupError('at import')\n",
        "exits.py": "import sys\nsys.exit(0)\n",
        "words.onnx": "no model",
        "words.npy": "no array",
        "words.db": "no database, though it is long enough to have a header of SQLite in front" * 20,
        "words.jsonl": "{}\n[]\nnull\n{\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    junk = bytes(random.Random(0).randrange(256) for _ in range(300))
    for suffix in ("mlir", "onnx", "npy", "db", "jsonl", "py", "safetensors"):
        (folder / f"junk.{suffix}").write_bytes(junk)
        (folder / f"nothing.{suffix}").write_bytes(b"")
        (folder / f"folder.{suffix}").mkdir()
    (folder / "latin.mlir").write_bytes(b'func.func @f() { "x.\xe9"() : () -> () func.return }')
    (folder / "mark.mlir").write_bytes(b"\xef\xbb\xbf" + SUM.encode())
    (folder / "nul.mlir").write_bytes(SUM.replace("%z", "%\0z").encode())
    np.save(folder / "a.npy", np.ones((3, 4), np.float32))
    np.save(folder / "wide.npy", np.ones((3, 5), np.float32))
    np.save(folder / "double.npy", np.ones((3, 4)))
    np.save(folder / "number.npy", np.float32(1))
    np.save(folder / "x.npy", np.arange(4))
    np.savez(folder / "several.npz", a=np.ones(3))
    (folder / "truncated.npy").write_bytes((folder / "a.npy").read_bytes()[:-8])
    (folder / "closed.mlir").write_text(SUM)
    (folder / "closed.mlir").chmod(0)
    (folder / "loop.mlir").symlink_to(folder / "loop.mlir")


NUMBERS = ["-1", "0", "1", "2", "3.5", "nan", "inf", "1e400", "9" * 30, "9" * 5000, "x", "", " 1", "0x10", "1_0", "³"]
SHAPES = [
    *("A=3x4", "B=3x4", "x=4", "A=", "=3x4", "A", "A=3x", "A=x4", "A=-3x4", "A=3x4x5", "A=3,4", "A=0x4", "A=n", "Z=3"),
    *(
        "A=99999999999999x4",
        "A=\uff13x\uff14",
        "A=3X4",
        "A=3x4=5",
        "a=3x4",
        "A=3x5",
        "A=1e3x4",
        "=",
        "",
        "é=3",
        "\udcff=3",
    ),
]
VALUES = [
    *("A=a.npy", "A=wide.npy", "A=double.npy", "A=number.npy", "A=several.npz", "A=words.npy", "A=junk.npy", "s=0.5"),
    *(
        "A=nothing.npy",
        "A=truncated.npy",
        "A=folder.npy",
        "A=none.npy",
        "s=x",
        "s=",
        "s=1e999",
        "s=nan",
        "s",
        "x=x.npy",
    ),
    *("s=nan", "s", "x=x.npy", "A=1", "a.npy", "B=a.npy", "=a.npy", "s=1,2", "n=3", "A=a.npy=b", "A=\udcff.npy"),
]
TARGETS = [
    *("llvm", "c", "cuda", "metal", "opencl -device=none", "llvm -mcpu=znver4", "llvm -mcpu=none", "llvm -opt-level=9"),
    *(
        "",
        " ",
        "-mcpu=x",
        "gpu",
        "llvm 'x",
        "llvm -num-threads=0",
        "llvm -num-threads=-1",
        "llvm -mattr=none",
        "llvm -x",
    ),
    *("llvm -mattr=none", "llvm -x"),
    *("llvm -mtriple=riscv64-linux-gnu", "llvm -mtriple=none", "cuda -arch=sm_1", "llvm -l1-bytes=x", "é", "\udcff"),
]
PASSES = [
    *(
        "cse",
        "canonicalize",
        "tir-split{block=B loop=0 factors=0,2}",
        "tir-split",
        "tir-split{",
        "none",
        "",
        ",",
        "cse,",
    ),
    *(
        "lower-tir-to-low{target=llvm}",
        "lower-tir-to-low{target=x}",
        "func.func(cse",
        "builtin.module(cse)",
        "cse{x=1}",
    ),
    *(",", "cse,", "builtin.module(cse)", "cse{x=1}"),
    *("before:vectorize=cse", "before:none=cse", "vectorize=cse", "before:vectorize=", "after:flatten=none", "="),
]
FILES = [
    *("relu.mlir", "relu.mlir", "sum.mlir", "both.mlir", "empty.mlir", "words.mlir", "junk.mlir", "nothing.mlir"),
    *("folder.mlir", "latin.mlir", "mark.mlir", "nul.mlir", "comment.mlir", "none.mlir", "loop.mlir", "closed.mlir"),
    *("words.onnx", "junk.onnx", "nothing.onnx", "folder.onnx", "none.onnx", "script.py", "script.py:program"),
    *("script.py:none", "script.py:number", "script.py:fails", "script.py:exits", "syntax.py:f", "raises.py:f"),
    *("exits.py:f", "junk.py:f", "folder.py:f", "nothing.py:f", "none.py:f", "words.db", "junk.db", "nothing.db"),
    *("folder.db", "none.db", "words.jsonl", "junk.jsonl", "nothing.jsonl", "-", "", ".", "/", "relu", "a/b/c.mlir"),
    *("x" * 300 + ".mlir", "é.mlir", "\udcff.mlir", "relu.mlir/x.mlir", "/dev/null", "relu.MLIR", ":", "a:b:c.py"),
]
OUTPUTS = [
    *(
        "out.mlir",
        "out.o",
        "out.so",
        "out.h",
        "out.ll",
        "out.s",
        "out.c",
        "out.html",
        "B=out.npy",
        "B=none/out.npy",
        "B=",
    ),
    *(
        "folder.mlir",
        "none/out.o",
        "",
        "out",
        "out.xyz",
        "relu.mlir/out.o",
        "/",
        "x" * 300 + ".o",
        "\udcff.o",
        "Z=a.npy",
    ),
]
NAMES = ["relu6", "sum", "none", "", "B", "é", "@relu6", "relu6 ", "\udcff", "x" * 5000]


def values_of(action: argparse.Action) -> Sequence[str]:
    """Words to give to an option."""
    if action.choices:
        return [*map(str, action.choices), "none", ""]
    if action.type in (int, float):
        return NUMBERS
    kinds = {
        "shape": SHAPES, "input": VALUES, "bind": VALUES, "target": TARGETS, "insert": PASSES, "passes": PASSES,
        "help_pass": PASSES, "output": OUTPUTS, "output_file": OUTPUTS, "header": OUTPUTS, "html": OUTPUTS,
        "weights": OUTPUTS, "func": NAMES, "file": FILES, "input_file": FILES, "database": FILES, "space": FILES,
        "plot": OUTPUTS, "program": FILES,
    }  # fmt: skip
    return kinds.get(action.dest, [*NAMES, *NUMBERS, *FILES])


class TooLongError(BaseException):
    """The command did not come back."""


@dataclass(frozen=True)
class Finding:
    """A command line that ended as none may."""

    words: tuple[str, ...]
    what: str
    report: str = field(compare=False, hash=False)


class Runner:
    """Runs command lines in a folder of files, and remembers what is wrong with them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.count = 0
        self.accepted = 0
        self.findings: dict[str, Finding] = {}
        self.parsers = {name: self._parser(name) for name in COMMANDS}

    def _parser(self, name: str) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=name)
        import_module(COMMANDS[name][0]).add_arguments(parser)
        return parser

    def run(self, count: int) -> None:
        with self._inside():
            for _ in range(count):
                self.call(self.draw())

    @contextlib.contextmanager
    def _inside(self) -> Generator[None]:
        before, cache = os.getcwd(), os.environ.get("WEFT_CACHE_DIR")
        os.chdir(self.folder)
        os.environ["WEFT_CACHE_DIR"] = str(self.folder / "cache")
        try:
            yield
        finally:
            os.chdir(before)
            del os.environ["WEFT_CACHE_DIR"]
            if cache is not None:
                os.environ["WEFT_CACHE_DIR"] = cache

    def draw(self) -> list[str]:
        if self.random.random() < 0.02:
            return [self.random.choice(["", "rum", "--version", "-x", "é", "--help"])]
        name = self.random.choice([*COMMANDS, *COMMANDS, "run", "run", "show", "build", "import", "db", "weft-opt"])
        parser = WEFT_OPT if name == "weft-opt" else self.parsers[name]
        words = [name, *self._words(parser)]
        return words + self.random.choice(ENDS.get(name, [[]]))

    def _words(self, parser: argparse.ArgumentParser) -> list[str]:
        options = [action for action in parser._actions if action.option_strings]
        places = [action for action in parser._actions if not action.option_strings]
        words: list[str] = []
        for action in places:
            if isinstance(action, argparse._SubParsersAction):
                chosen = self.random.choice([*action.choices, "none"])
                words.append(chosen)
                words += self._words(action.choices[chosen]) if chosen in action.choices else []
            elif action.nargs not in ("?", "*") or self.random.random() < 0.9:
                good = self.random.random() < 0.5 and action.dest in ("file", "input_file")
                words += [self.random.choice(["relu.mlir", "sum.mlir"] if good else values_of(action))]
        for action in self.random.sample(options, min(len(options), self.random.choice([0, 1, 1, 2, 3, 5]))):
            if action.dest in ("time", "profile", "help") and self.random.random() < 0.9:
                continue
            words.append(self.random.choice(action.option_strings))
            if action.nargs != 0 and self.random.random() < 0.97:
                words.append(self.random.choice(values_of(action)))
        if "relu.mlir" in words and self.random.random() < 0.7:  # what the program needs
            words += ["--shape", "A=3x4", "--input", "s=0.5"]
        return words

    def call(self, words: list[str]) -> None:
        self.count += 1
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
        status, trace = 0, ""
        stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited():
                status = run_tool(body_of(words), debug=False)
        except SystemExit as exit_:
            if exit_.code or not {"-h", "--help"} & set(words):
                trace = f"exits with {exit_.code}\n{traceback.format_exc(limit=-5)}"
        except BaseException:  # noqa: BLE001 - whatever comes out is the finding
            trace = traceback.format_exc(limit=-6)
        finally:
            sys.stdin = stdin
        out.flush()
        err.flush()
        told = err.buffer.getvalue().decode()  # pyright: ignore[reportAttributeAccessIssue]
        self.accepted += status == 0
        if trace:
            self.found(words, "traceback", trace)
        elif "internal error" in told or "Traceback" in told:
            self.found(words, "internal error", told)
        elif "--shrink" not in words and (status == 1) != ("error" in told or "left out" in told):
            self.found(words, f"status {status}", told or "nothing on standard error")

    def found(self, words: list[str], what: str, report: str) -> None:
        lines = [line for line in report.splitlines() if line.strip()]
        key = f"{words[0]}: {what}: {lines[-1 if what == 'traceback' else 0][:120]}"
        self.findings.setdefault(key, Finding(tuple(words), what, report[-3000:]))


def body_of(words: list[str]) -> Callable[[], int]:
    if words and words[0] == "weft-opt":
        return lambda: WeftOptMain(args=words[1:]).execute()
    return lambda: execute(words)


@contextlib.contextmanager
def limited() -> Generator[None]:
    """Raise `TooLongError` after `SECONDS` of processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _weft_opt() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="weft-opt", conflict_handler="resolve")
    WeftOptMain(args=[]).register_all_arguments(parser)
    for action in parser._actions:
        if action.dest in ("disable_verify", "allow_unregistered_dialect", "syntax_highlight"):
            action.option_strings = ["--split-input-file"]  # they change the process
    return parser


WEFT_OPT = _weft_opt()
