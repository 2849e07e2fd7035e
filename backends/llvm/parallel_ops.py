"""Parallel loops: the body is outlined into a function that each thread runs for its part of the iterations.

The loop calls the runtime with a closure, a struct of the captured values on the stack:

    low.parallel_for %i in %n { body }
->
    call void @weft_parallel_for(ptr @f.parallel, ptr %closure, i64 %n)

    define void @f.parallel(i64 %begin, i64 %end, ptr %closure)     unpacks the closure, and calls define void
    @f.parallel.body(i64 %begin, i64 %end, ptr noalias %A, ...)

If the loop's condition is false, the calling thread calls `@f.parallel` for all iterations.

The body is a separate function, and not inlined, because only parameters can be marked `noalias`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from weft.backends.llvm.control_ops import write_loop
from weft.backends.llvm.emitter import FunctionEmitter
from weft.backends.llvm.memory_ops import buffer_attributes
from weft.backends.llvm.types import I64
from weft.backends.names import in_comment, quoted
from weft.dialects import low
from weft.dialects.effects import underlying
from weft.dialects.traversal import captured_values

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from weft.backends.llvm.emitter import Rules

_DECLARATION: Final = "declare void @weft_parallel_for(ptr, ptr captures(none), i64) nounwind"


def emit_parallel_for(emitter: FunctionEmitter, op: Operation) -> None:
    emitter.module.declare("weft_parallel_for", _DECLARATION)
    # Literals need no capture.
    captured = [value for value in captured_values(op) if emitter.text(value).startswith("%")]
    types = [emitter.type_of(value, op).text for value in captured]
    worker = _write_worker(emitter, op, captured, types)
    closure = "null"
    if captured:
        struct = f"{{ {', '.join(types)} }}"
        closure = f"%{emitter.names.fresh('closure')}"
        emitter.entry.append(f"  {closure} = alloca {struct}, align 64")
        for number, (value, type_) in enumerate(zip(captured, types, strict=True)):
            slot = emitter.emit(f"getelementptr inbounds {struct}, ptr {closure}, i64 0, i32 {number}", "slot")
            emitter.line(f"store {type_} {emitter.text(value)}, ptr {slot}")
    extent = emitter.text(op.operands[0])
    spread = f"call void @weft_parallel_for(ptr @{quoted(worker)}, ptr {closure}, i64 {extent})"
    if len(op.operands) == 1:
        emitter.line(spread)
        emitter.forget_tiles()
        return
    threads, alone, after = (emitter.names.fresh(label) for label in ("on.threads", "alone", "after"))
    emitter.line(f"br i1 {emitter.text(op.operands[1])}, label %{threads}, label %{alone}")
    calls = {threads: spread, alone: f"call void @{quoted(worker)}(i64 0, i64 {extent}, ptr {closure})"}
    for label, call in calls.items():
        emitter.start_block(label)
        emitter.line(call)
        emitter.line(f"br label %{after}")
    emitter.start_block(after)
    emitter.forget_tiles()


def _write_worker(emitter: FunctionEmitter, op: Operation, captured: list[SSAValue], types: list[str]) -> str:
    """Returns the name of the function that the runtime calls."""
    module = emitter.module
    name = module.names.fresh(f"{emitter.symbol}.parallel")
    body_name = module.names.fresh(f"{name}.body")
    body = FunctionEmitter(module, emitter.name, body_name, emitter.promises)
    for value, text in emitter.values.items():
        if not text.startswith("%"):
            body.values[value] = text

    parameters = ["i64 %begin", "i64 %end"]
    for reserved in ("begin", "end"):
        body.names.fresh(reserved)
    for value, type_ in zip(captured, types, strict=True):
        attributes = f" {buffer_attributes(emitter, value, op)}" if _is_buffer(value, captured) else ""
        parameters.append(f"{type_}{attributes} {body.name_of(value)}")
    body.reserve_tiles(op)
    write_loop(body, op, op.regions[0].block, I64, ("%begin", "%end", "1"), (), guarded=True)
    body.leave()
    module.functions.append(
        f"; Iterations begin to end of a parallel loop in @{in_comment(emitter.name)}.\n"
        f"define internal void @{quoted(body_name)}({', '.join(parameters)}) noinline nounwind {{\n"
        f"{body.body_text()}\n}}"
    )
    module.functions.append(_unpacker(name, body_name, types))
    return name


def _is_buffer(value: SSAValue, captured: list[SSAValue]) -> bool:
    """Whether `value` is a buffer that the body does not capture under another name."""
    if not isinstance(value.type, MemRefType):
        return False
    if any(other is not value and underlying(other) is value for other in captured):
        return False
    if isinstance(value, BlockArgument):
        return isinstance(value.block.parent_op(), FuncOp)
    return isinstance(value.owner, memref.AllocOp | memref.AllocaOp)


def _unpacker(name: str, body_name: str, types: list[str]) -> str:
    lines = [
        "; Called by each thread of the runtime.",
        f"define internal void @{quoted(name)}(i64 %begin, i64 %end, ptr %closure) nounwind {{",
    ]
    struct = f"{{ {', '.join(types)} }}"
    arguments = ["i64 %begin", "i64 %end"]
    for number, type_ in enumerate(types):
        lines.append(f"  %at.{number} = getelementptr inbounds {struct}, ptr %closure, i64 0, i32 {number}")
        lines.append(f"  %value.{number} = load {type_}, ptr %at.{number}")
        arguments.append(f"{type_} %value.{number}")
    lines += [f"  call void @{quoted(body_name)}({', '.join(arguments)})", "  ret void", "}"]
    return "\n".join(lines)


RULES: Final[Rules] = {low.ParallelForOp: emit_parallel_for}
