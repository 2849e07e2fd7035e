"""Tensors known at import: weights, and shapes, whose elements may be symbolic extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation, SSAValue

from weft.dialects.constant_data import dense_attribute, elements_of
from weft.dialects.element_types import TYPES, element_name
from weft.dialects.graph import ConstantOp, Tensor, dense_value
from weft.dialects.graph_shapes import Expression, KnownExtent
from weft.frontends.graph_builder import Value, operator
from weft.interp.graph import operator as computed
from weft.interp.values import array_of_dense
from weft.texpr.graph_operators import Operator

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALL: Final = 1 << 14
"""Maximum number of elements of a tensor that is folded at import."""


@dataclass(frozen=True, eq=False)
class KnownTensor:
    """If elements are symbolic, the array contains objects: numbers and expressions."""

    array: NDArray[Any]
    dtype: str
    name: str | None = None
    """The name of its value, if the model has one."""
    attribute: DenseIntOrFPElementsAttr | None = None
    """The tensor as a constant, which shares the memory of the array."""

    @staticmethod
    def copy_of(array: NDArray[Any], dtype: str) -> KnownTensor:
        """A copy of an array, which all constants made of it share."""
        attribute = dense_attribute(_plain(array), TYPES[dtype])
        return KnownTensor(elements_of(attribute).view(array.dtype), dtype, attribute=attribute)

    @staticmethod
    def of(elements: Any, dtype: str = "int64") -> KnownTensor:
        array = np.asarray(elements, dtype=object)
        if any(isinstance(element, Expression) for element in array.flat):
            return KnownTensor(array, dtype)
        return KnownTensor(array.astype(dtype), dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def ndim(self) -> int:
        return self.array.ndim

    @property
    def is_symbolic(self) -> bool:
        return self.array.dtype == np.object_

    def extents(self) -> tuple[KnownExtent, ...]:
        return tuple(e if isinstance(e, Expression) else int(e) for e in self.array.flat)

    def constant(self) -> Value:
        """The tensor as a value, whose operator is detached."""
        if not self.is_symbolic:
            op = ConstantOp(self.attribute or dense_attribute(_plain(self.array), TYPES[self.dtype]))
            op.result.name_hint = self.name
            return Value(op.result)
        flat = operator("extents")(self.extents(), dtype="int64" if self.dtype == "bool" else self.dtype)
        flat = operator("cast")(flat, "bool") if self.dtype == "bool" else flat
        return cast("Value", operator("reshape")(flat, self.shape))


Item: TypeAlias = Value | KnownTensor
"""An item: the tensor of a name of a model."""


@dataclass(frozen=True, eq=False)
class TensorSequence:
    """A sequence whose length is known at import."""

    items: tuple[Item, ...]


@dataclass(frozen=True, eq=False)
class Absent:
    """An optional without a value; others are represented by the value."""


Entry: TypeAlias = Item | TensorSequence | Absent
"""An entry: the meaning of a name of a model."""


def tensors_of(entry: Entry) -> tuple[Item, ...]:
    if isinstance(entry, TensorSequence):
        return entry.items
    return () if isinstance(entry, Absent) else (entry,)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """weft's representation: bfloat16 as bits."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def evaluated(value: Value, found: dict[SSAValue, KnownTensor | None]) -> KnownTensor | None:
    """The elements if small and computed from constants. `found` caches results."""
    if value.ssa not in found:
        found[value.ssa] = None
        found |= _evaluated(value, found)
    return found[value.ssa]


def _evaluated(value: Value, found: Mapping[SSAValue, KnownTensor | None]) -> Mapping[SSAValue, KnownTensor | None]:
    """The elements of the value and of those that it is computed from."""
    arrays: dict[SSAValue, NDArray[Any]] = {}
    pending: list[tuple[SSAValue, bool]] = [(value.ssa, False)]
    while pending:
        current, is_ready = pending.pop()
        op, known = current.owner, found.get(current)
        if current in arrays:
            continue
        if known is not None:
            arrays[current] = known.array.astype("float32") if known.dtype == "bfloat16" else known.array
            continue
        is_unknown = current in found and current is not value.ssa
        if is_unknown or not isinstance(op, Operator | ConstantOp) or _is_large(op):
            return {}
        if isinstance(op, ConstantOp):
            arrays[current] = cast("NDArray[Any]", array_of_dense(dense_value(op)))
        elif is_ready:
            arrays.update(zip(op.results, computed(op, {}, *(arrays[operand] for operand in op.operands)), strict=True))
        else:
            pending += [(current, True), *((operand, False) for operand in op.operands)]
    return {result: _known(result, array) for result, array in arrays.items() if found.get(result) is None}


def _known(value: SSAValue, array: NDArray[Any]) -> KnownTensor | None:
    element = element_name(cast("Tensor", value.type).element_type)
    return None if element is None else KnownTensor(array.astype(np.dtype(element), copy=False), element)


def _is_large(op: Operation) -> bool:
    """Whether results have many elements, or depend on symbolic extents."""
    shapes = [cast("Tensor", result.type).get_shape() for result in op.results]
    if isinstance(op, Operator) and any(isinstance(extent, Expression) for shape in op.shapes for extent in shape):
        return True
    return any(-1 in shape or int(np.prod(shape, dtype=np.float64)) > SMALL for shape in shapes)
