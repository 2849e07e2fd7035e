"""`make test-changed` finds the tests of a change, nearest first."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests"))

from changed import affected, covering, imports_of  # noqa: E402


@pytest.mark.slow
def test_a_pass_is_covered_by_those_that_import_or_name_it() -> None:
    found = {one.file: one for one in covering(["passes/tir/tir_transpose_tiles.py"])}
    named = found["tests/filecheck/tir/transpose-tiles.mlir"]
    assert named.distance == 0 and named.reason == "runs tir-transpose-tiles <- weft.passes.tir.tir_transpose_tiles"
    assert found["tests/numeric/autoschedule/test_transposed_tiles.py"].distance == 0
    through = found["tests/numeric/passes/test_lowering_programs.py"]
    assert through.reason == "weft.passes.pipelines <- weft.passes.tir.tir_transpose_tiles"
    distances = [one.distance for one in found.values()]
    assert distances == sorted(distances)


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("tools/show/page.js", "tests/unit/tools/test_show_html.py"),  # the file is a part of a module
        ("passes/schedule/compute_at.py", "tests/schedule/compute_at/compute-at.mlir"),
        ("tools/run_command.py", "tests/filecheck/tools/weft-run.mlir"),
        ("tests/unit/docs/test_site.py", "tests/unit/docs/test_site.py"),
        ("docs/generators/gallery.py", "tests/unit/docs/test_site.py"),
    ],
)
def test_changes_and_their_tests(changed: str, test: str) -> None:
    assert test in [one.file for one in covering([changed])][:40]


def test_names_of_weft_are_imports_of_their_modules(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("import weft\n\n\ndef test():\n    from weft.te import compute\n    weft.tune(compute)\n")
    assert imports_of(file) == {"weft.te", "weft.driver.tune"}
    assert affected(["weft.driver.tuning_plot"])["weft.driver.tuned"] == (1, "weft.driver.tuning_plot")
