"""The flags of `weft-opt`, on passes that fail, remark and warn."""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

import weft
from weft.support.errors import CompileError, InternalError, remark
from weft.support.statistics import Counts, Statistic
from weft.tools.failures import run_tool
from weft.tools.ir_dumps import difference
from weft.tools.weft_opt import WeftOptMain

PROGRAM = """func.func @f(%x: i32) -> i32 {
  %a = arith.constant 1 : i32
  %b = arith.constant 1 : i32
  %s = arith.addi %a, %b : i32
  func.return %s : i32
}
func.func @g(%x: i32) {
  func.return
}
"""
CHUNKS = PROGRAM + "// -----\n" + PROGRAM

SEEN = Statistic("tell", "functions-seen", "functions that it told of")


@dataclass(frozen=True)
class TellPass(ModulePass):
    """Remarks on every function, and warns."""

    name: ClassVar[str] = "tell"
    warn: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            remark(function, "it is left as it is")
            SEEN.add()
        if self.warn:
            warnings.warn("careful", stacklevel=1)


@dataclass(frozen=True)
class CrashPass(ModulePass):
    """Marks @g, and fails as a Python function does."""

    name: ClassVar[str] = "crash"
    func: str = "g"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.sym_name.data == self.func:
                function.attributes["touched"] = UnitAttr()
                raise KeyError("q")


@dataclass(frozen=True)
class RefusePass(ModulePass):
    """Fails with an error of weft."""

    name: ClassVar[str] = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise CompileError("not this program")


class Driver(WeftOptMain):
    def register_all_passes(self) -> None:
        super().register_all_passes()
        for kind in (TellPass, CrashPass, RefusePass, BugPass):
            self.register_pass(kind.name, lambda kind=kind: kind)


