"""`raise-affine-to-tir`: block loops from `affine` and `scf`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    UnitAttr,
    UnrankedMemRefType,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.analysis.accesses import accesses
from weft.analysis.dependence import is_temporary
from weft.analysis.independence import carried_conflict
from weft.analysis.index import Index
from weft.analysis.sets import NotProved
from weft.dialects.aliasing import add_argument_attributes
from weft.dialects.effects import op_name
from weft.dialects.levels import allowed_at
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.promises import Promise, parse_promises, state_promises
from weft.dialects.strides import layout_problem, strides_of, with_strides
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import PARAMETER_ACCESS, TIR_FUNCTION, LoopKind, LoopKindAttr
from weft.dialects.traversal import operations_in, values_of
from weft.passes.convert.accumulators import accumulate_in_place
from weft.passes.convert.assertions import state_assertions
from weft.passes.convert.loop_distribution import distribute_loops
from weft.passes.convert.loop_normalization import LoopNormalization
from weft.passes.convert.reduction_inits import merge_inits
from weft.passes.convert.region_branches import replace_region_branches
from weft.passes.convert.returned_parameters import drop_returned_parameters
from weft.passes.convert.statement_blocks import StatementBlocks
from weft.passes.convert.upstream_functions import convertible, upstream_dialects
from weft.passes.convert.values_as_bytes import hold_in_bytes
from weft.passes.index_builders import insert_before
from weft.passes.module_edits import symbol_uses
from weft.passes.tir.tir_pass import buffer_functions
from weft.support.errors import CompileError, Remark, remark

_RAISED = ("affine.", "scf.")
_ACCESSES = (memref.LoadOp, memref.StoreOp, memref.CopyOp)


@dataclass(frozen=True)
class RaiseAffineToTirPass(ModulePass):
    """Raise the functions over buffers with loops, conditions, loads or stores of `affine`, `scf` and `memref`:
    `raise-affine-to-tir{promises=noalias,contract,reassoc}`.

    ```mlir
    affine.for %i = 0 to 128 { affine.for %j = 0 to 128 { affine.for %k = 0 to 64 {
      %a = affine.load %A[%i, %k] ...  affine.store %s, %C[%i, %j]
    // becomes
    tir.for %i in 128 { tir.for %j in 128 { tir.for %k in 64 {
      tir.block "C" iters(%vi: spatial<128>, %vj: spatial<128>, %vk: reduce<64>) = [%i, %j, %k] { ... }
    ```
    Each store becomes a block named after the buffer (`loop_normalization.py`, `statement_blocks.py`,
    `loop_distribution.py`, `reduction_inits.py`, `accumulators.py`). `promises` are assumptions
    (`dialects/promises.py`): upstream has none. A function that cannot be raised is unchanged, with a remark; with
    `strict`, that is an error.

    Requires: functions of `affine`, `scf` and `memref` over buffers.

    Leaves: block loops (tir); parts that cannot be raised are opaque blocks.
    """

    name = "raise-affine-to-tir"

    promises: tuple[str, ...] = ()
    """Assumptions in addition to those of the program: `noalias`, `contract`, `reassoc` (`dialects/promises.py`)."""
    strict: bool = False
    """Whether it is an error, not a remark, if the pass finds nothing, or does not raise an operation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        promises = parse_promises(self.promises)
        functions = [function for function in buffer_functions(op) if is_raised_alone(function)]
        self.convert(op, convertible(op, self.name, functions, in_blocks=True, strict=self.strict), promises)
        if not functions:
            remark(op, f"{self.name} finds no function of affine or scf loops over buffers", strict=self.strict)

    def convert(self, op: ModuleOp, functions: Sequence[FuncOp], promises: frozenset[Promise]) -> None:
        drop_returned_parameters(op, functions)
        for function in functions:
            raised = function.clone()
            op.body.block.insert_op_after(raised, function)
            try:
                state_promises(raised, promises)
                raise_function(raised)
                left = next((inner for inner in operations_in(raised) if _is_left(inner)), None)
                if left is not None:
                    message = f"{left.name} has no form in tir: it stays in a block, for another pass to lower"
                    remark(left, message, strict=self.strict)
                Rewriter.erase_op(function)
            except CompileError as error:
                if self.strict:
                    raise
                Rewriter.erase_op(raised)
                warnings.warn(Remark(error.message, error.location), stacklevel=2)


def is_raised_alone(function: Operation) -> bool:
    return isinstance(function, FuncOp) and bool(upstream_dialects(function)) and _is_to_raise(function)


def _is_to_raise(function: FuncOp) -> bool:
    return any(op.name.startswith(_RAISED) or isinstance(op, _ACCESSES) for op in function.body.walk())


