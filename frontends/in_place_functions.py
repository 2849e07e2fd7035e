"""Functions that change their arguments as functions that write results."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from weft.dialects.traversal import copy_of
from weft.frontends.script.parsing import parse
from weft.passes.module_edits import function_names, lookup
from weft.support.errors import CompileError
from weft.texpr.expr import name_of

INPLACE = " in place "
"""Separates a function's name from the arguments that are its results."""


def functional(module: ModuleOp, name: str, count: int) -> str:
    """A function that writes results instead of its first `count` arguments, added if the module lacks it. `name`
    contains the places of the results: `inc in place 0_-1`."""
    source, _, places = name.partition(INPLACE)
    made = f"{source}_of_{places.replace('-1', 'new')}"
    if made in function_names(module):
        return made
    module.body.block.add_op(function := copy_of(lookup(module, source)))
    function.sym_name = StringAttr(made)
    if function.arg_attrs is not None:
        raise CompileError(f"call in place: {source} has parameters whose arrays have other element types")
    block = function.body.block
    for at, place in enumerate(map(int, places.split("_"))):
        if place < 0:
            continue
        given = block.args[place]
        result = block.insert_arg(given.type, count + at)
        result.name_hint = f"{given.name_hint}_out"
        given.replace_all_uses_with(result)
        copy = _copy(source, given.type)
        values: dict[SSAValue, SSAValue] = dict(zip(copy.body.block.args, (given, result), strict=True))
        first = block.first_op
        for op in copy.body.block.ops:
            if first is not None and not isinstance(op, ReturnOp):
                block.insert_op_before(op.clone(values), first)
    function.function_type = FunctionType.from_lists([arg.type for arg in block.args], [])
    return made


def _copy(name: str, type_: object) -> FuncOp:
    if not isinstance(type_, MemRefType) or not type_.has_static_shape():
        raise CompileError(f"call in place: {name} has a parameter {type_}: weft copies buffers of constant extents")
    shape = type_.get_shape()
    buffer = f'T.Buffer({shape!r}, "{name_of(type_.element_type)}")'
    axes = [f"i{at}" for at in range(len(shape))]
    loop = f"    for {', '.join(axes)} in T.grid({', '.join(map(str, shape))}):\n" if shape else "    if True:\n"
    body = [f'        with T.block("{name}_copy"):']
    body += [
        f"            v{axis} = T.axis.spatial({extent}, {axis})" for axis, extent in zip(axes, shape, strict=True)
    ]
    places = ", ".join(f"v{axis}" for axis in axes) or "()"
    body += [f"            B[{places}] = A[{places}]", ""]
    text = f"@T.prim_func\ndef copy(A: {buffer}, B: {buffer}):\n{loop}" + "\n".join(body)
    return next(op for op in parse(text).body.block.ops if isinstance(op, FuncOp))