Drive = Callable[..., tuple[int, str, str]]


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Drive:
    """Run the driver on `f.mlir`: status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    Path("f.mlir").write_text(PROGRAM)

    def run(*words: str, text: str | None = None) -> tuple[int, str, str]:
        if text is not None:
            Path("f.mlir").write_text(text)
        status = run_tool(lambda: Driver(args=["f.mlir", *words]).execute(), debug=False)
        return (status, *capsys.readouterr())

    return run


def test_wrong_flags(drive: Drive) -> None:
    for words, message in {
        ("--pirnt-ir-after-all",): "error: unknown flag '--pirnt-ir-after-all', did you mean '--print-ir-after-all'",
        ("--print-ir",): "error: unknown flag '--print-ir', did you mean",
        ("--timing=3",): "error: argument --timing/--mlir-timing/--time-passes: ignored explicit argument '3'",
        ("g.mlir",): "error: one word too many: 'g.mlir'",
        ("-p",): "error: argument -p/--passes/--pass-pipeline: expected one argument",
        ("--elide-large-constants=many",): "error: argument --elide-large-constants",
        ("--print-ir-after=cze",): "error: unknown pass 'cze', did you mean 'cse'",
        ("--local-reproducer",): "error: --local-reproducer needs a file to write: --crash-reproducer=FILE",
        ("--run-reproducer", "-p", "cse"): "error: --run-reproducer runs the passes that the input names: leave -p out",
        ("-t", "cuda"): "f.mlir:1:1: error: -t cuda prints kernels, and the module has none (functions: @f, @g)",
    }.items():
        status, out, err = drive(*words)
        assert (status, out) == (1, "")
        assert err.startswith(message.partition(", did you mean 'cse'")[0]), words
        assert "internal error" not in err


@pytest.mark.parametrize("target", ["c", "llvm-ir", "asm", "header", "object"])
def test_targets_that_print_functions_refuse_a_module_without(target: str, drive: Drive) -> None:
    status, out, err = drive("-t", target, text="func.func private @f(i32)\n")
    assert (status, out) == (1, "")
    assert f"error: -t {target} prints functions at level low, and the module has none with a body" in err
    assert "-p 'lower-graph,lower-tir-to-low'" in err


def test_several_pipelines_are_one(drive: Drive) -> None:
    both = drive("-p", "cse,canonicalize", "--pass-pipeline=builtin.module(dce)", "--print-ir-after-all")
    one = drive("-p", "cse,canonicalize,dce", "--print-ir-after-all")
    assert both == one
    assert re.findall(r"IR Dump After (\S+)", both[2]) == ["cse", "canonicalize", "dce"]


def test_versions_and_lists_need_no_program(drive: Drive) -> None:
    status, out, _ = drive("-v")
    assert status == 0
    assert re.fullmatch(r"weft \d\S+\nxDSL 0\.74\S*\nLLVM [\d.]+ \(llvmlite \S+\)\n", out)
    assert "  llvm-ir  " in drive("--list-targets")[1]
    assert drive("--help-pass", "crash")[1].endswith("  func: a name or string (default: g)\n\nexample:\n"
        "  weft-opt program.mlir -p crash\n")  # fmt: skip
    assert "opt-level: an integer (default: 2)" in drive("--help-target", "asm")[1]


def test_a_failing_pass_is_named(drive: Drive) -> None:
    for pipeline, message in {
        "crash": f"error: pass 'crash' of {__name__} failed: KeyError: 'q'\n",
        "func.func(crash)": f"error: pass 'crash' of {__name__} failed: KeyError: 'q' (in 'func.func')\n",
        "refuse": "error: not this program (pass 'refuse')\n",
        "tir-split{block=B loop=0 factors=0,4}": "error: unknown block 'B' (pass 'tir-split') "
        "[schedule.unknown-block]\n",
        "verify-level{level=low},refuse": "f.mlir:5:3: error: func.return with values may not",
    }.items():
        status, out, err = drive("-p", pipeline)
        assert (status, out) == (1, "")
        assert err.startswith(message) or "verify-level" in pipeline
        assert "internal error" not in err
    assert "in apply" in drive("-p", "crash", "--debug")[2]


def test_passes_inserted_into_a_build_are_named() -> None:
    with pytest.raises(CompileError, match=r"not this program \(pass 'refuse'\)"):
        weft.build("func.func @f(%A: memref<4xf32>) {\n  func.return\n}\n", passes={"before:flatten": RefusePass()})


def test_ir_around_passes(drive: Drive) -> None:
    dumps = r"// -----// IR Dump (.*) //----- //"
    _, out, err = drive("-p", "cse,dce", "--print-ir-before=cse", "--mlir-print-ir-after=cse,dce")
    assert re.findall(dumps, err) == ["Before cse", "After cse", "After dce"]
    assert err.count("arith.constant") == 2 + 1 + 1
    assert "IR Dump" not in out
    assert re.findall(dumps, drive("-p", "cse,cse,dce", "--print-ir-after-change")[2]) == ["After cse"]
    _, _, err = drive("-p", "func.func(cse,dce)", "--print-ir-before-all", "--print-ir-after-change")
    f, g = "('func.func' operation: @f)", "('func.func' operation: @g)"
    assert re.findall(dumps, err) == [
        f"Before cse {f}",
        f"After cse {f}",
        f"Before dce {f}",
        f"Before cse {g}",
        f"Before dce {g}",
    ]
    assert "builtin.module" not in err
    _, _, err = drive("-p", "cse,crash", "--print-ir-after-failure", "--print-debuginfo")
    assert re.findall(dumps, err) == ["After crash Failed"]
    assert "attributes {touched}" in err
    assert 'loc("f.mlir":4:8)' in err
    _, _, err = drive("-p", "func.func(crash)", "--print-ir-after-failure")
    assert re.findall(dumps, err) == ["After crash Failed ('func.func' operation: @f)"]


def test_a_failure_can_be_reproduced(drive: Drive) -> None:
    pipeline = 'cse,func.func(dce),crash{func="g"},dce'
    status, _, err = drive("-p", pipeline, "--crash-reproducer=r.mlir")
    assert (status, err.splitlines()[-1]) == (1, "note: 'r.mlir' reproduces this: weft-opt r.mlir --run-reproducer")
    text = Path("r.mlir").read_text()
    assert 'pipeline: "builtin.module(cse,func.func(dce),crash,dce)",' in text
    assert (text.count("arith.constant"), "touched" in text) == (2, False)
    status, _, err = drive("--run-reproducer", "--print-ir-after-all", text=text)
    assert (status, err.count("IR Dump After")) == (1, 3)
    assert f"error: pass 'crash' of {__name__} failed: KeyError: 'q'" in err
    drive("-p", pipeline, "--mlir-pass-pipeline-crash-reproducer=r.mlir", "--local-reproducer", text=PROGRAM)
    text = Path("r.mlir").read_text()
    assert 'pipeline: "builtin.module(crash)",' in text
    assert (text.count("arith.constant"), "touched" in text) == (1, False)
    assert f"pass 'crash' of {__name__} failed" in drive("--run-reproducer", text=text)[2]


def test_each_failing_chunk_is_in_the_reproducer(drive: Drive) -> None:
    chunks = "func.func @other() {\n  func.return\n}\n// -----\n" + CHUNKS
    assert drive("-p", "crash", "--split-input-file", "--crash-reproducer=r.mlir", text=chunks)[0] == 1
    text = Path("r.mlir").read_text()
    assert (text.count("mlir_reproducer"), "@other" in text) == (2, False)
    status, _, err = drive("--run-reproducer", "--split-input-file", text=text)
    assert (status, err.count("pass 'crash'")) == (1, 2)
    Path("r.mlir").unlink()
    assert drive("-p", "cse", "--crash-reproducer=r.mlir", text=PROGRAM)[0] == 0
    assert not Path("r.mlir").exists()


def test_reproducers_of_mlir(drive: Drive) -> None:
    text = """module {
  func.func @f() {
    %a = "arith.constant"() <{value = 1 : i32}> : () -> i32
    func.return
  }
}
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(func.func(canonicalize))",
      disable_threading: false,
      verify_each: true
    }
  }
