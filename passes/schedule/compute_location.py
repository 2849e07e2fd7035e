"""compute_at, reverse_compute_at: a block moves under a loop of its consumers, or of its producers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from weft.analysis.accesses import Access, Conditions, Context, accesses, is_fixed, range_of
from weft.analysis.combiners import combines_freely
from weft.analysis.coverage import Domain, missed_instance
from weft.analysis.dependence import add_domain, buffer_name, is_temporary, undecided
from weft.analysis.footprint import Span, box_of, hull
from weft.analysis.index import Index, exprs_of
from weft.analysis.motion import blocks_passed, passing_conflict, shared_element
from weft.analysis.sets import NotProved, System, Variable
from weft.analysis.structure import (
    buffers_written,
    child_towards,
    consumers_of,
    is_inside,
    loops_around,
    producers_of,
    scope_of,
    why_not_complete,
    why_not_reduction,
)
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.dialects.tir_kinds import IterKind, LoopKind
from weft.passes.schedule.primitive import Plan, block_text
from weft.passes.schedule.rehearsal import KEEPS_INDEPENDENCE, MovingPrimitive
from weft.passes.schedule.rewriting import erase_empty_loops, nest, new_loop, set_guards
from weft.support.errors import Violation


@dataclass(frozen=True)
class IterDomain:
    """What an iterator runs over after the move: `lower + v` for a new loop value v below `extent`."""

    lower: Index
    extent: int | SSAValue
    clipped: bool
    """Whether the span can leave the iterator's domain, so that a guard must keep it inside."""


@dataclass(frozen=True)
class MovePlan(Plan):
    """A block, the loop it goes under, the op in the loop's body it goes before, and its iterators there."""

    block: BlockOp
    loop: ForOp
    before: Operation | None
    domains: tuple[IterDomain, ...]

    def rewrite(self, rewriter: PatternRewriter) -> tuple[Operation, ...]:
        block = self.block
        old_parent = block.parent_op()
        loops, bindings, guards = loops_over(self.domains, block.extents, self.loop)
        block.detach()
        outermost = nest(loops, [block])
        point = InsertPoint.at_end(self.loop.body.block) if self.before is None else InsertPoint.before(self.before)
        if outermost is not None:
            rewriter.insert([outermost], point)
        exprs, operands = exprs_of([index.simplified(range_of) for index in bindings])
        block.set_bindings(exprs, operands)
        set_guards(block, [(left.simplified(range_of), right) for left, right in guards])
        erase_empty_loops(old_parent)
        return ()


def loops_over(
    domains: Sequence[IterDomain], extents: Sequence[int | SSAValue], like: Operation
) -> tuple[list[ForOp], list[Index], list[tuple[Index, Index]]]:
    """New loops ax0, ax1, ... over domains, the value of each iterator, and the guards that keep it in its extent."""
    loops: list[ForOp] = []
    bindings: list[Index] = []
    guards: list[tuple[Index, Index]] = []
    for domain, extent in zip(domains, extents, strict=True):
        index = domain.lower
        if domain.extent != 1:
            new = new_loop(domain.extent, f"ax{len(loops)}", like)
            loops.append(new)
            index = index + Index.of(new.induction_variable)
        bindings.append(index)
        if domain.clipped:
            guards.append((index, Index.of(extent)))
            guards.append((Index({}, -1), index))
    return loops, bindings, guards


def iterator_of_dimension(block: BlockOp, store_or_load: Access) -> list[tuple[int, Index] | None]:
    """For each dimension of an access: the position of the iterator that indexes it, and the constant added.

    None where the index is not an iterator plus something fixed outside of the block.
    """
    operands = _index_operands(store_or_load.op)
    result: list[tuple[int, Index] | None] = []
    iterators: dict[SSAValue, int] = {v: at for at, v in enumerate(block.iter_vars)}
    for operand in operands:
        index = Index.of(operand)
        mine = [atom for atom in index.terms if isinstance(atom, SSAValue) and atom in iterators]
        rest = index - sum((Index({atom: 1}) for atom in mine), Index({}))
        if len(mine) == 1 and index.coefficient(mine[0]) == 1 and not rest.depends_on(iterators):
            result.append((iterators[mine[0]], rest))
        else:
            result.append(None)
    return result


def _index_operands(op: Operation) -> Sequence[SSAValue]:
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return list(op.indices)
    return []


def full_domain(extent: int | SSAValue) -> IterDomain:
    return IterDomain(Index({}), extent, clipped=False)


