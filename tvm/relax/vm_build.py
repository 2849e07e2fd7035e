"""`relax.build` and the virtual machine, which is a library of `weft.build`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.driver.build import build as _build
from weft.support.errors import CompileError
from weft.tvm.driver.build_module import plain
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.transform import mark_groups
from weft.tvm.runtime.module import Module
from weft.tvm.runtime.ndarray import Device, NDArray
from weft.tvm.target import spelling


class Executable:
    """A compiled model."""

    def __init__(self, module: Module) -> None:
        self.mod = module

    def export_library(self, file_name: str) -> Any:
        return self.mod.export_library(file_name)


def build(mod: IRModule, target: Any = "llvm", params: None = None, exec_mode: str = "compiled") -> Executable:
    """Compile a model. Functions of block loops run as they are written."""
    if params:
        raise CompileError("relax.build: bind parameters before: relax.transform.BindParams(name, params)(mod)")
    del exec_mode  # there is one
    module = plain(mod)
    mark_groups(module)
    return Executable(Module(_build(module, spelling(target), default_schedule=False)))


class VirtualMachine:
    """Runs the functions of a compiled model: `VirtualMachine(ex, tvm.cpu())["main"](x)`."""

    def __init__(self, rt_mod: Executable | Module, device: Device | list[Device] | None = None) -> None:
        self.module = rt_mod.mod if isinstance(rt_mod, Executable) else rt_mod
        del device  # functions run where their target is

    def __getitem__(self, name: str) -> Callable[..., Any]:
        function = self.module[name]

        def call(*args: Any) -> Any:
            found = function(*args)
            if isinstance(found, tuple):
                return tuple(np.asarray(part).view(NDArray) for part in found)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            return np.asarray(found).view(NDArray)

        return call

    def time_evaluator(self, func_name: str, dev: Device | None = None, **options: Any) -> Any:
        return self.module.time_evaluator(func_name, dev, **options)
