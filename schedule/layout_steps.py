"""`Schedule` methods on layouts of buffers and block iterators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, FloatAttr, IntegerAttr, MemRefType, StringAttr, f64, i64
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from weft.analysis.structure import buffers_read, buffers_written
from weft.dialects import sched
from weft.passes.schedule.layouts_functions import index_map_of, ranges_of, value_of
from weft.passes.schedule.primitive import BufferPlace, buffer_place
from weft.schedule.neutral_options import step_methods
from weft.schedule.recording import BlockHandle, LoopHandle, Recorder
from weft.support.errors import CompileError

IndexMap: TypeAlias = Callable[..., object] | AffineMap
"""`lambda n, c: (n, c // 4, c % 4)`: from old indices to new ones, with `+`, `-`, and `*`, `//`, `%` by constants."""
BufferOf: TypeAlias = Sequence[str | int] | str
"""A buffer of a block: `("read", 0)`, `("write", 0)`, or its name."""


@step_methods
class LayoutSteps(Recorder):
    """The layout methods of `Schedule`."""

    def transform_layout(
        self,
        block: BlockHandle | str,
        buffer: BufferOf,
        index_map: IndexMap,
        pad_value: float | Callable[..., object] | AffineMap | None = None,
    ) -> None:
        """Let a buffer that the block accesses lie in another layout: its element at `indices` comes to lie at
        `index_map(*indices)`. See `TransformLayout`.

        Elements that the new buffer has besides get `pad_value`, a number or a function of the new indices. When the
        buffer is a parameter, callers pass it in the new layout from then on.
        """
        handle = self._block(block)
        place = self._buffer_place(handle, buffer)
        map_ = index_map_of(index_map, self._rank(handle, place))
        properties: dict[str, Attribute] = {"buffer": _place_attribute(place), "index_map": AffineMapAttr(map_)}
        if pad_value is not None:
            properties["pad_value"] = _number(pad_value, len(map_.results))
        self._run(sched.TransformLayoutOp, [handle], properties)

    def transform_block_layout(self, block: BlockHandle | str, index_map: IndexMap) -> list[LoopHandle]:
        """Run a block over another domain: the instance at `indices` becomes the one at `index_map(*indices)`. Returns
        the new loops. See `TransformBlockLayout`."""
        handle = self._block(block)
        rank = len(self._replay.block(handle.value).iter_vars)
        properties: dict[str, Attribute] = {"index_map": AffineMapAttr(index_map_of(index_map, rank))}
        return self._loops(sched.TransformBlockLayoutOp, [handle], properties)

    def reindex(self, block: BlockHandle | str, buffer: BufferOf) -> BlockHandle:
        """Let a block access a copy of a buffer that is indexed by its iterators only. Returns the copying block. See
        `Reindex`."""
        handle = self._block(block)
        place = self._buffer_place(handle, buffer)
        return self._blocks(sched.ReindexOp, [handle], {"buffer": _place_attribute(place)})[0]

    def reindex_cache_read(
        self, block: BlockHandle | str, read_buffer_index: int | str, storage_scope: str, index_map: IndexMap
    ) -> BlockHandle:
        """Let a block read a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the copying block.
        See `ReindexCacheRead`."""
        properties = self._reindexed(block := self._block(block), read_buffer_index, storage_scope, index_map, True)
        return self._blocks(sched.ReindexCacheReadOp, [block], properties)[0]

    def reindex_cache_write(
        self, block: BlockHandle | str, write_buffer_index: int | str, storage_scope: str, index_map: IndexMap
    ) -> BlockHandle:
        """Let a block write a copy of a buffer in a memory scope, at `index_map(*iterators)`. Returns the block that
        copies it out. See `ReindexCacheWrite`."""
        properties = self._reindexed(block := self._block(block), write_buffer_index, storage_scope, index_map, False)
        return self._blocks(sched.ReindexCacheWriteOp, [block], properties)[0]

    def _reindexed(
        self, handle: BlockHandle, buffer: int | str, scope: str, index_map: IndexMap, reading: bool
    ) -> dict[str, Attribute]:
        rank = len(self._replay.block(handle.value).iter_vars)
        return {
            "index": IntegerAttr(self._buffer_index(handle, buffer, reading=reading), i64),
            "scope": StringAttr(scope),
            "index_map": AffineMapAttr(index_map_of(index_map, rank)),
        }

    def annotate_buffer_access(
        self, block: BlockHandle | str, buffer_index: int | str, buf_type: str, gen_new_ranges: IndexMap
    ) -> None:
        """State the region that a block touches of a buffer that it reads (`buf_type` "read") or writes ("write"):
        `gen_new_ranges(*iterators)` gives a `(begin, end)` for each dimension, or an index alone, or begins and ends in
        turn. See `AnnotateBufferAccess`."""
        handle = self._block(block)
        index = self._buffer_index(handle, buffer_index, reading=buf_type == "read")
        iterators, rank = len(self._replay.block(handle.value).iter_vars), self._rank(handle, (buf_type, index))
        properties: dict[str, Attribute] = {
            "index": IntegerAttr(index, i64),
            "buffer_type": StringAttr(buf_type),
            "region": AffineMapAttr(ranges_of(gen_new_ranges, iterators, rank)),
        }
        self._run(sched.AnnotateBufferAccessOp, [handle], properties)

    def recode(self, block: BlockHandle | str, read_buffer_index: int | str, encoding: str) -> list[BlockHandle]:
        """Read a factor of a sum of products from a copy that holds it as other integers: "unsigned", "signed", or a
        wider type such as "int16". Returns the copying block and, for the first two, the block that adds up the other
        factor and the one that writes the results. See `Recode`."""
        handle = self._block(block)
        index = self._buffer_index(handle, read_buffer_index, reading=True)
        properties: dict[str, Attribute] = {"index": IntegerAttr(index, i64), "encoding": StringAttr(encoding)}
        return self._blocks(sched.RecodeOp, [handle], properties)

    def _buffer_place(self, handle: BlockHandle, buffer: BufferOf) -> BufferPlace:
        if isinstance(buffer, str):
            return buffer_place(self._replay.block(handle.value), buffer)
        match tuple(buffer):
            case ("read" | "write" as verb, int(index)):
                return verb, index
            case other:
                raise CompileError(f"a buffer is given as ('read', 0), ('write', 0) or by its name, got {other!r}")

    def _rank(self, handle: BlockHandle, place: BufferPlace) -> int | None:
        """The number of dimensions of a buffer; None when there is no such buffer, which the primitive refuses."""
        block = self._replay.block(handle.value)
        found = buffers_read(block) if place[0] == "read" else buffers_written(block)
        type_ = found[place[1]].type if 0 <= place[1] < len(found) else None
        return type_.get_num_dims() if isinstance(type_, MemRefType) else None


def _place_attribute(place: BufferPlace) -> Attribute:
    return ArrayAttr([StringAttr(place[0]), IntegerAttr(place[1], i64)])


def _number(value: float | Callable[..., object] | AffineMap, rank: int) -> Attribute:
    found = value if isinstance(value, int | float | AffineMap) else value_of(value, rank)
    if isinstance(found, AffineMap):
        return AffineMapAttr(found)
    return FloatAttr(found, f64) if isinstance(found, float) else IntegerAttr(int(found), i64)
