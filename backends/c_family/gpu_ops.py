"""Kernels: thread ids, barriers, shuffles, atomics, asynchronous copies and tensor cores.

Operations without an operator in the language are helper functions in front of the kernels (only these contain PTX).
Each op of a warp on tensor cores is a call of one, with pointers to the thread's fragments.
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


def emit_thread_id(emitter: FunctionEmitter, op: Operation) -> None:
    """`threadIdx.x`, `blockIdx.x` and so on, as an int."""
    thread_id = cast("low_kernel.ThreadIdOp", op)
    axis = thread_id.axis.data
    extent = thread_id.static_extent
    result = thread_id.result
    if extent == 1:
        emitter.ranges[result] = IndexRange.constant(0)
        emitter.values[result] = CExpr("0", "idx32", literal=True)
        return
    gpu = emitter.module.target.gpu
    limits = (2**31 - 1,) * 3 if gpu is None else gpu.max_grid if axis.startswith("block") else gpu.max_block
    emitter.ranges[result] = IndexRange(0, (limits["xyz".index(axis[-1])] if extent is None else extent) - 1)
    spelled = emitter.language.axes.get(axis)
    if spelled is None:
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}: it stands in kernels")
    name = emitter.names.fresh(result.name_hint or f"{axis[0]}{axis[-1]}")
    emitter.line(f"const {emitter.language.types['idx32']} {name} = {spelled};")
    emitter.values[result] = CExpr(name, "idx32")


def emit_barrier(emitter: FunctionEmitter, op: Operation) -> None:
    if not emitter.language.barrier:
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}: it stands in kernels")
    emitter.line(f"{emitter.language.barrier};")


def emit_shuffle(emitter: FunctionEmitter, op: Operation) -> None:
    """The value of another lane of the warp."""
    shuffle = cast("low_kernel.ShuffleOp", op)
    element = emitter.wide_element(shuffle.value.type, op)
    if element not in ("i32", "i64", "idx64", "f32", "f64"):
        raise CompileError.at(op, f"{op.name} of {element} has no form in {emitter.language.name}")
    value, offset = emitter.exprs(op)
    language = emitter.language
    if language.kind == "cuda":
        mode = "" if shuffle.mode.data.value == "idx" else f"_{shuffle.mode.data.value}"
        text = f"__shfl{mode}_sync(0xffffffffu, {value.text}, {offset.text}, {shuffle.lanes})"
    else:
        name = f"weft_shuffle_{shuffle.mode.data.value}_{element}"
        if name not in language.helpers:
            raise CompileError.at(op, f"{op.name} of {element} has no form in {language.name}")
        helper = emitter.module.helper(name)
        first = "lane_in_warp"
        if language.kind == "opencl":
            if not isinstance(op.parent_op(), FuncOp):
                raise CompileError.at(
                    op,
                    f"{op.name} stands in a loop or condition: {language.name} exchanges values through shared memory",
                )
            first = _exchange(emitter, op, element)
        text = f"{helper}({first}, {value.text}, {offset.text}, {shuffle.lanes})"
    _bind_call(emitter, op, text, element, "other")


def _bind_call(emitter: FunctionEmitter, op: Operation, text: str, element: str, hint: str) -> None:
    """A variable that holds the result of a call with side effects."""
    result = op.results[0]
    emitter.values[result] = emitter.variable(result.name_hint or hint, CExpr(text, element, size=1, calls=True), op)


def _exchange(emitter: FunctionEmitter, op: Operation, element: str) -> str:
    """The shared array through which the threads of a block exchange values of a type."""
    if element not in emitter.exchanges:
        name = emitter.exchanges[element] = emitter.names.fresh(f"exchange_{element}")
        type_ = emitter.language.type(element, op)
        emitter.line(f"{emitter.language.spaces['shared']}{type_} {name}[{emitter.kernel_threads}];")
    return emitter.exchanges[element]


def emit_atomic(emitter: FunctionEmitter, op: Operation) -> None:
    atomic = cast("low_kernel.AtomicOp", op)
    element, _ = buffer_type(emitter, atomic.buffer.type, op)
    space = space_of(atomic.buffer.type)
    known = ("i32", "f32", "i64", "f64") if emitter.language.kind == "cuda" else ("i32", "f32")
    if element not in known or emitter.language.kind == "c":
        raise CompileError.at(op, f"{op.name} {atomic.kind.data} of {element} has no form in {emitter.language.name}")
    kind = atomic.kind.data.value
    helper = emitter.language.atomics.get((kind, element))
    if helper is None:
        suffix = "" if emitter.language.kind == "cuda" else f"_{space}"
        helper = emitter.module.helper(f"weft_atomic_{kind}_{element}{suffix}")
    (index,) = atomic.indices
    at = pointer_text(emitter, atomic.buffer, index)
    text = f"{helper}({at}, {emitter.expr(atomic.value).text})"
    if atomic.old.first_use is None:
        emitter.line(f"{text};")
    else:
        _bind_call(emitter, op, text, element, "old")


def emit_async_copy(emitter: FunctionEmitter, op: Operation) -> None:
    """`weft_async_copy_16(S + j, A + i)`; languages without asynchronous copies copy element by element."""
    copy = cast("low_kernel.AsyncCopyOp", op)
    if emitter.language.kind == "cuda":
        helper = emitter.module.helper(f"weft_async_copy_{copy.bytes}")
        target, source = (pointer_text(emitter, b, i) for b, i in _ends(copy))
        emitter.line(f"{helper}({target}, {source});")
        return
    type_ = cast("MemRefType", copy.source.type)
    element = emitter.element(type_.element_type, op)
    count = copy.bytes // element_bytes(element)
    (target, at), (source, start) = _ends(copy)
    emitter.lane_line(count, f"{access(emitter, target, at, count)} = {access(emitter, source, start, count)};")


def _ends(copy: low_kernel.AsyncCopyOp) -> tuple[tuple[SSAValue, SSAValue], tuple[SSAValue, SSAValue]]:
    return (copy.target, copy.target_index), (copy.source, copy.source_index)


def emit_async_commit(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.language.kind == "cuda":
        emitter.line(f"{emitter.module.helper('weft_async_commit')}();")


def emit_async_wait(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.language.kind == "cuda":
        wait = cast("low_kernel.AsyncWaitOp", op)
        emitter.line(f"{emitter.module.helper('weft_async_wait')}<{wait.groups}>();")


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


def emit_wmma_load(emitter: FunctionEmitter, op: Operation) -> None:
    load = cast("low_tensor_cores.WmmaLoadOp", op)
    _require_alignment(emitter, op, load.source, load.rows, 2 * load.fragment.elements_per_thread)
    name = load_name(load.fragment, _space(load.source))
    _call(emitter, op, name, load.target, load.source, load.rows)


def emit_wmma_store(emitter: FunctionEmitter, op: Operation) -> None:
    store = cast("low_tensor_cores.WmmaStoreOp", op)
    _require_alignment(emitter, op, store.target, store.rows, 4 * store.fragment.elements_per_thread)
    name = store_name(store.fragment, _space(store.target))
    _call(emitter, op, name, store.source, store.target, store.rows)


def emit_wmma_mma(emitter: FunctionEmitter, op: Operation) -> None:
    mma = cast("low_tensor_cores.WmmaMmaOp", op)
    _call(emitter, op, mma_name(mma.a_fragment, mma.b_fragment), mma.c, mma.a, mma.b)


def emit_ldmatrix(emitter: FunctionEmitter, op: Operation) -> None:
    load = cast("low_tensor_cores.LdmatrixOp", op)
    _require_alignment(emitter, op, load.source, None, 16)
    name = f"weft_ldmatrix_x{load.matrices}{'_trans' if load.is_transposed else ''}"
    _call(emitter, op, name, load.target, load.source)


def emit_mma_sync(emitter: FunctionEmitter, op: Operation) -> None:
    mma = cast("low_tensor_cores.MmaSyncOp", op)
    _call(emitter, op, f"weft_mma_m16n8k16_{mma.element}", mma.c, mma.a, mma.b)


def _space(pointer: SSAValue) -> str:
    return space_of(cast("AccessPtrOp", pointer.owner).buffer.type)


def _call(emitter: FunctionEmitter, op: Operation, name: str, *operands: SSAValue) -> None:
    if emitter.language.kind != "cuda":
        raise CompileError.at(op, f"{op.name} has no form in {emitter.language.name}")
    emitter.line(f"{emitter.module.helper(name)}({', '.join(emitter.expr(operand).text for operand in operands)});")


def _require_alignment(
    emitter: FunctionEmitter, op: Operation, pointer: SSAValue, rows: SSAValue | None, size: int
) -> None:
    """Raises `CompileError` unless rows are known to start at multiples of `size` bytes."""
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
