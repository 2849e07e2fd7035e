"""Checks after each pass that a module still means what it meant before the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.interp.compare import MAX_WORK, Mismatch, Reference
from weft.support.errors import CompileError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


class Validator:
    """Runs the functions of `module` now, and those of later forms of it on the same arguments.

    `skipped` tells, for each function that a check could not compare, the reason: show it, for those are not validated.
    """

    def __init__(self, module: ModuleOp, *, seed: int = 0, tries: int = 2, max_work: int = MAX_WORK) -> None:
        self._reference = Reference(module, seed=seed, tries=tries, max_work=max_work)
        self.skipped: dict[str, str] = dict(self._reference.skipped)

    def check(self, pass_name: str, module: ModuleOp) -> None:
        """Compare `module`, as it is after the pass called `pass_name`. Raises `CompileError` with the difference."""
        found = self._reference.compare(module)
        if isinstance(found, Mismatch):
            location = None if found.error is None else found.error.location
            raise CompileError(f"pass '{pass_name}' changed the meaning of the program: {found}", location=location)
        if found is not None:
            for name, reason in found.reasons:
                self.skipped.setdefault(name, f"after '{pass_name}': {reason}")