def domain_from_span(span: Span | None, shift: Index, extent: int | SSAValue) -> IterDomain:
    """The domain of an iterator that indexes a dimension (plus `shift`) of which `span` is touched."""
    if span is None:
        return full_domain(extent)
    if isinstance(extent, int) and span.extent >= extent:
        return full_domain(extent)
    lower = span.lower - shift
    low = lower.range(range_of)[0]
    last = (Index.of(extent) - lower - span.extent).range(range_of)[0]
    inside = low is not None and low >= 0 and last is not None and last >= 0
    return IterDomain(lower, span.extent, clipped=not inside)


class _Move(MovingPrimitive):
    """What both directions share."""

    block: BlockOp
    loop: ForOp

    def require_scope(self, requirement: int) -> None:
        """The loop is in the scope of the block, and not around it."""
        subject = block_text(self.block)
        if scope_of(self.loop) is not scope_of(self.block):
            self.refuse(requirement, "the loop is in another function or block", self.loop, subject)
        if is_inside(self.block, self.loop):
            self.refuse(requirement, "the loop is already around the block", self.loop, subject)
        for loop in loops_around(self.block):
            if loop.kind.data is LoopKind.THREAD_BINDING:
                self.refuse(
                    requirement, f"loop %{loop.induction_variable.name_hint} is bound to a thread axis", loop, subject
                )

    def require_block_kind(self, requirement: int) -> None:
        """Complete or reduction blocks can be cut into pieces."""
        complete, reduction = why_not_complete(self.block), why_not_reduction(self.block)
        if complete is not None and reduction is not None:
            reason = reduction if self.block.init is not None else complete
            self.refuse(requirement, reason, self.block, block_text(self.block))
        self.require(requirement, shared_element(self.block), self.block, block_text(self.block))
        if IterKind.REDUCE in self.block.kinds and not combines_freely(self.block):
            reason = "its reduction would run in another order, and its combiner is not known to be commutative"
            self.refuse(requirement, Violation(reason, "not proved"), self.block, block_text(self.block))


@dataclass(frozen=True)
class ComputeAt(_Move):
    """A producer moves under a loop of its consumers: each iteration computes just what it reads.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction, and its instances store to different elements
    3. the block writes temporaries only
    4. every block that reads what it writes is under the loop
    5. every element it stores is indexed by one iterator a dimension
    6. no block it changes places with writes what it reads or writes
    7. parallel and vectorized loops have independent iterations afterwards too

    The new loops are called ax0, ax1, ... in the order of the block's iterators; an iterator with one value gets none.

    ```mlir
    tir.for %i in 128 { tir.block "B" ... = [%i] {...} }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] and B[%vi + 1] } }
    // compute_at "B", %i
    tir.for %i in 128 {
      tir.for %ax0 in 2 { tir.block "B" ... = [%i + %ax0] where [%i + %ax0] < [128] {...} }
      tir.block "C" ... = [%i] {...} }
    ```
    """

    NAME: ClassVar[str] = "compute_at"
    STEP: ClassVar[type[sched.StepOp]] = sched.ComputeAtOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the loop is in the scope of the block and not around it",
        "the block is complete or a reduction",
        "the block writes temporaries only",
        "every consumer is under the loop",
        "every element it stores is indexed by one iterator a dimension",
        "no block it changes places with writes what it reads or writes",
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 7

    block: BlockOp
    loop: ForOp

    def draft(self) -> MovePlan:
        block, subject = self.block, block_text(self.block)
        self.require_scope(1)
        self.require_block_kind(2)
        for buffer in buffers_written(block):
            if not is_temporary(buffer):
                self.refuse(3, f"it writes the parameter {buffer_name(buffer)}", block, subject)
        consumers = consumers_of(block)
        if not consumers:
            self.refuse(4, "no block reads what it writes", block, subject)
        for consumer in consumers:
            if not is_inside(consumer, self.loop):
                self.refuse(
                    4,
                    Violation(
                        f'block "{consumer.label}" reads it and is not under the loop',
                        legal="a loop around all its consumers",
                    ),
                    consumer,
                    subject,
                )
        domains = self._domains(subject)
        self.require(6, passing_conflict(block, blocks_passed(block, self.loop), flow_to=True), block, subject)
        first = min((child_towards(self.loop, c) for c in consumers), key=self._position)
        return MovePlan(block, block, self.loop, first, domains)

    def _position(self, op: Operation) -> int:
        return list(self.loop.body.block.ops).index(op)

    def _domains(self, subject: str) -> tuple[IterDomain, ...]:
        block = self.block
        spans: dict[int, list[tuple[Span | None, Index]]] = {}
        for store in accesses(block):
            if not store.is_write:
                continue
            reads = [a for a in accesses(self.loop) if a.buffer is store.buffer and not is_inside(a.op, block)]
            box = box_of(reads, self.loop)
            for dimension, iterator in enumerate(iterator_of_dimension(block, store)):
                if iterator is None:
                    self.refuse(5, f"dimension {dimension} of {buffer_name(store.buffer)} is not", store.op, subject)
                position, shift = iterator
                spans.setdefault(position, []).append((box[dimension] if box else None, shift))
        result: list[IterDomain] = []
        for position, (extent, kind) in enumerate(zip(block.extents, block.kinds, strict=True)):
            wanted = spans.get(position)
            if wanted is None or kind is IterKind.REDUCE:
                result.append(full_domain(extent))
                continue
            moved = [None if s is None else Span(s.lower - shift, s.extent, s.tight) for s, shift in wanted]
            result.append(domain_from_span(hull(moved), Index({}), extent))
        return tuple(result)


