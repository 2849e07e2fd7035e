"""Overlapping arguments of a call: a copy of the shared memory, and a flat list over it for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.interp.values import Array, Scalar, array_of, flat_list, narrow, widen
from weft.support.call_arguments import share_memory
from weft.support.call_signature import ArraySpec, Signature

if TYPE_CHECKING:
    from xdsl.ir import Attribute


class SharedElements(Sequence["Scalar | None"]):
    """An array as a flat list; assignments modify all arrays that share its memory. With `places`, the elements'
    indices, gaps contain None."""

    def __init__(self, array: Array, element_type: Attribute, places: Sequence[int] | None = None) -> None:
        self._array = array
        self._type = element_type
        self._elements = None if places is None else {place: at for at, place in enumerate(places)}
        self._length = array.size if places is None else max(places, default=-1) + 1

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, int):
            return [self[at] for at in self._places(place)]
        at = self._element(place)
        return None if at is None else flat_list(widen(self._array.flat[at : at + 1], self._type))[0]

    def __setitem__(self, place: Any, value: Any) -> None:
        if not isinstance(place, int):
            for at, element in zip(self._places(place), value, strict=True):
                self[at] = element
        elif (at := self._element(place)) is not None and value is not None:
            self._array.flat[at] = narrow(array_of([value], (1,), self._type), self._type, self._array.dtype)[0]

    def clear(self) -> None:
        self._length = 0

    def _places(self, part: slice[int | None, int | None, int | None]) -> range:
        return range(self._length)[part]

    def _element(self, place: int) -> int | None:
        at = range(self._length)[place]  # raises IndexError like a list
        return at if self._elements is None else self._elements.get(at)


def copies_of_overlapping(signature: Signature, arrays: Mapping[int, Array]) -> dict[int, Array]:
    """Copies, by position, of overlapping arrays, with memory shared alike."""
    specs = ((at, signature.args[at]) for at, array in arrays.items() if array.size)
    exposed = [at for at, spec in specs if isinstance(spec, ArraySpec) and spec.may_overlap]
    found = {at for pair in combinations(exposed, 2) if share_memory(*map(arrays.__getitem__, pair)) for at in pair}
    copies: dict[int, Array] = {}
    for group in _groups({at: _span(arrays[at]) for at in found}):
        first = min(_span(arrays[at])[0] for at in group)
        last = max(_span(arrays[at])[1] for at in group)
        memory = np.empty(last - first, np.uint8)
        for at in group:
            old = arrays[at]
            start = int(old.__array_interface__["data"][0]) - first
            copies[at] = np.ndarray(old.shape, old.dtype, memory.data, start, old.strides)
            copies[at][...] = old
    return copies


def _groups(spans: Mapping[int, tuple[int, int]]) -> list[list[int]]:
    """Connected components of overlapping spans."""
    groups: list[list[int]] = []
    end = -1
    for at, (first, last) in sorted(spans.items(), key=lambda item: item[1]):
        if not groups or first >= end:
            groups.append([])
        groups[-1].append(at)
        end = max(end, last)
    return groups


def _span(array: Array) -> tuple[int, int]:
    start = int(array.__array_interface__["data"][0])
    steps = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
    below, above = sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)
    return start + below, start + above + array.itemsize
