"""The tests that cover a change: `python tests/changed.py [--base REVISION] [--most N] [--list]`.

`--list` prints them with the reason, otherwise they run. A test covers a changed module if it imports it, itself or
through other modules (`weft.build` is an import of its module); the fewer there are in between, the earlier the test
stands. At most `--most` files of pytest run. FileCheck tests are those whose RUN lines name a pass, target or command
of a changed module, or of one that imports it directly. Changed tests run as they are.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ROOMS = ROOT / "pyproject.toml"
_RUN = re.compile(r"RUN: (.*)")
_COMMAND = re.compile(r"\bweft [a-z]+")
_WORD = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
MOST = 40


@dataclass(frozen=True)
class Covering:
    """A test file, the number of modules between it and the change, and why it covers it."""

    file: str
    distance: int
    reason: str


@cache
def packages() -> Mapping[str, Path]:
    """Package -> folder, of weft and `weft_bench`."""
    import tomllib

    folders = tomllib.loads(_ROOMS.read_text())["tool"]["setuptools"]["package-dir"]
    return {package: ROOT / folder for package, folder in folders.items()}


@cache
def modules() -> Mapping[str, Path]:
    """Module -> file: of the packages, and of what tests share, which they import by bare names."""
    found: dict[str, Path] = {}
    shared = {"": ROOT / "tests/helpers"}, {"": ROOT / "docs/generators"}, {"": ROOT / "tests/fuzz"}, packages()
    for package, folder in (entry for places in shared for entry in places.items()):
        for file in folder.glob("*.py") if package in ("", "weft") else folder.rglob("*.py"):
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join(filter(None, [package, *parts])).removesuffix(".__init__")
            found[name] = file
    return found


@cache
def public_names() -> Mapping[str, str]:
    """`weft.NAME` -> the module that defines it."""
    stub = (ROOT / "api/__init__.pyi").read_text()
    return {f"weft.{name}": module for module, name in re.findall(r"^from (\S+) import (\w+)", stub, re.MULTILINE)}


@cache
def source(file: Path) -> str:
    return file.read_text()


@cache
def imports_of(file: Path) -> set[str]:
    """The modules that a file imports, also within functions, or names as "module:attribute" or `weft.name`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source(file))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "weft":
            found.add(public_names().get(f"weft.{node.attr}", ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("weft."):
            found.add(node.value.partition(":")[0])
    # `import weft` alone imports nothing of it.
    return {name for name in found if name in modules() and name != "weft"}


@cache
def importers() -> Mapping[str, frozenset[str]]:
    """Module -> the modules that import it."""
    found: dict[str, set[str]] = {}
    for name, file in modules().items():
        for imported in imports_of(file):
            found.setdefault(imported, set()).add(name)
    return {name: frozenset(users) for name, users in found.items()}


def affected(changed: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Module -> its distance from a changed one, and the next module on the way there."""
    found = {name: (0, "") for name in changed}
    front = list(found)
    while front:
        reached: list[str] = []
        for name in front:
            for user in sorted(importers().get(name, ())):
                if user not in found:
                    found[user] = found[name][0] + 1, name
                    reached.append(user)
        front = reached
    return found


def changed_files(base: str) -> list[str]:
    """The files that differ from `base`, and new ones, relative to the root."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.split()

    (start,) = git("merge-base", base, "HEAD")
    return sorted({*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")})


def covering(changed: Iterable[str]) -> list[Covering]:
    """The tests that cover changes of these files, nearest first."""
    files = [ROOT / name for name in changed]
    names = {file: name for name, file in modules().items()}
    # Other files are parts of the modules that name them, such as "page.js".
    data = [file.name for file in files if file.suffix != ".py"]
    holders = [name for file, name in names.items() if any(one in source(file) for one in data)] if data else []
    near = affected([*(names[file] for file in files if file in names), *holders])
    found = [
        Covering(str(file.relative_to(ROOT)), -1, "changed") for file in files if file.is_file() and _is_test(file)
    ]
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        named = next((one for one in data if one in source(file)), None)
        if named is not None:
            found.append(Covering(str(file.relative_to(ROOT)), 0, f"reads {named}"))
        ways = [(near[name][0], name) for name in imports_of(file) if name in near]
        if ways:
            distance, name = min(ways)
            found.append(Covering(str(file.relative_to(ROOT)), distance, " <- ".join(_way(name, near))))
    found += _filecheck_tests(near)
    first: dict[str, Covering] = {}
    for one in sorted(found, key=lambda one: (one.distance, one.file)):
        first.setdefault(one.file, one)
    return list(first.values())


def _is_test(file: Path) -> bool:
    if file.suffix == ".py":
        return file.name.startswith("test_") and ROOT / "tests" in file.parents
    return any(ROOT / folder in file.parents for folder in ("tests/filecheck", "tests/schedule")) and bool(
        _RUN.search(file.read_text())
    )


def _way(name: str, near: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    while name:
        yield name
        name = near[name][1]


def _filecheck_tests(near: Mapping[str, tuple[int, str]]) -> Iterator[Covering]:
    """FileCheck tests whose RUN lines name what a changed module, or one that imports it, defines."""
    defined = {word: name for name in near if near[name][0] <= 1 for word in words_of(name)}
    for folder in ("tests/filecheck", "tests/schedule"):
        for file in sorted((ROOT / folder).rglob("*.mlir")):
            text = " ".join(_RUN.findall(file.read_text()))
            words = {*_WORD.findall(text), *_COMMAND.findall(text)} & defined.keys()
            if words:
                word = min(words, key=lambda word: near[defined[word]][0])
                distance = near[defined[word]][0]
                yield Covering(
                    str(file.relative_to(ROOT)), distance, f"runs {word} <- {' <- '.join(_way(defined[word], near))}"
                )


@cache
def _words() -> Mapping[str, set[str]]:
    """Module -> the passes, targets and commands that it defines."""
    from weft.dialects.sched import PRIMITIVE_STEPS
    from weft.driver.universe import PASSES, TARGETS
    from weft.passes.schedule.primitive import PRIMITIVES
    from weft.tools.weft_cli import COMMANDS

    found: dict[str, set[str]] = {}
    for table in (PASSES, TARGETS):
        for word, place in table.items():
            found.setdefault(place.partition(":")[0], set()).add(word)
    found.pop("weft.passes.schedule.primitive_passes", None)
    for primitive, file in PRIMITIVES.items():
        found.setdefault(f"weft.passes.schedule.{file}", set()).add(PRIMITIVE_STEPS[primitive].pass_name)
    for word, (module, _) in COMMANDS.items():
        found.setdefault(module, set()).add(f"weft {word}")
    return found


def words_of(module: str) -> set[str]:
    return _words().get(module, set())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="changed files (default: those that differ from the base)")
    parser.add_argument("--base", default="main", help="the revision to compare with (default: main)")
    parser.add_argument("--most", type=int, default=MOST, help=f"the number of files that run (default {MOST})")
    parser.add_argument("--list", action="store_true", help="print the tests and the reasons, nearest first")
    options = parser.parse_args()
    files = options.files or changed_files(options.base)
    tests = covering(files)
    if options.list:
        width = max((len(one.file) for one in tests), default=0)
        print("\n".join(f"{one.file:{width}}  {one.reason}" for one in tests))
        return 0
    print(f"{len(files)} changed files, {len(tests)} tests cover them; the {options.most} nearest of each kind run")
    python = [one.file for one in tests if one.file.endswith(".py")][: options.most]
    mlir = [one.file for one in tests if not one.file.endswith(".py")][: options.most]
    status = 0
    if mlir:
        lit = Path(sys.executable).with_name("lit")
        status |= subprocess.run([lit, "-sv", *mlir], cwd=ROOT, check=False).returncode
    if python:
        command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *python]
        status |= subprocess.run(command, cwd=ROOT, check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
