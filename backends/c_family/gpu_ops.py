"""Kernels: thread ids, barriers, shuffles, atomics, asynchronous copies and tensor cores.

Operations without an operator are helper functions, the only ones with PTX. Those on tensor cores take pointers to the
thread's fragments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects.func import FuncOp

from weft.backends.c_family.emitter import element_bytes
from weft.backends.c_family.expression import CExpr
from weft.backends.c_family.index_ranges import IndexRange
from weft.backends.c_family.memory_ops import access, buffer_type, pointer_text
from weft.dialects import low_kernel, low_tensor_cores
from weft.dialects.element_types import bytes_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import space_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.backends.c_family.emitter import FunctionEmitter, Rules
    from weft.dialects.low_tensor_cores import FragmentAttr


def emit_thread_id(emitter: FunctionEmitter, op: low_kernel.ThreadIdOp) -> None:
    axis = op.axis.data
    extent = op.static_extent
    result = op.result
    if extent == 1:
        emitter.ranges[result] = IndexRange.constant(0)
        emitter.values[result] = CExpr("0", "idx32", literal=True)
        return
    gpu = emitter.module.target.gpu
    limits = (2**31 - 1,) * 3 if gpu is None else gpu.max_grid if axis.startswith("block") else gpu.max_block
    emitter.ranges[result] = IndexRange(0, (limits["xyz".index(axis[-1])] if extent is None else extent) - 1)
    spelled = emitter.language.axes.get(axis)
    if spelled is None:
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name} outside of kernels")
    name = emitter.names.fresh(result.name_hint or f"{axis[0]}{axis[-1]}")
    emitter.line(f"const {emitter.language.types['idx32']} {name} = {spelled};")
    emitter.values[result] = CExpr(name, "idx32")


def emit_barrier(emitter: FunctionEmitter, op: Operation) -> None:
    if not emitter.language.barrier:
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name} outside of kernels")
    emitter.line(f"{emitter.language.barrier};")


def emit_shuffle(emitter: FunctionEmitter, op: low_kernel.ShuffleOp) -> None:
    element = emitter.wide_element(op.value.type, op)
    if element not in ("i32", "i64", "idx64", "f32", "f64"):
        raise CompileError.at(op, f"{op.name} of {element} has no form in {emitter.language.name}")
    value, offset = emitter.exprs(op)
    language = emitter.language
    if language.kind == "cuda":
        mode = "" if op.mode.data.value == "idx" else f"_{op.mode.data.value}"
        text = f"__shfl{mode}_sync(0xffffffffu, {value.text}, {offset.text}, {op.lanes})"
    else:
        name = f"weft_shuffle_{op.mode.data.value}_{element}"
        if name not in language.helpers:
            raise CompileError.at(op, f"{op.name} of {element} has no form in {language.name}")
        helper = emitter.module.helper(name)
        first = "lane_in_warp"
        if language.kind == "opencl":
            if not isinstance(op.parent_op(), FuncOp):
                raise CompileError.at(
                    op,
                    f"{op.name} is in a loop or condition: {language.name} exchanges values through shared memory",
                )
            first = _exchange(emitter, op, element)
        text = f"{helper}({first}, {value.text}, {offset.text}, {op.lanes})"
    _bind_call(emitter, op, text, element, "other")


def _bind_call(emitter: FunctionEmitter, op: Operation, text: str, element: str, hint: str) -> None:
    result = op.results[0]
    emitter.values[result] = emitter.variable(result.name_hint or hint, CExpr(text, element, size=1, calls=True), op)


def _exchange(emitter: FunctionEmitter, op: Operation, element: str) -> str:
    if element not in emitter.exchanges:
        name = emitter.exchanges[element] = emitter.names.fresh(f"exchange_{element}")
        type_ = emitter.language.type(element, op)
        emitter.line(f"{emitter.language.spaces['shared']}{type_} {name}[{emitter.kernel_threads}];")
    return emitter.exchanges[element]


def emit_atomic(emitter: FunctionEmitter, op: low_kernel.AtomicOp) -> None:
    element, _ = buffer_type(emitter, op.buffer.type, op)
    space = space_of(op.buffer.type)
    known = ("i32", "f32", "i64", "f64") if emitter.language.kind == "cuda" else ("i32", "f32")
    if element not in known or emitter.language.kind == "c":
        raise CompileError.at(op, f"{op.name} {op.kind.data} of {element} has no form in {emitter.language.name}")
    kind = op.kind.data.value
    helper = emitter.language.atomics.get((kind, element))
    if helper is None:
        suffix = "" if emitter.language.kind == "cuda" else f"_{space}"
        helper = emitter.module.helper(f"weft_atomic_{kind}_{element}{suffix}")
    (index,) = op.indices
    at = pointer_text(emitter, op.buffer, index)
    text = f"{helper}({at}, {emitter.expr(op.value).text})"
    if op.old.first_use is None:
        emitter.line(f"{text};")
    else:
        _bind_call(emitter, op, text, element, "old")


def emit_async_copy(emitter: FunctionEmitter, op: low_kernel.AsyncCopyOp) -> None:
    """`weft_async_copy_16(S + j, A + i)`; other languages copy element by element."""
    if emitter.language.kind == "cuda":
        helper = emitter.module.helper(f"weft_async_copy_{op.bytes}")
        target, source = (pointer_text(emitter, b, i) for b, i in _ends(op))
        emitter.line(f"{helper}({target}, {source});")
        return
    type_ = cast("MemRefType", op.source.type)
    element = emitter.element(type_.element_type, op)
    count = op.bytes // element_bytes(element)
    (target, at), (source, start) = _ends(op)
    emitter.lane_line(count, f"{access(emitter, target, at, count)} = {access(emitter, source, start, count)};")


def _ends(copy: low_kernel.AsyncCopyOp) -> tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]]:
    return (copy.target, copy.target_index), (copy.source, copy.source_index)


def emit_async_commit(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.language.kind == "cuda":
        emitter.line(f"{emitter.module.helper('weft_async_commit')}();")


def emit_async_wait(emitter: FunctionEmitter, op: low_kernel.AsyncWaitOp) -> None:
    if emitter.language.kind == "cuda":
        emitter.line(f"{emitter.module.helper('weft_async_wait')}<{op.groups}>();")


def load_name(fragment: FragmentAttr, space: str) -> str:
    """`weft_wmma_load_a_row_16x16x16_f16_shared`"""
    return f"weft_wmma_load_{fragment.role}_{fragment.order}_{_sizes(fragment)}_{fragment.element}_{space}"


def store_name(fragment: FragmentAttr, space: str) -> str:
    return f"weft_wmma_store_{_sizes(fragment)}_f32_{space}"


def mma_name(a: FragmentAttr, b: FragmentAttr) -> str:
    """`weft_wmma_mma_row_col_16x16x16_f16`"""
    return f"weft_wmma_mma_{a.order}_{b.order}_{_sizes(a)}_{a.element}"


def _sizes(fragment: FragmentAttr) -> str:
    return "x".join(map(str, fragment.shape))


def emit_wmma_load(emitter: FunctionEmitter, op: low_tensor_cores.WmmaLoadOp) -> None:
    _require_alignment(emitter, op, op.source, op.rows, 2 * op.fragment.elements_per_thread)
    name = load_name(op.fragment, _space(op.source))
    _call(emitter, op, name, op.target, op.source, op.rows)


def emit_wmma_store(emitter: FunctionEmitter, op: low_tensor_cores.WmmaStoreOp) -> None:
    _require_alignment(emitter, op, op.target, op.rows, 4 * op.fragment.elements_per_thread)
    name = store_name(op.fragment, _space(op.target))
    _call(emitter, op, name, op.source, op.target, op.rows)


def emit_wmma_mma(emitter: FunctionEmitter, op: low_tensor_cores.WmmaMmaOp) -> None:
    _call(emitter, op, mma_name(op.a_fragment, op.b_fragment), op.c, op.a, op.b)


def emit_ldmatrix(emitter: FunctionEmitter, op: low_tensor_cores.LdmatrixOp) -> None:
    _require_alignment(emitter, op, op.source, None, 16)
    name = f"weft_ldmatrix_x{op.matrices}{'_trans' if op.is_transposed else ''}"
    _call(emitter, op, name, op.target, op.source)


def emit_mma_sync(emitter: FunctionEmitter, op: low_tensor_cores.MmaSyncOp) -> None:
    _call(emitter, op, f"weft_mma_m16n8k16_{op.element}", op.c, op.a, op.b)


def _space(pointer: SSAValue) -> str:
    return space_of(cast("AccessPtrOp", pointer.owner).buffer.type)


def _call(emitter: FunctionEmitter, op: Operation, name: str, *operands: SSAValue) -> None:
    if emitter.language.kind != "cuda":
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}")
    emitter.line(f"{emitter.module.helper(name)}({', '.join(emitter.expr(operand).text for operand in operands)});")


def _require_alignment(
    emitter: FunctionEmitter, op: Operation, pointer: SSAValue, rows: SSAValue | None, size: int
) -> None:
    """Raises `CompileError` unless rows are known to be aligned."""
    access = cast("AccessPtrOp", pointer.owner)
    count = size // bytes_of(cast("MemRefType[Attribute]", access.buffer.type).element_type)
    for what, value in (
        ("rows are multiples of {} elements apart", rows),
        ("tiles start at multiples of {} elements", access.indices[0]),
    ):
        known = 0 if value is None else emitter.range_of(value).divisor
        if known % count:
            raise CompileError.at(
                op,
                f"{op.name}: in %{access.buffer.name_hint} {what.format(known)}, as far as is known, and they must be "
                f"of {count} ({size} bytes): see storage_align",
            )


RULES: Final[Rules] = {
    low_kernel.ThreadIdOp: emit_thread_id,
    low_kernel.BarrierOp: emit_barrier,
    low_kernel.ShuffleOp: emit_shuffle,
    low_kernel.AtomicOp: emit_atomic,
    low_kernel.AsyncCopyOp: emit_async_copy,
    low_kernel.AsyncCommitOp: emit_async_commit,
    low_kernel.AsyncWaitOp: emit_async_wait,
    low_tensor_cores.WmmaLoadOp: emit_wmma_load,
    low_tensor_cores.WmmaStoreOp: emit_wmma_store,
    low_tensor_cores.WmmaMmaOp: emit_wmma_mma,
    low_tensor_cores.LdmatrixOp: emit_ldmatrix,
    low_tensor_cores.MmaSyncOp: emit_mma_sync,
}
