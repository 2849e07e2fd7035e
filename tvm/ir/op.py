"""`tvm.ir.Op`, and user-declared intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from weft.support.errors import CompileError
from weft.support.user_functions import IntrinsicCall, intrinsics, register_intrinsic, register_lowering
from weft.texpr import math


class CallEffectKind(Enum):
    """`Pure`: results depend on arguments only."""

    Pure = "pure"
    Opaque = "opaque"
    ExprAnnotation = "annotation"


@dataclass(frozen=True)
class Op:
    """An operator: `relax.add`, `tir.exp`. Calls check that it exists."""

    name: str

    @staticmethod
    def get(op_name: str) -> Op:
        return Op(op_name)


def short(name: str) -> str:
    """`mylog` for `tir.mylog`."""
    return name.removeprefix("tir.")


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = 10) -> object:
    """Declare an intrinsic by its `TCallEffectKind`.

    Raises `CompileError` for other attributes.
    """
    if attr_key != "TCallEffectKind":
        raise CompileError(f"register_op_attr: weft has no attribute '{attr_key}' of operators: TCallEffectKind alone")
    register_intrinsic(short(op_name), pure=value is CallEffectKind.Pure, override=True)
    return value


@dataclass(frozen=True)
class _CallInRule:
    op: Op
    dtype: str
    args: list[int]


@dataclass(frozen=True)
class ExternCall:
    dtype: str
    name: str
    args: tuple[object, ...]


def register_intrin_lowering(op_name: str, target: str, *, f: Callable[[Any], object], level: int = 10) -> object:
    """A rule returns a call of another function with the same arguments (`tir.call_pure_extern("float32", "log",
    op.args[0])`), or the call, for the next rule."""
    if short(op_name) not in intrinsics():
        register_intrinsic(short(op_name))

    def rule(call: IntrinsicCall) -> str | None:
        found = f(given := _CallInRule(Op(op_name), call.dtype, [*range(len(call.arguments))]))
        if found is given or found is None:
            return None
        if isinstance(found, ExternCall) and [*found.args] == given.args:
            return found.name
        raise CompileError(f"{op_name}: a rule gives a call of a function with the same arguments, got {found!r}")

    register_lowering(short(op_name), target=target, level=level)(rule)
    return f


def call_pure_extern(dtype: str, func_name: str, *args: Any) -> object:
    """Call a function of the target's language in lowering rules, of C in tensor expressions."""
    if all(isinstance(arg, int) for arg in args):
        return ExternCall(dtype, func_name, args)
    if func_name not in intrinsics():
        register_intrinsic(func_name)
        register_lowering(func_name)(lambda call: call.name)
    return math.call_intrin(dtype, func_name, *args)
