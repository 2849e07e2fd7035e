"""Call preconditions as text: `n % 32 == 0`, `x_d0 == n * (m + 1)`.

Names, integers, `+ - * // %`, parentheses, and one `==`, `<=` or `<`, separated by spaces. Quotients round down and
remainders have the sign of the divisor, as in Python.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

Number: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""The value of a sum; numbers, or other objects with the arithmetic of numbers."""

_SUMS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "*": lambda left, right: left * right,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
}
_RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "<=": operator.le,
    "<": operator.lt,
}
_NAME = re.compile(r"[A-Za-z_$.][\w$.\-]*\Z")


@dataclass(frozen=True)
class CallPrecondition:
    """A relation of numbers that calls check. Raises `ValueError` for text that is none."""

    text: str
    names: tuple[str, ...] = field(init=False, compare=False)
    defines: str | None = field(init=False, compare=False)
    """The name on the left of `name == ...`, where the right side does not have it."""
    _sides: tuple[Number, Number] = field(init=False, compare=False, repr=False)
    _compare: Callable[[int, int], bool] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        reader = _Reader(self.text)
        left, relation, right = reader.relation()
        object.__setattr__(self, "_sides", (left, right))
        object.__setattr__(self, "_compare", _RELATIONS[relation])
        object.__setattr__(self, "names", tuple(reader.names))
        first, _, rest = self.text.partition(" == ")
        alone = first in reader.names and first not in re.findall(r"[^\s()]+", rest)
        object.__setattr__(self, "defines", first if alone else None)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the relation is true of these numbers. A division by zero makes it false."""
        try:
            return self._compare(*(side(values) for side in self._sides))
        except ZeroDivisionError:
            return False

    def difference(self, values: Mapping[str, Any]) -> Any:
        """Left side minus right side, of numbers or of other objects with their arithmetic."""
        left, right = (side(values) for side in self._sides)
        return left - right

    def holds_for(self, difference: int) -> bool:
        """Whether the relation is true of sides that differ by that much."""
        return self._compare(difference, 0)

    def defined(self, values: Mapping[str, Any]) -> Any:
        """The number that the name on the left must be (`defines`), or what stands for it; None where not known."""
        try:
            return self._sides[1](values) if self.defines else None
        except (KeyError, ZeroDivisionError):
            return None

    def problem(self, values: Mapping[str, int]) -> str | None:
        """What was expected and what came, or None when the relation is true."""
        if self.holds(values):
            return None
        got = ", ".join(f"{name} = {values[name]}" for name in self.names)
        return f"expected {self.text}, got {got}"


class _Reader:
    """A recursive-descent parser of one precondition."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: Iterator[str] = iter(re.findall(r"[()]|[^\s()]+", text))
        self._token = next(self._tokens, "")
        self.names: dict[str, None] = {}

    def _take(self) -> str:
        token = self._token
        self._token = next(self._tokens, "")
        return token

    def relation(self) -> tuple[Number, str, Number]:
        left = self._sum()
        relation = self._take()
        if relation not in _RELATIONS:
            raise ValueError(f"'{self._text}' is no call precondition: it compares by ==, <= or <")
        right = self._sum()
        if self._token:
            raise ValueError(f"'{self._text}' is no call precondition: '{self._token}' is left over")
        return left, relation, right

    def _sum(self) -> Number:
        return self._joined(_SUMS, self._product)

    def _product(self) -> Number:
        return self._joined(_PRODUCTS, self._primary)

    def _joined(self, operators: Mapping[str, Callable[[Any, Any], Any]], operand: Callable[[], Number]) -> Number:
        result = operand()
        while self._token in operators:
            result = _combined(operators[self._take()], result, operand())
        return result

    def _primary(self) -> Number:
        token = self._take()
        if token == "(":
            result = self._sum()
            if self._take() != ")":
                raise ValueError(f"'{self._text}' is no call precondition: a parenthesis is not closed")
            return result
        if re.fullmatch(r"-?\d+", token):
            number = int(token)
            return lambda _: number
        if token.startswith("-"):
            if token != "-":
                self._token, self._tokens = token[1:], itertools.chain((self._token,), self._tokens)
            return _combined(operator.sub, lambda _: 0, self._primary())
        if not _NAME.match(token):
            raise ValueError(f"'{self._text}' is no call precondition: expected a name or a number, got '{token}'")
        self.names[token] = None
        return operator.itemgetter(token)


def _combined(combine: Callable[[Any, Any], Any], left: Number, right: Number) -> Number:
    return lambda values: combine(left(values), right(values))


_CANDIDATES: Final = (*range(1, 9), 12, 16, 24, 32, 48, 64, 96, 128, 256)
_MOST_SEARCHED: Final = 3

_Key = TypeVar("_Key", bound=Hashable)


def near_numbers(
    start: Mapping[_Key, int], searched: Sequence[_Key], holds: Callable[[Mapping[_Key, int]], bool]
) -> Mapping[_Key, int]:
    """`start`, or numbers near to it for up to three `searched` names for which `holds`; `start` where none do."""
    if holds(start) or len(searched) > _MOST_SEARCHED:
        return start
    choices = itertools.product(*(sorted({start[key], *_CANDIDATES}) for key in searched))

    def distance(numbers: tuple[int, ...]) -> int:
        return sum(abs(number - start[key]) for key, number in zip(searched, numbers, strict=True))

    for numbers in sorted(choices, key=distance):
        tried = {**start, **dict(zip(searched, numbers, strict=True))}
        if holds(tried):
            return tried
    return start
