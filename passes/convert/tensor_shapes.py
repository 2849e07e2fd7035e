"""Shapes of tensors, by the values that define them."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from weft.dialects.integer_arith import constant_integer
from weft.dialects.upstream.views import kept_dimensions
from weft.passes.convert.tensor_places import (
    Extent,
    Placement,
    destinations,
    dynamic_sizes,
    initial_of,
    is_tensor,
    offsets_sizes_strides,
    shape_of_tensor,
)


class TensorShapes:
    """Shapes of a function's tensors, some of which `placement` has decided."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def extents(self, value: SSAValue) -> tuple[Extent, ...]:
        return tuple(self.extent(value, d) for d in range(len(shape_of_tensor(value))))

    def extent(self, value: SSAValue, dimension: int) -> Extent:
        number = shape_of_tensor(value)[dimension]
        if number != DYNAMIC_INDEX:
            return number
        if value in self._placement.extents:
            return self._placement.extents[value][dimension]
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            initial = None if loop is None else initial_of(value, loop)
            return (value, dimension) if initial is None else self.extent(initial, dimension)
        owner = cast("OpResult[Attribute]", value).op
        if owner.name in ("tensor.empty", "tensor.splat", "tensor.generate", "bufferization.alloc_tensor"):
            sizes = dynamic_sizes(owner)
            if len(sizes) == shape_of_tensor(value).count(DYNAMIC_INDEX):
                return self.of_index(sizes[shape_of_tensor(value)[:dimension].count(DYNAMIC_INDEX)])
        if owner.name.startswith("linalg.") or owner.name == "scf.forall":
            at = destinations(owner)[owner.results.index(cast("OpResult[Attribute]", value))]
            return self.extent(owner.operands[at], dimension)
        if owner.name in ("tensor.insert_slice", "tensor.insert", "bufferization.materialize_in_destination"):
            return self.extent(owner.operands[1], dimension)
        if owner.name == "tensor.cast":
            return self.extent(owner.operands[0], dimension)
        if owner.name == "tensor.extract_slice":
            sizes = offsets_sizes_strides(owner)[1]
            size = sizes[kept_dimensions(sizes, shape_of_tensor(value))[dimension]]
            return size if isinstance(size, int) else self.of_index(size)
        if isinstance(owner, scf.ForOp):
            return self.extent(owner.iter_args[owner.results.index(cast("OpResult[Attribute]", value))], dimension)
        if isinstance(owner, scf.WhileOp) and value in self._placement.carrier:
            return self.extent(self._placement.carrier[value], dimension)
        if owner.name.startswith(("arith.", "math.")):
            return self.extent(next(filter(is_tensor, owner.operands)), dimension)
        return (value, dimension)

    def of_index(self, value: SSAValue) -> Extent:
        owner = value.owner
        number = constant_integer(value)
        if number is not None:
            return number
        if isinstance(owner, tensor.DimOp):
            dimension = constant_integer(owner.index)
            if dimension is not None and is_tensor(owner.source):
                return self.extent(owner.source, dimension)
        return value
