"""Compare the code that this tree and another revision generate, and list the tests, examples and rows whose schedules
or code differ.

    .venv/bin/python tests/equality/against.py main --keep FOLDER
    .venv/bin/python tests/equality/against.py main -- .venv/bin/python -m pytest tests/numeric/passes

Without a command: the rows of `weft bench ops` and the examples. The command runs in both trees, so that it needs paths
relative to their roots; results are checked by the command. The output is that of `compare.py`, one line for each
label that changed; `--keep` leaves both recordings in a folder, and `compare.py FOLDER/base FOLDER/head --lines 40`
shows differences of texts. `rows.py --libraries` and `times.py` measure rows whose code changed.
"""

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def checkout(revision: str, folder: Path) -> None:
    """Write the files of a revision to a folder."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def link_packages(root: Path, folder: Path) -> None:
    """A folder for PYTHONPATH whose package `weft` is that of the tree `root`."""
    package = folder / "weft"
    package.mkdir(parents=True)
    rooms = [file.parent for file in root.glob("*/__init__.py") if file.parent.name not in ("api", "tests")]
    for source in [*(root / "api").iterdir(), *rooms]:
        if source.name != "__pycache__":
            (package / source.name).symlink_to(source)


def commands(root: Path) -> list[list[str]]:
    """The rows of `weft bench ops`, and the examples that are a file."""
    examples = sorted(str(file.relative_to(root)) for file in (root / "examples").glob("*.py"))
    # The program is that of this tree, so that both recordings have the same labels.
    return [[sys.executable, str(HERE / "rows.py")], *([sys.executable, example] for example in examples)]


def record(root: Path, out: Path, packages: Path, command: list[str]) -> None:
    """Record what a tree generates while its commands run; they may fail, in both trees alike."""
    link_packages(root, packages)
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    for words in [command] if command else commands(root):
        # The recorder is that of this tree, which both recordings need to be comparable.
        words = [sys.executable, str(HERE / "record.py"), str(out), *words]
        if status := subprocess.run(words, cwd=root, env={**os.environ, "PYTHONPATH": path}, check=False).returncode:
            print(f"status {status} in {root}: {' '.join(words[3:])}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the revision to compare with")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run, after --")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings in a new folder")
    options = parser.parse_args()
    command = [word for word in options.command if word != "--"]
    command = [str(ROOT / word) if word.startswith(".venv/") else word for word in command]
    with tempfile.TemporaryDirectory(prefix="weft-equality-") as name:
        folder = Path(name)
        checkout(options.base, folder / "tree")
        kept = (options.keep or folder).absolute()
        record(folder / "tree", kept / "base", folder / "packages-of-base", command)
        record(ROOT, kept / "head", folder / "packages", command)
        compare = [sys.executable, str(HERE / "compare.py"), str(kept / "base"), str(kept / "head")]
        return subprocess.run(compare, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
