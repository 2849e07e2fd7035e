"""Fuzz schedules: `python tests/fuzz/run_fuzz.py --cases 20000 --seed 0 --jobs 2 --save FOLDER`.

A seed is a program with a schedule. Half of the seeds are programs whose order matters, half of these general ones
(`memory`: several writers of a buffer, reads before writes, scatters, gathers, predicates), the others reductions whose
init and updates may access different elements (`reductions`). A quarter are random chains of stages (`random`), the
others come from te; `--family` takes one family alone. `--family effects` adds calls of functions that update buffers,
and second names of buffers.

Cases run in worker processes, so that a crash or a hang of compiled code is a finding like any other. Each finding is
shrunk and printed as a program with a schedule and its arguments; `--save` keeps it as a file, which
`--rerun FILE` checks again. A run that is started again with the same folder goes on where it was.
Statistics come last. The exit status is 1 when anything was found, or when a primitive is accepted in less than 15%
of its draws.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from campaign import ELSEWHERE, SECONDS_A_CASE, Campaign, Totals
from cases import MAKERS
from schedules import GENERIC, PRIMITIVES
from shrinking import rerun

LEAST_SHARE = 0.15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--family", choices=sorted(MAKERS), help="programs of this family only")
    parser.add_argument("--seconds", type=float, default=SECONDS_A_CASE, help="a case that takes longer is a hang")
    parser.add_argument("--save", type=Path, help="folder for the findings, one file each, and for the progress")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--rerun", type=Path, help="check the case in this file, and nothing else")
    options = parser.parse_args()
    if options.rerun is not None:
        failure = rerun(options.rerun.read_text())
        print(failure or "nothing is wrong")
        return 1 if failure else 0
    started = time.perf_counter()
    seeds = range(options.seed, options.seed + options.cases)
    campaign = Campaign(
        seeds,
        options.jobs,
        options.save,
        options.family,
        options.seconds,
        lambda told: print(told, flush=True),
    )
    totals = campaign.run()
    return summary(totals, time.perf_counter() - started, options.json)


def summary(totals: Totals, seconds: float, numbers: Path | None) -> int:
    """Print what was done and found; returns the exit status."""
    print(totals.statistics)
    refused = ", ".join(f"{name}: {count}" for name, count in totals.statistics.reasons.most_common(40))
    print(f"most refused (primitive requirement kind: count): {refused}")
    kinds = Counter[str]()
    for name, count in totals.statistics.reasons.items():
        kinds[name.split(" ", 2)[2]] += count
    print("refusals by kind: " + ", ".join(f"{name} {count}" for name, count in kinds.most_common()))
    accepted = totals.statistics.accepted.total()
    programs = ", ".join(f"{name} {count}" for name, count in sorted(totals.families.items()))
    each = totals.cpu_seconds / max(totals.cases, 1)
    print(f"{totals.cases} cases ({programs}), {accepted} accepted steps, {seconds:.0f} s, {each:.3f} CPU s a case")
    for stage, count in Counter(stage for _, stage, _ in totals.findings).most_common():
        print(f"{count} failed: {stage}, seeds {[s for s, found, _ in totals.findings if found == stage][:10]}")
    alone = (*ELSEWHERE, *GENERIC)
    rare = [name for name in PRIMITIVES if name not in alone and totals.statistics.share(name) < LEAST_SHARE]
    if rare:
        print(f"accepted in less than {LEAST_SHARE:.0%} of their draws: {', '.join(rare)}")
    print(f"{len(totals.findings)} findings")
    if numbers is not None:
        record = {"cases": totals.cases, "accepted": accepted, "findings": len(totals.findings), "seconds": seconds}
        shares = {p: totals.statistics.share(p) for p in PRIMITIVES}
        numbers.write_text(json.dumps({**record, "shares": shares, "kinds": dict(kinds)}, indent=1))
    return 1 if totals.findings or rare else 0


if __name__ == "__main__":
    sys.exit(main())
