"""Reductions: blocks whose init starts each element that their updates combine into.

A `tir.init` and the updates of its block may access separate elements. Only if each update reads an element that the
init of its instance stores to, the init may run earlier, for several instances at once, or in copies of the
accumulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects import memref
from xdsl.ir import SSAValue

from weft.analysis.accesses import (
    Access,
    Conditions,
    Domain,
    accesses_of_instance,
    domain_of,
    is_iterator,
    is_symbol,
)
from weft.analysis.block_scopes import (
    buffers_loaded,
    load_elsewhere,
    reduced_store_indices,
    why_named_twice,
    why_not_sole_writer,
    why_opaque,
    why_overlapping,
)
from weft.analysis.index import Index
from weft.analysis.questions import Missed, Question, places, point_text
from weft.analysis.sets import NotProved, Point, Variable, smallest_point, within_budget
from weft.dialects.aliasing import buffer_name
from weft.dialects.effects import touches_memory, underlying
from weft.dialects.tir import BlockOp, InitOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.traversal import operations_in
from weft.support.errors import Violation

if TYPE_CHECKING:
    import islpy as isl


def why_not_reduction(block: BlockOp) -> Violation | str | None:
    """A *reduction* has an init that starts all elements that it combines into, which depend on spatial iterators
    only; it reads no other elements of these or overlapping buffers, and contains no opaque op."""
    name = f'block "{block.label}"'
    if block.init is None:
        return f"{name} has no init"
    if any(reduced_store_indices(block)):
        return f"{name} stores to a place that depends on a reduce iterator"
    opaque = why_opaque(block, name) or why_named_twice(block) or why_overlapping(block)
    if opaque is not None:
        return opaque
    elsewhere = load_elsewhere(block)
    if elsewhere is not None:
        when = "in its init" if block.init.is_ancestor(elsewhere) else "at another place than it combines into"
        return f"{name} reads {elsewhere.memref.name_hint} {when}"
    return why_not_sole_writer(block, reads_own_output=True) or why_not_started(block)


def why_reads_earlier(block: BlockOp, buffer: SSAValue) -> Violation | str | None:
    elsewhere = None if block.init is None else load_elsewhere(block)
    if (block.init is None and buffer in buffers_loaded(block)) or (elsewhere and elsewhere.memref is buffer):
        return f"it reads {buffer_name(buffer)} as it was before"
    return why_not_started(block, buffer)


def why_not_started(block: BlockOp, buffer: SSAValue | None = None) -> Violation | None:
    """Explain why updates of an instance may read an element, of a buffer that the block writes (or only of
    `buffer`), that its init does not store to. None also without init.

    Init and updates are compared as functions of the iterators. Elements that the updates of the instance store to
    before reading them need no start.
    """
    init = block.init
    if init is None or _starts_what_it_reads(block, init):
        return None
    found = accesses_of_instance(block)
    written = {access.buffer for access in found if access.is_write}
    starts = [_in_any_step(access, block) for access in found if access.is_write and init.is_ancestor(access.op)]
    earlier = list(starts)
    for access in found:
        if init.is_ancestor(access.op):
            continue
        if access.is_write:
            earlier.append(access)
        elif access.buffer in (written if buffer is None else (buffer,)):
            if any(write.buffer is access.buffer and write.surely_covers(access) for write in earlier):
                continue
            violation = _Start(block, access, [start for start in starts if start.buffer is access.buffer]).missing()
            if violation is not None:
                return violation
    return None


def _starts_what_it_reads(block: BlockOp, init: InitOp) -> bool:
    """Whether the init unconditionally stores at the indices of each load from a stored buffer: a cheap sufficient
    test."""
    started = {_place(op) for op in init.body.block.ops if type(op) is memref.StoreOp}
    stored: set[SSAValue] = set()
    loads: list[memref.LoadOp] = []
    for op in operations_in(block):
        if type(op) is memref.StoreOp:
            stored.add(underlying(op.memref))
        elif type(op) is memref.LoadOp:
            loads.append(op)
        elif touches_memory(op):
            return False
    loads = [op for op in loads if underlying(op.memref) in stored and not init.is_ancestor(op)]
    return all(_place(op) in started for op in loads)


def _place(op: memref.LoadOp | memref.StoreOp) -> tuple[object, ...]:
    return (op.memref, *map(Index.of, op.indices))


def _in_any_step(access: Access, block: BlockOp) -> Access:
    """An access of an init as if it ran in every step, with reduce iterators 0."""
    kinds = zip(block.iter_vars, block.kinds, strict=True)
    first: dict[SSAValue, Index] = {variable: Index({}) for variable, kind in kinds if kind is IterKind.REDUCE}
    indices = None if access.indices is None else tuple(index.substitute(first) for index in access.indices)
    conditions = access.conditions
    inequalities = tuple(index.substitute(first) for index in conditions.inequalities)
    equalities = tuple(zero for index in conditions.equalities if (zero := index.substitute(first)) != Index({}))
    return replace(access, indices=indices, conditions=Conditions(inequalities, equalities, conditions.exact))


@dataclass(frozen=True)
class _Start:
    block: BlockOp
    read: Access
    starts: Sequence[Access]

    def missing(self) -> Violation | None:
        block, buffer = self.block, buffer_name(self.read.buffer)
        unknown = f'block "{block.label}" reads {buffer}, perhaps where its init does not store to'
        if self.read.indices is None:
            return Violation(f"{unknown}: which elements is not known", "not proved")
        try:
            point = self._missing_point()
        except NotProved as error:
            return Violation(f"{unknown}: {error}", "not proved")
        if point is None:
            return None
        legal = f"an init that stores to {buffer}[{', '.join(map(repr, self.read.indices))}]"
        if not all(map(self._is_determined, (self.read, *self.starts))):
            return Violation(f"{unknown}: indices or conditions depend on data", "not proved", {}, legal)
        iterators, outer = (
            {value.name_hint or "?": point[value] for value in values} for values in (block.iter_vars, self._outer)
        )
        given = ", ".join(f"{name} = {number}" for name, number in outer.items())
        instance = f"{f'with {given}: ' if given else ''}instance {point_text(iterators.items())}"
        element = ", ".join(str(point[place]) for place in self._places)
        detail = f'{instance} of block "{block.label}" reads {buffer}[{element}], which its init does not store to'
        if not self._is_run(point):
            return Violation(f"leaving out guards, {detail}", "not proved", {}, legal)
        counterexample = {"symbols": outer, "instance": iterators} if outer else {"instance": iterators}
        return Violation(detail, "refuted", counterexample, legal, lambda: self._happens(point))

    @cached_property
    def _places(self) -> list[Variable]:
        return places(len(self.read.indices or ()))

    @cached_property
    def _outer(self) -> list[SSAValue]:
        indices = [index for access in (self.read, *self.starts) for index in access.expressions]
        indices += map(Index.of, self.block.extents)
        used = (value for index in indices for value in index.values())
        inner = {loop.induction_variable for access in (self.read, *self.starts) for loop in access.loops}
        return list(dict.fromkeys(v for v in used if v not in inner and not self.block.is_ancestor(v.owner)))

    @cached_property
    def _fixed(self) -> list[SSAValue]:
        return [*self._outer, *self.block.iter_vars]

    def _missing_point(self) -> Point | None:
        missing = self._elements(self.read)
        for start in filter(self._is_determined, self.starts):
            missing = _difference(missing, self._elements(start))
        return None if within_budget(missing.is_empty) else smallest_point(missing, [*self._fixed, *self._places])

    def _is_determined(self, access: Access) -> bool:
        if access.indices is None or not access.conditions.exact:
            return False
        own = {*self.block.iter_vars, *(loop.induction_variable for loop in access.loops)}
        values = (value for index in access.expressions for value in index.values())
        return all(value in own or not self.block.is_ancestor(value.owner) for value in values)

    def _elements(self, access: Access) -> isl.Set:
        question = self._question(access)
        question.add_place("", access.indices or ())
        return question.projection([*self._fixed, *self._places])

    def _question(self, place: Access | Domain) -> Question:
        question = Question(own=())
        for value in self._outer:
            question.row(Index.of(value), question.naming(""))  # with the assumptions about it
        for value, extent in zip(self.block.iter_vars, self.block.extents, strict=True):
            question.add_value("", value, extent)
        question.add("", place)
        return question

    def _at(self, question: Question, point: Point) -> Question:
        for value in self._fixed:
            question.equate((Index.of(value), ""), (Index({}, point[value]), ""))
        return question

    def _is_run(self, point: Point) -> bool:
        if not all(is_symbol(value) or is_iterator(value) for value in self._outer):
            return False
        if not self.block.guards:
            return True
        domain = domain_of(self.block)
        question = self._at(self._question(domain), point)
        for binding, value in zip(domain.bindings, self.block.iter_vars, strict=True):
            question.equate((binding, ""), (Index.of(value), ""))
        try:
            return question.counterexample() is not None
        except NotProved:
            return False

    def _happens(self, point: Point) -> bool:
        question = self._at(self._question(self.read), point)
        element = tuple(point[place] for place in self._places)
        for index, at in zip(self.read.indices or (), element, strict=True):
            question.equate((index, ""), (Index({}, at), ""))
        found = question.counterexample()
        stored = tuple(Domain(start.loops, start.indices or (), (), start.conditions) for start in self.starts)
        missed = Missed(element, {value: point[value] for value in self._fixed}, stored)
        return found is not None and found.holds() and missed.holds()


def _difference(points: isl.Set, others: isl.Set) -> isl.Set:
    return within_budget(lambda: points.subtract(others))
