"""The options of a build."""

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
"""Maps an insertion point, such as `"before:vectorize"`, to the passes to run there."""


@dataclass(frozen=True)
class BuildOptions:
    """Options except the target."""

    scheduled: bool = True
    """Whether schedules in the module are applied."""
    default_schedule: bool = True
    """Whether functions without a schedule get a default one."""
    passes: Insertions = field(default_factory=dict[str, "Inserted"])
    """User passes, inserted into the lowering from tir."""
    checked: bool = False
    """Whether accesses that are not proved to be in bounds are guarded."""
    verify: bool = True
    """Whether blocks are checked first."""
    database: str | os.PathLike[str] | None = None
    """The file whose records replace default schedules."""
    require_tuned: bool = False
    """Whether each tunable function must have a record in the database."""
    rewrite: bool = True
    """Whether graph operators are rewritten to others, some of which round differently."""
    layouts: bool = True
    """Whether images of a graph use a layout in blocks of channels when profitable."""
    winograd: bool = True
    """Whether convolutions in such layouts may use Winograd's minimal filtering."""
    fuse: bool = True
    """Whether graph operators are fused."""
    precision: str = ""
    """The precision of products of graphs (`weft.support.precision`); empty for that of the model."""
    donate: tuple[str, ...] = ()
    """Parameters whose memory results may reuse."""
    specialize: Sequence[Sizes] = ()
    """Sizes of symbols for which functions get versions, chosen at the call (`passes/versions.py`)."""

    def can_compile_apart(self, target: Target) -> bool:
        """Returns whether kernels of models are compiled separately. User passes need whole modules, and checked
        functions log for their caller."""
        return target.kind == "llvm" and not target.obstacle and not self.passes and not self.checked

    def of_kernels(self) -> BuildOptions:
        """Separately compiled kernels have no user schedules and no graphs."""
        database = None if self.database is None else os.fspath(self.database)  # passed to worker processes
        return BuildOptions(default_schedule=self.default_schedule, verify=self.verify, database=database)

    def key(self) -> str:
        """Nothing is cached with `passes`; records of `database` have separate keys."""
        parts = [f"{name}={value}" for name, value in vars(self).items() if isinstance(value, bool)]
        parts += [f"specialize={dict(sizes)}" for sizes in self.specialize]
        parts += [f"precision={self.precision}"] if self.precision else []
        return "\n".join([*parts, *(f"donate={name}" for name in self.donate)])


DEFAULT_OPTIONS = BuildOptions()
