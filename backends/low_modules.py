"""Queries and checks of low modules for all backends. Each raises `CompileError` at an op of another form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp, ReinterpretCastOp
from xdsl.dialects.ptr import PtrType

from weft.backends.names import in_comment
from weft.dialects.combiners import op_of_kind
from weft.dialects.integer_arith import known_iterations
from weft.dialects.levels import allowed_at
from weft.dialects.low import MOST_COPIES, PARAMS, UNROLL, params_of, symbols_of
from weft.support.errors import CompileError, InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

MAX_STACK_BYTES: Final = 256 << 10
"""Limit of the local buffers of a function; stacks of threads often have 8 MiB, but some only 512 KiB."""


def contents(module: ModuleOp) -> tuple[list[FuncOp], list[FuncOp], list[GlobalOp]]:
    functions: list[FuncOp] = []
    outside: list[FuncOp] = []
    data: list[GlobalOp] = []
    for op in module.ops:
        if isinstance(op, GlobalOp):
            data.append(op)
        elif not isinstance(op, FuncOp):
            raise CompileError.at(op, f"a low module holds functions and globals, got {op.name}")
        elif op.is_declaration:
            outside.append(op)
        elif len(op.body.blocks) != 1:
            raise CompileError.at(op, f"function @{op.sym_name.data} has {len(op.body.blocks)} blocks, low has one")
        else:
            functions.append(op)
    return functions, outside, data


def check_low_level(module: ModuleOp, kind: str = "") -> None:
    """`kind`: the target to lower the module for."""
    for op in module.walk():
        if not allowed_at("low", op.name):
            options = f"{{target={kind}}}" if kind else ""
            raise CompileError.at(
                op, f"{op.name} is not allowed at level low: lower the module first, with -p lower-tir-to-low{options}"
            )


def check_has_functions(module: ModuleOp, target: str) -> None:
    if any(isinstance(op, GlobalOp) or (isinstance(op, FuncOp) and not op.is_declaration) for op in module.ops):
        return
    raise CompileError.at(
        module,
        f"-t {target} prints functions at level low, and the module has none with a body: functions over tensors or "
        f"buffers become such by -p 'lower-graph,lower-tir-to-low'",
    )


def is_external(data: GlobalOp) -> bool:
    """A constant defined outside of the module has no value."""
    return data.constant is not None and not isinstance(data.initial_value, DenseIntOrFPElementsAttr)


def used_globals(functions: Iterable[FuncOp]) -> set[str]:
    return {op.name_.string_value() for function in functions for op in function.walk() if isinstance(op, GetGlobalOp)}


def described(function: FuncOp) -> str:
    """`@f(A: memref<?xf32> [n] read, s: f32) for n`, for comments."""
    name = function.sym_name.data
    if PARAMS not in function.attributes:
        return f"@{in_comment(name)}()"
    texts: list[str] = []
    for param in params_of(function):
        text = f"{param.label.data}: {param.type}"
        if isinstance(param.type, MemRefType):
            extents = ", ".join(symbol.data for symbol in param.symbols)
            text += f"{f' [{extents}]' if extents else ''} {param.access.data.value}"
        texts.append(text)
    symbols = symbols_of(function)
    extents = f" for {', '.join(symbols)}" if symbols else ""
    return in_comment(f"@{name}({', '.join(texts)}){extents}")


def check_unrolled(loop: Operation, trips: int | None) -> int:
    """Raises if the iterations are unknown (None), or copies of the marked loops around too many."""
    if trips is None:
        raise CompileError.at(loop, f"a loop that is marked {UNROLL} needs constant bounds and a constant step")
    copies, around = trips, loop.parent_op()
    while around is not None:
        if isinstance(around, scf.ForOp) and UNROLL in around.attributes:
            copies *= max(1, known_iterations(around) or 1)
        around = around.parent_op()
    if copies > MOST_COPIES:
        raise CompileError.at(
            loop, f"a loop that is marked {UNROLL} makes {copies} copies of its body; at most {MOST_COPIES} are made"
        )
    return trips


def unknown_op(op: Operation, problem: str) -> Exception:
    """`problem` if the op is legal, else an internal error."""
    if allowed_at("low", op.name):
        return CompileError.at(op, f"{op.name} has no {problem}")
    return InternalError(f"{op.name} is not an op of low: the check of the level should have caught it")


_SCALARS: Final[Mapping[Attribute, str]] = {
    IndexType(): "index",
    **{IntegerType(bits): f"i{bits}" for bits in (1, 8, 16, 32, 64)},
    **{f16: "f16", bf16: "bf16", f32: "f32", f64: "f64"},
}


def scalar_name(type_: Attribute) -> str | None:
    """`ptr` for buffers and pointers; None for types that are no scalars of low."""
    return "ptr" if isinstance(type_, MemRefType | PtrType) else _SCALARS.get(type_)


def lane_count(type_: Attribute, op: Operation) -> int:
    """0 for a scalar."""
    if not isinstance(type_, VectorType):
        return 0
    shape = type_.get_shape()
    if len(shape) != 1 or any(scalable for scalable in type_.scalable_dims):
        raise CompileError.at(op, f"vectors have one fixed dimension at low level, got {type_}")
    return shape[0]


def flat_buffer(type_: Attribute, op: Operation) -> tuple[Attribute, int | None]:
    """Element type and static length."""
    if not isinstance(type_, MemRefType):
        raise CompileError.at(op, f"{op.name} needs a memref, got {type_}")
    shape = type_.get_shape()
    if len(shape) != 1 or not isinstance(type_.layout, NoneAttr):
        raise CompileError.at(op, f"low works on flat buffers without a layout, got {type_}")
    return type_.element_type, None if shape[0] < 0 else shape[0]


def check_starts_together(op: Operation) -> None:
    if isinstance(op, ReinterpretCastOp) and (op.offsets or any(op.static_offsets.get_values())):
        raise CompileError.at(op, f"{op.name} at low level starts at element 0")


def base_and_index(op: Operation, first: int, others: int = 0) -> tuple[SSAValue, SSAValue]:
    """Operands `first` and the next, before `others`."""
    if len(op.operands) != first + 2 + others:
        raise CompileError.at(op, f"low works on flat buffers: {op.name} takes one index")
    return op.operands[first], op.operands[first + 1]


def check_stack(op: Operation, name: str, total: int) -> None:
    """`total` is the size of the function's local buffers, including that of `op`."""
    if total > MAX_STACK_BYTES:
        raise CompileError.at(
            op,
            f"the local buffers of @{name} take {total} bytes, more than the "
            f"{MAX_STACK_BYTES} that fit the stack: give large ones the scope 'global'",
        )


