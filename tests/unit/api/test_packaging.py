"""The package list names every folder of code, and the wheel works where no checkout is in sight."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOT_PACKAGES = {"benchmarks", "build", "dist", "docs", "examples", "tests"}

SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
FOLDERS: dict[str, str] = {folder: package for package, folder in SETUPTOOLS["package-dir"].items()}


def package_name(folder: Path) -> str:
    """The import name of a folder given relative to the root."""
    room, *rest = folder.parts
    return ".".join([FOLDERS.get(room, f"(no package-dir for {room})"), *rest])


def test_package_list_matches_the_disk() -> None:
    rooms = [p for p in ROOT.iterdir() if p.is_dir() and p.name not in NOT_PACKAGES and p.name[0] != "."]
    folders = {source.parent.relative_to(ROOT) for room in rooms for source in room.rglob("*.py")}
    assert [f for f in sorted(folders) if not (ROOT / f / "__init__.py").exists()] == []
    assert sorted(SETUPTOOLS["packages"]) == sorted(["weft_bench", *(package_name(folder) for folder in folders)])


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Standard output of a command; its whole output is the failure message when it fails."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with weft installed from a wheel that was built from a copy of the sources."""
    work = tmp_path_factory.mktemp("wheel")
    sources = work / "sources"
    sources.mkdir()
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, sources / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / file, sources)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    run(*pip, "wheel", *offline, "--no-build-isolation", "-w", work, sources, cwd=work)
    (wheel,) = work.glob("*.whl")
    venv = work / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=work)
    run(*pip, "--python", venv / "bin" / "python", "install", *offline, wheel, cwd=work)
    return venv


@pytest.mark.slow
def test_wheel_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    # The running environment lends its dependencies, not its editable weft: PYTHONPATH reads no .pth files.
    dependencies = sysconfig.get_path("purelib")
    packages = SETUPTOOLS["packages"]
    code = f"import importlib\nfor p in {packages}: print(importlib.import_module(p).__file__)"
    files = run(installed / "bin" / "python", "-c", code, cwd=tmp_path, PYTHONPATH=dependencies)
    assert len(files.split()) == len(packages)
    assert [f for f in files.split() if not Path(f).is_relative_to(installed)] == []
    for name in (
        "py.typed",
        "__init__.pyi",
        "backends/reserved_names.txt",
        "runtime/native_call.ll",
        "tools/show/page.css",
        "tools/show/page.js",
    ):
        assert list(installed.rglob(f"weft/{name}")), name

    module = [installed / "bin" / "python", "-m", "weft.tools.weft_opt"]
    for driver in (module, [installed / "bin" / "weft-opt"]):
        help_text = run(*driver, "--help", cwd=tmp_path, PYTHONPATH=dependencies)
        assert help_text.startswith("usage:")
    words = ("bench", "ops", "--only", "relu", "--largest", "8", "--rounds", "1", "--threads", "1", "--json")
    found = json.loads(run(installed / "bin" / "weft", *words, cwd=tmp_path, PYTHONPATH=dependencies))
    assert found["rows"] and not found["failures"]
