"""Imported ONNX models with symbols that the import unified, to import them again with other axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakKeyDictionary

from weft.support.errors import CompileError
from weft.support.input_axes import Axis, axes_of, show_axes

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.dialects.graph_shapes import KnownExtent
    from weft.frontends.graph_builder import ExtentLike
    from weft.frontends.onnx.importer import InputShape


@dataclass(frozen=True)
class UnifiedModel:
    axes: Mapping[str, Sequence[ExtentLike]]
    """By parameter, before symbols are replaced."""
    extents: Mapping[str, KnownExtent]
    """The extents that replace symbols, by symbol."""
    shapes: Mapping[str, InputShape]
    """The axes that the import was given."""
    again: Callable[[Mapping[str, InputShape]], ModuleOp]
    """Imports the model with other axes."""

    def repeated(self, shapes: Mapping[str, Sequence[int]]) -> frozenset[str]:
        """The symbols that are 1 in the arrays of a call, unlike other extents that they were unified with. Empty if
        the arrays do not fit otherwise."""
        from weft.dialects.graph_shapes import lone_name, parse_extent, substitute, symbol  # start-up: 200 ms

        values: dict[str, int] = {}
        others: dict[KnownExtent, set[int]] = {}
        for parameter, axes in self.axes.items():
            for extent, size in zip(axes, shapes.get(parameter, ()), strict=False):
                parsed = extent if isinstance(extent, int) else parse_extent(extent)
                if parsed is None:
                    continue
                name = lone_name(parsed)
                if name is not None and values.setdefault(name, size) != size:
                    return frozenset()
                others.setdefault(substitute(parsed, self.extents), set()).add(size)
        return frozenset(
            name for name, size in values.items() if size == 1 and others[substitute(symbol(name), self.extents)] != {1}
        )

    def import_with(self, repeated: frozenset[str]) -> ModuleOp:
        """Import with some symbols stated as 1. Raises `CompileError` if an operator does not repeat an axis."""
        from weft.dialects.graph_shapes import lone_name, parse_extent  # start-up: 200 ms

        shapes = dict(self.shapes)
        for parameter, axes in self.axes.items():
            names = [None if isinstance(extent, int) else lone_name(parse_extent(extent)) for extent in axes]
            if repeated.isdisjoint(names):
                continue
            given = shapes.get(parameter)
            stated = [Axis(extent) for extent in axes]
            if given is not None:
                stated = axes_of(cast("str | Sequence[int | str]", given), f"shape of '{parameter}'")
            shapes[parameter] = show_axes(
                [Axis(1) if name in repeated else axis for name, axis in zip(names, stated, strict=True)]
            )
        module = self.again(shapes)
        found = UNIFIED.get(module)
        if found is not None and any(isinstance(extent, int) for extent in found.extents.values()):
            raise CompileError("an operator requires that extents are equal to one that is stated as 1")
        return module


UNIFIED: Final[WeakKeyDictionary[ModuleOp, UnifiedModel]] = WeakKeyDictionary()
"""The imports of modules, if they unified symbols."""


def unmodified(module: ModuleOp) -> UnifiedModel | None:
    """The import of a module, or None if the module was modified since."""
    model = UNIFIED.get(module)
    is_same = model is not None and module.is_structurally_equivalent(model.again(model.shapes))
    return model if is_same else None
