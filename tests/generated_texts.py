"""Write what weft generates from every IR file of the repository: `python tests/generated_texts.py FOLDER [PART]`.

One file a chunk of `tests` and `examples`, with the text (or the error) of each run of `RUNS`. Run it before
and after a change that must not change what is generated, and compare the folders with `diff -r`. With PART, only of
the files whose name contains it.
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from pathlib import Path

from weft.support.errors import WeftError
from weft.tools.weft_opt import WeftOptMain

ROOT = Path(__file__).parents[1]
RUNS = (
    ["-p", "lower-graph,default-schedule"],
    ["-p", "apply-schedule"],
    ["-p", "lower-graph,apply-schedule,default-schedule,lower-tir-to-low"],
    ["-p", "lower-graph,apply-schedule,default-schedule,lower-tir-to-low", "-t", "llvm-ir"],
    ["-p", "lower-graph,apply-schedule,lower-tir-to-low{bounds=true}"],
    *(
        ["-p", f"lower-graph,{scheduled},lower-tir-to-low{{target={kind}}}", "-t", kind]
        for kind in ("c", "cuda", "opencl", "metal")
        for scheduled in ("apply-schedule", f"default-schedule{{target={kind}}}")
    ),
)


def chunks() -> list[tuple[str, str]]:
    """The name and the text of every chunk."""
    found: list[tuple[str, str]] = []
    for path in sorted(path for folder in ("tests", "examples") for path in (ROOT / folder).rglob("*.mlir")):
        name = str(path.relative_to(ROOT)).replace("/", "-")
        parts = re.split(r"^// -----.*\n?", path.read_text(), flags=re.MULTILINE)
        found += [(f"{name}-{at}", part) for at, part in enumerate(parts) if part.strip()]
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    drivers = [WeftOptMain(args=arguments) for arguments in RUNS]
    sys.stderr = StringIO()
    for name, text in chunks():
        if len(sys.argv) > 2 and sys.argv[2] not in name:
            continue
        told: list[str] = []
        for arguments, driver in zip(RUNS, drivers, strict=True):
            output, sys.stderr = StringIO(), StringIO()
            try:
                driver._process_chunk(text, 0, "mlir", output)
            except (WeftError, Exception) as error:  # noqa: BLE001 (any outcome is compared)
                output.write(f"{type(error).__name__}: {error}\n")
            told.append(f"== {' '.join(arguments)}\n{output.getvalue()}{sys.stderr.getvalue()}")
        (folder / f"{name}.txt").write_text("\n".join(told))


if __name__ == "__main__":
    main()
