"""Call preconditions as text: `n % 32 == 0`, `x_d0 == n * (m + 1)`, `m + 4 < n or m < 1`.

The grammar has names, integers, `+ - * // %`, `min(x, y)`, `max(x, y)`, parentheses, and comparisons by `==`, `<=` or
`<` joined by `or`; tokens are separated by spaces. Quotients round down and remainders have the sign of the divisor, as
in Python. A reason follows ` # `, with the place in the program: `5 <= n # block "B" reads A out of bounds otherwise,
at f.py:3:9`.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

Number: TypeAlias = Callable[[Mapping[str, Any]], Any]
"""Evaluates an expression, on numbers or on other objects with their arithmetic."""

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
_EMPTY = re.compile(r"\S+ <= 0")
"""A comparison that holds for a loop without iterations."""
_NUMBER = re.compile(r"-?\d+")
_NAME = re.compile(r"[A-Za-z_$.][\w$.\-]*\Z")


@dataclass(frozen=True)
class Comparison:
    """A comparison of two expressions."""

    text: str
    relation: str
    names: tuple[str, ...]
    left: Number = field(compare=False, repr=False)
    right: Number = field(compare=False, repr=False)

    def holds(self, values: Mapping[str, int]) -> bool:
        """A division by zero makes it false."""
        try:
            return _RELATIONS[self.relation](self.left(values), self.right(values))
        except ZeroDivisionError:
            return False

    def difference(self, values: Mapping[str, Any]) -> Any:
        return self.left(values) - self.right(values)

    @property
    def left_text(self) -> str:
        return self.text.split(f" {self.relation} ")[0]

    @property
    def requirement(self) -> str:
        """The comparison in words: `n must be at least 5`."""
        left, right = self.text.split(f" {self.relation} ")
        if self.relation == "==":
            return f"expected {self.text}"
        is_strict = self.relation == "<"
        if _NUMBER.fullmatch(right) or (_NAME.match(left) and not _NAME.match(right)):
            return f"{left} must be {'less than' if is_strict else 'at most'} {right}"
        return f"{right} must be {'greater than' if is_strict else 'at least'} {left}"


@dataclass(frozen=True)
class CallPrecondition:
    """A disjunction of comparisons that holds in every call. Raises `ValueError` for invalid text."""

    text: str
    relation: str = field(init=False, compare=False)
    """The text without the reason."""
    reason: str = field(init=False, compare=False)
    """The consequence of a violation, and its place; empty for a precondition that the program states."""
    comparisons: tuple[Comparison, ...] = field(init=False, compare=False)
    names: tuple[str, ...] = field(init=False, compare=False)
    defines: str | None = field(init=False, compare=False)
    """The name on the left of `name == ...`, unless the right side contains it."""

    def __post_init__(self) -> None:
        relation, _, reason = self.text.partition(" # ")
        names: dict[str, None] = {}
        comparisons: list[Comparison] = []
        for text in relation.split(" or "):
            reader = _Reader(text)
            comparisons.append(reader.comparison())
            names.update(reader.names)
        first, _, rest = relation.partition(" == ")
        alone = len(comparisons) == 1 and first in names and first not in re.findall(r"[^\s(),]+", rest)
        for name, value in (
            ("relation", relation),
            ("reason", reason),
            ("comparisons", tuple(comparisons)),
            ("names", tuple(names)),
            ("defines", first if alone else None),
        ):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[CallPrecondition], tuple[str]]:
        return CallPrecondition, (self.text,)  # the comparisons hold functions

    def holds(self, values: Mapping[str, int]) -> bool:
        return any(comparison.holds(values) for comparison in self.comparisons)

    def substituted(self, texts: Mapping[str, str]) -> CallPrecondition:
        def replaced(token: re.Match[str]) -> str:
            sign, name = token[1], token[2]
            return f"{sign}({texts[name]})" if name in texts else token[0]

        relation = re.sub(r"(-?)([^\s(),]+)", replaced, self.relation)
        return CallPrecondition(f"{relation} # {self.reason}" if self.reason else relation)

    def defined(self, values: Mapping[str, Any]) -> Any:
        """Returns the right side if the precondition `defines` a name, or None if it is unknown."""
        try:
            return self.comparisons[0].right(values) if self.defines else None
        except (KeyError, ZeroDivisionError):
            return None

    def problem(self, values: Mapping[str, int], given: Mapping[str, str] | None = None) -> str | None:
        """Returns the expected relation and the actual numbers, or None. `given` maps numbers to their sources: `{"n":
        "axis 0 of 'A'"}`."""
        if self.holds(values):
            return None
        empty = [c.text.removesuffix(" <= 0") for c in self.comparisons if _EMPTY.fullmatch(c.text)]
        main = [c for c in self.comparisons if not _EMPTY.fullmatch(c.text)] or list(self.comparisons)
        wanted = " or ".join(comparison.requirement for comparison in main).replace(" or expected ", " or ")
        if empty and len(main) < len(self.comparisons):
            wanted += f" unless {' or '.join(empty)} is 0"
        names = [name for name in self.names if any(name in comparison.names for comparison in main)]
        is_lone = len(names) == 1 and main[0].relation != "=="
        got = ", ".join(
            (str(values[name]) if is_lone else f"{name} = {values[name]}")
            + (f" ({given[name]})" if given and name in given else "")
            for name in names
        )
        return f"{wanted}, got {got}" + (f": {self.reason}" if self.reason else "")


class _Reader:
    """A recursive-descent parser of one comparison."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens: Iterator[str] = iter(re.findall(r"[(),]|[^\s(),]+", text))
        self._token = next(self._tokens, "")
        self.names: dict[str, None] = {}

    def _take(self) -> str:
        token = self._token
        self._token = next(self._tokens, "")
        return token

    def _expect(self, token: str, problem: str) -> None:
        if self._take() != token:
            raise ValueError(f"'{self._text}' is no call precondition: {problem}")

    def comparison(self) -> Comparison:
        left = self._sum()
        relation = self._take()
        if relation not in _RELATIONS:
            raise ValueError(f"'{self._text}' is no call precondition: it compares by ==, <= or <")
        right = self._sum()
        if self._token:
            raise ValueError(f"'{self._text}' is no call precondition: '{self._token}' is left over")
        return Comparison(self._text, relation, tuple(self.names), left, right)

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
            self._expect(")", "a parenthesis is not closed")
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
        if token in _CHOICES and self._token == "(":
            return self._choice(_CHOICES[token])
        self.names[token] = None
        return operator.itemgetter(token)

    def _choice(self, choose: Callable[[Any, Any], Any]) -> Number:
        self._take()
        left = self._sum()
        self._expect(",", "min and max take two sums")
        right = self._sum()
        self._expect(")", "a parenthesis is not closed")
        return _combined(choose, left, right)


