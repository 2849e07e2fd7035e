"""Extents under canonical names, so that operators over differently named extents compare equal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from weft.dialects.graph_shapes import (
    DimsAttr,
    Expression,
    Extent,
    KnownExtent,
    extents_in,
    is_signed,
    lone_name,
    names_in,
    shape_of,
    substitute,
    symbol,
    tensor_type,
    with_extents,
)


class CanonicalNames:
    """Renames names in extents to s0, s1, ... in the order of occurrence.

    An expression is renamed as a whole if its names have no other use and no operand binds them: `8 * n` is s0.
    """

    def __init__(self, operands: Sequence[Attribute], others: Iterable[Extent]) -> None:
        own = [extent for type_ in operands for extent in _dynamic(type_)]
        bound = {lone_name(extent) for extent in own}
        users: dict[str, set[Extent]] = {}
        for extent in (*own, *others):
            for name in names_in(extent) - bound:
                users.setdefault(name, set()).add(extent)
        wholes = {e for e in own if names_in(e).isdisjoint(bound) and all(users[name] == {e} for name in names_in(e))}
        self.unbound = any(not extents <= wholes for extents in users.values())
        """Whether there are names that no operand binds."""
        self._wholes = wholes
        self._new: dict[str | Expression, Expression] = {}
        self._originals: dict[str, KnownExtent] = {}

    def _name(self, given: str | Expression) -> Expression:
        if given not in self._new:
            name = f"s{len(self._new)}{'.0' if isinstance(given, str) and is_signed(given) else ''}"
            self._new[given] = symbol(name)
            self._originals[name] = symbol(given) if isinstance(given, str) else given
        return self._new[given]

    def original(self, name: str) -> KnownExtent:
        return self._originals[name]

    def extent(self, extent: Extent) -> Extent:
        if not isinstance(extent, Expression):
            return extent
        if extent in self._wholes:
            return self._name(extent)
        if (name := lone_name(extent)) is not None:
            return self._name(name)
        return substitute(extent, {name: self._name(name) for name in sorted(names_in(extent))})

    def type(self, type_: Attribute) -> Attribute:
        if not isinstance(type_, TensorType) or not isinstance(type_.encoding, DimsAttr):
            return type_
        return tensor_type([self.extent(extent) for extent in shape_of(type_)], type_.element_type)

    def key(self, type_: Attribute) -> Hashable:
        """Returns a key that is equal if `type` is, at a fraction of the cost."""
        if not isinstance(type_, TensorType) or not isinstance(type_.encoding, DimsAttr):
            return type_
        return type_.element_type, type_.get_shape(), tuple(map(self.extent, type_.encoding.data))

    def properties(self, properties: Mapping[str, Attribute]) -> dict[str, Attribute]:
        return {name: with_extents(attribute, self.extent) for name, attribute in sorted(properties.items())}


def extents_of(types: Iterable[Attribute], properties: Mapping[str, Attribute]) -> list[Extent]:
    found = [extent for type_ in types for extent in _dynamic(type_)]
    for attribute in properties.values():
        found += extents_in(attribute)
    return found


def _dynamic(type_: Attribute) -> Sequence[Extent]:
    if isinstance(type_, TensorType) and isinstance(type_.encoding, DimsAttr):
        return type_.encoding.data
    return ()
