"""low-legalize: arithmetic on 16-bit floats as arithmetic on `f32` between conversions; shuffles of 32 bits."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    VectorType,
    f32,
    f64,
    i32,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.dialects import low_lanes
from weft.dialects.low import PARAMS
from weft.dialects.low_gpu import ShuffleOp
from weft.dialects.low_kernel import kernel_of
from weft.passes.low.elementary.lanes import Constants
from weft.passes.low.low_expand_math import MULTIPLY_ADDS, expand_multiply_add
from weft.support.errors import CompileError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS: Final = ("c", "cuda", "opencl", "metal")
"""Kinds of target that this pass prepares for. All keep 16-bit floats as their bits, and convert them."""
_KEPT: Final = ("arith.constant", "arith.extf", "arith.truncf", "arith.select", "arith.bitcast")
_COMPUTING: Final = ("arith.", "math.", "vector.fma", "low.cmpf")
_FROM_INTEGER: Final = (arith.SIToFPOp, arith.UIToFPOp, low_lanes.SIToFPOp, low_lanes.UIToFPOp)
_TO_INTEGER: Final = (arith.FPToSIOp, arith.FPToUIOp, low_lanes.FPToSIOp, low_lanes.FPToUIOp)


@dataclass(frozen=True)
class LowLegalizePass(ModulePass):
    """Leave only operations that the languages of a target have: `low-legalize{target=cuda}`.

    ```mlir
    %s = arith.addf %a, %b : f16       ->     %a.wide = arith.extf %a : f16 to f32
                                              %b.wide = arith.extf %b : f16 to f32
                                              %s.wide = arith.addf %a.wide, %b.wide : f32
                                              %s = arith.truncf %s.wide : f32 to f16
    ```
    `f32` has more than twice the bits of `f16` and `bf16`, so that the first rounding of `+ - * /` and of the square
    root does no harm (Figueroa 1995). Fused multiply-adds are rounded once as well
    (`elementary/fused_multiply_add.py`). Integers become `bf16` through `f64`, rounded once. Threads exchange
    floats and integers of less than 32 bits (`low.shuffle`) as wider ones. Raises `CompileError` for an unknown target.
    """

    name = "low-legalize"

    target: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kind = self.target.split()[0] if self.target.split() else ""
        if kind not in TARGETS:
            raise CompileError(f"low-legalize: unknown target '{self.target}'{did_you_mean(kind, TARGETS)}")
        for function in op.ops:
            if isinstance(function, FuncOp) and (PARAMS in function.attributes or kernel_of(function) is not None):
                legalize(function, has_double=kind != "metal")


def legalize(function: FuncOp, *, has_double: bool = True) -> None:
    """Widen the arithmetic on 16-bit floats of one function."""
    constants = Constants(function.body.block)
    for op in list(function.walk()):
        if isinstance(op, MULTIPLY_ADDS):
            expand_multiply_add(op, constants, has_double=has_double)
            continue
        rewrite = _rewrite_of(op)
        if rewrite is not None:
            rewrite(op)


def _is_small(type_: Attribute) -> bool:
    element = type_.element_type if isinstance(type_, VectorType) else type_
    return isinstance(element, Float16Type | BFloat16Type)


def _rewrite_of(op: Operation) -> Callable[[Operation], None] | None:
    """How `op` is rewritten, None when it stays."""
    if isinstance(op, ShuffleOp) and isinstance(op.value.type, IntegerType) and op.value.type.width.data < 32:
        return _widen_shuffle
    touched = any(_is_small(value.type) for value in (*op.operands, *op.results))
    if not touched or op.name in _KEPT:
        return None
    if isinstance(op, vector.ReductionOp):
        return _widen_reduction
    if isinstance(op, _FROM_INTEGER):
        return _convert_integer
    return _widen if op.name.startswith(_COMPUTING) or isinstance(op, (*_TO_INTEGER, ShuffleOp)) else None


def _like(type_: Attribute, element: Attribute) -> Attribute:
    """As many lanes of `element` as `type_` has."""
    return VectorType(element, type_.get_shape()) if isinstance(type_, VectorType) else element


class _Builder:
    """Inserts ops before the one that is rewritten, at its place in the source."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        block = op.parent
        if block is None:
            raise CompileError.at(op, f"{op.name} stands nowhere")
        self._block = block

    def insert(self, op: Operation) -> SSAValue:
        op.location = self._op.location
        self._block.insert_op_before(op, self._op)
        return op.results[0]

    def constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        return self.insert(arith.ConstantOp.create(result_types=[type_], properties={"value": value}))

    def extend(self, value: SSAValue) -> SSAValue:
        """A small float as `f32`."""
        wide = _like(value.type, f32)
        number = _known(value)
        if number is not None:
            return self.constant(FloatAttr(number, f32), wide)
        result = self.insert(arith.ExtFOp.create(operands=[value], result_types=[wide]))
        result.name_hint = value.name_hint
        return result

    def truncate(self, value: SSAValue, type_: Attribute) -> SSAValue:
        return self.insert(arith.TruncFOp.create(operands=[value], result_types=[type_]))

    def replace(self, value: SSAValue) -> None:
        """Let `value` stand for the result of the op, which goes."""
        result = self._op.results[0]
        if result.name_hint is not None:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
        self._op.detach()
        self._op.erase()


