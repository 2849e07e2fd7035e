"""Ctrl-C during long native calls: Python's main thread sees signals only while it runs Python or waits for a lock."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def interruptibly(work: Callable[[], None], held: object) -> None:
    """Run native code that may take long; `KeyboardInterrupt` is raised at once in the main thread.

    Another thread runs `work` while the main thread waits, which costs about 0.1 ms. After an interrupt the code goes
    on in the background until it is done, since native code cannot be stopped: `held` is kept for it, and arrays that
    it writes still change. Other threads get no signals; there it is a plain call.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    done = threading.Semaphore(0)

    def run(_: object) -> None:
        try:
            work()
        finally:
            done.release()

    try:
        threading.Thread(target=run, args=(held,), name="weft-call", daemon=True).start()
    except RuntimeError:  # the system has no more threads, or the interpreter ends
        work()
        return
    done.acquire()
