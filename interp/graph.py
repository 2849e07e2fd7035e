"""`graph`: whole tensors as NumPy arrays; calls of functions of the module and of Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from xdsl.dialects.builtin import FunctionType, MemRefType, TensorType
from xdsl.utils.exceptions import VerifyException

from weft.dialects import graph
from weft.dialects.element_types import element_of, value_type
from weft.dialects.graph_control import IfOp, LoopOp, WhileOp
from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    element_of_name,
    evaluate,
    is_element,
    names_in,
    shape_of,
    solutions,
)
from weft.interp.errors import InterpreterError
from weft.interp.registered_calls import filled
from weft.interp.registry import emit_nothing, emits, evaluates
from weft.interp.values import (
    Array,
    BufferStorage,
    array_of,
    array_of_dense,
    flat_list,
    round_array,
    widen,
)
from weft.support.errors import CompileError
from weft.support.narrow_floats import SMALL_FLOATS
from weft.texpr.graph_operators import OPERATORS, Operator

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import Attribute, Operation, SSAValue

    from weft.interp.emitter import Emitter


@emits(*OPERATORS)
def emit_operator(emitter: Emitter, op: Operator) -> None:
    names = sorted({name for shape in op.shapes for extent in shape for name in names_in(extent)})
    bound = ", ".join(f"{name!r}: {_name_text(emitter, op, name)}" for name in names)
    operands = "".join(f", {emitter.value(operand)}" for operand in op.operands)
    results = "".join(f"{emitter.define(result)}, " for result in op.results)
    emitter.line(f"{results}= {emitter.helper(operator)}({emitter.operation_name(op)}, {{{bound}}}{operands})", op)


_WIDER: Final = {
    **dict.fromkeys(("float16", *SMALL_FLOATS), "float32"),
    **dict.fromkeys(("int2", "int4"), "int8"),
    **dict.fromkeys(("uint2", "uint4"), "uint8"),
}
"""The types that references compute in."""


def operator(op: Operator, extents: dict[str, int], *operands: Array) -> tuple[Array, ...]:
    """Run a reference, in float32 for floats of at most 16 bits; `extents` are the values of names in properties."""
    wide = [a.astype(_WIDER.get(a.dtype.name, a.dtype), copy=False) for a in operands]
    arguments = op.arguments(lambda shape: tuple(evaluate(cast("KnownExtent", extent), extents) for extent in shape))
    try:
        with np.errstate(all="ignore"):
            found = op.called(op.REFERENCE, op.grouped(wide, op.properties), arguments)
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in operands)
        raise InterpreterError(op, f"{op.name}: arrays of shapes {shapes} do not fit each other") from None
    results = cast("tuple[Array, ...]", found) if isinstance(found, tuple) else (found,)
    return tuple(
        round_array(np.asarray(result, order="C"), _element_type(value))
        for result, value in zip(results, op.results, strict=True)
    )


def _element_type(value: SSAValue) -> Attribute:
    return cast("TensorType[Attribute]", value.type).element_type


@emits(graph.ConstantOp)
def emit_constant(emitter: Emitter, op: graph.ConstantOp) -> None:
    try:
        dense = graph.dense_value(op)
    except VerifyException as error:
        raise CompileError.at(op, str(error)) from None
    array = array_of_dense(dense)
    if array is None:
        raise CompileError.at(op, f"the interpreter has no arrays of {_element_type(op.result)}")
    emitter.bind(op.result, emitter.constant(array, op.result.name_hint or "constant"))


@emits(graph.DataflowOp)
def emit_dataflow(emitter: Emitter, op: graph.DataflowOp) -> None:
    emitter.region(op.body.block)
    for result, value in zip(op.results, op.output.values, strict=True):
        emitter.alias(result, value)


emits(graph.OutputOp)(emit_nothing)


@emits(graph.ObserveOp)
def emit_observe(emitter: Emitter, op: graph.ObserveOp) -> None:
    emitter.alias(op.result, op.value)


@evaluates(graph.MakeTupleOp)
def make_tuple(op: graph.MakeTupleOp, *values: Any) -> tuple[Any, ...]:
    return values


@evaluates(graph.TupleGetOp)
def tuple_get(op: graph.TupleGetOp, source: tuple[Any, ...]) -> Any:
    return source[op.index]


@emits(graph.CallTirOp)
def emit_call_tir(emitter: Emitter, op: graph.CallTirOp) -> None:
    try:
        callee = graph.callee_of(op)
        graph.verify_callee(op, callee)
    except VerifyException as error:
        raise CompileError.at(op, str(error)) from None
    run = over_buffers if _takes_buffers(callee) else over_tensors
    _emit_call(emitter, op, f"{emitter.helper(run)}", emitter.callee(callee.sym_name.data))


@emits(graph.CallDpsOp)
def emit_call_dps(emitter: Emitter, op: graph.CallDpsOp) -> None:
    _emit_call(emitter, op, emitter.helper(over_arrays), repr(op.callee.data))


@emits(IfOp)
def emit_if(emitter: Emitter, op: IfOp) -> None:
    then, otherwise = (emitter.callee(symbol.string_value()) for symbol in op.callees)
    operands = ", ".join(map(emitter.value, op.arguments))
    results = "".join(f"{emitter.define(result)}, " for result in op.results)
    call = f"({then} if {emitter.value(op.condition)} else {otherwise})({operands})"
    emitter.line(f"{results}= {call}" if results else call, op)


@emits(LoopOp)
def emit_loop(emitter: Emitter, op: LoopOp) -> None:
    body = emitter.callee(op.body.string_value())
    _emit_call(emitter, op, emitter.helper(loop), f"{body}, {_extent_text(emitter, op, op.count)}")


def loop(
    op: LoopOp,
    body: Callable[..., tuple[Array, ...]],
    steps: int,
    shapes: tuple[tuple[int, ...], ...],
    *operands: Array,
) -> tuple[Array, ...]:
    first, last = len(op.carried), len(op.carried) + len(op.scanned)
    carried, rows = operands[:first], list[tuple[Array, ...]]()
    for step in range(steps):
        row = (array[step] for array in operands[first:last])
        found = body(np.asarray(step, np.int64), *carried, *row, *operands[last:])
        carried = found[:first]
        rows.append(found[first:])
    if rows:
        return (*carried, *map(np.stack, zip(*rows, strict=True)))
    pairs = zip(shapes[first:], list(op.results)[first:], strict=True)
    return (*carried, *(array_of([], shape, _element_type(value)) for shape, value in pairs))


@emits(WhileOp)
def emit_while(emitter: Emitter, op: WhileOp) -> None:
    test, body = (emitter.callee(callee.string_value()) for callee in op.callees)
    _emit_call(emitter, op, emitter.helper(repeat), f"{test}, {body}")


def repeat(
    op: WhileOp,
    test: Callable[..., tuple[Array, ...]],
    body: Callable[..., tuple[Array, ...]],
    shapes: tuple[tuple[int, ...], ...],
    *operands: Array,
) -> tuple[Array, ...]:
    count = len(op.carried)
    carried, captured = operands[:count], operands[count:]
    while test(*carried, *captured)[0]:
        carried = body(*carried, *captured)
    return carried


def _takes_buffers(callee: FuncOp) -> bool:
    type_: FunctionType = callee.function_type
    return any(isinstance(t, MemRefType) for t in (*type_.inputs, *type_.outputs))


def _emit_call(
    emitter: Emitter, op: graph.CallTirOp | graph.CallDpsOp | LoopOp | WhileOp, run: str, callee: str
) -> None:
    shapes = "".join(
        f"({''.join(f'{_extent_text(emitter, op, e)}, ' for e in shape_of(r.type))}), " for r in op.outputs
    )
    operands = "".join(f", {emitter.value(operand)}" for operand in op.operands)
    if isinstance(op, graph.CallTirOp):
        operands += "".join(f", {_extent_text(emitter, op, extent)}" for extent in op.passed_extents)
    results = "".join(f"{emitter.define(result)}, " for result in op.results)
    call = f"{run}({emitter.operation_name(op)}, {callee}, ({shapes}){operands})"
    emitter.line(f"{results}= {call}" if results else call, op)


def _extent_text(emitter: Emitter, op: Operation, extent: Extent) -> str:
    """Raises `CompileError` for unknown extents and unbound names."""
    if isinstance(extent, int):
        return str(extent)
    if extent is None:
        raise CompileError.at(op, f"{op.name}: the result has an unknown extent; name it with #graph.dims")
    names = ", ".join(f"{name!r}: {_name_text(emitter, op, name)}" for name in sorted(names_in(extent)))
    return f"{emitter.helper(evaluate)}({emitter.constant(extent, 'extent')}, {{{names}}})"


@emits(graph.MatchShapeOp)
def emit_match_shape(emitter: Emitter, op: graph.MatchShapeOp) -> None:
    bounds = "".join(f"{'None' if bound is None else _extent_text(emitter, op, bound)}, " for bound in op.bounds)
    names = op.bound_names
    found = [emitter.fresh(name) for name in names]
    sizes = emitter.value(op.sizes)
    emitter.line(f"{', '.join(found)}, = {emitter.call(matched, op, sizes, f'({bounds})')}", op)
    emitter.extents.update(zip(names, found, strict=True))


def matched(op: graph.MatchShapeOp, sizes: Array, bounds: tuple[int | None, ...]) -> list[int]:
    found = [int(size) for size in sizes.reshape(-1)]
    for name, size, most in zip(op.bound_names, found, bounds, strict=True):
        if size < 0 or (most is not None and size > most):
            limit = "" if most is None else f" .. {most}"
            raise InterpreterError(op, f"{op.name}: extent '{name}' is {size}, outside of 0{limit or ' and more'}")
    return found


def _name_text(emitter: Emitter, op: Operation, name: str) -> str:
    if name in emitter.extents:
        return emitter.extents[name]
    tensors = [v for v in (*op.operands, *emitter.function.body.block.args) if isinstance(v.type, TensorType)]
    places = [
        (value, axis, extent)
        for value in tensors
        for axis, extent in enumerate(shape_of(cast("graph.Tensor", value.type)))
    ]
    for found in solutions([extent for _, _, extent in places]):
        if found.name == name:
            value, axis, _ = places[found.position]
            own = f"{emitter.value(value)}.shape[{axis}]"
            is_alone = (found.factor, found.rest) == (1, 0)
            return own if is_alone else f"(({own} - {_extent_text(emitter, op, found.rest)}) // {found.factor})"
    parameter, element = element_of_name(name) or (None, 0)
    for value in emitter.function.body.block.args:
        if value.name_hint == parameter and is_element(value.type, element):
            return f"int({emitter.value(value)}.flat[{element}])"
    raise CompileError.at(op, f"{op.name}: no operand or parameter has the extent '{name}'")


def over_tensors(
    op: graph.CallTirOp,
    callee: Callable[..., tuple[Array, ...]],
    shapes: tuple[tuple[int, ...], ...],
    *given: Array | int,
) -> tuple[Array, ...]:
    """`given`: operands, then passed extents."""
    taken = graph.callee_of(op).function_type.inputs
    results = callee(
        *(
            value if isinstance(value, int) else widen(value, element_of(type_))
            for value, type_ in zip(given, taken, strict=True)
        )
    )
    for position, (result, shape) in enumerate(zip(results, shapes, strict=True)):
        if result.shape != shape:
            raise InterpreterError(op, f"result {position} is declared of shape {shape}, but has {result.shape}")
    return tuple(widen(array, _element_type(value)) for array, value in zip(results, op.results, strict=True))


def over_buffers(
    op: graph.CallTirOp, callee: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], *given: Array | int
) -> tuple[Array, ...]:
    inputs: list[BufferStorage | int] = []
    for position, value in enumerate(given):
        if isinstance(value, int):
            inputs.append(value)
        else:
            operand = op.operands[position]
            elements = flat_list(widen(value, value_type(_element_type(operand))))
            inputs.append(BufferStorage(elements, value.shape, operand.name_hint or f"operand {position}"))
    outputs = [
        BufferStorage([None] * math.prod(shape), shape, value.name_hint or f"result {position}")
        for position, (shape, value) in enumerate(zip(shapes, op.results, strict=True))
    ]
    callee(*inputs, *outputs)
    return tuple(_filled(op, buffer, value) for buffer, value in zip(outputs, op.results, strict=True))


def _filled(op: graph.CallTirOp, buffer: BufferStorage, result: SSAValue) -> Array:
    if None in buffer.data:
        index = tuple(int(i) for i in np.unravel_index(buffer.data.index(None), buffer.shape))
        raise InterpreterError(
            op,
            f"@{op.callee.string_value()} did not write its result {buffer.name}[{', '.join(map(str, index))}]",
            buffer=buffer.name,
            index=index,
            shape=buffer.shape,
        )
    element_type = _element_type(result)
    return widen(array_of(cast("list[Any]", buffer.data), buffer.shape, value_type(element_type)), element_type)


def over_arrays(
    op: graph.CallDpsOp, name: str, shapes: tuple[tuple[int, ...], ...], *operands: Array
) -> tuple[Array, ...]:
    results = [(shape, _element_type(value)) for shape, value in zip(shapes, op.results, strict=True)]
    return filled(op, name, operands, [_element_type(value) for value in op.operands], results)
