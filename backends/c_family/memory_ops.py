"""Buffers: loads, stores, and the allocation of temporaries.

Booleans are bytes: any nonzero byte reads as true, and 0 or 1 is written. Buffers are 16-byte aligned, so consecutive
lanes are accessed as one vector if the language has a type for it and the index is known to be a multiple of their
number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref, vector
from xdsl.dialects.func import FuncOp

from weft.backends.c_family import expression as c
from weft.backends.c_family.control_ops import assign
from weft.backends.c_family.emitter import element_bytes, root_of
from weft.backends.c_family.expression import LANE, CExpr, number
from weft.backends.low_modules import base_and_index, check_stack, check_starts_together, flat_buffer
from weft.dialects import low
from weft.dialects.low_access import AccessPtrOp, PrefetchOp
from weft.dialects.low_kernel import space_of
from weft.dialects.low_tensor_cores import WMMA_ALIGNMENT
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.backends.c_family.emitter import FunctionEmitter, Rules

WIDE_BYTES: Final = 16
"""Alignment in bytes."""


def buffer_type(emitter: FunctionEmitter, type_: Attribute, op: Operation) -> tuple[str, int | None]:
    """Element type and static length. Raises `CompileError` unless the memref is flat."""
    element, length = flat_buffer(type_, op)
    return emitter.element(element, op), length


def memory_type(emitter: FunctionEmitter, element: str, op: Operation) -> str:
    """An index has 64 bits in memory."""
    return emitter.language.memory_type("idx64" if element == "index" else element, op)


def access(emitter: FunctionEmitter, base: SSAValue, index: SSAValue, lanes: int) -> str:
    at = emitter.expr(index)
    place = at.text
    if lanes:
        place = LANE if at.text == "0" else f"{at.at(c.ADD)} + {LANE}"
    return f"{emitter.expr(base).at(c.PRIMARY)}[{place}]"


def _loaded(emitter: FunctionEmitter, op: Operation, text: str, base: SSAValue, index: SSAValue | None) -> CExpr:
    """`index` is None for several places."""
    at = emitter.expr(op.operands[1])
    result = op.results[0]
    element, lanes = emitter.wide_element(result.type, op), emitter.lanes(result.type, op)
    reads = at.reads | {(root_of(base), index)}
    level, text = (c.EQUALITY, f"{text} != 0") if element == "i1" else (c.PRIMARY, text)
    return CExpr(text, element, level, reads, at.size + 1, at.calls, lanes)


def emit_load(emitter: FunctionEmitter, op: Operation) -> CExpr:
    base, index = base_and_index(op, 0)
    result = op.results[0]
    lanes = emitter.lanes(result.type, op)
    loaded = _loaded(emitter, op, access(emitter, base, index, lanes), base, index)
    if not lanes or not is_wide(emitter, op, base, index, lanes):
        return loaded
    user = result.get_user_of_unique_use()
    if isinstance(user, vector.StoreOp) and user.parent is op.parent and _copies(emitter, user, lanes):
        return loaded
    variable = emitter.lane_variable(emitter.names.fresh(result.name_hint or "v"), loaded.element, lanes, op)
    target = _wide_variable(emitter, loaded.element, lanes, variable)
    emitter.line(f"{target} = {_wide(emitter, op, base, index, lanes, 'const ')};")
    return variable


def is_wide(emitter: FunctionEmitter, op: Operation, base: SSAValue, index: SSAValue, lanes: int) -> bool:
    element, _ = buffer_type(emitter, base.type, op)
    if not emitter.language.wide_type(element, lanes) or isinstance(root_of(base), str):
        return False
    return emitter.range_of(index).divisor % lanes == 0


def _copies(emitter: FunctionEmitter, op: vector.LoadOp | vector.StoreOp, lanes: int) -> bool:
    return is_wide(emitter, op, op.base, op.indices[0], lanes)


def pointer_text(emitter: FunctionEmitter, base: SSAValue, index: SSAValue) -> str:
    at, buffer = emitter.expr(index), emitter.expr(base)
    return buffer.text if at.text == "0" else f"{buffer.at(c.ADD)} + {at.at(c.MULTIPLY)}"


def _wide(emitter: FunctionEmitter, op: Operation, base: SSAValue, index: SSAValue, lanes: int, const: str = "") -> str:
    """`*(float4 *)(A + i)`"""
    element, _ = buffer_type(emitter, base.type, op)
    language = emitter.language
    place = pointer_text(emitter, base, index)
    pointed = f"{language.pointer_spaces.get(space_of(base.type), '')}{const}{language.wide_type(element, lanes)}"
    return f"*({pointed} *){place if place.isidentifier() else f'({place})'}"


def _wide_variable(emitter: FunctionEmitter, element: str, lanes: int, variable: CExpr) -> str:
    name = variable.text.partition("[")[0]
    space = emitter.language.pointer_spaces.get("local", "")
    return f"*({space}{emitter.language.wide_type(element, lanes)} *){name}"


def emit_store(emitter: FunctionEmitter, op: Operation) -> None:
    value = op.operands[0]
    base, index = base_and_index(op, 1)
    expr = emitter.expr(value)
    lanes = emitter.lanes(value.type, op)
    if lanes and is_wide(emitter, op, base, index, lanes):
        _store_wide(emitter, op, base, index, expr)
        return
    target = access(emitter, base, index, lanes)
    assign(emitter, target, expr.text, lanes, update=expr.element in ("f32", "f64"))


def _store_wide(emitter: FunctionEmitter, op: Operation, base: SSAValue, index: SSAValue, expr: CExpr) -> None:
    element, _ = buffer_type(emitter, base.type, op)
    lanes, source = expr.lanes, op.operands[0].owner
    target = _wide(emitter, op, base, index, lanes)
    if isinstance(source, vector.LoadOp) and not expr.is_atom and _copies(emitter, source, lanes):
        emitter.line(f"{target} = {_wide(emitter, source, source.base, source.indices[0], lanes, 'const ')};")
        return
    if not expr.is_atom or "[" not in expr.text:
        expr = emitter.variable("v", replace(expr, size=max(expr.size, 1)), op)
    emitter.line(f"{target} = {_wide_variable(emitter, element, lanes, expr)};")


def emit_alloca(emitter: FunctionEmitter, op: Operation) -> None:
    result = op.results[0]
    element, length = buffer_type(emitter, result.type, op)
    if length is None:
        raise CompileError.at(op, f"a local buffer needs a static size, got {result.type}")
    name = emitter.names.fresh(result.name_hint or "local")
    space = space_of(result.type)
    size = length * element_bytes(element)
    type_ = memory_type(emitter, element, op)
    emitter.values[result] = CExpr(name, "ptr")
    language = emitter.language
    if space == "shared" and emitter.kernel_threads:
        _declare_shared(emitter, op, name, type_, length, size)
        return
    if not emitter.kernel_threads:
        emitter.stack_bytes += size
        check_stack(op, emitter.name, emitter.stack_bytes)
    moved = (vector.LoadOp, vector.StoreOp, memref.CastOp, AccessPtrOp)
    wide = any(isinstance(use.operation, moved) for use in result.uses)
    aligned = language.aligned.format(WIDE_BYTES) if language.aligned and wide else ""
    emitter.line(f"{aligned}{type_} {name}[{length}];")


def shared_alignment(buffer: SSAValue) -> int:
    """Bytes; more if tiles are loaded from the buffer."""
    return WMMA_ALIGNMENT if any(isinstance(use.operation, AccessPtrOp) for use in buffer.uses) else WIDE_BYTES


def _declare_shared(emitter: FunctionEmitter, op: Operation, name: str, type_: str, length: int, size: int) -> None:
    if not isinstance(op.parent_op(), FuncOp):
        raise CompileError.at(op, f"shared buffer '{name}' of @{emitter.name} stands inside of a loop or condition")
    language = emitter.language
    aligned = shared_alignment(op.results[0])
    start = -(-emitter.shared_bytes // aligned) * aligned
    emitter.shared_bytes = start + size
    if emitter.dynamic_shared:
        at = f" + {start}" if start else ""
        emitter.line(f"{type_} *const {name} = ({type_} *)(weft_shared{at});")
    else:
        emitter.line(f"{language.spaces['shared']}{language.aligned.format(aligned)}{type_} {name}[{length}];")


def emit_alloc(emitter: FunctionEmitter, op: Operation) -> None:
    _check_heap(emitter, op)
    result = op.results[0]
    element, length = buffer_type(emitter, result.type, op)
    type_ = memory_type(emitter, element, op)
    name = emitter.names.fresh(result.name_hint or "buffer")
    emitter.values[result] = CExpr(name, "ptr")
    count = str(length) if length is not None else f"(size_t){emitter.expr(op.operands[0]).at(c.UNARY)}"
    helper = emitter.module.helper("weft_alloc")
    emitter.line(f"{type_} *{emitter.language.restrict} {name} = {helper}({count}, sizeof({type_}));")


def emit_dealloc(emitter: FunctionEmitter, op: Operation) -> None:
    _check_heap(emitter, op)
    emitter.line(f"free({emitter.expr(op.operands[0]).text});")


def _check_heap(emitter: FunctionEmitter, op: Operation) -> None:
    if emitter.language.kind != "c":
        raise CompileError.at(op, f"{op.name} is in @{emitter.name}, and {emitter.language.name} has no heap")


def emit_view(emitter: FunctionEmitter, op: Operation) -> None:
    _check_heap(emitter, op)
    result = op.results[0]
    element, _ = buffer_type(emitter, result.type, op)
    type_ = memory_type(emitter, element, op)
    name = emitter.names.fresh(result.name_hint or "view")
    emitter.values[result] = CExpr(name, "ptr")
    emitter.line(f"{type_} *{name} = ({type_} *)({pointer_text(emitter, op.operands[0], op.operands[1])});")


def emit_cast(emitter: FunctionEmitter, op: Operation) -> None:
    check_starts_together(op)
    emitter.values[op.results[0]] = emitter.expr(op.operands[0])


def emit_masked_load(emitter: FunctionEmitter, op: Operation) -> CExpr:
    base, index = base_and_index(op, 0, others=2)
    mask, otherwise = op.operands[2:]
    lanes = emitter.lanes(op.results[0].type, op)
    loaded = _loaded(emitter, op, access(emitter, base, index, lanes), base, index)
    return c.conditional(emitter.expr(mask), loaded, emitter.expr(otherwise))


def emit_masked_store(emitter: FunctionEmitter, op: Operation) -> None:
    base, index = base_and_index(op, 0, others=2)
    mask, value = op.operands[2:]
    lanes = emitter.lanes(value.type, op)
    target = access(emitter, base, index, lanes)
    emitter.lane_line(lanes, f"if ({emitter.expr(mask).text}) {target} = {emitter.expr(value).text};")


def emit_gather(emitter: FunctionEmitter, op: Operation) -> CExpr:
    base, indices = op.operands[0], op.operands[1]
    loaded = _loaded(emitter, op, f"{emitter.expr(base).text}[{emitter.expr(indices).text}]", base, None)
    if len(op.operands) > 2:
        return c.conditional(emitter.expr(op.operands[2]), loaded, number(0, loaded.element))
    return loaded


def emit_scatter(emitter: FunctionEmitter, op: Operation) -> None:
    value, base, indices = op.operands[0], op.operands[1], op.operands[2]
    lanes = emitter.lanes(value.type, op)
    text = f"{emitter.expr(base).text}[{emitter.expr(indices).text}] = {emitter.expr(value).text};"
    if len(op.operands) > 3:
        text = f"if ({emitter.expr(op.operands[3]).text}) {text}"
    emitter.lane_line(lanes, text)


def emit_pointer(emitter: FunctionEmitter, op: Operation) -> CExpr | None:
    """CUDA substitutes it into its users, with its type."""
    base, index = base_and_index(op, 0)
    at = emitter.expr(index)
    pointer = CExpr(pointer_text(emitter, base, index), "ptr", c.ADD, at.reads, at.size + 1, at.calls)
    if emitter.language.kind == "cuda":
        emitter.values[op.results[0]] = pointer
        return None
    if emitter.language.kind != "c":
        user = next((use.operation for use in op.results[0].uses), op)
        raise CompileError.at(op, f"{user.name} has no form in {emitter.language.name}")
    return replace(pointer, text=f"(void *)({pointer.text})", level=c.UNARY)


def emit_prefetch(emitter: FunctionEmitter, op: Operation) -> None:
    """Emits nothing: neither standard C nor kernel languages have the hint, and the element may not exist."""


RULES: Final[Rules] = {
    AccessPtrOp: emit_pointer,
    PrefetchOp: emit_prefetch,
    **dict.fromkeys((memref.LoadOp, vector.LoadOp), emit_load),
    **dict.fromkeys((memref.StoreOp, vector.StoreOp), emit_store),
    memref.AllocaOp: emit_alloca,
    memref.AllocOp: emit_alloc,
    memref.DeallocOp: emit_dealloc,
    memref.ViewOp: emit_view,
    **dict.fromkeys((memref.CastOp, memref.ReinterpretCastOp), emit_cast),
    vector.MaskedLoadOp: emit_masked_load,
    vector.MaskedStoreOp: emit_masked_store,
    low.GatherOp: emit_gather,
    low.ScatterOp: emit_scatter,
}
