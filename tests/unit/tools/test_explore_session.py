"""Sessions of `weft explore`, without a front end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import weft
from weft.passes.schedule.replay import apply_schedule
from weft.support.errors import CompileError, ScheduleError
from weft.tools.explore.completion import completions
from weft.tools.explore.differences import changed_words, changes, side_by_side
from weft.tools.explore.session import Session

ROOT = Path(__file__).parents[3]
MM_RELU = str(ROOT / "examples/mm_relu.mlir")
MLP = str(ROOT / "examples/mlp.mlir")


@pytest.fixture(name="session")
def _session() -> Session:
    return Session(MM_RELU)


def titles(session: Session) -> list[str]:
    return [state.title for state in session.states]


def test_the_pipeline_runs_as_a_build(session: Session) -> None:
    """Steps of the schedule in the file, then the passes of the lowering; the result is that of `weft.build`."""
    assert session.upcoming() == ["convert-from-upstream", "schedules", "pack constants", "tir to low"]
    session.step(2)
    assert titles(session) == ["input", "schedules", "i0, i1 = split(i, factors=[None, 4])"]
    assert "sched.func" in session.states[0].text
    assert "sched.func" not in session.state.text
    session.step_to_end()
    assert session.upcoming() == []
    names = [title.partition("{")[0] for title in titles(session)]
    assert names[13:15] == ["vectorize(ax1)", "tir-place-buffers"]
    assert names[-1] == "low-choose-threads"
    assert "low.params" in session.state.text
    assert session.run().agrees
    with pytest.raises(CompileError, match="the pipeline has ended"):
        session.step()


def test_moves(session: Session) -> None:
    session.step(3)
    before = session.state
    session.back(2)
    assert session.at == 1
    assert session.step() is session.states[2]
    assert session.step() is before
    assert len(session.states) == 4
    session.goto(0)
    with pytest.raises(CompileError, match="this is the first state"):
        session.back()
    with pytest.raises(CompileError, match="states are numbered 0 to 3, got 4"):
        session.goto(4)
    with pytest.raises(CompileError, match="step takes a positive count, got 0"):
        session.step(0)
    with pytest.raises(CompileError, match="there are only 1 states before"):
        session.goto(1)
        session.back(2)


def test_primitives_take_names_of_the_program(session: Session) -> None:
    session.apply("split(Y.i, [None, 8])")
    session.apply("a, b = split(%i, factors=[None, 2])")
    session.apply("sch.reorder(b, mm_relu.C.j)")
    session.apply("vectorize(C[2])")
    session.apply('annotate("Y", "note", 1)')
    loops = str(session.loops()[0])
    assert "loop i0 in 16" in loops
    assert "loop i0 in 64" in loops
    assert "loop j in 128  vectorized" in loops
    assert "note" in session.state.text
    with pytest.raises(CompileError, match=r"'i1' names 2 loops or blocks: write Y\.i1 or C\.i1"):
        session.apply("unroll(i1)")
    with pytest.raises(CompileError, match="unknown handle 'Z'"):
        session.apply("compute_inline(Z)")
    with pytest.raises(CompileError, match="unknown step 'vectorise', did you mean 'vectorize'"):
        session.apply("vectorise(k)")
    with pytest.raises(CompileError, match="missing a required argument"):
        session.apply("split(k)")
    with pytest.raises(CompileError, match="invalid syntax"):
        session.apply("split(k,, 2)")
    with pytest.raises(CompileError, match="apply takes a primitive"):
        session.apply("  ")


def test_a_refusal_changes_nothing(session: Session) -> None:
    session.apply("split(k, [None, 8])")
    text, trace = session.state.text, session.saved_text("trace")
    with pytest.raises(ScheduleError) as refused:
        session.apply("parallel(k0)")
    assert 'iteration (i=0, j=0, k0=0, k1=0) of block "Y" writes Y[0, 0]' in str(refused.value)
    assert session.at == 1
    assert session.state.text == text
    assert session.saved_text("trace") == trace


def test_undo_and_redo(session: Session) -> None:
    session.step(4)
    session.back(3)
    session.apply("split(C.i, [None, 2])")
    assert len(session.states) == 3
    session.apply("cse")
    assert session.state.kind == "primitive"
    session.undo()
    session.undo()
    assert session.at == 1
    assert len(session.states) == 5
    with pytest.raises(CompileError, match="nothing to undo"):
        session.undo()
    session.redo()
    assert session.state.title == "split(C.i, [None, 2])"
    session.redo()
    assert session.state.title == "cse"
    with pytest.raises(CompileError, match="nothing to redo"):
        session.redo()
    session.undo()
    session.apply("split(C.i1, [None, 1])")
    with pytest.raises(CompileError, match="nothing to redo"):
        session.redo()


def test_steps_of_the_schedule_go_on_after_a_primitive(session: Session) -> None:
    session.step(2)
    session.apply("mine, = split(C.j, [None])")
    session.step()
    assert session.state.title == "j0, j1 = split(j, factors=[None, 64])"
    session.apply("vectorize(mine)")
    assert "loop j0 in 128  vectorized" in str(session.loops()[0])
    session.apply("canonicalize")
    with pytest.raises(CompileError, match="a pass has ended the schedule that returned %i0, %j0, %k, %i1, %j1"):
        session.step()


def test_passes_of_the_user() -> None:
    session = Session(MM_RELU, passes="cse,apply-schedule,lower-tir-to-low{target=llvm},func.func(canonicalize)")
    assert session.upcoming() == ["cse", "apply-schedule", "lower-tir-to-low", "func.func(canonicalize)"]
    session.step_to_end()
    names = [title.partition("{")[0] for title in titles(session)]
    assert "vectorize(ax1)" in names
    assert "tir-flatten" in names
    assert names[-1] == "func.func(canonicalize)"
    with pytest.raises(CompileError, match="unknown pass 'cce'"):
        Session(MM_RELU, passes="cce")
    with pytest.raises(CompileError, match="unknown pass 'cce'"):
        session.apply("cce")


def test_a_graph_is_lowered_pass_by_pass() -> None:
    session = Session(MLP)
    session.step_to_change()
    assert session.state.text != session.states[0].text
    while "graph-fuse" not in session.state.title:
        session.step()
    assert session.run().agrees
    session.step_to_end()
    assert session.buffers()[-1][0] == "constants"
    assert any(state.title.startswith("lower-te-to-tir") for state in session.states)
    assert any(state.kind == "step" and "default" in state.summary for state in session.states)
    assert session.run().agrees


@pytest.mark.slow
def test_many_default_schedules_are_one_step(tmp_path: Path) -> None:
    text = Path(MM_RELU).read_text().partition("func.func")[2].partition("// Tiles")[0]
    file = tmp_path / "many.mlir"
    file.write_text("".join(f"func.func{text.replace('@mm_relu', f'@f{n}')}" for n in range(9)))
    session = Session(str(file))
    session.step_to_change()
    session.step_to_change()
    assert session.state.title == "default schedules"
    assert session.changed_functions() == [f"f{n}" for n in range(9)]
    assert session.run("f8").agrees


def test_attributes_of_the_module_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text("builtin.module attributes {note = 1 : i64} {\n  func.func @f() {\n    func.return\n  }\n}\n")
    text = Session(str(file)).state.text
    assert text == "builtin.module attributes {note = 1 : i64} {\n}\nfunc.func @f() {\n  func.return\n}"


@pytest.mark.slow
def test_runs_at_any_point(session: Session) -> None:
    assert session.run().lines[1].startswith("C agrees with the interpreter")
    slow = session.time()
    assert slow.function == "mm_relu"
    assert slow.gflops is not None
    session.step(13)
    assert session.run().agrees
    assert session.time().median < slow.median
    session.step(6)  # in the middle of the lowering, whose rest runs first
    assert session.run().agrees
    assert set(session.times) == {session.states[0], session.states[13]}
    with pytest.raises(CompileError, match="has no function 'f'"):
        session.run("f")


def test_a_wrong_pass_is_found_by_a_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.tools.explore import session as module

    real = module.call

    def wrong(compiled: object, values: dict[str, object]) -> None:
        real(compiled, values)  # type: ignore[arg-type]
        values["C"][3, 4] += 1.0  # type: ignore[index]

    monkeypatch.setattr(module, "call", wrong)
    result = session.run()
    assert not result.agrees
    assert "C DIFFERS from the interpreter" in result.lines[1]
    assert "at [3, 4]" in result.lines[1]


def test_views(session: Session) -> None:
    assert session.changed_functions() == ["mm_relu"]
    ((name, table),) = session.buffers()
    assert name == "@mm_relu"
    assert [row[0] for row in table.rows] == ["A", "B", "C", "Y"]
    session.step_to_end()
    assert session.changed_functions() == []
    ((_, table),) = session.buffers("mm_relu")
    assert [row[1] for row in table.rows] == ["Y"]
    with pytest.raises(CompileError, match="unknown function 'mm_rel', did you mean 'mm_relu'"):
        session.loops("mm_rel")


@pytest.mark.slow
def test_saved_traces_and_programs_give_the_state(session: Session, tmp_path: Path) -> None:
    session.step(1)
    base = weft.parse(session.saved_text("program"))
    with pytest.raises(CompileError, match="no step of a schedule was applied"):
        session.save("trace", str(tmp_path / "t.mlir"))
    session.step(3)
    session.apply("parallel(i0)")
    session.save("trace", str(tmp_path / "t.mlir"))
    apply_schedule(base, weft.parse_trace((tmp_path / "t.mlir").read_text()))
    assert str(base) == str(session.state.module)
    session.save("program", str(tmp_path / "p.mlir"))
    assert str(weft.parse_file(tmp_path / "p.mlir")) == str(session.state.module)

    session.save("python", str(tmp_path / "p.py"))
    done = subprocess.run([sys.executable, tmp_path / "p.py"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == str(session.state.module).strip()

    session.save("script", str(tmp_path / "script.py"))
    again = Session(f"{tmp_path / 'script.py'}:Module")
    assert str(again.loops()[0]) == str(session.loops()[0])


def test_files_are_not_overwritten(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    file.write_text("mine")
    with pytest.raises(FileExistsError, match="exists"):
        session.save("program", str(file))
    assert file.read_text() == "mine"
    session.save("program", str(file), overwrite=True)
    assert "func.func @mm_relu" in file.read_text()
    with pytest.raises(CompileError, match="there is no folder"):
        session.save("program", str(tmp_path / "none/p.mlir"))
    with pytest.raises(CompileError, match="unknown format 'trce', did you mean 'trace'"):
        session.save("trce", str(tmp_path / "q"))
    assert not (tmp_path / "q").exists()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("spl", ["split("]),
        ("split(", ["Y.i", "Y.j", "k", "C.i", "C.j", "factors=", "disable_predication="]),
        ("split(Y.", ["Y.i", "Y.j", "Y.k"]),
        ("split(%k", ["k"]),
        ("a, b = split(C.i, ", ["[None, ", "factors=", "disable_predication="]),
        ("split(C.i, [None, ", []),
        ("compute_at(", ["Y", "C", "preserve_unit_loops=", "index="]),
        ('cache_read(Y, "', ['"A"', '"B"', '"Y"', '"C"']),
        ('cache_read(Y, "A", "s', ['"shared"']),
        ('bind(k, "thr', ['"threadIdx.x"', '"threadIdx.y"', '"threadIdx.z"']),
        ("tir-spl", ["tir-split", "tir-split-constant-packing"]),
        ("tir-split{bl", ["block="]),
        ("nonsense(", []),
    ],
)
def test_completions(session: Session, line: str, wanted: list[str]) -> None:
    found = completions(line, session.state)
    assert [one.text for one in found] == wanted
    assert all(line[one.start :].lstrip('%"') in one.text for one in found)


def test_differences_ignore_indentation() -> None:
    before = ["a {", "  b = 1", "  c", "}"]
    after = ["new {", "  a {", "    b = 2", "    c", "  }", "}"]
    rows = side_by_side(before, after)
    assert [(row.kind, row.left, row.right) for row in rows] == [
        ("added", None, 0),
        ("indented", 0, 1),
        ("changed", 1, 2),
        ("indented", 2, 3),
        ("added", None, 4),
        ("same", 3, 5),
    ]
    assert changes(rows) == [0, 2, 4]
    assert changed_words("  b = 1", "  b = 2") == ([(6, 7)], [(6, 7)])
    assert [row.kind for row in side_by_side(before, before)] == ["same"] * 4
    assert [row.kind for row in side_by_side([], ["x"])] == ["added"]


def test_bad_input(tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("func.func @f( {")
    with pytest.raises(CompileError, match=r"bad\.mlir:1:15"):
        Session(str(tmp_path / "bad.mlir"))
    with pytest.raises(OSError, match="none"):
        Session(str(tmp_path / "none.mlir"))
    with pytest.raises(CompileError, match="unknown target"):
        Session(MM_RELU, target="llvn")
