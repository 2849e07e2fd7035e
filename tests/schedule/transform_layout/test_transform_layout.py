"""transform_layout: its requirements, each with what refutes it."""

from __future__ import annotations

import pytest
from refusal import TEMPORARY, block, copy, function
from schedule_checks import check_schedule, refused

import weft
from weft import te
from weft.schedule.traces import run_python, trace_as_python

TWO = "\n  %B = memref.alloc() : memref<6x10xf32>"


def nest(label: str, source: str, target: str) -> str:
    return f"""tir.for %i in 6 {{ tir.for %j in 10 {{
    tir.block "{label}" iters(%vi: spatial<6>, %vj: spatial<10>) = [%i, %j] {{
      %a = memref.load %{source}[%vi, %vj] : memref<6x10xf32>
      memref.store %a, %{target}[%vi, %vj] : memref<6x10xf32>
    }} }} }}"""


PROGRAM = function(
    nest("B", "A", "B"),
    nest("C", "B", "C"),
    parameters="%A: memref<6x10xf32>, %C: memref<6x10xf32>",
    temporaries=TWO,
)


def schedule(text: str = PROGRAM) -> weft.Schedule:
    return weft.Schedule(weft.parse(text, "f.mlir"))


def test_1_that_many_buffers() -> None:
    refused(
        lambda: schedule().transform_layout("B", ("write", 1), lambda i, j: (j, i)),
        1,
        "there is no buffer 1",
        "the buffers it writes are 0: B",
    )
    with pytest.raises(weft.CompileError, match=r"does not access a buffer 'X' \(known: 'A', 'B'\)"):
        schedule().transform_layout("B", "X", lambda i, j: (j, i))
    with pytest.raises(weft.CompileError, match=r"\('read', 0\), \('write', 0\) or by its name, got \('none', 0\)"):
        schedule().transform_layout("B", ("none", 0), lambda: ())


def test_2_to_indices_that_are_not_negative() -> None:
    error = refused(
        lambda: schedule().transform_layout("B", "B", lambda i, j: (j - i, i)),
        2,
        "below 0, in dimension 0",
    )
    assert error.violation.counterexample == {"element": {"d0": 1, "d1": 0}}


def test_2_as_many_indices_as_the_buffer_has() -> None:
    step = 'sched.transform_layout %b {buffer = ["write", 0], index_map = affine_map<(d0) -> (d0)>}'
    trace = weft.parse(f'sched.func @s {{ %b = sched.get_block "B" : block\n {step} }}', "s.mlir")
    refused(
        lambda: schedule().replay(next(iter(trace.ops))),  # pyright: ignore[reportArgumentType]
        2,
        "it takes 1 indices, there are 2",
        "B is memref<6x10xf32>",
    )
    with pytest.raises(weft.CompileError, match="the index map takes 1 indices, there are 2"):
        schedule().transform_layout("B", "B", lambda i: (i,))


@pytest.mark.parametrize(
    ("index_map", "first", "second"),
    [(lambda i, j: (i, j // 2), [0, 0], [0, 1]), (lambda i, j: (i * 9 + j,), [0, 9], [1, 0])],
)
def test_3_no_two_elements_meet(index_map: object, first: list[int], second: list[int]) -> None:
    error = refused(
        lambda: schedule().transform_layout("B", "B", index_map),  # pyright: ignore[reportArgumentType]
        3,
        f"B{first} and B{second} would both be stored at",
    )
    assert error.violation.counterexample == {
        "first element": {"d0": first[0], "d1": first[1]},
        "second element": {"d0": second[0], "d1": second[1]},
    }


def test_4_padding_needs_a_value() -> None:
    error = refused(
        lambda: schedule().transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4)),
        4,
        "no element is mapped to [0, 2, 2]",
        "legal: pad_value=..., which the rest of the new buffer, 6x3x4, is filled with",
    )
    assert error.violation.counterexample == {"index": {"d0": 0, "d1": 2, "d2": 2}}


def test_5_the_value_is_of_the_element_type() -> None:
    text = PROGRAM.replace("f32", "i8")
    text = text.replace("0.0 : i8", "0.0 : f32").replace("1.0 : i8", "1.0 : f32")
    for value in (0.5, 128, -129):
        refused(
            lambda value=value: schedule(text).transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4), value),
            5,
            "is not a value of type i8",
        )


