"""The passes from loops of tir to low, in order, each with the reason for its position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.passes.low.low_canonicalize import LowCanonicalizePass
from weft.passes.low.low_choose_threads import ChooseThreadsPass
from weft.passes.low.low_expand_math import LowExpandMathPass
from weft.passes.low.low_forward_stores import ForwardStoresPass
from weft.passes.low.low_legalize import TARGETS as LEGALIZED
from weft.passes.low.low_legalize import LowLegalizePass
from weft.passes.low.low_lower_dots import LowerDotsPass
from weft.passes.low.low_lower_intrinsics import LowerIntrinsicsPass
from weft.passes.tir.tir_lower_loops import LowerLoopsPass
from weft.support.gpu_machine import GPU_KINDS

if TYPE_CHECKING:
    from xdsl.passes import ModulePass


def loops_to_low(target: str) -> tuple[ModulePass, ...]:
    """The passes from loops of tir over flat buffers to low, as the target takes it."""
    kind = target.partition(" ")[0]
    return (
        # First: the passes before simplify indices by the ranges of tir loops.
        LowerLoopsPass(),
        # Emitters print the module as it is.
        LowCanonicalizePass(),
        # After CSE, which makes equal indices one value. Kernel compilers do not have to promote buffers then.
        *((ForwardStoresPass(),) if kind in GPU_KINDS else ()),
        # Before legalisation: lowering rules are selected by the types of the program.
        LowerIntrinsicsPass(kind),
        # After CSE, which makes equal addresses one value; before conversions are widened.
        LowerDotsPass(target),
        # After rules registered by users, which take precedence. C compilers expand functions themselves.
        *((LowExpandMathPass(target),) if kind in ("llvm", *GPU_KINDS) else ()),
        # It rewrites what the passes before have left or inserted.
        *((LowLegalizePass(target),) if kind in LEGALIZED else ()),
        # Last: functions are expanded to the instructions that it counts.
        *((ChooseThreadsPass(target),) if kind in ("llvm", "c") else ()),
    )
