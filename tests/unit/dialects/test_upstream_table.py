"""The table of programs in upstream's dialects has a row for each of them."""

from upstream_table import PAGE, names, rows_of


def test_each_program_has_a_row() -> None:
    assert rows_of(PAGE.read_text()) == names(), "run: python docs/generators/upstream_table.py --write"
