"""From a module at low level with kernels to functions that run on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import scf

from weft.dialects.low_gpu import BarrierOp
from weft.runtime.build import signature_of
from weft.runtime.devices import KernelProgram, KernelSpec
from weft.runtime.gpu_library import GpuLibrary, HostCode
from weft.runtime.host_function import constants_of, function_names, host_functions, host_source
from weft.support.errors import InternalError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.backends.c_family.source import KernelSource
    from weft.support.target import Target

_ARGUMENTS: Final = {
    **{"ptr": "buffer", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
}


def load_gpu_module(module: ModuleOp, target: Target) -> GpuLibrary:
    """A library of the host functions of a module at low level, whose kernels are emitted for `target`.

    Raises `CompileError` when kernels use what the target lacks, or host code does what only kernels can.
    """
    functions = host_functions(module)
    host = HostCode(host_source(module), function_names(functions), constants_of(module))
    source = _emitted(module, target)
    kernels = tuple(
        KernelSpec(
            kernel.name,
            kernel.symbol,
            kernel.threads,
            tuple(_ARGUMENTS[parameter] for parameter in kernel.parameters),
            kernel.shared_bytes,
        )
        for kernel in source.kernels
    )
    program = KernelProgram(source.text, kernels, target, _barriers_in_branches(module))
    return GpuLibrary(program, host, [signature_of(function) for function in functions])


def _barriers_in_branches(module: ModuleOp) -> bool:
    branches = (op for op in module.walk() if isinstance(op, scf.IfOp))
    return any(isinstance(inner, BarrierOp) for branch in branches for inner in branch.walk())


def _emitted(module: ModuleOp, target: Target) -> KernelSource:
    if target.kind == "cuda":
        from weft.backends.cuda.emit import emit_module
    elif target.kind == "opencl":
        from weft.backends.opencl.emit import emit_module
    elif target.kind == "metal":
        from weft.backends.metal.emit import emit_module
    else:
        raise InternalError(f"programs for {target.kind} have no kernels")
    return emit_module(module, target)
