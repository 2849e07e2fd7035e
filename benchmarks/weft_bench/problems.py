"""The table of the operator benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.errors import CompileError, did_you_mean
from weft_bench import image_rows, memory_rows, operator_rows, product_rows
from weft_bench.problem import Problem


def problems(only: Sequence[str] = (), largest: int | None = None) -> list[Problem]:
    """The rows whose names contain a word of `only`, or all, in order.

    Extents are limited to `largest`; rows that become equal are listed once. Raises `CompileError` for a word that
    matches no name.
    """

    def limit(extent: int) -> int:
        return extent if largest is None else min(extent, largest)

    rows = [row for module in (product_rows, image_rows, memory_rows, operator_rows) for row in module.rows(limit)]
    named = {row.name: row for row in reversed(rows)}
    every = [named[name] for name in reversed(named)]
    for word in only:
        if not any(_matches(row, word) for row in every):
            raise CompileError(f"no row of the benchmark has '{word}' in its name{did_you_mean(word, named)}")
    return [row for row in every if not only or any(_matches(row, word) for word in only)]


def _matches(row: Problem, word: str) -> bool:
    return word.lower() in row.name.lower()
