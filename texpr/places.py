"""Where in the user's Python an expression was written, and errors placed there."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from types import FrameType

from weft.support import argument_types
from weft.support.errors import CompileError
from weft.support.locations import SourceLocation

_ROOMS = Path(__file__).parents[1]
_OURS = (f"{_ROOMS / 'texpr'}{os.sep}", f"{_ROOMS / 'frontends'}{os.sep}", argument_types.__file__)


def _column(frame: FrameType) -> int:
    """The column, from 1, of the expression that a frame is at."""
    positions = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    column = positions[2] if positions is not None else None
    return 1 if column is None else column + 1


def caller() -> SourceLocation | None:
    """The innermost place on the call stack outside of the builder and the frontends."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return None if frame is None else SourceLocation(frame.f_code.co_filename, frame.f_lineno, _column(frame))


def error(message: str, place: SourceLocation | None = None) -> CompileError:
    """A CompileError at `place`, or at the user's line that led here."""
    return CompileError(message, location=place or caller())
