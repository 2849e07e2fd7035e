"""Tensors of a graph function that are views of the memory of others: results of calls that only copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from weft.dialects.graph import CallTirOp, MatchShapeOp, Tensor
from weft.dialects.graph_control import CONTROL
from weft.dialects.graph_shapes import EXTENTS, KnownExtent, names_in, shape_of
from weft.passes.graph.contiguous_copies import ContiguousCopies, Copied, known_shape


class Views:
    """Redundant calls, and the memory of the tensors of a function without them.

    Data of the caller must not change: a result is not a view of a parameter, and a view of a caller's buffer starts
    at its start, since `memref.view` requires a byte buffer. Without parts, all views do.
    """

    def __init__(
        self, function: FuncOp, returned: Sequence[SSAValue], copies: ContiguousCopies | None, has_parts: bool = True
    ) -> None:
        self.calls = set[CallTirOp]()
        """The redundant calls."""
        self.shifted = set[SSAValue]()
        """Tensors that contain views that start at a nonzero offset."""
        self.held_by: dict[SSAValue, SSAValue] = {}
        """Maps a tensor that is stored in a result of the function to the result."""
        self._returned = set(returned)
        self._has_parts = has_parts
        self._around: dict[SSAValue, tuple[SSAValue, KnownExtent]] = {}
        """Maps a tensor to the one that contains it, and its offset in elements."""
        self._segment: dict[SSAValue, int] = {}
        """Maps a tensor to the number of names bound by `graph.match_shape` before the first tensor in its memory."""
        self._names: dict[str, int] = {}
        """Maps a bound name to the number of names bound before the op that binds it, plus 1."""
        for op in function.body.block.ops:
            if isinstance(op, MatchShapeOp):
                self._names.update(dict.fromkeys(op.bound_names, len(self._names) + 1))
            self._segment.update(dict.fromkeys(op.results, len(self._names)))
            parts = copies.of(op) if isinstance(op, CallTirOp) and copies is not None else ()
            if isinstance(op, CallTirOp) and parts and not self._takes_bound(op) and self._are_views(op, parts):
                self.calls.add(op)

    def _takes_bound(self, call: CallTirOp) -> bool:
        """Whether the call takes numbers that depend on data: results stay in the arena of their part."""
        return any(name in self._names for extent in call.passed_extents for name in names_in(extent))

    def place(self, tensor: SSAValue) -> tuple[SSAValue, KnownExtent]:
        """Returns the tensor whose memory contains `tensor`, and the offset in elements."""
        before: KnownExtent = 0
        while tensor in self._around:
            tensor, offset = self._around[tensor]
            before += offset
        return tensor, before

    def _are_views(self, call: CallTirOp, parts: Sequence[Sequence[Copied]]) -> bool:
        pairs = list(zip(call.results, parts, strict=True))
        if len(pairs) == 1 and len(parts[0]) > 1:
            return self._joins(call.results[0], [(call.operands[part.operand], part.offset) for part in parts[0]])
        sources = [(result, call.operands[own[0].operand], own[0].offset) for result, own in pairs if len(own) == 1]
        if len(sources) < len(pairs) or not all(self._can_lie_in(*source) for source in sources):
            return False
        for result, source, offset in sources:
            self._put(result, source, offset)
        return True

    def _can_lie_in(self, result: SSAValue, source: SSAValue, offset: KnownExtent) -> bool:
        root, before = self.place(source)
        before += offset
        if result not in self._returned:
            return before == 0 or (self._has_parts and self._is_own(root))
        is_whole = before == 0 and _elements(root) == _elements(result)
        return is_whole and self._is_own(root) and root not in self.shifted

    def _put(self, result: SSAValue, source: SSAValue, offset: KnownExtent) -> None:
        root, before = self.place(source)
        if result in self._returned:
            self.held_by[root] = result
        elif before + offset != 0:
            self.shifted.add(root)
        self._around[result] = source, offset

    def _joins(self, result: SSAValue, parts: Sequence[tuple[SSAValue, KnownExtent]]) -> bool:
        roots = [self.place(part)[0] for part, _ in parts]
        if not self._has_parts or result in self._returned or len(set(roots)) < len(roots):
            return False
        if not all(self._is_own(root) and self._is_whole(part) for (part, _), root in zip(parts, roots, strict=True)):
            return False
        # The memory is allocated before the first part is computed.
        first = min(self._segment[root] for root in roots)
        names = {name for extent in shape_of(cast("Tensor", result.type)) for name in names_in(extent)}
        if any(self._names.get(name, 0) > first for name in names):
            return False
        self._segment[result] = first
        for root, (_, offset) in zip(roots, parts, strict=True):
            self._around[root] = result, offset * -1
        self.shifted.add(result)
        return True

    def _is_whole(self, tensor: SSAValue) -> bool:
        root, before = self.place(tensor)
        return before == 0 and _elements(root) == _elements(tensor)

    def _is_own(self, root: SSAValue) -> bool:
        return isinstance(root.owner, _COMPUTE) and root not in self._returned and root not in self.held_by


_COMPUTE = (CallTirOp, *CONTROL)
"""Ops that write results to any given buffers. Registered functions need separate arrays."""


def _elements(tensor: SSAValue) -> KnownExtent | None:
    shape = known_shape(tensor)
    return None if shape is None else EXTENTS.product(shape)
