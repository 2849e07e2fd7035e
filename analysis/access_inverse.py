"""Which instance of a block touches an element? The inverse of the indices of an access, over the block's iterators.

`B[v * 16 + w]` is touched at element `e` by the instance `(e floordiv 16, e mod 16)`. The indices may be any injective
affine map of the iterators: reversed, split or joined by quotients and remainders, in another order, with iterators of
one value left out. Values that are fixed in an instance of the block may be added to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from weft.analysis.accesses import Conditions, range_of
from weft.analysis.dependence import undecided
from weft.analysis.index import Atom, Index, exprs_of
from weft.analysis.layout_inverse import placeholders
from weft.analysis.layout_maps import LayoutMap
from weft.analysis.questions import point_text
from weft.analysis.sets import NotProved
from weft.dialects.tir import BlockOp
from weft.support.errors import Violation


@dataclass(frozen=True)
class AccessInverse:
    """The instance that touches an element: `back` gives each variable over the element minus `shifts`."""

    variables: tuple[SSAValue, ...]
    extents: tuple[Index, ...]
    indices: tuple[Index, ...]
    shifts: tuple[Index, ...]
    placeholders: tuple[SSAValue, ...]
    back: tuple[Index, ...]

    def instance(self, element: Sequence[Index]) -> tuple[Index, ...]:
        """The variables of the instance that touches `element`, where one does."""
        moved = (place - shift for place, shift in zip(element, self.shifts, strict=True))
        mapping = dict(zip(self.placeholders, moved, strict=True))
        return tuple(index.substitute(mapping, range_of).simplified(range_of) for index in self.back)

    def conditions(self, element: Sequence[Index]) -> Conditions:
        """When some instance touches `element`: its variables lie in their domains, and its indices are the element."""
        instance = self.instance(element)
        positives = [end for index, extent in zip(instance, self.extents, strict=True)
                     for end in (index, extent - index - 1)]  # fmt: skip
        mapping = dict(zip(self.variables, instance, strict=True))
        zeros = [(index.substitute(mapping, range_of) - place).simplified(range_of)
                 for index, place in zip(self.indices, element, strict=True)]  # fmt: skip
        return Conditions(tuple(positives), tuple(index for index in zeros if index != Index({})))


def inverse_in_block(block: BlockOp, operands: Sequence[SSAValue]) -> AccessInverse | Violation:
    """The inverse of an access with these indices in the body of `block`, or why there is none."""
    extents: dict[SSAValue, Index] = {
        v: Index.of(extent) for v, extent in zip(block.iter_vars, block.extents, strict=True)
    }
    return access_inverse(extents, [Index.of(operand) for operand in operands])


def access_inverse(domain: Mapping[SSAValue, Index], given: Sequence[Index]) -> AccessInverse | Violation:
    """The values of variables, by their extents, at which an access with the `given` indices touches an element; or why
    that is not one instance. A refuting violation names two that touch one element.
    """
    variables = tuple(domain)
    indices = tuple(index.simplified(range_of) for index in given)
    if (direct := _iterator_a_dimension(domain, indices)) is not None:
        return direct
    parts: list[Index] = []
    shifts: list[Index] = []
    for index in indices:
        own = _own_part(index, variables)
        low = None if own is None else own.range(range_of)[0]
        if own is None or low is None:
            return Violation(f"index {index!r} is no affine function of the iterators alone", "not proved")
        parts.append(own - low)
        shifts.append(index - own + low)
    exprs = exprs_of([*(Index.of(variable) for variable in variables), *parts])[0][len(variables) :]
    extents = tuple(domain.values())
    layout = LayoutMap(AffineMap(len(variables), 0, tuple(exprs)), extents)
    try:
        back = layout.inverse_by_digits()
        if back is None and (collision := layout.collision()) is not None:
            return _same_element(variables, layout, *collision)
        back = layout.inverse() if back is None else back
    except NotProved as error:
        return undecided(error)
    if back is None:
        return Violation("no single expression says which instance touches an element", "not proved")
    return AccessInverse(variables, extents, indices, tuple(shifts), layout.outputs, back)


def _iterator_a_dimension(domain: Mapping[SSAValue, Index], indices: tuple[Index, ...]) -> AccessInverse | None:
    """The common case: each variable, plus something fixed, is the index of one dimension."""
    at: dict[SSAValue, int] = {}
    shifts: list[Index] = []
    for dimension, index in enumerate(indices):
        own = [atom for atom, factor in index.terms.items() if factor == 1 and atom in domain]
        rest = index - Index({own[0]: 1}) if own else index
        if len(own) > 1 or rest.depends_on(domain):
            return None
        shifts.append(rest)
        if own and isinstance(own[0], SSAValue):
            at.setdefault(own[0], dimension)
    missing = [v for v, extent in domain.items() if v not in at and extent != Index({}, 1)]
    if missing:
        return None
    element = placeholders(len(indices))
    back = tuple(Index.of(element[at[v]]) if v in at else Index({}) for v in domain)
    return AccessInverse(tuple(domain), tuple(domain.values()), indices, tuple(shifts), element, back)


def _own_part(index: Index, variables: Collection[SSAValue]) -> Index | None:
    """The terms of an index over `variables`; None when a quotient or remainder mixes them with other values."""
    own: dict[Atom, int] = {}
    for atom, factor in index.terms.items():
        values = list(Index({atom: 1}).values())
        if not Index({atom: 1}).depends_on(variables):
            continue
        if any(value not in variables for value in values):
            return None
        own[atom] = factor
    return Index(own)


def _same_element(variables: Sequence[SSAValue], layout: LayoutMap, first: list[int], second: list[int]) -> Violation:
    instances = {
        f"{role} instance": {v.name_hint or "?": number for v, number in zip(variables, point, strict=True)}
        for role, point in (("first", first), ("second", second))
    }
    one, other = (point_text(point.items()) for point in instances.values())
    return Violation(
        f"instances {one} and {other} touch the same element",
        counterexample=instances,
        validate=lambda: layout.at(first) == layout.at(second),
    )
