"""`Schedule` methods on loops, and annotations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f64, i1, i64
from xdsl.ir import Attribute

from weft.dialects import sched
from weft.passes.schedule.annotations import Note, attribute_of
from weft.passes.schedule.replay import decision_attribute
from weft.passes.schedule.sampling import Decision
from weft.schedule.neutral_options import ANY, accepts, step_methods
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle, Recorder, factors_of, integers


@step_methods
class LoopSteps(Recorder):
    """The loop methods of `Schedule`."""

    @accepts(preserve_unit_iters=ANY)
    def split(
        self, loop: LoopHandle, factors: Sequence[int | IntHandle | None], *, disable_predication: bool = False
    ) -> list[LoopHandle]:
        """Split a loop into `len(factors)` loops; None (at most one) is inferred. See `Split`."""
        given, sampled = factors_of(factors)
        properties: dict[str, Attribute] = {"factors": given}
        if disable_predication:
            properties["disable_predication"] = IntegerAttr(1, i1)
        return self._loops(sched.SplitOp, [loop, *sampled], properties)

    @accepts(preserve_unit_iters=ANY)
    def fuse(self, *loops: LoopHandle) -> LoopHandle:
        """Fuse nested loops, outermost first, into one. See `Fuse`."""
        return self._loops(sched.FuseOp, loops)[0]

    def reorder(self, *loops: LoopHandle) -> None:
        """Put loops of one chain into the given order. See `Reorder`."""
        self._run(sched.ReorderOp, loops)

    def tile(self, *loops: LoopHandle, factors: Sequence[int | IntHandle]) -> list[LoopHandle]:
        """Split each loop of a perfect nest by its factor; returns the outer loops, then the tile loops. See `Tile`."""
        given, sampled = factors_of(factors)
        return self._loops(sched.TileOp, [*loops, *sampled], {"factors": given})

    def parallel(self, loop: LoopHandle) -> None:
        """Run the iterations on several threads. See `Parallel`."""
        self._run(sched.ParallelOp, [loop])

    def vectorize(self, loop: LoopHandle) -> None:
        """Turn the iterations into vector lanes. See `Vectorize`."""
        self._run(sched.VectorizeOp, [loop])

    def unroll(self, loop: LoopHandle) -> None:
        """Repeat the body at emission. See `Unroll`."""
        self._run(sched.UnrollOp, [loop])

    def bind(self, loop: LoopHandle, thread_axis: str) -> None:
        """Make each iteration a thread (`"threadIdx.x"`) or block of threads (`"blockIdx.x"`). See `Bind`."""
        self._run(sched.BindOp, [loop], {"thread_axis": StringAttr(thread_axis)})

    def merge(self, *loops: LoopHandle) -> LoopHandle:
        """Make loops of equal extent that follow each other one. See `Merge`."""
        return self._loops(sched.MergeOp, loops)[0]

    @accepts(preserve_unit_iters=ANY)
    def loop_partition(self, loop: LoopHandle, factors: Sequence[int | IntHandle | None]) -> list[LoopHandle]:
        """Cut a loop into loops that follow each other, of the given extents; None (at most one) is inferred. See
        `LoopPartition`."""
        given, sampled = factors_of(factors)
        return self._loops(sched.LoopPartitionOp, [loop, *sampled], {"factors": given})

    def add_unit_loop(self, block_or_loop: BlockHandle | LoopHandle | str) -> LoopHandle:
        """Put a loop of one iteration around a block or loop. See `AddUnitLoop`."""
        return self._loops(sched.AddUnitLoopOp, [self._target(block_or_loop)])[0]

    def reorder_block_iter_var(self, block: BlockHandle | str, new_order: Sequence[int]) -> None:
        """Put the iterators of a block into another order. See `ReorderBlockIterVar`."""
        self._run(sched.ReorderBlockIterVarOp, [self._block(block)], {"new_order": integers(new_order)})

    def annotate(self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str, ann_val: Note | IntHandle) -> None:
        """Note something on a block or loop. See `Annotate`."""
        target = self._target(block_or_loop)
        if isinstance(ann_val, IntHandle):
            self._run(sched.AnnotateOp, [target, ann_val], {"key": StringAttr(ann_key)})
        else:
            self._run(sched.AnnotateOp, [target], {"key": StringAttr(ann_key), "value": attribute_of(ann_val)})

    def unannotate(self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str) -> None:
        """Take a note off a block or loop. See `Unannotate`."""
        self._run(sched.UnannotateOp, [self._target(block_or_loop)], {"key": StringAttr(ann_key)})

    def _target(self, block_or_loop: BlockHandle | LoopHandle | str) -> BlockHandle | LoopHandle:
        return block_or_loop if isinstance(block_or_loop, LoopHandle) else self._block(block_or_loop)

    def sample_perfect_tile(
        self, loop: LoopHandle, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[IntHandle]:
        """Draw n factors whose product is the extent of a loop. See `SamplePerfectTile`."""
        properties: dict[str, Attribute] = {
            "n": IntegerAttr(n, i64),
            "max_innermost_factor": IntegerAttr(max_innermost_factor, i64),
        }
        return self._sample(
            sched.SamplePerfectTileOp, [loop], properties, None if decision is None else tuple(decision)
        )

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> IntHandle:
        """Draw one of several integers; `decision` is its position. See `SampleCategorical`."""
        properties: dict[str, Attribute] = {
            "candidates": integers(candidates),
            "probs": ArrayAttr([FloatAttr(float(p), f64) for p in probs]),
        }
        return self._sample(sched.SampleCategoricalOp, [], properties, decision)[0]

    def sample_compute_location(self, block: BlockHandle | str, decision: int | None = None) -> LoopHandle:
        """Draw a place for a producer, for `compute_at`. See `SampleComputeLocation`."""
        step = sched.SampleComputeLocationOp
        properties: dict[str, Attribute] = {} if decision is None else {"decision": IntegerAttr(decision, i64)}
        return self._loops(step, [self._block(block)], properties)[0]

    def _sample(
        self,
        kind: type[sched.SamplingOp],
        operands: Sequence[LoopHandle],
        properties: dict[str, Attribute],
        decision: Decision | None,
    ) -> list[IntHandle]:
        if decision is not None:
            properties["decision"] = decision_attribute(decision)
        return [IntHandle(result) for result in self._run(kind, operands, properties).results]
