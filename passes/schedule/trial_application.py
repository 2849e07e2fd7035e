"""Trial application: in functions with parallel loops, a primitive that moves blocks or loops is first applied to a
copy, and rejected if such a loop gains a dependence.

`parallel` and `vectorize` prove that the iterations of a loop are independent, as the program is then. A block that
later comes under such a loop, or a loop that changes places with it, may undo that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.accesses import Access, accesses
from weft.analysis.combiners import combines_freely
from weft.analysis.independence import dependent_iterations
from weft.analysis.structure import ancestors, buffers_written, child_towards, function_of
from weft.analysis.threads import axis_of
from weft.dialects.effects import effects_of, underlying
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import operations_in
from weft.passes.schedule.function_copies import FunctionCopy, NotTranslated, Originals, copy_of_nests
from weft.passes.schedule.loop_kinds import reduces_in_lanes
from weft.passes.schedule.primitive import Plan, Primitive
from weft.support.errors import InternalError

KEEPS_INDEPENDENCE = "loops that run in parallel stay independent"


class MovingPrimitive(Primitive):
    """A primitive with one requirement, `KEEPS_INDEPENDENCE`, on the result of its rewrite.

    Subclasses write `draft()`, which is `plan()` without that requirement.
    """

    @abstractmethod
    def draft(self) -> Plan:
        """Check every other requirement, and say what to do."""

    def plan(self) -> Plan:
        return self.checked_on_copy(self.draft())

    def checked_on_copy(self, plan: Plan) -> Plan:
        """Check that requirement for a plan that meets all others; returns the plan."""
        function = function_of(plan.anchor)
        concerned = _with_neighbours(function, [plan.anchor, *self._operations()])
        if any(runs_in_parallel(op) for nest in concerned for op in operations_in(nest)):
            self._check_copy(plan, copy_of_nests(function, concerned))
        return plan

    def _operations(self) -> Iterator[Operation]:
        """The loops and blocks that the primitive works on."""
        for field in fields(self):
            value: object = getattr(self, field.name)
            parts: tuple[object, ...] = value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportUnknownVariableType]
            yield from (part for part in parts if isinstance(part, Operation))

    def _check_copy(self, drafted: Plan, copy: FunctionCopy) -> None:
        """Apply the primitive to a copy of the function; refuse if a parallel loop of the result has a dependence that
        it did not have before."""
        before = users_of_buffers(copy.function)
        try:
            copy.apply(drafted)
        except NotTranslated:
            plan = self._on_copy(copy).draft()
            plan.rewrite(PatternRewriter(plan.anchor))
        changed = changed_buffers(before, copy)
        for op, found in _parallel_loops(copy.function, changed):
            loop = copy.originals.get(op)
            inits = axis_of(op) not in THREAD_AXES  # threads reduce together, as bind allows
            together = axis_of(op) in (*THREAD_AXES, *BLOCK_AXES) or reduces_in_lanes(op)
            reductions = not together
            consequence = f"and %{op.induction_variable.name_hint} is {op.kind.data.value}"
            violation = dependent_iterations(op, consequence, reductions=reductions, inits=inits, found=found)
            if violation is None:
                continue
            if (
                isinstance(loop, ForOp)
                and dependent_iterations(loop, "", reductions=reductions, inits=inits) is not None
            ):
                continue  # it was so before
            legal = violation.legal or f"make %{op.induction_variable.name_hint} {op.kind.data.value} afterwards"
            requirement = self.requirements().index(KEEPS_INDEPENDENCE) + 1
            self.refuse(requirement, replace(violation, legal=legal), loop or drafted.anchor)

    def _on_copy(self, copy: FunctionCopy) -> MovingPrimitive:
        arguments: dict[str, object] = {}
        for field in fields(self):
            value: object = getattr(self, field.name)
            arguments[field.name] = (
                tuple(_twin(part, copy.twins) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if isinstance(value, tuple)
                else _twin(value, copy.twins)
            )
        return replace(self, **arguments)


def _parallel_loops(function: FuncOp, buffers: Collection[SSAValue] | None) -> Iterator[tuple[ForOp, list[Access]]]:
    """The loops of a function that run in parallel, in order, each with the accesses in it to `buffers` (or to any)."""
    for nest in function.body.block.ops:
        loops = [op for op in operations_in(nest) if isinstance(op, ForOp) and runs_in_parallel(op)]
        found = accesses(nest) if loops and buffers != set() else []
        changed = [access for access in found if buffers is None or access.buffer in buffers]
        for loop in loops:
            if inside := [access for access in changed if loop in access.loops]:
                yield loop, inside


def _with_neighbours(function: FuncOp, operations: Iterable[Operation]) -> set[Operation]:
    """The ops of the body of `function` that hold some of `operations`, and those that use a buffer which one of these
    uses. The other nests stay as they are, and nobody asks about them: a function may have thousands."""
    own = {child_towards(function, op) for op in operations}
    buffers = {v for nest in own for op in operations_in(nest) for v in op.operands if isinstance(v.type, MemRefType)}
    found, pending = set(own), list(buffers)
    while pending:
        for use in pending.pop().uses:
            user = child_towards(function, use.operation)
            if user not in found:
                found.add(user)
                pending.extend(result for result in user.results if isinstance(result.type, MemRefType))
    return found


def runs_in_parallel(op: Operation) -> bool:
    return isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)


def _twin(value: object, twins: Mapping[Operation, Operation]) -> object:
    if not isinstance(value, Operation):
        return value
    if value not in twins:
        raise InternalError(f"{value.name} is not in the function that is copied")
    return twins[value]


# Which buffers does a rewrite concern? Of the others, iterations touch what they touched before.


def users_of_buffers(function: FuncOp) -> dict[SSAValue, list[Operation]] | None:
    """Buffer -> the operations that take it, in order. None where an operation may touch buffers that it does not
    take."""
    users: dict[SSAValue, list[Operation]] = {}
    for op in operations_in(function):
        if type(op) is not memref.LoadOp and type(op) is not memref.StoreOp and effects_of(op).reads_all:
            return None
        for operand in op.operands:
            if type(operand.type) is MemRefType:
                users.setdefault(underlying(operand), []).append(op)
    return users


def changed_buffers(before: Mapping[SSAValue, list[Operation]] | None, copy: FunctionCopy) -> set[SSAValue] | None:
    """The buffers of a copied function of which a rewrite may have changed an access, or the loops around one; None for
    all. `before` holds the users of buffers before the rewrite."""
    after = users_of_buffers(copy.function)
    if before is None or after is None:
        return None
    originals = Originals(copy)
    changed = {
        buffer
        for buffer, users in after.items()
        if users != before.get(buffer) or not originals.has_type(buffer) or not all(map(originals.is_same, users))
    }
    blocks = dict.fromkeys(parent for buffer in changed for user in after[buffer] for parent in ancestors(user))
    for block in blocks:
        if isinstance(block, BlockOp) and (original := copy.originals.get(block)) is not None:
            written = buffers_written(block)
            # A question about one accumulator may be one about the whole block.
            if len(written) > 1 or combines_freely(block) != combines_freely(cast("BlockOp", original)):
                changed.update(written)
    return changed
