"""Options that the benchmarks share."""

from __future__ import annotations

import argparse
import sys


def positive(text: str) -> int:
    """A number from 1 on, as `argparse` wants it."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 on")
    return number


def progress(line: str) -> None:
    """Say on standard error what is going on."""
    print(line, file=sys.stderr, flush=True)


def positives(text: str) -> list[int]:
    """Numbers from 1 on, separated by commas, each once."""
    return list(dict.fromkeys(positive(part) for part in text.split(",")))


def words(text: str) -> list[str]:
    """Words separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
