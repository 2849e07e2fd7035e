"""The page of the package's files, with the first sentence of each docstring.

    python docs/generators/file_docs.py > docs/files.md

A test compares the page with the output.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("texpr", "frontends", "dialects", "analysis", "passes", "plans", "schedule", "autoschedule", "tuning"),
    *("interp", "backends", "runtime", "driver", "support", "tools", "api", "tvm"),
)
"""The packages in the order of docs/architecture.md."""

_HEAD = """# Files

Generated from the docstrings of files by `python docs/generators/file_docs.py`. [architecture.md](architecture.md)
says what each package is for.
"""


def files_markdown() -> str:
    """The page: for each folder a table of its files."""
    parts = [_HEAD]
    for package in PACKAGES:
        for folder in sorted({file.parent for file in (ROOT / package).rglob("*.py")}):
            files = [file for file in sorted(folder.glob("*.py")) if file.name != "__init__.py"]
            name = folder.relative_to(ROOT).as_posix()
            rows = [f"| [{file.name}](../{name}/{file.name}) | {_first_sentence(file)} |" for file in files]
            about = _first_sentence(folder / "__init__.py")
            parts.append("\n".join([f"## {name}\n", *([f"{about}\n"] if about else [])]))
            if rows:
                parts.append("\n".join(["| file | contents |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _first_sentence(file: Path) -> str:
    """The first paragraph of a file's docstring, up to the end of its first sentence."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.exists() else None
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    sentence = paragraph.split(". ")[0]
    return (sentence if sentence == paragraph else f"{sentence}.").replace("|", "\\|")


if __name__ == "__main__":
    print(files_markdown(), end="")
