"""The way back of index maps that are made of digits: `y = i * 16 + j` gives `i = y floordiv 16`, `j = y mod 16`.

A new index is a sum of weighted *pieces*, each less than what the next weight leaves room for, so that it can be read
as a number of mixed radix. Pieces of one numerator, `x floordiv 4` and `x mod 4`, are put together again; the numerator
may be a sum itself. What isl finds is as right, but not what people would write.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from weft.analysis.index import Atom, Index, Quotient, RangeOf, Remainder, quotient, remainder


def inverse_by_digits(
    results: Sequence[Index],
    outputs: Sequence[SSAValue],
    inputs: Sequence[SSAValue],
    range_of_input: RangeOf,
    range_of_output: RangeOf,
) -> tuple[Index, ...] | None:
    """The inputs over the outputs, each of which is a result over the inputs; None where digits do not tell."""
    solver = _Solver(set(inputs), range_of_input, range_of_output)
    for result, output in zip(results, outputs, strict=True):
        solver.read(result, Index.of(output))
    for value in inputs:
        low, high = range_of_input(value)
        if low is not None and low == high:
            solver.known[Index.of(value)] = Index({}, low)
    found = [solver.known.get(Index.of(value)) for value in inputs]
    complete = [index for index in found if index is not None]
    return tuple(complete) if len(complete) == len(found) else None


def are_determined(variables: Sequence[SSAValue], results: Sequence[Index], ranges: RangeOf) -> bool:
    """Whether the digits of `results` show that these determine the `variables`; others may occur in them."""
    return inverse_by_digits(results, placeholders(len(results)), variables, ranges, lambda _: (None, None)) is not None


_PLACEHOLDERS: list[SSAValue] = []


def placeholders(count: int) -> tuple[SSAValue, ...]:
    """Values that stand for results; they are in no function, and the same at each call."""
    while len(_PLACEHOLDERS) < count:
        _PLACEHOLDERS.extend(Block(arg_types=[IndexType()]).args)
    return tuple(_PLACEHOLDERS[:count])


class _Solver:
    """What is known of numerators over the inputs: themselves, or pieces of them."""

    def __init__(self, inputs: set[SSAValue], range_of_input: RangeOf, range_of_output: RangeOf) -> None:
        self.known: dict[Index, Index] = {}
        self.inputs = inputs
        self.range_of_input = range_of_input
        self.range_of_output = range_of_output
        self._pieces: dict[Index, dict[int, tuple[int | None, Index]]] = {}
        """Numerator -> weight -> (how many values the piece takes, or None: all that are left; the piece)."""

    def read(self, numerator: Index, value: Index) -> None:
        """Read the digits of `numerator`, which is known to be `value`."""
        if numerator in self.known:
            return
        self.known[numerator] = value
        rest = value - numerator.constant
        digits: list[tuple[int, Atom, int | None, bool]] = []
        for atom, factor in numerator.terms.items():
            low, high = Index({atom: 1}).range(self.range_of_input)
            if low is None or low < 0 or (factor < 0 and high is None):
                return
            if factor < 0 and high is not None:  # -c * a is c * (high - a), less a constant
                rest = rest + -factor * high
            digits.append((abs(factor), atom, high, factor < 0))
        digits.sort(key=lambda digit: digit[0])
        weights = [weight for weight, *_ in digits]
        following_weights: list[int | None] = [*weights[1:], None][: len(weights)]
        reach = 0
        for weight, following, digit in zip(weights, following_weights, digits, strict=True):
            high = digit[2]
            if weight <= reach or (following is not None and (high is None or following % weight)):
                return
            reach += weight * (high or 0)
        for (weight, atom, high, turned), following in zip(digits, following_weights, strict=True):
            digit = quotient(rest, weight, self.range_of_output)
            if following is not None:
                digit = remainder(digit, following // weight, self.range_of_output)
            self._found(atom, Index({}, high or 0) - digit if turned else digit)

    def _found(self, atom: Atom, value: Index) -> None:
        """A piece of some numerator is known."""
        if isinstance(atom, SSAValue):
            if atom in self.inputs:
                self.known.setdefault(Index.of(atom), value)
            return
        numerator, weight, count = atom.numerator, 1, None
        inner = next(iter(numerator.terms), None)
        within = inner if inner is not None and numerator == Index({inner: 1}) else None
        if isinstance(atom, Remainder):
            count = atom.divisor
            if isinstance(within, Quotient):
                numerator, weight = within.numerator, within.divisor
        else:
            weight = atom.divisor
            if isinstance(within, Remainder) and within.divisor % weight == 0:  # (x mod 16) floordiv 4
                numerator, count = within.numerator, within.divisor // weight
        pieces = self._pieces.setdefault(numerator, {})
        pieces[weight] = (count, value)
        whole = self._joined(numerator, pieces)
        if whole is not None:
            self.read(numerator, whole)

    def _joined(self, numerator: Index, pieces: dict[int, tuple[int | None, Index]]) -> Index | None:
        """A numerator from its pieces, when they leave out no digit."""
        low, high = numerator.range(self.range_of_input)
        if low is None or low < 0:
            return None
        weight, total = 1, Index({})
        while high is None or weight <= high:
            if weight not in pieces:
                return None
            count, piece = pieces[weight]
            total = piece * weight + total
            if count is None:
                return total
            weight *= count
        return total
