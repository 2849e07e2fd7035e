"""Numbered rewrites: tools run only the first N of a pass, to find a wrong one.

Drivers of rewrites (of rules, of schedule steps, and xDSL's `PatternRewriteWalker`) check the limit before each. The
program is valid and equivalent between two rewrites.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weft.support.locations import SourceLocation, location_of

if TYPE_CHECKING:
    from xdsl.ir import Operation
    from xdsl.pattern_rewriter import PatternRewriter, RewritePattern


@dataclass(frozen=True)
class Rewrite:
    """A rewrite that was made."""

    rule: str
    operation: str
    location: SourceLocation | None

    def __str__(self) -> str:
        what = self.rule if self.rule == self.operation else f"{self.rule} on '{self.operation}'"
        return what if self.location is None else f"{what} at {self.location}"


@dataclass
class Rewrites:
    """At most `limit` (None: any number) are made."""

    limit: int | None = None
    made: list[Rewrite] = field(default_factory=list[Rewrite])

    @property
    def is_full(self) -> bool:
        return self.limit is not None and len(self.made) >= self.limit


_current: ContextVar[Rewrites | None] = ContextVar("weft_rewrites", default=None)


def may_rewrite(rule: str, operation: Operation) -> bool:
    """Count the next rewrite if it is within the limit."""
    rewrites = _current.get()
    if rewrites is None:
        return True
    if rewrites.is_full:
        return False
    rewrites.made.append(Rewrite(rule, operation.name, location_of(operation)))
    return True


@contextmanager
def counted_rewrites(limit: int | None = None) -> Generator[Rewrites]:
    """Count the rewrites of a `with` block, and make at most `limit`."""
    from xdsl.pattern_rewriter import PatternRewriteWalker  # start-up: 20 ms

    rewrites = Rewrites(limit)
    token, plain = _current.set(rewrites), PatternRewriteWalker.rewrite_region

    def rewrite_region(walker: PatternRewriteWalker, region: object) -> bool:
        pattern = walker.pattern
        walker.pattern = _limited(pattern, rewrites)
        try:
            return plain(walker, region)  # pyright: ignore[reportArgumentType]
        finally:
            walker.pattern = pattern

    PatternRewriteWalker.rewrite_region = rewrite_region  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield rewrites
    finally:
        PatternRewriteWalker.rewrite_region = plain
        _current.reset(token)


def _limited(pattern: RewritePattern, rewrites: Rewrites) -> RewritePattern:
    from xdsl.pattern_rewriter import GreedyRewritePatternApplier, RewritePattern  # start-up: 20 ms

    applied: list[str] = []
    """The applied pattern of a choice; empty if an operation was folded or erased."""

    class Named(RewritePattern):
        def __init__(self, one: RewritePattern) -> None:
            self._one = one

        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
            self._one.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                applied.append(type(self._one).__name__)

    class Limited(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
            if rewrites.is_full:
                return
            name, location = op.name, location_of(op)  # `op` may be erased afterwards
            applied.clear()
            whole.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                rewrites.made.append(Rewrite(applied[0] if applied else default, name, location))

    whole, default = pattern, type(pattern).__name__
    if isinstance(pattern, GreedyRewritePatternApplier):
        whole, default = copy(pattern), "folding, or erasure of dead code,"
        whole.rewrite_patterns = [Named(part) for part in pattern.rewrite_patterns]
    return Limited()
