"""`tvm.relay` of older TVM: ONNX models."""

from types import SimpleNamespace
from typing import Any

from weft.support.errors import CompileError
from weft.tvm.absent import refuses
from weft.tvm.ir.module import IRModule
from weft.tvm.relax import vm_build
from weft.tvm.relax.frontend.onnx import from_onnx as _from_onnx
from weft.tvm.relax.function import Function
from weft.tvm.runtime.module import Module


def _from_onnx_with_params(
    model: Any, shape: Any = None, dtype: str = "float32", *, freeze_params: bool = True
) -> tuple[IRModule, dict[str, Any]]:
    """No parameters remain. Raises `CompileError` for `freeze_params=False`."""
    if not freeze_params:
        raise CompileError("from_onnx: weft has no freeze_params=False: weights are constants")
    return _from_onnx(model, shape, dtype), {}


frontend = SimpleNamespace(from_onnx=_from_onnx_with_params)


def build(
    ir_mod: Any, target: Any = "llvm", target_host: Any = None, params: Any = None, mod_name: str = ""
) -> tuple[str, Module, dict[str, Any]]:
    """Returns script, compiled module, and no parameters."""
    of: Any = ir_mod.func_op.parent_op() if isinstance(ir_mod, Function) else ir_mod
    return str(IRModule.of(of)), vm_build.build(of, target, params or None).mod, {}


__getattr__ = refuses(__name__)
