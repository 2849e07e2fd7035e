"""Options shared by the benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """A parser for `argparse` of numbers of at least `least`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no number from {least} on")
        return number

    return read


positive = at_least(1)


def progress(line: str) -> None:
    """Print progress on standard error."""
    print(line, file=sys.stderr, flush=True)


def positives(text: str) -> list[int]:
    """Distinct positive numbers, separated by commas."""
    return list(dict.fromkeys(positive(part) for part in text.split(",")))


def words(text: str) -> list[str]:
    """Words separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
