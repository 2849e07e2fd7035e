"""Show or clear the compile cache.

  weft cache
  weft cache --clear

WEFT_CACHE_DIR is its folder, WEFT_CACHE_LIMIT its maximum size (500M, 2G; 4 GiB by default), and WEFT_CACHE=0 turns it
off.
"""

from __future__ import annotations

import argparse
import time

from weft.runtime.compile_cache import CompileCache, is_switched_off
from weft.support.columns import bytes_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clear", action="store_true", help="remove all entries")


def run(arguments: argparse.Namespace) -> int:
    """Raises `CompileError` for a limit that is not a size."""
    cache = CompileCache.of_user()
    problem = cache.problem()
    entries = [] if problem else cache.entries()
    size = sum(entry.size for entry in entries)
    print(f"folder    {cache.folder}{', switched off' if is_switched_off() else ''}")
    print(f"entries   {len(entries)} of {bytes_text(size)}, the limit is {bytes_text(cache.limit)}")
    if entries:
        print(f"used      {_moment(entries[0].used)} to {_moment(entries[-1].used)}")
    if problem:
        print(f"off       {problem}")
    elif arguments.clear:
        print(f"removed   {cache.clear()}")
    return 0


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
