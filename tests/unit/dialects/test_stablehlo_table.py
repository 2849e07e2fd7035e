"""The table of ops of StableHLO by element types in docs/embedding.md is that of the examples."""

import pytest
from stablehlo_table import PAGE, names, rows_of, with_table


def test_rows() -> None:
    assert rows_of(PAGE.read_text()) == names(), "run: python docs/generators/stablehlo_table.py --write"


@pytest.mark.slow
def test_cells() -> None:
    text = PAGE.read_text()
    assert with_table(text) == text, "run: python docs/generators/stablehlo_table.py --write"