@dataclass(frozen=True)
class ReverseComputeAt(_Move):
    """A consumer moves under a loop of its producers: each iteration consumes what it just produced.

    Requirements:
    1. the loop is in the scope of the block and not around it
    2. the block is complete or a reduction, and its instances store to different elements
    3. every block that writes what it reads is under the loop
    4. each element it reads of a producer is indexed by one iterator a dimension, and the producers fill a box
    5. what an iteration consumes is final: no later iteration writes it
    6. every instance of the block runs in some iteration
    7. no block it changes places with touches what it writes, or writes what it reads
    8. parallel and vectorized loops have independent iterations afterwards too

    The new loops are called ax0, ax1, ... in the order of the block's iterators; an iterator with one value gets none.

    ```mlir
    tir.for %i in 32 { tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} } }
    tir.for %i in 128 { tir.block "C" ... = [%i] { reads B[%vi] } }
    // reverse_compute_at "C", %i
    tir.for %i in 32 {
      tir.for %j in 4 { tir.block "B" ... = [%i * 4 + %j] {...} }
      tir.for %ax0 in 4 { tir.block "C" ... = [%i * 4 + %ax0] {...} } }
    ```
    """

    NAME: ClassVar[str] = "reverse_compute_at"
    STEP: ClassVar[type[sched.StepOp]] = sched.ReverseComputeAtOp
    REQUIREMENTS: ClassVar[tuple[str, ...]] = (
        "the loop is in the scope of the block and not around it",
        "the block is complete or a reduction",
        "every producer is under the loop",
        "what it reads is indexed by one iterator a dimension, and the producers fill a box",
        "what an iteration consumes is final",
        "every instance of the block runs in some iteration",
        "no block it changes places with touches what it writes, or writes what it reads",
        KEEPS_INDEPENDENCE,
    )
    INDEPENDENCE: ClassVar[int] = 8

    block: BlockOp
    loop: ForOp

    def draft(self) -> MovePlan:
        block, subject = self.block, block_text(self.block)
        self.require_scope(1)
        self.require_block_kind(2)
        producers = producers_of(block)
        if not producers:
            self.refuse(3, "no block writes what it reads", block, subject)
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
        domains = self._domains(producers, subject)
        self._require_final(domains, producers, subject)
        self._require_all_instances(domains, subject)
        passed = [b for b in blocks_passed(block, self.loop) if b not in producers]
        self.require(7, passing_conflict(block, passed, flow_to=False) or self._overwrites(passed), block, subject)
        last = max((child_towards(self.loop, p) for p in producers), key=self._position)
        return MovePlan(block, block, self.loop, last.next_op, domains)

    def _position(self, op: Operation) -> int:
        return list(self.loop.body.block.ops).index(op)

    def _overwrites(self, passed: Sequence[BlockOp]) -> Violation | None:
        """The same question from the other side: blocks passed that write what the block reads."""
        return passing_conflict(self.block, passed, flow_to=True)

    def _domains(self, producers: Sequence[BlockOp], subject: str) -> tuple[IterDomain, ...]:
        block = self.block
        written = [a for p in producers for a in accesses(p) if a.is_write]
        spans: dict[int, Span] = {}
        for read in accesses(block):
            writes = [a for a in written if a.buffer is read.buffer]
            if read.is_write or not writes:
                continue
            box = box_of(writes, self.loop)
            for dimension, iterator in enumerate(iterator_of_dimension(block, read)):
                span = box[dimension] if box else None
                if iterator is None:
                    if not self._is_fixed_dimension(read, dimension):
                        self.refuse(4, f"dimension {dimension} of {buffer_name(read.buffer)} is not", read.op, subject)
                    continue
                if span is None or not span.tight:
                    self.refuse(
                        4,
                        Violation(
                            f"what an iteration of %{self.loop.induction_variable.name_hint} writes in dimension "
                            f"{dimension} of {buffer_name(read.buffer)} is not one dense range",
                            "not proved",
                            legal="a loop below which the producer's loops step through that dimension by 1",
                        ),
                        read.op,
                        subject,
                    )
                position, shift = iterator
                moved = Span(span.lower - shift, span.extent, tight=True)
                known = spans.get(position)
                merged = moved if known is None else hull([known, moved])
                if merged is None:
                    self.refuse(4, f"the ranges of dimension {dimension} do not fit together", read.op, subject)
                spans[position] = merged
        return tuple(
            domain_from_span(spans[position], Index({}), extent) if position in spans else full_domain(extent)
            for position, extent in enumerate(block.extents)
        )

    def _is_fixed_dimension(self, read: Access, dimension: int) -> bool:
        """A constant index needs no iterator."""
        return not Index.of(_index_operands(read.op)[dimension]).depends_on(self.block.iter_vars)

    def _require_final(self, domains: Sequence[IterDomain], producers: Sequence[BlockOp], subject: str) -> None:
        """No producer instance of a later iteration writes what an iteration consumes."""
        writes = [a for p in producers for a in accesses(p) if a.is_write]
        prefix = [loop for loop in loops_around(self.loop)] + [self.loop]
        for read in accesses(self.block):
            for write in writes:
                if read.is_write or write.buffer is not read.buffer:
                    continue
                for level, loop in enumerate(prefix):
                    try:
                        violation = self._written_later(read, write, domains, prefix[:level], loop)
                    except NotProved as error:
                        violation = undecided(error)
                    self.require(5, violation, read.op, subject)

    def _written_later(
        self,
        read: Access,
        write: Access,
        domains: Sequence[IterDomain],
        equal: Sequence[ForOp],
        level: ForOp,
    ) -> Violation | None:
        """An instance that consumes in one iteration what `write` produces in a later one, differing at `level`."""
        system = System()
        consumer = _named(system, "consumer", ())
        here = _named(system, "here", equal)
        later = _named(system, "later", equal)
        add_domain(system, read.loops, read.conditions, consumer)
        add_domain(system, write.loops, write.conditions, later)
        prefix = [*loops_around(self.loop), self.loop]
        add_domain(system, prefix, Conditions(), here)
        if read.indices is None or write.indices is None:
            return Violation("a call touches the whole buffer", "not proved")
        for left, right in zip(read.indices, write.indices, strict=True):
            system.equal(system.row(left, consumer), system.row(right, later))
        bindings = _bindings_over_loops(self.block)
        for index, domain in zip(bindings, domains, strict=True):
            if isinstance(domain.extent, int):
                lower = system.row(domain.lower, here)
                value = system.row(index, consumer)
                system.less(lower, value, by=0)
                system.less(value, system.row(domain.lower + domain.extent, here), by=1)
        value = Index.of(level.induction_variable)
        system.less(system.row(value, here), system.row(value, later))
        if system.is_empty():
            return None
        point = system.find_point()
        if point is None:
            return None
        name = level.induction_variable.name_hint or "loop"
        at = {role: point.get((role, level.induction_variable), 0) for role in ("here", "later")}
        return Violation(
            f"iteration {name}={at['here']} would read an element of {buffer_name(read.buffer)} that "
            f'block "{write.block.label if write.block else "?"}" writes in iteration {name}={at["later"]}',
            "refuted",
            {"reading iteration": {name: at["here"]}, "writing iteration": {name: at["later"]}},
            f"a loop outside of %{name}, or one that holds all writes of the element",
        )

    def _require_all_instances(self, domains: Sequence[IterDomain], subject: str) -> None:
        """Asked of the iterators that run over part of their domain in an iteration; the others run over all of it."""
        block = self.block
        values = Block(arg_types=[IndexType()] * len(domains))
        partial = [at for at, domain in enumerate(domains) if isinstance(domain.extent, int)]
        bindings = [domains[at].lower + Index.of(values.args[at]) for at in partial]
        question = Domain(
            (*loops_around(self.loop), self.loop),
            tuple(index.simplified(range_of) for index in bindings),
            tuple(Index.of(block.extents[at]) for at in partial),
            Conditions(),
            tuple((values.args[at], extent) for at in partial if isinstance(extent := domains[at].extent, int)),
        )
        try:
            missed = missed_instance(question, loops_run=True)
        except NotProved as error:
            self.refuse(6, undecided(error), block, subject)
        if missed is None:
            return
        point = {block.iter_vars[at].name_hint or f"v{at}": missed[("iterator", n)] for n, at in enumerate(partial)}
        text = ", ".join(f"{name}={value}" for name, value in point.items())
        self.refuse(
            6, Violation(f"instance ({text}) would run in none", counterexample={"instance": point}), block, subject
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
