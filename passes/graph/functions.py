"""The graph functions of a module, and type changes that several graph passes make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    TupleType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.graph import (
    DIALECT,
    FUSED,
    PRECONDITIONS,
    CallTirOp,
    ConstantOp,
    DataflowOp,
    MakeTupleOp,
    callee_of,
    preconditions_of,
)
from weft.dialects.graph_control import CONTROL
from weft.dialects.graph_shapes import (
    Extent,
    KnownExtent,
    Shape,
    ShapeError,
    lone_name,
    shape_of,
    substitute,
    sum_text,
    tensor_type,
    with_extents,
)
from weft.support.errors import CompileError


def graph_functions(module: ModuleOp) -> Iterator[FuncOp]:
    """Yields functions over tensors with graph ops or called by control flow, except callees of `graph.call_tir`."""
    called = tensor_callees(module)
    branches = control_callees(module)
    for op in list(module.body.block.ops):
        if isinstance(op, FuncOp) and op.sym_name.data not in called:
            is_branch = op.sym_name.data in branches and any(isinstance(t, TensorType) for t in op.function_type.inputs)
            if is_branch or holds_graph_ops(op):
                yield op


def tensor_callees(module: ModuleOp) -> set[str]:
    return {op.callee.string_value() for op in module.walk() if isinstance(op, CallTirOp)}


def control_callees(module: ModuleOp) -> set[str]:
    return {callee.string_value() for op in module.walk() if isinstance(op, CONTROL) for callee in op.callees}


def check_no_cycles(module: ModuleOp) -> None:
    """Raises `CompileError` for recursion."""
    calls: dict[str, list[tuple[Operation, str]]] = {}
    for function in module.body.block.ops:
        if isinstance(function, FuncOp):
            calls[function.sym_name.data] = [call for op in function.walk() for call in _calls_of(op)]
    done: set[str] = set()
    for root in calls:
        path = {root: iter(calls[root])}
        while path:
            name = next(reversed(path))
            call = None if name in done else next(path[name], None)
            if call is None:
                done.add(name)
                path.popitem()
                continue
            op, callee = call
            if callee in path:
                names = [*path]
                cycle = " calls ".join(f"@{one}" for one in (*names[names.index(callee) :], callee))
                raise CompileError.at(op, f"{op.name}: functions of graphs do not call themselves: {cycle}")
            path[callee] = iter(calls.get(callee, ()))


def _calls_of(op: Operation) -> Iterator[tuple[Operation, str]]:
    if isinstance(op, CallTirOp):
        yield op, op.callee.string_value()
    elif isinstance(op, CONTROL):
        for callee in op.callees:
            yield op, callee.string_value()


def holds_graph_ops(function: FuncOp) -> bool:
    return any(inner.dialect_name() == DIALECT for block in function.body.blocks for inner in block.ops)


def inline_dataflow(function: FuncOp) -> None:
    """Inline dataflow regions, which fixes the order. Tensor constants of arith become graph constants."""
    for op in list(function.walk()):
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, DenseIntOrFPElementsAttr):
            constant = ConstantOp(op.value)
            constant.location = op.location
            Rewriter.replace_op(op, constant)
    for op in list(function.body.block.ops):
        if isinstance(op, DataflowOp):
            output = op.output
            values = list(output.values)
            Rewriter.erase_op(output)
            Rewriter.inline_block(op.body.block, InsertPoint.before(op))
            Rewriter.replace_op(op, [], values)


def inline_calls(module: ModuleOp) -> None:
    """Inline calls of graph functions except groups, and erase private callees. Raises `CompileError` for recursion."""
    check_no_cycles(module)
    inlined: set[FuncOp] = set()
    for op in [op for op in module.walk() if isinstance(op, CallTirOp)]:
        inlined |= _inline(op)
    branches = control_callees(module)
    for function in inlined:
        is_private = function.sym_visibility is not None and function.sym_visibility.data == "private"
        if is_private and function.sym_name.data not in branches:
            Rewriter.erase_op(function)


def _inline(call: CallTirOp) -> set[FuncOp]:
    callee = callee_of(call)
    if FUSED in callee.attributes or not holds_graph_ops(callee):
        return set()
    copy = callee.clone()
    inline_dataflow(copy)
    sizes: dict[str, KnownExtent] = {}
    for parameter, operand in zip(copy.args, call.operands, strict=True):
        if isinstance(parameter.type, TensorType) and isinstance(operand.type, TensorType):
            for extent, given in zip(shape_of(parameter.type), shape_of(operand.type), strict=True):
                if (name := lone_name(extent)) is not None and given is not None:
                    sizes.setdefault(name, given)
    substitute_extents(copy, sizes)
    for parameter, operand in zip(copy.args, call.operands, strict=True):
        parameter.replace_all_uses_with(operand)
    end = copy.body.block.last_op
    results = list(end.operands) if end is not None else []
    if end is not None:
        Rewriter.erase_op(end)
    ops = list(copy.body.block.ops)
    for op in ops:
        op.detach()
    Rewriter.insert_op(ops, InsertPoint.before(call))
    Rewriter.replace_op(call, [], results)
    copy.erase()
    nested = [_inline(op) for op in ops if isinstance(op, CallTirOp)]
    return {callee}.union(*nested)


def shape_at(op: Operation, type_: TensorType[Attribute]) -> Shape:
    """Raises `CompileError` at `op` if the encoding does not fit the type."""
    try:
        return shape_of(type_)
    except ShapeError as error:
        raise CompileError.at(op, str(error)) from None


def retype(value: SSAValue, type_: Attribute) -> None:
    if value.type != type_:
        Rewriter.replace_value_with_new_type(value, type_)


def map_types(function: FuncOp, change: Callable[[TensorType[Attribute]], Attribute]) -> None:

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


def substitute_extents(function: FuncOp, extents: Mapping[str, KnownExtent]) -> None:
    """Replace names of extents in types, attributes and preconditions. Raises `CompileError` for a false
    precondition."""

    def changed(type_: TensorType[Attribute]) -> TensorType[Attribute]:
        shape: Shape = shape_of(type_)
        known: list[Extent] = [substitute(extent, extents) for extent in shape]
        return type_ if tuple(known) == shape else tensor_type(known, type_.element_type)

    map_types(function, changed)
    for op in function.walk():
        for key, attribute in op.properties.items():
            op.properties[key] = with_extents(attribute, lambda extent: substitute(extent, extents))
    if PRECONDITIONS in function.attributes:
        _substitute_preconditions(function, extents)


def _substitute_preconditions(function: FuncOp, extents: Mapping[str, KnownExtent]) -> None:
    """Drops conditions that hold for all sizes."""
    texts = {name: sum_text(extent) for name, extent in extents.items()}
    kept: list[str] = []
    for precondition in preconditions_of(function):
        replaced = precondition.substituted(texts)
        if replaced.names:
            kept.append(replaced.text)
        elif not replaced.holds({}):
            values = {name: number for name, number in extents.items() if isinstance(number, int)}
            raise CompileError.at(function, f"@{function.sym_name.data}: {precondition.problem(values)}")
    function.attributes.pop(PRECONDITIONS)
    add_preconditions(function, kept)


def add_preconditions(function: FuncOp, texts: Sequence[str]) -> None:
    """Add texts of `CallPrecondition`."""
    stated = [precondition.text for precondition in preconditions_of(function)]
    if found := list(dict.fromkeys((*stated, *texts))):
        function.attributes[PRECONDITIONS] = ArrayAttr([StringAttr(text) for text in found])
