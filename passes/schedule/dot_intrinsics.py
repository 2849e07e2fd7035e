"""The tensor intrinsics for dot products of adjacent numbers, as `Schedule.tensorize` names them.

    dot_16x4_u8s8               C[l] += sum over s of A[s] * B[l][s]: 16 sums of 32 bits in scope "local", of 4 products
                                each; the bytes of A are read as unsigned, those of B as signed
    dot_16x4_s8u4               the same, with the low four bits of the bytes of B
    dot_16x4_u8s8_global        the same, with sums in global memory (no memory space)
    dot_16x2_s16s16             of two 16-bit integers each
    dot_16x2_bf16               of two bf16 each, added to sums of f32
    interleave_16x4_8           Y[l][r] = X[r][l]: 4 rows of 16 bytes become 16 groups of 4
    interleave_16x2_bf16        2 rows of 16 bf16 become 16 pairs

They exist for 4, 8 and 16 lanes, and all signs, on any target; if it has no such instructions, they are lowered to
products and sums of 32 bits (`low-lower-dots`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Final

LANES: Final = (4, 8, 16)
_STEPS: Final = {8: 4, 16: 2}
"""Width of the factors in bits -> products per lane of 32 bits."""


@cache
def dot_intrinsics() -> Mapping[str, tuple[str, str]]:
    """Name -> description and implementation."""
    found: dict[str, tuple[str, str]] = {}
    for lanes, bits in product(LANES, _STEPS):
        for left, right in product("su", "su"):
            for scope in ("local", "global"):
                suffix = "" if scope == "local" else "_global"
                found[f"{dot_name(lanes, bits, left == 's', right == 's')}{suffix}"] = _dot(
                    lanes, bits, left, right, scope
                )
        if bits == 8:
            for scope in ("local", "global"):
                suffix = "" if scope == "local" else "_global"
                name = f"{dot_name(lanes, bits, True, False, right_width=4)}{suffix}"
                found[name] = _dot(lanes, bits, "s", "u", scope, right_width=4)
        found[interleave_name(lanes, bits)] = _interleave(lanes, _STEPS[bits], f"i{bits}")
    for lanes in LANES:
        for scope in ("local", "global"):
            name = float_dot_name(lanes) if scope == "local" else f"{float_dot_name(lanes)}_global"
            found[name] = _float_dot(lanes, scope)
        found[interleave_name(lanes, 16, floats=True)] = _interleave(lanes, _STEPS[16], "bf16")
    return found


def dot_name(lanes: int, bits: int, left_signed: bool, right_signed: bool, *, right_width: int | None = None) -> str:
    left, right = ("s" if signed else "u" for signed in (left_signed, right_signed))
    return f"dot_{lanes}x{_STEPS[bits]}_{left}{bits}{right}{right_width or bits}"


def float_dot_name(lanes: int) -> str:
    return f"dot_{lanes}x{_STEPS[16]}_bf16"


def interleave_name(lanes: int, bits: int, *, floats: bool = False) -> str:
    return f"interleave_{lanes}x{_STEPS[bits]}_{'bf16' if floats else bits}"


def _dot(lanes: int, bits: int, left: str, right: str, scope: str, right_width: int = 0) -> tuple[str, str]:
    """With `right_width`, the low bits of the right factors are multiplied."""
    widen = {"s": "arith.extsi", "u": "arith.extui"}
    types = (f"i{bits}", "i32", f"{left}i{bits}", f"{right}i{right_width or bits}")
    ops = (widen[left], widen[right], "arith.muli", "arith.addi")
    return _dot_of(lanes, _STEPS[bits], types, ops, scope, (1 << right_width) - 1)


def _float_dot(lanes: int, scope: str) -> tuple[str, str]:
    ops = ("arith.extf", "arith.extf", "arith.mulf", "arith.addf")
    return _dot_of(lanes, _STEPS[16], ("bf16", "f32", "bf16", "bf16"), ops, scope)


def _dot_of(
    lanes: int, steps: int, types: tuple[str, str, str, str], ops: tuple[str, str, str, str], scope: str, mask: int = 0
) -> tuple[str, str]:
    """`types`: of factors in memory, sums, and factors as read; `ops`: two widenings, multiplication, addition; a
    nonzero `mask` is for the right factors."""
    (element, sums, left, right), (widen_left, widen_right, multiply, add) = types, ops
    space = "" if scope == "global" else f', "{scope}"'
    a, b, c = f"memref<{steps}x{element}>", f"memref<{lanes}x{steps}x{element}>", f"memref<{lanes}x{sums}{space}>"
    parameters = f"%A: {a}, %B: {b}, %C: {c}"
    low, masked = "%b", ""
    if mask:
        low, masked = (
            "%low",
            f"%mask = arith.constant {mask} : {element}\n      %low = arith.andi %b, %mask : {element}\n      ",
        )
    description = f"""\
func.func @description({parameters}) {{
  tir.for %l in {lanes} {{ tir.for %s in {steps} {{
    tir.block "dot" iters(%vl: spatial<{lanes}>, %vs: reduce<{steps}>) = [%l, %s] {{
      %a = memref.load %A[%vs] : {a}
      %wide_a = {widen_left} %a : {element} to {sums}
      %b = memref.load %B[%vl, %vs] : {b}
      {masked}%wide_b = {widen_right} {low} : {element} to {sums}
      %p = {multiply} %wide_a, %wide_b : {sums}
      %c = memref.load %C[%vl] : {c}
      %sum = {add} %c, %p : {sums}
      memref.store %sum, %C[%vl] : {c}
    }} }} }}
  func.return
}}"""
    implementation = f"""\
func.func @implementation({parameters}) {{
  %c0 = arith.constant 0 : index
  %a = low.access_ptr %A[%c0] sizes [{steps}] read : {a}
  %b = low.access_ptr %B[%c0, %c0] sizes [{lanes}, {steps}] read : {b}
  %c = low.access_ptr %C[%c0] sizes [{lanes}] readwrite : {c}
  low.tile_dot %a as {left}, %b as {right} onto %c {{lanes = {lanes}, steps = {steps}}}
  func.return
}}"""
    return description, implementation


def _interleave(lanes: int, rows: int, element: str) -> tuple[str, str]:
    x, y = f"memref<{rows}x{lanes}x{element}>", f"memref<{lanes}x{rows}x{element}>"
    strided = f"memref<{rows}x{lanes}x{element}, strided<[?, 1], offset: ?>>"
    description = f"""\
func.func @description(%X: {x}, %Y: {y}) {{
  tir.for %r in {rows} {{ tir.for %l in {lanes} {{
    tir.block "interleave" iters(%vr: spatial<{rows}>, %vl: spatial<{lanes}>) = [%r, %l] {{
      %x = memref.load %X[%vr, %vl] : {x}
      memref.store %x, %Y[%vl, %vr] : {y}
    }} }} }}
  func.return
}}"""
    implementation = f"""\
func.func @implementation(%X: {strided}, %Y: {y}) {{
  %c0 = arith.constant 0 : index
  %x = low.access_ptr %X[%c0, %c0] sizes [{rows}, {lanes}] read : {strided}
  %distance = low.stride %X {{dimension = 0}} : {strided}
  %y = low.access_ptr %Y[%c0, %c0] sizes [{lanes}, {rows}] write : {y}
  low.tile_interleave %x, %distance to %y {{lanes = {lanes}, rows = {rows}}}
  func.return
}}"""
    return description, implementation