def why_not_raised(function: FuncOp) -> tuple[Operation, str] | None:
    """The op because of which a function cannot be raised, and the reason."""
    name = function.sym_name.data
    if (count := len(function.body.blocks)) != 1:
        return function, f"@{name} has {count} blocks: structured loops are raised, branches are not"
    if any(isinstance(type_, MemRefType | UnrankedMemRefType) for type_ in function.function_type.outputs):
        return function, f"@{name} returns a buffer: results are in buffers that callers pass"
    for op in operations_in(function):
        defined = values_of(op)
        if any(isinstance(value.type, UnrankedMemRefType) for value in defined):
            return op, f"{op_name(op)} has a buffer without a rank, whose elements have no indices"
    return None


def _is_left(op: Operation) -> bool:
    return op.name.startswith((*_RAISED, "memref.", "vector.")) and not allowed_at("tir", op.name)


def raise_function(function: FuncOp) -> bool:
    """Convert `affine` and `scf` to block loops; nests of tir get an iterator per loop around them. Returned numbers
    are stored to trailing buffer parameters. Returns whether the function changed.

    Raises `CompileError`, with the function partly changed, for branches between blocks, buffers as results or
    loop-carried values, views whose elements have no indices in a buffer, and tensors.
    """
    if not _is_to_raise(function):
        return False
    if (problem := why_not_raised(function)) is not None:
        raise CompileError.at(*problem)
    replace_region_branches(function)
    state_assertions(function)
    _give_results_by_buffers(function)
    _state_strides(function)
    loops = LoopNormalization(function)
    loops.run()
    StatementBlocks(function, loops).run()
    for loop in loops.parallel:
        if _may_run_at_once(loop):
            loop.kind = LoopKindAttr(LoopKind.PARALLEL)
    distribute_loops(function)
    merge_inits(function)
    accumulate_in_place(function)
    hold_in_bytes(function)
    function.attributes[TIR_FUNCTION] = UnitAttr()
    return True


def _may_run_at_once(loop: ForOp) -> bool:
    """Not if iterations provably conflict, or temporaries, which upstream allocates per iteration, may not be
    private."""
    found = accesses(loop)
    try:
        conflict = carried_conflict(loop, found=found)
    except NotProved:
        return not any(is_temporary(access.buffer) for access in found)
    return conflict is None or not (conflict.exact or is_temporary(conflict.first.buffer))


def _give_results_by_buffers(function: FuncOp) -> None:
    last = function.body.block.last_op
    if not isinstance(last, ReturnOp) or not last.arguments:
        return
    name, module = function.sym_name.data, function.parent_op()
    others = () if module is None else (op for op in module.regions[0].block.ops if op is not function)
    user = next((user for op in others for symbol, user in symbol_uses(op) if symbol == name), None)
    if user is not None:
        raise CompileError.at(user, f"@{name} returns numbers to this op: raised, it would store them to buffers")
    for at, value in enumerate(last.arguments):
        result = function.body.block.insert_arg(MemRefType(value.type, []), len(function.args))
        result.name_hint = value.name_hint or f"result{at}"
        insert_before(last, [memref.StoreOp.get(value, result, [])])
    add_argument_attributes(function, behind=len(last.arguments))
    if isinstance(noted := function.attributes.get(PARAMETER_ACCESS), ArrayAttr):
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(
            [*noted, *[AccessAttr(AccessMode.WRITE)] * len(last.arguments)]
        )
    function.res_attrs = None
    last.operands = []
    function.update_function_type()


def _state_strides(function: FuncOp) -> None:
    """Parameters with an index map or offset get strides that callers pass."""
    for argument in function.args:
        type_ = argument.type
        if isinstance(type_, MemRefType) and layout_problem(type_) is not None:
            strides = _strides(type_)
            if strides is None:
                raise CompileError.at(function, f"parameter {argument.name_hint}: {layout_problem(type_)}")
            Rewriter.replace_value_with_new_type(argument, with_strides(type_, strides))
    function.update_function_type()


def _strides(type_: MemRefType[Attribute]) -> tuple[int | None, ...] | None:
    """None if a layout is not linear in the indices."""
    if not isinstance(type_.layout, AffineMapAttr):
        return strides_of(type_)
    map_ = type_.layout.data
    dims = Block(arg_types=[IndexType()] * map_.num_dims).args
    if map_.num_symbols or len(map_.results) != 1:
        return None
    place = Index.of_expr(map_.results[0], [Index.of(dim) for dim in dims])
    return tuple(place.coefficient(dim) for dim in dims) if set(place.terms) <= set(dims) else None
