"""Options that the benchmarks share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """Reads a number from `least` on, as `argparse` wants it."""

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
    """Say on standard error what is going on."""
    print(line, file=sys.stderr, flush=True)


def positives(text: str) -> list[int]:
    """Numbers from 1 on, separated by commas, each once."""
    return list(dict.fromkeys(positive(part) for part in text.split(",")))


def words(text: str) -> list[str]:
    """Words separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
