"""Compare two recordings of `record.py`: one line for each test or row that changed, with the kinds of
change: "trace" (of a default schedule), "code", "result" (of a row), "runtime" (calls from Python, threads).

    .venv/bin/python tests/equality/compare.py BASE HEAD [--lines N] [--only TEXT]

A label is compared if both recordings have it. The order of the texts of a label does not count, because functions are
compiled in any order; nor do names of values, keys in the names of kernels, and descriptions of libraries, which depend
on options and versions. Ends with status 1 if a label differs, if HEAD lacks a label of BASE, or if no label is common.
"""

import argparse
import re
import sys
import zlib
from collections import Counter
from difflib import unified_diff
from itertools import zip_longest
from pathlib import Path

CHANGES = {"schedule": "trace", "result": "result", "llvm": "code", "c": "code"}
"""The kind of a text -> the change that is reported if it differs: the trace of a default schedule, generated code, or
a digest of results."""

_RUNTIME = re.compile(r"(?m)^define .*@weft_(call|parallel_for)\(")
"""In code that a process compiles once, of which any label may have a copy."""

Recording = dict[str, Counter[tuple[str, str]]]
"""Label -> the kinds and digests of its texts."""


def read(folder: Path) -> Recording:
    """The recording in a folder."""
    if not (folder / "texts").is_dir():
        raise SystemExit(f"{folder} is no recording")
    recording: Recording = {}
    for file in folder.glob("*.tsv"):
        for line in file.read_text().splitlines():
            label, kind, digest = line.rsplit("\t", 2)
            recording.setdefault(label, Counter())[kind, digest] += 1
    return recording


def text_of(folder: Path, digest: str) -> list[str]:
    """The lines of a text."""
    return zlib.decompress((folder / "texts" / digest).read_bytes()).decode(errors="replace").splitlines()


def _normal(folder: Path, digest: str) -> str:
    """A text with its values and basic blocks numbered, and without comments, keys of kernels and descriptions of
    exported libraries, which have versions.
    """
    text = re.sub(r"\bkernel_[0-9a-f]{20}", "kernel", "\n".join(text_of(folder, digest)))
    text = re.sub(r"(?m)^(; |source_filename = |@weft_library = ).*\n", "", text)
    numbers: dict[str, str] = {}
    return re.sub(r"(?m)(?<=%)[\w.]+|^[\w.]+(?=:)", lambda name: numbers.setdefault(name[0], f"v{len(numbers)}"), text)


def texts_of(folder: Path, texts: Counter[tuple[str, str]]) -> dict[str, Counter[str]]:
    """The changes that a label may have -> its normalised texts."""
    found: dict[str, Counter[str]] = {change: Counter() for change in (*CHANGES.values(), "runtime")}
    for (kind, digest), count in texts.items():
        text = _normal(folder, digest)
        found["runtime" if _RUNTIME.search(text) else CHANGES.get(kind, "code")][text] += count
    return found


def changes(base: Path, old: Counter[tuple[str, str]], head: Path, new: Counter[tuple[str, str]]) -> dict[str, str]:
    """The kinds of change of a label -> a unified diff of the first texts that differ."""
    found: dict[str, str] = {}
    before, after = texts_of(base, old), texts_of(head, new)
    for change in before:
        if before[change] != after[change]:
            gone, made = before[change] - after[change], after[change] - before[change]
            pairs = next(zip_longest(sorted(gone.elements()), sorted(made.elements()), fillvalue=""))
            lines = unified_diff(*(text.splitlines() for text in pairs), change, change, n=1, lineterm="")
            found[change] = "\n".join(f"    {line[:200]}" for line in lines)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--lines", type=int, default=0, help="lines of each difference to print (default: none)")
    parser.add_argument("--only", default="", help="labels that contain this text")
    options = parser.parse_args()
    base, head = read(options.base), read(options.head)
    common = sorted(label for label in base.keys() & head.keys() if options.only in label)
    differing = {
        label: found
        for label in common
        if base[label] != head[label] and (found := changes(options.base, base[label], options.head, head[label]))
    }
    for label, found in differing.items():
        print(f"{label}: {', '.join(found)}")
        for text in found.values() if options.lines else ():
            print("\n".join(text.splitlines()[: options.lines]))
    total = sum(base[label].total() for label in common)
    alone = f"; only in BASE: {len(base.keys() - head.keys())}, only in HEAD: {len(head.keys() - base.keys())}"
    counts = Counter(change for found in differing.values() for change in found)
    kinds = "".join(f", {count} in {change}" for change, count in counts.items())
    print(f"{len(common)} labels, {total} texts: {len(differing)} labels differ{kinds}{alone}")
    missing = sorted(label for label in base.keys() - head.keys() if options.only in label)
    added = sorted(label for label in head.keys() - base.keys() if options.only in label)
    for labels, where in ((missing, "BASE"), (added, "HEAD")):
        for label in labels:
            print(f"{label}: only in {where}")
    return 1 if differing or missing or not common else 0


if __name__ == "__main__":
    sys.exit(main())
