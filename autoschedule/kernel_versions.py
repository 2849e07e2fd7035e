"""Versions of kernels for few iterations of a loop, chosen by host code at each call.

    func.call @matmul(%x, %w, %y)
    // becomes
    %c0 = arith.constant 0 : index
    %m = memref.dim %x, %c0 : memref<?x784xf32>
    %few = arith.cmpi sle, %m, %c11 : index
    scf.if %few { func.call @matmul_few(%x, %w, %y) } else { func.call @matmul(%x, %w, %y) }

The version is the same function with `tir.assume [%m] <= [11]`, so that the same rules plan it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Final, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.block_patterns import pattern_of
from weft.analysis.block_scopes import child_blocks, function_of, is_plain, why_not_plain
from weft.analysis.index import Index
from weft.analysis.integer_ranges import dynamic_extents_of, is_parameter, range_of
from weft.autoschedule.contraction import few_rows
from weft.autoschedule.nests import short_rows
from weft.dialects.integer_arith import constant_integer
from weft.dialects.tir_assume import AssumeOp, Relation
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.index_builders import compare_before, dim_before, if_around
from weft.passes.module_edits import calls_by_name, named_ops
from weft.passes.schedule.dominance import not_dominating
from weft.passes.tir.tir_pass import buffer_functions
from weft.plans.roles import ExtentBound
from weft.support.errors import InternalError
from weft.support.names import new_name
from weft.support.target import Target

_PRIVATE: Final = StringAttr("private")


def add_kernel_versions(module: ModuleOp, target: Target, skipped: Callable[[], Collection[str]]) -> None:
    """Add a version for few iterations of a loop to each kernel of a module whose default schedule for `target` depends
    on their number, and let calls choose. Kernels named by `skipped`, which is called only if there are candidates, are
    excluded."""
    names = set(named_ops(module))
    calls = _calls_of_kernels(module)
    bounds = {function: bound for function in calls if (bound := _bound_of(function, target)) is not None}
    skip = skipped() if bounds else ()
    for function, bound in bounds.items():
        name = function.sym_name.data
        if name not in skip:
            version = _version(function, bound, new_name(f"{name}_few", names))
            for call in calls[function]:
                _choose(call, bound, version)


def _calls_of_kernels(module: ModuleOp) -> dict[FuncOp, list[CallOp]]:
    """Returns the calls of private functions over buffers that have no other uses and contain no calls."""
    calls = calls_by_name(module)
    kernels = [op for op in buffer_functions(module) if op.sym_visibility == _PRIVATE]
    leaves = [op for op in kernels if not any(isinstance(inner, CallOp) for inner in operations_in(op))]
    return {op: found for op in leaves if (found := calls.get(op.sym_name.data))}


def _bound_of(function: FuncOp, target: Target) -> ExtentBound | None:
    """Returns the maximum number of iterations for which a plain function gets a version: that of the first product
    that has one, else that of the first nest over rows. Returns None for functions of static extents."""
    if not dynamic_extents_of(function) or why_not_plain(function) is not None:
        return None
    blocks = [block for block in child_blocks(function) if is_plain(block)]
    products = (few_rows(pattern_of(block)) for block in blocks)
    for bound in itertools.chain(products, (short_rows(block, target) for block in blocks)):
        if bound is not None and _place(bound) is not None:
            return bound
    return None


def _place(bound: ExtentBound) -> tuple[int, int] | None:
    dim = bound.extent.owner
    if not isinstance(dim, memref.DimOp) or not isinstance(dim.source, BlockArgument) or not is_parameter(dim.source):
        return None
    dimension = constant_integer(dim.index)
    return None if dimension is None else (dim.source.index, dimension)


def _version(function: FuncOp, bound: ExtentBound, name: str) -> FuncOp:
    """Returns a copy of a function, inserted after it, that assumes a bound."""
    values: dict[SSAValue, SSAValue] = {}
    copy = copy_of(function, values)
    copy.sym_name = StringAttr(name)
    extent = values[bound.extent]
    assumed = AssumeOp(AffineExpr.dimension(0), Relation.AT_MOST, AffineExpr.constant(bound.most), [extent])
    Rewriter.insert_op(assumed, InsertPoint.after(cast("Operation", extent.owner)))
    Rewriter.insert_op(copy, InsertPoint.after(function))
    return copy


def _choose(call: CallOp, bound: ExtentBound, version: FuncOp) -> None:
    """Let a call choose between its callee and a version of it; ranges in the caller may decide statically."""
    place = _place(bound)
    if place is None:
        raise InternalError("a version is for an extent of no parameter")
    parameter, dimension = place
    buffer = call.arguments[parameter]
    stated = dynamic_extents_of(function_of(call)).get((buffer, dimension))
    low, high = (None, None) if stated is None else range_of(stated)
    if low is not None and low > bound.most:
        return
    other = CallOp(version.sym_name.data, call.arguments, ())
    other.location = call.location
    if high is not None and high <= bound.most:
        Rewriter.replace_op(call, other)
        return
    if stated is None or not_dominating([stated], InsertPoint.before(call)):
        stated = dim_before(buffer, dimension, call)
    few = compare_before("sle", Index.of(stated), Index.of(bound.most), call)
    Rewriter.replace_op(call, if_around(few, [other], [copy_of(call)]), [])
