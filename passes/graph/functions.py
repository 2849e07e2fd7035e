"""Which functions of a module are graph functions, and changes of type that several graph passes make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from weft.dialects.graph import DIALECT, CallTirOp, MakeTupleOp
from weft.dialects.graph_shapes import Shape, ShapeError, shape_of
from weft.support.errors import CompileError


def graph_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions that hold ops of the graph dialect, and that no `graph.call_tir` calls."""
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, CallTirOp)}
    for op in list(module.body.block.ops):
        if not isinstance(op, FuncOp) or op.sym_name.data in called:
            continue
        if any(inner.dialect_name() == DIALECT for block in op.body.blocks for inner in block.ops):
            yield op


def shape_at(op: Operation, type_: TensorType[Attribute]) -> Shape:
    """The extents of a tensor type. Raises `CompileError` at `op` when its encoding does not fit it."""
    try:
        return shape_of(type_)
    except ShapeError as error:
        raise CompileError.at(op, str(error)) from None


def retype(value: SSAValue, type_: Attribute) -> None:
    """Give a value another type."""
    if value.type != type_:
        Rewriter.replace_value_with_new_type(value, type_)


def map_types(function: FuncOp, change: Callable[[TensorType[Attribute]], Attribute]) -> None:
    """Change the tensor type of every value of a function, those in tuples too, and its signature."""

    def changed(type_: Attribute) -> Attribute:
        if isinstance(type_, TensorType):
            return change(type_)
        if isinstance(type_, TupleType):
            return MakeTupleOp.type_of([changed(inner) for inner in type_.types])
        return type_

    for argument in function.args:
        retype(argument, changed(argument.type))
    for op in list(function.body.walk()):
        for result in list(op.results):
            retype(result, changed(result.type))
    function.update_function_type()
