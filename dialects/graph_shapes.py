"""Symbolic tensor shapes: expressions over names of extents, and their encoding in tensor types.

`#graph.dims<...>` lists the dynamic extents in order; the same name means equal extents, `?` is unknown:

    tensor<?x784xf32, #graph.dims<n>>
    tensor<?x?xf32, #graph.dims<n, 2 * m + 1>>
    tensor<?x?xf32, #graph.dims<n, ?>>

Expressions are canonical polynomials with integer coefficients over names, floor quotients, remainders, minima and
maxima; equal ones are equal objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Final, Literal, TypeAlias, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerType, NoneAttr, TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from weft.dialects.strides import Arithmetic, only_number

Division: TypeAlias = Literal["floordiv", "mod"]
_MOST_PARTS: Final = 512
"""Maximum factors of an extent: products of sums, and sums of quotients, grow exponentially."""
Choice: TypeAlias = Literal["min", "max"]


@dataclass(frozen=True)
class ExtentOperation:
    """An irreducible floor quotient, remainder, minimum or maximum: a factor of monomials, like a name."""

    kind: Division | Choice
    left: KnownExtent
    right: KnownExtent

    @cached_property
    def size(self) -> int:
        sides = (side for side in (self.left, self.right) if isinstance(side, Expression))
        return 1 + sum(_size(monomial) for side in sides for monomial, _ in side.terms)

    def __str__(self) -> str:
        if self.kind in ("min", "max"):
            return f"{self.kind}({self.left}, {self.right})"
        return f"{_parenthesised(self.left)} {self.kind} {_parenthesised(self.right)}"


Atom: TypeAlias = str | ExtentOperation
Monomial: TypeAlias = tuple[Atom, ...]


@dataclass(frozen=True)
class Expression:
    """A non-constant polynomial: pairs of monomial and coefficient, ordered by text.

    `symbol`, `add`, `multiply`, `floordiv`, `modulo`, `choose` and Python's operators keep it canonical.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: KnownExtent) -> KnownExtent:
        return add(self, other)

    def __sub__(self, other: KnownExtent) -> KnownExtent:
        return subtract(self, other)

    def __rsub__(self, other: int) -> KnownExtent:
        return subtract(other, self)

    def __mul__(self, other: KnownExtent) -> KnownExtent:
        return multiply(self, other)

    def __floordiv__(self, other: KnownExtent) -> KnownExtent:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> KnownExtent:
        return floordiv(other, self)

    def __mod__(self, other: KnownExtent) -> KnownExtent:
        return modulo(self, other)

    def __rmod__(self, other: int) -> KnownExtent:
        return modulo(other, self)

    __radd__, __rmul__ = __add__, __mul__

    def min(self, other: KnownExtent) -> KnownExtent:
        return choose("min", self, other)

    def max(self, other: KnownExtent) -> KnownExtent:
        return choose("max", self, other)

    def __str__(self) -> str:
        text = ""
        for monomial, coefficient in self.terms:
            magnitude = abs(coefficient)
            factors = [] if magnitude == 1 and monomial else [str(magnitude)]
            lone = len(monomial) == 1 and coefficient == 1 and len(self.terms) == 1
            factors += [str(a) if _is_simple(a) or lone else f"({a})" for a in monomial]
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {' * '.join(factors)}" if text else f"{'-' * (sign == '-')}{' * '.join(factors)}"
        return text


KnownExtent: TypeAlias = int | Expression
Extent: TypeAlias = KnownExtent | None
"""A number, an expression over names, or None if unknown."""
Shape: TypeAlias = tuple[Extent, ...]


class ShapeError(VerifyException):
    """Unacceptable shapes or element types, with op, shapes and extents."""


def _is_simple(atom: Atom) -> bool:
    return isinstance(atom, str) or atom.kind in ("min", "max")


def _parenthesised(extent: Extent) -> str:
    text = show_extent(extent)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def symbol(name: str) -> Expression:
    return Expression((((name,), 1),))


