"""`relax.build` and the virtual machine."""

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.driver.build import build as _build
from weft.passes.graph.functions import inline_calls
from weft.support.errors import CompileError
from weft.texpr.shapes import items
from weft.tvm.ir.module import IRModule
from weft.tvm.relax.transform import FoldConstant, FuseOps, FuseTIR, InlinePrivateFunctions, Sequential, mark_groups
from weft.tvm.runtime.module import Module
from weft.tvm.runtime.ndarray import Device, NDArray
from weft.tvm.script.printer import plain
from weft.tvm.target import spelling


class Executable:
    def __init__(self, module: Module) -> None:
        self.mod, self.export_library = module, module.export_library


def build(
    mod: IRModule, target: Any = "llvm", params: None = None, relax_pipeline: object = "default",
    tir_pipeline: object = "default", exec_mode: str = "compiled",
) -> Executable:  # fmt: skip
    """Compile a model without scheduling block loops."""
    if params:
        raise CompileError("relax.build: bind parameters before: relax.transform.BindParams(name, params)(mod)")
    mark_groups(module := plain(mod))
    inline_calls(module)
    return Executable(Module(_build(module, spelling(target), default_schedule=False)))


class VirtualMachine:
    """Runs a compiled model: `VirtualMachine(ex, tvm.cpu())["main"](x)`."""

    def __init__(self, rt_mod: Executable | Module, device: Device | list[Device] | None = None) -> None:
        self.module = rt_mod.mod if isinstance(rt_mod, Executable) else rt_mod
        self.time_evaluator = self.module.time_evaluator

    def __getitem__(self, name: str) -> Callable[..., Any]:
        function = self.module[name]

        def call(*args: Any) -> Any:
            found = function(*args)
            arrays = tuple(np.asarray(part).view(NDArray) for part in items(found))
            return arrays if isinstance(found, tuple) else arrays[0]

        return call


def get_pipeline(name: str = "zero", **options: object) -> Callable[[IRModule], IRModule]:
    """Passes before a build: `get_pipeline("zero")(mod)`. Raises `CompileError` except for "zero" and "default"."""
    if name not in ("zero", "default", "default_build") or options:
        raise CompileError(f"get_pipeline: weft has 'zero' and 'default', got {name!r} {options or ''}".rstrip())
    return Sequential([InlinePrivateFunctions(), FoldConstant(), FuseOps(), FuseTIR()], name=name)
