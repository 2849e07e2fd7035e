"""A copy of some nests of a function, and plans translated to it: what a primitive would do is tried there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import TypeVar, cast

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from weft.analysis.index import Index
from weft.analysis.layout_maps import LayoutMap
from weft.dialects.effects import declared_callees
from weft.dialects.tir import ForOp
from weft.dialects.traversal import copy_of, operations_in
from weft.passes.schedule.primitive import Plan

PlanT = TypeVar("PlanT", bound=Plan)


class NotTranslated(Exception):
    """A plan holds what a copy lacks: operations of other nests, or objects that belong to the function as a whole."""


@dataclass(frozen=True)
class FunctionCopy:
    """Some nests of a function, copied, with a module around in which calls have the effects that they have there."""

    original: FuncOp
    function: FuncOp
    twins: Mapping[Operation, Operation]
    """Operation of the original -> its copy."""
    values: Mapping[SSAValue, SSAValue]
    """Value of the original -> its copy."""

    @cached_property
    def originals(self) -> dict[Operation, Operation]:
        """Copied operation -> the original, as it was copied."""
        return {twin: original for original, twin in self.twins.items()}

    def translated(self, plan: PlanT) -> PlanT:
        """A plan for the original as one for the copy. Raises `NotTranslated`."""
        return cast("PlanT", self._translated(plan))

    def apply(self, plan: Plan) -> tuple[Operation, ...]:
        """Carry out a plan for the original on the copy. Raises `NotTranslated`, and has changed nothing then."""
        translated = self.translated(plan)
        return translated.rewrite(PatternRewriter(translated.anchor))

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
        if isinstance(part, LayoutMap) and not part.symbols:
            return part
        raise NotTranslated(type(part).__name__)

    def _foreign(self, part: object, place: Operation | Block) -> object:
        """A part of a plan of which there is no copy, as the function has none of it."""
        parent: Operation | None = place if isinstance(place, Operation) else place.parent_op()
        while parent is not None:
            if parent is self.original:
                raise NotTranslated("a part of the function that is not in the copy")
            parent = parent.parent_op()
        return part


class Originals:
    """Compares a copy that was changed with the original."""

    def __init__(self, copy: FunctionCopy) -> None:
        self._operations = copy.originals
        self._values = {new: old for old, new in copy.values.items()}
        self._same: dict[Operation, bool] = {copy.function: True}

    def has_type(self, value: SSAValue) -> bool:
        """Whether a value is a copy, of the type of the original."""
        original = self._values.get(value)
        return original is not None and original.type == value.type

    def is_same(self, op: Operation) -> bool:
        """Whether an operation stands in the same loops and blocks as its original, with operands that are computed in
        the same way; what a store stores does not count."""
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
    """A copy of a function without the loop nests that are not `kept`, and without what only these use."""
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
    ModuleOp([copy, *declared_callees(copy, function)])
    return FunctionCopy(function, copy, twins, values)
