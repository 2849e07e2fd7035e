"""Sizes of buffers by name and as expressions: one name is one value, and calls check it."""

from __future__ import annotations

import numpy as np
import pytest
from script_roundtrip import check_roundtrip

import weft
from weft.interp.errors import InterpreterError
from weft.script import parse
from weft.support.errors import CompileError

BODY = """
    for i, j in T.grid(6, {columns}):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.Cast("float32", {factor})
"""
SAME = "expected n_2 = 4 \\(from axis . of 'A'\\), got 7"


def program(head: str, columns: str = "n", factor: str = "n") -> str:
    return "@T.prim_func(s_tir=True)\ndef f" + head + BODY.format(columns=columns, factor=factor)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


ONE_NAME = {
    "before the parameter, int32": '(A: T.Buffer((6, "n"), "float32"), n: T.int32, B: T.Buffer((6, n), "float32")):',
    "before the parameter, int64": '(A: T.Buffer((6, "n"), "float32"), n: T.int64, B: T.Buffer((6, "n"), "float32")):',
    "not quoted": '(A: T.Buffer((6, n), "float32"), n: T.int32, B: T.Buffer((6, n), "float32")):',
    "declared again": '(A: T.Buffer((6, "n"), "float32"), n: T.int32, B: T.Buffer((6, n), "float32")):\n'
    "    n = T.int32()",
    "by match_buffer": "(a: T.handle, n: T.int32, b: T.handle):\n"
    '    A = T.match_buffer(a, (6, "n"), "float32")\n'
    "    n = T.int32()\n"
    '    B = T.match_buffer(b, (6, n), "float32")',
    "both ways": '(A: T.Buffer((6, "n"), "float32"), n: T.int32, b: T.handle):\n'
    '    B = T.match_buffer(b, (6, "n"), "float32")',
}


@pytest.mark.parametrize("head", ONE_NAME.values(), ids=ONE_NAME)
def test_an_extent_with_the_name_of_a_parameter_is_the_parameter(head: str) -> None:
    module = parse(program(head))
    check_roundtrip(module)
    f = weft.build(module)["f"]
    x, out = np.full((6, 4), 2, np.float32), zeros(6, 4)
    f(x, 4, out)
    np.testing.assert_array_equal(out, 4 * x)
    with pytest.raises(ValueError, match=SAME):
        f(x, 7, out)
    with pytest.raises(ValueError, match=r"expected an extent of at least 0 .*, got -1"):
        f(x, -1, out)
    with pytest.raises(InterpreterError, match="the program assumes 6x7"):
        weft.Interpreter(module).call("f", x, 7, out)


STRIDES = {
    "a parameter": ('strides=("s", 1)), s: T.int32, ', 10, 7, "expected s_2 = 10 .*, got 7"),
    "an expression": ('strides=("2 * n + s", 1)), s: T.int32, ', 2, 3, r"expected A_s0 == 2 \* n \+ s, got A_s0 = 10"),
}


@pytest.mark.parametrize(("option", "right", "wrong", "message"), STRIDES.values(), ids=STRIDES)
def test_strides_are_values_too(option: str, right: int, wrong: int, message: str) -> None:
    module = parse(program(f'(A: T.Buffer((6, "n"), "float32", {option}B: T.Buffer((6, "n"), "float32")):', factor="s"))
    check_roundtrip(module)
    f = weft.build(module)["f"]
    x, out = np.ones((6, 10), np.float32)[:, :4], zeros(6, 4)
    f(x, right, out)
    np.testing.assert_array_equal(out, right * x)
    with pytest.raises(ValueError, match=message):
        f(x, wrong, out)


def test_a_stride_with_the_name_of_an_extent_is_that_extent() -> None:
    """Wherever the extent stands; strides alone that share a name are different ones, as TVM prints them."""
    head = '(A: T.Buffer((6, 4), "float32", strides=("s", 1)), B: T.Buffer((6, "s"), "float32")):'
    f = weft.build(parse(program(head, columns="4", factor="s")))["f"]
    x, out = np.ones((6, 5), np.float32)[:, :4], zeros(6, 5)
    f(x, out)
    np.testing.assert_array_equal(out[:, :4], 5 * x)
    with pytest.raises(ValueError, match=r"shape \(6, s\) with s = 5 \(from 'A'\), got shape \(6, 8\)"):
        f(x, zeros(6, 8))