def _known(value: SSAValue) -> float | None:
    """The number that a scalar constant is exactly."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
        return None
    number = owner.value.value.data
    if isinstance(value.type, Float16Type):
        try:
            return number if struct.unpack("<e", struct.pack("<e", number))[0] == number else None
        except OverflowError:
            return None
    (bits,) = struct.unpack("<I", struct.pack("<f", number)) if abs(number) < 3e38 else (1,)
    exact = bits & 0xFFFF == 0 and struct.unpack("<f", struct.pack("<I", bits))[0] == number
    return number if exact else None


def _widen(op: Operation) -> None:
    """Compute in `f32`, and round what was a small float."""
    build = _Builder(op)
    operands = [build.extend(operand) if _is_small(operand.type) else operand for operand in op.operands]
    (result,) = op.results
    small = _is_small(result.type)
    computed = build.insert(
        type(op).create(
            operands=operands,
            result_types=[_like(result.type, f32) if small else result.type],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
    )
    build.replace(build.truncate(computed, result.type) if small else computed)


def _widen_shuffle(op: Operation) -> None:
    """The lanes of a warp exchange values of 32 bits and more."""
    shuffle = cast("ShuffleOp", op)
    build = _Builder(op)
    wide = build.insert(arith.ExtSIOp(shuffle.value, i32))
    moved = build.insert(ShuffleOp(shuffle.mode.data, wide, shuffle.offset, shuffle.lanes))
    build.replace(build.insert(arith.TruncIOp(moved, cast("IntegerType", shuffle.value.type))))


def _widen_reduction(op: Operation) -> None:
    """Sums and products round after every lane; the greatest and the least lane are exact in any wider type."""
    reduction = cast("vector.ReductionOp", op)
    build = _Builder(op)
    kind = reduction.kind.data.value
    type_ = op.results[0].type
    lanes = build.extend(op.operands[0])
    if kind not in ("add", "mul"):
        accumulator = [build.extend(operand) for operand in op.operands[1:]]
        wide = build.insert(
            vector.ReductionOp.create(
                operands=[lanes, *accumulator], result_types=[f32], properties=dict(op.properties)
            )
        )
        build.replace(build.truncate(wide, type_))
        return
    combine = arith.AddfOp if kind == "add" else arith.MulfOp
    count = cast("VectorType[Attribute]", op.operands[0].type).get_shape()[0]
    scalars = [build.insert(vector.ExtractOp(lanes, [lane], f32)) for lane in range(count)]
    total = build.extend(op.operands[1]) if len(op.operands) > 1 else scalars.pop(0)
    rounded = build.truncate(total, type_)
    for scalar in scalars:
        combined = build.insert(
            combine.create(operands=[total, scalar], result_types=[f32], properties={"fastmath": _NO_FLAGS})
        )
        rounded = build.truncate(combined, type_)
        total = build.extend(rounded)
    build.replace(rounded)


_NO_FLAGS: Final = arith.FastMathFlagsAttr("none")


def _convert_integer(op: Operation) -> None:
    """An integer as a small float, rounded once: `f64` holds it exactly, or as exactly as the rounding needs."""
    build = _Builder(op)
    (operand,) = op.operands
    element = operand.type.element_type if isinstance(operand.type, VectorType) else operand.type
    width = element.width.data if isinstance(element, IntegerType) else 64
    if width == 64:
        operand = _sticky(build, operand, signed=isinstance(op, arith.SIToFPOp | low_lanes.SIToFPOp))
    between = f32 if width <= 16 else f64
    wide = build.insert(type(op).create(operands=[operand], result_types=[_like(operand.type, between)]))
    build.replace(build.truncate(wide, op.results[0].type))


def _sticky(build: _Builder, value: SSAValue, *, signed: bool) -> SSAValue:
    """A 64-bit integer that is exact in `f64` and rounds to a small float like `value`: the low 11 bits of a large one
    are gathered in the lowest bit that stays."""
    type_: Attribute = value.type

    def constant(number: int) -> SSAValue:
        element = type_.element_type if isinstance(type_, VectorType) else type_
        scalar = cast("IntegerType", element)
        if not isinstance(type_, VectorType):
            return build.constant(IntegerAttr(number, scalar), scalar)
        lanes = VectorType(scalar, type_.get_shape())
        return build.constant(DenseIntOrFPElementsAttr.from_list(lanes, [number]), lanes)

    def integer(kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        flags = {"overflowFlags": arith.IntegerOverflowAttr("none")} if kind is arith.AddiOp else {}
        return build.insert(kind.create(operands=[lhs, rhs], result_types=[type_], properties=flags))

    low = integer(arith.AndIOp, value, constant(2047))
    carry = integer(arith.AddiOp, low, constant(2047))
    kept = integer(arith.AndIOp, integer(arith.OrIOp, value, carry), constant(-2048))
    # Small ones are exact as they are: -2^53 <= x < 2^53, or below 2^53 when unsigned.
    offset = integer(arith.AddiOp, value, constant(1 << 53)) if signed else value
    bound = constant(1 << 54 if signed else 1 << 53)
    if isinstance(type_, VectorType):
        small = build.insert(low_lanes.CmpiOp(offset, bound, 6))
        return build.insert(low_lanes.SelectOp(small, value, kept))
    small = build.insert(arith.CmpiOp(offset, bound, 6))
    return build.insert(arith.SelectOp(small, value, kept))
