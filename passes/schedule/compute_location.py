"""The checks and the rewrite that compute_at and reverse_compute_at share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product, takewhile
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import Access, Conditions, Domain, domain_of, is_fixed, range_of
from weft.analysis.block_patterns import combines_freely
from weft.analysis.code_motion import actions_in, loops_around_both
from weft.analysis.coverage import late_start, repeated_instance, runs_only
from weft.analysis.dependence import conflict_between, is_temporary
from weft.analysis.footprint import Span, box_of, preimage, source_of
from weft.analysis.index import Atom, Index, exprs_of
from weft.analysis.layout_maps import access_inverse
from weft.analysis.sets import NotProved
from weft.analysis.structure import (
    bindings_of,
    buffers_loaded,
    buffers_written,
    guards_of,
    is_inside,
    loops_around,
    scope_of,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.schedule.dominance import hoist, values_of_block, why_not_dominating
from weft.passes.schedule.loop_nests import IterDomain, erase_empty_loops, loops_over, nest, set_guards
from weft.passes.schedule.primitive import Plan, operation_text
from weft.passes.schedule.requirements import (
    instance_left_out,
    iterator_names,
    missed_by,
    two_iterations,
    why_not_divisible,
)
from weft.passes.schedule.trial_application import MovingPrimitive
from weft.support.errors import Violation


@dataclass(frozen=True)
class IterGuard:
    """A guard over one iterator: `sign * iterator + rest` is not negative, with `rest` fixed in the function."""

    position: int
    sign: int
    rest: Index

    def over(self, bindings: Sequence[Index]) -> tuple[Index, Index]:
        """As `left < right`, for other bindings."""
        index = bindings[self.position]
        return (index, self.rest + 1) if self.sign < 0 else (-self.rest - 1, index)


@dataclass(frozen=True)
class MovePlan(Plan):
    """A block, the loop it goes under, the op in the loop's body it goes before, its iterators there, and guards that
    it keeps besides those that keep iterators in their domain."""

    block: BlockOp
    loop: ForOp
    before: Operation | None
    domains: tuple[IterDomain, ...]
    kept: tuple[IterGuard, ...]
    unit_loops: bool
    """Whether iterators with one value get loops, too."""

    def rewrite(self) -> tuple[Operation, ...]:
        block = self.block
        point = InsertPoint(self.loop.body.block, self.before)
        hoist(values_of_block(block), point)
        old_parent = block.parent_op()
        loops, bindings, guards = loops_over(self.domains, block.extents, self.loop, unit_loops=self.unit_loops)
        block.detach()
        Rewriter.insert_op(nest(loops, [block]), point)
        block.set_bindings(*exprs_of([index.simplified(range_of) for index in bindings]))
        guards.extend(guard.over(bindings) for guard in self.kept)
        set_guards(block, [(left.simplified(range_of), right) for left, right in guards])
        erase_empty_loops(old_parent)
        return ()


def _over_parts(own: Access, block: BlockOp) -> tuple[Access, dict[SSAValue, tuple[SSAValue, Atom]]]:
    """An access that tells only a quotient or remainder of an iterator, over a value that stands for this; and for each
    such value the iterator and its part."""
    if own.indices is None:
        return own, {}
    indices = [index.simplified(range_of) for index in own.indices]
    atoms = dict.fromkeys(atom for index in indices for atom in index.terms)
    known = {v: [atom for atom in atoms if Index({atom: 1}).depends_on([v])] for v in block.iter_vars}
    parts: dict[SSAValue, tuple[SSAValue, Atom]] = {}
    standing: dict[Atom, ForOp] = {}
    for variable, (part, *others) in ((v, found) for v, found in known.items() if found):
        low, high = Index({part: 1}).range(range_of)
        if part is variable or others or source_of(part) is not variable or low is None or low < 0 or high is None:
            continue
        standing[part] = ForOp.around(high + 1, (), variable.name_hint or "v")
        parts[standing[part].induction_variable] = variable, part
    if not parts:
        return own, {}
    over: list[Index] = []
    for index in indices:
        terms = ((standing[a].induction_variable if a in standing else a, factor) for a, factor in index.terms.items())
        over.append(Index(dict(terms), index.constant))
    return replace(own, indices=tuple(over), loops=(*own.loops, *standing.values())), parts


def _own_dimension(variable: SSAValue, indices: Sequence[Index], block: BlockOp) -> int | None:
    """The dimension whose index is an iterator of a block plus what is fixed in an instance of it."""
    for at, index in enumerate(indices):
        if index.coefficient(variable) == 1 and not (index - Index({variable: 1})).depends_on(block.iter_vars):
            return at
    return None


class Move(MovingPrimitive):
    """Base of `compute_at` and `reverse_compute_at`."""

    RECOMPUTES: ClassVar[bool]
    """Whether iterations of the loop may run the same instance again."""

    block: BlockOp
    loop: ForOp
    preserve_unit_loops: Attribute | None
    index: Attribute | None

    @property
    def keeps_unit_loops(self) -> bool:
        return isinstance(given := self.preserve_unit_loops, IntegerAttr) and given.value.data != 0

    def require_scope(self, requirement: int) -> None:
        """The loop is in the scope of the block, and not around it."""
        if scope_of(self.loop) is not scope_of(self.block):
            self.refuse(requirement, "the loop is in another function or block", self.loop)
        if is_inside(self.block, self.loop):
            self.refuse(requirement, "the loop is already around the block", self.loop)
        for loop in loops_around(self.block):
            if loop.kind.data is LoopKind.THREAD_BINDING:
                self.refuse(requirement, f"loop {operation_text(loop)} is bound to a thread axis", loop)

    def instances_at(
        self, requirement: int, own: Access, others: Sequence[Access], *, by_all_threads: bool = False
    ) -> dict[SSAValue, Span | None]:
        """The instances of the block that touch, by `own`, what `others` touch in one iteration of the loop: a span of
        each iterator in the indices of `own`; None where that may be all of it. Iterators of which `own` tells only a
        quotient or remainder take all values with such a one."""
        block = self.block
        if own.indices is None:
            return {}
        own, parts = _over_parts(own, block)
        indices = own.indices or ()
        used = {value for index in indices for value in index.values()}
        extents = [*zip(block.iter_vars, block.extents, strict=True)]
        loops = [(loop.induction_variable, loop.extent) for loop in own.loops]
        domain: dict[SSAValue, Index] = {v: Index.of(e) for v, e in (*extents, *loops) if v in used and e != 1}
        inverse = access_inverse(domain, indices)
        if isinstance(inverse, Violation):
            self.refuse(requirement, inverse, own.op)
        variables = [variable for variable in domain if variable in block.iter_vars or variable in parts]
        # An iterator of one value takes it in iterations where guards let the element be, and in no others.
        units = {v: at for v, e in extents if e == 1 and (at := _own_dimension(v, indices, block)) is not None}
        moved: list[Access] = []
        for other in others:
            if other.indices is None:
                return dict.fromkeys([*variables, *units])
            shifts = [other.indices[at] - indices[at] + Index({v: 1}) for v, at in units.items()]
            moved.append(replace(other, indices=(*inverse.instance(other.indices)[: len(variables)], *shifts)))
        box = box_of(moved, self.loop, by_all_threads=by_all_threads)
        spans = dict(zip([*variables, *units], box, strict=True))
        for value, (variable, part) in parts.items():
            if value in spans:
                span = spans.pop(value)
                spans[variable] = span and preimage(part, span)
        return spans

    def require_block_kind(self, requirement: int) -> None:
        """Complete or reduction blocks can be cut into pieces."""
        self.require(requirement, why_not_divisible(self.block))
        if IterKind.REDUCE in self.block.kinds and not combines_freely(self.block):
            reason = "its reduction would run in another order, and its combiner is not known to be commutative"
            self.refuse(requirement, Violation(reason, "not proved"))

    def kept_guards(self, requirement: int) -> tuple[IterGuard, ...]:
        """The guards of the block that say which iterator values run, where that is not just the domain."""
        block = self.block
        bindings = bindings_of(block)
        kept: list[IterGuard] = []
        for left, right in guards_of(block):
            found = _guard_of_iterator(right - left - 1, bindings)
            if found is None:
                # A guard over several iterators cannot be kept; it need not be when every instance runs.
                self.require(requirement, instance_left_out(block))
            elif found.rest != (Index({}) if found.sign > 0 else Index.of(block.extents[found.position]) - 1):
                kept.append(found)
        return tuple(kept)

    def require_all_instances(self, requirement: int, domains: Sequence[IterDomain]) -> None:
        """Each instance runs in some iteration of the loop. The question leaves out iterators that run over their whole
        domain in each iteration."""
        block = self.block
        values = Block(arg_types=[IndexType()] * len(domains))
        partial = [at for at, domain in enumerate(domains) if isinstance(domain.extent, int)]
        bindings = [domains[at].at(values.args[at]) for at in partial]
        question = Domain(
            (*loops_around(self.loop), self.loop),
            tuple(index.simplified(range_of) for index in bindings),
            tuple(Index.of(block.extents[at]) for at in partial),
            Conditions(),
            tuple((values.args[at], extent) for at in partial if isinstance(extent := domains[at].extent, int)),
        )
        names = iterator_names(block)
        told = missed_by(question, [names[at] for at in partial], lambda text: f"{text} would run in none")
        self.require(requirement, told)

    @contextmanager
    def _domain_afterwards(
        self, domains: Sequence[IterDomain], kept: Sequence[IterGuard]
    ) -> Generator[tuple[Domain, list[ForOp]]]:
        """The domain of the block at its new place, and the new loops there, which are erased afterwards."""
        new, bindings, guards = loops_over(domains, self.block.extents, self.block)
        room = [right - left - 1 for left, right in (*guards, *(guard.over(bindings) for guard in kept))]
        try:
            yield (
                Domain(
                    (*loops_around(self.loop), self.loop, *new),
                    tuple(index.simplified(range_of) for index in bindings),
                    tuple(Index.of(extent) for extent in self.block.extents),
                    Conditions(tuple(index.simplified(range_of) for index in room)),
                ),
                new,
            )
        finally:
            for loop in new:
                loop.erase()

    def loops_kept(self, domains: Sequence[IterDomain], kept: Sequence[IterGuard]) -> list[ForOp]:
        """Of the loops around the block and its new place, outermost first, those in whose iterations it runs the same
        instances before and after: nothing that it passes there is in another iteration.

        Of a block that writes temporaries only, fewer instances may run afterwards: what nobody reads is not missed.
        """
        shared = loops_around_both(self.block, self.loop)
        before = domain_of(self.block)
        fewer = all(is_temporary(buffer) for buffer in buffers_written(self.block)) and self.RECOMPUTES
        with self._domain_afterwards(domains, kept) as (after, _):
            for count in range(len(shared), 0, -1):
                try:
                    if runs_only(after, before, shared[:count]) and (fewer or runs_only(before, after, shared[:count])):
                        return shared[:count]
                except NotProved:
                    continue
        return []

    def former_only(
        self, requirement: int, domains: Sequence[IterDomain], kept: Sequence[IterGuard]
    ) -> tuple[IterGuard, ...]:
        """`kept`, and guards by which no instance of a writer of temporaries runs that did not run before: what it
        would read is not written, perhaps. Other blocks run all of their instances."""
        block = self.block
        if not all(is_temporary(buffer) for buffer in buffers_written(block)) or self._runs_former(domains, kept):
            return tuple(kept)
        bounds: list[IterGuard] = []
        for at, (index, extent) in enumerate(zip(domain_of(block).bindings, block.extents, strict=True)):
            low, high = index.range(range_of)
            if low is not None and low > 0:
                bounds.append(IterGuard(at, 1, Index({}, -low)))
            if high is not None and not (isinstance(extent, int) and high >= extent - 1):
                bounds.append(IterGuard(at, -1, Index({}, high)))
        if not bounds or not self._runs_former(domains, (*kept, *bounds)):
            reason = Violation("it would also run instances that it leaves out where it is now", "not proved")
            self.refuse(requirement, reason)
        return (*kept, *bounds)

    def _runs_former(self, domains: Sequence[IterDomain], kept: Sequence[IterGuard]) -> bool:
        """Whether only instances that ran before the move run afterwards, as far as is proved."""
        if instance_left_out(self.block) is None:
            return True
        with self._domain_afterwards(domains, kept) as (after, _):
            try:
                return runs_only(after, domain_of(self.block), ())
            except NotProved:
                return False

    def require_order(
        self, requirement: int, earlier: Sequence[Access], later: Sequence[Access], kept: Sequence[ForOp]
    ) -> None:
        """No instance of `earlier` is before one of `later` that touches the same element, one of them writing, in the
        loops around the block and its new place: afterwards these run the other way round. What is in one iteration of
        the loops that are `kept` stays in order."""
        shared = loops_around_both(self.block, self.loop)
        for first, second in product(earlier, later):
            if first.buffer is not second.buffer or not (first.is_write or second.is_write):
                continue
            for at, loop in list(enumerate(shared))[len(kept) :]:
                with self.deciding(requirement, first.op):
                    found = conflict_between(first, second, shared[:at], lambda order, loop=loop: order.earlier(loop))
                if found is not None:
                    self.refuse(requirement, found.violation("and would change places"), first.op)

    def require_once(self, requirement: int, domains: Sequence[IterDomain], kept: Sequence[IterGuard]) -> None:
        """A block that updates what it reads runs each instance once, after the last start of its accumulation."""
        block = self.block
        if set(buffers_written(block)).isdisjoint(buffers_loaded(block)):
            return
        with self._domain_afterwards(domains, kept) as (question, new):
            with self.deciding(requirement):
                repeated = repeated_instance(question, self._restarting_loops(question))
            if repeated is None:
                return
            outside = [loop for loop in question.loops if loop not in new]
            consequence = "would both run one instance, which updates what it reads"
            told = two_iterations(repeated, outside, lambda one, other: f"iterations {one} and {other} {consequence}")
            self.refuse(requirement, told)

    def require_start_first(self, requirement: int, domains: Sequence[IterDomain], kept: Sequence[IterGuard]) -> None:
        """The instance that starts an accumulation, whose reduce iterators are 0, runs before the others of it."""
        block = self.block
        steps = [at for at, kind in enumerate(block.kinds) if kind is IterKind.REDUCE]
        if block.init is None or not steps:
            return
        with self._domain_afterwards(domains, kept) as (question, new):
            restarting = self._restarting_loops(question)
            with self.deciding(requirement):
                found = late_start(question, steps, restarting)
            if found is None:
                return
            outside = [loop for loop in question.loops if loop not in new]
            roles = ("updating", "starting")
            told = two_iterations(
                found,
                outside,
                lambda updating, starting: (
                    f"iteration {updating} would update an element that iteration {starting} starts"
                ),
                roles,
            )
            self.refuse(requirement, told)

    def _restarting_loops(self, domain: Domain) -> list[ForOp]:
        """The outer loops each of whose iterations starts the accumulations of the block again."""
        steps = zip(domain.bindings, self.block.kinds, strict=True)
        reduced = {v for index, kind in steps if kind is IterKind.REDUCE for v in index.sources()}
        return list(takewhile(lambda loop: self.block.init and loop.induction_variable not in reduced, domain.loops))

    def place(
        self,
        wanted: int,
        visible: int,
        domains: Sequence[IterDomain],
        *,
        behind: Operation | None = None,
        last: Operation | None = None,
    ) -> Operation | None:
        """The op that the block goes before, None for the end: `index` says which of the places in the loop's body that
        are behind one op, or up to another. `wanted` and `visible` are the requirements of `index`, and that what the
        block uses is known there."""
        block = self.block
        used = values_of_block(block)
        for domain in domains:
            used.extend(domain.lower.values())
            if not isinstance(domain.extent, int):
                used.append(domain.extent)
        acting = [op for op in self.loop.body.block.ops if op is behind or op is last or actions_in(op)]
        low = 0 if behind is None else acting.index(behind) + 1
        high = len(acting) if last is None else acting.index(last)
        places = {at: InsertPoint(self.loop.body.block, before) for at, before in enumerate([*acting[low:], None], low)}
        at = self.index.value.data if isinstance(self.index, IntegerAttr) else -1
        if at == -2:
            at = next((n for n in range(low, high) if why_not_dominating(used, places[n]) is None), high)
        elif at == -1:
            at = high
        if not low <= at <= high:
            legal = f"-1, -2 or {low}{f' .. {high}' if low < high else ''}"
            self.refuse(wanted, Violation(f"{at} is not", legal=legal), self.loop)
        self.require(visible, why_not_dominating(used, places[at]))
        return places[at].insert_before


def _guard_of_iterator(room: Index, bindings: Sequence[Index]) -> IterGuard | None:
    """`room >= 0` as a guard over one of the iterators with these bindings."""
    for position, index in enumerate(bindings):
        for sign in (-1, 1):
            rest = room - index * sign
            if not index.is_constant and all(is_fixed(value) for value in rest.values()):
                return IterGuard(position, sign, rest)
    return None
