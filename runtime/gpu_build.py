"""From a module at low level with kernels to functions that run on a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from weft.backends.llvm.emit import emit_host_functions
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_gpu import BarrierOp
from weft.dialects.low_kernel import kernel_of
from weft.dialects.low_tensor_cores import WMMA_ALIGNMENT, WmmaLoadOp, WmmaStoreOp
from weft.runtime.build import signature_of
from weft.runtime.devices import KernelProgram, KernelSpec
from weft.runtime.gpu_library import GpuLibrary
from weft.support.errors import InternalError
from weft.support.target import Target

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.backends.c_family.source import KernelSource

_ARGUMENTS: Final = {
    **{"ptr": "buffer", "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
}


def load_gpu_module(module: ModuleOp, target: Target) -> GpuLibrary:
    """A library of the host functions of a module at low level, whose kernels are emitted for `target`.

    Raises `CompileError` when kernels use what the target lacks, or host code does what only kernels can.
    """
    host = emit_host_functions(module, Target.of_process(0))
    source = _emitted(module, target)
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    signatures = [signature_of(op) for op in functions if not op.is_declaration and kernel_of(op) is None]
    alignment = {op.sym_name.data: _alignment(op) for op in functions}
    kernels = tuple(
        KernelSpec(
            kernel.name,
            kernel.symbol,
            kernel.threads,
            tuple(_ARGUMENTS[parameter] for parameter in kernel.parameters),
            kernel.shared_bytes,
            alignment.get(kernel.name, {}),
        )
        for kernel in source.kernels
    )
    program = KernelProgram(source.text, kernels, target, _barriers_in_branches(module))
    return GpuLibrary(program, host, signatures)


def _alignment(kernel: FuncOp) -> dict[int, int]:
    """Position of an argument of which `wmma` accesses tiles -> the multiple of bytes where it starts."""
    found: dict[int, int] = {}
    for op in kernel.walk():
        pointer = op.source if isinstance(op, WmmaLoadOp) else op.target if isinstance(op, WmmaStoreOp) else None
        access = None if pointer is None else pointer.owner
        if isinstance(access, AccessPtrOp) and isinstance(access.buffer, BlockArgument):
            found[access.buffer.index] = WMMA_ALIGNMENT
    return found


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
