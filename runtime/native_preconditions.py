"""Call preconditions as native code: a predicate on the numbers of a call. If 64-bit arithmetic overflows, or a divisor
is not positive, it is false; the slow path, with unbounded integers, then decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from weft.backends.llvm.jit import jit_forever
from weft.support.call_preconditions import CallPrecondition

_COMPARISONS: Final = {"==": "eq", "<=": "sle", "<": "slt"}


@dataclass
class _Code:
    """Lines of LLVM IR."""

    lines: list[str] = field(default_factory=list[str])
    unclear: list[str] = field(default_factory=list[str])

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name


@dataclass(frozen=True)
class _Number:
    code: _Code
    text: str

    def _checked(self, operation: str, left: _Number | int, right: _Number | int) -> _Number:
        call = f"@llvm.{operation}.with.overflow.i64(i64 {_text(left)}, i64 {_text(right)})"
        pair = self.code.value(f"call {{ i64, i1 }} {call}")
        self.code.unclear.append(self.code.value(f"extractvalue {{ i64, i1 }} {pair}, 1"))
        return _Number(self.code, self.code.value(f"extractvalue {{ i64, i1 }} {pair}, 0"))

    def __add__(self, other: _Number | int) -> _Number:
        return self._checked("sadd", self, other)

    def __radd__(self, other: int) -> _Number:
        return self._checked("sadd", other, self)

    def __sub__(self, other: _Number | int) -> _Number:
        return self._checked("ssub", self, other)

    def __rsub__(self, other: int) -> _Number:
        return self._checked("ssub", other, self)

    def __mul__(self, other: _Number | int) -> _Number:
        return self._checked("smul", self, other)

    def __rmul__(self, other: int) -> _Number:
        return self._checked("smul", other, self)

    def _divided(self, left: _Number | int, right: _Number | int) -> tuple[str, str]:
        value = self.code.value
        bad = value(f"icmp sle i64 {_text(right)}, 0")
        self.code.unclear.append(bad)
        divisor = value(f"select i1 {bad}, i64 1, i64 {_text(right)}")
        quotient, rest = (value(f"{op} i64 {_text(left)}, {divisor}") for op in ("sdiv", "srem"))
        below = value(f"ashr i64 {rest}, 63")  # -1 or 0
        added = value(f"and i64 {below}, {divisor}")
        return value(f"add i64 {quotient}, {below}"), value(f"add i64 {rest}, {added}")

    def __floordiv__(self, other: _Number | int) -> _Number:
        return _Number(self.code, self._divided(self, other)[0])

    def __rfloordiv__(self, other: int) -> _Number:
        return _Number(self.code, self._divided(other, self)[0])

    def __mod__(self, other: _Number | int) -> _Number:
        return _Number(self.code, self._divided(self, other)[1])

    def __rmod__(self, other: int) -> _Number:
        return _Number(self.code, self._divided(other, self)[1])

    def min(self, other: _Number | int) -> _Number:
        return self._chosen("smin", other)

    def max(self, other: _Number | int) -> _Number:
        return self._chosen("smax", other)

    def _chosen(self, choose: str, other: _Number | int) -> _Number:
        return _Number(self.code, self.code.value(f"call i64 @llvm.{choose}.i64(i64 {self.text}, i64 {_text(other)})"))


def _text(number: _Number | int) -> str:
    if isinstance(number, _Number):
        return number.text
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return str(number)


def predicate_address(preconditions: Sequence[CallPrecondition], slots: Mapping[str, int]) -> int:
    """Returns the address of `bool f(int64_t *slots)`, on the numbers in the slots of their names."""
    return _jit(predicate_ir(preconditions, slots))


@cache
def _jit(text: str) -> int:
    return jit_forever(text, 0).address("weft_preconditions")


def predicate_ir(preconditions: Sequence[CallPrecondition], slots: Mapping[str, int]) -> str:
    try:
        lines, result = _lines(preconditions, slots)
    except (OverflowError, ZeroDivisionError):  # of constants
        lines, result = (), "false"
    return "\n".join(("define i1 @weft_preconditions(ptr %slots) {", *lines, f"  ret i1 {result}", "}", ""))


def _lines(preconditions: Sequence[CallPrecondition], slots: Mapping[str, int]) -> tuple[Sequence[str], str]:
    code = _Code()
    numbers: dict[str, _Number] = {}
    for name in dict.fromkeys(name for fact in preconditions for name in fact.names):
        place = code.value(f"getelementptr i64, ptr %slots, i64 {slots[name]}")
        numbers[name] = _Number(code, code.value(f"load i64, ptr {place}"))
    result = "true"
    for fact in preconditions:
        holds = "false"
        for comparison in fact.comparisons:
            left, right = _text(comparison.left(numbers)), _text(comparison.right(numbers))
            relation = code.value(f"icmp {_COMPARISONS[comparison.relation]} i64 {left}, {right}")
            holds = code.value(f"or i1 {holds}, {relation}")
        result = code.value(f"and i1 {result}, {holds}")
    unclear = "false"
    for bit in code.unclear:
        unclear = code.value(f"or i1 {unclear}, {bit}")
    clear = code.value(f"xor i1 {unclear}, true")
    result = code.value(f"and i1 {result}, {clear}")
    return code.lines, result
