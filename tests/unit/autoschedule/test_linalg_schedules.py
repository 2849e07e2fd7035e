"""Products and convolutions of linalg get the default schedules of the operators that compute the same."""

from __future__ import annotations

import re

import pytest
from tiers import second_tier
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import weft
from weft import te
from weft.autoschedule.default_schedule import default_schedule
from weft.passes.convert.convert_linalg_to_tir import ConvertLinalgToTirPass
from weft.passes.te.lower_te_to_tir import LowerTeToTirPass
from weft.support.target import Target
from weft.te import Tensor

TARGET = Target.parse("llvm -mcpu=skylake-avx512")


def by_linalg(operation: str, *shapes: tuple[int, ...]) -> ModuleOp:
    """The operation on tensors, from a fill with zeros on."""
    a, b, c = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes)
    module = weft.parse(f"""
func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %c = linalg.{operation} ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}
  return %c : {c}
}}""")
    ConvertLinalgToTirPass(("contract", "reassoc")).apply(Context(), module)
    return module


def by_operator(a: Tensor, b: Tensor, c: Tensor) -> ModuleOp:
    module = te.create_func([a, b, c])
    LowerTeToTirPass().apply(Context(), module)
    return module


def schedule_text(module: ModuleOp) -> str:
    """The default schedule, with numbers in the place of names."""
    text = "\n".join(map(str, default_schedule(module, TARGET)))
    numbers: dict[str, str] = {}
    text = re.sub(r'get_block "[^"]*" in @\w+|@\w+', "", text)
    return re.sub(r"%\w+", lambda name: numbers.setdefault(name[0], f"%{len(numbers)}"), text)


def _placeholders(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [te.placeholder(shape, "float32", name) for shape, name in zip(shapes, "ab", strict=False)]


@pytest.mark.parametrize("transposed", [False, second_tier(True)])
def test_matmul(transposed: bool) -> None:
    a, b, c = (256, 128), (512, 128) if transposed else (128, 512), (256, 512)
    x, y = _placeholders(a, b)
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>"
    ours = by_linalg(f"matmul indexing_maps = [{maps}]" if transposed else "matmul", a, b, c)
    expected = schedule_text(by_operator(x, y, te.ops.matmul(x, y, transpose_b=transposed)))
    assert "vectorize" in expected
    assert schedule_text(ours) == expected


@pytest.mark.slow
def test_batch_matmul() -> None:
    a, b, c = (8, 256, 128), (8, 128, 512), (8, 256, 512)
    x, y = _placeholders(a, b)
    expected = schedule_text(by_operator(x, y, te.ops.batch_matmul(x, y, transpose_b=False)))
    assert schedule_text(by_linalg("batch_matmul", a, b, c)) == expected


@pytest.mark.slow
def test_convolution() -> None:
    a, b, c = (1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 54, 54)
    x, y = _placeholders(a, b)
    expected = schedule_text(by_operator(x, y, te.ops.conv2d(x, y)))
    assert schedule_text(by_linalg("conv_2d_nchw_fchw", a, b, c)) == expected
