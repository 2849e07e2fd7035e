"""`Schedule`: each method runs one step on a module and records it.

Generated from the declarations of the steps (`dialects/sched.py`) by
`python docs/generators/schedule_methods.py > schedule/schedule.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir.affine import AffineMap

from weft.passes.schedule.annotate import Annotation
from weft.schedule.recording import BlockHandle, IntHandle, LoopHandle, step_methods
from weft.schedule.step_calls import BufferOf, IndexMap, StepCalls

__all__ = ["Annotation", "BlockHandle", "BufferOf", "IndexMap", "IntHandle", "LoopHandle", "Schedule"]


@step_methods
class Schedule(StepCalls):
    """A module being scheduled, a copy of the given one, and the trace of its steps.

    Names and parameters follow the field's: `sch.split(loop, factors=[None, 4])`, `sch.cache_read(block, 0, "local")`.
    A method that would change results raises `ScheduleError` and has no effect; a consumed handle raises
    `CompileError`. `docs/primitives.md` lists the requirements of each method.
    """

    def get_loops(self, block: BlockHandle | str) -> list[LoopHandle]:
        """The loops around a block (a handle or a name), outermost first."""
        return self._step("get_loops", block=block)

    def get_producers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of the scope that write a buffer that the block reads."""
        return self._step("get_producers", block=block)

    def get_consumers(self, block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks of the scope that read a buffer that the block writes."""
        return self._step("get_consumers", block=block)

    def get_child_blocks(self, block_or_loop: BlockHandle | LoopHandle | str) -> list[BlockHandle]:
        """The outermost blocks in the body of a block or loop, in order."""
        return self._step("get_child_blocks", block_or_loop=block_or_loop)

    def get_output_blocks(self, scope_block: BlockHandle | str) -> list[BlockHandle]:
        """The blocks in a block, possibly the root, that write buffers other than temporaries, in order."""
        return self._step("get_output_blocks", scope_block=scope_block)

    def sample_perfect_tile(
        self, loop: LoopHandle, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[IntHandle]:
        """Sample n factors whose product is the extent of a loop."""
        return self._step(
            "sample_perfect_tile", loop=loop, n=n, max_innermost_factor=max_innermost_factor, decision=decision
        )

    def sample_partitioned_tile(
        self,
        loop: LoopHandle,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[IntHandle]:
        """Sample n factors whose product is the extent of a loop; those from a position on multiply to a multiple."""
        return self._step(
            "sample_partitioned_tile",
            loop=loop,
            n=n,
            partition_pos=partition_pos,
            innerpart_factor=innerpart_factor,
            decision=decision,
        )

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> IntHandle:
        """Sample one of several integers; `decision` is its position."""
        return self._step("sample_categorical", candidates=candidates, probs=probs, decision=decision)

    def sample_compute_location(self, block: BlockHandle | str, decision: int | None = None) -> LoopHandle:
        """Sample a loop at which a producer is computed, for `compute_at`."""
        return self._step("sample_compute_location", block=block, decision=decision)

    def split(
        self,
        loop: LoopHandle,
        factors: Sequence[int | IntHandle | None],
        *,
        disable_predication: bool = False,
        preserve_unit_iters: object = None,
    ) -> list[LoopHandle]:
        """Split a loop into `len(factors)` loops; None (at most one) is inferred."""
        return self._step("split", loop=loop, factors=factors, disable_predication=disable_predication)

    def fuse(self, *loops: LoopHandle, preserve_unit_iters: object = None) -> LoopHandle:
        """Fuse nested loops, outermost first, into one."""
        return self._step("fuse", loops=loops)

    def tile(self, *loops: LoopHandle, factors: Sequence[int | IntHandle]) -> list[LoopHandle]:
        """Split each loop of a perfect nest by its factor; returns the outer, then the tile loops."""
        return self._step("tile", loops=loops, factors=factors)

    def reorder(self, *loops: LoopHandle) -> None:
        """Reorder loops of one chain."""
        self._step("reorder", loops=loops)

    def parallel(self, loop: LoopHandle) -> None:
        """Distribute the iterations over threads."""
        self._step("parallel", loop=loop)

    def vectorize(self, loop: LoopHandle) -> None:
        """Turn the iterations into vector lanes."""
        self._step("vectorize", loop=loop)

    def unroll(self, loop: LoopHandle) -> None:
        """Mark the loop to be fully unrolled by LLVM or the C compiler."""
        self._step("unroll", loop=loop)

    def bind(self, loop: LoopHandle, thread_axis: str) -> None:
        """Bind the iterations to threads (`"threadIdx.x"`) or thread blocks (`"blockIdx.x"`)."""
        self._step("bind", loop=loop, thread_axis=thread_axis)

    def merge(self, *loops: LoopHandle) -> LoopHandle:
        """Merge consecutive loops of equal extent into one."""
        return self._step("merge", loops=loops)

    def loop_partition(
        self, loop: LoopHandle, factors: Sequence[int | IntHandle | None], *, preserve_unit_iters: object = None
    ) -> list[LoopHandle]:
        """Split the range of a loop into consecutive loops of the given extents; None (at most one) is inferred."""
        return self._step("loop_partition", loop=loop, factors=factors)

    def add_unit_loop(self, block_or_loop: BlockHandle | LoopHandle | str) -> LoopHandle:
        """Add a loop of one iteration around a block or loop."""
        return self._step("add_unit_loop", block_or_loop=block_or_loop)

    def reorder_block_iter_var(self, block: BlockHandle | str, new_order: Sequence[int]) -> None:
        """Reorder the iterators of a block."""
        self._step("reorder_block_iter_var", block=block, new_order=new_order)

    def annotate(
        self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str, ann_val: Annotation | IntHandle
    ) -> None:
        """Attach an annotation to a block or loop."""
        self._step("annotate", block_or_loop=block_or_loop, ann_key=ann_key, ann_val=ann_val)

    def unannotate(self, block_or_loop: BlockHandle | LoopHandle | str, ann_key: str) -> None:
        """Remove an annotation from a block or loop."""
        self._step("unannotate", block_or_loop=block_or_loop, ann_key=ann_key)

    def compute_at(
        self, block: BlockHandle | str, loop: LoopHandle, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a producer into a loop of its consumers, to position `index`: -1 is the last, -2 the first."""
        self._step("compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops, index=index)

    def reverse_compute_at(
        self, block: BlockHandle | str, loop: LoopHandle, preserve_unit_loops: bool = False, index: int = -1
    ) -> None:
        """Move a consumer into a loop of its producers, to position `index`: -1 is the last, -2 the first."""
        self._step("reverse_compute_at", block=block, loop=loop, preserve_unit_loops=preserve_unit_loops, index=index)

    def compute_inline(self, block: BlockHandle | str) -> None:
        """Inline a producer into every block that reads it."""
        self._step("compute_inline", block=block)

    def reverse_compute_inline(self, block: BlockHandle | str) -> None:
        """Inline a consumer into the block that it reads."""
        self._step("reverse_compute_inline", block=block)

    def cache_read(
        self,
        block: BlockHandle | str,
        read_buffer_index: int | str,
        storage_scope: str,
        consumer_blocks: Sequence[BlockHandle | str] | None = None,
    ) -> BlockHandle:
        """Read a copy of the index-th (or named) buffer that the block reads, in all or the given blocks of the scope.
        Returns the copying block."""
        return self._step(
            "cache_read",
            block=block,
            read_buffer_index=read_buffer_index,
            storage_scope=storage_scope,
            consumer_blocks=consumer_blocks,
        )

    def cache_write(
        self,
        block: BlockHandle | str,
        write_buffer_index: int | str,
        storage_scope: str,
        consumer_blocks: Sequence[BlockHandle | str] | None = None,
    ) -> BlockHandle:
        """Write a copy of the index-th (or named) buffer that the block writes; the given blocks read the copy. Returns
        the copying block."""
        return self._step(
            "cache_write",
            block=block,
            write_buffer_index=write_buffer_index,
            storage_scope=storage_scope,
            consumer_blocks=consumer_blocks,
        )

    def cache_inplace(
        self, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str
    ) -> list[BlockHandle]:
        """Update a copy of the index-th (or named) buffer that a block reads. Returns the blocks that copy to it and
        back."""
        return self._step(
            "cache_inplace", block=block, read_buffer_index=read_buffer_index, storage_scope=storage_scope
        )

    def cache_index(self, block: BlockHandle | str, storage_scope: str, cse_thresh: int = 0) -> list[BlockHandle]:
        """Precompute the load indices of a block before its nest. Returns the computing blocks."""
        return self._step("cache_index", block=block, storage_scope=storage_scope, cse_thresh=cse_thresh)

    def read_at(
        self, loop: LoopHandle, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str
    ) -> BlockHandle:
        """Read a copy of the elements of a buffer that an iteration of `loop` reads. Returns the copying block."""
        return self._step(
            "read_at", loop=loop, block=block, read_buffer_index=read_buffer_index, storage_scope=storage_scope
        )

    def write_at(
        self, loop: LoopHandle, block: BlockHandle | str, write_buffer_index: int | str, storage_scope: str
    ) -> BlockHandle:
        """Write a copy of the elements of a buffer that an iteration of `loop` writes. Returns the copying block."""
        return self._step(
            "write_at", loop=loop, block=block, write_buffer_index=write_buffer_index, storage_scope=storage_scope
        )

    def set_scope(self, block: BlockHandle | str, buffer_index: int | str, storage_scope: str) -> None:
        """Move the index-th (or named) temporary that the block writes to a memory scope."""
        self._step("set_scope", block=block, buffer_index=buffer_index, storage_scope=storage_scope)

    def decompose_reduction(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Move the init of a reduction to a separate block before `loop`. Returns that block."""
        return self._step("decompose_reduction", block=block, loop=loop)

    def fuse_reduction_epilogue(self, reduction_block: BlockHandle | str, epilogue_block: BlockHandle | str) -> None:
        """Initialise a reduction with the operand, such as a bias, that an epilogue block combines with its result."""
        self._step("fuse_reduction_epilogue", reduction_block=reduction_block, epilogue_block=epilogue_block)

    def rfactor(self, loop: LoopHandle, factor_axis: int) -> BlockHandle:
        """Reduce to partial results for each iteration of `loop`, in a new dimension, then over these. Returns the
        block of the partial results."""
        return self._step("rfactor", loop=loop, factor_axis=factor_axis)

    def blockize(
        self, target: LoopHandle | BlockHandle | Sequence[BlockHandle | str], *, preserve_unit_iters: object = None
    ) -> BlockHandle:
        """Combine a loop and its body, or several blocks, into one block, which is returned."""
        return self._step("blockize", target=target)

    def tensorize(
        self, block_or_loop: BlockHandle | LoopHandle | str, tensor_intrin: str, *, preserve_unit_iters: object = None
    ) -> None:
        """Replace a block, or a loop and its body, by a registered tensor intrinsic."""
        self._step("tensorize", block_or_loop=block_or_loop, tensor_intrin=tensor_intrin)

    def storage_align(
        self, block: BlockHandle | str, buffer_index: int | str, axis: int, factor: int, offset: int
    ) -> None:
        """Make the stride of an axis of a temporary a multiple of `factor` plus `offset`."""
        self._step("storage_align", block=block, buffer_index=buffer_index, axis=axis, factor=factor, offset=offset)

    def annotate_buffer_access(
        self, block: BlockHandle | str, buffer_index: int | str, buf_type: str, gen_new_ranges: IndexMap
    ) -> None:
        """State the region of a buffer that a block reads (`buf_type` "read") or writes ("write"):
        `gen_new_ranges(*iterators)` returns for each dimension a `(begin, end)` or an index, or alternating begins and
        ends."""
        self._step(
            "annotate_buffer_access",
            block=block,
            buffer_index=buffer_index,
            buf_type=buf_type,
            gen_new_ranges=gen_new_ranges,
        )

    def reindex(self, block: BlockHandle | str, buffer: BufferOf) -> BlockHandle:
        """Access a copy of a buffer that is indexed only by the iterators of the block. Returns the copying block."""
        return self._step("reindex", block=block, buffer=buffer)

    def reindex_cache_read(
        self, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str, index_map: IndexMap
    ) -> BlockHandle:
        """Read a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the copying block."""
        return self._step(
            "reindex_cache_read",
            block=block,
            read_buffer_index=read_buffer_index,
            storage_scope=storage_scope,
            index_map=index_map,
        )

    def reindex_cache_write(
        self, block: BlockHandle | str, write_buffer_index: int | str, storage_scope: str, index_map: IndexMap
    ) -> BlockHandle:
        """Write a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the block that copies
        back."""
        return self._step(
            "reindex_cache_write",
            block=block,
            write_buffer_index=write_buffer_index,
            storage_scope=storage_scope,
            index_map=index_map,
        )

    def transform_layout(
        self,
        block: BlockHandle | str,
        buffer: BufferOf,
        index_map: IndexMap,
        pad_value: float | str | Callable[..., object] | AffineMap | None = None,
        *,
        assume_injective_transform: object = None,
    ) -> None:
        """Store a buffer that the block accesses in another layout: its element at `indices` moves to
        `index_map(*indices)`.

        Padding elements of the new buffer get `pad_value`, a number or a function of the new indices; those of a
        temporary may be "undefined". If the buffer is a parameter, callers pass it in the new layout.
        """
        self._step("transform_layout", block=block, buffer=buffer, index_map=index_map, pad_value=pad_value)

    def transform_block_layout(self, block: BlockHandle | str, index_map: IndexMap) -> list[LoopHandle]:
        """Transform the domain of a block: the instance at `indices` moves to `index_map(*indices)`. Returns the new
        loops."""
        return self._step("transform_block_layout", block=block, index_map=index_map)

    def recode(self, block: BlockHandle | str, read_buffer_index: int | str, encoding: str) -> list[BlockHandle]:
        """Read a factor of a sum of products from a copy in another integer encoding: "unsigned", "signed", or a wider
        type such as "int16". Returns the copying block and, for the first two, the block that sums up the other factor
        and the block that writes the results."""
        return self._step("recode", block=block, read_buffer_index=read_buffer_index, encoding=encoding)

    def decompose_padding(self, block: BlockHandle | str, loop: LoopHandle) -> BlockHandle:
        """Separate a padding block into a fill with the padding value before `loop`, and a copy without predicates.
        Returns the fill block."""
        return self._step("decompose_padding", block=block, loop=loop)

    def pad_einsum(self, block: BlockHandle | str, padding: Sequence[int]) -> None:
        """Pad the iterator extents of a block to multiples, over padded copies of its buffers."""
        self._step("pad_einsum", block=block, padding=padding)

    def rolling_buffer(self, block: BlockHandle | str, write_buffer_index: int | str) -> None:
        """Keep the overlap of the windows of consecutive iterations in a circular buffer."""
        self._step("rolling_buffer", block=block, write_buffer_index=write_buffer_index)
