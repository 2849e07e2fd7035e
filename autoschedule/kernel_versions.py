"""Versions of kernels for small extents, chosen by host code at each call.

    func.call @matmul(%x, %w, %y)
    // becomes
    %c0 = arith.constant 0 : index
    %m = memref.dim %x, %c0 : memref<?x784xf32>
    %few = arith.cmpi sle, %m, %c11 : index
    scf.if %few { func.call @matmul_few(%x, %w, %y) } else { func.call @matmul(%x, %w, %y) }

The version for few iterations of a loop is the same function with `tir.assume [%m] <= [11]`, so that the same rules
plan it. The version of convolutions and pools for one pixel is the function specialised to these extents.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_patterns import PatternKind, pattern_of, sliding_iterators
from weft.analysis.block_scopes import child_blocks, function_of, is_plain, why_not_plain
from weft.analysis.index import Index
from weft.analysis.integer_ranges import dynamic_extents_of, is_parameter, range_of
from weft.autoschedule.contraction import few_rows
from weft.autoschedule.nests import short_rows
from weft.autoschedule.winograd_pixel import filtered_image, multiply_directly
from weft.dialects.index_map import mixed_extents
from weft.dialects.input_shapes import Specialization
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.traversal import copy_of, operations_of
from weft.passes.index_builders import compare_before, conjunction_before, dim_before, if_around
from weft.passes.module_edits import calls_by_name, named_ops
from weft.passes.schedule.dominance import not_dominating
from weft.passes.specialize_shapes import specialize_buffers
from weft.passes.tir.flat_signature import FlatSignature, Quantity, quantity_of
from weft.passes.tir.tir_pass import buffer_functions
from weft.passes.versions import call_with_casts
from weft.plans.roles import ExtentBound, convolution_roles
from weft.support.errors import CompileError, InternalError
from weft.support.names import new_name
from weft.support.target import Target

_PRIVATE: Final = StringAttr("private")


@dataclass(frozen=True)
class _Condition:
    """An extent of a parameter that a version is for."""

    parameter: int
    dimension: int
    least: int
    most: int


def add_kernel_versions(module: ModuleOp, target: Target, skipped: Callable[[], Collection[str]]) -> dict[str, str]:
    """Add a version for small extents to each kernel whose default schedule depends on them, and let calls choose.
    `skipped`, called only if there are candidates, names kernels to exclude. Returns the kernel of each version, by
    name."""
    names = set(named_ops(module))
    calls = _calls_of_kernels(module)
    dynamic = [op for op in calls if dynamic_extents_of(op) and why_not_plain(op) is None]
    bounds = {function: found for function in dynamic if (found := _bounds_of(function, target))}
    pixels = {op: found for op in dynamic if op not in bounds and (found := _pixels_of(op, calls[op]))}
    skip = skipped() if bounds or pixels else ()
    versions: dict[str, str] = {}
    for function, found in bounds.items():
        name, chosen = function.sym_name.data, calls[function]
        for bound in reversed(found) if name not in skip else ():
            made = _up_to(function, bound, name, names)
            if made is not None:
                conditions, version = made
                versions[version.sym_name.data] = name
                chosen = [new for call in chosen if (new := _choose(call, conditions, version)) is not None]
    for function, extents in pixels.items():
        name = function.sym_name.data
        if name not in skip:
            single = _single(function, extents, new_name(f"{name}_single", names))
            if single is not None:
                conditions, version = single
                versions[version.sym_name.data] = name
                for call in calls[function]:
                    _choose(call, conditions, version)
    return versions


def _calls_of_kernels(module: ModuleOp) -> dict[FuncOp, list[CallOp]]:
    """Calls of private functions over buffers that have no other uses and contain no calls."""
    calls = calls_by_name(module)
    kernels = [op for op in buffer_functions(module) if op.sym_visibility == _PRIVATE]
    leaves = [op for op in kernels if not operations_of(op, CallOp)]
    return {op: found for op in leaves if (found := calls.get(op.sym_name.data))}


def _bounds_of(function: FuncOp, target: Target) -> list[ExtentBound]:
    """The numbers of iterations up to which a plain function gets a version each, in ascending order: those of the
    first product that has some, else those of the first nest over rows."""
    blocks = [block for block in child_blocks(function) if is_plain(block)]
    products = (few_rows(pattern_of(block), target) for block in blocks)
    for bounds in itertools.chain(products, (short_rows(block, target) for block in blocks)):
        if found := [bound for bound in bounds if _place(bound) is not None]:
            return found
    return []


def _place(bound: ExtentBound) -> tuple[int, int] | None:
    dim = bound.extent.owner
    if not isinstance(dim, memref.DimOp) or not isinstance(dim.source, BlockArgument) or not is_parameter(dim.source):
        return None
    dimension = constant_integer(dim.index)
    return None if dimension is None else (dim.source.index, dimension)


def _pixels_of(function: FuncOp, calls: Sequence[CallOp]) -> dict[str, int]:
    """Symbols of the extents along which windows of the first convolution or pool move, and their numbers for one
    pixel; for one result of a Winograd convolution.

    Empty if an extent depends on other values, or is computed in all callers, as inside a net, whose kernels would take
    twice the time to build; and for images of one channel whose windows move by one element: code for all sizes
    computes masks once for several channels, which is faster.
    """
    for block in child_blocks(function):
        pattern = pattern_of(block)
        if pattern.kind in (PatternKind.CONVOLUTION, PatternKind.WINDOW):
            moving = {v for read in pattern.reads for v in sliding_iterators(block, read)}
            roles = convolution_roles(pattern)
            is_image = roles is not None and sum(roles.iterators[at] in moving for at in roles.pixels) > 1
            if roles and is_image and roles.sums_one_window and roles.stride(roles.data, roles.column) == 1:
                return {}
            extents = [extent for v, extent in zip(block.iter_vars, block.extents, strict=True) if v in moving]
            values = {value for extent in extents if not isinstance(extent, int) for value in Index.of(extent).values()}
            return _symbols_of(function, calls, dict.fromkeys(values, 1))
    filtered = filtered_image(function)
    numbers: dict[SSAValue, int] = {}
    for extent in () if filtered is None else filtered.extents:
        if isinstance(extent, int) and extent == 1:
            continue
        index = Index.of(extent)
        value = (index - index.constant).single_value
        if value is None or index.constant > 0:
            return {}
        numbers[value] = 1 - index.constant
    return _symbols_of(function, calls, numbers)


def _symbols_of(function: FuncOp, calls: Sequence[CallOp], numbers: Mapping[SSAValue, int]) -> dict[str, int]:
    """The symbols of values, with their numbers; none unless all are extents, which some caller does not compute."""
    own = {quantity: number for value, number in numbers.items() if (quantity := quantity_of(value)) is not None}
    if len(own) < len(numbers) or not any(all(_is_axis(call, quantity) for quantity in own) for call in calls):
        return {}
    symbols = FlatSignature.of(function).of_quantity
    return {symbols[quantity]: own[quantity] for quantity in sorted(own, key=lambda quantity: symbols[quantity])}


def _is_axis(call: CallOp, own: Quantity) -> bool:
    """Whether an extent of an argument is an axis of a parameter of the caller, or a product of several."""
    buffer = call.arguments[own.parameter]
    if isinstance(view := buffer.owner, memref.ReinterpretCastOp):
        stated = mixed_extents(view.static_sizes.get_values(), view.sizes)[own.dimension]
    else:
        stated = dynamic_extents_of(function_of(call)).get((buffer, own.dimension))
    factors = [stated] if isinstance(stated, SSAValue) else []
    for value in factors:
        if isinstance(value.owner, arith.MuliOp):
            factors += value.owner.operands
        elif quantity_of(value) is None:
            return False
    return bool(factors)


def _up_to(function: FuncOp, bound: ExtentBound, name: str, names: set[str]) -> tuple[list[_Condition], FuncOp] | None:
    """A version up to a bound, and the conditions to call it; one iteration is a number in it."""
    place = _place(bound)
    if bound.most > 1 or place is None:
        condition, version = _few(function, bound, new_name(f"{name}_few", names))
        return [condition], version
    symbol = FlatSignature.of(function).of_quantity[Quantity(*place)]
    return _single(function, {symbol: 1}, new_name(f"{name}_single", names))


def _few(function: FuncOp, bound: ExtentBound, name: str) -> tuple[_Condition, FuncOp]:
    """A copy of a function that assumes a bound, and the condition to call it."""
    place = _place(bound)
    if place is None:
        raise InternalError("a version is for an extent of no parameter")
    values: dict[SSAValue, SSAValue] = {}
    copy = _copied(function, name, values)
    extent = values[bound.extent]
    assumed = AssumeOp(AffineExpr.dimension(0), Relation.AT_MOST, AffineExpr.constant(bound.most), [extent])
    Rewriter.insert_op(assumed, InsertPoint.after(cast("Operation", extent.owner)))
    return _Condition(*place, 0, bound.most), copy


def _single(function: FuncOp, numbers: Mapping[str, int], name: str) -> tuple[list[_Condition], FuncOp] | None:
    """A copy of a function for `numbers` of symbols, and the conditions to call it; None if one pixel has no results,
    or Winograd transforms of one result are no linear forms."""
    places = {symbol: own for own, symbol in reversed(FlatSignature.of(function).of_quantity.items())}
    conditions = [
        _Condition(places[symbol].parameter, places[symbol].dimension, number, number)
        for symbol, number in numbers.items()
    ]
    copy = _copied(function, name, {})
    try:
        specialize_buffers(copy, Specialization(dict(numbers)))
    except CompileError:
        Rewriter.erase_op(copy)
        return None
    if filtered_image(copy) is not None and not multiply_directly(copy):
        Rewriter.erase_op(copy)
        return None
    return conditions, copy


def _copied(function: FuncOp, name: str, values: dict[SSAValue, SSAValue]) -> FuncOp:
    copy = copy_of(function, values)
    copy.sym_name = StringAttr(name)
    Rewriter.insert_op(copy, InsertPoint.after(function))
    return copy


def _choose(call: CallOp, conditions: Sequence[_Condition], version: FuncOp) -> CallOp | None:
    """Let a call choose between its callee and a version of it; ranges in the caller may decide statically. Returns the
    call of the version, or None if it is never called."""
    extents = dynamic_extents_of(function_of(call))
    open_: list[tuple[SSAValue | None, _Condition]] = []
    for condition in conditions:
        buffer = call.arguments[condition.parameter]
        stated = extents.get((buffer, condition.dimension))
        low, high = (None, None) if stated is None else range_of(stated)
        if (low is not None and low > condition.most) or (high is not None and high < condition.least):
            return None
        if low is None or high is None or low < condition.least or high > condition.most:
            open_.append((stated, condition))
    other = call_with_casts(version, call.arguments)
    chosen = cast("CallOp", other[-1])
    chosen.location = call.location
    if not open_:
        Rewriter.replace_op(call, other)
        return chosen
    tests = [_test(call, stated, condition) for stated, condition in open_]
    Rewriter.replace_op(call, if_around(conjunction_before(tests, call), other, [copy_of(call)]), [])
    return chosen


def _test(call: CallOp, stated: SSAValue | None, condition: _Condition) -> SSAValue:
    if stated is None or not_dominating([stated], InsertPoint.before(call)):
        stated = dim_before(call.arguments[condition.parameter], condition.dimension, call)
    predicate = "eq" if condition.least == condition.most else "sle"
    return compare_before(predicate, Index.of(stated), Index.of(condition.most), call)
