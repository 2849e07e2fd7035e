"""Mutated IR files: no crash, no hang, no internal error. `run_mutations.py` runs many."""

from __future__ import annotations

import pytest
from mutations import mutated, sources, tokens_of
from run_mutations import problems


@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_are_compiled_or_refused(seed: int) -> None:
    assert not list(problems(mutated(seed)))


def test_mutations_repeat_and_differ() -> None:
    assert mutated(7) == mutated(7)
    assert len({mutated(seed) for seed in range(40)}) > 30
    assert "".join(tokens_of(sources()[0])) == sources()[0]
