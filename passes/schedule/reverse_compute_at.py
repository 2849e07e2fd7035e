"""reverse_compute_at: move a consumer under a loop of its producers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.analysis.accesses import Access, Context, accesses, accesses_of_instance
from weft.analysis.code_motion import actions_passed, passing_conflict
from weft.analysis.dependence import buffer_name, is_exact, undecided, whole_buffer
from weft.analysis.footprint import Span, hull
from weft.analysis.index import Index
from weft.analysis.questions import Counterexample, Question
from weft.analysis.sets import NotProved
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
from weft.passes.schedule.primitive import operation_text
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
        return MovePlan(block, self.loop, before, domains, kept, self.keeps_unit_loops)

    def _ran_before(self, producer: BlockOp) -> bool:
        """Whether the nest of a producer ends before that of the loop begins, and no other block writes its buffers."""
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
                            f"what an iteration of {operation_text(self.loop)} writes of "
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
        question = Question(loop.induction_variable for loop in own.loops if is_inside(scope_of(self.block), loop))
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
