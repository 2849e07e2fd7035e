"""Search for fast schedules of an .mlir or .onnx file by measuring them.

  weft tune matmul.mlir --space my_space.py:space --trials 64 --timeout 300 --database tune.db
  weft tune matmul.mlir --space trace.mlir --func matmul --target "llvm -num-threads=1"
  weft tune model.onnx --database tune.db --executor dask:tcp://127.0.0.1:8786 --runner dask:tcp://127.0.0.1:8787
  weft run matmul.mlir --database tune.db --time

A space is a Python function of a schedule that samples, or sched IR with sampling steps; by default, the knobs and
alternatives of the program's transform script, or else the sampling steps of the default schedules. The same command
resumes an interrupted search (docs/tuning.md).
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from weft.driver.parsing import decode_text
from weft.driver.programs import parse_file
from weft.driver.tune import tune
from weft.driver.tuned import Tuned
from weft.driver.tuning_plot import check_plot
from weft.support.errors import CompileError, did_you_mean
from weft.support.files import check_output
from weft.support.target import Target
from weft.tools.build_command import add_precision_argument, precision_of
from weft.tools.python_files import load_python_file
from weft.tools.shapes import add_shape_argument, stated_shapes

if TYPE_CHECKING:
    from weft.schedule.schedule import Schedule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the program: an .mlir file at any level, or an .onnx file")
    parser.add_argument(
        "--space", metavar="FILE:NAME", help="a function in a Python file, or an .mlir file with sampling steps"
    )
    add_shape_argument(parser)
    parser.add_argument(
        "--sizes",
        metavar="SYMBOL=SIZE:WEIGHT,...",
        help="representative sizes of symbols: the weighted sum of the times is minimised, as 'b=1 s=1:0.5,128:0.5'",
    )
    add_precision_argument(parser)
    parser.add_argument(
        "--trials", type=int, default=64, metavar="N", help="the number of schedules to measure (default 64)"
    )
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="the time limit of the search")
    parser.add_argument(
        "--database", metavar="FILE", help="the file that records the measurements, from which a search resumes"
    )
    parser.add_argument("--target", default="llvm", help='such as "llvm -num-threads=1" (default: this machine)')
    parser.add_argument("--func", metavar="NAME", help="the function to tune, if the file has several")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the sampling (default 0)")
    parser.add_argument(
        "--executor",
        metavar="N|dask:ADDRESS|ray[:ADDRESS]",
        help="where candidates are built: in local processes (default: one per core), or by workers of Dask or Ray",
    )
    parser.add_argument(
        "--runner",
        metavar="N|dask:ADDRESS|ray[:ADDRESS]",
        help="where candidates are measured, one at a time on each machine (default: this machine)",
    )
    parser.add_argument(
        "--window",
        type=int,
        metavar="N",
        help="the maximum number of concurrent trials (default: two per worker, at least 8)",
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the best time over the trials, by matplotlib")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError`, `OSError` and the errors of the space."""
    if arguments.seed < 0:
        raise CompileError(f"--seed must not be negative, got {arguments.seed}")
    if arguments.plot is not None:
        check_output(Path(arguments.plot))
        check_plot(arguments.plot)
    target = Target.parse(arguments.target)
    space = None if arguments.space is None else load_space(arguments.space)
    with ExitStack() as stack:
        progress = stack.enter_context(_progress(arguments.trials, arguments.timeout))
        tuned = tune(
            parse_file(arguments.file, stated_shapes(arguments), name=arguments.func),
            space=space,
            trials=arguments.trials,
            database=arguments.database,
            seed=arguments.seed,
            target=target,
            func=arguments.func,
            timeout=arguments.timeout,
            executor=arguments.executor,
            runner=arguments.runner,
            window=arguments.window,
            progress=progress,
            sizes=arguments.sizes,
            precision=precision_of(arguments),
        )
    print(tuned.table())
    for name, reason in tuned.skipped.items():
        print(f"skipped   @{name}: {reason}")
    failures = [record.failure for task in tuned.tasks for record in task.trials if record.failure]
    for reason in dict.fromkeys(failures):
        print(f"failed    {failures.count(reason)} trials: {reason}")
    if arguments.plot is not None:
        tuned.plot(arguments.plot)
    for path in (arguments.database, arguments.plot):
        if path is not None:
            print(f"saved     {path}")
    return 0


def load_space(text: str) -> Callable[[Schedule], object] | str:
    """Returns the function that `FILE:NAME` names, or the text of an .mlir file. Raises `CompileError` and
    `OSError`."""
    file, colon, name = text.rpartition(":")
    if not colon:
        if not text.endswith(".mlir"):
            raise CompileError(f"--space is FILE.py:FUNCTION or FILE.mlir, got '{text}'")
        return decode_text(Path(text).read_bytes(), text)
    try:
        module = load_python_file(file)
    except CompileError as error:
        raise CompileError(f"--space {text}: {error.message}") from error
    found = getattr(module, name, None)
    if not callable(found):
        names = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        raise CompileError(f"--space {text}: '{file}' has no function '{name}'{did_you_mean(name, names)}")
    return cast("Callable[[Schedule], object]", found)


@contextmanager
def _progress(trials: int, timeout: float | None) -> Generator[Callable[[Tuned], None]]:
    """Show progress on standard error: on terminals a live table, by `rich` (extra `tune`), otherwise lines."""
    begin = time.monotonic()

    def state(tuned: Tuned) -> str:
        seconds = time.monotonic() - begin
        rate = sum(len(task.trials) - task.known for task in tuned.tasks) / seconds
        left = "" if timeout is None else f", {max(timeout - seconds, 0):.0f} s left"
        best = ", ".join(
            f"{t.workload.name} {t.seconds * 1e6:.4g} us ({t.default_seconds / t.seconds:.2f} x)" for t in tuned.tasks
        )
        return f"{tuned.num_trials}/{trials} trials, {rate:.1f} a second{left}: {best}"

    try:
        live: Any = importlib.import_module("rich.live") if sys.stderr.isatty() else None
    except ImportError:
        live = None
    if live is None:
        yield lambda tuned: print(state(tuned), file=sys.stderr, flush=True)
        return
    console: Any = importlib.import_module("rich.console").Console(stderr=True)
    table: Any = importlib.import_module("rich.table")
    with live.Live(console=console, transient=True) as shown:

        def show(tuned: Tuned) -> None:
            rows = table.Table(title=state(tuned).partition(":")[0])
            for column in ("function", "best", "GFLOP/s", "default", "gain", "trials", "failed"):
                rows.add_column(column, justify="left" if column == "function" else "right")
            for task in tuned.tasks:
                speed = f"{task.workload.flops / task.seconds / 1e9:.1f}" if task.workload.flops else "?"
                failed = sum(bool(record.failure) for record in task.trials)
                rows.add_row(
                    task.workload.name,
                    f"{task.seconds * 1e6:.4g} us",
                    speed,
                    f"{task.default_seconds * 1e6:.4g} us",
                    f"{task.default_seconds / task.seconds:.2f}",
                    str(len(task.trials)),
                    str(failed),
                )
            shown.update(rows, refresh=True)

        yield show
