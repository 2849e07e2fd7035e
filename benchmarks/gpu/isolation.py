"""Runs a part of a program in a separate process, so that a broken device context does not affect the rest."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable


def isolated(run: Callable[[], int], name: str) -> int:
    """The result of `run` (a number of failures) in a forked child, which inherits all imports.

    The device must not have been used yet: its state does not survive a fork. A child that is killed (a crash, a lost
    device) counts as one failure.
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
