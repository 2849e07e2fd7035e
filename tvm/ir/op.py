"""`tvm.ir.Op`, and intrinsics that users declare."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from typing import Any

from weft.support.errors import CompileError
from weft.support.user_functions import IntrinsicCall, intrinsics, register_intrinsic, register_lowering


class CallEffectKind(Enum):
    """Whether an intrinsic computes its result from its arguments alone (`Pure`)."""

    Pure = "pure"
    Opaque = "opaque"
    ExprAnnotation = "annotation"


class Op:
    """An operator by name: `relax.add`, `tir.exp`. One object a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    @cache
    def get(op_name: str) -> Op:
        """The operator of that name; it exists when it is called."""
        return Op(op_name)

    def __repr__(self) -> str:
        return f"Op({self.name})"


def short(name: str) -> str:
    """`mylog` for `tir.mylog`: the name of an intrinsic in weft, where they are functions of the language."""
    return name.removeprefix("tir.")


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = 10) -> object:
    """Declare the intrinsic `op_name` by its `TCallEffectKind`. `level` has no effect, as there is one declaration.

    Raises `CompileError` for other attributes.
    """
    del level
    if attr_key != "TCallEffectKind":
        raise CompileError(f"register_op_attr: weft has no attribute '{attr_key}' of operators: TCallEffectKind alone")
    register_intrinsic(short(op_name), pure=value is CallEffectKind.Pure, override=True)
    return value


class _CallInRule:
    """What a lowering rule gets: the call with its dtype and its arguments."""

    def __init__(self, call: IntrinsicCall) -> None:
        self.op = Op.get(f"tir.{call.name}")
        self.dtype = call.dtype
        self.args = list(range(len(call.arguments)))


def register_intrin_lowering(
    op_name: str, target: str, *, f: Callable[[Any], object] | None = None, level: int = 10
) -> object:
    """Register a rule that gives the call of another function of the same arguments
    (`tir.call_pure_extern("float32", "log", op.args[0])`), or the call itself, which passes it on."""
    if f is None:
        return partial(_lowering_rule, op_name, target, level)
    return _lowering_rule(op_name, target, level, f)


def _lowering_rule(op_name: str, target: str, level: int, f: Callable[[Any], object]) -> Callable[[Any], object]:
    if short(op_name) not in intrinsics():
        register_intrinsic(short(op_name))

    def rule(call: IntrinsicCall) -> str | None:
        found = f(given := _CallInRule(call))
        if found is given or found is None:
            return None
        if isinstance(found, ExternCall) and list(found.args) == given.args:
            return found.name
        raise CompileError(f"{op_name}: a rule gives a call of a function with the same arguments, got {found!r}")

    register_lowering(short(op_name), target=target, level=level)(rule)
    return f


class ExternCall:
    """A call of a function of the target's language in a lowering rule."""

    def __init__(self, dtype: str, name: str, args: tuple[object, ...]) -> None:
        self.dtype, self.name, self.args = dtype, name, args

    def __repr__(self) -> str:
        return f'call_pure_extern("{self.name}")'


def call_pure_extern(dtype: str, func_name: str, *args: Any) -> object:
    """A call of a function from outside without effects: in lowering rules of the target's language, else in tensor
    expressions, where C has it."""
    if all(isinstance(arg, int) for arg in args):
        return ExternCall(dtype, func_name, args)
    if func_name not in intrinsics():
        register_intrinsic(func_name)
        register_lowering(func_name)(lambda call: call.name)
    from weft.texpr.math import call_intrin

    return call_intrin(dtype, func_name, *args)
