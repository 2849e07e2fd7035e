"""`tvm.target`: targets, and TVM's device names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from weft.support.errors import CompileError, did_you_mean
from weft.support.gpu_machine import CUDA_DEVICES
from weft.support.target import Target as _Target
from weft.tvm.absent import refuses


def spelling(target: Any) -> str:
    """weft's spelling: `nvidia/a100` is `cuda` with an architecture, `--num-cores` is `-num-threads`."""
    text = str(target or "llvm").strip()
    if text.startswith("nvidia/"):
        if text not in CUDA_DEVICES:
            raise CompileError(f"unknown device '{text}'{did_you_mean(text, CUDA_DEVICES)}")
        return f"cuda -arch={CUDA_DEVICES[text]}"
    return re.sub(r"--?(num-cores|num-threads)[= ]", "-num-threads=", text).replace(" --", " -")


_open: list[Any] = []


def current_target() -> Any:
    """The innermost `with target:`, or None."""
    return _open[-1] if _open else None


class Target(_Target):
    """`Target("llvm -mcpu=native")`, `Target("nvidia/tesla-p100")`. Raises `CompileError` as weft's."""

    def __init__(self, target: Any = "llvm", host: Any = None) -> None:
        if isinstance(target, Mapping):  # {"kind": "cuda", "arch": "sm_80"}
            options = dict(cast("Mapping[str, Any]", target))
            host = host or options.pop("host", None)
            kind = options.pop("kind", "llvm")
            target = " ".join((kind, *(f"-{key}={value}" for key, value in options.items() if _is_option(value))))
        _Target.parse(spelling(host))
        self.__dict__.update(vars(_Target.parse(spelling(target))))

    def __enter__(self) -> Target:
        _open.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _open.pop()

    @staticmethod
    def current(allow_none: bool = True) -> Any:
        return current_target()


def _is_option(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


__getattr__ = refuses(__name__)
