"""`docs/testing-passes.md`: its files, written into an empty folder, and its commands, run there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "testing-passes.md").read_text()
FILES = re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    site = tmp_path / "site"
    # In the place of an environment of its own: lit passes no PYTHONPATH on.
    with (tmp_path / "tests" / "lit.cfg.py").open("a") as config:
        config.write(f"config.environment['PYTHONPATH'] = {str(site)!r}\n")
    pip = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site), "."]
    for command in (pip, ["lit.main", "-v", "tests"], ["pytest", "-q", "-p", "no:cacheprovider", "tests"]):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert len(FILES) == 6
