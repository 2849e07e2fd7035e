"""A package with passes that are wrong in different ways, as pip installs it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PACKAGE = '''
"""Passes that are wrong."""
import os
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriteWalker, RewritePattern
from xdsl.rewriter import Rewriter
from xdsl.universe import Universe


class SubtractPattern(RewritePattern):
    """Wrong for sums of different operands."""

    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, arith.AddfOp):
            rewriter.replace(op, arith.MulfOp(op.lhs, op.rhs) if op.lhs is op.rhs else arith.SubfOp(op.lhs, op.rhs))


@dataclass(frozen=True)
class SubtractPass(ModulePass):
    """Subtract where sums are meant."""

    name = "acme-subtract"

    def apply(self, ctx, op):
        PatternRewriteWalker(SubtractPattern(), apply_recursively=False).rewrite_module(op)


@dataclass(frozen=True)
class SilentPass(ModulePass):
    """The same, without patterns."""

    name = "acme-silent"

    def apply(self, ctx, op):
        for add in [o for o in op.walk() if isinstance(o, arith.AddfOp)]:
            Rewriter.replace_op(add, arith.SubfOp(add.lhs, add.rhs))


@dataclass(frozen=True)
class CrashPass(ModulePass):
    """Fail on roots, in one of two ways; end the process on exponentials."""

    name = "acme-crash"
    strict: bool = False

    def apply(self, ctx, op):
        for inner in op.walk():
            if isinstance(inner, math.RsqrtOp):
                {}["rsqrt"]
            if isinstance(inner, math.ExpOp):
                os.abort()
            if isinstance(inner, math.SqrtOp):
                raise ValueError("sqrt")


UNIVERSE = Universe(
    all_passes={p.name: lambda p=p: p for p in (SubtractPass, SilentPass, CrashPass)}
)
'''


@contextmanager
def installed_passes(folder: Path) -> Generator[None]:
    """Install the package in a folder, and let this process and its children find it."""
    about = folder / "acme-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text("[xdsl.universe]\nacme = acme_passes:UNIVERSE\n")
    (folder / "acme_passes.py").write_text(PACKAGE)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("acme_passes", None)
