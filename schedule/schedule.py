"""The Python face of schedules: each method runs one primitive on a module and records it as a `sched` step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from weft.analysis.structure import buffers_read, buffers_written, functions
from weft.dialects import sched
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.replay import Replay, check_handles
from weft.support.errors import CompileError, did_you_mean


@dataclass(frozen=True)
class BlockHandle:
    """A block of the scheduled module. Compare `sch.get(handle)` to look at the op itself."""

    value: SSAValue


@dataclass(frozen=True)
class LoopHandle:
    """A loop of the scheduled module; a step that takes the loop apart consumes it."""

    value: SSAValue


class Schedule:
    """A module being scheduled, and the trace of what was done.

    The given module stays as it is: the schedule works on a copy. Names and parameters follow the field's:
    `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`. Every method checks that the result means
    the same; one that is refused raises `ScheduleError` and changes nothing. A used-up handle raises `CompileError`.
    """

    def __init__(self, mod: ModuleOp) -> None:
        self.mod: ModuleOp = mod.clone()
        """The module as scheduled so far."""
        self.trace: sched.FuncOp = sched.FuncOp("trace", Region(Block()))
        """The steps so far: IR that prints, parses, and replays on the original module."""
        self._replay = Replay(self.mod)

    def replay(self, trace: sched.FuncOp) -> None:
        """Run the steps of another schedule's trace (or of a parsed `sched.func`) on this module.

        Raises `CompileError` where a step gives another number of handles here, besides what steps raise by themselves;
        the steps before it stay.
        """
        mapping: dict[SSAValue, SSAValue] = {}
        for step in trace.body.block.ops:
            if isinstance(step, sched.StepOp):
                recorded = self._record(step.clone(value_mapper=mapping))
                mapping.update(zip(step.results, recorded.results, strict=False))
                check_handles(step, len(recorded.results))

    def get(self, handle: BlockHandle | LoopHandle) -> Operation:
        """The op that a handle stands for now."""
        return self._replay.resolve(handle.value)

    def get_block(self, name: str, func_name: str | None = None) -> BlockHandle:
        """The block called `name`; unknown or ambiguous names raise `CompileError` with near names."""
        properties: dict[str, Attribute] = {"label": StringAttr(name)}
        if func_name is not None:
            properties["func"] = StringAttr(func_name)
        return self._blocks(sched.GetBlockOp, [], properties)[0]

    def get_loops(self, block: BlockHandle | str) -> list[LoopHandle]:
        """The loops around a block (a handle or a name), outermost first."""
        return self._loops(sched.GetLoopsOp, [self._block(block)])

    def get_producers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of its scope that write what the block reads."""
        return self._blocks(sched.GetProducersOp, [self._block(block)])

    def get_consumers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of its scope that read what the block writes."""
        return self._blocks(sched.GetConsumersOp, [self._block(block)])

    def get_child_blocks(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks directly inside the body of a block."""
        return self._blocks(sched.GetChildBlocksOp, [self._block(block)])

    def split(self, loop: LoopHandle, factors: Sequence[int | None]) -> list[LoopHandle]:
        """Split a loop into `len(factors)` loops; None (at most one) is inferred. See `Split`."""
        return self._loops(sched.SplitOp, [loop], {"factors": _ints([f or 0 for f in factors])})

    def fuse(self, *loops: LoopHandle) -> LoopHandle:
        """Fuse nested loops, outermost first, into one. See `Fuse`."""
        return self._loops(sched.FuseOp, loops)[0]

    def reorder(self, *loops: LoopHandle) -> None:
        """Put loops of one chain into the given order. See `Reorder`."""
        self._run(sched.ReorderOp, loops)

    def tile(self, *loops: LoopHandle, factors: Sequence[int]) -> list[LoopHandle]:
        """Split each loop of a perfect nest by its factor; returns the outer loops, then the tile loops. See `Tile`."""
        return self._loops(sched.TileOp, loops, {"factors": _ints(factors)})

    def parallel(self, loop: LoopHandle) -> None:
        """Run the iterations on several threads. See `Parallel`."""
        self._run(sched.ParallelOp, [loop])

    def vectorize(self, loop: LoopHandle) -> None:
        """Turn the iterations into vector lanes. See `Vectorize`."""
        self._run(sched.VectorizeOp, [loop])

    def unroll(self, loop: LoopHandle) -> None:
        """Repeat the body at emission. See `Unroll`."""
        self._run(sched.UnrollOp, [loop])

    def compute_at(self, block: BlockHandle | str, loop: LoopHandle) -> None:
        """Move a producer under a loop of its consumers. See `ComputeAt`."""
        self._run(sched.ComputeAtOp, [self._block(block), loop])

    def reverse_compute_at(self, block: BlockHandle | str, loop: LoopHandle) -> None:
        """Move a consumer under a loop of its producers. See `ReverseComputeAt`."""
        self._run(sched.ReverseComputeAtOp, [self._block(block), loop])

    def compute_inline(self, block: BlockHandle | str) -> None:
        """Make a producer part of every block that reads it. See `ComputeInline`."""
        self._run(sched.ComputeInlineOp, [self._block(block)])

    def reverse_compute_inline(self, block: BlockHandle | str) -> None:
        """Make a consumer part of the block it reads. See `ReverseComputeInline`."""
        self._run(sched.ReverseComputeInlineOp, [self._block(block)])

    def cache_read(self, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str) -> BlockHandle:
        """Read a copy of the index-th (or named) buffer that the block reads. Returns the copying block."""
        handle = self._block(block)
        index = self._buffer_index(handle, read_buffer_index, reading=True)
        return self._blocks(sched.CacheReadOp, [handle], _cache_properties(index, storage_scope))[0]

    def cache_write(self, block: BlockHandle | str, write_buffer_index: int | str, storage_scope: str) -> BlockHandle:
        """Write a copy of the index-th (or named) buffer that the block writes. Returns the copying block."""
        handle = self._block(block)
        index = self._buffer_index(handle, write_buffer_index, reading=False)
        return self._blocks(sched.CacheWriteOp, [handle], _cache_properties(index, storage_scope))[0]

    def set_scope(self, block: BlockHandle | str, buffer_index: int | str, storage_scope: str) -> None:
        """Move the index-th (or named) temporary that the block writes to a memory scope. See `SetScope`."""
        handle = self._block(block)
        index = self._buffer_index(handle, buffer_index, reading=False)
        self._run(sched.SetScopeOp, [handle], _cache_properties(index, storage_scope))

    def decompose_reduction(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Give the init of a reduction its own block, before `loop`. Returns that block. See `DecomposeReduction`."""
        return self._blocks(sched.DecomposeReductionOp, [self._block(block), loop])[0]

    def rfactor(self, loop: LoopHandle, factor_axis: int) -> BlockHandle:
        """Reduce in two steps: partial results for each iteration of `loop`, in a new dimension of the buffer, then all.

        Returns the block of the partial results. See `Rfactor`."""
        properties: dict[str, Attribute] = {"factor_axis": IntegerAttr(factor_axis, i64)}
        return self._blocks(sched.RfactorOp, [loop], properties)[0]

    def _block(self, block: BlockHandle | str) -> BlockHandle:
        return self.get_block(block) if isinstance(block, str) else block

    def _buffer_index(self, handle: BlockHandle, index: int | str, *, reading: bool) -> int:
        """The position of a buffer that is given by name."""
        if isinstance(index, int):
            return index
        block = self._replay.block(handle.value)
        buffers = buffers_read(block) if reading else buffers_written(block)
        names = [buffer.name_hint or "" for buffer in buffers]
        if index not in names:
            verb = "read" if reading else "write"
            raise CompileError(f"block '{block.label}' does not {verb} a buffer '{index}'{did_you_mean(index, names)}")
        return names.index(index)

    def _run(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> sched.StepOp:
        for handle in operands:
            if not isinstance(handle, BlockHandle | LoopHandle):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise CompileError(f"expected a handle that the schedule gave, got {handle!r}")
        values = [handle.value for handle in operands]
        for value in values:
            owner = value.owner.parent_op() if isinstance(value.owner, Operation) else None
            if owner is not self.trace:
                raise CompileError("the handle belongs to another schedule")
        return self._record(kind.create(operands=values, properties=properties or {}))

    def _record(self, step: sched.StepOp) -> sched.StepOp:
        """Run a step and add it, with a result for each handle it gives, to the trace."""
        try:
            found = self._replay.evaluate(step)
        except Exception:
            step.erase()
            raise
        given = list(found) if type(step).get_irdl_definition().results else []
        recorded = type(step).create(
            operands=list(step.operands),
            result_types=[sched.LOOP if isinstance(op, ForOp) else sched.BLOCK for op in given],
            properties=dict(step.properties),
        )
        for result, op in zip(recorded.results, given, strict=True):
            result.name_hint = _hint(op)
        self._replay.bind(recorded, given)
        step.erase()
        self.trace.body.block.add_op(recorded)
        return recorded

    def _loops(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> list[LoopHandle]:
        return [LoopHandle(result) for result in self._run(kind, operands, properties).results]

    def _blocks(
        self,
        kind: type[sched.StepOp],
        operands: Sequence[BlockHandle | LoopHandle],
        properties: dict[str, Attribute] | None = None,
    ) -> list[BlockHandle]:
        return [BlockHandle(result) for result in self._run(kind, operands, properties).results]

    def __repr__(self) -> str:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions(self.mod))
        return f"Schedule of {names} after {len(list(self.trace.body.block.ops))} steps"


def _hint(op: Operation) -> str | None:
    """The name a handle prints with: that of its loop, or the block's in lower case."""
    if isinstance(op, ForOp):
        return op.induction_variable.name_hint
    if isinstance(op, BlockOp):
        name = op.label.lower()
        return name if SSAValue.is_valid_name(name) else "block"
    return None


def _ints(values: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


def _cache_properties(index: int, scope: str) -> dict[str, Attribute]:
    return {"index": IntegerAttr(index, i64), "scope": StringAttr(scope)}
