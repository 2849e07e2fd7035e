"""Loop trees: the nests of a function as trees of loops, blocks and buffers, at any level.

    function @relu(A: f32[128], B: f32[128])
    └─ loop i0 in 32  parallel
       └─ loop i1 in 4  vectorized
          └─ block B  vi = 4*i0 + i1; reads A; writes B

Functions of the graph level are trees of their operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from weft.analysis.block_scopes import bindings_of, buffers_loaded, buffers_written, functions, guards_of
from weft.analysis.index import Index
from weft.dialects.effects import op_name
from weft.dialects.graph import DIALECT, CallDpsOp, CallTirOp
from weft.dialects.graph_shapes import shape_of, show_extent
from weft.dialects.integer_arith import constant_integer
from weft.dialects.low import UNROLL, ParallelForOp
from weft.dialects.low_kernel import LaunchOp, space_of
from weft.dialects.te import ComputeOp, ReduceOp
from weft.dialects.te_extern import ExternOp
from weft.dialects.tir import BlockOp, ForOp, InitOp
from weft.dialects.tir_kinds import LoopKind
from weft.support.trees import Tree

FUNCTION: Final = "function"
LOOP: Final = "loop"
BLOCK: Final = "block"
INIT: Final = "init"
BUFFER: Final = "buffer"
CALL: Final = "call"
OPERATOR: Final = "operator"
CONDITION: Final = "condition"


def loop_trees(module: ModuleOp) -> list[Tree]:
    return [loop_tree(function) for function in functions(module)]


def loop_tree(function: FuncOp) -> Tree:
    arguments = ", ".join(
        f"{value_text(argument)}: {type_text(argument.type)}" for argument in function.body.blocks[0].args
    )
    outputs = ", ".join(map(type_text, function.function_type.outputs))
    label = f"@{function.sym_name.data}({arguments}){f' -> {outputs}' if outputs else ''}"
    return Tree(FUNCTION, f"function {label}", children=tuple(_below(function)))


def _below(op: Operation) -> Iterator[Tree]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _trees_of(inner)


def _trees_of(op: Operation) -> Iterator[Tree]:
    node = _NODES.get(type(op))
    if node is not None:
        yield node(op)
    elif op.dialect_name() == DIALECT and op.results:
        note = ", ".join(type_text(result.type) for result in op.results)
        yield Tree(OPERATOR, _operator_text(op), note, tuple(_below(op)))
    elif len(op.results) == 1 and isinstance(op.results[0].type, MemRefType) and not op.operands and not op.regions:
        yield _buffer(op)
    elif op.regions:
        children = tuple(_below(op))
        if children:
            yield Tree(OPERATOR, op_name(op), children=children)


def _loop(op: ForOp) -> Tree:
    kind = "" if op.kind.data is LoopKind.SERIAL else str(op.kind.data)
    if op.thread_axis is not None:
        kind = op.thread_axis.data
    notes = [kind, *(name.removeprefix("tir.") for name in op.attributes)]
    label = f"loop {value_text(op.induction_variable)} in {_extent_text(op.extent)}"
    return Tree(LOOP, label, ", ".join(filter(None, notes)), tuple(_below(op)))


def _block(op: BlockOp) -> Tree:
    bound = zip(op.iter_vars, bindings_of(op), strict=True)
    parts = [", ".join(f"{value_text(variable)} = {_index_text(index)}" for variable, index in bound)]
    if guards := guards_of(op):
        parts.append("where " + ", ".join(f"{_index_text(left)} < {_index_text(right)}" for left, right in guards))
    for verb, buffers in (("reads", buffers_loaded(op)), ("writes", buffers_written(op))):
        if buffers:
            parts.append(f"{verb} {', '.join(map(value_text, buffers))}")
    parts.extend(name.removeprefix("tir.") for name in op.attributes)
    return Tree(BLOCK, f"block {op.label}", "; ".join(filter(None, parts)), tuple(_below(op)))


def _init(op: InitOp) -> Tree:
    return Tree(INIT, "init", children=tuple(_below(op)))


def _buffer(op: Operation) -> Tree:
    value = op.results[0]
    return Tree(BUFFER, f"buffer {value_text(value)}: {type_text(value.type)}", f"{op.name}, {space_of(value.type)}")


def _low_loop(op: scf.ForOp) -> Tree:
    low, high, step = (_number_text(value) for value in (op.lb, op.ub, op.step))
    label = f"loop {value_text(op.body.block.args[0])} in {low} .. {high}"
    notes = ["" if step == "1" else f"step {step}", "unrolled" if UNROLL in op.attributes else ""]
    return Tree(LOOP, label, ", ".join(filter(None, notes)), tuple(_below(op)))


def _parallel_loop(op: ParallelForOp) -> Tree:
    variable = value_text(op.body.block.args[0])
    return Tree(LOOP, f"loop {variable} in {_extent_text(op.extent)}", "parallel", tuple(_below(op)))


def _branch(op: scf.IfOp) -> Tree:
    return Tree(CONDITION, f"if {op.cond.name_hint or ''}".rstrip(), children=tuple(_below(op)))


def _launch(op: LaunchOp) -> Tree:
    grid, block = (" x ".join(map(_extent_text, extents)) for extents in (op.grid, op.block))
    return Tree(CALL, f"launch @{op.kernel.string_value()}", f"{grid} blocks of {block} threads")


def _call(op: CallOp) -> Tree:
    return Tree(CALL, f"call @{op.callee.string_value()}", ", ".join(map(value_text, op.arguments)))


def _tensor_expression(op: ComputeOp | ReduceOp | ExternOp) -> Tree:
    extents = op.domain if isinstance(op, ExternOp) else op.extents
    over = " x ".join(map(_extent_text, extents))
    note = ", ".join(type_text(result.type) for result in op.results)
    name = value_text(op.results[0]) if op.results else ""
    return Tree(OPERATOR, f"{op.name} {name} over {over}", note, tuple(_below(op)))


_NODES: Final[Mapping[type[Operation], Callable[..., Tree]]] = {
    ForOp: _loop,
    BlockOp: _block,
    InitOp: _init,
    memref.AllocOp: _buffer,
    memref.AllocaOp: _buffer,
    scf.ForOp: _low_loop,
    ParallelForOp: _parallel_loop,
    scf.IfOp: _branch,
    LaunchOp: _launch,
    CallOp: _call,
    ComputeOp: _tensor_expression,
    ReduceOp: _tensor_expression,
    ExternOp: _tensor_expression,
}


def _operator_text(op: Operation) -> str:
    name = op_name(op).partition(".")[2]
    callee = f" @{op.callee.string_value()}" if isinstance(op, CallTirOp) else ""
    callee = f' "{op.callee.data}"' if isinstance(op, CallDpsOp) else callee
    results = ", ".join(map(value_text, op.results))
    return f"{results} = {name}{callee} {', '.join(map(value_text, op.operands))}".rstrip()


def value_text(value: SSAValue) -> str:
    return value.name_hint or "_"


def type_text(type_: Attribute) -> str:
    """`f32[128, n]` for tensors and buffers."""
    if isinstance(type_, TensorType):
        return f"{type_.element_type}[{', '.join(map(show_extent, shape_of(type_)))}]"
    if isinstance(type_, MemRefType):
        extents = ("?" if extent < 0 else str(extent) for extent in type_.get_shape())
        return f"{type_.element_type}[{', '.join(extents)}]"
    return str(type_)


def _extent_text(extent: int | SSAValue) -> str:
    return str(extent) if isinstance(extent, int) else _number_text(extent)


def _number_text(value: SSAValue) -> str:
    number = constant_integer(value)
    return value_text(value) if number is None else str(number)


def _index_text(index: Index) -> str:
    return re.sub(r"%(?=\S)", "", repr(index)).replace("+ -", "- ")
