"""The range of an iterator under conditions."""

from __future__ import annotations

from weft.analysis.accesses import is_fixed, least_value
from weft.analysis.index import Index
from weft.analysis.structure import loops_around
from weft.dialects.tir import BlockOp, ForOp
from weft.passes.schedule.padding_domains import loop_of, why_no_loop_of_its_own


class Limits:
    """The ranges of iterators that conditions leave, for iterators with a loop of their own."""

    def __init__(self, block: BlockOp, loop: ForOp) -> None:
        self.block = block
        self.lower: dict[int, Index] = {}
        self.upper: dict[int, Index] = {}
        self._free: dict[int, bool] = {}
        self._loops = loops_around(block)[loops_around(block).index(loop) :]

    def add_lower_end(self, index: Index) -> bool:
        """Take `index >= 0` into account: false where it is no limit of one iterator with a loop of its own."""
        found = self._iterator(index)
        if found is None:
            return False
        position, sign, rest = found
        return self._raise(position, -rest) if sign > 0 else self._reduce(position, rest + 1)

    def add_value(self, index: Index) -> bool:
        """Take `index == 0` into account."""
        found = self._iterator(index)
        if found is None:
            return False
        position, sign, rest = found
        value = -rest if sign > 0 else rest
        return self._raise(position, value) and self._reduce(position, value + 1)

    def ranges(self) -> dict[int, tuple[Index, Index]]:
        """First value and number of values."""
        return {at: (self.lower[at], self.upper[at] - self.lower[at]) for at in self.lower}

    def _iterator(self, index: Index) -> tuple[int, int, Index] | None:
        """`sign * iterator + rest`, with the rest fixed in the function."""
        for position, variable in enumerate(self.block.iter_vars):
            sign = index.coefficient(variable)
            rest = index - Index.of(variable) * sign
            if sign in (1, -1) and all(is_fixed(value) for value in rest.values()) and self._is_free(position):
                return position, sign, rest
        return None

    def _is_free(self, position: int) -> bool:
        if position not in self._free:
            inside = loop_of(self.block, position) in self._loops
            self._free[position] = inside and why_no_loop_of_its_own(self.block, position) is None
        return self._free[position]

    def _raise(self, position: int, value: Index) -> bool:
        """The range starts at `value` or later; false where the two cannot be compared."""
        old = self.lower.get(position, Index({}))
        upper = self.upper.get(position, Index.of(self.block.extents[position]))
        new = value if _at_least(value, old) else old if _at_least(old, value) else None
        return new is not None and self._set(position, new, upper)

    def _reduce(self, position: int, value: Index) -> bool:
        old = self.upper.get(position, Index.of(self.block.extents[position]))
        lower = self.lower.get(position, Index({}))
        new = value if _at_least(old, value) else old if _at_least(value, old) else None
        return new is not None and self._set(position, lower, new)

    def _set(self, position: int, lower: Index, upper: Index) -> bool:
        count = upper - lower
        if not count.is_constant and not _at_least(upper, lower):
            return False
        self.lower[position], self.upper[position] = lower, upper
        return True


def _at_least(left: Index, right: Index) -> bool:
    low = least_value(left - right)
    return low is not None and low >= 0