def _least(left: Any, right: Any) -> Any:
    return min(left, right) if isinstance(left, int) and isinstance(right, int) else _of_expression("min", left, right)


def _greatest(left: Any, right: Any) -> Any:
    return max(left, right) if isinstance(left, int) and isinstance(right, int) else _of_expression("max", left, right)


def _of_expression(kind: str, left: Any, right: Any) -> Any:
    expression, other = (right, left) if isinstance(left, int) else (left, right)
    return getattr(expression, kind)(other)


_CHOICES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"min": _least, "max": _greatest}


def _combined(combine: Callable[[Any, Any], Any], left: Number, right: Number) -> Number:
    return lambda values: combine(left(values), right(values))


_CANDIDATES: Final = (*range(1, 9), 12, 16, 24, 32, 48, 64, 96, 128, 256)
_MOST_SEARCHED: Final = 3
_MOST_NAMES: Final = 8

_Key = TypeVar("_Key", bound=Hashable)


def near_numbers(
    start: Mapping[_Key, int], searched: Sequence[_Key], holds: Callable[[Mapping[_Key, int]], bool]
) -> Mapping[_Key, int]:
    """Change up to three of the `searched` names a little so that `holds` is true; returns `start` if that fails."""
    if holds(start) or len(searched) > _MOST_NAMES:
        return start
    if len(searched) > _MOST_SEARCHED:
        for count in range(1, _MOST_SEARCHED):
            for some in itertools.combinations(searched, count):
                found = near_numbers(start, some, holds)
                if found is not start:
                    return found
        return start
    choices = itertools.product(*(sorted({start[key], *_CANDIDATES}) for key in searched))

    def distance(numbers: tuple[int, ...]) -> int:
        return sum(abs(number - start[key]) for key, number in zip(searched, numbers, strict=True))

    for numbers in sorted(choices, key=distance):
        tried = {**start, **dict(zip(searched, numbers, strict=True))}
        if holds(tried):
            return tried
    return start
