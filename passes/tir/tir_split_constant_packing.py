"""tir-split-constant-packing: move computations on constants into functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NoneAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.memref import AllocOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.constants import is_constant_nest
from weft.dialects.argument_attributes import argument_attributes, has_argument_attribute, set_argument_attribute
from weft.dialects.element_types import ELEMENT
from weft.dialects.low_access import AccessAttr, AccessMode
from weft.dialects.tir_kinds import CONSTANT, PARAMETER_ACCESS, TIR_FUNCTION
from weft.dialects.traversal import captured_values
from weft.passes.module_edits import calls_by_name, named_ops
from weft.passes.tir.tir_pass import tir_functions
from weft.support.names import new_name

T = TypeVar("T")


@dataclass(frozen=True)
class SplitConstantPackingPass(ModulePass):
    """Move the nests that compute temporaries only from `tir.constant` parameters into separate functions.

    The temporary becomes a parameter of both functions, in place of the constant if that has no other readers. Callers
    allocate it and call the new function first; `fold-constant-calls` evaluates these calls.

    Requires: functions of block loops (tir), scheduled. A function with references other than calls is unchanged.

    Leaves: the same functions without such nests, and a private function for each temporary, `@f_pack_w`.
    """

    name = "tir-split-constant-packing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        split_constant_packing(op)


def split_constant_packing(module: ModuleOp) -> None:
    groups = {function: found for function in tir_functions(module) if (found := _groups(function))}
    if not groups:
        return
    names, calls = set(named_ops(module)), calls_by_name(module)
    for function, own in groups.items():
        name = function.sym_name.data
        for group in own if name in calls else ():
            hints = "_".join(source.name_hint or f"arg{source.index}" for source in group.sources)
            packing = new_name(f"{name}_pack_{hints}", names)
            calls[name] = _split(function, group, packing, calls[name])


@dataclass
class _NestGroup:
    """Nests that share temporaries, and outside values that they use."""

    nests: list[Operation]
    values: dict[SSAValue, None]

    @property
    def sources(self) -> list[BlockArgument]:
        return [value for value in self.values if isinstance(value, BlockArgument)]

    @property
    def temporaries(self) -> list[AllocOp]:
        return [value.owner for value in self.values if isinstance(value.owner, AllocOp)]

    @property
    def packed(self) -> list[AllocOp]:
        return [alloc for alloc in self.temporaries if not all(map(self.holds, alloc.memref.uses))]

    def holds(self, use: Use) -> bool:
        return any(nest.is_ancestor(use.operation) for nest in self.nests)

    def is_split(self) -> bool:
        plain = all(isinstance(p.memref.type.memory_space, NoneAttr) and not p.attributes for p in self.packed)
        return bool(self.sources) and bool(self.packed) and plain


def _groups(function: FuncOp) -> list[_NestGroup]:
    if not any(has_argument_attribute(function, at, CONSTANT) for at in range(len(function.args))):
        return []
    groups: list[_NestGroup] = []
    for nest in function.body.block.ops:
        if not is_constant_nest(nest):
            continue
        values = dict.fromkeys((*nest.operands, *captured_values(nest)))
        temporaries = {value for value in values if isinstance(value.owner, AllocOp)}
        joined = [group for group in groups if not temporaries.isdisjoint(group.values)]
        merged = _NestGroup([], {})
        for group in (*joined, _NestGroup([nest], values)):
            merged.nests += group.nests
            merged.values |= group.values
        groups = [*(group for group in groups if group not in joined), merged]
    return [group for group in groups if group.is_split()]


@dataclass(frozen=True)
class _Parameters:
    kept: tuple[int, ...]
    before: int
    """Kept parameters before the new ones."""

    def changed(self, items: Sequence[T], added: Sequence[T]) -> list[T]:
        kept = [items[position] for position in self.kept]
        return [*kept[: self.before], *added, *kept[self.before :]]


def _split(function: FuncOp, group: _NestGroup, name: str, calls: Sequence[CallOp]) -> list[CallOp]:
    """Returns the updated calls."""
    entry, sources, packed = function.body.block, group.sources, group.packed
    positions = [source.index for source in sources]
    packing = _packing_function(function, group, name)
    Rewriter.insert_op(packing, InsertPoint.after(function))
    stated, last = argument_attributes(function), max(positions)
    for offset, alloc in enumerate(packed):
        parameter = entry.insert_arg(alloc.memref.type, last + 1 + offset)
        parameter.name_hint, parameter.location = alloc.memref.name_hint, alloc.location
        alloc.memref.replace_all_uses_with(parameter)
        Rewriter.erase_op(alloc)
    dropped = [position for position in positions if entry.args[position].first_use is None]
    for position in sorted(dropped, reverse=True):
        entry.erase_arg(entry.args[position])
    kept = tuple(position for position in range(len(stated)) if position not in dropped)
    change = _Parameters(kept, sum(position <= last for position in kept))
    # As the constant, except how arrays are passed.
    of_packed = DictionaryAttr({key: value for key, value in stated[last].data.items() if key != ELEMENT})
    function.arg_attrs = ArrayAttr(change.changed(stated, [of_packed] * len(packed)))
    noted = function.attributes.get(PARAMETER_ACCESS)
    if isinstance(noted, ArrayAttr):
        accesses = change.changed(noted.data, [AccessAttr(AccessMode.READ)] * len(packed))
        function.attributes[PARAMETER_ACCESS] = ArrayAttr(accesses)
    function.update_function_type()
    after: list[CallOp] = []
    for call in calls:
        buffers = [_allocated_before(call, argument) for argument in packing.args[len(sources) :]]
        ahead = CallOp(name, [*(call.arguments[at] for at in positions), *buffers], ())
        rest = CallOp(call.callee, change.changed(call.arguments, buffers), ())
        ahead.location = rest.location = call.location
        Rewriter.replace_op(call, [ahead, rest], [])
        after.append(rest)
    return after


def _packing_function(function: FuncOp, group: _NestGroup, name: str) -> FuncOp:
    sources, packed = group.sources, group.packed
    values: list[SSAValue] = [*sources, *(alloc.memref for alloc in packed)]
    block = Block(arg_types=[value.type for value in values])
    new: dict[SSAValue, SSAValue] = dict(zip(values, block.args, strict=True))
    for value, argument in zip(values, block.args, strict=True):
        argument.name_hint, argument.location = value.name_hint, function.location
    for value in group.values:
        if isinstance(value.owner, AllocOp):
            if value not in new:
                value.owner.detach()
                block.add_op(value.owner)
        elif value not in new:
            _copy(value, block, new)
    for value, replacement in new.items():
        value.replace_uses_with_if(replacement, group.holds)
    for nest in group.nests:
        nest.detach()
        block.add_op(nest)
    block.add_op(ReturnOp())
    packing = FuncOp(name, (list(block.arg_types), []), Region(block), visibility="private")
    packing.attributes.update(function.attributes)
    packing.attributes[TIR_FUNCTION] = UnitAttr()
    accesses = [AccessMode.READ] * len(sources) + [AccessMode.WRITE] * len(packed)
    packing.attributes[PARAMETER_ACCESS] = ArrayAttr(list(map(AccessAttr, accesses)))
    set_argument_attribute(packing, range(len(sources)), CONSTANT)
    packing.location = function.location
    return packing


def _copy(value: SSAValue, block: Block, new: dict[SSAValue, SSAValue]) -> None:
    op = value.owner
    if value in new or not isinstance(op, Operation):
        return
    for operand in op.operands:
        _copy(operand, block, new)
    copy = op.clone(new)
    block.add_op(copy)
    new.update(zip(op.results, copy.results, strict=True))


def _allocated_before(call: CallOp, like: SSAValue) -> SSAValue:
    alloc = AllocOp([], [], like.type)
    alloc.location, alloc.memref.name_hint = call.location, like.name_hint
    Rewriter.insert_op(alloc, InsertPoint.before(call))
    return alloc.memref
