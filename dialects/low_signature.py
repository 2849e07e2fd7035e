"""Signatures of low functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.dialects.func import CallOp, FuncOp

from weft.dialects.aliasing import exposed_arguments
from weft.dialects.arena import arena_sizes
from weft.dialects.element_types import array_name
from weft.dialects.graph_shapes import shape_of, show_extent
from weft.dialects.integer_arith import constant_integer, known_iterations
from weft.dialects.low import ParallelForOp, bounds_log_of, params_of, preconditions_of, returned_by, symbols_of
from weft.dialects.low_kernel import kernel_of
from weft.dialects.low_registered import CallRegisteredOp
from weft.dialects.low_results import allocated_results
from weft.dialects.strides import dynamic_extents, dynamic_strides, layout_problem, strides_of
from weft.dialects.traversal import operations_in
from weft.support.call_preconditions import CallPrecondition
from weft.support.call_signature import Access, ArraySpec, ScalarSpec, Signature, elements_of
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp, TensorType
    from xdsl.ir import Attribute, Region

    from weft.dialects.low import ParamAttr


def signatures_of(module: ModuleOp) -> tuple[Signature, ...]:
    """Signatures of functions with a body, except kernels. Raises `CompileError`."""
    functions = (op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration)
    return tuple(signature_of(function) for function in functions if kernel_of(function) is None)


def signature_of(function: FuncOp) -> Signature:
    """The signature by `low.params` and `low.symbols`.

    Trailing write-only arrays are optional at calls if other arguments determine their shapes. Raises `CompileError`
    for a type without a value for callers.
    """
    exposed = {argument.index for argument in exposed_arguments(function)}
    args = tuple(_argument(function, param, at in exposed) for at, param in enumerate(params_of(function)))
    described = allocated_results(function)
    if described:
        args = tuple(
            allocated_spec(function, arg.name, described[at]) if at in described else arg for at, arg in enumerate(args)
        )
    name, log = function.sym_name.data, bounds_log_of(function)
    calls_out = any(type(op) in (CallOp, CallRegisteredOp) for op in operations_in(function))
    iterations = _iterations(function.body)
    facts = preconditions_of(function)
    results = _count_results(args, symbols_of(function), facts)
    buffers = arena_sizes(function)
    # Several buffers are on a device, which reports exhausted memory.
    sizes = buffers[0] if len(buffers) == 1 else []
    texts = (size.replace(" floordiv ", " // ").replace(" mod ", " % ") for size in sizes)
    temporaries = tuple(CallPrecondition(f"bytes == {text}") for text in texts)
    symbols, returned = symbols_of(function), returned_by(function)
    return Signature(name, args, symbols, results, facts, log, iterations, calls_out, returned, temporaries)


def _iterations(region: Region) -> int:
    """Unknown extents count as 1."""
    total = 1
    for op in (op for block in region.blocks for op in block.ops if op.regions):
        if isinstance(op, scf.ForOp):
            trips = known_iterations(op)
        else:
            trips = constant_integer(op.extent) if isinstance(op, ParallelForOp) else 1
        total += max(trips or 1, 1) * sum(map(_iterations, op.regions))
    return total


def _count_results(
    args: Sequence[ArraySpec | ScalarSpec], symbols: Sequence[str], facts: Sequence[CallPrecondition]
) -> int:
    elements = elements_of(args, symbols)
    places = range(len(args), 0, -1)
    first = next((at for at in places if not _is_result(args[at - 1])), 0)
    for at in range(first, len(args)):
        rest = args[at:]
        known = {symbol for other in args[:at] if isinstance(other, ArraySpec) for symbol in other.symbols}
        known |= {other.name for other in args[:at] if isinstance(other, ScalarSpec)}
        known |= elements.keys()
        for fact in facts:
            if fact.defines is not None and known.issuperset({*fact.names} - {fact.defines}):
                known.add(fact.defines)
        if all(symbol in known for a in rest if isinstance(a, ArraySpec) for symbol in a.symbols):
            return len(rest)
    return 0


def _is_result(arg: ArraySpec | ScalarSpec) -> bool:
    """Whether a parameter is contiguous and only written."""
    return isinstance(arg, ArraySpec) and (arg.access == "write" or arg.is_allocated) and arg.strides is None


def allocated_spec(function: FuncOp, name: str, type_: TensorType[Attribute]) -> ArraySpec:
    """The spec's strings are data-dependent extents."""
    extents = tuple(extent if isinstance(extent, int) else show_extent(extent) for extent in shape_of(type_))
    return ArraySpec(name, element_dtype(function, name, type_.element_type), extents, "allocated")


def _argument(function: FuncOp, param: ParamAttr, is_exposed: bool) -> ArraySpec | ScalarSpec:
    name, type_ = param.label.data, param.type
    if not isinstance(type_, MemRefType):
        return ScalarSpec(name, element_dtype(function, name, type_), next((s.data for s in param.symbols), ""))
    symbols = [symbol.data for symbol in param.symbols]
    shape, strides = type_.get_shape(), strides_of(type_)
    if len(symbols) != len(dynamic_extents(type_)) + len(dynamic_strides(type_)):
        raise CompileError.at(function, f"parameter '{name}' is {type_}, but has {len(symbols)} symbols {symbols}")
    problem = layout_problem(type_)
    if problem is not None:
        raise CompileError.at(function, f"parameter '{name}': {problem}")
    remaining = iter(symbols)
    extents = tuple(next(remaining) if extent < 0 else extent for extent in shape)
    steps = None if strides is None else tuple(next(remaining) if stride is None else stride for stride in strides)
    dtype = element_dtype(function, name, type_.element_type)
    return ArraySpec(name, dtype, extents, cast("Access", param.access.data.value), steps, is_exposed)


def element_dtype(function: FuncOp, name: str, type_: Attribute) -> str:
    """NumPy's name. Raises `CompileError` if there is none."""
    found = "int64" if isinstance(type_, IndexType) else array_name(type_)
    if found is not None:
        return found
    raise CompileError.at(
        function, f"parameter '{name}' of @{function.sym_name.data}: no array has elements of {type_}"
    )
