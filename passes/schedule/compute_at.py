"""Code motion of producers into loops of consumers, and of consumers into loops of producers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product, takewhile

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.analysis.accesses import (
    Access,
    Conditions,
    Context,
    Domain,
    accesses,
    accesses_in_scope,
    accesses_of_instance,
    domain_of,
    is_fixed,
    range_of,
)
from weft.analysis.block_scopes import (
    bindings_of,
    buffers_loaded,
    buffers_written,
    child_towards,
    guards_of,
    loops_around,
    precedes,
    producers_of,
    scope_of,
)
from weft.analysis.code_motion import actions_in, actions_passed, loops_around_both, passing_conflict
from weft.analysis.coverage import late_start, repeated_instance, runs_only
from weft.analysis.dependence import (
    buffer_name,
    conflict_between,
    is_exact,
    is_temporary,
    may_conflict,
    or_undecided,
    unknown_elements,
)
from weft.analysis.footprint import Span, box_of, hull, preimage, source_of
from weft.analysis.index import Atom, Index, exprs_of
from weft.analysis.layout_maps import access_inverse
from weft.analysis.questions import Counterexample, Question
from weft.analysis.sets import NotProved
from weft.analysis.threads import is_shared
from weft.dialects.tir import AssumeShapeOp, BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.schedule.checks import (
    instance_left_out,
    iterator_names,
    missed_by,
    two_iterations,
    why_not_any_order,
)
from weft.passes.schedule.dominance import hoist, values_of_block, why_not_dominating
from weft.passes.schedule.nest_builders import (
    IterDomain,
    domain_from_span,
    erase_empty_loops,
    full_domain,
    loops_over,
    nest,
    set_guards,
)
from weft.passes.schedule.primitive import Plan, operation_text, owner_text
from weft.passes.schedule.trial_application import RecheckedPrimitive
from weft.support.errors import ScheduleError, Violation


@dataclass(frozen=True)
class IterGuard:
    """`sign * iterator + rest` is not negative, with `rest` fixed in the function."""

    position: int
    sign: int
    rest: Index

    def over(self, bindings: Sequence[Index]) -> tuple[Index, Index]:
        index = bindings[self.position]
        return (index, self.rest + 1) if self.sign < 0 else (-self.rest - 1, index)


@dataclass(frozen=True)
class MovePlan(Plan):
    """`before` is in the body of `loop`; `kept` are guards in addition to those of the domains."""

    block: BlockOp
    loop: ForOp
    before: Operation | None
    domains: tuple[IterDomain, ...]
    kept: tuple[IterGuard, ...]
    unit_loops: bool

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
    """Rewrite an access over new values for quotients or remainders, if they are the only use of an iterator. Maps each
    new value to its iterator and part."""
    if own.indices is None:
        return own, {}
    indices = [index.simplified(range_of) for index in own.indices]
    atoms = dict.fromkeys(atom for index in indices for atom in index.terms)
    known = {v: [atom for atom in atoms if Index({atom: 1}).depends_on([v])] for v in block.iter_vars}
    parts: dict[SSAValue, tuple[SSAValue, Atom]] = {}
    replaced_by: dict[Atom, ForOp] = {}
    for variable, (part, *others) in ((v, found) for v, found in known.items() if found):
        low, high = Index({part: 1}).range(range_of)
        if part is variable or others or source_of(part) is not variable or low is None or low < 0 or high is None:
            continue
        replaced_by[part] = ForOp.empty(high + 1, variable.name_hint or "v")
        parts[replaced_by[part].induction_variable] = variable, part
    if not parts:
        return own, {}
    over: list[Index] = []
    for index in indices:
        terms = (
            (replaced_by[a].induction_variable if a in replaced_by else a, factor) for a, factor in index.terms.items()
        )
        over.append(Index(dict(terms), index.constant))
    return replace(own, indices=tuple(over), loops=(*own.loops, *replaced_by.values())), parts


def _own_dimension(variable: SSAValue, indices: Sequence[Index], block: BlockOp) -> int | None:
    for at, index in enumerate(indices):
        if index.coefficient(variable) == 1 and not (index - Index({variable: 1})).depends_on(block.iter_vars):
            return at
    return None


@dataclass(frozen=True)
class BlockMotion(RecheckedPrimitive):
    block: BlockOp
    loop: ForOp
    preserve_unit_loops: Attribute | None = None
    index: Attribute | None = None

    @property
    def writes_temporaries(self) -> bool:
        return all(is_temporary(buffer) for buffer in buffers_written(self.block))

    def require_scope(self, requirement: int) -> None:
        if scope_of(self.loop) is not scope_of(self.block):
            self.refuse(requirement, "the loop is in another function or block", self.loop)
        if self.loop.is_ancestor(self.block):
            self.refuse(requirement, "the loop is already around the block", self.loop)
        for loop in loops_around(self.block):
            if loop.kind.data is LoopKind.THREAD_BINDING:
                self.refuse(requirement, f"loop {operation_text(loop)} is bound to a thread axis", loop)

    def instances_at(
        self, requirement: int, own: Access, others: Sequence[Access], *, by_all_threads: bool = False
    ) -> dict[SSAValue, Span | None]:
        """A span for each iterator in the indices of `own`, None for all values: the instances that touch, by `own`,
        what `others` touch in one iteration of the loop. The span of a quotient or remainder contains all values with
        such a part."""
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
        # A unit iterator runs only in the iterations whose guards admit the element.
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

    def kept_guards(self, requirement: int) -> tuple[IterGuard, ...]:
        """Guards that restrict iterators to less than their domains."""
        block = self.block
        bindings = bindings_of(block)
        kept: list[IterGuard] = []
        for left, right in guards_of(block):
            found = _guard_of_iterator(right - left - 1, bindings)
            if found is None:
                # A guard over several iterators cannot be kept, and is not needed if every instance runs.
                self.require(requirement, instance_left_out(block))
            elif found.rest != (Index({}) if found.sign > 0 else Index.of(block.extents[found.position]) - 1):
                kept.append(found)
        return tuple(kept)

    def require_all_instances(self, requirement: int, domains: Sequence[IterDomain]) -> None:
        """Iterators that cover their domain in each iteration are not in question."""
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

    def loops_kept(
        self, domains: Sequence[IterDomain], kept: Sequence[IterGuard], *, fewer: bool = False
    ) -> list[ForOp]:
        """The outermost shared loops whose iterations each run the same instances (with `fewer`, a subset) after the
        move. No conflict crosses them."""
        shared = loops_around_both(self.block, self.loop)
        before = domain_of(self.block)
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
        """Add guards so that a writer of temporaries runs no new instances, which might read unwritten elements."""
        block = self.block
        if not self.writes_temporaries or self._runs_former(domains, kept):
            return tuple(kept)
        bounds: list[IterGuard] = []
        for at, (index, extent) in enumerate(zip(domain_of(block).bindings, block.extents, strict=True)):
            low, high = index.range(range_of)
            if low is not None and low > 0:
                bounds.append(IterGuard(at, 1, Index({}, -low)))
            if high is not None and not (isinstance(extent, int) and high >= extent - 1):
                bounds.append(IterGuard(at, -1, Index({}, high)))
        if not bounds or not self._runs_former(domains, (*kept, *bounds)):
            reason = Violation("it would also run instances that it does not run at its present place", "not proved")
            self.refuse(requirement, reason)
        return (*kept, *bounds)

    def _runs_former(self, domains: Sequence[IterDomain], kept: Sequence[IterGuard]) -> bool:
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
        """The move swaps instances of `earlier` and `later`, except in different iterations of the `kept` loops: refuse
        conflicts."""
        shared = loops_around_both(self.block, self.loop)
        for first, second in product(earlier, later):
            if not may_conflict(first, second):
                continue
            for at, loop in list(enumerate(shared))[len(kept) :]:
                with self.deciding(requirement, first.op):
                    found = conflict_between(first, second, shared[:at], earlier=[loop])
                if found is not None:
                    self.refuse(requirement, found.violation("and would change places"), first.op)

    def require_updates_in_order(
        self, requirement: int, domains: Sequence[IterDomain], kept: Sequence[IterGuard]
    ) -> None:
        """A block that updates what it reads must run each instance once after its accumulation restarts, the starting
        one (all reduce iterators 0) first."""
        block = self.block
        updates = not set(buffers_written(block)).isdisjoint(buffers_loaded(block))
        steps = [at for at, kind in enumerate(block.kinds) if kind is IterKind.REDUCE and block.init is not None]
        with self._domain_afterwards(domains, kept) as (question, new):
            restarting = self._restarting_loops(question)
            outside = [loop for loop in question.loops if loop not in new]
            with self.deciding(requirement):
                repeated = repeated_instance(question, restarting) if updates else None
            if repeated is not None:
                consequence = "would both run one instance, which updates what it reads"
                told = two_iterations(repeated, outside, lambda a, b: f"iterations {a} and {b} {consequence}")
                self.refuse(requirement, told)
            with self.deciding(requirement):
                late = late_start(question, steps, restarting) if steps else None
            if late is not None:
                roles, consequence = ("updating", "starting"), "would update an element that iteration"
                told = two_iterations(late, outside, lambda a, b: f"iteration {a} {consequence} {b} starts", roles)
                self.refuse(requirement, told)

    def _restarting_loops(self, domain: Domain) -> list[ForOp]:
        steps = zip(domain.bindings, self.block.kinds, strict=True)
        reduced = {v for index, kind in steps if kind is IterKind.REDUCE for v in index.sources()}
        return list(takewhile(lambda loop: self.block.init and loop.induction_variable not in reduced, domain.loops))

    def plan_at_index(
        self,
        others: Sequence[Operation],
        requirements: tuple[int, int],
        domains: Sequence[IterDomain],
        kept: Sequence[IterGuard],
        *,
        after_others: bool,
    ) -> MovePlan:
        """`index` is a position in the loop, after or before all `others`. `requirements` are those of the index and of
        dominance."""
        wanted, visible = requirements
        block, body = self.block, self.loop.body.block
        used = values_of_block(block)
        for domain in domains:
            used.extend(domain.lower.values())
            if not isinstance(domain.extent, int):
                used.append(domain.extent)
        holders = {child_towards(self.loop, other) for other in others}
        acting = [op for op in body.ops if op in holders or actions_in(op)]
        taken = [at for at, op in enumerate(acting) if op in holders]
        low, high = (taken[-1] + 1, len(acting)) if after_others else (0, taken[0])
        places = {at: InsertPoint(body, before) for at, before in enumerate([*acting[low:], None], low)}
        at = self.index.value.data if isinstance(self.index, IntegerAttr) else -1
        if at == -2:
            at = next((n for n in range(low, high) if why_not_dominating(used, places[n]) is None), high)
        elif at == -1:
            at = high
        if not low <= at <= high:
            legal = f"-1, -2 or {low}{f' .. {high}' if low < high else ''}"
            self.refuse(wanted, Violation(f"{at} is not", legal=legal), self.loop)
        self.require(visible, why_not_dominating(used, places[at]))
        unit_loops = isinstance(given := self.preserve_unit_loops, IntegerAttr) and given.value.data != 0
        return MovePlan(block, self.loop, places[at].insert_before, tuple(domains), tuple(kept), unit_loops)


def _guard_of_iterator(room: Index, bindings: Sequence[Index]) -> IterGuard | None:
    for position, index in enumerate(bindings):
        for sign in (-1, 1):
            rest = room - index * sign
            if not index.is_constant and all(is_fixed(value) for value in rest.values()):
                return IterGuard(position, sign, rest)
    return None


@dataclass(frozen=True)
class ComputeAt(BlockMotion):
    """Move a producer into a loop of its consumers, so that each iteration computes only what it reads.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction: the combiner may run in any order
    3. the block writes temporaries only, or each of its instances still runs
    4. every consumer is inside the loop: no block reads what it writes elsewhere, or before it
    5. the indices of its stores can be inverted: each element is stored by one instance
    6. no op that it moves across writes what it reads or writes
    7. its operands dominate the insertion point
    8. loops that run in parallel stay independent
    9. the index is a place before every consumer: `index` is -1, -2 or the position of an op in the loop that no
       consumer precedes

    The block is inserted right before its first consumer (`index` -1), before the n-th loop, block or other op on
    memory in the loop, or at the first place that its operands dominate (-2). New loops follow the order of its
    iterators, without iterators of one value unless `preserve_unit_loops` is given. They have the stride of the reads,
    and iterate over windows with gaps. In a loop over threads, or at one, a block that writes a buffer of scope
    "shared" computes what all threads of a thread block read: `bind` can then distribute the new loops over the same
    threads.

    ```mlir
    tir.for %i in 128 { tir.block "B" ... = [%i] {...} }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] and B[%vi + 1] } }
    // compute_at "B", %i
    tir.for %i in 128 {
      tir.for %ax0 in 2 { tir.block "B" ... = [%i + %ax0] where [%i + %ax0] < [128] {...} }
      tir.block "C" ... = [%i] {...} }
    ```
    """

    def draft(self) -> MovePlan:
        block = self.block
        self.require_scope(1)
        self.require(2, why_not_any_order(block))
        kept = self.kept_guards(2)
        users = self._users()
        domains = self._domains()
        private = self.writes_temporaries
        if not private:
            self.require_all_instances(3, domains)
        kept = self.former_only(2, domains, kept)
        # Without readers elsewhere, instances whose elements are not read can be dropped.
        same = self.loops_kept(domains, kept, fewer=private)
        passed = actions_passed(block, self.loop, same)
        self.require(6, passing_conflict(block, passed, same, flow_to=True))
        if not private:  # no earlier reads
            self.require_order(4, [a for user in users for a in accesses(user)], accesses(block), same)
        # For all ops inside the loop, so that requirement 6 holds for every place before the first user.
        return self.plan_at_index(users, (9, 7), domains, kept, after_others=False)

    def _users(self) -> list[Operation]:
        block = self.block
        users: list[Operation] = []
        for buffer in buffers_written(block):
            for use in buffer.uses:
                user = use.operation
                if block.is_ancestor(user) or isinstance(user, memref.DimOp | AssumeShapeOp):
                    continue
                name = owner_text(user)
                if not self.loop.is_ancestor(user):
                    detail = f"{name} uses {buffer_name(buffer)} and is not inside the loop"
                    self.refuse(4, Violation(detail, legal="a loop around all its consumers"), user)
                if not precedes(block, user):
                    self.refuse(4, f"{name} uses {buffer_name(buffer)} before", user)
                users.append(user)
        if not users:
            self.refuse(4, "no op uses what it writes")
        return users

    def _domains(self) -> tuple[IterDomain, ...]:
        block = self.block
        spans: dict[SSAValue, list[Span | None]] = {}
        under_loop = [a for a in accesses_in_scope(self.loop) if not block.is_ancestor(a.op)]
        for store in accesses_of_instance(block):
            reads = [a for a in under_loop if a.buffer is store.buffer]
            if not store.is_write or not reads:
                continue
            needed = self.instances_at(5, store, reads, by_all_threads=is_shared(store.buffer))
            for variable, span in needed.items():
                spans.setdefault(variable, []).append(span)
        steps = zip(block.iter_vars, block.extents, block.kinds, strict=True)
        return tuple(
            full_domain(extent) if kind is IterKind.REDUCE else domain_from_span(hull(spans.get(v, [])), extent)
            for v, extent, kind in steps
        )


@dataclass(frozen=True)
class ReverseComputeAt(BlockMotion):
    """Move a consumer into a loop of its producers, so that each iteration consumes what it just produced.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction: the combiner may run in any order
    3. every producer is inside the loop: all blocks before it that write what it reads, except sole writers whose nest
       precedes the loop's
    4. the indices of its loads can be inverted, and the producers fill ranges: quotients and remainders of an iterator
       suffice; the range of each iterator or such part is filled, or contained in one that no two iterations share
    5. what an iteration consumes is final: no later iteration writes it
    6. every instance of the block runs in some iteration, updates in one only: an update runs after the instance that
       starts its accumulation
    7. no op that it moves across accesses what it writes, or writes what it reads
    8. its operands dominate the insertion point
    9. loops that run in parallel stay independent
    10. the index is a place after every producer: `index` is -1, -2, the position of an op in the loop that no producer
        follows, or the end

    The block is inserted at the end of the loop (`index` -1), before the n-th loop, block or other op on memory there,
    or at the first place that its operands dominate (-2). New loops are as for `compute_at`.

    ```mlir
    tir.for %i in 32 { tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} } }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] } }
    // reverse_compute_at "C", %i
    tir.for %i in 32 {
      tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} }
      tir.for %ax0 in 4 { tir.block "C" ... = [%i * 4 + %ax0] {...} } }
    ```
    """

    def draft(self) -> MovePlan:
        block = self.block
        self.require_scope(1)
        self.require(2, why_not_any_order(block))
        kept = self.kept_guards(2)
        # A block that later overwrites what this one reads is not a producer; requirement 7 covers it.
        producers = [producer for producer in producers_of(block) if precedes(producer, block)]
        if not producers:
            self.refuse(3, "no block writes what it reads before it")
        producers = [producer for producer in producers if not self._ran_before(producer)]
        for producer in producers:
            if not self.loop.is_ancestor(producer):
                detail = f'block "{producer.label}" writes what it reads and is not inside the loop'
                self.refuse(3, Violation(detail, legal="a loop around all its producers"), producer)
        if not producers:
            self.refuse(3, "all that write what it reads run before the loop")
        domains, doubt = self._domains(producers)
        if doubt is None:
            return self._plan_over(domains, producers, kept)
        try:
            plan = self._plan_over(domains, producers, kept)
            with self._domain_afterwards(plan.domains, plan.kept) as (after, _):
                if repeated_instance(after, ()) is None:
                    return plan
        except (ScheduleError, NotProved):
            pass
        self.refuse(4, *doubt)

    def _plan_over(
        self, domains: tuple[IterDomain, ...], producers: Sequence[BlockOp], kept: Sequence[IterGuard]
    ) -> MovePlan:
        block = self.block
        kept = self.former_only(2, domains, kept)
        self._require_final(domains, producers)
        self.require_all_instances(6, domains)
        self.require_updates_in_order(6, domains, kept)
        same = self.loops_kept(domains, kept)
        self.require_order(5, accesses(block), [a for p in producers for a in accesses(p)], same)
        passed = [op for op in actions_passed(block, self.loop, same) if op not in producers]
        self.require(7, passing_conflict(block, passed, same))
        # For all ops inside the loop, so that requirement 7 holds for every place after the producers.
        return self.plan_at_index(producers, (10, 8), domains, kept, after_others=True)

    def _ran_before(self, producer: BlockOp) -> bool:
        nest = child_towards(scope_of(self.block), self.loop)
        if nest.is_ancestor(producer) or not precedes(producer, nest):
            return False
        others = [other for other in producers_of(self.block) if other is not producer]
        return not any(set(buffers_written(producer)) & set(buffers_written(other)) for other in others)

    def _domains(
        self, producers: Sequence[BlockOp]
    ) -> tuple[tuple[IterDomain, ...], tuple[Violation, Operation] | None]:
        """The elements that an iteration writes; a violation if the domains may contain others."""
        block = self.block
        doubt: tuple[Violation, Operation] | None = None
        unknown: set[SSAValue] = set()
        written = [a for p in producers for a in accesses(p) if a.is_write]
        spans: dict[SSAValue, Span] = {}
        for read in accesses_of_instance(block):
            writes = [a for a in written if a.buffer is read.buffer]
            if read.is_write or not writes:
                continue
            for variable, span in self.instances_at(4, read, writes).items():
                if span is None or not span.tight:
                    where = f"an iteration of {operation_text(self.loop)} writes of {buffer_name(read.buffer)}"
                    detail = f"what {where} is not one dense range of iterator %{variable.name_hint}"
                    legal = "a loop below which the producer's loops step through that range by 1"
                    doubt = doubt or (Violation(detail, "not proved", legal=legal), read.op)
                    if span is None:
                        unknown.add(variable)
                        continue
                known = spans.get(variable)
                merged = span if known is None else hull([known, span])
                if merged is None:
                    detail = f"the ranges of iterator %{variable.name_hint} do not fit together"
                    self.refuse(4, detail, read.op)
                spans[variable] = merged
        domains = tuple(
            domain_from_span(None if variable in unknown else spans.get(variable), extent, again=False)
            for variable, extent in zip(block.iter_vars, block.extents, strict=True)
        )
        return domains, doubt

    def _require_final(self, domains: Sequence[IterDomain], producers: Sequence[BlockOp]) -> None:
        """No later iteration may write what an iteration consumes, or touch what it writes."""
        theirs = [a for p in producers for a in accesses(p)]
        prefix = [*loops_around(self.loop), self.loop]
        for own in accesses(self.block):
            for other in theirs:
                if not may_conflict(own, other):
                    continue
                for level, loop in enumerate(prefix):
                    violation = self._comes_later(own, other, domains, prefix[:level], loop)
                    self.require(7 if own.is_write else 5, violation, own.op)

    @or_undecided
    def _comes_later(
        self, own: Access, other: Access, domains: Sequence[IterDomain], equal: Sequence[ForOp], level: ForOp
    ) -> Violation | None:
        if own.indices is None or other.indices is None or own.buffer is not other.buffer:
            return unknown_elements(own, other)
        question = Question(loop.induction_variable for loop in own.loops if loop.is_ancestor(scope_of(self.block)))
        question.share((loop.induction_variable for loop in equal), "here", "later")
        question.add("consumer", own)
        question.add("later", other)
        question.add("here", Context((*loops_around(self.loop), self.loop)))
        question.same_element("consumer", own.indices, "later", other.indices)
        for index, domain in zip(Context.around(self.block).resolve_map(self.block), domains, strict=True):
            if isinstance(domain.extent, int):
                counter = Block(arg_types=[IndexType()]).args[0]
                question.add_value("here", counter, domain.extent)
                question.equate((index, "consumer"), (domain.at(counter), "here"))
        value = Index.of(level.induction_variable)
        question.order((value, "here"), (value, "later"))
        found = question.counterexample()
        if found is None:
            return None
        if not (is_exact(own) and is_exact(other)):
            return Violation("the subscripts or conditions are not affine", "not proved")
        return replace(_in_wrong_order(own, other, level, found), validate=found.holds)


def _in_wrong_order(own: Access, other: Access, level: ForOp, found: Counterexample) -> Violation:
    name = level.induction_variable.name_hint or "loop"
    first, second = (found.value(role, level.induction_variable) for role in ("here", "later"))
    (verb, doing), (later_verb, later_doing) = (
        ("write", "writing") if access.is_write else ("read", "reading") for access in (own, other)
    )
    return Violation(
        f"iteration {name}={first} would {verb} an element of {buffer_name(own.buffer)} that "
        f'block "{other.block.label if other.block else "?"}" {later_verb}s in iteration {name}={second}',
        "refuted",
        {f"{doing} iteration": {name: first}, f"{later_doing} iteration": {name: second}},
        f"a loop outside of %{name}, or one that holds all of them",
    )
