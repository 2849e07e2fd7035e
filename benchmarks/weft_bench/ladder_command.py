"""`weft bench ladder`: one matrix product under increasingly optimised schedules.

weft bench ladder                                    # 1024, one thread weft bench ladder --size 512 --threads 2 --plot
ladder.png --save ladder.md weft bench ladder --show vectorize                   # the schedule of a step, and its loops
"""

from __future__ import annotations

import argparse
import json

from weft.driver.peaks import Peaks
from weft.frontends.script.show import show
from weft.schedule.traces import trace_as_python
from weft.support.errors import CompileError, did_you_mean
from weft.support.target import Target
from weft.tools.failures import INTERRUPTED
from weft_bench.child import events
from weft_bench.ladder import scheduled
from weft_bench.ladder_report import LadderResult, plot, require_matplotlib
from weft_bench.ladder_steps import STEPS
from weft_bench.options import at_least, positive, progress
from weft_bench.report import Report
from weft_bench.rounds import Times


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=at_least(2), default=1024, metavar="N", help="of the matrices (default 1024)")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="default 1")
    parser.add_argument("--rounds", type=positive, default=20, metavar="N", help="turns of each step (default 20)")
    parser.add_argument("--memory-mib", type=positive, metavar="N", help="arrays that count as beyond all caches")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture; needs matplotlib")
    parser.add_argument("--save", metavar="FILE.md", help="write the tables as Markdown")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--show", metavar="STEP", help=f"of {', '.join(step.name for step in STEPS)}")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` and `OSError`."""
    if arguments.show is not None:
        return show_step(arguments.show, arguments.size, Target("llvm", num_threads=arguments.threads))
    if arguments.plot is not None:
        require_matplotlib()
    request = {
        "what": "ladder",
        "size": arguments.size,
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "memory_bytes": arguments.memory_mib and arguments.memory_mib << 20,
    }
    result: LadderResult | None = None
    status = 0
    progress("measuring what the machine can do, then building and checking the steps ...")
    try:
        for event in events(request):
            if event.pop("event") == "peaks":
                times = {} if result is None else result.times
                result = LadderResult(arguments.size, arguments.threads, Peaks.from_json(event), times)
            elif result is not None:
                result.times = {name: Times(tuple(seconds)) for name, seconds in event["times"].items()}
                progress(f"{len(next(reversed(event['times'].values())))} of {arguments.rounds} rounds")
    except KeyboardInterrupt:
        status = INTERRUPTED
    if result is None:
        return status
    report = Report(f"Schedule ladder: matmul {arguments.size}, float32", interrupted=status != 0)
    report.peaks.append(result.peaks)
    if result.times:
        report.tables.append(("", result.table()))
    if arguments.json:
        print(json.dumps({**report.head(), **result.as_json()}))
    else:
        print(report.text())
        if result.times:
            print(f"\n{result.chart()}")
    if arguments.save:
        report.save(arguments.save)
    if arguments.plot and result.times:
        plot(result, arguments.plot, report.head()["processor"])
    return status


def show_step(name: str, size: int, target: Target) -> int:
    """Print the schedule of a step as Python, and its loops."""
    steps = {step.name: step for step in STEPS}
    if name not in steps:
        raise CompileError(f"the ladder has no step '{name}'{did_you_mean(name, steps)}")
    sch = scheduled(steps[name], size, target)
    print(f"# {name}: {steps[name].idea}\n")
    print(trace_as_python(sch.trace))
    show(sch.mod)
    return 0
