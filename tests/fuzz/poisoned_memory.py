"""Temporaries that are overwritten as soon as nothing reads them: what another one needs must not lie there."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.driver.programs import parse
from weft.passes.tir.tir_pass import buffer_type

_RENAMES = (memref.CastOp, memref.ReinterpretCastOp)


def poison(module: ModuleOp, name: str = "main") -> int:
    """Let a function that `plan-memory` has rewritten overwrite its temporaries when they die, in place; returns the
    number of these temporaries. A temporary that shares memory with one that lives on is left alone."""
    function = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)
    block = function.body.block
    places = {op: place for place, op in enumerate(block.ops)}
    views = [op for op in places if isinstance(op, memref.ViewOp) and not isinstance(_memory(op).owner, Block)]
    lives = {
        view.result: sorted(places[_op_of(block, user)] for user in _users(view.result))
        for view in views
        if not any(isinstance(use.operation, memref.ViewOp) for use in view.result.uses)
    }
    functions: dict[Attribute, str] = {}
    ops = list(places)
    count = 0
    # Names of one temporary die together.
    deaths: dict[SSAValue, int] = {}
    for buffer, used in lives.items():
        deaths[_part(buffer)] = max(deaths.get(_part(buffer), -1), *used, -1)
    for buffer in lives:
        last = deaths[_part(buffer)]
        if last < 0:
            continue
        type_ = buffer_type(buffer)
        if type_ not in functions:
            functions[type_] = f"poison{len(functions)}"
            (poisoning,) = parse(_text(functions[type_], type_)).ops
            poisoning.detach()
            module.body.block.add_op(poisoning)
        block.insert_op_after(CallOp(functions[type_], [buffer], []), ops[last])
        count += 1
    return count


def _part(buffer: SSAValue) -> SSAValue:
    """The part of the arena that a temporary, or a name of it, is."""
    while isinstance(view := buffer.owner, memref.ViewOp) and isinstance(view.source.owner, memref.ViewOp):
        buffer = view.source
    return buffer


def _memory(view: memref.ViewOp) -> SSAValue:
    source = view.source
    while isinstance(source.owner, memref.ViewOp):
        source = source.owner.source
    return source


def _users(buffer: SSAValue) -> Iterator[Operation]:
    for use in buffer.uses:
        if isinstance(use.operation, _RENAMES):
            yield from _users(use.operation.results[0])
        else:
            yield use.operation


def _op_of(block: Block, op: Operation) -> Operation:
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _text(name: str, type_: MemRefType[Attribute]) -> str:
    """A function that fills a buffer with values that show."""
    element = str(type_.element_type)
    value = "1" if element == "i1" else "0x7FC00000" if element == "f32" else "0x7FF8000000000000"
    value = value if element[0] in "f" or element == "i1" else "90"
    axes = range(type_.get_num_dims())
    extents = [f"%n{axis}" if extent == DYNAMIC_INDEX else extent for axis, extent in enumerate(type_.get_shape())]
    dims = [
        f"%c{axis} = arith.constant {axis} : index\n%n{axis} = memref.dim %A, %c{axis} : {type_}"
        for axis, extent in enumerate(type_.get_shape())
        if extent == DYNAMIC_INDEX
    ]
    loops = " ".join(f"tir.for %i{axis} in {extents[axis]} {{" for axis in axes)
    iterators = ", ".join(f"%vi{axis}: spatial<{extents[axis]}>" for axis in axes)
    return f"""
        func.func private @{name}(%A: {type_}) {{
          %x = arith.constant {value} : {element}
          {" ".join(dims)}
          {loops}
            tir.block "poison" iters({iterators}) = [{", ".join(f"%i{axis}" for axis in axes)}] {{
              memref.store %x, %A[{", ".join(f"%vi{axis}" for axis in axes)}] : {type_}
            }}
          {"}" * len(axes)}
          func.return
        }}"""
