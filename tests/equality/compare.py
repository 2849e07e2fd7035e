"""Compare two recordings of `record.py`: list the tests and rows whose generated code differs, with the first lines.

    .venv/bin/python tests/equality/compare.py BASE HEAD [--lines N] [--only TEXT]

A label is compared if both recordings have it. The order of the texts of a label does not count, because functions are
compiled in any order; nor do keys in the names of kernels, which depend on options and versions. Ends with status 1 if
a label differs, if HEAD lacks a label of BASE, or if no label is common.
"""

import argparse
import re
import sys
import zlib
from collections import Counter
from difflib import unified_diff
from itertools import islice
from pathlib import Path

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


def without_keys(folder: Path, texts: Counter[tuple[str, str]]) -> Counter[str]:
    """The texts of a label, without the keys of kernels."""
    found: Counter[str] = Counter()
    for (_, digest), count in texts.items():
        found[re.sub(r"\bkernel_[0-9a-f]{20}", "kernel", "\n".join(text_of(folder, digest)))] += count
    return found


def schedules(texts: Counter[tuple[str, str]]) -> Counter[str]:
    """The digests of the traces of default schedules."""
    return Counter({digest: count for (kind, digest), count in texts.items() if kind == "schedule"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("head", type=Path)
    parser.add_argument("--lines", type=int, default=12, help="lines of each difference (default: %(default)s)")
    parser.add_argument("--only", default="", help="labels that contain this text")
    options = parser.parse_args()
    base, head = read(options.base), read(options.head)
    common = sorted(label for label in base.keys() & head.keys() if options.only in label)
    differing = [
        label
        for label in common
        if base[label] != head[label]
        and without_keys(options.base, base[label]) != without_keys(options.head, head[label])
    ]
    for label in differing:
        gone, new = base[label] - head[label], head[label] - base[label]
        print(f"{label}: {gone.total()} texts are replaced by {new.total()}")
        pairs = zip(sorted(gone.elements()), sorted(new.elements()), strict=False)
        for (kind, old), (_, other) in islice(pairs, 1 if options.lines else 0):
            lines = unified_diff(text_of(options.base, old), text_of(options.head, other), kind, kind, n=1, lineterm="")
            print(*(f"    {line[:200]}" for line in islice(lines, options.lines)), sep="\n")
    plans = [label for label in differing if schedules(base[label]) != schedules(head[label])]
    for label in plans:
        print(f"{label}: other schedules")
    total = sum(base[label].total() for label in common)
    alone = f"; only in BASE: {len(base.keys() - head.keys())}, only in HEAD: {len(head.keys() - base.keys())}"
    print(f"{len(common)} labels, {total} texts: {len(differing)} labels differ{alone}")
    missing = sorted(label for label in base.keys() - head.keys() if options.only in label)
    for label in missing[:10]:
        print(f"{label}: not in HEAD")
    return 1 if differing or missing or not common else 0


if __name__ == "__main__":
    sys.exit(main())
