"""Handles, queries and traces of the Python schedule, and schedules as IR."""

from __future__ import annotations

from dataclasses import fields

import pytest
from refusal import PRODUCER_CONSUMER
from schedule_programs import PROGRAMS
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import CompileError, Schedule
from weft.dialects import sched
from weft.dialects.sched import PRIMITIVE_STEPS
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.apply_schedule import ApplySchedulePass
from weft.passes.schedule.primitive import PRIMITIVES, primitive_class
from weft.passes.schedule.primitive_passes import primitive_pass

MATMUL = PROGRAMS["matmul_relu"].text
TWO = PRODUCER_CONSUMER + PRODUCER_CONSUMER.replace("@f", "@g")


def schedule_of(text: str = MATMUL) -> Schedule:
    return Schedule(weft.parse(text, "program.mlir"))


def applied(program: str, *steps: str, name: str = "s") -> ModuleOp:
    """The module after its own schedule ran."""
    body = "\n".join(f"  {step}" for step in steps)
    module = weft.parse(f"{program}\nsched.func @{name} {{\n{body}\n}}", "file.mlir")
    ApplySchedulePass().apply(Context(), module)
    return module


def test_queries():
    s = schedule_of()
    y, c = s.get_block("Y"), s.get_block("C", func_name="f")
    assert [s.get(h).induction_variable.name_hint for h in s.get_loops(y)] == ["i", "j", "k"]
    assert [s.get(h) for h in s.get_producers(c)] == [s.get(y)]
    assert [s.get(h) for h in s.get_consumers(y)] == [s.get(c)]
    assert s.get_child_blocks(y) == [] and s.get_producers(y) == [] and s.get_consumers(c) == []
    assert isinstance(s.get(y), BlockOp) and isinstance(s.get(s.get_loops("C")[1]), ForOp)
    assert repr(s) == "Schedule of @f after 10 steps"


def test_child_blocks():
    from block_refusals import NESTED_ROWS

    s = schedule_of(NESTED_ROWS)
    outer = s.get_block("O")
    (inner,) = s.get_child_blocks(outer)
    assert s.get(inner).label == "C"
    assert [s.get(h).induction_variable.name_hint for h in s.get_loops(inner)] == ["j"]
    s = schedule_of()
    s.reverse_compute_at("C", s.get_loops("Y")[0])
    i, j, _ = s.get_loops("Y")
    assert [s.get(h).label for h in s.get_child_blocks(i)] == ["Y", "C"]
    assert [s.get(h).label for h in s.get_child_blocks(j)] == ["Y"]
    again = schedule_of()
    again.replay(s.trace)
    assert str(again.trace) == str(s.trace)


def test_the_given_module_stays():
    module = weft.parse(MATMUL)
    text = str(module)
    s = Schedule(module)
    s.split(s.get_loops("Y")[0], [None, 4])
    assert str(module) == text != str(s.mod)


def test_an_expired_handle_is_an_error():
    s = schedule_of()
    i, j, _ = s.get_loops("Y")
    s.split(i, [None, 4])
    for use in (lambda: s.split(i, [None, 4]), lambda: s.fuse(i, j), lambda: s.parallel(i), lambda: s.get(i)):
        with pytest.raises(CompileError, match=r"expired handle %i: the loop it stood for was consumed .*get_loops"):
            use()
    s.split(j, [None, 2])


def test_an_inlined_block_is_an_expired_handle():
    s = schedule_of(PRODUCER_CONSUMER)
    b = s.get_block("B")
    s.compute_inline(b)
    with pytest.raises(CompileError, match="expired handle %b: the block it stood for was consumed"):
        s.get_loops(b)


def test_a_reordered_loop_keeps_its_handle():
    s = schedule_of()
    i, j, k = s.get_loops("Y")
    s.reorder(k, i)
    assert [s.get(h) for h in s.get_loops("Y")] == [s.get(h) for h in (k, j, i)]


def test_a_handle_of_another_schedule_is_an_error():
    s, other = schedule_of(), schedule_of()
    with pytest.raises(CompileError, match="the handle belongs to another schedule"):
        s.split(other.get_loops("Y")[0], [None, 4])


