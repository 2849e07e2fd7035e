"""The passes of acme: its operations are lowered to `arith` and `memref`, its numbers to integers; and its own
pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerType, ModuleOp, f32, i16, i32
from xdsl.passes import ModulePass, PassPipeline
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    TypeConversionPattern,
    attr_type_rewrite_pattern,
    op_type_rewrite_pattern,
)

from acme.dialect import AddOp, ClipOp, FixedType, LookupOp, MulOp
from weft.passes.convert.convert_low_to_upstream import ConvertLowToUpstreamPass
from weft.passes.lower_tir_to_low import LowerTirToLowPass


class ClipPattern(RewritePattern):
    """Lowers `acme.clip` to a minimum and a maximum."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ClipOp, rewriter: PatternRewriter) -> None:
        limit = op.limit.value.data
        high, low = arith.ConstantOp(FloatAttr(limit, f32)), arith.ConstantOp(FloatAttr(-limit, f32))
        below = arith.MinimumfOp(op.operand, high.result)
        rewriter.replace(op, [high, low, below, arith.MaximumfOp(below.result, low.result)])


class LookupPattern(RewritePattern):
    """Lowers `acme.lookup` to a load at the clamped position."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LookupOp, rewriter: PatternRewriter) -> None:
        (size,) = op.table.type.get_shape()
        first, last = (arith.ConstantOp.from_int_and_width(at, IndexType()) for at in (0, size - 1))
        position = arith.IndexCastOp(op.position, IndexType())
        above = arith.MaxSIOp(position.result, first.result)
        inside = arith.MinSIOp(above.result, last.result)
        load = memref.LoadOp.get(op.table, [inside.result])
        rewriter.replace(op, [first, last, position, above, inside, load])


@dataclass(frozen=True)
class LowerOpsPass(ModulePass):
    """Replace `acme.clip` and `acme.lookup` by operations of `arith` and `memref`."""

    name = "acme-lower-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(GreedyRewritePatternApplier([ClipPattern(), LookupPattern()])).rewrite_module(op)


class AddPattern(RewritePattern):
    """Lowers a fixed-point sum to an integer sum."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter) -> None:
        rewriter.replace(op, arith.AddiOp(op.lhs, op.rhs))


class MulPattern(RewritePattern):
    """Lowers a fixed-point product to an integer product, shifted right by the fraction bits."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp, rewriter: PatternRewriter) -> None:
        fraction = arith.ConstantOp.from_int_and_width(op.result.type.fraction.data, i32)
        lhs, rhs = arith.ExtSIOp(op.lhs, i32), arith.ExtSIOp(op.rhs, i32)
        product = arith.MuliOp(lhs.result, rhs.result)
        shifted = arith.ShRSIOp(product.result, fraction.result)
        rewriter.replace(op, [fraction, lhs, rhs, product, shifted, arith.TruncIOp(shifted.result, i16)])


class IntegersPattern(TypeConversionPattern):
    """Converts fixed-point numbers to 16-bit integers; if `recursive`, also as elements of memrefs."""

    @attr_type_rewrite_pattern
    def convert_type(self, typ: FixedType) -> IntegerType:
        return i16


@dataclass(frozen=True)
class FixedToIntegersPass(ModulePass):
    """Replace the operations on `!acme.fixed` by those on integers, and the type by `i16`."""

    name = "acme-fixed-to-integers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for patterns in ([AddPattern(), MulPattern()], [IntegersPattern(recursive=True)]):
            PatternRewriteWalker(GreedyRewritePatternApplier(patterns)).rewrite_module(op)


@dataclass(frozen=True)
class LimitLookupsPass(ModulePass):
    """Reject programs with many lookups. It raises a Python exception, as passes in development do."""

    name = "acme-limit-lookups"

    limit: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        count = sum(isinstance(inner, LookupOp) for inner in op.walk())
        if count > self.limit:
            raise ValueError(f"{count} lookups, at most {self.limit} are allowed")


@dataclass(frozen=True)
class ToUpstreamPass(ModulePass):
    """The whole pipeline of acme: its own passes, and those of weft."""

    name = "acme-to-upstream"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        pipeline = (FixedToIntegersPass(), LowerOpsPass(), LowerTirToLowPass(), ConvertLowToUpstreamPass())
        PassPipeline(pipeline).apply(ctx, op)
