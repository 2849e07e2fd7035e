"""`weft-reduce` keeps what is interesting, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from installed_passes import installed_passes

import weft
from weft.driver.programs import context
from weft.support.errors import CompileError
from weft.tools.reduce.edits import EDITS, numbers_in, smaller_numbers, total_of_numbers
from weft.tools.reduce.questions import Answer, InterestingnessTest
from weft.tools.reduce.reduction import Candidate, Journal, Reduction
from weft.tools.weft_reduce import execute

PROGRAM = """
memref.global "private" constant @table : memref<4xf32> = dense<[1.5, 2.5, 3.5, 4.5]>
func.func private @unused(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %y : f32
}
func.func @main(%A: memref<64xf32>, %B: memref<64xf32>) attributes {note = "kept by chance"} {
  tir.for %i in 64 {
    tir.block "B" iters(%v: spatial<64>) = [%i] {
      %a = memref.load %A[%v] : memref<64xf32>
      %b = arith.addf %a, %a : f32
      %c = math.rsqrt %b : f32
      memref.store %c, %B[%v] : memref<64xf32>
    }
  }
  tir.for %j in 64 {
    tir.block "C" iters(%v: spatial<64>) = [%j] {
      %a = memref.load %B[%v] : memref<64xf32>
      %b = arith.mulf %a, %a : f32
      memref.store %b, %B[%v] : memref<64xf32>
    }
  }
  func.return
}
sched.func @schedule {
  %b = sched.get_block "B" in @main : block
  %i = sched.get_loops %b : loop
  %i0, %i1 = sched.split %i {factors = [0, 4]} : loop, loop
  %i2, %i3 = sched.split %i1 {factors = [0, 2]} : loop, loop
  sched.unroll %i3
  %c = sched.get_block "C" in @main : block
  %j = sched.get_loops %c : loop
  sched.vectorize %j
  sched.parallel %j
}
"""

EXPONENTIAL = """
func.func @f(%x: f32) -> f32 {
  %y = math.exp %x : f32
  %z = arith.addf %y, %y : f32
  func.return %z : f32
}
"""


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Path]:
    with installed_passes(tmp_path):
        (tmp_path / "program.mlir").write_text(PROGRAM)
        yield tmp_path


class Words(InterestingnessTest):
    """Interesting are programs that hold all of the words; asked in this process."""

    def ask(self, program: str) -> Answer:
        try:
            weft.parse(program)
        except CompileError as error:
            return Answer(False, False, str(error))
        holds = all(re.search(word, f"{self.run.passes}\n{program}") for word in self.text.split("&"))
        return Answer(True, holds, "")


def reduced(tmp_path: Path, program: str, *words: str, jobs: int = 1) -> tuple[str, Reduction]:
    """The smallest program that holds the words, as printed."""
    journal = Journal(tmp_path / "journal")
    journal.begin("settings", resume=True)
    found: list[Candidate] = []
    question = Words("test", text="&".join(words))
    reduction = Reduction(context(), question, journal, found.append, jobs, lambda _: None)
    start = reduction.candidate(weft.parse(program), ())
    best = reduction.run(start)
    assert all(after.is_smaller_than(before) for before, after in pairwise(found))
    assert best in (start, *found)
    weft.parse(best.text)
    return best.text, reduction


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("math.rsqrt", "func.func @main(%a: f32) {\n    %c = math.rsqrt %a : f32\n    func.return\n  }"),
        ("@unused", "func.func @unused() -> ()"),
    ],
)  # fmt: skip
def test_everything_else_goes(word: str, expected: str, tmp_path: Path) -> None:
    text, _ = reduced(tmp_path, PROGRAM, word)
    assert text == f"builtin.module {{\n  {expected}\n}}\n"


def test_constants(tmp_path: Path) -> None:
    text, _ = reduced(tmp_path, PROGRAM, '"table"')
    assert "dense<0.000000e+00> : tensor<1xf32>" in text
    assert "func" not in text


def test_steps_of_schedules(tmp_path: Path) -> None:
    text, _ = reduced(tmp_path, PROGRAM, "sched.unroll")
    assert "sched.split" not in text
    assert "sched.vectorize" not in text
    assert text.count("sched.") == 4  # the function, and the block and the loop that the step needs


def test_extents(tmp_path: Path) -> None:
    text, _ = reduced(tmp_path, PROGRAM, r"sched\.split", r"tir\.block \"B\"")
    assert "64" not in text


def test_parallel_and_serial_runs_agree(tmp_path: Path) -> None:
    texts = set()
    for jobs in (1, 3):
        folder = tmp_path / str(jobs)
        folder.mkdir()
        texts.add(reduced(folder, PROGRAM, "math.rsqrt", "memref.store", jobs=jobs)[0])
    assert len(texts) == 1


def test_a_journal_saves_work(tmp_path: Path) -> None:
    first, began = reduced(tmp_path, PROGRAM, "math.rsqrt")
    second, resumed = reduced(tmp_path, PROGRAM, "math.rsqrt")
    assert first == second
    assert began.asked > 10
    assert resumed.asked == 0


def test_journal_of_other_options(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.begin("--crash", resume=False)
    with pytest.raises(CompileError, match="is of a reduction with other options: --crash"):
        journal.begin("--validate", resume=True)


def test_numbers() -> None:
    text = "%12 = f(%a_8, @g16, 1.5e+12, f32) : memref<64x4xf32>, memref<?x16x8xi64>, vector<8xf32>, [0, 4] -4"
    assert numbers_in(text) == [64, 16, 8, 4]
    assert total_of_numbers("64 f32") == 7
    assert "memref<32x2xf32>, memref<?x8x4xi64>" in list(smaller_numbers(text))[-1] or any(
        "memref<32x4xf32>" in other for other in smaller_numbers(text)
    )


@pytest.mark.parametrize("what", EDITS)
def test_every_edit_keeps_what_it_does_not_list(what: str) -> None:
    """Without a chosen place a copy prints as it did, and listing changes nothing."""
    module = weft.parse(PROGRAM)
    before = str(module)
    assert EDITS[what](module) or what == "parameters"  # all are used
    assert str(module) == before


@pytest.mark.slow
def test_crash_with_passes(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same exception in the same function; passes and their options go too."""
    output = site / "out.mlir"
    words = [
        str(site / "program.mlir"),
        "-o",
        str(output),
        "-p",
        "canonicalize,acme-crash{strict=true},cse",
        "--crash",
        "-j2",
    ]
    assert execute(words) == 0
    text = output.read_text()
    assert 'pipeline: "builtin.module(acme-crash)"' in text
    assert "math.rsqrt" in text
    assert "sched" not in text
    out, err = capfd.readouterr()
    assert re.search(r"out\.mlir: \d operations, 1 passes, from \d+ operations, 3 passes; \d+ programs tried", out)
    assert "weft-reduce: " in err
    assert not (site / "out.mlir.journal").exists()