def test_a_handle_of_the_wrong_kind_is_an_error():
    s = schedule_of()
    y, loops = s.get_block("Y"), s.get_loops("Y")
    before = str(s.mod)
    with pytest.raises(TypeError, match=r"split: argument 'loop' must be LoopHandle, got BlockHandle\(%y\)"):
        s.split(y, [None, 4])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"fuse: argument 'loops' must be LoopHandle, got BlockHandle\(%y\)"):
        s.fuse(loops[0], y)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"argument 'block' must be BlockHandle or str, got LoopHandle\(%i\)"):
        s.compute_inline(loops[0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="split: argument 'loop' must be LoopHandle, got 'Y' of type str"):
        s.split("Y", [None, 4])  # pyright: ignore[reportArgumentType]
    assert str(s.mod) == before


def test_names_that_are_not_there():
    s = schedule_of()
    with pytest.raises(CompileError, match=r"unknown block 'X' \(known: 'C', 'Y'\)"):
        s.get_block("X")
    with pytest.raises(CompileError, match="unknown function 'ff', did you mean 'f'"):
        s.get_block("Y", func_name="ff")
    with pytest.raises(CompileError, match=r"unknown block 'y' in function 'f' \(known|did you mean"):
        s.get_block("y", func_name="f")
    with pytest.raises(CompileError, match="block 'Y' does not read a buffer 'C'"):
        s.cache_read("Y", "C", "local")
    with pytest.raises(CompileError, match="reorder needs at least 1 loop, got 0"):
        s.reorder()
    with pytest.raises(CompileError, match="fuse needs at least 1 loop, got 0"):
        s.fuse()


def test_a_name_in_two_functions_is_ambiguous():
    s = schedule_of(TWO)
    with pytest.raises(CompileError, match=r"2 blocks are called 'B' \(functions: f, g\): name the function"):
        s.get_block("B")
    s.compute_inline(s.get_block("B", func_name="g"))
    assert "func.func @f" in str(s.mod) and str(s.mod).count('tir.block "B"') == 1


def test_a_refused_step_is_not_in_the_trace():
    s = schedule_of()
    i = s.get_loops("Y")[0]
    before = str(s.trace)
    with pytest.raises(weft.ScheduleError):
        s.split(i, [2, 3])
    assert str(s.trace) == before
    assert i.value.first_use is None


def test_a_trace_is_ir():
    s = schedule_of()
    y = s.get_block("Y", func_name="f")
    _, j, k = s.get_loops(y)
    j0, j1 = s.split(j, [None, 4])
    s.reorder(j0, k, j1)
    s.cache_read(y, "A", "shared")
    assert str(s.trace) == (
        "sched.func @trace {\n"
        '  %y = sched.get_block "Y" in @f : block\n'
        "  %i, %j, %k = sched.get_loops %y : loop, loop, loop\n"
        "  %j0, %j1 = sched.split %j {factors = [0, 4]} : loop, loop\n"
        "  sched.reorder %j0, %k, %j1\n"
        '  %a_shared = sched.cache_read %y {index = 0, scope = "shared"} : block\n'
        "}"
    )
    again = weft.parse(str(s.trace))
    assert str(again.body.block.first_op) == str(s.trace)


def test_a_trace_of_another_shape_does_not_replay():
    s = schedule_of()
    s.get_loops("Y")
    other = schedule_of(PRODUCER_CONSUMER.replace('"B"', '"Y"'))
    with pytest.raises(CompileError, match=r"sched\.get_loops gives 1 handles, 3 are named"):
        other.replay(s.trace)


def test_a_replay_goes_on_from_what_there_is():
    first = schedule_of()
    first.split(first.get_loops("Y")[0], [None, 4])
    second = schedule_of()
    second.reorder(*reversed(second.get_loops("Y")[:2]))
    second.replay(first.trace)
    assert [second.get(h).induction_variable.name_hint for h in second.get_loops("Y")] == ["j0", "j1", "i", "k"]
    with pytest.raises(CompileError, match=r"sched\.get_loops gives 4 handles, 3 are named"):
        second.replay(first.trace)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (['%y = sched.get_block "X" : block'], "unknown block 'X'"),
        (['%y = sched.get_block "Y" in @g : block'], "unknown function 'g'"),
        (
            ['%y = sched.get_block "Y" : block', "%i, %j = sched.get_loops %y : loop, loop"],
            "sched.get_loops gives 3 handles, 2 are named",
        ),
        (
            [
                '%y = sched.get_block "Y" : block',
                "%i, %j, %k = sched.get_loops %y : loop, loop, loop",
                "%f = sched.fuse %i, %j : loop",
                "sched.reorder %k, %f, %f",
            ],
            "requirement 1, the loops are in one chain",
        ),
    ],
)
def test_a_schedule_in_a_file_that_fails(steps: list[str], message: str):
    with pytest.raises((CompileError, weft.ScheduleError), match=message) as caught:
        applied(MATMUL, *steps)
    assert "file.mlir:" in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            ["sched.split %i {factors = [0, 4]} : loop, loop"] * 2,
            "uses handle %i, which sched.split before it has consumed",
        ),
        (["%a, %b, %c = sched.split %i {factors = [0, 4]} : loop, loop, loop"], "gives 2 handles, 3 are named"),
        (["%a, %b = sched.tile %i, %j {factors = [4, 4]} : loop, loop"], "sched.tile gives 4 handles, 2 are named"),
        (["sched.split %y {factors = [0, 4]} : loop, loop"], "!sched.loop"),
        (["sched.split %i : loop, loop"], "factors"),
        (["%x = arith.constant 1 : index"], "holds schedule steps only, got arith.constant"),
    ],
)
def test_a_schedule_in_a_file_that_is_not_well_formed(steps: list[str], message: str):
    lines = ['%y = sched.get_block "Y" : block', "%i, %j, %k = sched.get_loops %y : loop, loop, loop", *steps]
    with pytest.raises(CompileError, match=message):
        applied(MATMUL, *lines)


