"""Properties of graph operators that are derived from their tensor expressions."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from xdsl.ir import Attribute

from weft.analysis.operator_patterns import ChannelAxes, OperatorPattern, operator_pattern
from weft.dialects.graph import Tensor
from weft.dialects.graph_shapes import shape_of
from weft.dialects.graph_traits import Elementwise
from weft.texpr.graph_operators import Operator


def pattern_of(op: Operator) -> OperatorPattern | None:
    """Returns the pattern, or None for unknown extents, which legalisation reports."""
    return _pattern(type(op), cast("tuple[Tensor, ...]", op.operand_types), frozenset(op.properties.items()))


@lru_cache(maxsize=1 << 14)
def _pattern(
    operator: type[Operator], operands: tuple[Tensor, ...], properties: frozenset[tuple[str, Attribute]]
) -> OperatorPattern | None:
    if any(None in shape_of(type_) for type_ in operands):
        return None
    return operator_pattern(operator.on_placeholders(operands, dict(properties)).function("pattern"))


def channel_axes(op: Operator) -> ChannelAxes | None:
    """Returns the output channels of a product, or None for other operators and shared weights."""
    if len(op.operands) < 2 or op.has_trait(Elementwise) or any(role.is_variadic for role in op.ROLES):
        return None
    pattern = pattern_of(op)
    return None if pattern is None else pattern.channels
