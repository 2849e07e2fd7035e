"""Trial application: primitives are applied to a copy, and rejected if a loop that runs in parallel gains a dependence.

`parallel` and `vectorize` prove that iterations are independent at that time. A later move into such a loop, or an
interchange with it, may invalidate the proof.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from weft.analysis.accesses import Access, accesses
from weft.analysis.block_patterns import combines_freely
from weft.analysis.block_scopes import ancestors, buffers_written, child_towards, function_of
from weft.analysis.independence import dependent_iterations
from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.threads import axis_of
from weft.dialects.aliasing import with_overlapping
from weft.dialects.effects import declared_callees, effects_of, underlying
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.schedule.parallel import reduces_in_lanes
from weft.passes.schedule.primitive import Plan, Primitive, operation_text
from weft.support.errors import InternalError


@dataclass(frozen=True)
class FunctionCopy:
    """Some nests of a function, in a module in which calls have the same effects."""

    original: FuncOp
    function: FuncOp
    twins: Mapping[Operation, Operation]
    """Original -> copy."""
    values: Mapping[SSAValue, SSAValue]
    """Original -> copy."""

    @cached_property
    def originals(self) -> dict[Operation, Operation]:
        """Copy -> original, at the time of the copy."""
        return {twin: original for original, twin in self.twins.items()}

    def apply(self, plan: Plan) -> tuple[Operation, ...]:
        """All ops that the plan names must be copied."""
        return cast("Plan", self._translated(plan)).rewrite()

    def _translated(self, part: object) -> object:
        if isinstance(part, Operation):
            return self.twins.get(part) or self._foreign(part, part)
        if isinstance(part, SSAValue):
            return self.values.get(part) or self._foreign(part, part.owner)
        if isinstance(part, Index):
            for value in part.values():
                self._translated(value)
            return part.renamed(self.values)
        if part is None or isinstance(part, int | float | str | type | Attribute):
            return part
        if isinstance(part, tuple | list):
            old = cast("Collection[object]", part)
            new = [self._translated(element) for element in old]
            return new if isinstance(part, list) else tuple(new)
        if isinstance(part, Mapping):
            items = cast("Mapping[object, object]", part).items()
            return {self._translated(key): self._translated(value) for key, value in items}
        if is_dataclass(part) and not isinstance(part, type):
            changed: dict[str, object] = {}
            for field in fields(part):
                value: object = getattr(part, field.name)
                if (new_value := self._translated(value)) is not value:
                    changed[field.name] = new_value
            return replace(part, **changed) if changed else part
        if isinstance(part, LayoutMap):
            return part.renamed(self.values)
        raise InternalError(f"a plan holds a {type(part).__name__}")

    def _foreign(self, part: object, place: Operation | Block) -> object:
        parent = place if isinstance(place, Operation) else place.parent_op()
        if parent is not None and self.original.is_ancestor(parent):
            raise InternalError("a plan names a part of the function that is not in the copy")
        return part


def operations_named(part: object) -> Iterator[Operation]:
    if isinstance(part, Operation):
        yield part
    elif isinstance(part, OpResult):
        yield part.op
    elif isinstance(part, Index | tuple | list):
        for element in part.values() if isinstance(part, Index) else cast("Collection[object]", part):
            yield from operations_named(element)
    elif is_dataclass(part) and not isinstance(part, SSAValue | Attribute | type):
        for field in fields(part):
            yield from operations_named(getattr(part, field.name))


class Originals:
    def __init__(self, copy: FunctionCopy) -> None:
        self._operations = copy.originals
        self._values = {new: old for old, new in copy.values.items()}
        self._same: dict[Operation, bool] = {copy.function: True}

    def has_type(self, value: SSAValue) -> bool:
        original = self._values.get(value)
        return original is not None and original.type == value.type

    def is_same(self, op: Operation) -> bool:
        """Loops, blocks and operands are as in the original; stored values are ignored."""
        known = self._same.get(op)
        if known is None:
            known = self._same[op] = self._compare(op)
        return known

    def _compare(self, op: Operation) -> bool:
        original, parent = self._operations.get(op), op.parent_op()
        if original is None or parent is None:
            return False
        if op.properties != original.properties or op.attributes != original.attributes:
            return False
        if self._operations.get(parent) is not original.parent_op() or not self.is_same(parent):
            return False
        if len(parent.regions) > 1 and _place_of_region(op) != _place_of_region(original):
            return False
        first = 1 if type(op) is memref.StoreOp else 0
        values, old_values = op.operands[first:], original.operands[first:]
        return len(values) == len(old_values) and all(
            self._values.get(new) is old and (type(new) is not OpResult or self.is_same(new.op))
            for new, old in zip(values, old_values, strict=True)
        )


def _place_of_region(op: Operation) -> int:
    region, parent = op.parent_region(), op.parent_op()
    return -1 if region is None or parent is None else parent.get_region_index(region)


def copy_of_nests(function: FuncOp, kept: Collection[Operation]) -> FunctionCopy:
    """Nests that are not `kept`, and ops that only these use, are omitted."""
    (body,) = function.body.blocks
    chosen = {op: None for op in body.ops if op in kept or not isinstance(op, ForOp | memref.AllocOp | ConstantOp)}
    used = {value for op in chosen for inner in operations_in(op) for value in inner.operands}
    for kind in (memref.AllocOp, ConstantOp):
        more = [op for op in body.ops if isinstance(op, kind) and op.results[0] in used]
        chosen.update(dict.fromkeys(more))
        used.update(value for op in more for value in op.operands)
    values: dict[SSAValue, SSAValue] = {}
    block = Block(arg_types=[argument.type for argument in body.args])
    for old, new in zip(body.args, block.args, strict=True):
        values[old], new.name_hint = new, old.name_hint
    copy = FuncOp(function.sym_name.data, function.function_type, Region(block), arg_attrs=function.arg_attrs)
    copy.attributes = dict(function.attributes)
    twins: dict[Operation, Operation] = {function: copy}
    for op in body.ops:
        if op in chosen:
            twin = copy_of(op, values)
            block.add_op(twin)
            twins.update(zip(operations_in(op), operations_in(twin), strict=True))
    ModuleOp([copy, *declared_callees(copy, function)])
    return FunctionCopy(function, copy, twins, values)


KEEPS_INDEPENDENCE = "loops that run in parallel stay independent"


class RecheckedPrimitive(Primitive):
    """A primitive whose last check, `KEEPS_INDEPENDENCE`, is on the rewritten IR."""

    @abstractmethod
    def draft(self) -> Plan:
        """`plan()` without that check."""

    def plan(self) -> Plan:
        return self.checked_on_copy(self.draft())

    def checked_on_copy(self, plan: Plan) -> Plan:
        operations = list(operations_named(self))
        function = function_of(operations[0])
        concerned = _with_neighbours(function, operations)
        if any(runs_in_parallel(op) for nest in concerned for op in operations_in(nest)):
            named = [op for op in operations_named(plan) if function.is_ancestor(op)]
            concerned |= {child_towards(function, op) for op in named}
            self._check_copy(plan, copy_of_nests(function, concerned))
        return plan

    def _check_copy(self, drafted: Plan, copy: FunctionCopy) -> None:
        before = users_of_buffers(copy.function)
        copy.apply(drafted)
        changed = changed_buffers(before, copy)
        for op, found in _parallel_loops(copy.function, changed):
            loop = copy.originals.get(op)
            inits = axis_of(op) not in THREAD_AXES  # threads may reduce together, as `bind` allows
            together = axis_of(op) in (*THREAD_AXES, *BLOCK_AXES) or reduces_in_lanes(op)
            reductions = not together
            consequence = f"and {operation_text(op)} is {op.kind.data.value}"
            violation = dependent_iterations(op, consequence, reductions=reductions, inits=inits, found=found)
            if violation is None:
                continue
            if (
                isinstance(loop, ForOp)
                and dependent_iterations(loop, "", reductions=reductions, inits=inits) is not None
            ):
                continue  # not a new dependence
            legal = violation.legal or f"make {operation_text(op)} {op.kind.data.value} afterwards"
            requirement = self.requirements().index(KEEPS_INDEPENDENCE) + 1
            self.refuse(requirement, replace(violation, legal=legal), loop or next(operations_named(self)), "")


def _parallel_loops(function: FuncOp, buffers: Collection[SSAValue] | None) -> Iterator[tuple[ForOp, list[Access]]]:
    for nest in function.body.block.ops:
        loops = [op for op in operations_in(nest) if isinstance(op, ForOp) and runs_in_parallel(op)]
        found = accesses(nest) if loops and buffers != set() else []
        changed = [access for access in found if buffers is None or access.buffer in buffers]
        for loop in loops:
            if inside := [access for access in changed if loop in access.loops]:
                yield loop, inside


def _with_neighbours(function: FuncOp, operations: Iterable[Operation]) -> set[Operation]:
    """Top-level ops around `operations`, and those that share a buffer with one. Others (a function may have thousands)
    do not change and are not copied."""
    own = {child_towards(function, op) for op in operations}
    buffers = {v for nest in own for op in operations_in(nest) for v in op.operands if isinstance(v.type, MemRefType)}
    found, pending = set(own), list(with_overlapping(buffers))
    while pending:
        for use in pending.pop().uses:
            user = child_towards(function, use.operation)
            if user not in found:
                found.add(user)
                pending.extend(result for result in user.results if isinstance(result.type, MemRefType))
    return found


def runs_in_parallel(op: Operation) -> bool:
    return isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)


# Buffers that a rewrite affects. Accesses of other buffers are the same as before.


def users_of_buffers(function: FuncOp) -> dict[SSAValue, list[Operation]] | None:
    """None if an op may touch other buffers than its operands."""
    users: dict[SSAValue, list[Operation]] = {}
    for op in operations_in(function):
        if type(op) is not memref.LoadOp and type(op) is not memref.StoreOp and effects_of(op).reads_all:
            return None
        for operand in op.operands:
            if type(operand.type) is MemRefType:
                users.setdefault(underlying(operand), []).append(op)
    return users


def changed_buffers(before: Mapping[SSAValue, list[Operation]] | None, copy: FunctionCopy) -> set[SSAValue] | None:
    """Buffers with a changed access, or changed loops around one; None for all."""
    after = users_of_buffers(copy.function)
    if before is None or after is None:
        return None
    originals = Originals(copy)
    changed = with_overlapping(
        buffer
        for buffer, users in after.items()
        if users != before.get(buffer) or not originals.has_type(buffer) or not all(map(originals.is_same, users))
    )
    blocks = dict.fromkeys(parent for buffer in changed for user in after.get(buffer, ()) for parent in ancestors(user))
    for block in blocks:
        if isinstance(block, BlockOp) and (original := copy.originals.get(block)) is not None:
            written = buffers_written(block)
            # A question about one accumulator may depend on the whole block.
            if len(written) > 1 or combines_freely(block) != combines_freely(cast("BlockOp", original)):
                changed.update(written)
    return changed
