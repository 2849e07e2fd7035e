"""`weft-opt --bisect`: the first pass, step of the pass, and rewrite of the step that change a result."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING

from weft.dialects.traversal import copy_of
from weft.interp.compare import Mismatch, Reference
from weft.passes.pass_sequence import PassSequence, PipelineStep, epsilon_of, fast_math_of, run_pass
from weft.support.errors import WeftError
from weft.support.rewrites import counted_rewrites
from weft.tools.printing import ScopedMLIRTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from xdsl.context import Context
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from weft.support.rewrites import Rewrite

_LARGE = 16
"""Maximum number of elements of a constant in differences."""
_LINES = 60
"""Maximum number of lines of a difference."""


@dataclass(frozen=True)
class Culprit:
    passes: tuple[str, ...]
    """The enclosing passes, outermost first."""
    mismatch: Mismatch
    before: str
    """The IR before the change."""
    after: str
    """The IR after the change."""
    rewrite: Rewrite | None = None
    number: int = 0
    """The number of the rewrite, from 1; 0 if the pass counts no rewrites."""
    total: int = 0

    def __str__(self) -> str:
        where = " in ".join(f"'{name}'" for name in reversed(self.passes))
        lines = [f"pass {where} changes the result of {self.mismatch}"]
        if self.rewrite is not None:
            lines.append(f"its rewrite {self.number} of {self.total} is the first that does: {self.rewrite}")
        elif self.total:
            lines.append(f"none of its {self.total} rewrites does so alone")
        changed = list(unified_diff(self.before.splitlines(), self.after.splitlines(), "before", "after", lineterm=""))
        lines += changed[:_LINES]
        if len(changed) > _LINES:
            lines.append(f"... {len(changed) - _LINES} lines more")
        return "\n".join(lines)


def find_culprit(step: ModulePass, ctx: Context, module: ModuleOp) -> Culprit | None:
    """Returns the first part of a pass that changes a result, or None. Raises the errors of the pass."""
    if not isinstance(step, PassSequence):
        return _of_rewrites(step, ctx, module)
    found: list[Culprit] = []

    def run(inner: PipelineStep, ctx: Context, part: ModuleOp) -> None:
        culprit = None if found else find_culprit(inner.run, ctx, part)
        if found:
            run_pass(inner.run, ctx, part)
        elif culprit is not None:
            found.append(culprit)

    before = copy_of(module)
    step.run_steps(ctx, module, run)
    if found:
        inner = found[0]
        return Culprit((step.name, *inner.passes), *_rest(inner))
    mismatch = _mismatch(Reference(before, edges=True), step, module)
    return None if mismatch is None else Culprit((step.name,), mismatch, _text(before), _text(module))


def _rest(culprit: Culprit) -> tuple[Mismatch, str, str, Rewrite | None, int, int]:
    return culprit.mismatch, culprit.before, culprit.after, culprit.rewrite, culprit.number, culprit.total


def _of_rewrites(step: ModulePass, ctx: Context, module: ModuleOp) -> Culprit | None:
    before = copy_of(module)
    with counted_rewrites() as rewrites:
        run_pass(step, ctx, module)
    reference = Reference(before, edges=True)
    mismatch = _mismatch(reference, step, module)
    if mismatch is None:
        return None

    def after(limit: int) -> ModuleOp:
        part = copy_of(before)
        with counted_rewrites(limit):
            run_pass(step, ctx, part)
        return part

    def differs(limit: int) -> Mismatch | None:
        try:
            return _mismatch(reference, step, after(limit))
        except WeftError:  # a pass that requires all of its rewrites rejects the rest
            return None

    total = len(rewrites.made)
    number = _first_number(total, lambda limit: differs(limit) is not None)
    if number is None:
        return Culprit((step.name,), mismatch, _text(before), _text(module), None, 0, total)
    found = differs(number) or mismatch
    texts = _text(after(number - 1)), _text(after(number))
    return Culprit((step.name,), found, *texts, rewrites.made[number - 1], number, total)


def _first_number(total: int, holds: Callable[[int], bool]) -> int | None:
    """Returns the least number for which the monotonic predicate `holds` is true, or None."""
    if not total or holds(0) or not holds(total):
        return None
    low, high = 0, total
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _mismatch(reference: Reference, step: ModulePass, module: ModuleOp) -> Mismatch | None:
    found = reference.compare(module, fast_math=fast_math_of(step), epsilon=epsilon_of(step))
    return found if isinstance(found, Mismatch) else None


def _text(module: ModuleOp) -> str:
    return ScopedMLIRTarget(elide_above=_LARGE).text(module)
