"""Runs a part of a program in a process of its own, so that what breaks the device there does not break the rest."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable


def isolated(run: Callable[[], int], name: str) -> int:
    """What `run` returns (a number of failures), from a child that begins with all that is imported here.

    The device must not have been used yet: its state does not survive a fork. A child that is killed (a crash, a
    device that is lost) counts as one failure.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = min(run(), 100)
        except BaseException:  # noqa: BLE001 the child ends here, whatever happened
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        print(f"{name}: FAILED, killed by {signal.Signals(os.WTERMSIG(status)).name}", flush=True)
        return 1
    return os.WEXITSTATUS(status)
