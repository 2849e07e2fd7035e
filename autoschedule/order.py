"""The rules of the default schedule, in order of precedence."""

from __future__ import annotations

from typing import Final

from weft.autoschedule.choices import ChoiceRule
from weft.autoschedule.contraction import ContractionRule
from weft.autoschedule.convolution import DirectConvolutionRule
from weft.autoschedule.dot_products import DotProductRule
from weft.autoschedule.filter_convolution import FilterConvolutionRule
from weft.autoschedule.groups import GroupRule
from weft.autoschedule.inlining import InliningRule
from weft.autoschedule.kernel_elements import ElementsRule, InnerLoopsRule
from weft.autoschedule.kernel_reductions import ReductionRule
from weft.autoschedule.kernel_rows import RowsRule
from weft.autoschedule.kernel_tiles import TilesRule
from weft.autoschedule.matvec import MatrixVectorRule
from weft.autoschedule.packed_convolution import PackedConvolutionRule
from weft.autoschedule.parts import PartsRule
from weft.autoschedule.rules import Rule
from weft.autoschedule.single import SingleNestRule
from weft.support.gpu_machine import GPU_KINDS

RULES: Final[tuple[Rule, ...]] = (
    # First: chains of elementwise blocks are one block for the others.
    InliningRule(),
    # Products and convolutions, before others take the elementwise blocks around them.
    MatrixVectorRule(),
    # Before the rule that takes all contractions.
    DotProductRule(),
    ContractionRule(),
    # They say where they are the better ones.
    FilterConvolutionRule(),
    PackedConvolutionRule(),
    DirectConvolutionRule(),
    # Before single nests, which would no longer be plain.
    GroupRule(),
    # Before it, for each part is then a nest of its own.
    PartsRule(),
    # Single nests leave what chooses in scalar code.
    ChoiceRule(),
    # What is left.
    SingleNestRule(),
)
"""Each rule is offered every block that is still plain, in program order, before the next rule is asked."""

KERNEL_RULES: Final[tuple[Rule, ...]] = (
    # First, as for CPUs.
    InliningRule(),
    # Before others take the elementwise blocks behind products.
    TilesRule(),
    # Before single nests, which would be kernels of their own.
    RowsRule(),
    # It says where it is the better of the two.
    ReductionRule(),
    # What is left.
    ElementsRule(),
    # Where that cannot be proved to be right.
    InnerLoopsRule(in_register=True),
    InnerLoopsRule(in_register=False),
)
"""The rules for targets whose programs are kernels."""


def rules_for(kind: str) -> tuple[Rule, ...]:
    """The rules for a kind of target; none where there are no default schedules."""
    if kind in ("llvm", "c"):
        return RULES
    return KERNEL_RULES if kind in GPU_KINDS else ()