def _size(monomial: Monomial) -> int:
    """The number of factors, also in operands, plus one for the coefficient."""
    return 1 + sum(1 if isinstance(atom, str) else atom.size for atom in monomial)


def _terms(extent: KnownExtent) -> dict[Monomial, int]:
    if isinstance(extent, int):
        return {(): extent} if extent else {}
    return dict(extent.terms)


def _too_large(terms: str, *atoms: Atom) -> ShapeError:
    names = set[str]().union(*(names_in(Expression((((atom,), 1),))) for atom in atoms))
    return ShapeError(f"an extent of {', '.join(sorted(names))} has more than {_MOST_PARTS} factors: {terms}")


def _canonical(terms: Mapping[Monomial, int]) -> KnownExtent:
    kept = {monomial: c for monomial, c in terms.items() if c}
    if sum(map(_size, kept)) > _MOST_PARTS:
        raise _too_large(f"{len(kept)} terms", *(name for monomial in kept for name in monomial))
    if not kept.keys() - {()}:
        return kept.get((), 0)
    # constants last, as is customary
    order = sorted(kept, key=lambda m: (not m, -len(m), [str(atom) for atom in m]))
    return Expression(tuple((m, kept[m]) for m in order))


_E = TypeVar("_E", KnownExtent, Extent)
"""of known extents, known"""


def add(a: _E, b: _E) -> _E:
    if a is None or b is None:
        return cast("_E", None)
    terms = _terms(a)
    for monomial, coefficient in _terms(b).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return cast("_E", _canonical(terms))


def multiply(a: _E, b: _E) -> _E:
    if a is None or b is None:
        return cast("_E", 0 if 0 in (a, b) else None)
    terms: dict[Monomial, int] = {}
    first, second = _terms(a), _terms(b)
    factors = sum(map(_size, first)) * len(second) + sum(map(_size, second)) * len(first)
    if factors > 4 * _MOST_PARTS:
        raise _too_large(f"{len(first)} times {len(second)} terms", *(atom for m in (*first, *second) for atom in m))
    for left, c in first.items():
        for right, d in second.items():
            product = tuple(sorted((*left, *right), key=str))
            terms[product] = terms.get(product, 0) + c * d
    return cast("_E", _canonical(terms))


def subtract(a: _E, b: _E) -> _E:
    return cast("_E", add(a, multiply(cast("Extent", b), -1)))


def floordiv(a: _E, b: _E) -> _E:
    """Round down. Multiples of a constant divisor are moved out: `(3 * n + 5) floordiv 2` is `n + (n + 1) floordiv 2 +
    2`. Nested quotients are merged: `(n floordiv 2 + 1) floordiv 2` is `(n + 2) floordiv 4`."""
    return divide("floordiv", a, b)


def exact_quotient(total: KnownExtent, divisor: KnownExtent) -> KnownExtent | None:
    """Returns None if there is a remainder."""
    if total == divisor:
        return None if total == 0 else 1
    if divisor == 0:
        return None
    rest, factors = _terms(total), _terms(divisor)
    atoms = sorted({atom for monomial in (*rest, *factors) for atom in monomial}, key=str)

    def degrees(monomial: Monomial) -> tuple[int, ...]:
        return len(monomial), *map(monomial.count, atoms)

    leading = max(factors, key=degrees)
    found: dict[Monomial, int] = {}
    while rest:
        greatest = max(rest, key=degrees)
        left = list(greatest)
        for atom in leading:
            if atom not in left:
                return None
            left.remove(atom)
        if rest[greatest] % factors[leading]:
            return None
        coefficient = found[tuple(left)] = rest[greatest] // factors[leading]
        for monomial, factor in factors.items():
            product = tuple(sorted((*left, *monomial), key=str))
            rest[product] = rest.get(product, 0) - coefficient * factor
            if not rest[product]:
                del rest[product]
    return _canonical(found)


