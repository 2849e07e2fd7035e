"""The kernels of a module as one text. Host functions, which launch them, are run by the runtime and not printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.memref import AllocaOp

from weft.backends.c_family.assumptions import assumed_of_kernels
from weft.backends.c_family.call_ops import global_text
from weft.backends.c_family.emitter import FunctionEmitter, ModuleEmitter, element_bytes
from weft.backends.c_family.functions import bind_parameters, new_module_emitter, rules
from weft.backends.c_family.helpers import helper_texts
from weft.backends.c_family.kernel_comments import grids_of, kernel_comment
from weft.backends.c_family.memory_ops import buffer_type, shared_alignment
from weft.backends.c_family.source import Kernel, KernelSource
from weft.backends.low_modules import contents, used_globals
from weft.dialects import low_kernel
from weft.dialects.low_kernel import space_of
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.dialects.func import FuncOp

    from weft.backends.c_family.index_ranges import IndexRange
    from weft.backends.c_family.language import Language
    from weft.support.target import Target


def emit_kernels(
    module: ModuleOp,
    target: Target,
    language: Language,
    head: Callable[[str, tuple[int, int, int], list[str]], str],
    preamble: Callable[[str], str],
    dynamic_shared: str = "",
) -> KernelSource:
    """The text of all kernels of a module at low level.

    `preamble` gives what stands first, for the rest of the text; `dynamic_shared` declares the array `weft_shared` of
    what the launch gives, in languages that have it. Raises `CompileError` at the op that has a type or form that the
    language lacks, and for a block with more threads or shared memory than the target has.
    """
    functions, outside, data = contents(module)
    kernels = [function for function in functions if low_kernel.kernel_of(function) is not None]
    emitter = ModuleEmitter(language, target, rules())
    new_module_emitter(emitter, kernels, outside, data)
    known, grids = assumed_of_kernels(module), grids_of(module)
    texts: list[str] = []
    entries: list[Kernel] = []
    for function in kernels:
        ranges = known.get(function.sym_name.data, {})
        entry, text = _kernel_text(emitter, function, head, dynamic_shared, ranges, grids)
        entries.append(entry)
        texts.append(text)
    scratch = FunctionEmitter(emitter, "module")
    used = used_globals(kernels)
    globals_ = [global_text(emitter, scratch, op) for op in data if op.sym_name.data in used]
    code = "\n\n".join((*globals_, *helper_texts(language, emitter.helpers), *texts))
    text = "\n\n".join(filter(None, (preamble(code), code))) + "\n"
    return KernelSource(text, tuple(entries), symbols=dict(emitter.symbols))


def _kernel_text(
    module: ModuleEmitter,
    function: FuncOp,
    head: Callable[[str, tuple[int, int, int], list[str]], str],
    dynamic_shared: str,
    known: Mapping[int, IndexRange],
    grids: Mapping[str, tuple[int | None, ...]],
) -> tuple[Kernel, str]:
    kernel = low_kernel.kernel_of(function)
    if kernel is None:
        raise InternalError(f"@{function.sym_name.data} is no kernel")
    name, symbol = function.sym_name.data, module.symbols[function.sym_name.data]
    _check_threads(function, kernel, module.target)
    emitter = FunctionEmitter(module, name, kernel.threads_per_block)
    gpu = module.target.gpu
    limit = gpu.shared_bytes if gpu is not None else 0
    needed = _shared_bytes(emitter, function)
    if needed > limit and dynamic_shared and gpu is not None:
        emitter.dynamic_shared, limit = True, gpu.max_shared_bytes
    if needed > limit:
        raise CompileError.at(
            function, f"@{name} needs {needed} bytes of shared memory a block, {module.target.kind} has {limit}"
        )
    parameters = bind_parameters(emitter, function, known)
    if emitter.dynamic_shared:
        emitter.line(dynamic_shared)
    emitter.block_ops(function.body.block)
    body = "".join(f"{line}\n" for line in emitter.lines)
    comment = kernel_comment(name, kernel, grids)
    if emitter.dynamic_shared:
        comment += f" Takes {emitter.shared_bytes} bytes of shared memory at launch."
    text = f"{comment}\n{head(symbol, kernel.threads_per_axis, parameters)} {{\n{body}}}"
    shared = emitter.shared_bytes if emitter.dynamic_shared else 0
    return Kernel(name, symbol, kernel.threads_per_axis, _parameter_kinds(emitter, function), shared), text


def _shared_bytes(emitter: FunctionEmitter, function: FuncOp) -> int:
    """What the shared buffers of a kernel take, each starting where its alignment lets it."""
    total = 0
    for op in function.body.block.ops:
        if isinstance(op, AllocaOp) and space_of(op.memref.type) == "shared":
            element, length = buffer_type(emitter, op.memref.type, op)
            aligned = shared_alignment(op.memref)
            total = -(-total // aligned) * aligned + (length or 0) * element_bytes(element)
    return total


def _check_threads(function: FuncOp, kernel: low_kernel.KernelAttr, target: Target) -> None:
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


def _parameter_kinds(emitter: FunctionEmitter, function: FuncOp) -> tuple[str, ...]:
    """What a launch passes, see `Kernel.parameters`."""
    return tuple(
        "ptr"
        if isinstance(argument.type, MemRefType)
        else "i64"
        if isinstance(argument.type, IndexType)
        else emitter.element(argument.type, function)
        for argument in function.args
    )
