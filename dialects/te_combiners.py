"""The combiners of te reductions."""

from __future__ import annotations

from enum import auto

from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.str_enum import StrEnum


class Combiner(StrEnum):
    """How `te.reduce` combines values; each has an identity, the result over no values at all.

    All are associative and commutative, up to the rounding of floats, so that schedules may reorder them.
    """

    SUM = auto()
    """Addition, identity 0. Integers wrap."""
    PROD = auto()
    """Multiplication, identity 1. Integers wrap."""
    MIN = auto()
    """Minimum, identity +inf or the greatest integer. NaN wins."""
    MAX = auto()
    """Maximum, identity -inf or the least integer. NaN wins."""
    ANY = auto()
    """Logical or, identity false."""
    ALL = auto()
    """Logical and, identity true."""
    ARGMAX = auto()
    """Pairs (value, index): the pair of the greatest value, of the least index among equals; NaN counts as greatest.
    Identity: (-inf or the least integer, the greatest integer)."""
    ARGMIN = auto()
    """Pairs (value, index): the pair of the least value, of the least index among equals; NaN counts as least.
    Identity: (+inf or the greatest integer, the greatest integer)."""
    CUSTOM = auto()
    """What the regions `combine` and `identity` say, over any number of accumulators."""


@irdl_attr_definition
class CombinerAttr(EnumAttribute[Combiner], SpacedOpaqueSyntaxAttribute):
    """The combiner of a reduction."""

    name = "te.combiner"
