"""Versions of functions for specific sizes, selected by host code at the call.

    func.func @main(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
      %n = memref.dim %x, %c0 : memref<?x4xf32>
      tir.assume [%n] <= [512]
      %is = arith.cmpi eq, %n, %c128 : index
      scf.if %is {
        %x128 = memref.cast %x : memref<?x4xf32> to memref<128x4xf32>
        %y128 = memref.cast %y : memref<?x4xf32> to memref<128x4xf32>
        func.call @main_n128(%x128, %y128) : (memref<128x4xf32>, memref<128x4xf32>) -> ()
      } else {
        func.call @main_any(%x, %y) : (memref<?x4xf32>, memref<?x4xf32>) -> ()
      }
      func.return
    }

The visible function keeps its preconditions; versions are private and share constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import GetGlobalOp, GlobalOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.dialects.graph_shapes import lone_name, shape_of
from weft.dialects.input_shapes import Specialization
from weft.dialects.tir_assume import AssumeOp, AssumeSizesOp, assumptions_of
from weft.dialects.traversal import copy_of
from weft.passes.graph.functions import graph_functions
from weft.passes.graph.graph_infer_types import name_parameters
from weft.passes.index_builders import index_attribute
from weft.passes.module_edits import functions_of, named_ops, symbol_uses
from weft.passes.specialize_shapes import specialize_buffers, specialize_graph
from weft.passes.tir.flat_signature import FlatSignature, Quantity
from weft.passes.tir.tir_pass import tir_functions
from weft.support.errors import CompileError, did_you_mean
from weft.support.names import free_name
from weft.support.sizes import Sizes

_PRIVATE: Final = StringAttr("private")


@dataclass
class Dispatch:
    name: str
    axes: Mapping[str, Quantity]
    """The axis of a parameter that binds each symbol."""
    versions: list[tuple[str, Sizes]] = field(default_factory=list[tuple[str, Sizes]])
    """Functions, and the sizes that each is for."""


def add_graph_versions(module: ModuleOp, wanted: Sequence[Sizes]) -> list[Dispatch]:
    """Versions of graph functions for sizes of symbols. Raises `CompileError` for a size outside a stated range."""
    found: list[Dispatch] = []
    names = named_ops(module)
    for function in list(graph_functions(module)):
        if not _is_entry(module, function):
            continue
        name_parameters(function)
        dispatch = Dispatch(function.sym_name.data, _axes_of_graph(function))
        found.append(dispatch)
        for sizes in wanted:
            if sizes.keys() <= dispatch.axes.keys():
                copy = _copied(function, sizes, names)
                dispatch.versions.append((copy.sym_name.data, sizes))
                specialize_graph(module, copy, Specialization(dict(sizes)))
    return found


def dispatch_versions(module: ModuleOp, wanted: Sequence[Sizes], graphs: Sequence[Dispatch]) -> None:
    """Let functions over buffers select versions: those of graphs, and of all others, added here.

    Raises `CompileError` for symbols that no function has.
    """
    names = named_ops(module)
    functions = {function.sym_name.data: function for function in tir_functions(module)}
    done = {name for dispatch in graphs for name in (dispatch.name, *(version for version, _ in dispatch.versions))}
    found = list(graphs)
    for name, function in functions.items():
        if name in done or not _is_entry(module, function):
            continue
        quantities = FlatSignature.of(function).of_quantity
        dispatch = Dispatch(name, {symbol: own for own, symbol in reversed(quantities.items()) if not own.is_stride})
        found.append(dispatch)
        for sizes in wanted:
            if sizes.keys() <= dispatch.axes.keys():
                copy = _copied(function, sizes, names)
                dispatch.versions.append((copy.sym_name.data, sizes))
                specialize_buffers(copy, Specialization(dict(sizes)))
    for sizes in wanted:
        if not any(version == sizes for dispatch in found for _, version in dispatch.versions):
            known = dict.fromkeys(symbol for dispatch in found for symbol in dispatch.axes)
            unknown = next((symbol for symbol in sizes if symbol not in known), None)
            if unknown is not None:
                raise CompileError(f"specialize: no function has a symbol '{unknown}'{did_you_mean(unknown, known)}")
            raise CompileError(f"specialize: no function has all of the symbols {', '.join(sizes)}")
    versions = functions_of(module)
    for dispatch in found:
        if dispatch.versions:
            _dispatch(versions, dispatch, names)
    share_constants(module)


def share_constants(module: ModuleOp) -> None:
    """Merge equal constants, and weights that versions pack alike."""
    first: dict[tuple[Attribute, Attribute], GlobalOp] = {}
    equal: dict[str, str] = {}
    for op in list(module.ops):
        if isinstance(op, GlobalOp) and op.constant is not None:
            kept = first.setdefault((op.type, op.initial_value), op)
            if kept is not op:
                equal[op.sym_name.data] = kept.sym_name.data
                Rewriter.erase_op(op)
    if equal:
        for op in module.walk():
            if isinstance(op, GetGlobalOp) and (name := equal.get(op.name_.string_value())) is not None:
                op.name_ = SymbolRefAttr(name)


def _axes_of_graph(function: FuncOp) -> dict[str, Quantity]:
    axes: dict[str, Quantity] = {}
    for argument in function.args:
        for at, extent in enumerate(shape_of(argument.type) if isinstance(argument.type, TensorType) else ()):
            if (name := lone_name(extent)) is not None:
                axes.setdefault(name, Quantity(argument.index, at))
    return axes


def _copied(function: FuncOp, sizes: Sizes, names: dict[str, Operation]) -> FuncOp:
    copy = copy_of(function)
    wanted = "_".join([function.sym_name.data, *(f"{symbol}{size}" for symbol, size in sizes.items())])
    copy.sym_name = StringAttr(free_name(wanted, names))
    names[copy.sym_name.data] = copy
    Rewriter.insert_op(copy, InsertPoint.after(function))
    return copy


def _is_entry(module: ModuleOp, function: FuncOp) -> bool:
    name = function.sym_name.data
    uses = (symbol for op in module.ops if op is not function for symbol, _ in symbol_uses(op))
    return function.sym_visibility != _PRIVATE and not function.is_declaration and name not in set(uses)


def _dispatch(functions: Mapping[str, FuncOp], dispatch: Dispatch, names: dict[str, Operation]) -> None:
    function = functions[dispatch.name]
    general = copy_of(function)
    general.sym_name = StringAttr(free_name(f"{dispatch.name}_any", names))
    names[general.sym_name.data] = general
    Rewriter.insert_op(general, InsertPoint.after(function))
    versions = [functions[name] for name, _ in dispatch.versions]
    for callee in (general, *versions):
        callee.sym_visibility = _PRIVATE
        for assumed in assumptions_of(callee):
            assumed.reason = None  # the caller has checked it
    body = function.body.block
    for op in reversed(list(body.ops)):
        if not isinstance(op, AssumeOp | AssumeSizesOp) and all(not result.uses for result in op.results):
            Rewriter.erase_op(op)
    dims: dict[str, SSAValue] = {}
    for symbol in dict.fromkeys(symbol for _, sizes in dispatch.versions for symbol in sizes):
        own = dispatch.axes[symbol]
        axis = arith.ConstantOp(index_attribute(own.dimension))
        dim = memref.DimOp(function.args[own.parameter], axis.result)
        dim.result.name_hint = symbol
        body.add_ops([axis, dim])
        dims[symbol] = dim.result
    chosen = call_with_casts(general, function.args)
    for version, (_, sizes) in reversed(list(zip(versions, dispatch.versions, strict=True))):
        numbers = [arith.ConstantOp(index_attribute(size)) for size in sizes.values()]
        equal = [arith.CmpiOp(dims[symbol], n, "eq") for symbol, n in zip(sizes, numbers, strict=True)]
        joined: list[Operation] = [*numbers, *equal]
        condition: SSAValue = equal[0].result
        for other in equal[1:]:
            joined.append(arith.AndIOp(condition, other.result))
            condition = joined[-1].results[0]
        branches = [_region([*ops, scf.YieldOp()]) for ops in (call_with_casts(version, function.args), chosen)]
        chosen = [*joined, scf.IfOp(condition, (), branches[0], branches[1])]
    body.add_ops([*chosen, ReturnOp()])


def call_with_casts(callee: FuncOp, arguments: Sequence[SSAValue]) -> list[Operation]:
    ops: list[Operation] = []
    given: list[SSAValue] = []
    for argument, type_ in zip(arguments, callee.function_type.inputs.data, strict=True):
        if argument.type != type_:
            ops.append(memref.CastOp.get(argument, cast("MemRefType[Attribute]", type_)))
            given.append(ops[-1].results[0])
        else:
            given.append(argument)
    return [*ops, CallOp(callee.sym_name.data, given, ())]


def _region(ops: Sequence[Operation]) -> Region:
    return Region(Block(ops))
