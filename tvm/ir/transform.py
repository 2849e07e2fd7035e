"""`tvm.transform`, `tvm.ir.transform`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from typing import Any, ClassVar

from weft.support.errors import CompileError, did_you_mean
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule

_LOWERING = "tir.add_lower_pass"


class PassContext(AbstractContextManager["PassContext"]):
    """Raises `CompileError` for `config` keys except `tir.add_lower_pass`."""

    _open: ClassVar[list[PassContext]] = []

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        *,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        for option in config or {}:
            if option != _LOWERING:
                raise CompileError(f"PassContext: weft has no option '{option}'{did_you_mean(option, [_LOWERING])}")
        self.opt_level, self.config = opt_level, dict(config or {})

    @staticmethod
    def current() -> PassContext:
        return PassContext._open[-1] if PassContext._open else PassContext()

    def __enter__(self) -> PassContext:
        PassContext._open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        PassContext._open.pop()

    def run_lower_passes(self, mod: IRModule, phases: Sequence[int]) -> IRModule:
        for phase in phases:
            for number, step in self.config.get(_LOWERING, ()):
                mod = step(mod) if number == phase and step is not None else mod
        return mod


class Pass:
    def __init__(self, run: Callable[[IRModule, PassContext], Any], name: str = "pass", opt_level: int = 0) -> None:
        self._run, self.name, self.opt_level = run, name, opt_level

    def __call__(self, mod: IRModule) -> IRModule:
        return self._run(IRModule.of(mod), PassContext.current())


def Sequential(passes: Sequence[Callable[[IRModule], IRModule]], opt_level: int = 0, name: str = "sequential") -> Pass:
    return Pass(lambda mod, _: reduce(lambda found, step: step(found), passes, mod), name, opt_level)


def module_pass(
    pass_func: Any = None, opt_level: int = 0, name: str | None = None, required: object = (), traceable: bool = False
) -> Any:
    """A pass from a function `(mod, ctx)` or class with `transform_module(self, mod, ctx)`."""

    def decorate(decorated: Any) -> Any:
        label = name or decorated.__name__
        if not isinstance(decorated, type):
            return Pass(decorated, label, opt_level)

        def make(*args: Any, **options: Any) -> Pass:
            return Pass(decorated(*args, **options).transform_module, label, opt_level)

        return make

    return decorate(pass_func) if pass_func is not None else decorate


__getattr__ = refuses(__name__)
