"""compute_at, reverse_compute_at: move a block under a loop of its consumers or producers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.accesses import (
    Access,
    Conditions,
    Context,
    accesses,
    accesses_in_scope,
    accesses_of_instance,
    is_fixed,
    range_of,
)
from weft.analysis.dependence import add_domain, buffer_name, is_exact, is_temporary, undecided, whole_buffer
from weft.analysis.footprint import Span, hull
from weft.analysis.index import Index
from weft.analysis.motion import actions_passed, passing_conflict
from weft.analysis.replay import instance_at, tried
from weft.analysis.sets import NotProved, Point, System, Variable
from weft.analysis.structure import (
    ancestors,
    buffers_written,
    child_towards,
    is_inside,
    loops_around,
    precedes,
    producers_of,
    scope_of,
)
from weft.analysis.threads import is_shared
from weft.dialects.effects import op_name
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind
from weft.dialects.tir_regions import AssumeShapeOp
from weft.passes.schedule.moving import (
    IterDomain,
    Move,
    MovePlan,
    domain_from_span,
    full_domain,
)
from weft.passes.schedule.primitive import block_text
from weft.support.errors import Violation


@dataclass(frozen=True)
class ComputeAt(Move):
    """A producer moves under a loop of its consumers: each iteration computes just what it reads.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction: its instances store to different elements
    3. the block writes temporaries only, or each of its instances still runs: in some iteration
    4. every consumer is under the loop: every block that reads what it writes also comes after it, in every iteration
       of the loops around both
    5. the indices of what it stores can be inverted: each element is stored by one instance
    6. no block it changes places with writes what it reads or writes
    7. what it uses is known at its new place
    8. loops that run in parallel stay independent: parallel and vectorized ones
    9. the index is a place before every consumer: `index`, if given, is -1, -2 or the place of an op in the loop that
       no consumer stands before

    The block goes right before its first consumer: the last place there is, -1. An `index` of n is the place before
    the n-th loop or block (or other op on memory) in the body of the loop, -2 the first place where what the block uses
    is known.
    The new loops are called ax0, ax1, ... in the order of the block's iterators; an iterator with one value
    gets none, unless `preserve_unit_loops` is given. Where what is read lies a constant step apart, so do its values,
    and where it is windows with gaps between them, the loop counts through the windows.
    Into a buffer of scope "shared" it computes what all threads of a block need, when the loop is in or is a loop over
    threads: `bind` can then spread the new loops over the same threads.

    ```mlir
    tir.for %i in 128 { tir.block "B" ... = [%i] {...} }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] and B[%vi + 1] } }
    // compute_at "B", %i
    tir.for %i in 128 {
      tir.for %ax0 in 2 { tir.block "B" ... = [%i + %ax0] where [%i + %ax0] < [128] {...} }
      tir.block "C" ... = [%i] {...} }
    ```
    """

    RECOMPUTES: ClassVar[bool] = True

    block: BlockOp
    loop: ForOp
    preserve_unit_loops: Attribute | None = None
    index: Attribute | None = None

    def draft(self) -> MovePlan:
        block, subject = self.block, block_text(self.block)
        self.require_scope(1)
        self.require_block_kind(2)
        kept = self.kept_guards(2)
        users = self._users(subject)
        domains = self._domains(subject)
        if not all(is_temporary(buffer) for buffer in buffers_written(block)):
            self.require_all_instances(3, domains, subject)
        kept = self.former_only(2, domains, kept)
        same = self.loops_kept(domains, kept)
        passed = actions_passed(block, self.loop, same)
        self.require(6, passing_conflict(block, passed, same, flow_to=True), block, subject)
        if not all(is_temporary(buffer) for buffer in buffers_written(block)):  # else nothing is read before
            self.require_order(4, [a for user in users for a in accesses(user)], accesses(block), same, subject)
        first = min((child_towards(self.loop, user) for user in users), key=self._position)
        # Requirement 6 holds of every place before it: it is asked of all that stands under the loop.
        before = self.place(9, 7, domains, last=first)
        return MovePlan(block, block, self.loop, before, domains, kept, self.keeps_unit_loops)

    def _users(self, subject: str) -> list[Operation]:
        """What uses the buffers that the block writes: all of it is under the loop."""
        block = self.block
        users: list[Operation] = []
        for buffer in buffers_written(block):
            for use in buffer.uses:
                user = use.operation
                if is_inside(user, block) or isinstance(user, memref.DimOp | AssumeShapeOp):
                    continue
                around = next((op for op in ancestors(user) if isinstance(op, BlockOp)), None)
                name = op_name(user) if around is None else f'block "{around.label}"'
                if not is_inside(user, self.loop):
                    detail = f"{name} reads {buffer_name(buffer)} and is not under the loop"
                    self.refuse(4, Violation(detail, legal="a loop around all its consumers"), user, subject)
                if not precedes(block, user):
                    self.refuse(4, f"{name} reads {buffer_name(buffer)} before", user, subject)
                users.append(user)
        if not users:
            self.refuse(4, "nothing reads what it writes", block, subject)
        return users

    def _position(self, op: Operation) -> int:
        return list(self.loop.body.block.ops).index(op)

    def _domains(self, subject: str) -> tuple[IterDomain, ...]:
        """Each iterator over the instances that store what is read in an iteration."""
        block = self.block
        spans: dict[SSAValue, list[Span | None]] = {}
        under_loop = [a for a in accesses_in_scope(self.loop) if not is_inside(a.op, block)]
        for store in accesses_of_instance(block):
            reads = [a for a in under_loop if a.buffer is store.buffer]
            if not store.is_write or not reads:
                continue  # nobody reads this buffer: what others need decides
            needed = self.instances_at(5, store, reads, subject, by_all_threads=is_shared(store.buffer))
            for variable, span in needed.items():
                spans.setdefault(variable, []).append(span)
        steps = zip(block.iter_vars, block.extents, block.kinds, strict=True)
        return tuple(
            full_domain(extent) if kind is IterKind.REDUCE else domain_from_span(hull(spans.get(v, [])), extent)
            for v, extent, kind in steps
        )


@dataclass(frozen=True)
class ReverseComputeAt(Move):
    """A consumer moves under a loop of its producers: each iteration consumes what it just produced.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction: its instances store to different elements
    3. every producer is under the loop: some block before it that writes what it reads is; others ran before its nest,
       and alone write what they do
    4. the indices of what it reads can be inverted, and the producers fill ranges: indices of what it reads of a
       producer, up to quotients and remainders of an iterator, and a range of each iterator, or of such a part of it
    5. what an iteration consumes is final: no later iteration writes it
    6. every instance of the block runs in some iteration, updates in one only: one that updates what it reads runs
       after the one that starts its accumulation
    7. no block it changes places with touches what it writes, or writes what it reads
    8. what it uses is known at its new place
    9. loops that run in parallel stay independent: parallel and vectorized ones
    10. the index is a place after every producer: `index`, if given, is -1, -2 or the place of an op in the loop, or
        its end, that no producer stands behind

    The block goes to the end of the loop's body: the last place there is, -1. An `index` of n is the place before the
    n-th loop or block (or other op on memory) in that body, -2 the first place behind all producers.
    The new loops are called ax0, ax1, ... in the order of the block's iterators; an iterator with one value
    gets none, unless `preserve_unit_loops` is given.

    ```mlir
    tir.for %i in 32 { tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} } }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] } }
    // reverse_compute_at "C", %i
    tir.for %i in 32 {
      tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} }
      tir.for %ax0 in 4 { tir.block "C" ... = [%i * 4 + %ax0] {...} } }
    ```
    """

    RECOMPUTES: ClassVar[bool] = False

    block: BlockOp
    loop: ForOp
    preserve_unit_loops: Attribute | None = None
    index: Attribute | None = None

    def draft(self) -> MovePlan:
        block, subject = self.block, block_text(self.block)
        self.require_scope(1)
        self.require_block_kind(2)
        kept = self.kept_guards(2)
        # A block that overwrites afterwards what this one reads is no producer: it is passed (requirement 7).
        producers = [producer for producer in producers_of(block) if precedes(producer, block)]
        if not producers:
            self.refuse(3, "no block writes what it reads before it", block, subject)
        producers = [producer for producer in producers if not self._ran_before(producer)]
        for producer in producers:
            if not is_inside(producer, self.loop):
                self.refuse(
                    3,
                    Violation(
                        f'block "{producer.label}" writes what it reads and is not under the loop',
                        legal="a loop around all its producers",
                    ),
                    producer,
                    subject,
                )
        if not producers:
            self.refuse(3, "all that write what it reads run before the loop", block, subject)
        domains = self._domains(producers, subject)
        kept = self.former_only(2, domains, kept)
        self._require_final(domains, producers, subject)
        self.require_all_instances(6, domains, subject)
        self.require_once(6, domains, kept)
        self.require_start_first(6, domains, kept)
        same = self.loops_kept(domains, kept)
        self.require_order(5, accesses(block), [a for p in producers for a in accesses(p)], same, subject)
        passed = [op for op in actions_passed(block, self.loop, same) if op not in producers]
        violation = passing_conflict(block, passed, same, flow_to=False)
        self.require(7, violation or passing_conflict(block, passed, same, flow_to=True), block, subject)
        last = max((child_towards(self.loop, p) for p in producers), key=self._position)
        # Requirement 7 holds of every place behind it: it is asked of all that stands under the loop.
        before = self.place(10, 8, domains, behind=last)
        return MovePlan(block, block, self.loop, before, domains, kept, self.keeps_unit_loops)

    def _ran_before(self, producer: BlockOp) -> bool:
        """Whether a producer is in a nest that ends before that of the loop begins, and writes what no other does."""
        nest = child_towards(scope_of(self.block), self.loop)
        if is_inside(producer, nest) or not precedes(producer, nest):
            return False
        others = [other for other in producers_of(self.block) if other is not producer]
        return not any(set(buffers_written(producer)) & set(buffers_written(other)) for other in others)

    def _position(self, op: Operation) -> int:
        return list(self.loop.body.block.ops).index(op)

    def _domains(self, producers: Sequence[BlockOp], subject: str) -> tuple[IterDomain, ...]:
        block = self.block
        written = [a for p in producers for a in accesses(p) if a.is_write]
        spans: dict[SSAValue, Span] = {}
        for read in accesses_of_instance(block):
            writes = [a for a in written if a.buffer is read.buffer]
            if read.is_write or not writes:
                continue
            for variable, span in self.instances_at(4, read, writes, subject).items():
                if span is None or not span.tight:
                    self.refuse(
                        4,
                        Violation(
                            f"what an iteration of %{self.loop.induction_variable.name_hint} writes of "
                            f"{buffer_name(read.buffer)} is not one dense range of iterator %{variable.name_hint}",
                            "not proved",
                            legal="a loop below which the producer's loops step through that range by 1",
                        ),
                        read.op,
                        subject,
                    )
                known = spans.get(variable)
                merged = span if known is None else hull([known, span])
                if merged is None:
                    detail = f"the ranges of iterator %{variable.name_hint} do not fit together"
                    self.refuse(4, detail, read.op, subject)
                spans[variable] = merged
        return tuple(
            domain_from_span(spans.get(variable), extent, again=False)
            for variable, extent in zip(block.iter_vars, block.extents, strict=True)
        )

    def _require_final(self, domains: Sequence[IterDomain], producers: Sequence[BlockOp], subject: str) -> None:
        """No producer instance of a later iteration writes what an iteration consumes, or touches what it writes."""
        theirs = [a for p in producers for a in accesses(p)]
        prefix = [*loops_around(self.loop), self.loop]
        for own in accesses(self.block):
            for other in theirs:
                if own.buffer is not other.buffer or not (own.is_write or other.is_write):
                    continue
                for level, loop in enumerate(prefix):
                    try:
                        violation = self._comes_later(own, other, domains, prefix[:level], loop)
                    except NotProved as error:
                        violation = undecided(error)
                    self.require(7 if own.is_write else 5, violation, own.op, subject)

    def _comes_later(
        self, own: Access, other: Access, domains: Sequence[IterDomain], equal: Sequence[ForOp], level: ForOp
    ) -> Violation | None:
        """An instance of the block in one iteration whose element `other` touches in a later one, apart at `level`."""
        if own.indices is None or other.indices is None:
            return whole_buffer(own, other)
        system = System()
        outside = [loop for loop in own.loops if is_inside(scope_of(self.block), loop)]
        consumer = _named(system, "consumer", outside)
        here = _named(system, "here", [*outside, *equal])
        later = _named(system, "later", [*outside, *equal])
        add_domain(system, own.loops, own.conditions, consumer)
        add_domain(system, other.loops, other.conditions, later)
        add_domain(system, [*loops_around(self.loop), self.loop], Conditions(), here)
        for left, right in zip(own.indices, other.indices, strict=True):
            system.equal(system.row(left, consumer), system.row(right, later))
        for index, domain in zip(_bindings_over_loops(self.block), domains, strict=True):
            if isinstance(domain.extent, int):
                counter = Block(arg_types=[IndexType()]).args[0]
                system.declare(here(counter), 0, domain.extent - 1)
                system.equal(system.row(index, consumer), system.row(domain.at(counter), here))
        value = Index.of(level.induction_variable)
        system.less(system.row(value, here), system.row(value, later))
        point = None if system.is_empty() else system.find_point()
        if point is None:
            return None
        if not (is_exact(own) and is_exact(other)):
            return Violation("the subscripts or conditions are not affine", "not proved")
        violation = _in_wrong_order(own, other, level, point)
        return replace(violation, replay=lambda: self._happens(own, other, domains, level, point))

    def _happens(self, own: Access, other: Access, domains: Sequence[IterDomain], level: ForOp, point: Point) -> bool:
        """Whether the instance of the block would run in the first iteration, and `other` touches its element in the
        later one."""
        outside = [loop for loop in own.loops if is_inside(scope_of(self.block), loop)]
        around = [*outside, *loops_around(self.loop), self.loop]

        def question() -> bool:
            mine, theirs = instance_at(point, "consumer", own.loops), instance_at(point, "later", other.loops)
            here = instance_at(point, "here", around)
            value = level.induction_variable
            ranges = zip(self.block.iter_vars, domains, strict=True)
            return (
                mine.runs(own.op)
                and theirs.runs(other.op)
                and mine.element(own) == theirs.element(other)
                and here.value(value) < theirs.value(value)
                and all(
                    not isinstance(domain.extent, int)
                    or mine.value(v) - here.number(domain.lower) in map(domain.offset, range(domain.extent))
                    for v, domain in ranges
                )
            )

        return tried(question)


def _in_wrong_order(own: Access, other: Access, level: ForOp, point: Point) -> Violation:
    name = level.induction_variable.name_hint or "loop"
    first, second = (point.get((role, level.induction_variable), 0) for role in ("here", "later"))
    verbs = ["writes" if access.is_write else "reads" for access in (own, other)]
    return Violation(
        f"iteration {name}={first} would {verbs[0].removesuffix('s')} an element of {buffer_name(own.buffer)} that "
        f'block "{other.block.label if other.block else "?"}" {verbs[1]} in iteration {name}={second}',
        "refuted",
        {
            f"{verbs[0].removesuffix('s').removesuffix('e')}ing iteration": {name: first},
            f"{verbs[1].removesuffix('s').removesuffix('e')}ing iteration": {name: second},
        },
        f"a loop outside of %{name}, or one that holds all of them",
    )


def _named(system: System, role: str, shared: Sequence[ForOp]) -> Callable[[SSAValue], Variable]:
    """Values of one role; the shared loops are the same in all roles, as is what is fixed in the function."""
    same = {loop.induction_variable for loop in shared}

    def name(value: SSAValue) -> Variable:
        variable: Variable = value if value in same or is_fixed(value) else (role, value)
        system.declare(variable, *range_of(value))
        return variable

    return name


def _bindings_over_loops(block: BlockOp) -> tuple[Index, ...]:
    return Context.around(block).resolve_map(block)
