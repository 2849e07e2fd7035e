"""Primitives that move blocks or loops: what they do is tried on a copy when loops run in parallel there.

`parallel` and `vectorize` prove that the iterations of a loop are independent, as the program is then. A block that
later comes under such a loop, or a loop that changes places with it, may undo that.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields, replace
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.independence import dependent_iterations
from weft.analysis.structure import child_towards, function_of
from weft.analysis.threads import axis_of
from weft.dialects.effects import declared_callees
from weft.dialects.low_kernel import BLOCK_AXES, THREAD_AXES
from weft.dialects.tir import ForOp
from weft.dialects.tir_kinds import LoopKind
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.schedule.loop_kinds import reduces_in_lanes
from weft.passes.schedule.primitive import Plan, PlanPattern, Primitive
from weft.support.errors import InternalError, Violation

KEEPS_INDEPENDENCE = "loops that run in parallel stay independent"


class MovingPrimitive(Primitive):
    """A primitive with one more requirement, `INDEPENDENCE`, that is asked of the result.

    Subclasses write `draft()`, which is `plan()` without that requirement.
    """

    INDEPENDENCE: ClassVar[int]

    @abstractmethod
    def draft(self) -> Plan:
        """Check every other requirement, and say what to do."""

    def plan(self) -> Plan:
        plan = self.draft()
        function = function_of(plan.anchor)
        concerned = _with_neighbours(function, [plan.anchor, *self._operations()])
        if any(_runs_in_parallel(op) for nest in concerned for op in operations_in(nest)):
            self._rehearse(function, plan.anchor, concerned)
        return plan

    def _operations(self) -> Iterator[Operation]:
        """The loops and blocks that the primitive works on."""
        for field in fields(self):
            value: object = getattr(self, field.name)
            parts: tuple[object, ...] = value if isinstance(value, tuple) else (value,)  # pyright: ignore[reportUnknownVariableType]
            yield from (part for part in parts if isinstance(part, Operation))

    def _rehearse(self, function: FuncOp, anchor: Operation, concerned: Collection[Operation]) -> None:
        """Apply the primitive to a copy of the `concerned` nests of the function, and look at the loops there, new ones
        too."""
        copy, twins = _copy_of_nests(function, concerned)
        ModuleOp([copy, *declared_callees(copy, function)])  # in which calls have the effects that they have here
        originals = {twin: original for original, twin in twins.items()}
        arguments: dict[str, object] = {}
        for field in fields(self):
            value: object = getattr(self, field.name)
            arguments[field.name] = (
                tuple(_twin(part, twins) for part in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if isinstance(value, tuple)
                else _twin(value, twins)
            )
        rehearsed: MovingPrimitive = replace(self, **arguments)
        plan = rehearsed.draft()
        PlanPattern(plan).match_and_rewrite(plan.anchor, PatternRewriter(plan.anchor))
        for op in operations_in(copy):
            if not isinstance(op, ForOp) or not _runs_in_parallel(op):
                continue
            loop = originals.get(op)
            violation = _dependent(op)
            if violation is None or (isinstance(loop, ForOp) and _dependent(loop) is not None):
                continue  # or it was so before
            legal = violation.legal or f"make %{op.induction_variable.name_hint} {op.kind.data.value} afterwards"
            self.refuse(self.INDEPENDENCE, replace(violation, legal=legal), loop or anchor)


def _dependent(loop: ForOp) -> Violation | None:
    """Why the iterations of a loop may not run at once, as it says."""
    axis = axis_of(loop)
    together = axis in (*THREAD_AXES, *BLOCK_AXES) or reduces_in_lanes(loop)
    inits = axis not in THREAD_AXES  # threads reduce together, as bind allows
    consequence = f"and %{loop.induction_variable.name_hint} is {loop.kind.data.value}"
    return dependent_iterations(loop, consequence, reductions=not together, inits=inits)


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


def _copy_of_nests(function: FuncOp, kept: Collection[Operation]) -> tuple[FuncOp, dict[Operation, Operation]]:
    """A copy of a function without the other loop nests, and what only they use; the copy of each op."""
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
    copy = FuncOp(function.sym_name.data, function.function_type, Region(block))
    copy.attributes = dict(function.attributes)
    twins: dict[Operation, Operation] = {function: copy}
    for op in body.ops:
        if op in chosen:
            twin = copy_of(op, values)
            block.add_op(twin)
            twins.update(zip(operations_in(op), operations_in(twin), strict=True))
    return copy, twins


def _runs_in_parallel(op: Operation) -> bool:
    return isinstance(op, ForOp) and op.kind.data in (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.THREAD_BINDING)


def _twin(value: object, twins: dict[Operation, Operation]) -> object:
    if not isinstance(value, Operation):
        return value
    if value not in twins:
        raise InternalError(f"{value.name} is not in the function that is copied")
    return twins[value]
