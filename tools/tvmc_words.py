"""Command lines of TVM's `tvmc` as those of `weft`."""

import re
from collections.abc import Sequence

_RENAMED = {"--tuning-records": "--database", "--print-time": "--time"}
_NEUTRAL = ("--device", "--fill-mode", "--model-format", "--executor", "--runtime", "--opt-level", "--number")


def translated(words: Sequence[str]) -> list[str]:
    """`--input-shapes "x:[1,3]"` becomes `--shape x=1x3`, the output of `tune` its database; options that select parts
    of TVM are omitted."""
    given = (part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word]))
    found = list[str]()
    for word in given:
        if word in _NEUTRAL:
            next(given, None)
        elif word == "--input-shapes":
            for name, axes in re.findall(r"([^\s:,]+):\s*\[([^\]]*)\]", next(given, "")):
                found += ["--shape", f"{name}={'x'.join(axes.replace(' ', '').split(','))}"]
        else:
            is_record = word in ("-o", "--output") and words[0] == "tune"
            found.append("--database" if is_record else _RENAMED.get(word, word))
    return found