def test_5_padding_of_inputs_is_the_callers() -> None:
    refused(
        lambda: schedule().transform_layout("B", "A", lambda i, j: (i, j // 4, j % 4), 0),
        5,
        "the function only reads A: its padding would be the caller's",
        "legal: cache_read the buffer, and transform the copy",
    )


def test_5_extents_that_only_callers_know() -> None:
    nests = [nest(label, source, "T").replace("in 6 {", "in %n {").replace("<6>", "<%n>").replace("6x", "?x")
             for label, source in (("T", "A"), ("U", "T"))]  # fmt: skip
    text = function(*nests, parameters="%n: index, %A: memref<?x10xf32>, %T: memref<?x10xf32>")
    refused(
        lambda: schedule(text).transform_layout("T", "T", lambda i, j: (i, j // 4, j % 4), 0),
        5,
        "the function does not know extent 0 of T",
        "legal: state it with tir.assume_shape",
    )
    known = text.replace("tir.for", "tir.assume_shape %T[%n] : memref<?x10xf32>\ntir.for", 1)
    sch = schedule(known)
    sch.transform_layout("T", "T", lambda i, j: (i, j // 4, j % 4), 0)
    sch.mod.verify()
    assert 'tir.block "T_pad" iters(%v0: spatial<%n>, %v1: spatial<1>, %v2: spatial<2>)' in str(sch.mod)


def test_6_pointers() -> None:
    text = PROGRAM.replace(
        "%a = memref.load %B[%vi, %vj] : memref<6x10xf32>",
        "%p = low.access_ptr %B[%vi, %vj] sizes [1, 1] read : memref<6x10xf32>\n"
        "%a = func.call @first(%p) : (!ptr_xdsl.ptr) -> f32",
    )
    text = "func.func private @first(!ptr_xdsl.ptr) -> f32\n" + text
    refused(
        lambda: schedule(text).transform_layout("B", "B", lambda i, j: (j, i)),
        6,
        "low.access_ptr works on B in its present layout",
    )


def test_6_strides_of_callers_and_alignment() -> None:
    text = PROGRAM.replace("%A: memref<6x10xf32>", "%A: memref<6x10xf32, strided<[?, 1], offset: ?>>").replace(
        "%A[%vi, %vj] : memref<6x10xf32>", "%A[%vi, %vj] : memref<6x10xf32, strided<[?, 1], offset: ?>>"
    )
    refused(lambda: schedule(text).transform_layout("B", "A", lambda i, j: (j, i)), 6, "its strides are the caller's")
    sch = schedule()
    sch.storage_align("B", 0, 0, 16, 0)
    refused(lambda: sch.transform_layout("B", "B", lambda i, j: (j, i)), 6, "storage_align speaks of the axes of B")


def test_6_callers_in_the_module() -> None:
    text = (
        PROGRAM
        + """
    func.func @g(%A: memref<6x10xf32>, %C: memref<6x10xf32>) {
      func.call @f(%A, %C) : (memref<6x10xf32>, memref<6x10xf32>) -> ()
      func.return
    }"""
    )
    refused(
        lambda: schedule(text).transform_layout("C", "C", lambda i, j: (j, i)),
        6,
        "func.call passes C in its present layout",
    )


def test_6_dynamic_extents_of_parameters_stay_whole() -> None:
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    sch = weft.Schedule(te.create_func([A, te.compute((n, 8), lambda i, j: A[i, j] + 1, name="B")]))
    refused(
        lambda: sch.transform_layout("B", "B", lambda i, j: (i // 4, j, i % 4), 0),
        6,
        "dimension 0 of parameter B has an extent that callers give, but does not stay whole",
    )


def test_7_independence_is_not_lost() -> None:
    """A piece of padding written outside of a parallel loop would make its temporary a common one: it is inside."""
    sch = schedule()
    (i, _) = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.parallel(i)
    sch.transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4), 0)
    assert "in 6 parallel" in str(sch.mod)


def test_functions_that_are_not_affine() -> None:
    for index_map, message in (
        (lambda i, j: (i * j,), "an index times an index is not affine"),
        (lambda i, j: (i / 2, j), "indices are divided by //"),
        (lambda i, j: (i // 0, j), "an index is divided by 0"),
        (lambda i, j: (4 // i, j), "a division by an index is not affine"),
        (lambda i, j: (i if i < j else j,), "does not decide by the values of indices"),
        (lambda i, j: (i, "j"), "an index map gives indices, got 'j'"),
    ):
        with pytest.raises(weft.CompileError, match=message):
            schedule().transform_layout("B", "B", index_map)


def test_an_index_map_in_a_trace_is_read_and_not_run() -> None:
    sch = schedule()
    sch.transform_layout("B", ("write", 0), lambda i, j: (j // 4, i, j % 4), pad_value=lambda a, b, c: a * 4 + c)
    text = trace_as_python(sch.trace)
    assert "index_map=lambda d0, d1: (d1 // 4, d0, d1 % 4), pad_value=lambda d0, d1, d2: d0 * 4 + d2)" in text
    again = schedule()
    run_python(again, text)
    assert weft.structural_equal(sch.mod, again.mod)
    with pytest.raises(weft.CompileError, match=r"'open\('x'\)' in an index map"):
        run_python(schedule(), "sch.transform_layout('B', 'B', lambda i, j: (i, open('x')))")


def test_steps_written_by_hand() -> None:
    for properties, message in (
        ('buffer = ["write"], index_map = affine_map<(i, j) -> (j, i)>', "'buffer' is like"),
        ('buffer = ["write", 0], index_map = affine_map<(i, j) -> (j, i mod 0)>', "is not divided by a constant"),
        ('buffer = ["write", 0], index_map = affine_map<(i)[j] -> (j, i)>', "it takes 2 indices, there are 2"),
    ):
        step = f"sched.transform_layout %b {{{properties}}}"
        trace = weft.parse(f'sched.func @s {{ %b = sched.get_block "B" : block\n {step} }}', "s.mlir")
        with pytest.raises(weft.WeftError, match=message):
            schedule().replay(next(iter(trace.ops)))  # pyright: ignore[reportArgumentType]


def test_handles_of_other_blocks_live_on() -> None:
    text = function(block("B", copy("A", "B")), block("C", copy("B", "C")), temporaries=TEMPORARY)
    sch = schedule(text)
    b, c = sch.get_block("B"), sch.get_block("C")
    (i,) = sch.get_loops(c)
    sch.transform_layout(b, "B", lambda i: (i // 5, i % 5), 1.5)
    assert len(sch.get_loops(b)) == 2
    assert sch.get(i) is sch.get(sch.get_loops(c)[0])


def test_padding_of_indices() -> None:
    """A buffer of indices gets an index as padding as it is."""
    module = weft.parse("""
    func.func @f(%C: memref<6xindex>) {
      %T = memref.alloc() : memref<6xindex>
      tir.for %i in 6 { tir.block "T" iters(%v: spatial<6>) = [%i] { memref.store %v, %T[%v] : memref<6xindex> } }
      tir.for %i in 6 { tir.block "C" iters(%v: spatial<6>) = [%i] {
        %t = memref.load %T[%v] : memref<6xindex>
        memref.store %t, %C[%v] : memref<6xindex>
      } }
      func.return
    }""")
    sch = weft.Schedule(module)
    sch.transform_layout("T", ("write", 0), lambda i: (i // 4, i % 4), lambda i, j: i * 10 + j)
    check_schedule(module, sch)


def test_5_undefined_padding_is_that_of_a_temporary_buffer() -> None:
    def panels(i: int, j: int) -> tuple[int, int, int]:
        return j // 4, i, j % 4

    refused(
        lambda: schedule().transform_layout("C", ("write", 0), panels, pad_value="undefined"),
        5,
        "C is a parameter, whose padding others may read",
        "a value of the padding",
    )
    sch = schedule()
    sch.transform_layout("B", ("write", 0), panels, pad_value="undefined")
    assert "memref<3x6x4xf32>" in str(sch.mod) and "B_pad" not in str(sch.mod)
    check_schedule(weft.parse(PROGRAM, "f.mlir"), sch)
    with pytest.raises(weft.ScheduleError, match='"unset" is not a value of type f32'):
        schedule().transform_layout("B", ("write", 0), panels, pad_value="unset")
