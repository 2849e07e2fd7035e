"""Runs every GPU example program on a device, compares it with NumPy and prints a table.

    python benchmarks/gpu/check_cuda.py [--target cuda] [--only softmax,matmul] [--small] [--sanitize memcheck]

Each program runs as written, at odd sizes, and compiled for unknown sizes; with NumPy arrays, and if torch is installed
also with its arrays on the device. `--sanitize` runs small sizes under compute-sanitizer (memcheck, racecheck,
synccheck, initcheck). Each program runs in a separate process, so that a failure, whose traceback is printed, does not
stop the others. The exit status is the number of failures.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from from_checkout import make_importable
from isolation import isolated

make_importable()

import numpy as np  # noqa: E402
from gpu_programs import CASES, CUDA_CASES  # noqa: E402
from running import Case  # noqa: E402

ODD = (1023, 17, 129, 33)
SMALL = (70, 33, 9, 17)
"""Sizes that are not multiples of any tile, assigned to the sizes of a program in order."""


def variants(case: Case, small: bool) -> dict[str, tuple[list[Mapping[str, int]], bool]]:
    """Name -> sizes of calls of one compiled program, and whether it is compiled for any sizes."""
    odd, ones = case.fitting(*(SMALL if small else case.odd or ODD)), case.fitting(*case.ones)
    found: dict[str, tuple[list[Mapping[str, int]], bool]] = {} if small else {"as written": ([case.sizes], False)}
    found["odd"] = ([odd], False)
    if case.takes_any_size:
        found["any, odd and one"] = ([odd, {**ones, **{name: odd[name] for name in case.static}}], True)
    else:
        found["least"] = ([ones], False)
    return found


def on_device(arrays: list[np.ndarray]) -> list[Any] | None:
    """The arrays as torch tensors on the device; None without torch."""
    try:
        import torch
    except ImportError:
        return None
    return [torch.from_numpy(array).cuda() for array in arrays] if torch.cuda.is_available() else None


def check(case: Case, target: str, calls: list[Mapping[str, int]], dynamic: bool) -> str:
    """Build one program and call it with both kinds of arrays; returns the table's text. Raises if a result is
    wrong.
    """
    start = time.perf_counter()
    main = case.build(target, calls[0], dynamic)["main"]
    built = time.perf_counter() - start
    worst, zero_copy = 0.0, False
    for sizes in calls:
        arguments, expected = case.arguments(sizes)
        device = on_device(arguments) if target.startswith("cuda") else None
        main(*arguments)
        results = {"NumPy arrays": arguments[-1]}
        if device is not None:
            main(*device)
            results["arrays on the device"], zero_copy = device[-1].cpu().numpy(), True
        for kind, result in results.items():
            error = case.error(result, expected)
            if not error <= case.tolerance:
                raise AssertionError(f"error {error:.3g} with {kind} of sizes {sizes}, allowed {case.tolerance:g}")
            worst = max(worst, error)
    return f"ok, error {worst:.1e}, built in {built * 1e3:.0f} ms" + (", zero copy too" if zero_copy else "")


def sanitize(tool: str, arguments: argparse.Namespace) -> int:
    """Run the small programs under compute-sanitizer; returns its exit status."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        print("compute-sanitizer is not on the PATH: it comes with the CUDA toolkit")
        return 1
    command = [program, "--tool", tool, "--error-exitcode", "99", sys.executable, __file__, "--small", "--together"]
    return subprocess.run([*command, "--target", arguments.target, "--only", arguments.only], check=False).returncode


def guarded(run: Callable[[], str], failures: list[str], name: str) -> str:
    try:
        return run()
    except Exception as error:  # noqa: BLE001 one failure must not stop the rest
        failures.append(f"{name}\n{traceback.format_exc()}")
        return f"FAILED {type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"


def check_all(case: Case, arguments: argparse.Namespace) -> int:
    """Print the table lines of all variants of one program, then their tracebacks. Returns the number of failures."""
    failures: list[str] = []
    for name, (calls, dynamic) in variants(case, arguments.small).items():
        result = guarded(lambda: check(case, arguments.target, calls, dynamic), failures, f"{case.name}, {name}")  # noqa: B023
        print(f"{case.name:15} {name:17} {'x'.join(map(str, calls[0].values())):15} {result}", flush=True)
    for failure in failures:
        print(f"==== {failure}", flush=True)
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--only", default="", help="names of programs, with commas")
    parser.add_argument("--small", action="store_true", help="small sizes only")
    parser.add_argument("--together", action="store_true", help="all programs in one process")
    parser.add_argument("--sanitize", metavar="TOOL", help="run small sizes under compute-sanitizer")
    arguments = parser.parse_args()
    if arguments.sanitize:
        return sanitize(arguments.sanitize, arguments)
    if arguments.target.startswith("cuda"):
        with contextlib.suppress(ImportError):
            importlib.import_module("torch")  # before the forks; this process does not use the device
    wanted = set(filter(None, arguments.only.split(",")))
    failed = 0
    for case in CUDA_CASES if arguments.target.startswith("cuda") else CASES:
        if not wanted or case.name in wanted:
            run = partial(check_all, case, arguments)
            failed += run() if arguments.together else isolated(run, case.name)
    print(f"{failed} failures")
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main())
