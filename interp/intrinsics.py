"""Declared functions: what a user said that an intrinsic computes, rounded to the type of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, StringAttr

from weft.dialects.low import INTRINSIC
from weft.interp.rounding import round_bf16, round_f16, round_f32, wrap
from weft.support.errors import CompileError
from weft.support.intrinsics import intrinsics

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute


def meaning_of(function: FuncOp) -> Callable[..., tuple[Any, ...]] | None:
    """A function that the module declares only, on run-time values; None when nobody said what it computes."""
    noted = function.attributes.get(INTRINSIC)
    name = noted.data if isinstance(noted, StringAttr) else function.sym_name.data
    intrinsic = intrinsics().get(name)
    outputs = list(function.function_type.outputs)
    if intrinsic is None or intrinsic.meaning is None or len(outputs) != 1:
        return None
    compute, finish = intrinsic.meaning, _finish(outputs[0])

    def run(*arguments: Any) -> tuple[Any, ...]:
        try:
            with np.errstate(all="ignore"):
                return (finish(compute(*arguments)),)
        except (ArithmeticError, TypeError, ValueError) as error:
            shown = ", ".join(map(repr, arguments))
            raise CompileError.at(
                function, f"the meaning of intrinsic '{name}' fails on ({shown}): {type(error).__name__}: {error}"
            ) from error

    return run


def _finish(type_: Attribute) -> Callable[[Any], Any]:
    """How a Python number becomes a value of `type_`."""
    match type_:
        case Float16Type():
            return lambda x: round_f16(float(x))
        case BFloat16Type():
            return lambda x: round_bf16(float(x))
        case Float32Type():
            return lambda x: round_f32(float(x))
        case Float64Type():
            return float
        case IntegerType():
            width = type_.width.data
            return bool if width == 1 else lambda x: wrap(int(x), width)
        case _:
            return int
