"""Runs the examples of `docs/gallery/`: `python docs/generators/gallery.py --write [NAME ...]`.

A page is Markdown. Its blocks of `python` run in order, in one process per page; a block with a title is written to
the file of that name in a temporary folder, the current one; lines of a block of `console` that begin with `$ ` run as
commands. The block of `text` that follows a block shows its output. The site shows the outputs of the run that built it
(`site.py`); `--write` renews those of the pages.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

GALLERY = Path(__file__).resolve().parents[1] / "gallery"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```\n', re.DOTALL | re.MULTILINE)
_HOME = re.compile(r"(?:/[\w.-]+)+/(?=(?:site-packages|gallery-\w+)/)")


class ExampleError(Exception):
    """An example of the gallery failed."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    start: int
    end: int
    language: str
    title: str
    text: str


def blocks_of(markdown: str) -> list[Block]:
    return [Block(m.start(), m.end(), m[1], m[2] or "", m[3]) for m in _BLOCK.finditer(markdown)]


def executed(markdown: str, page: Path) -> str:
    """A page with the outputs of its blocks. Raises `ExampleError` for a block that fails, or whose output the page
    does not show."""
    if not blocks_of(markdown):
        return markdown
    done = subprocess.run(
        [sys.executable, __file__, "--page", str(page)], input=markdown, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ExampleError(f"{page}: {done.stderr}")
    return done.stdout


def _outputs(markdown: str, name: str) -> str:
    """The page with outputs, in this process and the current folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    sys.path.insert(0, os.getcwd())
    parts, end, blocks = list[str](), 0, blocks_of(markdown)
    for at, block in enumerate(blocks):
        if block.language == "text":
            continue
        output = _cleaned(_run(block, names, f"{name}, line {markdown[: block.start].count(chr(10)) + 1}"))
        following = blocks[at + 1] if at + 1 < len(blocks) else None
        shows = following is not None and following.language == "text"
        if bool(output) != shows:
            raise ExampleError(f"{name}: the block `{block.text.splitlines()[0]}` prints {output!r}; shown: {shows}")
        if following is not None and shows:
            parts += [markdown[end : following.start], f"```text\n{output}```\n"]
            end = following.end
    return "".join([*parts, markdown[end:]])


def _run(block: Block, names: dict[str, object], place: str) -> str:
    if block.title:
        Path(block.title).write_text(block.text)
        return ""
    if block.language == "console":
        return "".join(_console(block.text, place))
    if block.language != "python":
        return ""
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(block.text, place, "exec"), names)
    return out.getvalue()


def _console(text: str, place: str) -> Iterator[str]:
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": os.getcwd()}
    for line in text.splitlines():
        if line.startswith("$ "):
            command = line[2:]
            shown = subprocess.STDOUT
            done = subprocess.run(command, shell=True, env=environment, stdout=subprocess.PIPE, stderr=shown, text=True)
            if done.returncode > 1:
                raise ExampleError(f"{place}: {command}: {done.stdout}")
            yield done.stdout


def _cleaned(output: str) -> str:
    """Without spaces at the ends of lines and names of this machine's folders."""
    text = _HOME.sub("", "\n".join(line.rstrip() for line in output.splitlines()))
    return text.strip("\n") + "\n" if text.strip() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of pages (default: all)")
    parser.add_argument("--write", action="store_true", help="renew the outputs of the pages")
    parser.add_argument("--page", help="the page whose text is standard input; prints it with outputs")
    options = parser.parse_args()
    if options.page:
        out, markdown = os.fdopen(os.dup(1), "w"), sys.stdin.read()
        os.dup2(2, 1)
        with TemporaryDirectory(prefix="gallery-") as folder:
            os.chdir(folder)
            try:
                text = _outputs(markdown, Path(options.page).name)
            except ExampleError as error:
                print(error, file=sys.stderr)
                return 1
        out.write(text)
        out.flush()
        return 0
    for page in sorted(GALLERY.glob("*.md")):
        if not options.names or page.stem in options.names:
            text = executed(page.read_text(), page)
            if options.write:
                page.write_text(text)
            print(page.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
