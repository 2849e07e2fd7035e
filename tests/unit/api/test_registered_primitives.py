"""Schedule primitives of other packages: op, pass, method, replay and explanation from one declaration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from schedule_checks import check_schedule

import weft
from weft import te
from weft.dialects import sched_parameters as kinds
from weft.dialects.sched import STEPS
from weft.dialects.sched_parameters import LOOP, Parameter, Step
from weft.dialects.tir import ForOp
from weft.driver.registered_primitives import unregister_primitive
from weft.passes.schedule.primitive import REGISTERED, Primitive
from weft.passes.schedule.split import Split
from weft.support.packages import installed_universe
from weft.tools.weft_cli import execute
from weft.tools.weft_opt import WeftOptMain

PACKAGE = '''
"""A schedule primitive: loops in strips."""
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.universe import Universe

import weft
from weft.dialects import sched_parameters as kinds
from weft.dialects.sched_parameters import LOOP, Parameter, Step
from weft.dialects.tir import ForOp
from weft.passes.schedule.primitive import Plan, Primitive
from weft.passes.schedule.split import Split


@dataclass(frozen=True)
class StripMinePlan(Plan):
    split: Plan
    note: str

    def rewrite(self):
        outer, inner = self.split.rewrite()
        inner.attributes["acme.strip"] = StringAttr(self.note)
        return outer, inner


@weft.register_primitive(
    Step(
        "strip_mine",
        "Split a loop into strips of `width` iterations, marked by a note.",
        (
            Parameter("loop", kinds.LOOP_HANDLE),
            Parameter("width", kinds.INTEGER, default=8, stated_meaning="The iterations of a strip."),
            Parameter("note", kinds.STRING, default="lanes", keyword_only=True, stated_meaning="The note."),
        ),
        (LOOP,),
        consumes=True,
        example="%o, %s = sched.strip_mine %i {width = 8} : loop, loop",
    )
)
@dataclass(frozen=True)
class StripMine(Primitive):
    """Split a loop into strips of `width` iterations, marked by a note.

    Requirements:

    1. the width is at least 2: strips of one iteration are the loop itself.

    ```mlir
    tir.for %i in 64 { ... }
    // strip_mine %i {width = 8, note = "lanes"}
    tir.for %i0 in 8 { tir.for %i1 in 8 attributes {acme.strip = "lanes"} { ... } }
    ```
    """

    loop: ForOp
    width: int
    note: str

    def plan(self):
        self.require(1, None if self.width >= 2 else f"the width is {self.width}", self.loop)
        return StripMinePlan(Split(self.loop, (0, self.width)).plan(), self.note)


UNIVERSE = Universe()
'''


@pytest.fixture(name="site")
def _site(tmp_path: Path) -> Iterator[Path]:
    """A folder with the package as pip installs it, on the path."""
    about = tmp_path / "acmestrips-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acmestrips\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[xdsl.universe]\nacmestrips = acmestrips:UNIVERSE\n")
    (tmp_path / "acmestrips.py").write_text(PACKAGE)
    sys.path.insert(0, str(tmp_path))
    try:
        yield tmp_path
    finally:
        sys.path.remove(str(tmp_path))
        if sys.modules.pop("acmestrips", None) is not None:
            unregister_primitive("strip_mine")


def added_one():
    A = te.placeholder((64,), "float32", name="A")
    return te.create_func([A, te.compute((64,), lambda i: A[i] + 1.0, name="C")])


def test_a_method_records_replays_and_prints(site: Path) -> None:
    installed_universe()
    module = added_one()
    sch = weft.Schedule(module)
    (loop,) = sch.get_loops("C")
    outer, strip = sch.strip_mine(loop, 4, note="sse")  # pyright: ignore[reportAttributeAccessIssue]
    assert str(strip) == "LoopHandle(%i1)" and outer != strip
    assert 'attributes {acme.strip = "sse"}' in str(sch.mod)
    assert '%i0, %i1 = sched.strip_mine %i {width = 4, note = "sse"} : loop, loop' in str(sch.trace)
    assert 'i0, i1 = sch.strip_mine(i, width=4, note="sse")' in weft.trace_as_python(sch.trace)
    again = weft.Schedule(module)
    weft.run_trace(again, weft.trace_as_python(sch.trace))
    assert str(again.mod) == str(sch.mod)
    check_schedule(module, sch)


def test_properties_with_defaults_may_be_absent(site: Path) -> None:
    """IR that was written before a primitive got a parameter stays valid."""
    module = added_one()
    head = '%c = sched.get_block "C" : block\n%i = sched.get_loops %c : loop\n'
    trace = weft.parse_trace(f"sched.func @s {{\n{head}%a, %b = sched.strip_mine %i : loop, loop\n}}")
    sch = weft.Schedule(module)
    sch.replay(trace)
    assert "tir.for %i0 in 8" in str(sch.mod) and 'acme.strip = "lanes"' in str(sch.mod)
    assert "a, b = sch.strip_mine(i)" in weft.trace_as_python(trace)


def test_refusals_are_those_of_primitives(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed_universe()
    sch = weft.Schedule(added_one())
    (loop,) = sch.get_loops("C")
    before = str(sch.mod)
    with pytest.raises(weft.ScheduleError, match=r"strip_mine\(%i, 1, 'lanes'\): requirement 1.*\[strip_mine\.1\]"):
        sch.strip_mine(loop, 1)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError, match="strip_mine: argument 'width' must be int, got 'x' of type str"):
        sch.strip_mine(loop, "x")  # pyright: ignore[reportAttributeAccessIssue]
    taken = r"it takes \(loop: LoopHandle, width: int = 8, note: str = 'lanes'\)"
    with pytest.raises(TypeError, match=taken):
        sch.strip_mine(loop, 4, "sse")  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match="did you mean 'strip_mine'"):
        sch.strip_min(loop)  # pyright: ignore[reportAttributeAccessIssue]
    assert str(sch.mod) == before
    assert execute(["explain", "strip_mine.1"]) == 0
    assert "the docstring of acmestrips.StripMine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "wanted"), [("", "in 8 attr"), (" width=4 note=sse", '4 attributes {acme.strip = "sse"')]
)
def test_weft_opt_knows_the_pass(site: Path, options: str, wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Options with defaults are optional."""
    file = site / "f.mlir"
    file.write_text(str(added_one()))
    assert (
        WeftOptMain(args=[str(file), "-p", f"tir-strip-mine{{block=C loop=0{options}}}", "--validate"]).execute() == 0
    )
    assert wanted in capsys.readouterr().out
    assert WeftOptMain(args=["--help-pass", "tir-strip-mine"]).execute() == 0
    assert "The iterations of a strip." in capsys.readouterr().out


