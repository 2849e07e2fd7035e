"""`weft bench dynamic` on tiny sizes: what tables hold, and that results of both builds are compared.

Nothing here asserts a time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft import graph as G
from weft.support.errors import CompileError
from weft.tools.weft_cli import execute
from weft_bench import dynamic
from weft_bench.dynamic import DynamicRow, Input

SUMS = DynamicRow(
    "sums m x n", {"m": (1, 3), "n": (2, 5)}, lambda m, n: [Input((m, n))], lambda x, **_: G.sum(x, axis=1)
)


@pytest.fixture
def only_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "_TABLES", ("weft_bench.dynamic_rows",))
    monkeypatch.setattr("weft_bench.dynamic_rows.ROWS", (SUMS,))
    monkeypatch.setattr("weft_bench.dynamic_command.events", dynamic.measure)


def test_variants_and_points() -> None:
    assert SUMS.variants() == [("m", "n"), ("m",), ("n",)]
    assert SUMS.points(("n",)) == [{"m": 1, "n": 2}, {"m": 1, "n": 5}]


def test_a_row_has_a_ratio_for_each_size(only_sums: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "dynamic", "--rounds", "1"]) == 0
    out = capsys.readouterr().out
    assert sum(line.startswith("sums m x n ") for line in out.splitlines()) == 3
    assert "geometric mean" in out and "of 6 points" in out


def test_a_run_continues_with_the_points_that_a_file_lacks(
    only_sums: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "points.jsonl"
    command = ["bench", "dynamic", "--rounds", "1", "--together", "--points", str(file)]
    assert execute(command) == 0
    first, second = file.read_text().splitlines()
    file.write_text(second + "\n")
    assert execute(command) == 0
    lines = file.read_text().splitlines()
    assert lines[0] == second and len(lines) == 2
    assert json.loads(lines[1])["sizes"] == json.loads(first)["sizes"]
    assert "of 2 points" in capsys.readouterr().out


def test_a_file_of_other_content_is_refused(only_sums: None, tmp_path: Path) -> None:
    file = tmp_path / "points.jsonl"
    file.write_text("{\n")
    with pytest.raises(CompileError, match="does not hold points of this benchmark"):
        execute(["bench", "dynamic", "--points", str(file)])


def test_different_results_fail(
    only_sums: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compute(x: G.Value, m: Any, n: Any) -> G.Value:
        return G.sum(x if isinstance(m, int) else G.negative(x), axis=1)

    wrong = DynamicRow(SUMS.name, SUMS.sizes, SUMS.inputs, compute)
    monkeypatch.setattr("weft_bench.dynamic_rows.ROWS", (wrong,))
    assert execute(["bench", "dynamic", "--rounds", "1", "--together"]) == 1
    assert "dynamic computed a wrong result" in capsys.readouterr().out


def test_unknown_rows_are_refused() -> None:
    with pytest.raises(CompileError, match="no row of the benchmark has 'prodcut' in its name"):
        execute(["bench", "dynamic", "--only", "prodcut"])


def test_every_row_is_a_graph_with_symbols() -> None:
    for row in dynamic.rows():
        assert len({len(sizes) for sizes in row.sizes.values()}) == 1, row.name
        row.module({name: name for name in row.sizes}).verify()
