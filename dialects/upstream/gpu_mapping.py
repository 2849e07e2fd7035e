"""Mappings of `scf.forall` dimensions to levels of the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

DIMENSIONS: Final = ("x", "y", "z", *(f"linear_dim_{number}" for number in range(10)))


class MappingAttr(ParametrizedAttribute):
    """A dimension of a level: `#gpu.thread<x>`."""

    dimension: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            at = parser.pos
            word = parser.parse_identifier()
            if word not in DIMENSIONS:
                parser.raise_error(f"unknown dimension '{word}', known are {', '.join(DIMENSIONS)}", at, parser.pos)
        return [StringAttr(word)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.dimension.data)


def _level(name: str) -> type[Attribute]:
    members = {"name": f"gpu.{name}", "__doc__": f"`#gpu.{name}<x>`", "__module__": __name__}
    return cast("Any", irdl_attr_definition)(type(f"{name.capitalize()}MappingAttr", (MappingAttr,), members))


MAPPINGS: Final = tuple(map(_level, ("thread", "block", "warp", "warpgroup", "lane")))
