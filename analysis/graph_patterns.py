"""Patterns of graphs: the operators and operands that compute a value.

    from weft.analysis import graph_patterns as P

    x, w, b = P.var("x"), P.var("w"), P.const(name="b")
    linear = P.optional(P.matmul(x, w), lambda product: product + b)
    found = linear.match(value)  # None, or found["x"], found["w"], and found.get("b")

Every operator of the graph dialect is a function here (`P.matmul`, `P.relu`, ...), and patterns can be added,
subtracted, multiplied, divided and negated. A number matches a constant whose elements all equal it. A pattern used
twice, or two variables of one name, match one value. Operands of commutative operators match in both orders.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isclose
from typing import Any, Final, Protocol, TypeAlias, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from weft.dialects.attribute_values import value_of
from weft.dialects.element_types import element_name
from weft.dialects.graph import DIALECT, STRUCTURE, ConstantOp, dense_value, splat_value
from weft.interp.values import Array, array_of_dense
from weft.support.argument_types import shown
from weft.support.errors import CompileError, did_you_mean
from weft.texpr.graph_operators import OPERATORS, Operator

Number: TypeAlias = int | float

_OPERATORS: Final = {operator.name.removeprefix(f"{DIALECT}."): operator for operator in OPERATORS}
_NAMES: Final = {*_OPERATORS, *(op.name.removeprefix(f"{DIALECT}.") for op in STRUCTURE)}
_PRODUCTS: Final = frozenset(f"{DIALECT}.{name}" for name in ("multiply", "divide", "negative"))
_SUMS: Final = frozenset(f"{DIALECT}.{name}" for name in ("add", "subtract"))
_EPSILON: Final = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class HoldsValue(Protocol):
    ssa: SSAValue


@dataclass(frozen=True)
class Match:
    values: Mapping[object, SSAValue] = field(default_factory=dict[object, SSAValue])
    """By name, and by pattern."""
    ops: tuple[Operation, ...] = ()
    """The matched operators, without constants."""
    owned: tuple[Operation, ...] = ()
    """The elements of `ops` whose results only `ops` may use."""

    def __getitem__(self, key: object) -> SSAValue:
        return self.values[key]

    def get(self, key: object) -> SSAValue | None:
        return self.values.get(key)

    def binding(self, key: object, value: SSAValue) -> Match | None:
        """The match extended, or None if `key` has another binding."""
        known = self.values.get(key)
        if known is None:
            return replace(self, values={**self.values, key: value})
        return self if known is value else None

    def with_ops(self, ops: Sequence[Operation]) -> Match:
        return replace(self, ops=(*self.ops, *(op for op in ops if op not in self.ops))) if ops else self

    @property
    def captures(self) -> dict[str, SSAValue]:
        return {key: value for key, value in self.values.items() if isinstance(key, str)}

    def owns(self, op: Operation) -> bool:
        return all(use.operation in self.ops for result in op.results for use in result.uses)


class Pattern(ABC):
    """A description of a value. `|` gives alternatives, of which the first that matches is used."""

    @abstractmethod
    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        """Each match, given the bindings in `found`."""

    @property
    @abstractmethod
    def heads(self) -> frozenset[str] | None:
        """The operators that may compute the value; None for any."""

    def match(self, value: SSAValue | HoldsValue) -> Match | None:
        ssa = value if isinstance(value, SSAValue) else value.ssa
        found = self.matches(ssa, Match())
        return next((match for match in found if all(map(match.owns, match.owned))), None)

    def named(self, name: str) -> Pattern:
        return ConditionPattern(self, name=name)

    def where(self, condition: Callable[[SSAValue], bool]) -> Pattern:
        return ConditionPattern(self, condition=condition)

    def used_once(self) -> Pattern:
        """The pattern, restricted to values that only operators of the match use."""
        return ConditionPattern(self, is_owned=True)

    def __or__(self, other: Pattern) -> Pattern:
        return Alternatives((self, other))

    def __add__(self, other: Pattern | Number) -> Pattern:
        return op("add", self, other)

    def __radd__(self, other: Number) -> Pattern:
        return op("add", other, self)

    def __sub__(self, other: Pattern | Number) -> Pattern:
        return op("subtract", self, other)

    def __rsub__(self, other: Number) -> Pattern:
        return op("subtract", other, self)

    def __mul__(self, other: Pattern | Number) -> Pattern:
        return op("multiply", self, other)

    def __rmul__(self, other: Number) -> Pattern:
        return op("multiply", other, self)

    def __truediv__(self, other: Pattern | Number) -> Pattern:
        return op("divide", self, other)

    def __rtruediv__(self, other: Number) -> Pattern:
        return op("divide", other, self)

    def __matmul__(self, other: Pattern) -> Pattern:
        return op("matmul", self, other)

    def __neg__(self) -> Pattern:
        return op("negative", self)


PatternLike: TypeAlias = "Pattern | Number"


@dataclass(frozen=True, eq=False)
class Variable(Pattern):
    name: str | None = None

    @property
    def heads(self) -> None:
        return None

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        bound = found.binding(self if self.name is None else self.name, value)
        if bound is not None:
            yield bound


@dataclass(frozen=True, eq=False)
class Constant(Pattern):
    number: Number | None = None
    condition: Callable[[Array], bool] | None = None

    @property
    def heads(self) -> frozenset[str]:
        return frozenset(("constant",))

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        if not isinstance(value.owner, ConstantOp):
            return
        if self.number is not None:
            number = number_of(value)
            if number is None or not is_near(number, self.number, value):
                return
        if self.condition is None or self.condition(array_of_constant(value.owner)):
            yield found


@dataclass(frozen=True, eq=False)
class CallPattern(Pattern):
    name: str
    operands: tuple[Any, ...]
    attributes: Mapping[str, object]
    result: int = 0

    @property
    def heads(self) -> frozenset[str]:
        return frozenset((self.name,))

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        if self in found.values:
            if found[self] is value:
                yield found
            return
        owner = value.owner
        if not isinstance(owner, Operation) or owner.name != f"{DIALECT}.{self.name}":
            return
        if cast("OpResult", value).index != self.result or not self._has_attributes(owner):
            return
        given: list[Any] = list(owner.operands)
        if isinstance(owner, Operator):
            given = owner.grouped(given, owner.properties)
        if len(self.operands) > len(given):
            return
        wanted = [*self.operands, *[None] * (len(given) - len(self.operands))]
        start = replace(found, values={**found.values, self: value}).with_ops([owner])
        yield from _match_all(wanted, given, start)
        if owner.has_trait(Commutative) and wanted[0] is not wanted[1]:
            yield from _match_all(wanted[::-1], given, start)

    def _has_attributes(self, owner: Operation) -> bool:
        if not self.attributes:
            return True
        arguments = arguments_of(owner)
        for name, expected in self.attributes.items():
            actual = arguments.get(name)
            if callable(expected):
                if not expected(actual):
                    return False
            elif _comparable(actual) != _comparable(expected):
                return False
        return True


@dataclass(frozen=True, eq=False)
class Alternatives(Pattern):
    patterns: tuple[Pattern, ...]

    @property
    def heads(self) -> frozenset[str] | None:
        heads = [pattern.heads for pattern in self.patterns]
        return None if None in heads else frozenset[str]().union(*cast("list[frozenset[str]]", heads))

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        if self in found.values:
            if found[self] is value:
                yield found
            return
        for pattern in self.patterns:
            for match in pattern.matches(value, found):
                yield replace(match, values={**match.values, self: value})


@dataclass(frozen=True, eq=False)
class ConditionPattern(Pattern):
    pattern: Pattern
    name: str | None = None
    condition: Callable[[SSAValue], bool] | None = None
    is_owned: bool = False

    @property
    def heads(self) -> frozenset[str] | None:
        return self.pattern.heads

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        if self.condition is not None and not self.condition(value):
            return
        for match in self.pattern.matches(value, found):
            bound = match if self.name is None else match.binding(self.name, value)
            if bound is None:
                continue
            if self.is_owned and isinstance(value.owner, Operation):
                bound = replace(bound, owned=(*bound.owned, value.owner))
            yield bound


@dataclass(frozen=True, eq=False)
class Maybe:
    pattern: Pattern


@dataclass(frozen=True, eq=False)
class Chain(Pattern):
    """A product or sum of patterns and a number."""

    parts: tuple[Pattern, ...]
    number: float
    """All numbers combined; 1, or 0, if there are none."""
    is_product: bool

    @property
    def heads(self) -> frozenset[str]:
        return frozenset(("multiply", "divide", "negative") if self.is_product else ("add", "subtract"))

    def matches(self, value: SSAValue, found: Match) -> Iterator[Match]:
        if self in found.values:
            if found[self] is value:
                yield found
            return
        depth = len(self.parts) + 2
        if not self._may_match(value, depth):
            return
        for leaves, number, ops in self._expansions(value, len(self.parts), depth):
            if len(leaves) == len(self.parts) and ops and is_near(number, self.number, value, len(ops)):
                start = replace(found, values={**found.values, self: value}).with_ops(ops)
                yield from self._assigned(self.parts, leaves, start)

    def _may_match(self, value: SSAValue, depth: int) -> bool:
        names: set[str] = set()
        within = _PRODUCTS if self.is_product else _SUMS
        level = [value]
        while level and depth >= 0:
            ops = [v.op for v in level if isinstance(v, OpResult)]
            names.update(op.name for op in ops)
            level = [operand for op in ops if op.name in within for operand in op.operands]
            depth -= 1
        return not any(heads.isdisjoint(names) for heads in self._needed)

    @cached_property
    def _needed(self) -> list[set[str]]:
        return [{f"{DIALECT}.{name}" for name in part.heads} for part in self.parts if part.heads is not None]

    def _assigned(self, parts: Sequence[Pattern], leaves: Sequence[SSAValue], found: Match) -> Iterator[Match]:
        if not parts:
            yield found
            return
        for at, leaf in enumerate(leaves):
            for match in parts[0].matches(leaf, found):
                yield from self._assigned(parts[1:], (*leaves[:at], *leaves[at + 1 :]), match)

    def _expansions(
        self, value: SSAValue, limit: int, depth: int
    ) -> Iterator[tuple[tuple[SSAValue, ...], float, tuple[Operation, ...]]]:
        """Expand a value into at most `limit` leaves and a number."""
        neutral = 1.0 if self.is_product else 0.0
        owner = value.owner
        if isinstance(owner, ConstantOp):
            if (number := number_of(value)) is not None:
                yield (), number, ()
        elif depth and isinstance(owner, Operator):
            name = owner.name.removeprefix(f"{DIALECT}.")
            if name == ("multiply" if self.is_product else "add"):
                left, right = owner.operands
                for some, one, inner in self._expansions(left, limit, depth - 1):
                    for more, two, others in self._expansions(right, limit - len(some), depth - 1):
                        yield (*some, *more), one * two if self.is_product else one + two, (owner, *inner, *others)
            elif name == ("divide" if self.is_product else "subtract"):
                number = number_of(owner.operands[1])
                if number is not None and (number != 0 or not self.is_product):
                    for some, one, inner in self._expansions(owner.operands[0], limit, depth - 1):
                        yield some, one / number if self.is_product else one - number, (owner, *inner)
            elif name == "negative" and self.is_product:
                for some, one, inner in self._expansions(owner.operands[0], limit, depth - 1):
                    yield some, -one, (owner, *inner)
        if limit:
            yield (value,), neutral, ()


def _match_all(patterns: Sequence[Any], values: Sequence[Any], found: Match) -> Iterator[Match]:
    """Absent operands are None, variadic ones lists."""
    if not patterns:
        yield found
        return
    pattern, value = patterns[0], values[0]
    if isinstance(value, list):
        group = cast("list[SSAValue]", value)
        several: Iterator[Match] = iter(())
        if isinstance(pattern, list) and len(cast("list[Pattern]", pattern)) == len(group):
            several = _match_all(cast("list[Pattern]", pattern), group, found)
    elif isinstance(pattern, Maybe):
        several = iter((found,)) if value is None else pattern.pattern.matches(value, found)
    elif pattern is None or value is None:
        several = iter((found,)) if pattern is value else iter(())
    else:
        several = cast("Pattern", pattern).matches(value, found)
    for match in several:
        yield from _match_all(patterns[1:], values[1:], match)


def _comparable(value: object) -> object:
    return tuple(map(_comparable, cast("Sequence[object]", value))) if isinstance(value, list | tuple) else value


def var(name: str | None = None) -> Pattern:
    """Any value. Variables of one name match one value."""
    return Variable(name)


def const(value: Number | Callable[[Array], bool] | None = None, name: str | None = None) -> Pattern:
    """A constant: any, one whose elements all equal a number up to rounding, or one whose array satisfies a
    condition."""
    found = Constant(None, value) if callable(value) else Constant(value)
    return found if name is None else found.named(name)


def op(name: str, *operands: object, result: int = 0, **attributes: object) -> Pattern:
    """The `result` of an operator. Operands are patterns or numbers, or a list of them for a variadic operand.

    Operands not given must be absent in the graph, unless `optional`. `attributes` are values (omitted attributes of
    an op have their defaults) or predicates. Raises `CompileError` for an unknown operator or too many operands.
    """
    if name not in _NAMES:
        raise CompileError(f"there is no operator '{name}'{did_you_mean(name, _NAMES)}")
    operator = _OPERATORS.get(name)
    if operator is not None:
        if len(operands) > len(operator.ROLES):
            raise CompileError(f"pattern {name}: the operator has {len(operator.ROLES)} operands, got {len(operands)}")
        if unknown := attributes.keys() - (operator.SIGNATURE.parameters.keys() - {"name"}):
            known = operator.SIGNATURE.parameters.keys() - {"name"} - {role.name for role in operator.ROLES}
            unknown_one = min(unknown)
            raise CompileError(
                f"pattern {name}: there is no attribute '{unknown_one}'{did_you_mean(unknown_one, known)}"
            )
    return CallPattern(name, tuple(_operand(name, operand) for operand in operands), attributes, result)


def _operand(name: str, operand: object) -> object:
    if operand is None or isinstance(operand, Maybe):
        return operand
    if isinstance(operand, list | tuple):
        return [_operand(name, item) for item in cast("Sequence[object]", operand)]
    return _pattern(operand, name)


def _pattern(value: object, what: str) -> Pattern:
    if isinstance(value, Pattern):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CompileError(f"pattern {what}: an operand is a pattern or a number, got {shown(value)}")
    return Constant(value)


def optional(pattern: Pattern, step: Callable[[Pattern], Pattern] | None = None) -> Any:
    """`step` applied to the pattern, or the pattern alone: `optional(product, lambda y: y + bias)`. Without a step, an
    optional operand: `dense(x, w, optional(b))`."""
    return Maybe(pattern) if step is None else step(pattern) | pattern


def factors(*parts: PatternLike) -> Pattern:
    """The product of the parts, in any order and grouping; numbers are multiplied, quotients by numbers are
    products."""
    return _chain(parts, is_product=True)


def terms(*parts: PatternLike) -> Pattern:
    """The sum of the parts, in any order and grouping; numbers are added."""
    return _chain(parts, is_product=False)


def _chain(parts: Sequence[PatternLike], *, is_product: bool) -> Pattern:
    number = 1.0 if is_product else 0.0
    patterns: list[Pattern] = []
    for part in parts:
        if isinstance(part, Pattern):
            patterns.append(part)
        else:
            number = number * part if is_product else number + part
    # Variables last, because the bindings of other parts determine them.
    patterns.sort(key=lambda pattern: pattern.heads is None)
    return Chain(tuple(patterns), number, is_product)


def __getattr__(name: str) -> Callable[..., Pattern]:
    if name not in _NAMES:
        raise AttributeError(f"there is no operator '{name}'{did_you_mean(name, _NAMES)}")

    def of(*operands: object, result: int = 0, **attributes: object) -> Pattern:
        return op(name, *operands, result=result, **attributes)

    return of


def arguments_of(owner: Operation) -> Mapping[str, object]:
    """Attributes as Python values, with defaults."""
    if not isinstance(owner, Operator):
        return {name: value_of(attribute) for name, attribute in owner.properties.items()}
    defaults = {
        name: parameter.default
        for name, parameter in owner.SIGNATURE.parameters.items()
        if parameter.default is not parameter.empty
    }
    return {**defaults, **owner.arguments(lambda shape: shape)}


def array_of_constant(constant: ConstantOp) -> Array:
    """The elements; bf16 as float32."""
    found = array_of_dense(dense_value(constant))
    if found is None:
        raise CompileError.at(constant, f"there are no arrays of {constant.result.type.element_type}")
    return found


def number_of(value: SSAValue) -> Number | None:
    return splat_value(value.owner) if isinstance(value.owner, ConstantOp) else None


def is_near(found: Number, expected: Number, value: SSAValue, roundings: int = 1) -> bool:
    """Whether numbers are equal up to `roundings` of the type of `value`; integers must be equal."""
    type_ = cast("TensorType[Attribute]", value.type)
    epsilon = _EPSILON.get(str(element_name(type_.element_type)), 0.0) * max(roundings, 1)
    return found == expected or isclose(found, expected, rel_tol=epsilon, abs_tol=0.0)