#-}
"""
    assert "arith.constant" not in drive("--run-reproducer", text=text.replace("module {", "builtin.module {", 1))[1]
    assert drive("--run-reproducer", text=PROGRAM)[2].startswith("error: 'f.mlir' is not a reproducer")


def test_large_constants(drive: Drive) -> None:
    numbers = ", ".join(map(str, range(20)))
    text = (
        f"%a = arith.constant dense<[{numbers}]> : tensor<20xi32>\n%b = arith.constant dense<[1, 2]> : tensor<2xi32>\n"
        "%c = arith.constant dense<7> : tensor<64xi32>\n"
    )
    elided = "dense_resource<__elided__> : tensor<"
    assert drive(text=text)[1].count(elided) == 0
    out = drive("--elide-large-constants")[1]
    assert f"{elided}20xi32>" in out
    assert out.count(elided) == 1
    assert drive("--mlir-elide-elementsattrs-if-larger=1")[1].count(elided) == 2
    assert f"{elided}20xi32>" in drive("--elide-large-constants=4", "-p", "cse", "--print-ir-before-all")[2]


def test_locations_of_arguments(drive: Drive) -> None:
    text = """func.func @f(%x: i32, %y: i32 {a.b} loc("there":5:6)) -> i32 {
  cf.br ^bb1(%x : i32)
^bb1(%z: i32 loc("here":3:4)):
  cf.br ^bb2(%z : i32)
^bb2(%w: i32):
  func.return %w : i32
}
"""
    _, once, _ = drive("--print-debuginfo", text=text)
    assert '%x: i32 loc("f.mlir":1:14), %y: i32 {a.b} loc("there":5:6)' in once
    assert '(%z: i32 loc("here":3:4))' in once
    assert '(%w: i32 loc("f.mlir":5:6))' in once
    assert drive("--print-debuginfo", text=once)[1] == once.replace("loc(unknown)", 'loc("f.mlir":1:1)')


def test_statistics(drive: Drive) -> None:
    _, _, err = drive("-p", "tell,cse,tell", "--pass-statistics", "--split-input-file", text=CHUNKS)
    assert err.endswith("Pass statistics report\n'tell'\n  (S)      8 functions-seen - functions that it told of\n")
    assert drive("-p", "cse", "--mlir-pass-statistics")[2].endswith("none of the passes that ran has statistics\n")
    before = Counts()
    SEEN.add(3)
    assert "3 functions-seen" in before.table(["tell"])


def test_statistics_of_weft(drive: Drive) -> None:
    text = """func.func @f(%A: memref<64xf32>, %I: memref<64xi32>) {
  %z = arith.constant 0.0 : f32
  tir.for %i in 64 { tir.block "B" iters(%v: spatial<64>) = [%i] {
    %j = memref.load %I[%v] : memref<64xi32>
    %k = arith.index_cast %j : i32 to index
    memref.store %z, %A[%k] : memref<64xf32> } }
  func.return
}
"""
    _, _, err = drive("-p", "lower-tir-to-low{bounds=true}", "--pass-statistics", text=text)
    assert "'tir-check-bounds'\n  (S)      1 accesses-guarded" in err


def test_remarks_and_warnings_are_printed(drive: Drive) -> None:
    status, out, err = drive("-p", "tell{warn}")
    assert status == 0
    assert "func.func @f" in out
    assert err == (
        "f.mlir:1:1: remark: it is left as it is\nfunc.func @f(%x: i32) -> i32 {\n^^^^^^^^^\n"
        "f.mlir:7:1: remark: it is left as it is\nfunc.func @g(%x: i32) {\n^^^^^^^^^\nwarning: careful\n"
    )


def test_remarks_and_warnings_are_expected(drive: Drive) -> None:
    flags = ("--verify-diagnostics", "--split-input-file")
    text = "// expected-warning@unknown {{careful}}\n" + PROGRAM.replace("{\n", "{ // expected-remark {{left}}\n")
    status, _, err = drive("-p", "tell{warn}", *flags, text=text)
    assert (status, err) == (0, "")
    status, _, err = drive("-p", "tell", *flags, text=f"{text}// -----\n{text}")
    assert status == 1
    assert re.findall(r"f.mlir:(\d+):4: error: expected warning 'careful' was not produced", err) == ["1", "12"]
    status, _, err = drive("-p", "tell", *flags, text=PROGRAM)
    assert (status, err.count("error: unexpected remark: it is left as it is")) == (1, 2)


def test_a_chunk_that_fails_without_annotation_fails(drive: Drive) -> None:
    wrong = "// expected-error@+1 {{unknown operation 'foo.bar'}}\nfoo.bar\n// -----\nfoo.baz\n// -----\n" + PROGRAM
    status, out, err = drive("--verify-diagnostics", "--split-input-file", text=wrong)
    assert status == 1
    assert err.startswith("f.mlir:4:1: error: unexpected error: unknown operation 'foo.baz'")
    assert err.count("error:") == 2
    assert "func.func @g" in out
    status, _, err = drive("-p", "crash", "--verify-diagnostics", text=PROGRAM)
    assert status == 1
    assert "error: unexpected error: pass 'crash' of" in err


@dataclass(frozen=True)
class BugPass(ModulePass):
    """Fails as a bug of weft does."""

    name: ClassVar[str] = "bug"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise InternalError("lost a loop")


def test_no_comment_expects_a_bug(drive: Drive) -> None:
    text = "// expected-error@unknown {{lost a loop}}\n" + PROGRAM + "// -----\n" + PROGRAM
    flags = ("--verify-diagnostics", "--split-input-file", "--crash-reproducer=r.mlir")
    status, _, err = drive("-p", "bug", *flags, text=text)
    assert status == 1
    assert err.count("internal error: lost a loop") == 2
    assert "while running pass 'bug'" in err
    assert Path("r.mlir").read_text().count("mlir_reproducer") == 2


def test_standard_streams(drive: Drive) -> None:
    assert drive("-o", "-")[1] == drive()[1]
    assert drive("-o", "out.mlir")[1] == ""
    assert Path("out.mlir").read_text() == drive()[1]


def test_difference_after_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(PROGRAM)
    assert WeftOptMain(args=[str(file), "-p", "cse,cse", "--print-ir-after-change=diff"]).execute() == 0
    text = capsys.readouterr().err
    assert text.count("IR Dump After cse") == 1
    assert "\n-    %b = arith.constant 1 : i32\n" in text
    assert "\n-    %s = arith.addi %a, %b : i32\n+    %s = arith.addi %a, %a : i32\n" in text
    assert "\033" not in text
    with pytest.raises(CompileError, match="invalid choice: 'dif'"):
        WeftOptMain(args=[str(file), "-p", "cse", "--print-ir-after-change=dif"])


def test_coloured_difference() -> None:
    text = difference("a\nb\n", "a\nc\n", coloured=True)
    assert "\033[31m-b\033[0m\n\033[32m+c\033[0m" in text
