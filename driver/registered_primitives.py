"""Schedule primitives of other packages: one declaration gives the op, the pass, the method and the error codes.

    @weft.register_primitive(
        Step("skew", "Skew ...", (Parameter("loop", kinds.LOOP_HANDLE), ...), (LOOP,), consumes=True)
    )
    @dataclass(frozen=True)
    class Skew(Primitive): ...

`sched.skew` parses and prints, `Schedule.skew` records it, `tir-skew` is a pass, and `weft explain skew.1` explains its
first requirement. Tools and the processes of a search have it if the module is that of an entry point `xdsl.universe`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from xdsl.ir.affine import AffineMap

from weft.dialects import sched_parameters as kinds
from weft.dialects.sched import DECLARATIONS, add_primitive_step, remove_primitive_step
from weft.dialects.sched_parameters import REQUIRED, Step
from weft.driver.universe import WEFT_UNIVERSE
from weft.frontends.script.schedule import Schedule as UserSchedule
from weft.passes.schedule.annotate import Annotation
from weft.passes.schedule.primitive import REGISTERED, Primitive
from weft.passes.schedule.primitive_passes import primitive_pass
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle, step_method
from weft.schedule.schedule import Schedule
from weft.schedule.step_calls import BufferOf, IndexMap
from weft.support.argument_types import checked
from weft.support.errors import CompileError

P = TypeVar("P", bound=type[Primitive])

_NAMES: dict[str, object] = {
    "AffineMap": AffineMap,
    "Annotation": Annotation,
    "BlockHandle": BlockHandle,
    "BufferOf": BufferOf,
    "Callable": Callable,
    "IndexMap": IndexMap,
    "IntHandle": IntHandle,
    "LoopHandle": LoopHandle,
    "Sequence": Sequence,
}
"""The names in annotations of parameters (`sched_parameters.Kind.argument`)."""


@checked
def register_primitive(step: Step) -> Callable[[P], P]:
    """Returns a class decorator that adds a schedule primitive, declared like weft's (`dialects/sched.py`).

    The class is a frozen dataclass derived from `weft.passes.schedule.primitive.Primitive`; its fields are the
    parameters of the step. Raises `CompileError` for a name that a schedule has, and a class that does not match the
    step.
    """

    def register(primitive: P) -> P:
        _check(step, primitive)
        REGISTERED[step.name] = primitive
        add_primitive_step(step)
        setattr(Schedule, step.name, _method(step))
        WEFT_UNIVERSE.all_passes[step.pass_name] = lambda: primitive_pass(step.name)
        return primitive

    return register


def unregister_primitive(name: str) -> None:
    """Remove a primitive that `register_primitive` added. Raises `CompileError` for other names."""
    if name not in REGISTERED:
        raise CompileError(f"no primitive '{name}' is registered")
    del WEFT_UNIVERSE.all_passes[DECLARATIONS[name].pass_name], REGISTERED[name]
    delattr(Schedule, name)
    remove_primitive_step(name)


def _check(step: Step, primitive: type[Primitive]) -> None:
    if step.name in DECLARATIONS or hasattr(UserSchedule, step.name):
        raise CompileError(f"primitive '{step.name}': a schedule has a method of this name")
    if step.pass_name in WEFT_UNIVERSE.all_passes:
        raise CompileError(f"primitive '{step.name}': there is a pass {step.pass_name}")
    if primitive.__name__ != step.class_name:
        raise CompileError(f"primitive '{step.name}': its class is {step.class_name}, got {primitive.__name__}")
    declared = [parameter.name for parameter in step.parameters]
    if (found := [field.name for field in fields(primitive)]) != declared:
        raise CompileError(
            f"primitive '{step.name}': the fields of {primitive.__name__} are the parameters of the step, "
            f"{', '.join(declared)}; got {', '.join(found) or 'none'}"
        )


def _method(step: Step) -> Callable[..., Any]:
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    position = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for declared in step.parameters:
        variadic = declared.kind in (kinds.LOOP_HANDLES, kinds.LOOPS_OF_BLOCKS)
        if declared.keyword_only:
            position = inspect.Parameter.KEYWORD_ONLY
        parameters.append(
            inspect.Parameter(
                declared.argument,
                inspect.Parameter.VAR_POSITIONAL if variadic else position,
                default=inspect.Parameter.empty if declared.default is REQUIRED else declared.default,
                annotation=declared.kind.argument,
            )
        )
        if variadic:
            position = inspect.Parameter.KEYWORD_ONLY

    signature = inspect.Signature(parameters)

    def method(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        schedule, *_ = bound.arguments.values()
        given = {name: value for name, value in bound.arguments.items() if name != "self"}
        return schedule._step(step.name, **given)

    method.__name__ = method.__qualname__ = step.name
    method.__doc__ = step.doc
    method.__annotations__ = {
        parameter.argument: eval(parameter.kind.argument, _NAMES)  # evaluates only the texts of weft's own kinds
        for parameter in step.parameters
    }
    method.__signature__ = signature
    return step_method(method)
