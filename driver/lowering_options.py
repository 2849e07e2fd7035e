"""Options of the lowering that `weft.build` runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from weft.passes.insertion import Inserted, Insertions
    from weft.support.target import Target


@dataclass(frozen=True)
class LoweringOptions:
    """Which schedules run on the way down, and what runs beside weft's own passes."""

    scheduled: bool = True
    default_schedule: bool = True
    passes: Insertions = field(default_factory=dict[str, "Inserted"])
    checked: bool = False
    """Whether accesses that may leave their buffers are guarded."""
    verify: bool = True
    """Whether blocks are checked first."""
    database: str | os.PathLike[str] | None = None
    """The file whose records take the place of default schedules."""
    require_tuned: bool = False
    """Whether each function that can be tuned must have a record in the database."""
    layouts: bool = True
    """Whether images of a graph are laid out in blocks of channels where that pays."""
    winograd: bool = True
    """Whether convolutions of such images may use minimal filtering."""


def can_compile_apart(target: Target, options: LoweringOptions) -> bool:
    """Whether kernels are compiled apart for a target: passes of users see whole modules, and checked functions log
    for their caller."""
    return target.kind == "llvm" and not target.obstacle and not options.passes and not options.checked