@pytest.mark.slow
def test_end_of_the_process(site: Path) -> None:
    program = site / "exp.mlir"
    program.write_text(EXPONENTIAL)
    assert execute([str(program), "-p", "acme-crash", "--crash", "-j1", "-q"]) == 0
    text = program.with_suffix(".reduced.mlir").read_text()
    assert "math.exp" in text
    assert "addf" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["--validate", "-p", "acme-silent"], "arith.addf"),
        (["--message", "failed: KeyError", "-p", "acme-crash"], "math.rsqrt"),
        (["--test", "grep -q rsqrt", "--status", "0"], "math.rsqrt"),
        (["--test", "sh -c 'grep -q rsqrt {} && exit 3'", "--status", "3"], "math.rsqrt"),
    ],
)
def test_other_questions(flags: list[str], kept: str, site: Path) -> None:
    output = site / "out.mlir"
    assert execute([str(site / "program.mlir"), "-o", str(output), "-q", "-j2", *flags]) == 0
    text = output.read_text()
    assert kept in text
    assert "sched.func" not in text
    assert len(text) < len(PROGRAM) // 2


@pytest.mark.slow
def test_resume_begins_with_the_smallest(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The file of an interrupted reduction, passes included, is where the next one begins."""
    output = site / "out.mlir"
    words = [str(site / "program.mlir"), "-o", str(output), "-p", "acme-crash,cse", "--crash", "-j2", "-q"]
    assert execute(words) == 0
    tried = int(re.findall(r"(\d+) programs tried", capfd.readouterr().out)[0])
    assert execute([*words, "--resume"]) == 0
    again = int(re.findall(r"(\d+) programs tried", capfd.readouterr().out)[0])
    assert again < tried


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "needs to know which programs are interesting: one of --test, --crash, --message, --validate, --differs"),
        (["--crash"], "is not interesting by --crash: nothing failed"),
        (["--message", "("], "'(' is not a regular expression"),
        (["--crash", "--status", "1"], "--status is of --test"),
        (["--test", "true", "-p", "cse"], "runs the passes itself: leave -p and -t out"),
        (["--differs", "llvm"], "--differs takes two back ends, such as llvm,c or interpreter,llvm; got 'llvm'"),
        (["--crash", "-j", "0"], "--jobs must be at least 1, got 0"),
        (["--crash", "--timeout", "0"], "--timeout must be positive, got 0"),
        (["--crash", "-o", "program.mlir"], "it cannot be the output as well"),
        (["--crash", "-p", "csee"], "unknown pass 'csee', did you mean"),
        (["--test", "/no/such/program"], "'/no/such/program' cannot be run: No such file or directory"),
    ],
)
def test_bad_flags(flags: list[str], message: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    with pytest.raises(CompileError, match=re.escape(message)):
        execute(["program.mlir", *flags])


def test_program_that_does_not_verify(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text("func.func @f() -> i32 {\n  func.return\n}\n")
    with pytest.raises(CompileError, match=r"wrong\.mlir:2:3: error"):
        execute([str(wrong), "--crash"])
