"""C functions of a header that check requirements of a call. Overflow violates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.support.call_preconditions import CallPrecondition

HELPERS: Final = """\
/* Arithmetic of the functions weft_check_...: *bad is set by overflow, and by a divisor that is not positive. */
static inline int64_t weft_checked_sum(int64_t x, int64_t y, bool *bad) {
  if (y < 0 ? x < INT64_MIN - y : x > INT64_MAX - y) return *bad = true, 0;
  return x + y;
}
static inline int64_t weft_checked_difference(int64_t x, int64_t y, bool *bad) {
  if (y < 0 ? x > INT64_MAX + y : x < INT64_MIN + y) return *bad = true, 0;
  return x - y;
}
static inline int64_t weft_checked_product(int64_t x, int64_t y, bool *bad) {
  if (x > 0 ? (y > 0 ? x > INT64_MAX / y : y < INT64_MIN / x)
            : (y > 0 ? x < INT64_MIN / y : x != 0 && y < INT64_MAX / x)) return *bad = true, 0;
  return x * y;
}
static inline int64_t weft_checked_quotient(int64_t x, int64_t y, bool *bad) {
  if (y <= 0) return *bad = true, 0;
  return x / y - (x % y < 0);
}
static inline int64_t weft_checked_remainder(int64_t x, int64_t y, bool *bad) {
  if (y <= 0) return *bad = true, 0;
  return x % y < 0 ? x % y + y : x % y;
}

"""


@dataclass(frozen=True)
class _Number:
    """A C expression."""

    text: str

    def __add__(self, other: _Number | int) -> _Number:
        return _called("sum", self, other)

    def __radd__(self, other: int) -> _Number:
        return _called("sum", other, self)

    def __sub__(self, other: _Number | int) -> _Number:
        return _called("difference", self, other)

    def __rsub__(self, other: int) -> _Number:
        return _called("difference", other, self)

    def __mul__(self, other: _Number | int) -> _Number:
        return _called("product", self, other)

    def __rmul__(self, other: int) -> _Number:
        return _called("product", other, self)

    def __floordiv__(self, other: _Number | int) -> _Number:
        return _called("quotient", self, other)

    def __rfloordiv__(self, other: int) -> _Number:
        return _called("quotient", other, self)

    def __mod__(self, other: _Number | int) -> _Number:
        return _called("remainder", self, other)

    def __rmod__(self, other: int) -> _Number:
        return _called("remainder", other, self)

    def min(self, other: _Number | int) -> _Number:
        return _Number(f"({self.text} < {_text(other)} ? {self.text} : {_text(other)})")

    def max(self, other: _Number | int) -> _Number:
        return _Number(f"({self.text} > {_text(other)} ? {self.text} : {_text(other)})")


def _called(operation: str, left: _Number | int, right: _Number | int) -> _Number:
    return _Number(f"weft_checked_{operation}({_text(left)}, {_text(right)}, &bad)")


def _text(number: _Number | int) -> str:
    """Raises `OverflowError` for more than 64 bits, and for the least integer, which has no literal in C."""
    if isinstance(number, _Number):
        return number.text
    if not -(1 << 63) < number < 1 << 63:
        raise OverflowError
    return f"INT64_C({number})"


def check_function(
    name: str, parameters: Sequence[str], requirements: Sequence[tuple[CallPrecondition, str]], names: Mapping[str, str]
) -> str:
    """The C function returns NULL or the text of the first violated requirement. `names` maps names to parameters."""
    lines = [f"static inline const char *{name}({', '.join(f'int64_t {parameter}' for parameter in parameters)}) {{"]
    lines.append("  bool bad = false;")
    values: dict[str, _Number] = {own: _Number(parameter) for own, parameter in names.items()}
    for fact, text in requirements:
        holds = " || ".join(
            f"{_side(one.left, values)} {one.relation} {_side(one.right, values)}" for one in fact.comparisons
        )
        lines.append(f"  if (!({holds}) || bad) return {text};")
    return "\n".join((*lines, "  return NULL;", "}", ""))


def _side(number: Callable[[Mapping[str, _Number]], _Number | int], values: Mapping[str, _Number]) -> str:
    """Sets `bad` if constants overflow or divide by zero."""
    try:
        return _text(number(values))
    except (OverflowError, ZeroDivisionError):
        return "(bad = true, INT64_C(0))"