def test_commands_know_schedules_with_the_step(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = '%c = sched.get_block "C" : block\n%i = sched.get_loops %c : loop\n'
    steps = f"sched.func @s {{\n{head}%a, %b = sched.strip_mine %i : loop, loop\n}}"
    file = site / "f.mlir"
    file.write_text(str(added_one()).rstrip().removesuffix("}") + steps + "\n}\n")
    assert execute(["run", str(file), "--check"]) == 0
    assert "schedule  @s applied" in capsys.readouterr().out


@dataclass(frozen=True)
class Halve(Primitive):
    """Split a loop in two.

    Requirements: none.
    """

    loop: ForOp

    def plan(self):
        return Split(self.loop, (2, 0)).plan()


def test_declarations_are_checked() -> None:
    loop = Parameter("loop", kinds.LOOP_HANDLE)
    with pytest.raises(weft.CompileError, match="primitive 'split': a schedule has a method of this name"):
        weft.register_primitive(Step("split", "", (loop,)))(Halve)
    with pytest.raises(weft.CompileError, match="primitive 'script': a schedule has a method"):
        weft.register_primitive(Step("script", "", (loop,)))(Halve)
    with pytest.raises(weft.CompileError, match="primitive 'lower_loops': there is a pass tir-lower-loops"):
        weft.register_primitive(Step("lower_loops", "", (loop,)))(Halve)
    with pytest.raises(weft.CompileError, match="primitive 'third': its class is Third, got Halve"):
        weft.register_primitive(Step("third", "", (loop,)))(Halve)
    other = Parameter("n", kinds.INTEGER)
    with pytest.raises(weft.CompileError, match="are the parameters of the step, loop, n; got loop"):
        weft.register_primitive(Step("halve", "", (loop, other)))(Halve)
    with pytest.raises(weft.CompileError, match="no primitive 'halve' is registered"):
        unregister_primitive("halve")
    weft.register_primitive(Step("halve", "Split a loop in two.", (loop,), (LOOP,), consumes=True))(Halve)
    assert REGISTERED["halve"] is Halve and "halve" in STEPS
    unregister_primitive("halve")
    assert not hasattr(weft.Schedule, "halve") and "halve" not in STEPS
    assert "tir-halve" not in installed_universe().all_passes


def test_steps_of_weft_accept_older_schedules() -> None:
    """`cse_thresh` has a default: a schedule without it is valid."""
    A = te.placeholder((8,), "float32", name="A")
    module = te.create_func([A, te.compute((8,), lambda i: A[i * 3 % 8], name="C")])
    steps = '%c = sched.get_block "C" : block\n%x = sched.cache_index %c {scope = "global"} : block'
    older, newer = weft.Schedule(module), weft.Schedule(module)
    older.replay(weft.parse_trace(f"sched.func @s {{\n{steps}\n}}"))
    newer.cache_index("C", "global", 0)
    assert str(older.mod) == str(newer.mod)


def test_an_option_with_a_default_is_optional(capsys: pytest.CaptureFixture[str]) -> None:
    assert WeftOptMain(args=["--help-pass", "tir-cache-index"]).execute() == 0
    shown = capsys.readouterr().out
    assert "cse-thresh: an integer (default: 0)" in shown and "'tir-cache-index{block=B scope=local}'" in shown


def _space(sch: weft.Schedule) -> None:
    (i,) = sch.get_loops("C")
    width = sch.sample_categorical([4, 8], [0.5, 0.5])
    _, inner = sch.split(i, [None, width])
    sch.strip_mine(inner, 2)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.slow
def test_a_search_uses_the_step_of_a_package(tmp_path: Path, site: Path) -> None:
    installed_universe()  # as tools do
    tuned = weft.tune(added_one(), space=_space, trials=2, database=str(tmp_path / "tune.db"))
    assert "2 trials, " in tuned.table() and "failed" not in tuned.table(), tuned.table()


@pytest.mark.slow
def test_a_search_says_that_its_processes_do_not_know_a_step(tmp_path: Path, site: Path) -> None:
    (site / "acmestrips-0.1.0.dist-info" / "entry_points.txt").unlink()  # a script instead of a package
    import acmestrips  # pyright: ignore[reportMissingImports, reportUnusedImport]  # noqa: F401

    tuned = weft.tune(added_one(), space=_space, trials=2, database=str(tmp_path / "tune.db"))
    table = tuned.table()
    assert "2 trials (2 failed), " in table
    assert " 0.00 " not in table, "times of some nanoseconds have digits"
    assert "all trials failed, the first: " in table
    assert "unknown operation 'sched.strip_mine'" in table
    assert "a primitive that a script registers exists in its process only" in table
