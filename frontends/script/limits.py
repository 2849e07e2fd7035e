"""Limits on values computed at parse time, checked before operations whose results can be much larger than their
operands."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import cast

from weft.frontends.script.values import walk
from weft.texpr.expr import Expr

MOST_BITS = 4096
"""Maximum size of an integer."""
MOST_ITEMS = 1 << 16
"""Maximum size of text, lists, tuples and dicts, including nested items."""
MOST_TERMS = 4096
"""Maximum size of a named index expression, because each use expands it."""
_MOST_OPERATIONS = 1024
"""Maximum for functions whose time or result grows faster than their arguments."""

_ITEMS = "items in text, a list, a tuple or a dict"
_SEQUENCES = (str, bytes, list, tuple)
_OF_RANGES = (range, bool, len)


def check_arguments(function: object, args: Sequence[object]) -> None:
    """Raises ValueError if the call would run too long, return too large a result, or format text."""
    for arg in args:
        if isinstance(arg, range) and function not in _OF_RANGES:
            _limit((arg.stop - arg.start) // arg.step, MOST_ITEMS, "numbers in a range")
    if function in (pow, operator.pow) and len(args) == 2:
        base, exponent = args
        if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1:
            _limit(base.bit_length() * exponent, MOST_BITS, "bits in an integer")
    elif function is operator.lshift:
        number, count = args
        if isinstance(number, int) and isinstance(count, int):
            _limit(count if number else 0, MOST_BITS, "bits in a shift")
    elif function is operator.mul:
        for items, count in (args, args[::-1]):
            if isinstance(items, _SEQUENCES) and isinstance(count, int):
                _limit(size_of(cast("object", items)) * count, MOST_ITEMS, _ITEMS)
    elif function is operator.mod and isinstance(args[0], str | bytes):
        raise ValueError("text is not formatted in a script")
    elif function in (round, math.factorial, math.comb, math.perm):
        for arg in args[-1:] if function is round else args:
            if isinstance(arg, int) and (function is not round or len(args) > 1):
                _limit(abs(arg), _MOST_OPERATIONS, "as an argument")
    elif function in (sum, math.prod) and args and isinstance(args[0], list | tuple | range):
        items = cast("Iterable[object]", args[0])
        if function is sum and not all(isinstance(item, int | float) for item in items):
            raise ValueError("sum adds numbers up")
        if function is math.prod:
            _limit(len(cast("Sequence[object]", args[0])), _MOST_OPERATIONS, "factors")


def check_result(value: object) -> None:
    if isinstance(value, int):
        _limit(value.bit_length(), MOST_BITS, "bits in an integer")
    elif isinstance(value, (*_SEQUENCES, dict)):
        size_of(cast("object", value))


def size_of(value: object) -> int:
    """The number of items includes nested ones; a list that occurs twice counts twice. Raises ValueError above the
    limit."""
    count = 0
    pending = [value]
    while pending:
        top = pending.pop()
        if isinstance(top, str | bytes):
            count += len(top)
        elif isinstance(top, list | tuple):
            pending += cast("Sequence[object]", top)
        elif isinstance(top, dict):
            pending += [part for item in cast("dict[object, object]", top).items() for part in item]
        count += 1
        _limit(count, MOST_ITEMS, _ITEMS)
    return count


def check_terms(expr: Expr) -> None:
    """Raises ValueError if the written-out expression is too long."""
    if next(islice(walk(expr), MOST_TERMS, None), None) is not None:
        raise ValueError(
            f"this expression has more than {MOST_TERMS} terms: compute a part of it once, part: T.int64 = ..."
        )


def _limit(number: int, most: int, what: str) -> None:
    if number > most:
        shown = str(number) if number.bit_length() <= 64 else f"more than 2**{number.bit_length() - 1}"
        raise ValueError(f"{shown} {what}: scripts compute with at most {most}")