def test_sizes_are_expressions_in_text() -> None:
    head = '(A: T.Buffer((6, "(n + 31) // 32 * 32"), "float32"), B: T.Buffer((6, n), "float32")):\n    n = T.int32()'
    module = parse(program(head))
    text = check_roundtrip(module)
    assert "A = T.match_buffer(var_A, (6, (n + 31) // 32 * 32), " in text
    f = weft.build(module)["f"]
    x, out = np.ones((6, 64), np.float32), zeros(6, 40)
    f(x, out)
    np.testing.assert_array_equal(out, 40 * x[:, :40])
    with pytest.raises(ValueError, match=r"expected A_d1 == 32 \* \(\(n \+ 31\) // 32\), got A_d1 = 32 .*, n = 40 "):
        f(zeros(6, 32), out)


BUFFERS = '(A: T.Buffer((6, {size}), "float32"), {between}B: T.Buffer((6, "m"), "float32")):\n    m = T.int32()'


@pytest.mark.parametrize(
    ("size", "between", "message"),
    [
        ('"n"', "n: T.float32, ", "A: extent 1 must be an integer, got float32 `n`"),
        ('"n"', "n: T.bool, ", "A: extent 1 must be an integer, got bool `n`"),
        ('"n"', "n: T.handle, ", "expected a number or a value, got parameter n, a T.handle"),
        ('"n"', 'n: T.Buffer((4,), "int32"), ', "n names a buffer and a size: rename one of them"),
        ('"A"', "", "A names a buffer and a size: rename one of them"),
        ('"n * 2"', "", "the value of n is not known: no buffer that is declared so far has it alone"),
        ('"n +"', "", "A: extent 1 is a size as text, got 'n +'"),
        ('""', "", "A: extent 1 is a size as text, got ''"),
        ('"m; n"', "", "A: extent 1 is a size as text, got 'm; n'"),
        ('"m / 2"', "", "`/` takes floats, got int64 in `m / 2`"),
        ('"f(m)"', "", "unknown name 'f'"),
        ('"-3"', "", "A: extent 1 must not be negative, got -3"),
    ],
)
def test_what_is_no_size(size: str, between: str, message: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse(program(BUFFERS.format(size=size, between=between), columns="m", factor="m"), "user.py")
    assert message in str(refused.value)
    assert str(refused.value).startswith("user.py:2:"), "the place is not that of the declaration"


def test_a_size_cannot_have_the_name_of_something_else() -> None:
    text = program('(A: T.Buffer((6, 4), "float32"), B: T.Buffer((6, 4), "float32")):\n    A = T.int32()')
    with pytest.raises(CompileError, match="A is buffer A already: a size has a name of its own"):
        parse(text)


@pytest.mark.parametrize(
    ("offset", "message"), [("off", None), ("T.int64(0)", None), ("s - n", None), ("s", r"expected s == 0, got s = 4")]
)
def test_an_offset_is_a_value_too(offset: str, message: str | None) -> None:
    """Calls pass the first element: an offset that nothing else decides is 0, another must be."""
    head = (
        '(a: T.handle, s: T.int32, B: T.Buffer((6, "n"), "float32")):\n    off = T.int32()\n'
        f'    A = T.match_buffer(a, (6, n), "float32", elem_offset={offset})'
    )
    module = parse(program(head, factor="1 + A.elem_offset"))
    check_roundtrip(module)
    f = weft.build(module)["f"]
    x, out = np.ones((6, 4), np.float32), zeros(6, 4)
    if message is None:
        f(x, 4, out)
        np.testing.assert_array_equal(out, x)
    else:
        with pytest.raises(ValueError, match=message):
            f(x, 4, out)
