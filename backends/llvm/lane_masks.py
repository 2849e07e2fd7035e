"""Masks of lanes up to a bound, computed by scalar instructions.

A comparison of consecutive indices with a bound is true in the first lanes, or in the last. LLVM compares vectors of
64-bit integers, two registers for 16 lanes: two broadcasts, two additions, two comparisons and an unpacking. With mask
registers (AVX-512) the number of lanes is a difference, and the mask the bits below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, VectorType

from weft.backends.low_modules import predicate
from weft.dialects.integer_arith import known_number

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from weft.backends.llvm.emitter import FunctionEmitter

_LANES: Final = (16, 32)
"""Index vectors of two or four registers. For one register a comparison is as cheap as the scalar instructions."""
_SWAPPED: Final = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}


@dataclass(frozen=True)
class _Progression:
    """Lane `l` is `base + first + step * l`; `base` is the text of a scalar, `step` a power of two."""

    base: str
    first: int
    step: int


def emit_lane_mask(emitter: FunctionEmitter, op: Operation) -> str | None:
    """None if the comparison is not one of an arithmetic progression of indices with one bound, or the target lacks
    mask registers."""
    type_ = op.operands[0].type
    if not isinstance(type_, VectorType) or not isinstance(type_.element_type, IndexType):
        return None
    relation, lanes = predicate(op), type_.get_shape()[0]
    if relation not in _SWAPPED or lanes not in _LANES or not emitter.module.target.has_feature("avx512f"):
        return None
    indices, limit = op.operands
    progression, bound = _progression(emitter, indices), _splat(emitter, limit)
    if progression is None or bound is None:
        relation = _SWAPPED[relation]
        progression, bound = _progression(emitter, limit), _splat(emitter, indices)
    if progression is None or bound is None:
        return None
    count = _lanes_below(emitter, progression, bound, lanes, relation in ("sle", "sgt"))
    bits = emitter.emit(f"shl i64 -1, {count}")
    if relation in ("slt", "sle"):
        bits = emitter.emit(f"xor i64 {bits}, -1")
    return f"bitcast i{lanes} {emitter.emit(f'trunc i64 {bits} to i{lanes}')} to <{lanes} x i1>"


def _lanes_below(emitter: FunctionEmitter, indices: _Progression, bound: str, lanes: int, inclusive: bool) -> str:
    """`inclusive`: indices up to `bound`, else below. The difference is exact as an unsigned number if the first index
    is below the bound."""
    lowest = indices.base
    if indices.first:
        lowest = (
            str(int(lowest) + indices.first) if lowest.isdigit() else emitter.emit(f"add i64 {lowest}, {indices.first}")
        )
    some = emitter.emit(f"icmp {'sge' if inclusive else 'sgt'} i64 {bound}, {lowest}")
    reach = lanes * indices.step - inclusive
    count = emitter.emit(f"call i64 @llvm.umin.i64(i64 {emitter.emit(f'sub i64 {bound}, {lowest}')}, i64 {reach})")
    if indices.step > 1:
        if not inclusive:
            count = emitter.emit(f"add i64 {count}, {indices.step - 1}")
        count = emitter.emit(f"lshr i64 {count}, {indices.step.bit_length() - 1}")
    if inclusive:
        count = emitter.emit(f"add i64 {count}, 1")
    return emitter.emit(f"select i1 {some}, i64 {count}, i64 0")


def _progression(emitter: FunctionEmitter, value: SSAValue) -> _Progression | None:
    if (steps := _constant_steps(value)) is not None:
        return _Progression("0", *steps)
    if isinstance(value.owner, arith.AddiOp):
        for indices, base in (value.owner.operands, reversed(value.owner.operands)):
            if (steps := _constant_steps(indices)) is not None and (text := _splat(emitter, base)) is not None:
                return _Progression(text, *steps)
    return None


def _constant_steps(value: SSAValue) -> tuple[int, int] | None:
    """The first element and the step, a power of two."""
    constant = value.owner
    if not isinstance(constant, arith.ConstantOp) or not isinstance(constant.value, DenseIntOrFPElementsAttr):
        return None
    if constant.value.is_splat():
        return None
    numbers = cast("list[int]", list(constant.value.get_values()))
    first, step = numbers[0], numbers[1] - numbers[0]
    grows = step > 0 and step.bit_count() == 1 and numbers == list(range(first, first + step * len(numbers), step))
    return (first, step) if grows else None


def _splat(emitter: FunctionEmitter, value: SSAValue) -> str | None:
    if isinstance(value.owner, vector.BroadcastOp):
        source = value.owner.operands[0]
        return None if isinstance(source.type, VectorType) else emitter.text(source)
    number = known_number(value)
    return None if number is None else str(int(number))
