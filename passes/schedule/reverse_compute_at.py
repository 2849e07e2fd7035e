"""reverse_compute_at: move a consumer under a loop of its producers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.accesses import Access, Conditions, Context, accesses, accesses_of_instance, is_fixed, range_of
from weft.analysis.dependence import add_domain, buffer_name, is_exact, undecided, whole_buffer
from weft.analysis.footprint import Span, hull
from weft.analysis.index import Index
from weft.analysis.motion import actions_passed, passing_conflict
from weft.analysis.replay import instance_at, tried
from weft.analysis.sets import NotProved, Point, System, Variable
from weft.analysis.structure import (
    buffers_written,
    child_towards,
    is_inside,
    loops_around,
    precedes,
    producers_of,
    scope_of,
)
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.compute_location import Move, MovePlan
from weft.passes.schedule.loop_nests import IterDomain, domain_from_span
from weft.support.errors import Violation


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
        block = self.block
        self.require_scope(1)
        self.require_block_kind(2)
        kept = self.kept_guards(2)
        # A block that overwrites afterwards what this one reads is no producer: it is passed (requirement 7).
        producers = [producer for producer in producers_of(block) if precedes(producer, block)]
        if not producers:
            self.refuse(3, "no block writes what it reads before it")
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
                )
        if not producers:
            self.refuse(3, "all that write what it reads run before the loop")
        domains = self._domains(producers)
        kept = self.former_only(2, domains, kept)
        self._require_final(domains, producers)
        self.require_all_instances(6, domains)
        self.require_once(6, domains, kept)
        self.require_start_first(6, domains, kept)
        same = self.loops_kept(domains, kept)
        self.require_order(5, accesses(block), [a for p in producers for a in accesses(p)], same)
        passed = [op for op in actions_passed(block, self.loop, same) if op not in producers]
        violation = passing_conflict(block, passed, same, flow_to=False)
        self.require(7, violation or passing_conflict(block, passed, same, flow_to=True))
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

    def _domains(self, producers: Sequence[BlockOp]) -> tuple[IterDomain, ...]:
        block = self.block
        written = [a for p in producers for a in accesses(p) if a.is_write]
        spans: dict[SSAValue, Span] = {}
        for read in accesses_of_instance(block):
            writes = [a for a in written if a.buffer is read.buffer]
            if read.is_write or not writes:
                continue
            for variable, span in self.instances_at(4, read, writes).items():
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
                    )
                known = spans.get(variable)
                merged = span if known is None else hull([known, span])
                if merged is None:
                    detail = f"the ranges of iterator %{variable.name_hint} do not fit together"
                    self.refuse(4, detail, read.op)
                spans[variable] = merged
        return tuple(
            domain_from_span(spans.get(variable), extent, again=False)
            for variable, extent in zip(block.iter_vars, block.extents, strict=True)
        )

    def _require_final(self, domains: Sequence[IterDomain], producers: Sequence[BlockOp]) -> None:
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
                    self.require(7 if own.is_write else 5, violation, own.op)

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
