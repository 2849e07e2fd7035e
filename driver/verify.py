"""Verification of a module with located errors.

xDSL's `verify()` prints the whole module on failure, and checks neither scope nor dominance. Here each operation is
verified separately, innermost first, after checking that its operands are visible.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import FunctionType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, ErasedSSAValue, OpResult
from xdsl.ir.core import OpTraits
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from weft.dialects.functions import function_around, is_weft, why_misplaced
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation, location_of, source_location

if TYPE_CHECKING:
    from xdsl.ir import Operation, Region, SSAValue

_GRAPH_REGIONS = frozenset(("builtin.module", "hw.module"))
"""Operations with graph regions: values may be used before they are defined."""
_YIELDING = frozenset(("affine.for", "affine.if", "affine.parallel", "scf.if"))
_CHECKED = frozenset(("memref.dim", "memref.global", "tensor.dim"))
"""Operations that `driver/verify_extra.py` checks, in addition to functions and those of affine."""
_CALL = replace(CallOp.get_irdl_definition(), traits=OpTraits(lambda: ()))
"""A call without the check of its callee, which xDSL looks up by a scan of the module."""


def verify_module(module: ModuleOp) -> None:
    """Verify every operation, and that every value is used in scope, after its definition.

    Also checks that tir bindings cover each domain once, and that accesses are in bounds (`analysis/checks.py`). Raises
    `CompileError` with the place of the first failure.
    """
    names: set[str] = set()
    _verify_operation(module, set(), names)
    if names & {"tir.block", "tir.for"}:
        from weft.analysis.checks import check_program  # start-up: 116 ms

        check_program(module)


def _verify_operation(operation: Operation, visible: set[SSAValue], names: set[str]) -> None:
    """`visible` are the values that the operation may use; `names` collects names of operations."""
    names.add(operation.name)
    for operand in operation.operands:
        if operand not in visible:
            place = _place_of_definition(operand)
            notes = () if place is None else (("it is defined here", place),)
            raise CompileError(_invisible(operation, operand), location=location_of(operation), notes=notes)
    if operation.regions and (reason := why_misplaced(operation)) is not None:
        raise CompileError.at(operation, reason)
    for region in operation.regions:
        isolated = operation.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        _verify_region(operation, region, set() if isolated else visible, names)
    try:
        if operation.name in _YIELDING:
            _verify_yields(operation)
        if _needs_extra(operation):
            from weft.driver.verify_extra import verify_extra  # start-up: 130 ms

            verify_extra(operation)
        if isinstance(operation, CallOp) and _finds_callee(operation):
            _CALL.verify(operation)
        else:
            operation.verify(verify_nested_ops=False)
    except VerifyException as error:
        place = _redefinition(operation) or operation
        raise CompileError.at(place, f"{_subject(operation, str(error))}{error}") from None
    except Exception as error:
        # Verifiers, those of xDSL with bare exceptions, may fail in any way on unforeseen IR.
        if is_weft(operation) and not isinstance(error, ValueError):
            raise
        raise CompileError.at(operation, f"'{operation.name}' does not verify: {error}") from error


def _needs_extra(operation: Operation) -> bool:
    if isinstance(operation, FuncOp):
        return bool(operation.attributes) or operation.arg_attrs is not None or len(operation.body.blocks) != 1
    return operation.name in _CHECKED or operation.name.startswith("affine.")


def _finds_callee(call: CallOp) -> bool:
    """Whether a call is at a valid position, and its callee has the types of operands and results."""
    symbol, block = call.properties.get("callee"), call.parent
    if not isinstance(symbol, SymbolRefAttr) or symbol.nested_references.data or call.successors:
        return False
    callee = function_around(call, symbol.root_reference.data)
    types = None if callee is None else callee.properties.get("function_type")
    if callee is None or not isinstance(types, FunctionType) or block is None or block.last_op is call:
        return False
    if types.inputs.data != tuple(call.operand_types) or types.outputs.data != tuple(call.result_types):
        return False
    return callee.parent_op() is _symbol_table(call)


def _symbol_table(operation: Operation) -> Operation | None:
    around = operation.parent_op()
    while around is not None and not around.has_trait(SymbolTable, value_if_unregistered=False):
        around = around.parent_op()
    return around


def _verify_yields(operation: Operation) -> None:
    """xDSL does not check the types of region results for all operations of `_YIELDING`."""
    wanted = [result.type for result in operation.results]
    for region in operation.regions if wanted else ():
        last = region.block.last_op if len(region.blocks) == 1 else None
        given = [] if last is None else [operand.type for operand in last.operands]
        if given != wanted:
            shown, needed = ", ".join(map(str, given)), ", ".join(map(str, wanted))
            raise VerifyException(f"'{operation.name}' yields ({shown}), its results are ({needed})")


def _redefinition(table: Operation) -> Operation | None:
    known: set[str] = set()
    if table.has_trait(SymbolTable, value_if_unregistered=False):
        for op in [op for region in table.regions[:1] for block in region.blocks for op in block.ops]:
            trait = op.get_trait(SymbolOpInterface)
            symbol = None if trait is None else trait.get_sym_attr_name(op)
            if symbol is not None and symbol.data in known:
                return op
            known.add("" if symbol is None else symbol.data)
    return None


def _subject(operation: Operation, message: str) -> str:
    """The operation's name as a prefix, unless the message or weft's own verifiers name it."""
    return "" if is_weft(operation) or operation.name in message else f"'{operation.name}': "


def _verify_region(parent: Operation, region: Region, outer: set[SSAValue], names: set[str]) -> None:
    block = region.first_block
    if block is None:
        return
    if block.next_block is None:
        _verify_block(parent, block, outer, names)
        return
    from xdsl.irdl.dominance import DominanceInfo

    dominance = DominanceInfo(region)
    blocks = list(region.blocks)
    for block in blocks:
        visible = set(outer)
        for other in blocks:
            if dominance.strictly_dominates(other, block):
                visible.update(_definitions(other))
        _verify_block(parent, block, visible, names)


def _verify_block(parent: Operation, block: Block, outer: set[SSAValue], names: set[str]) -> None:
    if block.is_empty and not parent.has_trait(NoTerminator, value_if_unregistered=True):
        raise CompileError.at(parent, f"'{parent.name}' has an empty region, which must end with a terminator")
    # One set for the whole walk: definitions of a block are added on entry and removed on exit.
    defined: list[SSAValue] = list(block.args)
    if parent.name in _GRAPH_REGIONS:
        defined = _definitions(block)
    outer.update(defined)
    for operation in block.ops:
        _verify_operation(operation, outer, names)
        outer.update(operation.results)
        defined.extend(operation.results)
    outer.difference_update(defined)


def _definitions(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for operation in block.ops for result in operation.results)]


def _place_of_definition(value: SSAValue) -> SourceLocation | None:
    if isinstance(value, OpResult):
        return location_of(value.op)
    if not isinstance(value, BlockArgument):
        return None
    owner = value.block.parent_op()
    return source_location(value.location) or (None if owner is None else location_of(owner))


def _invisible(user: Operation, value: SSAValue) -> str:
    name = f"%{value.name_hint}" if value.name_hint else "a value without a name"
    if isinstance(value, ErasedSSAValue):
        return f"'{user.name}' uses {name}, whose operation was erased"
    if isinstance(value, OpResult):
        definition, block = value.op, value.op.parent
        what = f"the result of '{definition.name}'"
    elif isinstance(value, BlockArgument):
        definition, block = value.block.parent_op(), value.block
        what = "an argument" if definition is None else f"an argument of '{definition.name}'"
    else:
        return f"'{user.name}' uses {name}, which is not defined"
    place = None if definition is None else location_of(definition)
    where = f" at line {place.line}" if place is not None else ""
    region = None if block is None else block.parent
    barrier = _isolated_below(region, user)
    if barrier is not None:
        return f"'{user.name}' uses {name} outside its scope: {what}{where}, which '{barrier.name}' does not see"
    if _holds(block, user):
        return f"'{user.name}' uses {name} before its definition, {what}{where}"
    if region is not None and any(_holds(other, user) for other in region.blocks):
        return f"'{user.name}' uses {name}, {what}{where}, which does not run on every way to this use"
    return f"'{user.name}' uses {name} outside its scope: it is {what}{where}, whose region does not hold this use"


def _isolated_below(region: Region | None, operation: Operation) -> Operation | None:
    """The op around `operation`, inside `region`, that is isolated from its values, or None."""
    around = operation.parent_op()
    while region is not None and around is not None and region.is_ancestor(around):
        if around.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            return around
        around = around.parent_op()
    return None


def _holds(block: Block | None, operation: Operation) -> bool:
    return block is not None and block.find_ancestor_op_in_block(operation) is not None
