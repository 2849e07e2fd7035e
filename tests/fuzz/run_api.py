"""Call the public API with junk: `python tests/fuzz/run_api.py --calls 10000 --seed 1`."""

from __future__ import annotations

import argparse
import contextlib
import os
import resource

from api_calls import Caller


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    caller = Caller(options.seed)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        caller.run(options.calls)
    for finding in caller.findings.values():
        print(f"== {finding.call}: {finding.what} in {finding.place}\n{finding.trace}")
    print(f"{caller.calls} calls, {caller.accepted} accepted, {len(caller.findings)} findings")
    return bool(caller.findings)


if __name__ == "__main__":
    raise SystemExit(main())