def test_apply_schedule_runs_all_or_the_named_one():
    text = PRODUCER_CONSUMER + "".join(
        f'\nsched.func @{name} {{\n  %b = sched.get_block "B" in @f : block\n'
        f"  %i = sched.get_loops %b : loop\n  {step}\n}}"
        for name, step in (("one", "sched.unroll %i"), ("two", "sched.compute_inline %b"))
    )
    module = weft.parse(text)
    ApplySchedulePass().apply(Context(), module)
    assert "sched" not in str(module) and 'tir.block "B"' not in str(module)
    module = weft.parse(text)
    ApplySchedulePass("one").apply(Context(), module)
    assert "unrolled" in str(module) and "@two" in str(module) and "@one" not in str(module)
    with pytest.raises(CompileError, match=r"unknown schedule 'three' \(known: 'one', 'two'\)"):
        ApplySchedulePass("three").apply(Context(), weft.parse(text))


@pytest.mark.parametrize("name", PRIMITIVES)
def test_four_faces_of_a_primitive(name: str):
    """Step, pass and method are called as the primitive; the pass says what it is."""
    primitive, step = primitive_class(name), PRIMITIVE_STEPS[name]
    assert (primitive.NAME, primitive.__name__, sched.STEPS[name].name) == (name, step.class_name, f"sched.{name}")
    assert [field.name for field in fields(primitive)] == [parameter.name for parameter in step.parameters]
    assert callable(getattr(Schedule, name))
    made = primitive_pass(name)
    assert made.name == step.pass_name == f"tir-{name.replace('_', '-')}"
    assert "Requirements:" in (made.__doc__ or "")


def test_loop_positions_of_a_pass():
    from weft.passes.schedule.primitive_passes import read_arguments

    module = weft.parse(MATMUL, "program.mlir")
    with pytest.raises(CompileError, match=r'block "Y" has 3 loops, 0\.\.2; there is no loop 3'):
        read_arguments("split", {"block": "Y", "loop": 3, "factors": (0, 4), "func": None}, module)
    with pytest.raises(CompileError, match="there is no loop -1"):
        read_arguments("compute_at", {"block": "Y", "at": "C", "loop": -1, "func": None}, module)


def test_copies_have_names_of_their_own():
    s = schedule_of()
    handles = [s.cache_read("Y", "A", "local"), s.cache_read("A_local", "A", "local"), s.cache_write("C", 0, "local")]
    assert [s.get(handle).label for handle in handles] == ["A_local", "A_local_1", "C_local"]
    assert s.get(s.get_block("A_local_1")) is s.get(handles[1])
