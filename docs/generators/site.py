"""Hooks of MkDocs (`mkdocs.yml`): the pages of `docs/`, which forges show, as a site.

- The first page is the README. Files outside of `docs/` that pages link to are part of the site, under `sources/`.
- Pages of the API list public names; mkdocstrings fills in their docstrings.
- Code of the gallery runs, and its output replaces that of the page (`gallery.py`).
- Lists of forges become those of Python-Markdown: a blank line before them, four spaces per level.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from api_pages import api_pages  # noqa: E402
from gallery import executed  # noqa: E402

DOCS = ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^(\s*)(```+|~~~+)")
_FENCED = re.compile(r"^( *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^( *)(?:[-*+]|\d+\.) +")
_PAGES = {"README.md": "index.md"}
"""Files outside of `docs/` -> their places in the site."""


def place_of(file: Path) -> str:
    """The place of a file in the site, relative to its root."""
    if DOCS in file.parents:
        return file.relative_to(DOCS).as_posix()
    name = file.relative_to(ROOT).as_posix()
    return _PAGES.get(name, f"sources/{name}")


@cache
def included() -> Mapping[str, Path]:
    """The files outside of `docs/` that are part of the site: those that its pages link to, by their places."""
    waiting = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]
    found: dict[str, Path] = {}
    while waiting:
        file = waiting.pop()
        place = place_of(file)
        if place in found:
            continue
        found[place] = file
        if file.suffix == ".md":
            waiting += [target for target in _targets(file) if target.is_file() and place_of(target) not in found]
    return {place: file for place, file in found.items() if DOCS not in file.parents}


def _targets(page: Path) -> Iterator[Path]:
    for _, target in _LINK.findall(page.read_text()):
        path = target.partition("#")[0]
        if path and "://" not in target and not target.startswith("mailto:"):
            yield Path(os.path.normpath(page.parent / path))


def adapted(markdown: str, origin: Path) -> str:
    """The text of the page `origin` for the site."""
    parts = _FENCED.split(markdown)  # fenced blocks are at odd places
    parts[::2] = [_LINK.sub(lambda found: _link(found, origin), _escaped(part)) for part in parts[::2]]
    return "".join(_lines("".join(parts)))


def _escaped(text: str) -> str:
    """The text with elements such as A[i][j], outside of code, that are no references of Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [re.sub(r"(?<=\w)\[(\w+)\](?=\[\w+\])", r"\[\1\]", part) for part in parts[::2]]
    return "".join(parts)


def _link(found: re.Match[str], origin: Path) -> str:
    text, target = found.groups()
    path, hash_, anchor = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return found[0]
    file = Path(os.path.normpath(origin.parent / path))
    if file.is_dir() and (file / "README.md").is_file():
        file /= "README.md"
    place = place_of(file) if ROOT in file.parents else ""
    if DOCS not in file.parents and place not in included():
        return text  # a folder, or a file of another place
    here = Path(place_of(origin)).parent
    return f"[{text}]({Path(os.path.relpath(place, here)).as_posix()}{hash_}{anchor})"


def _lines(markdown: str) -> Iterator[str]:
    """The lines, with lists as Python-Markdown reads them."""
    fence, columns, was_text = "", list[int](), False
    for line in markdown.splitlines(keepends=True):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        mark = _FENCE.match(line)
        if not fence and text.strip():
            item = _ITEM.match(line)
            while columns and indent < columns[-1]:
                columns.pop()
            if item is not None:
                if was_text and not columns:
                    yield "\n"
                moved = " " * 4 * len(columns) + text
                columns.append(len(item[0]))
                was_text = False
                yield moved
                continue
            was_text = mark is None and not columns and not text.startswith(("#", "|", ">"))
        elif not text.strip():
            was_text = False
        if mark is not None and (not fence or text.startswith(fence)):
            fence = "" if fence else mark[2]
        inner = 4 * len(columns) + max(indent - (columns[-1] if columns else 0), 0)
        moved = " " * inner + text if columns and text.strip() else line
        yield moved


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside of `docs/`, and the pages of the API."""
    for place, file in included().items():
        if file.suffix == ".md":
            files.append(File.generated(config, place, content=file.read_text()))
        else:
            files.append(File.generated(config, place, abs_src_path=str(file)))
    for place, text in api_pages().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    place = page.file.src_uri
    if place.startswith("gallery/"):
        markdown = executed(markdown, DOCS / place)
    return adapted(markdown, included().get(place, DOCS / place))
