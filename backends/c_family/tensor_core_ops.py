"""Tensor cores: each op of a warp is a call of a helper function, with pointers into the thread's registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from weft.dialects import low_tensor_cores
from weft.dialects.element_types import bytes_of
from weft.dialects.low_access import AccessPtrOp
from weft.dialects.low_kernel import space_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.backends.c_family.emitter import FunctionEmitter, Rules
    from weft.dialects.low_tensor_cores import FragmentAttr


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
    """Rows start at multiples of so many bytes. Raises `CompileError` where that is not known."""
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
    low_tensor_cores.WmmaLoadOp: emit_wmma_load,
    low_tensor_cores.WmmaStoreOp: emit_wmma_store,
    low_tensor_cores.WmmaMmaOp: emit_wmma_mma,
    low_tensor_cores.LdmatrixOp: emit_ldmatrix,
    low_tensor_cores.MmaSyncOp: emit_mma_sync,
}

__all__ = ["RULES", "load_name", "mma_name", "store_name"]
