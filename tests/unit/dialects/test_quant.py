"""The text of quantised types, and their checks."""

import pytest

import weft
from weft.support.errors import CompileError


def text(element: str) -> str:
    return f"func.func @f(%x: tensor<2x3x{element}>) -> tensor<2x3x{element}> {{ return %x : tensor<2x3x{element}> }}"


@pytest.mark.parametrize(
    ("element", "printed"),
    [
        ("!quant.uniform<i8:f32, 1.000000e-01:-3>", "!quant.uniform<i8:f32, 0.1:-3>"),
        ("!quant.uniform<u8<1:254>:bf16, 0.5:3>", "!quant.uniform<u8<1:254>:bf16, 0.5:3>"),
        (
            "!quant.uniform<i8<-128:127>:f32:1, {0.1:2, 2.0, 0.25:-1}>",
            "!quant.uniform<i8:f32:1, {0.1:2, 2.0, 0.25:-1}>",
        ),
        ("!quant.uniform<i8:f32, 1.0e-05>", "!quant.uniform<i8:f32, 1.0e-05>"),
        ("!quant.uniform<i32:f64, 34.0:0>", "!quant.uniform<i32:f64, 34.0>"),
        ("!quant.uniform<i8:f32:{0:2}, {{0.1:3}}>", "!quant.uniform<i8:f32:{0:2}, {{0.1:3}}>"),
        (
            "!quant.uniform<u8:f32:{0:2, 1:1}, {{0.1, 0.2, 0.3:4}}>",
            "!quant.uniform<u8:f32:{0:2, 1:1}, {{0.1, 0.2, 0.3:4}}>",
        ),
    ],
)
def test_text(element: str, printed: str) -> None:
    module = weft.parse(text(element))
    assert f"tensor<2x3x{printed}>" in str(module)
    assert str(weft.parse(str(module))) == str(module)


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("!quant.uniform<i8<-129:127>:f32, 0.1>", "limits in its range, got i8<-129:127>"),
        ("!quant.uniform<i48:f32, 0.1>", "a storage type has 1 to 32 bits"),
        ("!quant.uniform<i8:i32, 0.1>", "the expressed type is f16, bf16, f32 or f64, got i32"),
        ("!quant.uniform<i8:f32, 0.0>", r"scales are finite and positive, got \[0.0\]"),
        ("!quant.uniform<i8:f32, 0.1:200>", r"zero points lie in -128 to 127, got \[200\]"),
        ("!quant.uniform<i8:f32:{0:1, 0:2}, {{0.1}, {0.2}}>", r"different dimensions of 2, got \[\(0, 1\), \(0, 2\)\]"),
        ("!quant.uniform<i8:f32:{0:0}, {0.1}>", r"blocks have positive extents .*, got \[\(0, 0\)\]"),
        ("!quant.uniform<i8:f32:{1:2}, {0.1}>", r"different dimensions of 1, got \[\(1, 2\)\]"),
    ],
)
def test_checks(element: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        weft.parse(text(element))


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ("!quant.uniform<f8:f32, 0.1>", "the storage of a quantised type is i or u and a number of bits"),
        ("!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1, 0.2}, {0.3}}>", "scales of blocks are nested to one depth"),
    ],
)
def test_syntax(element: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        weft.parse(text(element))
