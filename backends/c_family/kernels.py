"""The kernels of a module as text. The LLVM backend compiles the host functions that launch them.

    // Blocks "A_shared", "B" of the program: 8 x 1 x 1 blocks of 128 x 1 x 1 threads.

The comment above a kernel names the blocks of the program that it computes, and the shape of its launches (`?`:
unknown, or different between launches).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.memref import AllocaOp

from weft.backends.c_family.emitter import FunctionEmitter, KernelSource, KernelText, ModuleEmitter, element_bytes
from weft.backends.c_family.functions import RULES, bind_parameters, global_text
from weft.backends.c_family.helpers import helper_texts
from weft.backends.c_family.index_ranges import assumed_of_kernels
from weft.backends.c_family.memory_ops import buffer_type, shared_alignment
from weft.backends.low_modules import contents, used_globals
from weft.backends.names import in_comment
from weft.dialects import low_kernel
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low_kernel import LaunchOp, space_of
from weft.dialects.traversal import operations_in
from weft.support.errors import CompileError, InternalError
from weft.support.gpu_machine import GPU_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.backends.c_family.index_ranges import IndexRange
    from weft.backends.c_family.language import Language
    from weft.support.gpu_machine import GpuMachine
    from weft.support.target import Target


def language_of(kind: str) -> Language:
    if kind not in GPU_KINDS:
        raise InternalError(f"programs for {kind} have no kernels")
    return getattr(import_module(f"weft.backends.{kind}.language"), kind.upper())


def emit_kernels(module: ModuleOp, target: Target) -> KernelSource:
    """Raises `CompileError` for types or forms that the language lacks, and blocks with more threads or shared memory
    than the target has."""
    language = language_of(target.kind)
    functions, outside, data = contents(module)
    kernels = [function for function in functions if low_kernel.kernel_of(function) is not None]
    emitter = ModuleEmitter(language, target, RULES, outside, (*kernels, *data))
    known, grids = assumed_of_kernels(module), grids_of(module)
    texts: list[str] = []
    entries: list[KernelText] = []
    for function in kernels:
        ranges = known.get(function.sym_name.data, {})
        entry, text = _kernel_text(emitter, function, ranges, grids)
        entries.append(entry)
        texts.append(text)
    scratch = FunctionEmitter(emitter, "module")
    used = used_globals(kernels)
    globals_ = [global_text(emitter, scratch, op) for op in data if op.sym_name.data in used]
    code = "\n\n".join((*globals_, *helper_texts(language, emitter.helpers), *texts))
    types = "\n".join(emitter.shared_type_texts())
    text = "\n\n".join(filter(None, (language.preamble_of(code), emitter.no_contraction, types, code))) + "\n"
    return KernelSource(text, tuple(entries), symbols=dict(emitter.symbols))


def _kernel_text(
    module: ModuleEmitter,
    function: FuncOp,
    known: Mapping[int, IndexRange],
    grids: Mapping[str, tuple[int | None, ...]],
) -> tuple[KernelText, str]:
    kernel = low_kernel.kernel_of(function)
    if kernel is None:
        raise InternalError(f"@{function.sym_name.data} is no kernel")
    name, symbol = function.sym_name.data, module.symbols[function.sym_name.data]
    gpu = _checked_gpu(function, kernel, module.target)
    emitter = FunctionEmitter(module, name, kernel.threads_per_block)
    limit = gpu.shared_bytes
    needed = _shared_bytes(emitter, function)
    if needed > limit and module.language.dynamic_shared:
        emitter.dynamic_shared, limit = True, gpu.max_shared_bytes
    if needed > limit:
        raise CompileError.at(
            function, f"@{name} needs {needed} bytes of shared memory a block, {module.target.kind} has {limit}"
        )
    parameters = bind_parameters(emitter, function, known)
    if emitter.dynamic_shared:
        emitter.line(module.language.dynamic_shared)
    emitter.block_ops(function.body.block)
    body = "".join(f"{line}\n" for line in emitter.lines)
    comment = kernel_comment(name, kernel, grids)
    if emitter.dynamic_shared:
        comment += f" Takes {emitter.shared_bytes} bytes of shared memory at launch."
    text = f"{comment}\n{module.language.head(symbol, kernel.threads_per_axis, parameters)} {{\n{body}}}"
    shared = emitter.shared_bytes if emitter.dynamic_shared else 0
    return KernelText(name, symbol, kernel.threads_per_axis, _parameter_kinds(emitter, function), shared), text


def _shared_bytes(emitter: FunctionEmitter, function: FuncOp) -> int:
    """Bytes, including alignment."""
    total = 0
    for op in function.body.block.ops:
        if isinstance(op, AllocaOp) and space_of(op.memref.type) == "shared":
            element, length = buffer_type(emitter, op.memref.type, op)
            aligned = shared_alignment(op.memref)
            total = -(-total // aligned) * aligned + (length or 0) * element_bytes(element)
    return total


def _checked_gpu(function: FuncOp, kernel: low_kernel.KernelAttr, target: Target) -> GpuMachine:
    """Raises `CompileError` unless the GPU supports the thread blocks of `kernel`."""
    gpu = target.gpu
    if gpu is None:
        raise CompileError.at(function, f"@{function.sym_name.data} is a kernel, and target {target.kind} has none")
    if kernel.threads_per_block > gpu.max_threads_per_block:
        raise CompileError.at(
            function,
            f"@{function.sym_name.data} has {kernel.threads_per_block} threads a block, {target.kind} has at most "
            f"{gpu.max_threads_per_block}",
        )
    for axis, count, most in zip("xyz", kernel.threads_per_axis, gpu.max_block, strict=True):
        if count > most:
            raise CompileError.at(
                function,
                f"@{function.sym_name.data} has {count} threads along {axis}, {target.kind} has at most {most}",
            )
    return gpu


def _parameter_kinds(emitter: FunctionEmitter, function: FuncOp) -> tuple[str, ...]:
    """See `KernelText.parameters`."""
    return tuple(
        "ptr"
        if isinstance(argument.type, MemRefType)
        else "i64"
        if isinstance(argument.type, IndexType)
        else emitter.element(argument.type, function)
        for argument in function.args
    )


def grids_of(module: ModuleOp) -> dict[str, tuple[int | None, ...]]:
    """Kernel -> blocks of its launches along x, y and z, None unless one constant."""
    found: dict[str, tuple[int | None, ...]] = {}
    for op in operations_in(module):
        if isinstance(op, LaunchOp):
            name, grid = op.kernel.string_value(), tuple(map(constant_integer, op.grid))
            known = found.setdefault(name, grid)
            found[name] = tuple(a if a == b else None for a, b in zip(known, grid, strict=True))
    return found


def kernel_comment(name: str, kernel: low_kernel.KernelAttr, grids: Mapping[str, tuple[int | None, ...]]) -> str:
    labels = kernel.source.data.split(", ")
    what = ", ".join(f'"{in_comment(label)}"' for label in labels)
    threads = " x ".join(map(str, kernel.threads_per_axis))
    grid = " x ".join("?" if extent is None else str(extent) for extent in grids.get(name, ()))
    blocks = f"{grid} blocks of {threads} threads" if grid else f"blocks of {threads} threads"
    return f"// Block{'s' if len(labels) > 1 else ''} {what} of the program: {blocks}."
