"""`Schedule`: each method runs one primitive on a module and records it as a `sched` step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute

from weft.analysis.structure import functions
from weft.dialects import sched
from weft.schedule.layout_steps import LayoutSteps
from weft.schedule.loop_steps import LoopSteps
from weft.schedule.neutral_options import ANY, accepts, step_methods
from weft.schedule.padding_steps import PaddingSteps
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle
from weft.support.errors import CompileError

__all__ = ["BlockHandle", "IntHandle", "LoopHandle", "Schedule"]


@step_methods
class Schedule(LoopSteps, LayoutSteps, PaddingSteps):
    """A module being scheduled, and the trace of what was done.

    The given module stays as it is: the schedule works on a copy. Names and parameters follow the field's:
    `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`. Every method checks that the result means
    the same; one that is refused raises `ScheduleError` and changes nothing. A used-up handle raises `CompileError`.
    """

    def get_loops(self, block: BlockHandle | str) -> list[LoopHandle]:
        """The loops around a block (a handle or a name), outermost first."""
        return self._loops(sched.GetLoopsOp, [self._block(block)])

    def get_producers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of its scope that write what the block reads."""
        return self._blocks(sched.GetProducersOp, [self._block(block)])

    def get_consumers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of its scope that read what the block writes."""
        return self._blocks(sched.GetConsumersOp, [self._block(block)])

    def get_child_blocks(self, block_or_loop: BlockHandle | LoopHandle | str) -> list[BlockHandle]:
        """The blocks inside the body of a block or loop that are in no other block there, in order."""
        return self._blocks(sched.GetChildBlocksOp, [self._target(block_or_loop)])

    def compute_at(
        self, block: BlockHandle | str, loop: LoopHandle, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a producer under a loop of its consumers, to the `index`-th place in it: -1 is the last place,
        -2 the first. See `ComputeAt`."""
        self._run(sched.ComputeAtOp, [self._block(block), loop], _move_properties(preserve_unit_loops, index))

    def reverse_compute_at(
        self, block: BlockHandle | str, loop: LoopHandle, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a consumer under a loop of its producers, to the `index`-th place in it: -1 is the last place,
        -2 the first. See `ReverseComputeAt`."""
        self._run(sched.ReverseComputeAtOp, [self._block(block), loop], _move_properties(preserve_unit_loops, index))

    def compute_inline(self, block: BlockHandle | str) -> None:
        """Make a producer part of every block that reads it. See `ComputeInline`."""
        self._run(sched.ComputeInlineOp, [self._block(block)])

    def reverse_compute_inline(self, block: BlockHandle | str) -> None:
        """Make a consumer part of the block it reads. See `ReverseComputeInline`."""
        self._run(sched.ReverseComputeInlineOp, [self._block(block)])

    def cache_read(
        self,
        block: BlockHandle | str,
        read_buffer_index: int | str,
        storage_scope: str,
        consumer_blocks: Sequence[BlockHandle | str] | None = None,
    ) -> BlockHandle:
        """Read a copy of the index-th (or named) buffer that the block reads; all blocks of the scope do, or
        those given. Returns the copying block. See `CacheRead`."""
        handle = self._block(block)
        index = self._buffer_index(handle, read_buffer_index, reading=True)
        properties = _cache_properties(index, storage_scope) | self._consumers(consumer_blocks)
        return self._blocks(sched.CacheReadOp, [handle], properties)[0]

    def cache_write(
        self,
        block: BlockHandle | str,
        write_buffer_index: int | str,
        storage_scope: str,
        consumer_blocks: Sequence[BlockHandle | str] | None = None,
    ) -> BlockHandle:
        """Write a copy of the index-th (or named) buffer that the block writes; blocks that are given read the
        copy, too. Returns the copying block. See `CacheWrite`."""
        handle = self._block(block)
        index = self._buffer_index(handle, write_buffer_index, reading=False)
        properties = _cache_properties(index, storage_scope) | self._consumers(consumer_blocks)
        return self._blocks(sched.CacheWriteOp, [handle], properties)[0]

    def cache_inplace(
        self, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str
    ) -> list[BlockHandle]:
        """Let a block update a copy of the index-th (or named) buffer that it reads. Returns the blocks that copy to it
        and back. See `CacheInplace`."""
        handle = self._block(block)
        index = self._buffer_index(handle, read_buffer_index, reading=True)
        return self._blocks(sched.CacheInplaceOp, [handle], _cache_properties(index, storage_scope))

    def cache_index(self, block: BlockHandle | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockHandle]:
        """Compute indices at which a block loads once, before its nest. Returns the computing blocks. See
        `CacheIndex`."""
        properties: dict[str, Attribute] = {
            "scope": StringAttr(storage_scope),
            "cse_thresh": IntegerAttr(cse_thresh, i64),
        }
        return self._blocks(sched.CacheIndexOp, [self._block(block)], properties)

    def read_at(
        self, loop: LoopHandle, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str
    ) -> BlockHandle:
        """Read a copy of what an iteration of `loop` reads of a buffer. Returns the copying block. See `ReadAt`."""
        handle = self._block(block)
        index = self._buffer_index(handle, read_buffer_index, reading=True)
        return self._blocks(sched.ReadAtOp, [loop, handle], _cache_properties(index, storage_scope))[0]

    def write_at(
        self, loop: LoopHandle, block: BlockHandle | str, write_buffer_index: int | str, storage_scope: str
    ) -> BlockHandle:
        """Write a copy of what an iteration of `loop` writes of a buffer. Returns the copying block. See `WriteAt`."""
        handle = self._block(block)
        index = self._buffer_index(handle, write_buffer_index, reading=False)
        return self._blocks(sched.WriteAtOp, [loop, handle], _cache_properties(index, storage_scope))[0]

    def _consumers(self, blocks: Sequence[BlockHandle | str] | None) -> dict[str, Attribute]:
        if not blocks:
            return {}
        names = [block if isinstance(block, str) else self._replay.block(block.value).label for block in blocks]
        return {"consumer_blocks": ArrayAttr([StringAttr(name) for name in names])}

    def set_scope(self, block: BlockHandle | str, buffer_index: int | str, storage_scope: str) -> None:
        """Move the index-th (or named) temporary that the block writes to a memory scope. See `SetScope`."""
        handle = self._block(block)
        index = self._buffer_index(handle, buffer_index, reading=False)
        self._run(sched.SetScopeOp, [handle], _cache_properties(index, storage_scope))

    def unsafe_set_dtype(self, block: BlockHandle | str, buffer_index: int | str, dtype: str) -> NoReturn:
        """Refused, with the reason: elements of another type round or wrap in another way, so that results change."""
        name = block if isinstance(block, str) else self._replay.block(block.value).label
        raise CompileError(
            f"unsafe_set_dtype: buffer {buffer_index!r} of block '{name}' as {dtype} would change what the program "
            "computes; cast in the program, or recode integers that fit (`recode`)"
        )

    def decompose_reduction(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Give the init of a reduction its own block, before `loop`. Returns that block. See `DecomposeReduction`."""
        return self._blocks(sched.DecomposeReductionOp, [self._block(block), loop])[0]

    def fuse_reduction_epilogue(self, reduction_block: BlockHandle | str, epilogue_block: BlockHandle | str) -> None:
        """Let a reduction start from what a block combines with its result, such as a bias. See
        `FuseReductionEpilogue`."""
        blocks = [self._block(reduction_block), self._block(epilogue_block)]
        self._run(sched.FuseReductionEpilogueOp, blocks)

    def rfactor(self, loop: LoopHandle, factor_axis: int) -> BlockHandle:
        """Reduce in two steps: partial results for each iteration of `loop`, in a new dimension, then all of them.

        Returns the block of the partial results. See `Rfactor`."""
        properties: dict[str, Attribute] = {"factor_axis": IntegerAttr(factor_axis, i64)}
        return self._blocks(sched.RfactorOp, [loop], properties)[0]

    @accepts(preserve_unit_iters=ANY)
    def blockize(self, target: LoopHandle | BlockHandle | Sequence[BlockHandle | str]) -> BlockHandle:
        """Make one block of a loop and all in it, or of several blocks. Returns that block. See `Blockize`."""
        targets = [target] if isinstance(target, LoopHandle | BlockHandle) else [self._block(block) for block in target]
        return self._blocks(sched.BlockizeOp, targets)[0]

    def storage_align(
        self, block: BlockHandle | str, buffer_index: int | str, axis: int, factor: int, offset: int
    ) -> None:
        """Let the stride of an axis of a temporary be a multiple of `factor` plus `offset`. See `StorageAlign`."""
        handle = self._block(block)
        index = self._buffer_index(handle, buffer_index, reading=False)
        numbers = {"index": index, "axis": axis, "factor": factor, "offset": offset}
        self._run(sched.StorageAlignOp, [handle], {name: IntegerAttr(value, i64) for name, value in numbers.items()})

    @accepts(preserve_unit_iters=ANY)
    def tensorize(self, block_or_loop: BlockHandle | LoopHandle | str, tensor_intrin: str) -> None:
        """Let a registered tensor intrinsic do what a block, or all in a loop, does. See `Tensorize`."""
        self._run(sched.TensorizeOp, [self._target(block_or_loop)], {"intrinsic": StringAttr(tensor_intrin)})

    def __repr__(self) -> str:
        names = ", ".join(f"@{f.sym_name.data}" for f in functions(self.mod))
        return f"Schedule of {names} after {len(list(self.trace.body.block.ops))} steps"


def _move_properties(unit_loops: bool, index: int) -> dict[str, Attribute]:
    properties: dict[str, Attribute] = {"preserve_unit_loops": IntegerAttr(1, i1)} if unit_loops else {}
    return properties if index == -1 else {**properties, "index": IntegerAttr(index, i64)}


def _cache_properties(index: int, scope: str) -> dict[str, Attribute]:
    return {"index": IntegerAttr(index, i64), "scope": StringAttr(scope)}
