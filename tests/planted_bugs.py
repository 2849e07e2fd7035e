"""Plants bugs, one at a time, in a copy of the sources, and checks that the first tier of tests notices each.

    python tests/planted_bugs.py [NAME ...]

A bug is a replacement in the text of one file, with the test files that should fail. Those files are run without a bug
first. Exits with 1 when a bug is missed, or when its place in the sources is gone: then give it a new one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Bug:
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


BUGS = (
    Bug(
        "parallel reductions",
        "passes/schedule/parallel.py",
        '        self.require(2, dependent_iterations(self.loop, "at the same time"), self.loop)\n',
        "",
        ("tests/schedule/test_loop_kinds.py", "tests/schedule/test_refusals.py"),
    ),
    Bug(
        "split without guards",
        "passes/schedule/split.py",
        "guarded=total > extent)",
        "guarded=False)",
        ("tests/schedule/test_loop_shapes.py",),
    ),
    Bug(
        "compute_at loses guards",
        "passes/schedule/compute_at.py",
        "                kept.append(found)\n",
        "                pass\n",
        ("tests/schedule/test_primitives.py", "tests/schedule/test_corners.py"),
    ),
    Bug(
        "a read hides a write to the same element",
        "analysis/dependence.py",
        "        if key not in kept or access.is_write:\n",
        "        if key not in kept:\n",
        ("tests/unit/analysis/test_analysis_dependence.py",),
    ),
    Bug(
        "partitioned loops end one iteration late",
        "passes/tir/tir_partition_loops.py",
        "(outer + least) // -factor + 1",
        "(outer + least) // -factor + 2",
        ("tests/numeric/passes/test_partition_rows.py", "tests/numeric/passes/test_partition_tiles.py"),
    ),
    Bug(
        "compacted buffers hold the smallest access only",
        "analysis/footprint.py",
        "high = max(high, distance.constant + span.extent)",
        "high = min(high, distance.constant + span.extent)",
        ("tests/numeric/passes/test_lowering_programs.py", "tests/numeric/passes/test_gpu_passes.py"),
    ),
    Bug(
        "masked lanes of a maximum are zero",
        "dialects/combiners.py",
        "Combination(Kind.MAXIMUMF, least, is_idempotent=True)",
        "Combination(Kind.MAXIMUMF, _always(0.0), is_idempotent=True)",
        ("tests/numeric/backends/test_lane_reductions.py",),
    ),
    Bug(
        "no barrier between iterations",
        "passes/tir/tir_insert_barriers.py",
        "            conflict = self._any_conflict(body.last, body.first, loop)\n",
        "            conflict = None\n",
        ("tests/numeric/backends/test_gpu_kernels.py",),
    ),
    Bug(
        "LLVM: operands of integer arithmetic swapped",
        "backends/llvm/arith_ops.py",
        'operands = ", ".join(emitter.texts(op))',
        'operands = ", ".join(reversed(emitter.texts(op)))',
        ("tests/numeric/backends/test_llvm_ops.py",),
    ),
    Bug(
        "C: minus a negative constant",
        "backends/c_family/arith_ops.py",
        'operator, rhs = "-", number(-b.low,',
        'operator, rhs = "-", number(b.low,',
        ("tests/numeric/backends/test_c_programs.py",),
    ),
    Bug(
        "merge looks at named buffers only",
        "passes/schedule/merge.py",
        "with_overlapping(access.buffer for access in part[1])",
        "{access.buffer for access in part[1]}",
        ("tests/numeric/backends/test_promises.py",),
    ),
    Bug(
        "copies of buffers that others overlap",
        "analysis/code_motion.py",
        "                if (access.is_write or not writes) and may_overlap(access.buffer, buffer):\n",
        "                if False:\n",
        ("tests/numeric/backends/test_promises.py",),
    ),
    Bug(
        "sums in another order without the promise",
        "analysis/block_patterns.py",
        "    return has_known_combiners(block) and why_in_order(block) is None\n",
        "    return has_known_combiners(block)\n",
        ("tests/numeric/backends/test_promises.py",),
    ),
    Bug(
        "inits that start other elements than are updated",
        "analysis/reductions.py",
        "    if init is None or _starts_what_it_reads(block, init):\n",
        "    if True:\n",
        ("tests/numeric/analysis/test_reduction_inits.py",),
    ),
    Bug(
        "two stores of a block to one element",
        "analysis/code_motion.py",
        "in combinations_with_replacement(places, 2):",
        "in ((place, place) for place in places):",
        ("tests/unit/analysis/test_analysis_reductions.py",),
    ),
    Bug(
        "noalias on parameters that may overlap",
        "backends/llvm/memory_ops.py",
        """    words = [] if overlapping(buffer) else ["noalias"]\n""",
        """    words = ["noalias"]\n""",
        ("tests/numeric/backends/test_promises.py",),
    ),
)


def planted(bug: Bug, copy: Path) -> str:
    """What the tests say with a bug in the copy: "caught", "missed", or what went wrong."""
    file = copy / bug.file
    text = file.read_text() if file.exists() else ""
    if text.count(bug.old) != 1:
        return f"not planted: {bug.file} holds its text {text.count(bug.old)} times"
    file.write_text(text.replace(bug.old, bug.new))
    try:
        status, output = tested(bug.tests, copy)
    finally:
        file.write_text(text)
    return {0: "missed", 1: "caught"}.get(status, f"pytest ended with status {status}\n{output}")


def tested(files: tuple[str, ...], copy: Path) -> tuple[int, str]:
    """Exit status and output of the first tier of some test files, of the copy."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *files],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / ".types")},  # before the editable install of the sources
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    unknown = set(sys.argv[1:]) - {bug.name for bug in BUGS}
    if unknown:
        sys.exit(f"no such bug: {', '.join(sorted(unknown))}; there are: {', '.join(bug.name for bug in BUGS)}")
    bugs = [bug for bug in BUGS if not sys.argv[1:] or bug.name in sys.argv[1:]]
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
    with tempfile.TemporaryDirectory(prefix="weft-bugs-") as folder:
        copy = Path(folder, "weft")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=left_out)
        status, output = tested(tuple(dict.fromkeys(file for bug in bugs for file in bug.tests)), copy)
        if status != 0:
            sys.exit(f"the tests fail without a bug\n{output}")
        found = {bug.name: planted(bug, copy) for bug in bugs}
    for name, said in found.items():
        print(f"{name}: {said}")
    return 0 if set(found.values()) == {"caught"} else 1


if __name__ == "__main__":
    raise SystemExit(main())