def named_lane(op: vector.ExtractOp | vector.InsertOp, text: Callable[[SSAValue], str]) -> str | None:
    """A number or the `text` of a value; None for the whole vector."""
    positions = op.get_mixed_position()
    if not positions:
        return None
    return str(positions[0]) if isinstance(positions[0], int) else text(positions[0])


def reduction_op(op: Operation) -> type[Operation]:
    """The `arith` op that combines lanes."""
    kind = cast("vector.ReductionOp", op).kind.data
    combining = op_of_kind(kind, op.results[0].type)
    if combining is None:
        raise CompileError.at(op, f"vector.reduction <{kind.value}> does not work on {op.results[0].type}")
    return combining


def predicate(op: Operation) -> str:
    number = op.properties["predicate"]
    if not isinstance(number, IntegerAttr):
        raise InternalError(f"{op.name} has the predicate {number}")
    is_float = op.name.endswith("cmpf")
    names = arith.CMPF_COMPARISON_OPERATIONS if is_float else arith.CMPI_COMPARISON_OPERATIONS
    return names[number.value.data]


def trip_count(op: Operation, lower: float | None, upper: float | None, step: float | None) -> int | None:
    if step is not None and step <= 0:
        raise CompileError.at(op, f"the step of a loop must be positive, got {step}")
    if lower is None or upper is None or step is None:
        return None
    return max(0, -((int(lower) - int(upper)) // int(step)))


def check_last(op: Operation, name: str) -> None:
    if op.next_op is not None:
        raise InternalError(f"{op.name} in @{name} is followed by {op.next_op.name}")
    if isinstance(op, ReturnOp) and op.operands:
        raise CompileError.at(op, "a low function returns nothing: results are written to buffers")


def check_branches(op: Operation) -> bool:
    """Whether there is an else branch, which results require."""
    has_else = bool(op.regions[1].blocks)
    if op.results and not has_else:
        raise CompileError.at(op, "scf.if with results needs an else branch")
    return has_else


def check_outside(function: FuncOp) -> None:
    name = function.sym_name.data
    if len(function.function_type.outputs) > 1:
        raise CompileError.at(function, f"@{name} is outside of the module: it gives one result or none")
    for type_ in function.function_type.inputs:
        if isinstance(type_, VectorType | MemRefType):
            raise CompileError.at(
                function,
                f"@{name} is outside of the module: it takes numbers and pointers (low.access_ptr), got {type_}",
            )


def check_parameter_count(function: FuncOp) -> None:
    params, symbols = params_of(function), symbols_of(function)
    if len(params) + len(symbols) != len(function.args):
        raise CompileError.at(
            function,
            f"@{function.sym_name.data} has {len(function.args)} parameters, but {PARAMS} names {len(params)} and "
            f"there are {len(symbols)} symbols",
        )