def without_common_factors(a: KnownExtent, b: KnownExtent) -> tuple[KnownExtent, KnownExtent]:
    monomials = [monomial for extent in (a, b) for monomial in _terms(extent)]
    common = reduce(lambda left, right: left & right, map(Counter, monomials), Counter(*monomials[:1]))
    factor = _canonical({tuple(sorted(common.elements(), key=str)): 1})

    def divided(extent: KnownExtent) -> KnownExtent:
        found = exact_quotient(extent, factor)
        return extent if found is None else found

    return divided(a), divided(b)


def modulo(a: _E, b: _E) -> _E:
    """Non-negative for a positive divisor."""
    return divide("mod", a, b)


def divide(kind: Division, a: _E, b: _E) -> _E:
    """Raises `ShapeError` for a division by zero."""
    if a is None or b is None:
        return cast("_E", None)
    if b == 0:
        raise ShapeError(f"extent {show_extent(a)} {kind} 0: division by zero")
    dividend: KnownExtent = a
    if not isinstance(b, int):
        quotient = 0 if a == 0 else exact_quotient(dividend, b)
        if quotient is not None:
            return cast("_E", quotient if kind == "floordiv" else 0)
        return cast("_E", Expression((((ExtentOperation(kind, a, b),), 1),)))
    if kind == "floordiv":
        dividend = _without_remainders(dividend, b)
    elif (multiple := _distance_to_multiple(dividend, b)) is not None:
        return cast("_E", multiple)
    rest = _canonical({m: c % b for m, c in _terms(dividend).items()})
    if isinstance(rest, int):
        divided: KnownExtent = rest // b if kind == "floordiv" else rest % b
    elif kind == "floordiv" and (inner := _quotient_in(rest)) is not None:
        numerator, divisor = inner
        divided = divide(kind, numerator, divisor * b)
    else:
        divided = Expression((((ExtentOperation(kind, rest, b),), 1),))
    if kind == "floordiv":
        divided = _canonical({m: c // b for m, c in _terms(dividend).items()}) + divided
    return cast("_E", divided)


def _without_remainders(extent: KnownExtent, divisor: int) -> KnownExtent:
    """Replace remainders by differences if `divisor` divides the multiple: `n + n mod 2` is `2 * n - 2 * (n floordiv
    2)`, and its half `n - n floordiv 2`."""
    found = extent
    for monomial, factor in _terms(extent).items():
        match monomial:
            case (ExtentOperation(kind="mod", left=left, right=int(right)),) if factor * right % divisor == 0:
                remainder = subtract(left, multiply(floordiv(left, right), right))
                found = add(found, multiply(subtract(remainder, Expression(((monomial, 1),))), factor))
            case _:
                continue
    return found


def without_symbolic_remainders(extent: KnownExtent) -> KnownExtent:
    """Replace factors `n mod m` of terms by `n - m * (n floordiv m)`."""
    total: KnownExtent = 0
    for monomial, factor in _terms(extent).items():
        product: KnownExtent = factor
        for atom in monomial:
            value: KnownExtent = Expression((((atom,), 1),))
            match atom:
                case ExtentOperation(kind="mod", left=left, right=Expression() as right):
                    value = subtract(left, multiply(right, floordiv(left, right)))
                case _:
                    pass
            product = multiply(product, value)
        total = add(total, product)
    return total


def _distance_to_multiple(extent: KnownExtent, divisor: int) -> KnownExtent | None:
    """Remainder of a negative extent, as in padding: `-n mod 4` is `4 * ((n + 3) floordiv 4) - n`."""
    rest = _canonical({m: c % divisor for m, c in _terms(extent).items() if m})
    if divisor <= 2 or isinstance(rest, int) or any(factor != divisor - 1 for _, factor in rest.terms):
        return None
    negated = add(multiply(rest, -1), multiply(_canonical(dict.fromkeys(_terms(rest), 1)), divisor))
    offset = _terms(extent).get((), 0) % divisor
    padded = floordiv(add(negated, divisor - 1 - offset), divisor)
    return add(multiply(padded, divisor), subtract(offset, negated))


def _quotient_in(extent: Expression) -> tuple[KnownExtent, int] | None:
    """Numerator and divisor, in the sum of a constant and a quotient by a positive constant."""
    (monomial, factor), offset = extent.terms[0], _canonical(dict(extent.terms[1:]))
    match monomial:
        case (ExtentOperation(kind="floordiv", left=left, right=int(right)),) if right > 0 and factor == 1:
            return (add(left, offset * right), right) if isinstance(offset, int) else None
        case _:
            return None


def choose(kind: Choice, a: _E, b: _E) -> _E:
    """Returns one of the extents if their difference is constant."""
    if a is None or b is None:
        return cast("_E", None)
    difference = subtract(a, b)
    if isinstance(difference, int):
        return b if (difference < 0) == (kind == "max") else a
    left, right = sorted((a, b), key=lambda extent: (isinstance(extent, int), str(extent)))
    return cast("_E", Expression((((ExtentOperation(kind, left, right),), 1),)))


def combine(kind: Division | Choice, a: _E, b: _E) -> _E:
    """Raises `ShapeError` for a division by zero."""
    return choose(kind, a, b) if kind == "min" or kind == "max" else divide(kind, a, b)


EXTENTS: Final[Arithmetic[KnownExtent]] = Arithmetic(only_number, add, multiply)


def is_signed(name: str) -> bool:
    """Parameter elements such as `x.0` may be negative; extents have no dot."""
    return "." in name


def element_symbol(parameter: str, element: int) -> Expression:
    """Names an element of an integer parameter, which calls read first."""
    return symbol(f"{parameter}.{element}")


MOST_ELEMENTS: Final = 64
"""The maximum number of elements of a parameter whose elements extents may name."""


def is_element(type_: Attribute, element: int) -> bool:
    """Whether extents may name elements: of `MOST_ELEMENTS` integers of 32 or 64 bits at most."""
    if not isinstance(type_, TensorType) or not isinstance(type_.element_type, IntegerType):
        return False
    count = prod(type_.get_shape())
    return (
        type_.element_type.width.data in (32, 64)
        and DYNAMIC_INDEX not in type_.get_shape()
        and element < count <= MOST_ELEMENTS
    )


def element_of_name(name: str) -> tuple[str, int] | None:
    """Parameter and element; None for an extent."""
    parameter, _, element = name.rpartition(".")
    return (parameter, int(element)) if parameter and element.isdecimal() else None


def is_not_negative(extent: KnownExtent, names: Collection[str] | None = None) -> bool:
    """Whether this is provable for non-negative `names` (extents by default); False with too many factors or after
    `_MOST_FAILED` attempts."""
    try:
        return not _has_counterexample(extent) and _is_not_negative(extent, names, set())
    except ShapeError:
        return False


def _has_counterexample(extent: KnownExtent) -> bool:
    """Whether an extent with several operations, whose search for a proof is long, is negative at a tried point."""
    terms = () if isinstance(extent, int) else extent.terms
    if sum(any(isinstance(atom, ExtentOperation) for atom in monomial) for monomial, _ in terms) < 2:
        return False
    names = names_in(extent)
    points = [dict.fromkeys(names, 1)]
    points += [{name: few if name == one else many for name in names} for one in names for few, many in _EXTREMES]
    return any(_is_negative(extent, point) for point in points)


_MOST_FAILED: Final = 64
"""Limit of the extents without a proof in one search, which is exponential in the number of quotients and minima."""
_EXTREMES: Final = ((1, 1000), (1000, 1))
"""Values of one name and of all others at points of `_has_counterexample`."""


def _is_negative(extent: KnownExtent, values: Mapping[str, int]) -> bool:
    try:
        return evaluate(extent, values) < 0
    except ShapeError:  # a division by zero
        return False


def _is_not_negative(extent: KnownExtent, names: Collection[str] | None, failed: set[Expression]) -> bool:
    """`failed` contains extents without a proof. Bounds of quotients can be taken in any order with the same result:
    each set of them is tried once."""
    if isinstance(extent, int):
        return extent >= 0
    if all(factor > 0 and all(_atom_is_not_negative(a, names) for a in m) for m, factor in extent.terms):
        return True
    if extent in failed or len(failed) >= _MOST_FAILED or all(factor > 0 for _, factor in extent.terms):
        return False
    for monomial, factor in extent.terms:
        match monomial:
            case (ExtentOperation(kind="min" | "max" as kind) as atom,):
                # A maximum is at least each operand; a minimum is one of them.
                rests = (
                    _is_not_negative(
                        add(extent, multiply(subtract(side, Expression(((monomial, 1),))), factor)), names, failed
                    )
                    for side in (atom.left, atom.right)
                )
                if any(rests) if (kind == "max") == (factor > 0) else all(rests):
                    return True
                break
            case (ExtentOperation(kind="floordiv", left=left, right=int(right)),) if right > 0:
                # `right` times the quotient is at most the dividend, and at least the dividend minus `right - 1`. The
                # extent is an integer: `right` times it must exceed `-right`.
                least = add(multiply(subtract(left, right - 1) if factor > 0 else left, factor), right - 1)
                rest = subtract(extent, Expression(((monomial, factor),)))
                if _is_not_negative(add(multiply(rest, right), least), names, failed):
                    return True
            case _:
                continue
    failed.add(extent)
    return False


def is_never_negative(extent: KnownExtent, names: Collection[str]) -> bool:
    """Extends `is_not_negative`: a subtracted minimum may be replaced by an operand, an upper bound, `n -
    min(k, n)`."""
    if is_not_negative(extent, names):
        return True
    for monomial, factor in () if isinstance(extent, int) else extent.terms:
        choice = monomial[0] if len(monomial) == 1 and factor < 0 else None
        if isinstance(choice, ExtentOperation) and choice.kind == "min":
            rest = subtract(extent, Expression(((monomial, factor),)))
            return any(
                is_never_negative(add(rest, multiply(side, factor)), names) for side in (choice.left, choice.right)
            )
    return False


def _atom_is_not_negative(atom: Atom, names: Collection[str] | None) -> bool:
    if isinstance(atom, str):
        return not is_signed(atom) if names is None else atom in names
    found = [is_not_negative(side, names) for side in (atom.left, atom.right)]
    if atom.kind == "max":  # one of two sides is, if their sum is: max(n - m, m - n)
        return any(found) or is_not_negative(add(atom.left, atom.right), names)
    return all(found)


def compared(a: KnownExtent, b: KnownExtent) -> int | None:
    """The sign of `a - b` if it is the same for all non-negative names, else None."""
    difference = subtract(a, b)
    if isinstance(difference, int):
        return difference
    return next((sign for sign in (1, -1) if is_not_negative(add(multiply(difference, sign), -1))), None)


def choose_size(kind: Choice, a: KnownExtent, b: KnownExtent) -> KnownExtent:
    """Requires that `a - b` has one sign for non-negative names."""
    for left, right in ((a, b), (b, a)):
        if is_not_negative(subtract(left, right)):
            return left if kind == "max" else right
    return choose(kind, a, b)


def names_in(extent: Extent) -> set[str]:
    if not isinstance(extent, Expression):
        return set()
    found: set[str] = set()
    for monomial, _ in extent.terms:
        for atom in monomial:
            found |= {atom} if isinstance(atom, str) else names_in(atom.left) | names_in(atom.right)
    return found


@dataclass(frozen=True)
class Solution:
    """The name determined by an extent `factor * name + rest`, given the names in `rest`."""

    position: int
    """The position of the extent in the sequence."""
    name: str
    factor: int
    rest: KnownExtent


def solutions(extents: Sequence[Extent]) -> list[Solution]:
    found: dict[str, Solution] = {}
    pending = [(at, extent) for at, extent in enumerate(extents) if isinstance(extent, Expression)]
    pending.sort(key=lambda place: lone_name(place[1]) is None)
    while pending:
        left = list[tuple[int, Expression]]()
        for at, extent in pending:
            unknown = names_in(extent) - found.keys()
            factor = dict(extent.terms).get((next(iter(unknown)),), 0) if len(unknown) == 1 else 0
            if factor > 0:
                (name,) = unknown
                rest = subtract(extent, multiply(symbol(name), factor))
                if name not in names_in(rest):
                    found[name] = Solution(at, name, factor, rest)
            elif unknown:
                left.append((at, extent))
        if len(left) == len(pending):
            break
        pending = left
    return list(found.values())


def lone_name(extent: Extent) -> str | None:
    match extent:
        case Expression(terms=(((str(name),), 1),)):
            return name
        case _:
            return None


def evaluate(extent: KnownExtent, values: Mapping[str, int]) -> int:
    """Raises KeyError for a missing name."""
    found = substitute(extent, values)
    if not isinstance(found, int):
        raise KeyError(*names_in(found))
    return found


def substitute(extent: _E, values: Mapping[str, KnownExtent]) -> _E:
    """Replaces names simultaneously."""
    if not isinstance(extent, Expression):
        return extent
    total: KnownExtent = 0
    for monomial, coefficient in extent.terms:
        term: KnownExtent = coefficient
        for atom in monomial:
            if isinstance(atom, str):
                term = multiply(term, values.get(atom, symbol(atom)))
            else:
                left, right = substitute(atom.left, values), substitute(atom.right, values)
                term = multiply(term, combine(atom.kind, left, right))
        total = add(total, term)
    return cast("_E", total)


def show_extent(extent: Extent) -> str:
    return "?" if extent is None else str(extent)


def sum_text(extent: KnownExtent) -> str:
    """Syntax of call preconditions: `(n + 1) // 2`."""
    return str(extent).replace(" floordiv ", " // ").replace(" mod ", " % ")


def show_shape(shape: Sequence[Extent]) -> str:
    """Python's syntax: `(n, 784)`, `(n,)`, `()`."""
    return f"({', '.join(map(show_extent, shape))}{',' * (len(shape) == 1)})"


@irdl_attr_definition
class DimsAttr(Data[Shape]):
    """Encoding of a tensor type: its dynamic extents in order, each an expression or `?`.

    ```mlir
    #graph.dims<n, 2 * m + 1, ?>
    tensor<?x784xf32, #graph.dims<n>>
    ```
    """

    name = "graph.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shape:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parse_entry(parser)))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(map(show_extent, self.data))}>")


def extent_attribute(value: object) -> Attribute | None:
    """Returns None unless symbolic."""
    return DimsAttr((value,)) if isinstance(value, Expression) else None


def with_extents(attribute: Attribute, apply: Callable[[Extent], Extent]) -> Attribute:
    """Apply to `DimsAttr` extents, also in arrays."""
    if isinstance(attribute, DimsAttr):
        return DimsAttr(tuple(map(apply, attribute.data)))
    if isinstance(attribute, ArrayAttr) and extents_in(attribute):
        return ArrayAttr([with_extents(item, apply) for item in attribute])
    return attribute


def extents_in(attribute: Attribute) -> Sequence[Extent]:
    if isinstance(attribute, DimsAttr):
        return attribute.data
    if isinstance(attribute, ArrayAttr):
        return [extent for item in attribute for extent in extents_in(item)]
    return ()


def parse_extent(text: str) -> Extent:
    """Parse `n` or `2 * n + 1`. Raises `ShapeError` for other text."""
    parser = Parser(Context(), f"<{text}>")
    try:
        (extent,) = DimsAttr.parse_parameter(parser)
    except (ParseError, ValueError, RecursionError):
        short = text if len(text) < 80 else f"{text[:76]}..."
        raise ShapeError(f"'{short}' is no extent: write a name or an expression such as 2 * n + 1") from None
    return extent


def _parse_entry(parser: AttrParser) -> Extent:
    if parser.parse_optional_punctuation("?") is not None:
        return None
    return parse_sum(parser)


def parse_sum(parser: AttrParser) -> Extent:
    total = _parse_product(parser)
    while True:
        if parser.parse_optional_punctuation("+") is not None:
            total = add(total, _parse_product(parser))
        elif parser.parse_optional_punctuation("-") is not None:
            total = subtract(total, _parse_product(parser))
        else:
            return total


def _parse_product(parser: AttrParser) -> Extent:
    total = _parse_primary(parser)
    while True:
        if parser.parse_optional_punctuation("*") is not None:
            total = multiply(total, _parse_primary(parser))
        elif parser.parse_optional_keyword("floordiv") is not None:
            total = _divide(parser, "floordiv", total)
        elif parser.parse_optional_keyword("mod") is not None:
            total = _divide(parser, "mod", total)
        else:
            return total


def _divide(parser: AttrParser, kind: Division, left: Extent) -> Extent:
    at = parser.pos
    right = _parse_primary(parser)
    try:
        return divide(kind, left, right)
    except ShapeError as error:
        parser.raise_error(str(error), at, parser.pos)


def _parse_primary(parser: AttrParser) -> Extent:
    if parser.parse_optional_punctuation("(") is not None:
        inner = parse_sum(parser)
        parser.parse_punctuation(")")
        return inner
    if parser.parse_optional_punctuation("-") is not None:
        return multiply(-1, _parse_primary(parser))
    number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    if number is not None:
        return number
    at = parser.pos
    name = parser.parse_identifier(" or number as an extent")
    if not name.isascii():
        parser.raise_error(f"the name of an extent is ASCII, got '{name}'", at, parser.pos)
    if name not in ("min", "max") or parser.parse_optional_punctuation("(") is None:
        return symbol(name)
    left = parse_sum(parser)
    parser.parse_punctuation(",")
    right = parse_sum(parser)
    parser.parse_punctuation(")")
    return choose("min" if name == "min" else "max", left, right)


def shape_of(type_: TensorType[Attribute]) -> Shape:
    """Raises `ShapeError` unless the encoding names an extent for each `?`."""
    static = type_.get_shape()
    dynamic = sum(e == DYNAMIC_INDEX for e in static)
    if not isinstance(type_.encoding, DimsAttr):
        return tuple(None if e == DYNAMIC_INDEX else e for e in static)
    named = type_.encoding.data
    if len(named) != dynamic:
        raise ShapeError(f"{type_} has {dynamic} dynamic extents, but its encoding gives {len(named)}")
    for extent in named:
        if isinstance(extent, int):
            raise ShapeError(f"{type_}: the extent {extent} is a number: write it in place of the ?")
    rest = iter(named)
    return tuple(next(rest) if e == DYNAMIC_INDEX else e for e in static)


def tensor_type(shape: Sequence[Extent], element_type: Attribute) -> TensorType[Attribute]:
    dynamic = tuple(extent for extent in shape if not isinstance(extent, int))
    encoding = DimsAttr(dynamic) if any(e is not None for e in dynamic) else NoneAttr()
    return TensorType(element_type, [e if isinstance(e, int) else DYNAMIC_INDEX for e in shape], encoding)


def refines(shape: Sequence[Extent], general: Sequence[Extent]) -> bool:
    """Whether `shape` equals `general` wherever that is known."""
    return len(shape) == len(general) and all(g is None or s == g for s, g in zip(shape, general, strict=True))
