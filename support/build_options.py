"""The options of a build: one record from the command line, or the keywords of `weft.build`, to the passes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from weft.support.sizes import Sizes

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from weft.support.target import Target

Inserted: TypeAlias = "ModulePass | str | Sequence[ModulePass | str]"
"""A pass, passes as text (`"my-pass{x=1},canonicalize"`), or several of them."""
Insertions: TypeAlias = Mapping[str, Inserted]
"""Point, as in `"before:vectorize"`, -> what runs there."""


@dataclass(frozen=True)
class BuildOptions:
    """How a program is compiled, apart from its target."""

    scheduled: bool = True
    """Whether schedules in the module are applied."""
    default_schedule: bool = True
    """Whether functions without a schedule get a default one."""
    passes: Insertions = field(default_factory=dict[str, "Inserted"])
    """Passes of users, inserted into the lowering from tir."""
    checked: bool = False
    """Whether accesses that are not proved in bounds are guarded."""
    verify: bool = True
    """Whether blocks are checked first."""
    database: str | os.PathLike[str] | None = None
    """The file whose records take the place of default schedules."""
    require_tuned: bool = False
    """Whether each function that can be tuned must have a record in the database."""
    rewrite: bool = True
    """Whether operators of graphs are replaced by others, some of which round differently."""
    layouts: bool = True
    """Whether images of a graph are laid out in blocks of channels if that pays."""
    winograd: bool = True
    """Whether convolutions of such images may use Winograd's minimal filtering."""
    fuse: bool = True
    """Whether operators of graphs are fused."""
    precision: str = ""
    """The precision of products of graphs (`weft.support.precision`); that of the model if it is empty."""
    donate: tuple[str, ...] = ()
    """Parameters whose memory results may take."""
    specialize: Sequence[Sizes] = ()
    """Sizes of symbols for which functions get versions, chosen at the call (`passes/versions.py`)."""

    def can_compile_apart(self, target: Target) -> bool:
        """Whether kernels of models are compiled apart for a target: passes of users see whole modules, and checked
        functions log for their caller."""
        return target.kind == "llvm" and not target.obstacle and not self.passes and not self.checked

    def of_kernels(self) -> BuildOptions:
        """The options of kernels that are compiled apart: loops that no user scheduled, without graphs."""
        database = None if self.database is None else os.fspath(self.database)  # worker processes get it
        return BuildOptions(default_schedule=self.default_schedule, verify=self.verify, database=database)

    def key(self) -> str:
        """The options as a part of keys of caches. Nothing is cached with
        `passes`; keys cover records of `database` apart."""
        parts = [f"{name}={value}" for name, value in vars(self).items() if isinstance(value, bool)]
        parts += [f"specialize={dict(sizes)}" for sizes in self.specialize]
        parts += [f"precision={self.precision}"] if self.precision else []
        return "\n".join([*parts, *(f"donate={name}" for name in self.donate)])


DEFAULT_OPTIONS = BuildOptions()
