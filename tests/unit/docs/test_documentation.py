"""The pages: their links lead somewhere, the map names every room, the README is short and its examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from weft.tools.weft_opt import WeftOptMain

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, spelled as hosting sites spell them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in _anchors(target), f"{page.name}: {link}"


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 6144


def test_the_architecture_names_every_room() -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    page = (ROOT / "docs" / "architecture.md").read_text()
    for package in folders[1:]:
        *above, name = package.removeprefix("weft.").split(".")
        assert (
            f"`{'/'.join([*above, name])}/`" in page or f"`{name}/`" in page or f"`{'/'.join([*above, name])}`" in page
        )


def test_the_index_lists_every_decision() -> None:
    folder = ROOT / "docs" / "decisions"
    index = re.findall(
        r"^\| (\d{4}) \| \[(.*)\]\((.*?)\) \| \S.* \|$", (folder / "README.md").read_text(), re.MULTILINE
    )
    pages = [(page.name[:4], page.read_text().splitlines()[0], page.name) for page in sorted(folder.glob("0*.md"))]
    assert [(number, f"# {number}: {title}", name) for number, title, name in index] == pages


@pytest.mark.slow
def test_the_excerpts_of_the_architecture_are_printed(tmp_path: Path) -> None:
    """Each excerpt is printed by its command, which reads the output of the one before; `...` stands for lines."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (source,) = [text for language, text in blocks if language == "python"]
    program = tmp_path / "program.mlir"
    with program.open("w") as printed, redirect_stdout(printed):
        exec(compile(source, "architecture.md", "exec"), {})
    commands = 0
    for language, text in blocks:
        if language not in ("mlir", "llvm", "asm"):
            continue
        command, *excerpt = text.splitlines()
        _, weft_opt, *arguments = shlex.split(command)
        assert weft_opt == "weft-opt"
        output = tmp_path / f"{commands}.mlir"
        assert not WeftOptMain(args=[str(program), *arguments, "-o", str(output)]).execute()
        lines = iter([line.strip() for line in output.read_text().splitlines()])
        for line in excerpt:
            assert line.strip() == "..." or line.strip() in lines, f"{command}: {line}"
        program = output if language == "mlir" else program
        commands += 1
    assert commands == 8


def test_the_taste_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (taste,) = [text for language, text in BLOCKS if language == "python"]
    names: dict[str, object] = {}
    exec(compile(taste, "README.md", "exec"), names)  # the README is what is tested
    a, b, c = (names[name] for name in "abc")
    assert abs(c - (a @ b).clip(0)).max() < 1e-3  # pyright: ignore[reportOperatorIssue, reportAttributeAccessIssue]
    assert "sched.reverse_compute_at" in capsys.readouterr().out


def test_the_refusal_is_what_users_see() -> None:
    (shown,) = [text for _, text in BLOCKS if text.startswith("error: ")]
    (command,) = re.findall(r"`(weft-opt .*)` prints:", README)
    program, *arguments = shlex.split(command)
    done = subprocess.run([Path(sys.executable).parent / program, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode and done.stderr.strip() == shown.strip()


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path) -> None:
    (commands,) = [text for _, text in BLOCKS if text.startswith("weft-opt")]
    programs = Path(sys.executable).parent
    for line in commands.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        arguments = [str(tmp_path / word) if word in ("libmm.so", "mm.h") else word for word in arguments]
        if arguments[:2] == ["bench", "ops"]:
            arguments += ["--only", "matmul 128", "--rounds", "1", "--threads", "1"]
        done = subprocess.run([programs / program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        assert done.stdout or arguments[0] == "build", line
